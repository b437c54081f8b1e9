//! What a caller is told while it waits: how far its call is and what it logs, if its request asked for that.
//!
//! The guest leaves it here and whoever holds the call takes it away, so a caller that reads slowly slows nobody
//! down: of progress only the newest waits, of the log its newest lines.

use std::collections::VecDeque;
use std::time::Duration;

use longshore_journal::call::LogLevel as GuestLevel;
use longshore_protocol::meta::{LogLevel, ProgressToken};
use longshore_protocol::notification::{self, Progress};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::settings::Settings;

/// What a request asked to be told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// How far it is, under this token.
    pub(crate) progress: Option<ProgressToken>,
    /// What it logs, from this level up.
    pub(crate) log_level: Option<LogLevel>,
}

impl Wishes {
    pub(crate) fn are_none(&self) -> bool {
        self.progress.is_none() && self.log_level.is_none()
    }
}

/// What one call has to tell.
pub(crate) struct Asides {
    wishes: Wishes,
    every: Duration,
    /// Longest silence, if progress is wanted.
    beat: Duration,
    most_log_bytes: usize,
    waiting: Mutex<Waiting>,
    knock: Notify,
}

struct Waiting {
    progress: Option<Report>,
    /// The last `done` that counted.
    done: f64,
    /// When something was last told.
    told_at: Instant,
    /// What was last told of progress.
    last: Option<(Option<f64>, Option<String>)>,
    /// When progress may next be told.
    progress_from: Instant,
    log: VecDeque<String>,
    log_bytes: usize,
    /// Nobody waits any more.
    over: bool,
}

struct Report {
    done: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Asides {
    pub(crate) fn new(wishes: Wishes, settings: &Settings, most_log_bytes: u64) -> Self {
        Self {
            wishes,
            every: Duration::from_millis(settings.progress_every_ms),
            beat: Duration::from_millis(settings.beat_ms),
            most_log_bytes: usize::try_from(most_log_bytes).unwrap_or(usize::MAX),
            waiting: Mutex::new(Waiting {
                progress: None,
                done: f64::NEG_INFINITY,
                progress_from: Instant::now(),
                told_at: Instant::now(),
                last: None,
                log: VecDeque::new(),
                log_bytes: 0,
                over: false,
            }),
            knock: Notify::new(),
        }
    }

    /// How far the call is. What is not more than before is not told (MCP 2026-07-28, Progress).
    pub(crate) fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        if self.wishes.progress.is_none() || !done.is_finite() {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.over || done <= waiting.done {
            return;
        }
        waiting.done = done;
        waiting.progress = Some(Report {
            done,
            total,
            message: message.map(str::to_owned),
        });
        drop(waiting);
        self.knock.notify_one();
    }

    /// A line of the log.
    pub(crate) fn log(&self, level: GuestLevel, logger: Option<&str>, message: &str) {
        let level = wire_level(level);
        if self.wishes.log_level.is_none_or(|least| level < least) {
            return;
        }
        let line = notification::log_message(level, logger, message);
        let mut waiting = self.waiting.lock();
        if waiting.over {
            return;
        }
        waiting.log_bytes += line.len();
        waiting.log.push_back(line);
        while waiting.log_bytes > self.most_log_bytes {
            let Some(oldest) = waiting.log.pop_front() else {
                break;
            };
            waiting.log_bytes -= oldest.len();
        }
        drop(waiting);
        self.knock.notify_one();
    }

    /// Whether its caller hears of progress.
    pub(crate) fn tells_progress(&self) -> bool {
        self.wishes.progress.is_some()
    }

    /// From here on nothing more is told, except what waits.
    pub(crate) fn close(&self) {
        self.waiting.lock().over = true;
    }

    /// The next notification, once there is one and it is time for it.
    pub(crate) async fn next(&self) -> String {
        loop {
            let due = {
                let mut waiting = self.waiting.lock();
                let now = Instant::now();
                if let Some(line) = waiting.take_line() {
                    waiting.told_at = now;
                    return line;
                }
                if waiting.progress_from <= now
                    && let Some(report) = waiting.progress.take()
                {
                    waiting.progress_from = now + self.every;
                    return self.tell(&mut waiting, report, now);
                }
                let beat_at = waiting.told_at + self.beat;
                if self.wishes.progress.is_some() && beat_at <= now && !waiting.over {
                    let report = waiting.beat();
                    return self.tell(&mut waiting, report, now);
                }
                let beat_at = self.wishes.progress.as_ref().map(|_| beat_at);
                let report_at = waiting.progress.is_some().then_some(waiting.progress_from);
                [beat_at, report_at].into_iter().flatten().min()
            };
            match due {
                None => self.knock.notified().await,
                Some(at) => tokio::select! {
                    () = self.knock.notified() => {}
                    () = tokio::time::sleep_until(at) => {}
                },
            }
        }
    }

    /// What waits, whether or not it is time for it: the response comes right behind.
    pub(crate) fn last(&self) -> Option<String> {
        let mut waiting = self.waiting.lock();
        if let Some(line) = waiting.take_line() {
            return Some(line);
        }
        waiting.progress.take().map(|report| self.write(&report))
    }

    fn tell(&self, waiting: &mut Waiting, report: Report, now: Instant) -> String {
        waiting.told_at = now;
        let text = self.write(&report);
        waiting.last = Some((report.total, report.message));
        text
    }

    fn write(&self, report: &Report) -> String {
        let token = self
            .wishes
            .progress
            .as_ref()
            .expect("progress is kept only if there is a token");
        Progress {
            token,
            done: report.done,
            total: report.total,
            message: report.message.as_deref(),
        }
        .to_json()
    }
}

impl Waiting {
    /// Says nothing but that the call still runs. Progress must grow from one notification to the next (MCP 2026-07-28,
    /// Progress), so it grows by less than anybody counts in.
    fn beat(&mut self) -> Report {
        const LEAST: f64 = 1e-6;
        self.done = if self.done.is_finite() {
            self.done + LEAST.max(self.done.abs() * LEAST)
        } else {
            0.0
        };
        let (total, message) = self.last.clone().unwrap_or_default();
        Report {
            done: self.done,
            total,
            message: message.or_else(|| Some("still running".to_owned())),
        }
    }

