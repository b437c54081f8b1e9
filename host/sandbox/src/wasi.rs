//! WASI 0.2 as a function of a run's world: nothing in it depends on the machine, so that a run that is
//! repeated sees the same again.
//!
//! Each function counts itself first, by [`State::passes`]. The clock and the wait for it are asked of
//! the world, random numbers are drawn from it; files are in memory, and everything else is a constant.

#[macro_use]
mod import;
mod cli;
pub(crate) mod clocks;
pub(crate) mod files;
pub(crate) mod http;
pub(crate) mod io;
pub(crate) mod none;
mod random;
mod sockets;

use std::sync::Arc;

use longshore_journal::files::{Files, Most, Time};
use longshore_journal::import::Import;
use longshore_journal::world::World;
use wasmtime::Result;
use wasmtime::component::{HasSelf, Linker, Resource, ResourceTable};

use crate::bindings::wasi_world::{LinkOptions, Wasi as World02};
use crate::grants::Grants;
use crate::host::State;
use crate::ring::Ring;

/// The host's side of WASI in one run.
pub(crate) struct Wasi {
    table: ResourceTable,
    files: Files,
    stdout: Ring,
    stderr: Ring,
    env: Arc<[(String, String)]>,
    random_bytes: u64,
    pub(crate) exchanges: http::Exchanges,
}

impl Wasi {
    pub(crate) fn new(grants: &Grants, world: &World, stdout: Ring, stderr: Ring) -> Self {
        let limits = &grants.limits;
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(limits.handles).unwrap_or(usize::MAX));
        let most = Most {
            bytes: limits.scratch_bytes,
            nodes: limits.handles,
        };
        Self {
            table,
            files: Files::new(most, time(world)),
            stdout,
            stderr,
            env: Arc::clone(&grants.env),
            random_bytes: limits.random_bytes,
            exchanges: http::Exchanges::new(grants),
        }
    }
}

/// All of it, at one version: guests that were built for another 0.2 find it by its compatibility.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    World02::add_to_linker::<_, HasSelf<State>>(linker, &LinkOptions::default(), |state| state)
}

impl Wasi {
    /// Whether files may only be read, as within a step.
    pub(crate) fn keep_still(&mut self, still: bool) {
        self.files.keep_still(still);
    }
}

/// Now, by the clock that the guest last saw.
fn time(world: &World) -> Time {
    let ms = world.created_at_ms().saturating_add(world.clock_seen());
    let nanoseconds = u32::try_from(ms % 1_000).expect("it is less than a thousand") * 1_000_000;
    Time {
        seconds: ms / 1_000,
        nanoseconds,
    }
}

impl State {
    /// Every call comes through here, with two numbers that say what it passes.
    fn passes(&mut self, import: Import, first: u64, second: u64) -> Result<()> {
        self.note_live();
        Ok(self.world.begin(import, first, second)?)
    }

    /// A call on a resource, with another number. Which handle it is says nothing: a run that leaves out a finished
    /// step has other handles behind it.
    fn passes_on<T: 'static>(
        &mut self,
        import: Import,
        _on: &Resource<T>,
        second: u64,
    ) -> Result<()> {
        self.passes(import, 0, second)
    }

    /// A call that drops a resource, which is gone then. It is not counted: nothing is seen in it, and what was made
    /// in a step that is left out is not there to be dropped.
    fn passes_drop<T: Send + 'static>(
        &mut self,
        _import: Import,
        dropped: Resource<T>,
    ) -> Result<T> {
        Ok(self.wasi.table.delete(dropped)?)
    }
}
