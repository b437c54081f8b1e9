//! The same for other processes of this user: every desktop client starts a server of its own, and only one of them can
//! have the data. The others pass on what they hear through a socket beside it.

use std::sync::Arc;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use super::serve;
use crate::server::Server;

/// Serves whoever connects, if it is the same user, for as long as this is awaited.
pub async fn accept(server: Server, listener: UnixListener) {
    let us = rustix::process::getuid().as_raw();
    let places = Arc::new(Semaphore::new(
        server.settings.connections.min(Semaphore::MAX_PERMITS),
    ));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: trying again at once would only burn a core.
                tracing::warn!(%error, "a relayed client could not be accepted");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        // The mode of the socket says the same, unless somebody changed it.
        if !is_of(&stream, us) {
            tracing::warn!("somebody else tried to use the socket of this server");
            continue;
        }
        let server = server.clone();
        tokio::spawn(async move {
            let (input, output) = stream.into_split();
            serve(&server, input, output, std::future::pending(), || {}).await;
            drop(place);
        });
    }
}

fn is_of(stream: &UnixStream, user: u32) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == user)
}
