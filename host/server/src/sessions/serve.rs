//! Requests and notifications of a session, to their answers.

use std::sync::Arc;

use futures_util::FutureExt as _;
use longshore_protocol::capability::ClientCapabilities;
use longshore_protocol::envelope::{Envelope, NotificationEnvelope, RequestId};
use longshore_protocol::error::RpcError;
use longshore_protocol::meta::Meta;
use longshore_protocol::request::{Notification, Request};
use longshore_protocol::session::{self, Initialize, SessionRequest, out};

use super::Session;
use super::talk::{Origin, Spoken, Talk, answer};
use crate::bus::Full;
use crate::dispatch::{Answer, DispatchError, Identity, Incoming};
use crate::presence::Presence;
use crate::reason::RunReason;
use crate::requests::Ticket;
use crate::run::Caller;
use crate::server::Server;

/// What a request of a session is answered with.
pub(crate) enum Answering {
    /// The response, one whole message; none if nobody wants it any more.
    Now(Option<String>),
    /// What there is to say until the response.
    Talk(Box<Talk>),
}

impl Server {
    /// Opens a session that can be named, and gives back what its client is told.
    pub(crate) fn open_session(
        &self,
        identity: &Identity,
        envelope: &Envelope<'_>,
    ) -> Result<(Arc<Session>, String), DispatchError> {
        let initialize = Initialize::read(envelope)?;
        let session = self
            .sessions
            .open(identity, &initialize)
            .map_err(|full| match full {
                Full::Node => DispatchError::NoRoom {
                    reason: RunReason::Busy,
                    message: "too many sessions are open (sessions): try again later",
                },
                Full::Caller => DispatchError::NoRoom {
                    reason: RunReason::QueueFull,
                    message: "you have too many sessions open (sessions_each): end one of them first",
                },
            })?;
        Ok((session, self.opened(initialize.revision)))
    }

    /// Answers a request of a session that has begun. `can_stream` says whether more than one message can be given back.
    pub(crate) async fn serve_in_session(
        &self,
        session: &Arc<Session>,
        (ticket, presence): (Ticket, Presence),
        envelope: &Envelope<'_>,
        can_stream: bool,
    ) -> Answering {
        let id = &envelope.id;
        let opened = session.opened();
        let result = match session::decode(envelope, &opened) {
            Err(error) => Err(error.into()),
            Ok((_, SessionRequest::Ping)) => Ok(out::NOTHING.to_owned()),
            Ok((_, SessionRequest::SetLevel(level))) => {
                session.set_level(level);
                Ok(out::NOTHING.to_owned())
            }
            Ok((_, SessionRequest::Subscribe { uri, is_wanted })) => {
                let done = self.subscribe(session, &uri, is_wanted);
                if done.is_ok() {
                    session.until_heard_of().await;
                }
                done.map(|()| out::NOTHING.to_owned()).map_err(Into::into)
            }
            Ok((meta, SessionRequest::Shared(request))) => {
                let asked = Shared {
                    id,
                    meta: &meta,
                    can_stream,
                    presence: &presence,
                };
                match self.serve_shared(session, asked, request).await {
                    Ok(Answer::Held(held)) => {
                        let origin = Origin::Call(held);
                        return begin(session, ticket, presence, id, origin);
                    }
                    Ok(Answer::Result(result)) => Ok(result),
                    Ok(Answer::Late(_) | Answer::Listening(_)) => {
                        Err(RpcError::internal("this request has no answer in a session").into())
                    }
                    Err(error) => Err(error),
                }
            }
            Ok((meta, SessionRequest::CallAsTask { call, ttl_ms })) => {
                self.call_as_task(session, &meta, call, ttl_ms, &presence)
                    .await
            }
            Ok((_, SessionRequest::Task(request))) => {
                match self.serve_task(session, request, can_stream).await {
                    Ok(super::tasks::Told::Now(result)) => Ok(result),
                    Ok(super::tasks::Told::Following(following)) => {
                        let origin = Origin::Task(following);
                        return begin(session, ticket, presence, id, origin);
                    }
                    Err(error) => Err(error),
                }
            }
        };
        if presence.gone().now_or_never().is_some() {
            return Answering::Now(None);
        }
        Answering::Now(Some(answer(id, result)))
    }

    async fn serve_shared(
        &self,
        session: &Session,
        asked: Shared<'_>,
        request: Request<'_>,
    ) -> Result<Answer, DispatchError> {
        // A client that takes one message cannot be asked on the way to it, and a run that goes on later must know that.
        let unable = Meta {
            capabilities: ClientCapabilities::default(),
            capabilities_json: "{}",
            ..asked.meta.clone()
        };
        let incoming = Incoming {
            id: asked.id,
            identity: &session.identity,
            meta: if asked.can_stream {
                asked.meta
            } else {
                &unable
            },
            can_stream: asked.can_stream,
            headers: None,
            presence: asked.presence,
        };
        self.dispatch(&incoming, request).await
    }
}

/// What is known of a request that both eras have.
struct Shared<'a> {
    id: &'a RequestId,
    meta: &'a Meta<'a>,
    can_stream: bool,
    presence: &'a Presence,
}

/// Most calls are over as soon as they are looked at, and then there is nothing to stream.
fn begin(
    session: &Arc<Session>,
    ticket: Ticket,
    presence: Presence,
    id: &RequestId,
    origin: Origin,
) -> Answering {
    let mut talk = Box::new(Talk::new(session, ticket, presence, id, origin));
    match talk.first() {
        Some(Spoken::End(response)) => Answering::Now(response.clone()),
        _ => Answering::Talk(talk),
    }
}

impl Session {
    /// A notification of its client. What is malformed or unknown has no effect, since there is no reply to say so.
    pub(crate) fn told(&self, told: NotificationEnvelope<'_>) {
        if let Notification::Cancelled { request_id, .. } = Notification::read(told) {
            self.requests.cancel(&request_id);
        }
    }

    /// Who calls in it.
    pub(crate) fn caller(&self) -> Caller {
        Caller {
            tenant: self.identity.tenant.clone(),
            principal: self.identity.principal.clone(),
            revision: self.revision,
            capabilities: self.capabilities,
            capabilities_json: self.capabilities_json.clone(),
        }
    }
}
