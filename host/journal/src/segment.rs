//! What one process wrote down of a run at one time, as bytes.
//!
//! A segment says which one came before it, so that a journal with a piece missing, doubled or in
//! another order is refused. The bytes of every kind are fixed by golden files.

use serde::{Deserialize, Serialize};

use crate::record::Record;

/// The number of this format. Another one is refused, never guessed at.
const FORMAT: u8 = 3;

/// What a segment says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the host's behaviour that the guest saw.
    pub host_abi: u32,
    /// Which process wrote it.
    pub node: String,
    /// When, in milliseconds since 1970.
    pub written_at_ms: u64,
    /// The segment before it.
    pub previous: Link,
}

/// What names a segment: a hash of its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link(pub [u8; 32]);

/// One segment, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// What it says of itself.
    pub header: Header,
    /// Its records.
    pub records: Vec<Record>,
}

/// Why a journal cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It was written by a newer version.
    #[error("segment {number} has format {format}; this version reads format {FORMAT}")]
    Format {
        /// Which segment.
        number: u64,
        /// Its format.
        format: u8,
    },
    /// It is not what was written.
    #[error("segment {number} is damaged: {how}")]
    Damaged {
        /// Which segment.
        number: u64,
        /// In which way.
        how: String,
    },
    /// Something is missing before it.
    #[error("segment {number} does not follow the one before it")]
    Chain {
        /// Which segment.
        number: u64,
    },
}

/// The bytes of a segment, and its name for the one after it.
#[must_use]
pub fn write(header: &Header, records: &[Record]) -> (Vec<u8>, Link) {
    let bytes = postcard::to_extend(&(header, records), vec![FORMAT])
        .expect("a vector takes every byte, and every record has a form");
    let link = link(&bytes);
    (bytes, link)
}

/// What names these bytes.
#[must_use]
pub fn link(bytes: &[u8]) -> Link {
    Link(*blake3::hash(bytes).as_bytes())
}

/// Reads segments one after the other.
#[derive(Debug)]
pub struct Reader {
    previous: Option<Link>,
}

impl Reader {
    /// Begins with the first segment of a run, or behind a restart point with whatever comes first.
    #[must_use]
    pub fn new(from_start: bool) -> Self {
        Self {
            previous: from_start.then(Link::default),
        }
    }

    /// The next segment, whose number is for messages.
    pub fn read(&mut self, number: u64, bytes: &[u8]) -> Result<Segment, Unreadable> {
        let damaged = |how: &str| Unreadable::Damaged {
            number,
            how: how.to_owned(),
        };
        let (&format, body) = bytes.split_first().ok_or_else(|| damaged("it is empty"))?;
        if format != FORMAT {
            return Err(Unreadable::Format { number, format });
        }
        let ((header, records), rest): ((Header, Vec<Record>), &[u8]) =
            postcard::take_from_bytes(body).map_err(|error| damaged(&error.to_string()))?;
        if !rest.is_empty() {
            return Err(damaged("it goes on after its end"));
        }
        if self
            .previous
            .is_some_and(|previous| previous != header.previous)
        {
            return Err(Unreadable::Chain { number });
        }
        self.previous = Some(link(bytes));
        Ok(Segment { header, records })
    }

    /// The name of what was read last.
    #[must_use]
    pub fn last(&self) -> Link {
        self.previous.unwrap_or_default()
    }
}
