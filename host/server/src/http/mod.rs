//! Streamable HTTP and the admin API on one listener.

pub(crate) mod admin;
mod alarm;
mod body;
mod events;
mod figures;
mod guard;
mod head;
mod mcp;
mod serve;
mod session;
mod stall;
mod unread;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

use axum::Router;
use axum::middleware;
use axum::routing::{get, post, put};

pub use self::serve::{Admin, Bound, bind};
use self::unread::Unread;
use crate::server::Server;

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    /// The hash of the admin token: comparing hashes takes the same time wherever two tokens differ.
    pub(crate) admin_token: Arc<blake3::Hash>,
    /// Where whoever runs this server finds the token.
    pub(crate) admin_token_place: Arc<str>,
    /// Large answers that are not taken in yet.
    pub(crate) unread: Unread,
}

/// Does something to its end, also when the client goes away in the middle of it: what is written to
/// the store and what must follow it belong together.
fn whole<T, Work>(work: Work) -> impl Future<Output = T> + use<T, Work>
where
    T: Send + 'static,
    Work: Future<Output = T> + Send + 'static,
{
    // Boxed before it becomes part of another future, which would have to be moved with it.
    let mut work = Box::pin(work);
    async move {
        // Nobody can go away before it waits for something, so what never does needs no task of its own, nor the
        // thread that would be woken for it.
        let first = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
        if let Poll::Ready(value) = first {
            return value;
        }
        match tokio::spawn(work).await {
            Ok(value) => value,
            // Nobody aborts it, so it panicked: the connection ends as it would have here.
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }
}

/// Where MCP is spoken.
const MCP: &str = "/mcp";

/// Everything but that.
fn router(app: App) -> Router {
    let admin = Router::new()
        .route("/components", get(admin::components))
        .route(
            "/components/{name}",
            put(admin::install)
                .get(admin::component)
                .delete(admin::remove),
        )
        .route(
            "/components/{name}/grant",
            put(admin::grant).get(admin::granted),
        )
        .route("/tasks", get(admin::tasks))
        .route("/tasks/{id}", get(admin::task))
        .route("/tasks/{id}/answer", post(admin::answer))
        .route("/tasks/{id}/cancel", post(admin::cancel))
        .route("/tasks/{id}/resume", post(admin::resume))
        .route("/tasks/{id}/journal", get(admin::history))
        .route("/tasks/{id}/export", get(admin::export))
        .route("/node", get(figures::node))
        .fallback(admin::nothing_here)
        .method_not_allowed_fallback(admin::wrong_method)
        .layer(middleware::from_fn_with_state(
            app.clone(),
            guard::admin_only,
        ));
    Router::new()
        .nest("/v1", admin)
        .fallback(admin::nothing_here)
        .with_state(app)
}
