//! Every number that a server can be told: one table for options, variables, files, help and printing.

use std::num::NonZeroUsize;

use longshore_sandbox::compile::CompileLimits;
use longshore_sandbox::precheck::Bounds;
use longshore_server::settings::Settings;

/// What can be set.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    /// Of the server, and of each run.
    pub(crate) server: Settings,
    /// Of a compilation.
    pub(crate) compile: CompileLimits,
    /// Threads for guests.
    pub(crate) guest_threads: usize,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            server: Settings::default(),
            compile: CompileLimits::default(),
            guest_threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        }
    }
}

impl Numbers {
    /// What an upload may hold.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            bytes: self.server.upload_bytes,
            ..Bounds::default()
        }
    }
}

/// Where a number is kept.
enum Place<'a> {
    U64(&'a mut u64),
    Usize(&'a mut usize),
}
use Place::{U64, Usize};

impl Place<'_> {
    fn get(&self) -> u64 {
        match self {
            U64(place) => **place,
            Usize(place) => **place as u64,
        }
    }

    fn set(&mut self, value: u64) {
        match self {
            U64(place) => **place = value,
            Usize(place) => **place = usize::try_from(value).unwrap_or(usize::MAX),
        }
    }
}

/// One number.
pub(crate) struct Key {
    /// Its path, with its unit.
    pub(crate) name: &'static str,
    about: &'static str,
    /// How many of the kept unit are one of the unit in the name.
    unit: u64,
    least: u64,
    most: u64,
    place: fn(&mut Numbers) -> Place<'_>,
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
/// Ten years: longer than anything here is meant to last, and far from where clocks overflow.
const LONG_MS: u64 = 10 * 366 * 24 * 3_600_000;
/// Of anything that is counted in memory.
const MANY: u64 = 1_000_000;
/// A day, for what a connection or a compilation waits for.
const DAY_S: u64 = 24 * 3_600;
/// Guests may never have more, and their components are checked against it.
const GUEST_MEMORY_MIB: u64 = 256;
/// Of one text that is held in memory.
const TEXT_KIB: u64 = 64 * KIB;

const fn key(name: &'static str, about: &'static str, place: fn(&mut Numbers) -> Place<'_>) -> Key {
    Key {
        name,
        about,
        unit: 1,
        least: 0,
        most: MANY,
        place,
    }
}

impl Key {
    const fn ms(mut self) -> Self {
        self.most = LONG_MS;
        self
    }

    const fn s(mut self) -> Self {
        self.most = DAY_S;
        self
    }

    const fn kib(mut self) -> Self {
        self.unit = KIB;
        self.most = TEXT_KIB;
        self
    }

    const fn mib(mut self, most: u64) -> Self {
        self.unit = MIB;
        self.most = most;
        self
    }

    /// For what nothing could be done with at 0.
    const fn at_least(mut self, least: u64) -> Self {
        self.least = least;
        self
    }

    const fn up_to(mut self, most: u64) -> Self {
        self.most = most;
        self
    }

    /// The variable that sets it: its path in capitals.
    pub(crate) fn variable(&self) -> String {
        format!(
            "LONGSHORE_{}",
            self.name.to_ascii_uppercase().replace('.', "_")
        )
    }

    /// Its value in the unit of its name.
    pub(crate) fn get(&self, numbers: &mut Numbers) -> u64 {
        (self.place)(numbers).get() / self.unit
    }

