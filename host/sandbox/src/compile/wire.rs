//! What goes between the server and its compile child: one request on stdin, one reply on stdout.

use crate::refusal::{Reason, Refusal};

/// The first bytes of a request and of a reply. A program that is no compile child is told by them.
const REQUEST: [u8; 4] = *b"LSq1";
const REPLY: [u8; 4] = *b"LSr1";

/// What precedes the component on stdin. The limits travel here and not as arguments, so that
/// whoever gives the child its command line need not know of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) cpu_s: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) artifact_bytes: u64,
    pub(crate) component_bytes: u64,
}

pub(crate) const REQUEST_LEN: usize = 4 + 4 * 8;

impl Request {
    pub(crate) fn encode(self) -> Vec<u8> {
        let numbers = [
            self.cpu_s,
            self.memory_bytes,
            self.artifact_bytes,
            self.component_bytes,
        ];
        let mut encoded = REQUEST.to_vec();
        encoded.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        encoded
    }

    pub(crate) fn decode(encoded: &[u8; REQUEST_LEN]) -> Option<Self> {
        let numbers = encoded.strip_prefix(&REQUEST)?;
        let mut numbers = numbers
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| u64::from_le_bytes(*bytes));
        Some(Self {
            cpu_s: numbers.next()?,
            memory_bytes: numbers.next()?,
            artifact_bytes: numbers.next()?,
            component_bytes: numbers.next()?,
        })
    }
}

/// What kind of reply it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Native code follows.
    Compiled,
    /// A refusal follows.
    Refused,
}

/// What precedes the payload on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: Status,
    pub(crate) payload_bytes: u64,
}

pub(crate) const REPLY_LEN: usize = 4 + 1 + 8;

impl Reply {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut encoded = REPLY.to_vec();
        encoded.push(match self.status {
            Status::Compiled => 0,
            Status::Refused => 1,
        });
        encoded.extend(self.payload_bytes.to_le_bytes());
        encoded
    }

    pub(crate) fn decode(encoded: &[u8; REPLY_LEN]) -> Option<Self> {
        let [status, bytes @ ..] = encoded.strip_prefix(&REPLY)? else {
            return None;
        };
        let status = match status {
            0 => Status::Compiled,
            1 => Status::Refused,
            _ => return None,
        };
        Some(Self {
            status,
            payload_bytes: u64::from_le_bytes(bytes.try_into().ok()?),
        })
    }
}

/// A refusal as payload: its word, a line end, its message.
pub(crate) fn encode_refusal(refusal: &Refusal) -> Vec<u8> {
    format!("{}\n{}", refusal.reason, refusal.message).into_bytes()
}

/// The refusal in a payload.
pub(crate) fn decode_refusal(payload: &[u8]) -> Option<Refusal> {
    let (word, message) = std::str::from_utf8(payload).ok()?.split_once('\n')?;
    Some(Refusal::new(Reason::of(word)?, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_what_arrives() {
        let request = Request {
            cpu_s: 60,
            memory_bytes: 3 << 29,
            artifact_bytes: 7,
            component_bytes: u64::MAX,
        };
        assert_eq!(
            Request::decode(&request.encode().try_into().unwrap()),
            Some(request)
        );
        for status in [Status::Compiled, Status::Refused] {
            let reply = Reply {
                status,
                payload_bytes: 1 << 40,
            };
            assert_eq!(
                Reply::decode(&reply.encode().try_into().unwrap()),
                Some(reply)
            );
        }
        let refusal = Refusal::new(Reason::FeatureOff, "memory64 is switched off here");
        assert_eq!(decode_refusal(&encode_refusal(&refusal)), Some(refusal));
    }

    #[test]
    fn what_is_not_ours_is_no_message() {
        assert_eq!(Request::decode(&[0; REQUEST_LEN]), None);
        assert_eq!(Reply::decode(b"usage: longsh"), None);
        assert_eq!(Reply::decode(b"LSr1\x02\0\0\0\0\0\0\0\0"), None);
        for payload in [&b""[..], b"malformed", b"no-such-word\ntext", b"\xff\n"] {
            assert_eq!(decode_refusal(payload), None);
        }
    }
}
