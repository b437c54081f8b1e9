//! How the command ends, and the one place that says with which code.

use std::fmt;

/// The codes that the command exits with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for is done.
    Ok = 0,
    /// It was tried and did not succeed: refused, not found, or broken on the way.
    Failed = 1,
    /// The command, a variable or a setting cannot be understood; nothing was tried. Argument parsing
    /// exits with the same code.
    Usage = 2,
    /// No server answers there, or it does not let us in.
    Unreachable = 3,
    /// The server cannot start: its data directory, database, components or address.
    CannotStart = 4,
    /// The call or the watched task was cancelled; what shells say of a program that Ctrl-C ended.
    Cancelled = 130,
}

/// What `--help` says of them.
pub(crate) const HELP: &str = "Exit codes:
  0  done
  1  refused, not found, or broken on the way; also a tool that failed
  2  the command line, a variable or a setting cannot be understood
  3  no server answers, or it does not accept the admin token
  4  the server cannot start: data directory, database, a named component, or address
  130  the call or the watched task was cancelled";

/// Why a command did not succeed: what people read, and what programs go by.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The code.
    pub(crate) exit: Exit,
    /// A word that stays the same when the message is reworded; the server's own where it gave one.
    pub(crate) reason: String,
    /// What went wrong and what to do about it.
    pub(crate) error: anyhow::Error,
}

impl Failure {
    /// A failure in our own words.
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self::because(exit, anyhow::Error::msg(message.to_string()))
    }

    /// A failure with its causes.
    pub(crate) fn because(exit: Exit, error: anyhow::Error) -> Self {
        let reason = match exit {
            Exit::Ok | Exit::Failed => "failed",
            Exit::Usage => "usage",
            Exit::Unreachable => "unreachable",
            Exit::CannotStart => "cannot-start",
            Exit::Cancelled => "cancelled",
        };
        Self {
            exit,
            reason: reason.to_owned(),
            error,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // With its causes, on one line; some errors have written theirs into their own text already.
        let mut text = self.error.to_string();
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        f.write_str(&text)
    }
}

/// Gives the errors of other rooms their code at the door.
pub(crate) trait OrExit<T> {
    /// The value, or a failure with that code.
    fn or_exit(self, exit: Exit) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> OrExit<T> for Result<T, E> {
    fn or_exit(self, exit: Exit) -> Result<T, Failure> {
        self.map_err(|error| Failure::because(exit, error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_code() {
        for exit in [
            Exit::Ok,
            Exit::Failed,
            Exit::Usage,
            Exit::Unreachable,
            Exit::CannotStart,
            Exit::Cancelled,
        ] {
            assert!(HELP.contains(&format!("\n  {}  ", exit as u8)), "{exit:?}");
        }
        assert_eq!(HELP.lines().count(), 7);
    }

    #[test]
    fn every_word_is_on_the_page() {
        for exit in [
            Exit::Failed,
            Exit::Usage,
            Exit::Unreachable,
            Exit::CannotStart,
            Exit::Cancelled,
        ] {
            let failure = Failure::new(exit, "m");
            let row = format!("| `{}` | {} | ", failure.reason, exit as u8);
            assert!(crate::alone::REASONS.contains(&row), "{row}");
        }
    }

    #[test]
    fn causes_come_on_one_line() {
        let error = anyhow::anyhow!("no such file").context("reading x.wasm");
        assert_eq!(
            Failure::because(Exit::Failed, error).to_string(),
            "reading x.wasm: no such file"
        );
        let told = anyhow::anyhow!("in use").context("cannot listen: in use; use another");
        assert_eq!(
            Failure::because(Exit::Failed, told).to_string(),
            "cannot listen: in use; use another"
        );
    }
}
