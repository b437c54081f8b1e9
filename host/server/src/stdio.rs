//! MCP over a pair of pipes: one message a line, in and out (MCP 2026-07-28 and 2025-11-25, stdio).
//!
//! Both eras come here, as over HTTP: a request that names its revision says all that is needed, and `initialize` opens
//! the one session that lasts as long as the pipes. A client that sends nonsense is told so and goes on. [`lines`] reads
//! what comes, [`relay`] serves the same to other processes of the same user.

mod lines;
pub mod relay;

use std::sync::Arc;
use std::time::Duration;

use longshore_protocol::decode;
use longshore_protocol::envelope::{
    self, Envelope, Message, NotificationEnvelope, RequestId, ResponseEnvelope,
};
use longshore_protocol::error::RpcError;
use longshore_protocol::meta;
use longshore_protocol::request::Notification;
use longshore_protocol::response;
use longshore_protocol::session::{INITIALIZE, Initialize};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use self::lines::{Line, Lines};
use crate::dispatch::{Answer, DispatchError, Identity, Incoming, Said};
use crate::errors::{self, Era};
use crate::presence::Presence;
use crate::reason::{RequestReason, RunReason};
use crate::requests::{Requests, Ticket};
use crate::server::Server;
use crate::sessions::Session;
use crate::sessions::news::News;
use crate::sessions::serve::Answering;
use crate::sessions::talk::Spoken;

/// Messages that wait to be written. Whoever has more to say waits for the client to read.
const WAITING: usize = 64;
/// How long requests that were read may take to be answered once nothing more comes.
const DRAIN: Duration = Duration::from_secs(1);

/// How long a list waits for components that are still examined. A client that starts its server asks at once, and some
/// never ask again.
const LISTS_WAIT: Duration = Duration::from_secs(10);

/// Serves one client until its input ends, it reads no more, or `stop`. `ending` is called as soon as that is so, while
/// what was asked last is still answered.
pub async fn serve(
    server: &Server,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    stop: impl Future<Output = ()>,
    ending: impl FnOnce(),
) {
    let (say, said) = mpsc::channel(WAITING);
    let writing = tokio::spawn(write(output, said));
    let places = server.settings.connections.min(Semaphore::MAX_PERMITS);
    let client = Arc::new(Client {
        server: server.clone(),
        identity: Identity::local(),
        say,
        session: Mutex::default(),
        requests: Requests::default(),
        places: Arc::new(Semaphore::new(places)),
        all: Arc::new(Semaphore::new(places)),
    });
    let mut lines = Lines::new(input, server.settings.request_bytes);
    let reading = async {
        while let Some(line) = lines.next().await {
            match line {
                Line::Whole(line) => client.take(line).await,
                Line::TooLong => client.refuse_long_line().await,
            }
        }
    };
    let until_answered = tokio::select! {
        () = reading => Arc::clone(&client.places),
        // Nobody reads what is said.
        () = client.say.closed() => Arc::clone(&client.places),
        () = stop => {
            // What listens is told that it ends, and that is waited for as well.
            server.bus.close();
            Arc::clone(&client.all)
        }
    };
    ending();
    let all = u32::try_from(places).unwrap_or(u32::MAX);
    let answered = until_answered.acquire_many_owned(all);
    let _whoever_is_left_is_cancelled = tokio::time::timeout(DRAIN, answered).await;
    client.leave();
    drop(client);
    // What was said is written, if anybody still reads.
    let _unread = tokio::time::timeout(DRAIN, writing).await;
}

