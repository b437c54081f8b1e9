//! From the engine's errors to one kind and one line.

use std::str::Utf8Error;

use longshore_journal::world::Fault as World;
use wasmtime::component::ResourceTableError;
use wasmtime::{Error, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::control::StopReason;
use crate::ending::{Ending, Fault, FaultKind, RingText};

/// What the host does to a guest from within: each ends the run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Halt {
    /// It was told to.
    #[error("stopped")]
    Stopped(StopReason),
    /// It saved a point to start from, and goes on there.
    #[error("it goes on from its restart point")]
    Restart(Vec<u8>),
    /// Its CPU time is used up.
    #[error("more than {limit_ms} ms of CPU time")]
    Cpu {
        /// What it had.
        limit_ms: u64,
    },
    /// The CPU time in which it was to repeat its past is used up.
    #[error("more than {limit_ms} ms of CPU time to repeat what it did before")]
    ReplayCpu {
        /// What it had.
        limit_ms: u64,
    },
    /// It passed more than it may.
    #[error("{0}")]
    Input(String),
    /// One call of it carried or asked for more than it may.
    #[error("{0}")]
    Hostcall(String),
    /// It ended its process.
    #[error("the guest exited with status {0} instead of returning")]
    Exit(i32),
    /// It broke a rule of an interface of WASI.
    #[error("{0}")]
    Misuse(String),
    /// Nobody knows whether something that it sent was carried out, and nobody is to decide.
    #[error("{0}")]
    InDoubt(String),
    /// The machine has no memory for it; the text is for our log.
    #[error("no memory: {0}")]
    NoMemory(String),
    /// Our own mistake; the text is for our log.
    #[error("{0}")]
    Bug(String),
}

/// What a caller is told of a fault that is ours: the rest is in the log.
pub(crate) const HOST_FAULT: &str = "the host failed while it served this call; its log has more";

/// A message is one line for a status; guests can make it long.
const MESSAGE_BYTES: usize = 300;

/// How a run ended that the engine gave up. `stderr` is what the guest printed until then: where it has
/// a sentence, a trap has only a name.
pub(crate) fn ending(error: &Error, stderr: &RingText) -> Ending {
    if let Some(Halt::Stopped(reason)) = error.downcast_ref() {
        return Ending::Stopped(*reason);
    }
    if let Some(World::RecordsEnd { call }) = error.downcast_ref() {
        return Ending::RecordsEnd { call: *call };
    }
    let (kind, message) = classify(error);
    let message = match (kind, last_line(&stderr.text)) {
        (FaultKind::Trap, Some(line)) => format!("{message}; last on stderr: {line}"),
        (FaultKind::Host, _) => {
            tracing::error!(error = format!("{error:?}"), "host fault in a run");
            HOST_FAULT.to_owned()
        }
        _ => message,
    };
    Ending::Fault(Fault {
        kind,
        message: one_line(&message),
    })
}

/// How a run ended that had more to repeat: a guest that fails where it went on before has taken another
/// way, whatever it fails of.
pub(crate) fn repeated(ending: Ending) -> Ending {
    match ending {
        Ending::Fault(fault) => Ending::Fault(match fault.kind {
            FaultKind::Trap
            | FaultKind::StackOverflow
            | FaultKind::MemoryLimit
            | FaultKind::HandleLimit
            | FaultKind::HostcallLimit
            | FaultKind::OutputLimit
            | FaultKind::InputLimit
            | FaultKind::BadOutput
            | FaultKind::Exit => Fault {
                kind: FaultKind::Nondeterminism,
                message: one_line(&format!(
                    "it fails where it went on before: {}",
                    fault.message
                )),
            },
            FaultKind::CpuLimit
            | FaultKind::Nondeterminism
            | FaultKind::JournalLimit
            | FaultKind::ReplayLimit
            | FaultKind::InDoubt
            | FaultKind::Host => fault,
        }),
        other => other,
    }
}

/// The status with which the guest ended its process, if it did.
pub(crate) fn exit_status(error: &Error) -> Option<i32> {
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(Halt::Exit(status)), _) | (_, Some(I32Exit(status))) => Some(*status),
        _ => None,
    }
}

