//! The compile child: what the hidden subcommand of the program runs.
//!
//! It gives up what it does not need, reads one component, writes one reply and ends. Its limits are
//! the kernel's, so a compiler that goes astray does not have to cooperate.

use std::io::{self, Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit};
use wasmtime::Engine;

use crate::compile::wire::{self, REQUEST_LEN, Reply, Request, Status};
use crate::engine;
use crate::precheck::verdict;
use crate::refusal::{Reason, Refusal};

/// Ends with a panic of the compiler, like any Rust program.
pub(crate) const PANICKED: i32 = 101;
/// Ends because it was asked in a way that it does not understand, or cannot do its work at all.
const UNFIT: u8 = 70;

/// Compiling waits for serving, not the other way round.
const NICENESS: i32 = 10;
/// Stdin, stdout, stderr, and a few for the engine's looks at the machine.
const OPEN_FILES: u64 = 16;
/// After the signal of the CPU limit, which can be ignored, the kill, which cannot.
const CPU_GRACE_S: u64 = 5;

/// Serves one request on stdin and ends. Call it before anything starts threads.
#[must_use]
pub fn main() -> ExitCode {
    match catch_unwind(AssertUnwindSafe(serve)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            let _nobody_listens = writeln!(io::stderr(), "compile child: {error}");
            ExitCode::from(UNFIT)
        }
        Err(_panic) => ExitCode::from(u8::try_from(PANICKED).expect("it is the code of a process")),
    }
}

fn serve() -> io::Result<()> {
    let mut stdin = io::stdin().lock();
    let mut head = [0; REQUEST_LEN];
    stdin.read_exact(&mut head)?;
    let request = Request::decode(&head).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "stdin is no request of this program",
        )
    })?;
    confine(&request)?;

    let mut component = Vec::new();
    stdin
        .take(request.component_bytes)
        .read_to_end(&mut component)?;
    if component.len() as u64 != request.component_bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let (status, payload) = match compile(&component, request.artifact_bytes) {
        Ok(code) => (Status::Compiled, code),
        Err(refusal) => (Status::Refused, wire::encode_refusal(&refusal)),
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(
        &Reply {
            status,
            payload_bytes: payload.len() as u64,
        }
        .encode(),
    )?;
    stdout.write_all(&payload)?;
    stdout.flush()
}

/// Takes the limits on, for good: a process can lower them, never raise them again.
fn confine(request: &Request) -> io::Result<()> {
    limit(
        Resource::Cpu,
        request.cpu_s,
        request.cpu_s.saturating_add(CPU_GRACE_S),
    )?;
    limit(Resource::As, request.memory_bytes, request.memory_bytes)?;
    limit(Resource::Core, 0, 0)?;
    limit(Resource::Fsize, 0, 0)?;
    limit(Resource::Nofile, OPEN_FILES, OPEN_FILES)?;
    // Not worth failing for: whoever is niced already may not be allowed to.
    let _as_it_was = setpriority_process(None, NICENESS);
    Ok(())
}

fn limit(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    // Whoever started us may have been stricter.
    let ceiling = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let new = Rlimit {
        current: Some(soft.min(ceiling)),
        maximum: Some(hard.min(ceiling)),
    };
    setrlimit(resource, new).map_err(io::Error::from)
}

/// Validates a component and compiles it, without a limit of its own.
pub(crate) fn compile(component: &[u8], artifact_bytes: u64) -> Result<Vec<u8>, Refusal> {
    let engine = Engine::new(&engine::config()).map_err(|error| {
        Refusal::new(
            Reason::Host,
            format!("the compiler cannot be set up: {error:#}"),
        )
    })?;
    let code = engine
        .precompile_component(component)
        .map_err(|error| verdict::of(&error))?;
    if code.len() as u64 > artifact_bytes {
        return Err(Refusal::new(
            Reason::CompileLimit,
            format!(
                "its native code has {} bytes, at most {artifact_bytes} are allowed",
                code.len()
            ),
        ));
    }
    Ok(code)
}