/// Writes one message a line, until nobody has more to say or nobody reads.
async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut said: mpsc::Receiver<String>,
) -> std::io::Result<()> {
    while let Some(mut message) = said.recv().await {
        message.push('\n');
        output.write_all(message.as_bytes()).await?;
        if said.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

/// Whoever is at the other end.
struct Client {
    server: Server,
    identity: Identity,
    say: mpsc::Sender<String>,
    session: Mutex<Option<Opened>>,
    /// Requests outside the session that are being answered.
    requests: Requests,
    /// Requests that may be answered at the same time, without those that listen.
    places: Arc<Semaphore>,
    /// The same with them.
    all: Arc<Semaphore>,
}

/// The place of a request among those that are being answered.
type Place = Option<OwnedSemaphorePermit>;

/// The session of these pipes.
struct Opened {
    session: Arc<Session>,
    /// Whether it is told of changes already.
    is_told: bool,
}

impl Client {
    async fn say(&self, message: String) {
        // Nobody reads any more: then all of this ends.
        let _unsaid = self.say.send(message).await;
    }

    async fn refuse(&self, id: Option<&RequestId>, error: &RpcError) {
        self.say(response::error(id, error)).await;
    }

    async fn refuse_long_line(&self) {
        let most = self.server.settings.request_bytes;
        let error = RpcError::invalid_request(format!(
            "the line is longer than {most} bytes: send less, or raise the server's setting request_kib"
        ))
        .with_data(RequestReason::TooLarge.data());
        self.refuse(None, &error).await;
    }

    /// One line.
    async fn take(self: &Arc<Self>, line: Vec<u8>) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match envelope::parse(&line) {
            Ok(Message::Request(request)) => {
                let is_alone = meta::names_revision(request.params);
                if request.method == INITIALIZE && !is_alone {
                    return self.open(&request).await;
                }
                let session = self.session().filter(|_| !is_alone);
                let id = request.id.clone();
                let places = [&self.places, &self.all]
                    .map(|places| Arc::clone(places).try_acquire_owned().ok());
                let [Some(place), Some(until_its_end)] = places else {
                    let error = DispatchError::NoRoom {
                        reason: RunReason::Busy,
                        message: "too many requests are being answered (connections): try again later",
                    };
                    return self
                        .refuse(Some(&id), &errors::told(error, Era::Sessions).error)
                        .await;
                };
                // Before the next line is read, which may cancel it.
                let requests = session
                    .as_ref()
                    .map_or(&self.requests, |session| &session.requests);
                let begun = match requests.begin(&id) {
                    Ok(begun) => begun,
                    Err(refused) => return self.refuse(Some(&id), &refused.into()).await,
                };
                let client = Arc::clone(self);
                tokio::spawn(async move {
                    let _held = until_its_end;
                    // Read once more, since the text goes along with its answer.
                    let Ok(Message::Request(request)) = envelope::parse(&line) else {
                        return;
                    };
                    if request.method.ends_with("/list") {
                        client.server.until_known(LISTS_WAIT).await;
                    }
                    match session {
                        Some(session) => client.answer_in(&session, begun, &request).await,
                        None => client.answer(begun, &request, &mut Some(place)).await,
                    }
                });
            }
            Ok(Message::Notification(told)) => self.told(told),
            Ok(Message::Response(answer)) => self.answered(&answer).await,
            Err(refusal) => self.refuse(refusal.id.as_ref(), &refusal.error).await,
        }
    }

    fn session(&self) -> Option<Arc<Session>> {
        let session = self.session.lock();
        session.as_ref().map(|opened| Arc::clone(&opened.session))
    }

    /// Opens the session. Before the next line is read, which may belong to it.
    async fn open(&self, request: &Envelope<'_>) {
        let opened = Initialize::read(request).and_then(|initialize| {
            let mut session = self.session.lock();
            if session.is_some() {
                let message = "a session is open already, and lasts as long as this connection";
                return Err(RpcError::invalid_request(message));
            }
            *session = Some(Opened {
                session: self.server.sessions.unlisted(&self.identity, &initialize),
                is_told: false,
            });
            Ok(self.server.opened(initialize.revision))
        });
        match opened {
            Ok(result) => self.say(response::result(&request.id, &result)).await,
            Err(error) => self.refuse(Some(&request.id), &error).await,
        }
    }

    /// A request of the session.
    async fn answer_in(
        &self,
        session: &Arc<Session>,
        begun: (Ticket, Presence),
        request: &Envelope<'_>,
    ) {
        let answering = self.server.serve_in_session(session, begun, request, true);
        let mut talk = match answering.await {
            Answering::Now(None) => return,
            Answering::Now(Some(response)) => return self.say(response).await,
            Answering::Talk(talk) => talk,
        };
        loop {
            match talk.next().await {
                Spoken::Aside(text) | Spoken::Question(text) => self.say(text).await,
                Spoken::End(response) => {
                    drop(talk);
                    if let Some(response) = response {
                        self.say(response).await;
                    }
                    return;
                }
            }
        }
    }

    /// A request that says all that is needed. One that listens gives up its place.
    async fn answer(
        &self,
        (ticket, presence): (Ticket, Presence),
        request: &Envelope<'_>,
        place: &mut Place,
    ) {
        let response = self.response(request, &presence, place).await;
        let is_wanted = ticket.finish();
        if let Some(response) = response.filter(|_| is_wanted) {
            self.say(response).await;
        }
    }

    /// The response to a request, after all that is said before it; none if it is not wanted any more.
    async fn response(
        &self,
        request: &Envelope<'_>,
        presence: &Presence,
        place: &mut Place,
    ) -> Option<String> {
        let id = &request.id;
        let ended = |result: Result<String, DispatchError>| {
            Some(match result {
                Ok(result) => response::result(id, &result),
                Err(error) => response::error(Some(id), &errors::told(error, Era::Requests).error),
            })
        };
        let (meta, decoded) = match decode::over_stdio(request) {
            Ok(decoded) => decoded,
            Err(error) => return ended(Err(error.into())),
        };
        let incoming = Incoming {
            id,
            identity: &self.identity,
            meta: &meta,
            can_stream: true,
            headers: None,
            presence,
        };
        match self.server.dispatch(&incoming, decoded).await {
            Ok(Answer::Result(result)) => ended(Ok(result)),
            Err(error) => ended(Err(error)),
            Ok(Answer::Late(late)) => tokio::select! {
                () = presence.gone() => None,
                result = late.result() => ended(result),
            },
            Ok(Answer::Held(mut held)) => loop {
                let said = tokio::select! {
                    biased;
                    () = presence.gone() => return None,
                    said = held.next() => said,
                };
                match said {
                    Said::Aside(text) => self.say(text).await,
                    // Nobody is asked anything here.
                    Said::Inquiry(_) => {}
                    Said::End(result) => return ended(result),
                }
            },
            Ok(Answer::Listening(mut listening)) => {
                *place = None;
                loop {
                    let told = tokio::select! {
                        biased;
                        () = presence.gone() => return None,
                        told = listening.next() => told,
                    };
                    // The last of them is the response.
                    self.say(told?).await;
                }
            }
        }
    }

    /// A notification. What is malformed, early or unknown has no effect.
    fn told(self: &Arc<Self>, told: NotificationEnvelope<'_>) {
        if told.method == "notifications/initialized" {
            return self.tell_changes();
        }
        if let Notification::Cancelled { request_id, .. } = Notification::read(told) {
            self.requests.cancel(&request_id);
            if let Some(session) = self.session() {
                session.requests.cancel(&request_id);
            }
        }
    }

    /// The client is ready to hear of what belongs to no request.
    fn tell_changes(self: &Arc<Self>) {
        let session = match self.session.lock().as_mut() {
            Some(opened) if !opened.is_told => {
                opened.is_told = true;
                Arc::clone(&opened.session)
            }
            _ => return,
        };
        let Ok(mut news) = News::of(&session, &self.server.bus) else {
            tracing::warn!("a client is not told of changes: too many listen (listeners)");
            return;
        };
        let say = self.say.clone();
        tokio::spawn(async move {
            while let Some(notification) = news.next().await {
                let _nobody_reads = say.send(notification).await;
            }
        });
    }

    /// An answer to a question of ours. There is no reply to say that it does not fit.
    async fn answered(&self, answer: &ResponseEnvelope<'_>) {
        let Some(session) = self.session() else {
            return;
        };
        if let Err(error) = self.server.take_answer(&session, answer).await {
            tracing::debug!(%error, "an answer of a client does not fit its question");
        }
    }

    /// Nobody is there any more: what is still held is cancelled, and what is a task goes on.
    fn leave(&self) {
        if let Some(opened) = self.session.lock().take() {
            opened.session.end();
        }
        self.requests.end();
    }
}
