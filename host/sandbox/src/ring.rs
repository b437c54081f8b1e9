//! What a guest prints: the newest part is kept, and a guest that prints too much never notices.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::ending::RingText;

/// What one write may carry; it bounds what `write-zeroes` makes the host allocate.
const WRITE: usize = 64 * 1024;

/// One output stream of one run. Clones share it.
#[derive(Clone)]
pub(crate) struct Ring {
    shared: Arc<Mutex<Kept>>,
}

struct Kept {
    newest: VecDeque<u8>,
    room: usize,
    dropped: u64,
    /// So many bytes from the beginning are sure to be printed again by whoever repeats the run.
    sure: u64,
    /// The beginning, of a program whose output is its result.
    head: Option<Head>,
}

/// The beginning of what a program printed.
#[derive(Clone, Default)]
pub(crate) struct Head {
    pub(crate) bytes: Vec<u8>,
    /// There was more.
    pub(crate) is_cut: bool,
    room: usize,
}

impl Ring {
    /// A stream of which at most `room` bytes are kept.
    pub(crate) fn new(room: u64) -> Self {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        Self {
            shared: Arc::new(Mutex::new(Kept {
                newest: VecDeque::new(),
                room,
                dropped: 0,
                sure: 0,
                head: None,
            })),
        }
    }

    /// Takes it in, and drops the oldest for it.
    pub(crate) fn push(&self, bytes: &[u8], is_sure: bool) {
        let mut kept = self.shared.lock();
        let fits = &bytes[bytes.len().saturating_sub(kept.room)..];
        let over = (kept.newest.len() + fits.len()).saturating_sub(kept.room);
        kept.newest.drain(..over);
        kept.newest.extend(fits);
        kept.dropped += (over + bytes.len() - fits.len()) as u64;
        if is_sure {
            kept.sure = kept.written();
        }
    }

    /// From now on what comes first is kept as well, up to so many bytes: whoever repeats a run prints all of it again.
    pub(crate) fn keep_head(&self, room: usize) {
        self.shared.lock().head = Some(Head {
            room,
            ..Head::default()
        });
    }

    /// Whether the beginning is kept.
    pub(crate) fn keeps_head(&self) -> bool {
        self.shared.lock().head.is_some()
    }

    /// Takes it in as part of the beginning, if that is kept.
    pub(crate) fn push_head(&self, bytes: &[u8]) {
        if let Some(head) = &mut self.shared.lock().head {
            let fits = bytes.len().min(head.room - head.bytes.len());
            head.bytes.extend_from_slice(&bytes[..fits]);
            head.is_cut |= fits < bytes.len();
        }
    }

    /// The beginning.
    pub(crate) fn head(&self) -> Head {
        self.shared.lock().head.clone().unwrap_or_default()
    }

    /// How many bytes were printed.
    pub(crate) fn written(&self) -> u64 {
        self.shared.lock().written()
    }

    /// So many bytes are sure from now on.
    pub(crate) fn note_sure(&self, bytes: u64) {
        let mut kept = self.shared.lock();
        kept.sure = kept.sure.max(bytes);
    }

    /// What is kept of that which is sure, up to its last whole character.
    pub(crate) fn sure_text(&self) -> RingText {
        let mut kept = self.shared.lock();
        let (dropped, sure) = (kept.dropped, kept.sure);
        let bytes = kept.newest.make_contiguous();
        let length = usize::try_from(sure.saturating_sub(dropped)).unwrap_or(usize::MAX);
        let bytes = &bytes[..length.min(bytes.len())];
        let last = bytes.utf8_chunks().last();
        let half = last.map_or(0, |last| last.invalid().len());
        text(&bytes[..bytes.len() - half], dropped)
    }

    /// What is kept, as text that starts with a whole character.
    pub(crate) fn text(&self) -> RingText {
        let mut kept = self.shared.lock();
        let dropped = kept.dropped;
        text(kept.newest.make_contiguous(), dropped)
    }
}

impl Kept {
    fn written(&self) -> u64 {
        self.dropped + self.newest.len() as u64
    }
}

fn text(bytes: &[u8], dropped: u64) -> RingText {
    let is_inner = |byte: &&u8| **byte & 0xC0 == 0x80;
    // The front of a character can be lost only where something was dropped.
    let cut = if dropped > 0 {
        bytes.iter().take(3).take_while(is_inner).count()
    } else {
        0
    };
    RingText {
        text: String::from_utf8_lossy(&bytes[cut..]).into_owned(),
        dropped: dropped + cut as u64,
    }
}

impl IsTerminal for Ring {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Ring {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

impl OutputStream for Ring {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push_head(&bytes);
        self.push(&bytes, false);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE)
    }
}

#[async_trait]
impl Pollable for Ring {
    async fn ready(&mut self) {}
}

impl AsyncWrite for Ring {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.push(bytes, false);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(room: u64, writes: &[&[u8]]) -> (String, u64) {
        let mut ring = Ring::new(room);
        for write in writes {
            assert!(ring.check_write().unwrap() > 0, "it never closes");
            OutputStream::write(&mut ring, Bytes::copy_from_slice(write)).unwrap();
        }
        let RingText { text, dropped } = ring.text();
        (text, dropped)
    }

    #[test]
    fn the_newest_bytes_are_kept_and_the_others_counted() {
        assert_eq!(after(8, &[]), (String::new(), 0));
        assert_eq!(after(8, &[b"12345678"]), ("12345678".into(), 0));
        assert_eq!(after(8, &[b"1234", b"56789"]), ("23456789".into(), 1));
        assert_eq!(after(4, &[b"ab", b"0123456789"]), ("6789".into(), 8));
        assert_eq!(after(0, &[b"abc", b"d"]), (String::new(), 4));
    }

    #[test]
    fn only_what_is_sure_is_told_as_such() {
        let ring = Ring::new(8);
        let sure = || {
            let RingText { text, dropped } = ring.sure_text();
            (text, dropped)
        };
        ring.push(b"ab", true);
        ring.push("cä".as_bytes(), false);
        assert_eq!(sure(), ("ab".into(), 0));
        // Half a character is none yet.
        ring.note_sure(4);
        assert_eq!(sure(), ("abc".into(), 0));
        ring.note_sure(ring.written());
        ring.note_sure(2);
        assert_eq!(sure(), ("abcä".into(), 0));
        ring.push(b"01234", false);
        assert_eq!(sure(), ("cä".into(), 2));
        ring.push(b"56789", false);
        assert_eq!(sure(), (String::new(), 7));
        assert_eq!(ring.text().text, "23456789");
    }

    #[test]
    fn text_begins_with_a_whole_character_and_is_always_text() {
        // Six bytes of three characters; room for five cuts the first in half.
        assert_eq!(after(5, &["äöü".as_bytes()]), ("öü".into(), 2));
        assert_eq!(after(8, &[b"a\xffb"]), ("a\u{fffd}b".into(), 0));
        assert_eq!(after(8, &[b"\x80a"]), ("\u{fffd}a".into(), 0));
    }
}
