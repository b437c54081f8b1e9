//! The functions that a guest may call, by name and by number.

/// One function of the host. Its number is made from its name, so that it stays the same when others
/// are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Import {
    name: &'static str,
    code: u64,
}

impl Import {
    /// The function of that name, such as `wasi:clocks/wall-clock.now`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        // FNV-1a, since it can be computed when this is compiled.
        let bytes = name.as_bytes();
        let mut code = 0xcbf2_9ce4_8422_2325_u64;
        let mut at = 0;
        while at < bytes.len() {
            code = (code ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            at += 1;
        }
        Self { name, code }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    pub(crate) const fn code(self) -> u64 {
        self.code
    }
}

impl std::fmt::Display for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
