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
use longshore_policy::limits::Limits;
use wasmtime::Result;
use wasmtime::component::{HasSelf, Linker, Resource, ResourceTable};

use crate::bindings::wasi_world::{LinkOptions, Wasi as World02};
use crate::command::{self, Program};
use crate::fault::Halt;
use crate::grants::Grants;
use crate::host::State;
use crate::ring::{Head, Ring};

/// The host's side of WASI in one run.
pub(crate) struct Wasi {
    table: ResourceTable,
    pub(crate) files: Files,
    /// What it was started with, if it is a program.
    pub(crate) program: Option<Arc<Program>>,
    stdin_read: usize,
    stdout: Ring,
    stderr: Ring,
    env: Arc<[(String, String)]>,
    random_bytes: u64,
    pub(crate) exchanges: http::Exchanges,
}

impl Wasi {
    pub(crate) fn new(grants: &Grants, world: &World, stdout: Ring, stderr: Ring) -> Result<Self> {
        let limits = &grants.limits;
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(limits.handles).unwrap_or(usize::MAX));
        let now = time(world);
        let mut files = Files::new(most(limits), now);
        let program = grants.program.clone();
        if let Some(program) = &program {
            let placed = command::place(&mut files, &program.files, now);
            placed.map_err(|why| Halt::Bug(format!("files that were in order are not: {why}")))?;
        }
        Ok(Self {
            table,
            files,
            program,
            stdin_read: 0,
            stdout,
            stderr,
            env: Arc::clone(&grants.env),
            random_bytes: limits.random_bytes,
            exchanges: http::Exchanges::new(grants),
        })
    }
}

/// What the files of a run may hold.
pub(crate) fn most(limits: &Limits) -> Most {
    Most {
        bytes: limits.scratch_bytes,
        nodes: limits.handles,
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

    /// What a step takes or prints would not be there for whoever goes on behind it.
    fn must_not_be_still(&self, what: &str) -> Result<()> {
        if self.files.is_still() {
            return Err(Halt::Misuse(format!("{what} within a step")).into());
        }
        Ok(())
    }

    /// The beginning of what it printed to stdout and to stderr.
    pub(crate) fn heads(&self) -> (Head, Head) {
        (self.stdout.head(), self.stderr.head())
    }

    /// The next of the program's input.
    fn read_stdin(&mut self, most: usize) -> Result<Vec<u8>> {
        let Some(program) = self.program.clone() else {
            return Ok(Vec::new());
        };
        self.must_not_be_still("a program reads its input")?;
        let left = &program.stdin[self.stdin_read..];
        let read = left[..left.len().min(most)].to_vec();
        self.stdin_read += read.len();
        Ok(read)
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
