//! `wasi:random`: two streams of bytes that belong to the call.

use wasmtime::Result;

use crate::bindings::wasi_world::wasi::random::{insecure, insecure_seed, random};
use crate::fault::Halt;
use crate::host::State;

impl State {
    /// Room for so many bytes, if one call may ask for them.
    fn room(&self, len: u64) -> Result<Vec<u8>> {
        let most = self.wasi.random_bytes;
        if len > most {
            let message = format!("random bytes: {len} at once exceeds limit {most}");
            return Err(Halt::Hostcall(message).into());
        }
        let len = usize::try_from(len).map_err(|_| Halt::Hostcall("too many bytes".into()))?;
        Ok(vec![0; len])
    }
}

impl random::Host for State {
    fn get_random_bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        self.passes(import!("wasi:random/random.get-random-bytes"), len, 0)?;
        let mut bytes = self.room(len)?;
        self.world.random(&mut bytes);
        Ok(bytes)
    }

    fn get_random_u64(&mut self) -> Result<u64> {
        self.passes(import!("wasi:random/random.get-random-u64"), 0, 0)?;
        let mut bytes = [0; 8];
        self.world.random(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }
}

impl State {
    fn insecure_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.world.insecure_random(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

impl insecure::Host for State {
    fn get_insecure_random_bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        self.passes(
            import!("wasi:random/insecure.get-insecure-random-bytes"),
            len,
            0,
        )?;
        let mut bytes = self.room(len)?;
        self.world.insecure_random(&mut bytes);
        Ok(bytes)
    }

    fn get_insecure_random_u64(&mut self) -> Result<u64> {
        self.passes(
            import!("wasi:random/insecure.get-insecure-random-u64"),
            0,
            0,
        )?;
        Ok(self.insecure_u64())
    }
}

impl insecure_seed::Host for State {
    fn insecure_seed(&mut self) -> Result<(u64, u64)> {
        self.passes(import!("wasi:random/insecure-seed.insecure-seed"), 0, 0)?;
        Ok((self.insecure_u64(), self.insecure_u64()))
    }
}
