//! What a client of a session is told that belongs to no request: lists that changed, and resources that it subscribed to.

use std::sync::Arc;
use std::time::Duration;

use longshore_protocol::error::RpcError;
use longshore_protocol::listening::ListChanges;
use longshore_protocol::resource;
use longshore_protocol::session::out;
use tokio::sync::watch;

use super::{Listening, Session};
use crate::bus::{Bus, Full, Listener, Subscription, Told, Wanted};
use crate::reason::RequestReason;
use crate::server::Server;

/// Everything that there is to list.
const LISTS: ListChanges = ListChanges {
    tools: true,
    prompts: true,
    resources: true,
};

/// Whoever hears it. Letting go of it ends that.
pub(crate) struct News {
    here: Listening,
    listener: Listener,
    subscribed: watch::Receiver<Vec<Subscription>>,
    heard_of: Arc<watch::Sender<Vec<Subscription>>>,
}

/// How long an answer waits until its change is heard of. Whoever does not read what it is told is not waited for.
const HEARD: Duration = Duration::from_secs(1);

impl News {
    /// Listens from now on, in place of whoever did before.
    pub(crate) fn of(session: &Arc<Session>, bus: &Arc<Bus>) -> Result<Self, Full> {
        let mut subscribed = session.subscribed.subscribe();
        let wanted = Wanted {
            lists: LISTS,
            resources: subscribed.borrow_and_update().clone(),
            ..Wanted::default()
        };
        let now = wanted.resources.clone();
        let listener = bus.listen(&session.identity.principal, wanted)?;
        session.heard_of.send_replace(now);
        Ok(Self {
            here: session.listen(),
            listener,
            subscribed,
            heard_of: Arc::clone(&session.heard_of),
        })
    }

    /// The next notification, one whole message; none once there will be no more.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            tokio::select! {
                biased;
                () = self.here.over() => return None,
                Ok(()) = self.subscribed.changed() => {
                    let resources = self.subscribed.borrow_and_update().clone();
                    self.listener.listen_to(resources.clone());
                    self.heard_of.send_replace(resources);
                }
                told = self.listener.next() => return match told {
                    Told::List(family) => Some(out::list_changed(family)),
                    Told::Resource(uri) => Some(out::resource_updated(&uri)),
                    Told::Task(_) | Told::Closed => None,
                },
            }
        }
    }
}

impl Session {
    /// Returns once whoever listens hears of what is subscribed to now: what changes behind the answer is not missed.
    pub(crate) async fn until_heard_of(&self) {
        if self.subscribed.receiver_count() == 0 {
            return;
        }
        let wanted = self.subscribed.borrow().clone();
        let mut heard_of = self.heard_of.subscribe();
        let heard = heard_of.wait_for(|heard| *heard == wanted);
        let _whoever_is_slow_is_told_later = tokio::time::timeout(HEARD, heard).await;
    }
}

impl Server {
    /// Tells the client of a session from now on that the contents of a resource changed, or tells it no more.
    pub(crate) fn subscribe(
        &self,
        session: &Session,
        uri: &str,
        is_wanted: bool,
    ) -> Result<(), RpcError> {
        if !is_wanted {
            session.subscribed.send_if_modified(|all| without(all, uri));
            return Ok(());
        }
        let registry = self.registry();
        let holder = registry
            .holder_of(uri)
            .ok_or_else(|| resource::not_found(session.revision, uri))?;
        let subscription = Subscription {
            component: holder.component.name.to_string(),
            uri: uri.into(),
        };
        let most = self.settings.listen_resources;
        let mut is_full = false;
        session.subscribed.send_if_modified(|all| {
            without(all, uri);
            is_full = all.len() >= most;
            if !is_full {
                all.push(subscription);
            }
            true
        });
        if is_full {
            let message = format!(
                "{most} resources are subscribed to, which is all there may be (listen_resources)"
            );
            return Err(RpcError::invalid_params(message).with_data(RequestReason::TooMany.data()));
        }
        Ok(())
    }
}

fn without(all: &mut Vec<Subscription>, uri: &str) -> bool {
    let before = all.len();
    all.retain(|subscription| subscription.uri.as_ref() != uri);
    all.len() != before
}
