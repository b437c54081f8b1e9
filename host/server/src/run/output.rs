//! What a run printed and logged: read while it goes on, kept when it ends or is put aside.

use longshore_journal::call::LogLevel;
use longshore_policy::limits::Limits;
use longshore_sandbox::ending::RingText;
use serde::{Deserialize, Serialize};

use super::outside::LogLine;

/// What a run printed and logged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    pub(crate) stdout: RingText,
    pub(crate) stderr: RingText,
    pub(crate) log: Vec<LogLine>,
    pub(crate) log_dropped: u64,
}

/// The same as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    stdout: KeptText,
    stderr: KeptText,
    log: Vec<KeptLine>,
    log_dropped: u64,
}

#[derive(Serialize, Deserialize)]
struct KeptText {
    text: String,
    dropped: u64,
}

#[derive(Serialize, Deserialize)]
struct KeptLine {
    level: LogLevel,
    logger: Option<String>,
    message: String,
}

impl Output {
    pub(crate) fn bytes(&self) -> usize {
        let log: usize = self.log.iter().map(LogLine::bytes).sum();
        self.stdout.text.len() + self.stderr.text.len() + log
    }

    /// Whether the run has said nothing at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0 && self.stdout.dropped + self.stderr.dropped + self.log_dropped == 0
    }

    /// What is kept of both, the newest of it.
    pub(crate) fn followed_by(&self, later: Self, limits: &Limits) -> Self {
        let mut log = self.log.clone();
        log.extend(later.log);
        let mut log_dropped = self.log_dropped + later.log_dropped;
        let mut bytes: usize = log.iter().map(LogLine::bytes).sum();
        let most = usize::try_from(limits.log_ring_bytes).unwrap_or(usize::MAX);
        let mut first = 0;
        while bytes > most && first < log.len() {
            bytes -= log[first].bytes();
            first += 1;
            log_dropped += 1;
        }
        log.drain(..first);
        Self {
            stdout: joined(&self.stdout, &later.stdout, limits.output_ring_bytes),
            stderr: joined(&self.stderr, &later.stderr, limits.output_ring_bytes),
            log,
            log_dropped,
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let text = |ring: &RingText| KeptText {
            text: ring.text.clone(),
            dropped: ring.dropped,
        };
        let kept = Kept {
            stdout: text(&self.stdout),
            stderr: text(&self.stderr),
            log: self
                .log
                .iter()
                .map(|line| KeptLine {
                    level: line.level,
                    logger: line.logger.clone(),
                    message: line.message.clone(),
                })
                .collect(),
            log_dropped: self.log_dropped,
        };
        serde_json::to_vec(&kept).expect("text and numbers have a form in JSON")
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let kept: Kept = serde_json::from_slice(bytes).ok()?;
        let text = |kept: KeptText| RingText {
            text: kept.text,
            dropped: kept.dropped,
        };
        Some(Self {
            stdout: text(kept.stdout),
            stderr: text(kept.stderr),
            log: kept
                .log
                .into_iter()
                .map(|line| LogLine {
                    level: line.level,
                    logger: line.logger,
                    message: line.message,
                })
                .collect(),
            log_dropped: kept.log_dropped,
        })
    }
}

fn joined(earlier: &RingText, later: &RingText, most: u64) -> RingText {
    if later.dropped > 0 {
        // What was dropped came after all that was there before.
        return RingText {
            text: later.text.clone(),
            dropped: earlier.dropped + earlier.text.len() as u64 + later.dropped,
        };
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let text = format!("{}{}", earlier.text, later.text);
    let over = text.len().saturating_sub(most);
    let cut = text.ceil_char_boundary(over);
    RingText {
        text: text[cut..].to_owned(),
        dropped: earlier.dropped + cut as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(stdout: &str, dropped: u64, lines: &[&str]) -> Output {
        Output {
            stdout: RingText {
                text: stdout.into(),
                dropped,
            },
            log: lines
                .iter()
                .map(|line| LogLine {
                    level: LogLevel::Info,
                    logger: None,
                    message: (*line).to_owned(),
                })
                .collect(),
            ..Output::default()
        }
    }

    fn seen(output: &Output) -> (String, u64, Vec<&str>, u64) {
        (
            output.stdout.text.clone(),
            output.stdout.dropped,
            output
                .log
                .iter()
                .map(|line| line.message.as_str())
                .collect(),
            output.log_dropped,
        )
    }

    #[test]
    fn the_newest_of_both_is_kept() {
        let one_line = output("", 0, &["a"]).log[0].bytes() as u64;
        let limits = Limits {
            output_ring_bytes: 4,
            log_ring_bytes: 2 * one_line,
            ..Limits::default()
        };
        let earlier = output("abc", 1, &["a", "b"]);
        let joined = earlier.followed_by(output("de", 0, &["c"]), &limits);
        assert_eq!(seen(&joined), ("bcde".into(), 2, vec!["b", "c"], 1));
        let joined = earlier.followed_by(output("wxyz", 5, &[]), &limits);
        assert_eq!(seen(&joined), ("wxyz".into(), 9, vec!["a", "b"], 0));
        let joined = output("ä", 0, &[]).followed_by(output("xyz", 0, &[]), &limits);
        assert_eq!(seen(&joined).0, "xyz", "no half character is left");
    }

    #[test]
    fn what_is_kept_is_read() {
        let output = output("abc", 3, &["a"]);
        let read = Output::of_bytes(&output.to_bytes()).unwrap();
        assert_eq!(seen(&read), seen(&output));
        assert!(Output::of_bytes(b"{}").is_none());
        assert!(Output::default().is_empty() && !output.is_empty());
    }
}
