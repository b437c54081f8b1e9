//! The listener and its connections.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::Service as _;

use super::alarm::Alarm;
use super::stall::Unstalled;
use super::unread::Unread;
use super::{App, MCP, guard, mcp, router};
use crate::server::Server;

/// Headers that are read beyond those that may be sent, so that whoever sends too many is told so; who sends even
/// more hears only a status.
const HEADERS_BEYOND: usize = 64;
/// File descriptors that are not for connections: the database, uploads, compile children.
const RESERVED: u64 = 64;
/// How long open requests may take to end once the server is told to.
const DRAIN: Duration = Duration::from_secs(5);

/// A listener that is not served yet, so that its port can be told before the first request.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

/// Who may use the admin API.
#[derive(Clone, Copy)]
pub struct Admin<'a> {
    /// Whoever brings this token.
    pub token: &'a str,
    /// Where it is, in words that can follow "it is in".
    pub place: &'a str,
}

/// Why the address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Callers are not told apart yet, so nobody from outside may call.
    #[error(
        "{0} is not a loopback address: callers cannot be authenticated yet, so only 127.0.0.1 and [::1] may be listened on"
    )]
    NotLoopback(SocketAddr),
    /// The system refused.
    #[error(
        "cannot listen on {address}: {source}; use another --listen address, or port 0 for any free port"
    )]
    System {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Takes the address.
pub async fn bind(address: SocketAddr) -> Result<Bound, BindError> {
    if !address.ip().is_loopback() {
        return Err(BindError::NotLoopback(address));
    }
    let failed = |source| BindError::System { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Bound { listener, address })
}

impl Bound {
    /// The address with the port that was taken.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`, then lets open requests end for a moment.
    pub async fn serve(self, server: Server, admin: Admin<'_>, stop: impl Future<Output = ()>) {
        let connections = Arc::new(Semaphore::new(places(server.settings.connections)));
        let header_time = Duration::from_secs(server.settings.header_s);
        let headers = server.settings.headers + HEADERS_BEYOND;
        let patience = Duration::from_secs(server.settings.write_s);
        let unread = Unread::new(server.settings.answers_bytes);
        let bus = Arc::clone(&server.bus);
        let app = App {
            server,
            address: self.address,
            admin_token: Arc::new(blake3::hash(admin.token.trim().as_bytes())),
            admin_token_place: admin.place.into(),
            unread,
        };
        let router = router(app.clone());
        let graceful = GracefulShutdown::new();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = accept(&self.listener, &connections) => accepted,
                () = &mut stop => break,
            };
            let Some((stream, place)) = accepted else {
                continue;
            };
            let (app, router) = (app.clone(), router.clone());
            let service = service_fn(move |request: hyper::Request<Incoming>| {
                answer(app.clone(), router.clone(), request.map(Body::new))
            });
            let connection = http1::Builder::new()
                .timer(Alarm::new())
                .header_read_timeout(header_time)
                .max_headers(headers)
                .serve_connection(TokioIo::new(Unstalled::new(stream, patience)), service);
            let connection = graceful.watch(connection);
            tokio::spawn(async move {
                // Most ends of a connection are the client's business.
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection ended");
                }
                drop(place);
            });
        }
        drop(self.listener);
        // What would go on for ever is told that it ends.
        bus.close();
        if tokio::time::timeout(DRAIN, graceful.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("requests that were still open were given up");
        }
    }
}

/// The answer to one request.
async fn answer(app: App, mut router: Router, request: Request) -> Result<Response, Infallible> {
    // First of all, so that no foreign page reaches anything, not even an error that differs.
    if let Some(refusal) = guard::keep_out(&app, request.headers(), request.uri()) {
        return Ok(refusal);
    }
    if request.uri().path() == MCP {
        // A connection keeps room for this future while it says nothing, so it must not be a large one.
        return Ok(Box::pin(mcp::endpoint(app, request)).await);
    }
    let response = router.call(request).await?;
    Ok(app.unread.bound(response).await)
}

/// Connections at the same time: as many as were allowed, and as this process has descriptors for.
fn places(allowed: usize) -> usize {
    let Some(limit) = getrlimit(Resource::Nofile).current else {
        return allowed;
    };
    let fit = usize::try_from(limit.saturating_sub(RESERVED))
        .unwrap_or(usize::MAX)
        .max(1);
    if fit < allowed {
        tracing::warn!(
            allowed,
            fit,
            "fewer connections than allowed: the limit of open files (ulimit -n) is low"
        );
    }
    allowed.min(fit)
}

/// The next connection, once there is room for one.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(connections).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Answers are small and written at once; waiting for more to send only delays them.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY could not be set");
            }
            Some((stream, place))
        }
        Err(error) => {
            // Out of file descriptors, most likely: trying again at once would only burn a core.
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}
