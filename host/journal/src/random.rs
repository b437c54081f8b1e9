//! Random bytes that a run which is repeated gets again.

/// An endless stream of bytes that nobody can guess without its key. The same key gives the same stream.
#[derive(Clone)]
pub struct Stream {
    reader: blake3::OutputReader,
}

impl Stream {
    /// One of the streams of a key, by its label.
    #[must_use]
    pub fn new(key: &[u8; 32], label: &str) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(label.as_bytes());
        Self {
            reader: hasher.finalize_xof(),
        }
    }

    /// The next bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.reader.fill(bytes);
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Bytes given so far.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.reader.position()
    }

    /// Goes on from there.
    pub fn set_position(&mut self, position: u64) {
        self.reader.set_position(position);
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is not for logs.
        f.debug_struct("Stream")
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_again_however_it_is_read_and_from_any_point() {
        let read = |key: u8, label: &str, sizes: &[usize]| {
            let mut stream = Stream::new(&[key; 32], label);
            let mut all = Vec::new();
            for size in sizes {
                let mut part = vec![0; *size];
                stream.fill(&mut part);
                all.extend(part);
            }
            all
        };
        let whole = read(1, "a", &[300]);
        assert_eq!(read(1, "a", &[1, 7, 64, 128, 100]), whole);
        assert_ne!(read(2, "a", &[300]), whole);
        assert_ne!(read(1, "b", &[300]), whole);

        let mut stream = Stream::new(&[1; 32], "a");
        stream.set_position(100);
        assert_eq!(stream.next_u64().to_le_bytes(), whole[100..108]);
        assert_eq!(stream.position(), 108);
    }
}
