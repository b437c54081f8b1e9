//! Components on which compiling failed after all that it may take, so that nobody burns a minute on each try.
//!
//! The same bytes meet the same end: what was found out is kept for a while, beside the native code of others.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use parking_lot::Mutex;
use wasmtime::Engine;

use crate::artifact::{self, Digest, REFUSED};
use crate::compile::CompileLimits;
use crate::refusal::{Reason, Refusal};
use crate::regular;

/// A file larger than this is none of ours.
const FILE_BYTES: u64 = 16 * 1024;

/// What is remembered.
pub(crate) struct Memory {
    dir: Option<Dir>,
    /// Where there is no directory.
    within: Mutex<HashMap<String, (SystemTime, String)>>,
    keeps: Duration,
    /// Under other limits it may end otherwise.
    limits: String,
}

impl Memory {
    pub(crate) fn new(dir: Option<Dir>, limits: &CompileLimits) -> Self {
        let CompileLimits {
            cpu_s,
            wall_s,
            memory_bytes,
            artifact_bytes,
            at_once: _,
            quick_s: _,
            remember_s,
        } = limits;
        Self {
            dir,
            within: Mutex::default(),
            keeps: Duration::from_secs(*remember_s),
            limits: format!("{cpu_s} {wall_s} {memory_bytes} {artifact_bytes}"),
        }
    }

    /// How compiling these bytes ended not long ago, if that was not for the machine's sake.
    pub(crate) fn recall(&self, engine: &Engine, digest: &Digest) -> Option<Refusal> {
        let name = name(engine, digest);
        let (at, text) = match &self.dir {
            Some(dir) => read(dir, &name).ok()?,
            None => self.within.lock().get(&name).cloned()?,
        };
        if !self.is_fresh(at) {
            return None;
        }
        let mut lines = text.splitn(3, '\n');
        let (limits, word, message) = (lines.next()?, lines.next()?, lines.next()?);
        if limits != self.limits {
            return None;
        }
        let message = format!(
            "{message}; it is not tried again for a while: push it with --again, or raise compile.*"
        );
        Some(Refusal::new(Reason::of(word)?, message))
    }

    /// Keeps how compiling ended, if the same bytes would end so again.
    pub(crate) fn note(&self, engine: &Engine, digest: &Digest, refusal: &Refusal) {
        let is_costly = matches!(
            refusal.reason,
            Reason::CompileLimit | Reason::CompileCrashed
        );
        if !is_costly || refusal.is_passing || self.keeps.is_zero() {
            return;
        }
        self.tidy();
        let name = name(engine, digest);
        let text = format!("{}\n{}\n{}", self.limits, refusal.reason, refusal.message);
        let Some(dir) = &self.dir else {
            self.within.lock().insert(name, (SystemTime::now(), text));
            return;
        };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let written = dir
            .open_with(&name, &options)
            .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()));
        if let Err(error) = written {
            tracing::warn!(%error, name, "a refusal cannot be kept; the component would be compiled again");
        }
    }

    /// Lets these bytes be tried again.
    pub(crate) fn forgive(&self, engine: &Engine, digest: &Digest) {
        let name = name(engine, digest);
        self.within.lock().remove(&name);
        if let Some(dir) = &self.dir {
            let _usually_absent = dir.remove_file(&name);
        }
    }

    fn is_fresh(&self, at: SystemTime) -> bool {
        // A clock that was put back makes a file seem to come from later.
        at.elapsed().is_ok_and(|age| age < self.keeps)
    }

    /// Takes away what is too old to be used, so that there are never more than an hour can bring.
    fn tidy(&self) {
        self.within.lock().retain(|_, (at, _)| self.is_fresh(*at));
        let Some(dir) = &self.dir else { return };
        for entry in dir.entries().into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_ours = name.to_str().is_some_and(|name| name.ends_with(REFUSED));
            let at = entry.metadata().and_then(|found| found.modified());
            if is_ours && !at.is_ok_and(|at| self.is_fresh(at.into_std())) {
                let _usually_possible = dir.remove_file(&name);
            }
        }
    }
}

fn read(dir: &Dir, name: &str) -> io::Result<(SystemTime, String)> {
    let file = regular::open_in(dir, name)?;
    let at = file.metadata()?.modified()?;
    let mut text = String::new();
    file.take(FILE_BYTES).read_to_string(&mut text)?;
    Ok((at, text))
}

/// As the native code would be called, since another engine may end otherwise.
fn name(engine: &Engine, digest: &Digest) -> String {
    format!("{}{REFUSED}", artifact::name(engine, digest))
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;

    use super::*;
    use crate::engine;

    fn limits(cpu_s: u64, remember_s: u64) -> CompileLimits {
        CompileLimits {
            cpu_s,
            remember_s,
            ..CompileLimits::default()
        }
    }

    #[test]
    fn what_would_end_so_again_is_remembered_for_a_while_and_until_it_is_forgiven() {
        let engine = Engine::new(&engine::config()).unwrap();
        let place = tempfile::tempdir().unwrap();
        let dir = || Some(Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap());
        let limit = Refusal::new(Reason::CompileLimit, "too much");
        let (one, other) = ([1; 32], [2; 32]);
        for place in [dir(), None] {
            let memory = Memory::new(place, &limits(60, 3_600));
            assert_eq!(memory.recall(&engine, &one), None);
            memory.note(&engine, &one, &limit);
            let recalled = memory.recall(&engine, &one).unwrap();
            assert_eq!(recalled.reason, Reason::CompileLimit);
            assert!(recalled.message.starts_with("too much; "), "{recalled}");
            assert!(recalled.message.contains("--again"), "{recalled}");
            assert_eq!(memory.recall(&engine, &other), None);
            memory.forgive(&engine, &one);
            assert_eq!(memory.recall(&engine, &one), None);
            // These would not come again.
            let killed = Refusal::new(Reason::CompileCrashed, "killed").passing();
            memory.note(&engine, &one, &killed);
            memory.note(&engine, &one, &Refusal::new(Reason::Malformed, "at once"));
            assert_eq!(memory.recall(&engine, &one), None);
        }
        // It outlives the process, and not its limits, nor its time.
        Memory::new(dir(), &limits(60, 3_600)).note(&engine, &one, &limit);
        let recalls = |cpu_s, remember_s| {
            Memory::new(dir(), &limits(cpu_s, remember_s))
                .recall(&engine, &one)
                .is_some()
        };
        assert!(recalls(60, 3_600));
        assert!(!recalls(61, 3_600));
        assert!(!recalls(60, 0));
        // What is too old goes when something new comes.
        Memory::new(dir(), &limits(60, 0)).tidy();
        assert_eq!(place.path().read_dir().unwrap().count(), 0);
    }
}