    fn take_line(&mut self) -> Option<String> {
        let line = self.log.pop_front()?;
        self.log_bytes -= line.len();
        Some(line)
    }
}

fn wire_level(level: GuestLevel) -> LogLevel {
    match level {
        GuestLevel::Debug => LogLevel::Debug,
        GuestLevel::Info => LogLevel::Info,
        GuestLevel::Notice => LogLevel::Notice,
        GuestLevel::Warning => LogLevel::Warning,
        GuestLevel::Error => LogLevel::Error,
        GuestLevel::Critical => LogLevel::Critical,
        GuestLevel::Alert => LogLevel::Alert,
        GuestLevel::Emergency => LogLevel::Emergency,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn asides(every: Duration, most_log_bytes: u64) -> Asides {
        asides_that_beat(every, HOUR, most_log_bytes)
    }

    fn asides_that_beat(every: Duration, beat: Duration, most_log_bytes: u64) -> Asides {
        let wishes = Wishes {
            progress: ProgressToken::parse("\"p\""),
            log_level: Some(LogLevel::Notice),
        };
        let settings = Settings {
            progress_every_ms: every.as_millis() as u64,
            beat_ms: beat.as_millis() as u64,
            ..Settings::default()
        };
        Asides::new(wishes, &settings, most_log_bytes)
    }

    fn rest(asides: &Asides) -> Vec<serde_json::Value> {
        std::iter::from_fn(|| asides.last())
            .map(|text| serde_json::from_str(&text).unwrap())
            .collect()
    }

    #[tokio::test]
    async fn of_progress_only_what_is_more_is_told_and_only_the_newest_waits() {
        let asides = asides(HOUR, 0);
        for done in [f64::NAN, 1.0, 0.5, 1.0, f64::INFINITY] {
            asides.progress(done, None, None);
        }
        let first: serde_json::Value = serde_json::from_str(&asides.next().await).unwrap();
        assert_eq!(first["params"]["progress"], 1);
        // It is not time for another yet, but the end does not wait.
        asides.progress(2.0, None, None);
        asides.progress(3.0, Some(4.0), Some("almost"));
        assert!(
            tokio::time::timeout(Duration::from_millis(20), asides.next())
                .await
                .is_err()
        );
        let rest = rest(&asides);
        assert_eq!(rest.len(), 1);
        assert_eq!(
            rest[0]["params"],
            serde_json::json!({ "progressToken": "p", "progress": 3, "total": 4, "message": "almost" })
        );
    }

    #[tokio::test]
    async fn silence_is_broken_by_a_beat_that_says_nothing_new() {
        let asides = asides_that_beat(Duration::ZERO, Duration::from_millis(1), 0);
        let mut told = Vec::new();
        for n in 0..8 {
            if n == 3 {
                asides.progress(7.0, Some(9.0), Some("seven"));
            }
            told.push(serde_json::from_str::<serde_json::Value>(&asides.next().await).unwrap());
        }
        let done = |n: usize| told[n]["params"]["progress"].as_f64().unwrap();
        assert!((1..8).all(|n| done(n - 1) < done(n)), "{told:?}");
        assert!(done(2) < 0.1 && (7.0..7.1).contains(&done(7)), "{told:?}");
        assert_eq!(told[0]["params"]["message"], "still running");
        assert_eq!(told[7]["params"]["message"], "seven");
        assert_eq!(told[7]["params"]["total"], 9);
        // What the guest says next is told if it is more than before.
        asides.progress(8.0, None, None);
        let next: serde_json::Value = serde_json::from_str(&asides.next().await).unwrap();
        assert_eq!(next["params"]["progress"], 8);
    }

    #[tokio::test]
    async fn of_the_log_what_matters_enough_is_told_and_the_newest_waits() {
        let one = notification::log_message(LogLevel::Notice, None, "0").len() as u64;
        let asides = asides(HOUR, 2 * one);
        asides.log(GuestLevel::Info, None, "unheard");
        for n in 0..5 {
            asides.log(GuestLevel::Notice, None, &n.to_string());
        }
        let told: Vec<_> = rest(&asides)
            .iter()
            .map(|line| line["params"]["data"].clone())
            .collect();
        assert_eq!(told, ["3", "4"]);
    }

    #[tokio::test]
    async fn nothing_is_told_after_the_end() {
        let asides = asides(Duration::ZERO, 1024);
        asides.progress(1.0, None, None);
        asides.close();
        asides.progress(2.0, None, None);
        asides.log(GuestLevel::Error, None, "late");
        let rest = rest(&asides);
        assert_eq!(rest.len(), 1, "{rest:?}");
        assert_eq!(rest[0]["params"]["progress"], 1);
    }
}
