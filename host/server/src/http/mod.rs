//! Streamable HTTP and the admin API on one listener.

pub(crate) mod admin;
mod body;
mod events;
mod figures;
mod guard;
mod mcp;
mod serve;
mod stall;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::routing::{any, get, post, put};

pub use self::serve::{Bound, bind};
use crate::server::Server;

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    /// The hash of the admin token: comparing hashes takes the same time wherever two tokens differ.
    pub(crate) admin_token: Arc<blake3::Hash>,
}

/// Does something to its end, also when the client goes away in the middle of it: what is written to
/// the store and what must follow it belong together.
async fn whole<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work).await {
        Ok(value) => value,
        // Nobody aborts it, so it panicked: the connection ends as it would have here.
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

fn router(app: App) -> Router {
    let admin = Router::new()
        .route("/components", get(admin::components))
        .route(
            "/components/{name}",
            put(admin::install)
                .get(admin::component)
                .delete(admin::remove),
        )
        .route("/tasks", get(admin::tasks))
        .route("/tasks/{id}", get(admin::task))
        .route("/tasks/{id}/answer", post(admin::answer))
        .route("/tasks/{id}/cancel", post(admin::cancel))
        .route("/node", get(figures::node))
        .fallback(admin::nothing_here)
        .method_not_allowed_fallback(admin::wrong_method)
        .layer(middleware::from_fn_with_state(
            app.clone(),
            guard::admin_only,
        ));
    Router::new()
        .route("/mcp", any(mcp::endpoint))
        .nest("/v1", admin)
        .fallback(admin::nothing_here)
        // Outermost, so that no foreign page reaches anything, not even an error that differs.
        .layer(middleware::from_fn_with_state(
            app.clone(),
            guard::own_host_and_origin,
        ))
        .with_state(app)
}
