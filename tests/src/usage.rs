//! What a process uses, as the system tells it.

use std::time::Duration;

use anyhow::{Context as _, Result};

/// What a process uses at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Memory that it holds, in KiB.
    pub rss_kib: u64,
    /// Its threads.
    pub threads: u64,
    /// Its open files.
    pub fds: u64,
}

impl Usage {
    /// Of that process, now.
    pub fn of(pid: u32) -> Result<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = |name: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|rest| rest.split_whitespace().next());
            Ok(number.with_context(|| name.to_owned())?.parse()?)
        };
        Ok(Self {
            rss_kib: line("VmRSS:")?,
            threads: line("Threads:")?,
            fds: std::fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64,
        })
    }
}

/// CPU time of all threads that a process has now, to the nanosecond. Threads that have ended are not
/// in it, so it is to be compared only over a time in which none ends.
pub fn cpu_of(pid: u32) -> Result<Duration> {
    let mut nanos = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // It may have ended since it was listed.
        if let Ok(line) = std::fs::read_to_string(thread?.path().join("schedstat")) {
            let used = line.split_whitespace().next().context("schedstat")?;
            nanos += used.parse::<u64>()?;
        }
    }
    Ok(Duration::from_nanos(nanos))
}

/// CPU time of a process, with its threads that have ended, by a clock that ticks a hundred times a second.
pub fn cpu_time_of(pid: u32) -> Result<Duration> {
    /// The clock of `/proc` ticks so often on every Linux.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name, in brackets, may hold anything; user and system time are the 12th and 13th after it.
    let (_, fields) = stat.rsplit_once(')').context("the name is in brackets")?;
    let mut ticks = 0;
    for field in fields.split_whitespace().skip(11).take(2) {
        ticks += field.parse::<u64>()?;
    }
    Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
}

/// CPU time of this thread.
#[must_use]
pub fn cpu_of_this_thread() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).expect("less than a second"),
    )
}
