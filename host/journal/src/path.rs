//! One number for the way that a guest has taken: which functions it called, with what, in which order.

/// Grows with every call. Two guests that did the same have the same; two that differ anywhere almost
/// certainly do not. It finds accidents, not attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path(u64);

impl Default for Path {
    /// Not zero, at which a zero more would not be seen.
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Path {
    /// Where a run stood that is gone on with.
    #[must_use]
    pub fn restored(value: u64) -> Self {
        Self(value)
    }

    /// Takes in a number.
    pub fn mix(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    /// Takes in bytes and how many there are.
    pub fn mix_bytes(&mut self, bytes: &[u8]) {
        self.mix(bytes.len() as u64);
        if bytes.len() <= 64 {
            for chunk in bytes.chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                self.mix(u64::from_le_bytes(word));
            }
        } else {
            let hash = blake3::hash(bytes);
            let (word, _) = hash.as_bytes().split_first_chunk::<8>().expect("it has 32");
            self.mix(u64::from_le_bytes(*word));
        }
    }

    /// All of it.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }

    /// What a record carries of it.
    #[must_use]
    pub fn stamp(self) -> u32 {
        // The upper half is the better mixed one.
        (self.0 >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_content_and_length_all_matter() {
        let path = |parts: &[&[u8]]| {
            let mut path = Path::default();
            for part in parts {
                path.mix_bytes(part);
            }
            path.stamp()
        };
        let long = vec![1; 65];
        let mut other = long.clone();
        other[64] = 2;
        let all = [
            path(&[]),
            path(&[b""]),
            path(&[b"a"]),
            path(&[b"a", b"b"]),
            path(&[b"b", b"a"]),
            path(&[b"ab"]),
            path(&[b"a\0"]),
            path(&[&long]),
            path(&[&other]),
        ];
        for (one, first) in all.iter().enumerate() {
            for second in &all[one + 1..] {
                assert_ne!(first, second);
            }
        }
    }
}