    /// Sets it, or says what it must be.
    pub(crate) fn set(&self, numbers: &mut Numbers, text: &str) -> Result<(), String> {
        let value = text
            .parse::<u64>()
            .ok()
            .filter(|value| (self.least..=self.most).contains(value));
        let value = value.ok_or_else(|| {
            format!(
                "must be a whole number from {} to {}, and {text:?} is not",
                self.least, self.most
            )
        })?;
        (self.place)(numbers).set(value * self.unit);
        Ok(())
    }
}

/// Every number, in the order of `--print-config`. Keys with a dot come last, section by section.
#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    key("inline_budget_ms", "time before the call of an `auto` tool becomes a task", |n| U64(&mut n.server.inline_budget_ms)).ms(),
    key("poll_interval_ms", "how often clients are asked to poll", |n| U64(&mut n.server.poll_interval_ms)).ms(),
    key("early_poll_ms", "longest that an early poll of an unchanged task waits; 0 for not at all", |n| U64(&mut n.server.early_poll_ms)).ms(),
    key("grace_ms", "time of a cancelled run to clean up", |n| U64(&mut n.server.grace_ms)).ms(),
    key("status_every_ms", "shortest time between two visible changes of a task's status", |n| U64(&mut n.server.status_every_ms)).ms(),
    key("progress_every_ms", "shortest time between two progress notifications of a held call", |n| U64(&mut n.server.progress_every_ms)).ms(),
    key("deadline_ms", "longest life of a task", |n| U64(&mut n.server.deadline_ms)).ms(),
    key("retention_ms", "time for which an ended task can be read", |n| U64(&mut n.server.retention_ms)).ms(),
    key("running", "runs at the same time", |n| Usize(&mut n.server.running)),
    key("queued", "calls that wait for one of those places", |n| Usize(&mut n.server.queued)),
    key("queue_wait_ms", "time for which a call waits for a place", |n| U64(&mut n.server.queue_wait_ms)).ms(),
    key("request_kib", "one request to the MCP endpoint", |n| Usize(&mut n.server.request_bytes)).kib(),
    key("upload_mib", "one uploaded component", |n| Usize(&mut n.server.upload_bytes)).mib(1024),
    key("header_s", "time for the headers of a request", |n| U64(&mut n.server.header_s)).s().at_least(1),
    key("body_pause_s", "longest pause within a request's body", |n| U64(&mut n.server.body_pause_s)).s().at_least(1),
    key("write_s", "time in which a client takes in none of its answer", |n| U64(&mut n.server.write_s)).s().at_least(1),
    key("listeners", "clients that listen at the same time", |n| Usize(&mut n.server.listeners)),
    key("listen_tasks", "tasks that one of them listens to", |n| Usize(&mut n.server.listen_tasks)),
    key("connections", "connections at the same time", |n| Usize(&mut n.server.connections)).at_least(1),
    key("page", "tools on one page of a list", |n| Usize(&mut n.server.page)).at_least(1),
    key("guest_threads", "threads for guests; the default is one for each core", |n| Usize(&mut n.guest_threads)).at_least(1).up_to(1024),
    key("limits.memory_mib", "memory of a run", |n| U64(&mut n.server.limits.memory_bytes)).mib(GUEST_MEMORY_MIB),
    key("limits.table_elements", "table elements of a run", |n| U64(&mut n.server.limits.table_elements)),
    key("limits.instances", "core instances, memories and tables of a component, each", |n| U64(&mut n.server.limits.instances)),
    key("limits.handles", "handles of a run", |n| U64(&mut n.server.limits.handles)),
    key("limits.hostcall_kib", "what one host call carries out of the guest", |n| U64(&mut n.server.limits.hostcall_bytes)).kib(),
    key("limits.random_kib", "randomness for one host call", |n| U64(&mut n.server.limits.random_bytes)).kib(),
    key("limits.cpu_ms", "CPU time of a run", |n| U64(&mut n.server.limits.cpu_ms)).ms(),
    key("limits.active_wall_ms", "time of a run, less what it waits", |n| U64(&mut n.server.limits.active_wall_ms)).ms(),
    key("limits.result_kib", "one result", |n| U64(&mut n.server.limits.result_bytes)).kib(),
    key("limits.output_ring_kib", "what is kept of each of stdout and stderr", |n| U64(&mut n.server.limits.output_ring_bytes)).kib(),
    key("limits.log_ring_kib", "what is kept of a guest's log", |n| U64(&mut n.server.limits.log_ring_bytes)).kib(),
    key("limits.status_bytes", "one line of status", |n| U64(&mut n.server.limits.status_bytes)),
    key("limits.questions_open", "questions that a call may have open", |n| U64(&mut n.server.limits.questions_open)),
    key("limits.questions_in_life", "questions in the life of a call", |n| U64(&mut n.server.limits.questions_in_life)),
    key("limits.question_kib", "one question", |n| U64(&mut n.server.limits.question_bytes)).kib(),
    key("limits.step_kib", "what a step hands back", |n| U64(&mut n.server.limits.step_bytes)).kib(),
    key("compile.cpu_s", "CPU time of a compilation", |n| U64(&mut n.compile.cpu_s)).s(),
    key("compile.wall_s", "time of a compilation", |n| U64(&mut n.compile.wall_s)).s(),
    key("compile.memory_mib", "memory of a compilation", |n| U64(&mut n.compile.memory_bytes)).mib(MIB),
    key("compile.artifact_mib", "native code that comes out of a compilation", |n| U64(&mut n.compile.artifact_bytes)).mib(1024),
];

/// The table for `serve --help`.
pub(crate) fn help() -> String {
    let mut numbers = Numbers::default();
    let mut text = String::from(
        "Settings, for --set KEY=VALUE, a variable each (LONGSHORE_ and the key in capitals, `.` as `_`), or a settings
file, where what stands before a dot is a section; the first of these that has a value counts:\n",
    );
    for key in KEYS {
        let default = key.get(&mut numbers);
        text.push_str(&format!(
            "  {:<26} {:>10}  {}\n",
            key.name, default, key.about
        ));
    }
    text.push_str(&format!(
        "\nOther variables:\n  {:<26} token of the admin API, in place of the one kept in the data directory\n  {:<26} what is logged, as in `warn` or `info,longshore_server=debug`\n",
        crate::env::ADMIN_TOKEN,
        crate::env::LOG,
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_one_key() {
        let text = format!("{:?}", Numbers::default());
        let numbers = text
            .split(": ")
            .skip(1)
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            .count();
        assert_eq!(numbers, KEYS.len(), "{text}");

        let before = Numbers::default();
        let mut seen = std::collections::HashSet::new();
        for key in KEYS {
            let mut numbers = before.clone();
            let other = if key.get(&mut numbers) == key.least {
                key.least + 1
            } else {
                key.least
            };
            key.set(&mut numbers, &other.to_string()).unwrap();
            assert_eq!(key.get(&mut numbers), other, "{}", key.name);
            let changed = format!("{numbers:?}");
            assert_ne!(changed, text, "{} changes nothing", key.name);
            assert!(
                seen.insert(changed),
                "{} changes what another key changes",
                key.name
            );
            assert!(
                seen.insert(key.variable()),
                "{} shares its variable",
                key.name
            );
        }
    }

    #[test]
    fn defaults_survive_their_units() {
        for key in KEYS {
            let mut numbers = Numbers::default();
            let exact = (key.place)(&mut numbers).get();
            assert_eq!(key.get(&mut numbers) * key.unit, exact, "{}", key.name);
            assert!(
                (key.least..=key.most).contains(&key.get(&mut numbers)),
                "{}",
                key.name
            );
        }
    }
}
