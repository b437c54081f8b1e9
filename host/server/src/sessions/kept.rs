//! The stream of one request, which outlives the connection that it is read on: a client that lost it reads on where it
//! stood (MCP 2025-11-25, Streamable HTTP, resumability and redelivery).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::talk::{Spoken, Talk};
use super::{Session, Use};

/// How long a client may take to come back for what it lost at the end of a stream.
const COMES_BACK: Duration = Duration::from_secs(60);

/// What a stream takes without its events.
const KEPT_BYTES: usize = size_of::<Kept>() + size_of::<Arc<Kept>>();

/// The streams of a session that are still to be read, by their numbers.
pub(crate) struct Streams {
    begun: u64,
    /// What those that have ended may hold in all.
    most_bytes: usize,
    live: BTreeMap<u64, Arc<Kept>>,
}

impl Streams {
    pub(super) fn new(most_bytes: usize) -> Self {
        Self {
            begun: 0,
            most_bytes,
            live: BTreeMap::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        for stream in std::mem::take(&mut self.live).into_values() {
            stream.close();
        }
    }

    /// Lets go of those that were read to their end a while ago: whoever lost the last of it has had the time to come
    /// back.
    pub(super) fn sweep(&mut self, now: Instant) {
        self.live.retain(|_, stream| {
            let through_at = stream.inner.lock().through_at;
            through_at.is_none_or(|at| now.saturating_duration_since(at) < COMES_BACK)
        });
    }

    /// Lets go of the oldest that have ended, until the rest is as little as may be kept.
    fn make_room(&mut self) {
        let mut kept = 0;
        let mut over = Vec::new();
        for (number, stream) in self.live.iter().rev() {
            let Some(bytes) = stream.bytes_once_ended() else {
                continue;
            };
            kept += bytes;
            if kept > self.most_bytes {
                over.push(*number);
            }
        }
        for number in over {
            self.live.remove(&number);
        }
    }
}

/// The stream of one request.
pub(crate) struct Kept {
    number: u64,
    most_aside_bytes: usize,
    inner: Mutex<Inner>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Inner {
    events: VecDeque<Event>,
    written: u64,
    aside_bytes: usize,
    ended: bool,
    /// Which reader reads; whoever came before lost the connection.
    readers: u64,
    /// Somebody reads now.
    is_read: bool,
    /// The client knows how to come back.
    is_known: bool,
    /// When all of it had been handed to a connection. Whether the client got it nobody knows.
    through_at: Option<Instant>,
}

/// One message under its number.
#[derive(Clone)]
pub(crate) struct Event {
    /// In the order of its stream, from 1 on.
    number: u64,
    /// The message.
    pub(crate) text: Arc<str>,
    /// What it is.
    pub(crate) kind: Kind,
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What does no harm if it is not heard.
    Aside,
    /// What has to be heard.
    Question,
    /// The last of its stream.
    Response,
}

impl Event {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.len()
    }
}

impl Kept {
    fn push(&self, kind: Kind, text: &str) {
        let mut inner = self.inner.lock();
        inner.written += 1;
        let number = inner.written;
        inner.events.push_back(Event {
            number,
            text: text.into(),
            kind,
        });
        if kind == Kind::Aside {
            inner.aside_bytes += size_of::<Event>() + text.len();
            while inner.aside_bytes > self.most_aside_bytes {
                let oldest = inner
                    .events
                    .iter()
                    .position(|event| event.kind == Kind::Aside)
                    .and_then(|place| inner.events.remove(place));
                match oldest {
                    Some(oldest) => inner.aside_bytes -= oldest.bytes(),
                    None => break,
                }
            }
        }
        inner.ended |= kind == Kind::Response;
        drop(inner);
        self.changed.send_replace(());
    }

    fn close(&self) {
        self.inner.lock().ended = true;
        self.changed.send_replace(());
    }