fn classify(error: &Error) -> (FaultKind, String) {
    if let Some(halt) = error.downcast_ref::<Halt>() {
        let kind = match halt {
            Halt::Cpu { .. } => FaultKind::CpuLimit,
            Halt::ReplayCpu { .. } => FaultKind::ReplayLimit,
            Halt::Input(_) => FaultKind::InputLimit,
            Halt::Hostcall(_) => FaultKind::HostcallLimit,
            Halt::Exit(_) => FaultKind::Exit,
            Halt::Misuse(_) => FaultKind::Trap,
            Halt::InDoubt(_) => FaultKind::InDoubt,
            // A stop has an ending of its own, before this.
            Halt::Stopped(_) | Halt::Restart(_) | Halt::NoMemory(_) | Halt::Bug(_) => {
                FaultKind::Host
            }
        };
        return (kind, halt.to_string());
    }
    if let Some(fault) = error.downcast_ref::<World>() {
        let kind = match fault {
            World::Misuse(_) => FaultKind::Trap,
            World::Diverged(_) => FaultKind::Nondeterminism,
            World::Full { .. } => FaultKind::JournalLimit,
            // An ending of its own, before this.
            World::RecordsEnd { .. } => FaultKind::Host,
        };
        return (kind, fault.to_string());
    }
    if let Some(I32Exit(status)) = error.downcast_ref() {
        return (
            FaultKind::Exit,
            format!("the guest exited with status {status} instead of returning"),
        );
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return of_trap(*trap);
    }
    if error.downcast_ref::<Utf8Error>().is_some() {
        return (FaultKind::BadOutput, error.root_cause().to_string());
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref() {
        return (FaultKind::HandleLimit, "more handles than allowed".into());
    }
    if error.downcast_ref::<std::io::Error>().is_some() {
        return (FaultKind::Host, String::new());
    }
    of_text(error)
}

fn of_trap(trap: Trap) -> (FaultKind, String) {
    let kind = match trap {
        Trap::StackOverflow => FaultKind::StackOverflow,
        Trap::AllocationTooLarge => FaultKind::MemoryLimit,
        Trap::StringOutOfBounds
        | Trap::ListOutOfBounds
        | Trap::InvalidDiscriminant
        | Trap::InvalidChar
        | Trap::UnalignedPointer => FaultKind::BadOutput,
        // Trap is open: what is new there is an instruction that could not be executed.
        _ => FaultKind::Trap,
    };
    let text = trap.to_string();
    (
        kind,
        text.strip_prefix("wasm trap: ").unwrap_or(&text).to_owned(),
    )
}

/// Errors of the engine that have no type. A test holds each of these sentences to the engine's.
fn of_text(error: &Error) -> (FaultKind, String) {
    let text = error.root_cause().to_string();
    let says = |part: &str| text.contains(part);
    let within_guest = error.downcast_ref::<WasmBacktrace>().is_some();
    if says("exceeds memory limits")
        || says("exceeds table limits")
        || says("resource limit exceeded")
    {
        return (FaultKind::MemoryLimit, text);
    }
    if says("store handle limit exceeded") {
        return (FaultKind::HandleLimit, "more handles than allowed".into());
    }
    if says("fuel allocated for hostcalls") {
        // What is too large was passed to an import, or it is the result.
        return if within_guest {
            (
                FaultKind::HostcallLimit,
                "an import call carries more data than allowed".into(),
            )
        } else {
            (
                FaultKind::OutputLimit,
                "the result carries more data than any may".into(),
            )
        };
    }
    if says("requested len") && says("exceeds limit") {
        return (FaultKind::HostcallLimit, format!("random bytes: {text}"));
    }
    let unreadable = ["out of bounds", "not aligned", "surrogate", "utf-8"]
        .into_iter()
        .any(says);
    // Once the guest is left, nothing but the reading of its result can go wrong.
    if unreadable || !within_guest {
        return (FaultKind::BadOutput, text);
    }
    (FaultKind::Trap, text)
}

/// The last line that says something: not the advice that Rust prints after a panic.
fn last_line(stderr: &str) -> Option<&str> {
    stderr
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("note: run with"))
}

/// One line without control characters, cut to its limit.
fn one_line(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    crate::rules::shorten(plain.trim(), MESSAGE_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_last_that_says_something() {
        let rust = "\nthread '<unnamed>' panicked at src/lib.rs:3:5:\nboom\nnote: run with `RUST_BACKTRACE=1`\n\n";
        assert_eq!(last_line(rust), Some("boom"));
        assert_eq!(last_line("\n \n"), None);
    }

    #[test]
    fn a_message_is_one_plain_short_line() {
        let stderr = RingText {
            text: format!("\u{1b}[31m{}", "x".repeat(1000)),
            dropped: 0,
        };
        let Ending::Fault(fault) = ending(&Trap::UnreachableCodeReached.into(), &stderr) else {
            panic!()
        };
        assert_eq!(fault.kind, FaultKind::Trap);
        assert!(
            fault.message.len() <= MESSAGE_BYTES && !fault.message.contains('\u{1b}'),
            "{}",
            fault.message
        );
        assert!(
            fault
                .message
                .starts_with("wasm `unreachable` instruction executed; last on stderr:  [31mx")
        );
    }

    #[test]
    fn our_own_faults_tell_the_caller_nothing() {
        let error = Error::from(Halt::NoMemory("mmap of /proc/self/secret".into()));
        let expected = Fault {
            kind: FaultKind::Host,
            message: HOST_FAULT.into(),
        };
        assert_eq!(
            ending(&error, &RingText::default()),
            Ending::Fault(expected)
        );
    }
}
