//! The person at the prompt: lines that they type, and the line that shows them what goes on.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc;

use tokio::sync::mpsc as answers;

use crate::output::{line, note};

/// Lines from stdin, read only when one is wanted: what is typed for the shell after us stays there.
pub(crate) struct Prompt {
    wanted: mpsc::Sender<()>,
    typed: answers::UnboundedReceiver<Option<String>>,
    /// A line was wanted, and nobody was left to take it.
    is_waiting: bool,
}

impl Prompt {
    /// Ready to read stdin, which is blocking: a thread of its own waits for it, as long as the process.
    pub(crate) fn start() -> io::Result<Self> {
        let (wanted, wants) = mpsc::channel::<()>();
        let (say, typed) = answers::unbounded_channel();
        std::thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(move || {
                while wants.recv().is_ok() {
                    let mut text = String::new();
                    let read = io::stdin().read_line(&mut text);
                    let answer = read.is_ok_and(|bytes| bytes > 0).then_some(text);
                    if say.send(answer).is_err() {
                        break;
                    }
                }
            })?;
        Ok(Self {
            wanted,
            typed,
            is_waiting: false,
        })
    }

    /// The next line without its end, after asking for it; none at the end of the input (Ctrl-D).
    pub(crate) async fn line(&mut self, asking: &str) -> Option<String> {
        say(asking);
        if !self.is_waiting {
            self.is_waiting = true;
            self.wanted.send(()).ok()?;
        }
        let text = self.typed.recv().await.flatten();
        self.is_waiting = false;
        if text.is_none() || !io::stdin().is_terminal() {
            // Nothing else has ended the line of the question.
            say("\n");
        }
        text.map(|text| text.trim_end_matches(['\n', '\r']).to_owned())
    }
}

/// Says something of ours as it is, beside what was asked for.
pub(crate) fn say(text: &str) {
    let mut stderr = io::stderr().lock();
    // Whoever closed stderr does not want to know.
    let _unread = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

/// The one line on a terminal that is written over and over. Elsewhere it does not exist.
pub(crate) struct StatusLine {
    is_terminal: bool,
    shown: String,
}

impl StatusLine {
    pub(crate) fn new() -> Self {
        Self {
            is_terminal: io::stderr().is_terminal(),
            shown: String::new(),
        }
    }

    /// Whether anybody sees it.
    pub(crate) fn is_seen(&self) -> bool {
        self.is_terminal
    }

    /// Shows that in its place.
    pub(crate) fn show(&mut self, text: &str) {
        if self.is_terminal && self.shown != text {
            text.clone_into(&mut self.shown);
            // Without wrapping, a long line is cut at the edge, where it can be written over.
            say(&format!("\r\x1b[K\x1b[?7l{}\x1b[?7h", line(text)));
        }
    }

    /// Takes it away, so that something can be said in its place.
    pub(crate) fn clear(&mut self) {
        if !self.shown.is_empty() {
            self.shown.clear();
            say("\r\x1b[K");
        }
    }

    /// Says something above it.
    pub(crate) fn note(&mut self, text: &str) {
        self.clear();
        note(text);
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What goes on, on one line: status, share, and the tool's own words.
pub(crate) fn status(
    status: &str,
    progress: Option<(f64, Option<f64>)>,
    message: Option<&str>,
) -> String {
    let mut text = status.replace('_', " ");
    match progress {
        Some((done, Some(total))) if total > 0.0 => {
            // Guests may count past their total.
            let percent = (done / total * 100.0).clamp(0.0, 100.0);
            text.push_str(&format!(" {percent:.0} %"));
        }
        Some((done, _)) => text.push_str(&format!(" {done}")),
        None => {}
    }
    if let Some(message) = message {
        text.push_str(": ");
        text.push_str(message);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_there_is() {
        let rows = [
            (None, None, "input required"),
            (Some((1.0, Some(3.0))), None, "input required 33 %"),
            (Some((9.0, Some(3.0))), Some("m"), "input required 100 %: m"),
            (Some((2.5, None)), Some("m"), "input required 2.5: m"),
            (Some((1.0, Some(0.0))), None, "input required 1"),
        ];
        for (progress, message, expected) in rows {
            assert_eq!(status("input_required", progress, message), expected);
        }
    }
}
