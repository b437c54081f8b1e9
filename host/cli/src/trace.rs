//! The log: to stderr, as much as LONGSHORE_LOG asks for.

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use anyhow::{Context as _, anyhow};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::env;

/// What an operator acts on, and nothing of the engine's and the transport's inner life.
pub(crate) const OPERATOR: &str =
    "warn,longshore=info,longshore_server=info,longshore_sandbox=info,longshore_store=info";

/// What somebody at the prompt should know beside the answer.
pub(crate) const PROMPT: &str = "warn";

/// Starts logging, as much as that unless somebody asks for more or less. Once for each process.
pub(crate) fn start(default: &str) -> anyhow::Result<()> {
    let asked = env::text(env::LOG).map_err(|fault| anyhow!(fault))?;
    let filter = filter(asked.as_deref().unwrap_or(default))?;
    let sink = Sink::start().context("starting the thread that writes the log")?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .fmt_fields(fields())
        .with_writer(move || sink.clone())
        .with_ansi(io::stderr().is_terminal())
        // They would go to stderr, whose troubles they are about.
        .log_internal_errors(false)
        .try_init()
        .map_err(|error| anyhow!(error))
}

/// What is logged, each value on the same line and without the control characters that it may hold: a file's name, a
/// header, a guest's words could move a terminal's cursor or look like lines of their own.
fn fields() -> impl for<'w> FormatFields<'w> + 'static {
    debug_fn(|writer, field, value: &dyn fmt::Debug| {
        let mut harmless = Harmless(writer);
        if field.name() == "message" {
            write!(harmless, "{value:?}")
        } else {
            write!(harmless, "{field}={value:?}")
        }
    })
    .delimited(" ")
}

/// Text in which control characters are written as escapes.
struct Harmless<'a, 'w>(&'a mut Writer<'w>);

impl fmt::Write for Harmless<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive(char::is_control) {
            let end = part.char_indices().next_back();
            match end.filter(|(_, last)| last.is_control()) {
                Some((at, control)) => {
                    self.0.write_str(&part[..at])?;
                    write!(self.0, "{}", control.escape_default())?;
                }
                None => self.0.write_str(part)?,
            }
        }
        Ok(())
    }
}

/// Lines that wait to be written.
const WAITING: usize = 1024;

/// Stderr through a thread of its own. A reader that stands still, a disk that is full, a pipe that is
/// broken: each costs lines, and nobody who logs waits for it or fails over it.
#[derive(Clone)]
struct Sink {
    lines: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

impl Sink {
    fn start() -> io::Result<Self> {
        let (lines, written) = sync_channel::<Vec<u8>>(WAITING);
        let dropped = Arc::<AtomicU64>::default();
        let missing = Arc::clone(&dropped);
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                for line in written {
                    let mut stderr = io::stderr().lock();
                    match missing.swap(0, Ordering::Relaxed) {
                        0 => {}
                        lost => {
                            let _nothing_better =
                                writeln!(stderr, "longshore: {lost} lines of the log were lost");
                        }
                    }
                    if stderr.write_all(&line).is_err() {
                        missing.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })?;
        Ok(Self { lines, dropped })
    }
}

impl Write for Sink {
    /// One line: the formatter writes each at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.lines.try_send(line.to_vec()).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn filter(asked: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::builder().parse(asked).with_context(|| {
        format!("{} cannot be understood: write a level, as in `info`, or levels by part, as in `warn,longshore_server=debug`", env::LOG)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that is written, as one text.
    #[derive(Clone, Default)]
    struct Kept(Arc<std::sync::Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_logged_is_one_line_without_control_characters() {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = tracing_subscriber::fmt()
            .fmt_fields(fields())
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let name = std::path::Path::new("a\u{1b}[2Jb\n\u{9b}é.wasm");
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(file = %name.display(), text = "x\ty", number = 7, "begun\r{}", "\u{7}");
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let line = text.strip_suffix('\n').unwrap();
        assert!(!line.contains(char::is_control), "{line:?}");
        assert!(
            line.ends_with(
                "begun\\r\\u{7} file=a\\u{1b}[2Jb\\n\\u{9b}é.wasm text=\"x\\ty\" number=7"
            ),
            "{line}"
        );
    }

    #[test]
    fn filters() {
        for asked in [
            OPERATOR,
            PROMPT,
            "info",
            "warn,longshore_server=debug",
            "off",
        ] {
            assert!(filter(asked).is_ok(), "{asked}");
        }
        let error = filter("longshore=loud").unwrap_err().to_string();
        assert!(error.contains("LONGSHORE_LOG"), "{error}");
    }
}