    fn bytes_once_ended(&self) -> Option<usize> {
        let inner = self.inner.lock();
        inner
            .ended
            .then(|| KEPT_BYTES + inner.events.iter().map(Event::bytes).sum::<usize>())
    }
}

impl Session {
    /// Begins a stream of what a request has to say. It goes on whether or not it is read.
    pub(crate) fn stream(self: &Arc<Self>, mut talk: Box<Talk>, most_aside_bytes: u64) -> Reader {
        let stream = {
            let mut streams = self.streams();
            streams.begun += 1;
            let stream = Arc::new(Kept {
                number: streams.begun,
                most_aside_bytes: usize::try_from(most_aside_bytes).unwrap_or(usize::MAX),
                inner: Mutex::default(),
                changed: watch::Sender::new(()),
            });
            streams.live.insert(stream.number, Arc::clone(&stream));
            stream
        };
        let reader = self.read(&stream, 0);
        let session = Arc::clone(self);
        tokio::spawn(async move {
            let response = loop {
                match talk.next().await {
                    Spoken::Aside(text) => stream.push(Kind::Aside, &text),
                    Spoken::Question(text) => stream.push(Kind::Question, &text),
                    Spoken::End(response) => break response,
                }
            };
            // The id of a request is free before its client sees the answer: some use one id for all.
            drop(talk);
            match response {
                Some(response) => stream.push(Kind::Response, &response),
                None => stream.close(),
            }
            session.stream_ended(&stream);
        });
        reader
    }

    fn stream_ended(&self, stream: &Kept) {
        let mut streams = self.streams();
        let inner = stream.inner.lock();
        let is_wanted = inner.is_read || (inner.is_known && !inner.events.is_empty());
        drop(inner);
        if is_wanted {
            streams.make_room();
        } else {
            streams.live.remove(&stream.number);
        }
    }

    fn read(self: &Arc<Self>, stream: &Arc<Kept>, after: u64) -> Reader {
        let mut inner = stream.inner.lock();
        inner.readers += 1;
        inner.is_read = true;
        let mine = inner.readers;
        drop(inner);
        stream.changed.send_replace(());
        Reader {
            changed: stream.changed.subscribe(),
            stream: Arc::clone(stream),
            mine,
            after,
            used: self.enter(),
        }
    }

    /// Reads on behind the event of that id, in place of whoever read before. None if nothing is kept of its stream.
    pub(crate) fn read_on(self: &Arc<Self>, event_id: &str) -> Option<Reader> {
        let (stream, after) = event_id.split_once('-')?;
        let stream = Arc::clone(self.streams().live.get(&stream.parse().ok()?)?);
        let after = after.parse().ok()?;
        // Behind what was never said, the rest would never be heard.
        let was_said = after <= stream.inner.lock().written;
        was_said.then(|| self.read(&stream, after))
    }
}

/// Whoever reads a stream. Letting go of it loses nothing.
pub(crate) struct Reader {
    stream: Arc<Kept>,
    changed: watch::Receiver<()>,
    mine: u64,
    after: u64,
    used: Use,
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut inner = self.stream.inner.lock();
        if inner.readers != self.mine {
            return;
        }
        inner.is_read = false;
        if !inner.ended {
            return;
        }
        let is_over = !inner.is_known;
        drop(inner);
        let mut streams = self.used.0.streams();
        if is_over {
            streams.live.remove(&self.stream.number);
        } else {
            streams.make_room();
        }
    }
}

impl Reader {
    /// The client is told how to come back to where it stands now.
    pub(crate) fn place(&self) -> String {
        self.place_after(self.after)
    }

    /// The same, before an event that it does not have yet.
    pub(crate) fn place_before(&self, event: &Event) -> String {
        self.place_after(event.number - 1)
    }

    /// The same, once it has that event.
    pub(crate) fn place_of(&self, event: &Event) -> String {
        self.place_after(event.number)
    }

    fn place_after(&self, number: u64) -> String {
        self.stream.inner.lock().is_known = true;
        format!("{}-{number}", self.stream.number)
    }

    /// The next event; none after the last, or if somebody else reads on.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            self.changed.mark_unchanged();
            {
                let mut inner = self.stream.inner.lock();
                if inner.readers != self.mine {
                    return None;
                }
                let next = inner.events.iter().find(|event| event.number > self.after);
                if let Some(event) = next {
                    self.after = event.number;
                    return Some(event.clone());
                }
                if inner.ended {
                    inner.through_at = Some(Instant::now());
                    return None;
                }
            }
            if self.changed.changed().await.is_err() {
                return None;
            }
        }
    }
}
