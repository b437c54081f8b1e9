//! Chance that comes again: a test that failed by it fails by it again.

/// A small generator of numbers (xorshift).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// One for each seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("it is below a usize")
    }

    /// The bytes with one to eight of them changed.
    pub fn mutate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut mutant = bytes.to_vec();
        for _ in 0..=self.below(8) {
            let place = self.below(mutant.len());
            mutant[place] = u8::try_from(self.below(256)).expect("it is a byte");
        }
        mutant
    }
}
