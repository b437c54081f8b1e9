//! Every number and switch that a server can be told: one table for options, variables, files, help and printing.

use std::num::NonZeroUsize;

use longshore_sandbox::compile::CompileLimits;
use longshore_sandbox::precheck::Bounds;
use longshore_server::settings::Settings;
use serde_json::Value;

/// What can be set.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    /// Of the server, and of each run.
    pub(crate) server: Settings,
    /// Of a compilation.
    pub(crate) compile: CompileLimits,
    /// Of what an upload may consist of; [`Numbers::bounds`] has the rest.
    pub(crate) bounds: Bounds,
    /// How often the components directory is looked into, in milliseconds.
    pub(crate) folder_ms: u64,
    /// Threads for guests.
    pub(crate) guest_threads: usize,
    /// Places for instances that are made beforehand.
    pub(crate) instance_slots: usize,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            server: Settings::default(),
            compile: CompileLimits::default(),
            bounds: Bounds::default(),
            folder_ms: 2_000,
            guest_threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            // As many as there are instances when every place for a run is taken and as many wait as may, and some.
            instance_slots: 384,
        }
    }
}

impl Numbers {
    /// What a component may consist of, wherever it comes from.
    pub(crate) fn bounds(&self) -> Bounds {
        let limits = &self.server.limits;
        Bounds {
            // Where no uploads are taken, or small ones, files of the operator's own are still served.
            bytes: self.server.upload_bytes.max(Bounds::default().bytes),
            // What no run could have is told before anything is compiled.
            memory_bytes: limits.memory_bytes,
            table_elements: limits.table_elements,
            ..self.bounds.clone()
        }
    }
}

/// Where a number is kept.
enum Place<'a> {
    U64(&'a mut u64),
    Usize(&'a mut usize),
    Bool(&'a mut bool),
}
use Place::{Bool, U64, Usize};

impl Place<'_> {
    fn get(&self) -> u64 {
        match self {
            U64(place) => **place,
            Usize(place) => **place as u64,
            Bool(place) => u64::from(**place),
        }
    }

    fn set(&mut self, value: u64) {
        match self {
            U64(place) => **place = value,
            Usize(place) => **place = usize::try_from(value).unwrap_or(usize::MAX),
            Bool(place) => **place = value != 0,
        }
    }
}

/// One number or switch.
pub(crate) struct Key {
    /// Its path, with its unit.
    pub(crate) name: &'static str,
    about: &'static str,
    /// How many of the kept unit are one of the unit in the name.
    unit: u64,
    least: u64,
    most: u64,
    is_switch: bool,
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
/// Address space in which a compiler can be started at all and told that it needs more.
const COMPILER_MIB: u64 = 256;
/// Of one text that is held in memory.
const TEXT_KIB: u64 = 64 * KIB;

const fn key(name: &'static str, about: &'static str, place: fn(&mut Numbers) -> Place<'_>) -> Key {
    Key {
        name,
        about,
        unit: 1,
        least: 0,
        most: MANY,
        is_switch: false,
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

    /// Something that is on or off.
    const fn switch(mut self) -> Self {
        self.is_switch = true;
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

    /// Whether it is on or off, in place of a number.
    pub(crate) fn is_switch(&self) -> bool {
        self.is_switch
    }

    /// Its value, as a settings file has it.
    pub(crate) fn value(&self, numbers: &mut Numbers) -> Value {
        if self.is_switch {
            Value::from(self.get(numbers) != 0)
        } else {
            Value::from(self.get(numbers))
        }
    }

    /// Its value in the unit of its name.
    pub(crate) fn get(&self, numbers: &mut Numbers) -> u64 {
        (self.place)(numbers).get() / self.unit
    }

    /// Sets it, or says what it must be.
    pub(crate) fn set(&self, numbers: &mut Numbers, text: &str) -> Result<(), String> {
        if self.is_switch {
            let on = text
                .parse::<bool>()
                .map_err(|_| format!("must be true or false, and {text:?} is neither"))?;
            (self.place)(numbers).set(u64::from(on));
            return Ok(());
        }
        let number = text.parse::<u64>().ok();
        let value = number.filter(|value| (self.least..=self.most).contains(value));
        let value = value.ok_or_else(|| {
            let remark = if number.is_some_and(|number| number < self.least) {
                ": with less nothing could be served"
            } else {
                ""
            };
            format!(
                "must be a whole number from {} to {}{remark}, and {text:?} is not",
                self.least, self.most
            )
        })?;
        (self.place)(numbers).set(value * self.unit);
        Ok(())
    }
}

/// Every number and switch, in the order of `--print-config`. Keys with a dot come last, section by section.
#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    key("inline_budget_ms", "time before the call of an `auto` tool becomes a task", |n| U64(&mut n.server.inline_budget_ms)).ms(),
    key("poll_interval_ms", "how often clients are asked to poll", |n| U64(&mut n.server.poll_interval_ms)).ms().at_least(1),
    key("early_poll_ms", "longest that an early poll of an unchanged task waits; 0 for not at all", |n| U64(&mut n.server.early_poll_ms)).ms(),
    key("grace_ms", "time of a cancelled run to clean up", |n| U64(&mut n.server.grace_ms)).ms(),
    key("status_every_ms", "shortest time between two visible changes of a task's status", |n| U64(&mut n.server.status_every_ms)).ms(),
    key("progress_every_ms", "shortest time between two progress notifications of a held call", |n| U64(&mut n.server.progress_every_ms)).ms(),
    key("beat_ms", "longest silence on a held call whose client wants to hear of progress", |n| U64(&mut n.server.beat_ms)).ms().at_least(1),
    key("hold_ms", "time for which a call is held for a client that does not know tasks", |n| U64(&mut n.server.hold_ms)).ms(),
    key("hold_progress_ms", "the same, if the client hears of progress meanwhile", |n| U64(&mut n.server.hold_progress_ms)).ms(),
    key("follow_ms", "longest that one call of longshore_task_wait takes", |n| U64(&mut n.server.follow_ms)).ms(),
    key("poll_least_ms", "least time between two requests that look for what a tool waits for", |n| U64(&mut n.server.poll_least_ms)).ms().at_least(1),
    key("round_ms", "time for which the questions of a call wait for the call to be made again", |n| U64(&mut n.server.round_ms)).ms().at_least(1),
    key("deadline_ms", "longest life of a task", |n| U64(&mut n.server.deadline_ms)).ms().at_least(1),
    key("retention_ms", "time for which an ended task can be read", |n| U64(&mut n.server.retention_ms)).ms().at_least(1),
    key("journal_every_ms", "longest time for which what a run recorded is in memory only", |n| U64(&mut n.server.journal_every_ms)).ms(),
    key("warm_ms", "time for which a run that waits keeps its memory", |n| U64(&mut n.server.warm_ms)).ms(),
    key("warm", "runs that wait and keep their memory", |n| Usize(&mut n.server.warm)),
    key("park_from_ms", "shortest wait for a time that frees a run's memory", |n| U64(&mut n.server.park_from_ms)).ms(),
    key("running", "runs at the same time", |n| Usize(&mut n.server.running)).at_least(1),
    key("running_each", "of those, the ones of one tenant", |n| Usize(&mut n.server.running_each)).at_least(1),
    key("queued", "calls that wait for one of those places", |n| Usize(&mut n.server.queued)),
    key("queued_each", "of those, the ones of one tenant", |n| Usize(&mut n.server.queued_each)),
    key("parked", "tasks that wait without a place, while anything new may begin", |n| Usize(&mut n.server.parked)).at_least(1),
    key("queue_wait_ms", "time for which a call waits for a place", |n| U64(&mut n.server.queue_wait_ms)).ms(),
    key("compile_wait_ms", "time for which a call waits for its component to be compiled", |n| U64(&mut n.server.compile_wait_ms)).ms(),
    key("request_kib", "one request to the MCP endpoint", |n| Usize(&mut n.server.request_bytes)).kib().at_least(1),
    key("upload_mib", "one uploaded component", |n| Usize(&mut n.server.upload_bytes)).mib(1024),
    key("uploads", "uploads at the same time", |n| Usize(&mut n.server.uploads)),
    key("headers", "headers of one request", |n| Usize(&mut n.server.headers)).at_least(16).up_to(1024),
    key("header_kib", "all headers of one request", |n| Usize(&mut n.server.header_bytes)).kib().at_least(1).up_to(256),
    key("header_s", "time for the headers of a request", |n| U64(&mut n.server.header_s)).s().at_least(1),
    key("body_pause_s", "longest pause within a request's body", |n| U64(&mut n.server.body_pause_s)).s().at_least(1),
    key("write_s", "time in which a client takes in none of its answer", |n| U64(&mut n.server.write_s)).s().at_least(1),
    key("answers_mib", "large answers that their clients have not taken in yet", |n| Usize(&mut n.server.answers_bytes)).mib(64 * 1024).at_least(1),
    key("http_connections", "connections for HTTP requests of all tools at the same time", |n| Usize(&mut n.server.http_connections)).at_least(1),
    key("listeners", "clients that listen at the same time", |n| Usize(&mut n.server.listeners)),
    key("listeners_each", "of those, the ones of one caller", |n| Usize(&mut n.server.listeners_each)),
    key("listen_s", "time after which one of them has to ask again, over HTTP", |n| U64(&mut n.server.listen_s)).s().at_least(1),
    key("listen_tasks", "tasks that one of them listens to", |n| Usize(&mut n.server.listen_tasks)),
    key("listen_resources", "resources that one of them listens to", |n| Usize(&mut n.server.listen_resources)),
    key("early_polls", "early polls of one caller that wait for news", |n| Usize(&mut n.server.early_polls)),
    key("sessions", "sessions of clients of older revisions at the same time", |n| Usize(&mut n.server.sessions)),
    key("sessions_each", "of those, the ones of one caller", |n| Usize(&mut n.server.sessions_each)),
    key("session_idle_s", "time after which a session ends that nobody uses", |n| U64(&mut n.server.session_idle_s)).s().at_least(1),
    key("session_kept_kib", "what a session keeps for a client that lost its connection", |n| Usize(&mut n.server.session_kept_bytes)).kib(),
    key("connections", "connections at the same time", |n| Usize(&mut n.server.connections)).at_least(1),
    key("page", "tools on one page of a list", |n| Usize(&mut n.server.page)).at_least(1),
    key("guest_threads", "threads for guests; the default is one for each core", |n| Usize(&mut n.guest_threads)).at_least(1).up_to(1024),
    key("any_host", "a grant may name every host there is, as `*`", |n| Bool(&mut n.server.any_host)).switch(),
    key("handoff", "calls that are held for too long go on as tasks that are followed by tools", |n| Bool(&mut n.server.handoff)).switch(),
    key("instance_slots", "places for instances that are made beforehand; what finds none starts more slowly", |n| Usize(&mut n.instance_slots)).up_to(16_384),
    key("durable", "what new runs see is recorded, so that they go on after a crash", |n| Bool(&mut n.server.durable)).switch(),
    key("limits.memory_mib", "memory of a run", |n| U64(&mut n.server.limits.memory_bytes)).mib(GUEST_MEMORY_MIB).at_least(1),
    key("limits.table_elements", "table elements of a run", |n| U64(&mut n.server.limits.table_elements)),
    key("limits.instances", "core instances, memories and tables of a component, each", |n| U64(&mut n.server.limits.instances)).at_least(1),
    key("limits.handles", "handles of a run", |n| U64(&mut n.server.limits.handles)),
    key("limits.hostcall_kib", "what one host call carries out of the guest", |n| U64(&mut n.server.limits.hostcall_bytes)).kib().at_least(1),
    key("limits.random_kib", "randomness for one host call", |n| U64(&mut n.server.limits.random_bytes)).kib(),
    key("limits.scratch_mib", "files of a run, in memory", |n| U64(&mut n.server.limits.scratch_bytes)).mib(1024),
    key("limits.cpu_ms", "CPU time of a run", |n| U64(&mut n.server.limits.cpu_ms)).ms().at_least(1),
    key("limits.active_wall_ms", "time of a run, less what it waits", |n| U64(&mut n.server.limits.active_wall_ms)).ms().at_least(1),
    key("limits.result_kib", "one result", |n| U64(&mut n.server.limits.result_bytes)).kib().at_least(1),
    key("limits.output_ring_kib", "what is kept of each of stdout and stderr", |n| U64(&mut n.server.limits.output_ring_bytes)).kib(),
    key("limits.log_ring_kib", "what is kept of a guest's log", |n| U64(&mut n.server.limits.log_ring_bytes)).kib(),
    key("limits.log_line_bytes", "one line of a guest's log", |n| U64(&mut n.server.limits.log_line_bytes)),
    key("limits.status_bytes", "one line of status", |n| U64(&mut n.server.limits.status_bytes)),
    key("limits.questions_open", "questions that a call may have open", |n| U64(&mut n.server.limits.questions_open)),
    key("limits.questions_in_life", "questions in the life of a call", |n| U64(&mut n.server.limits.questions_in_life)),
    key("limits.question_kib", "one question", |n| U64(&mut n.server.limits.question_bytes)).kib(),
    key("limits.answer_kib", "one answer to a question", |n| U64(&mut n.server.limits.answer_bytes)).kib(),
    key("limits.step_kib", "what a step hands back", |n| U64(&mut n.server.limits.step_bytes)).kib(),
    key("limits.value_kib", "one value that a component keeps", |n| U64(&mut n.server.limits.value_bytes)).kib(),
    key("limits.values", "keys that a component may keep", |n| U64(&mut n.server.limits.values)).up_to(MANY),
    key("limits.values_mib", "what a component may keep in all", |n| U64(&mut n.server.limits.values_bytes)).mib(1024),
    key("limits.artifact_kib", "one artifact that a call leaves", |n| U64(&mut n.server.limits.artifact_bytes)).kib(),
    key("limits.artifacts", "artifacts that a call may leave", |n| U64(&mut n.server.limits.artifacts)).up_to(MANY),
    key("limits.artifacts_mib", "what a call may leave in all", |n| U64(&mut n.server.limits.artifacts_bytes)).mib(1024),
    key("limits.journal_records", "records in the journal of a task", |n| U64(&mut n.server.limits.journal_records)).at_least(1).up_to(10 * MANY),
    key("limits.journal_mib", "the journal of a task", |n| U64(&mut n.server.limits.journal_bytes)).mib(1024).at_least(1),
    key("limits.http_at_once", "HTTP exchanges of a run that are under way at once", |n| U64(&mut n.server.limits.http_at_once)).at_least(1).up_to(1_000),
    key("limits.http_request_kib", "the body of one HTTP request", |n| U64(&mut n.server.limits.http_request_bytes)).kib(),
    key("limits.http_response_kib", "the body of one HTTP response", |n| U64(&mut n.server.limits.http_response_bytes)).kib(),
    key("limits.http_head_kib", "the head of one HTTP response", |n| U64(&mut n.server.limits.http_head_bytes)).kib(),
    key("limits.http_connect_ms", "until there is a connection for an HTTP request", |n| U64(&mut n.server.limits.http_connect_ms)).ms().at_least(1),
    key("limits.http_first_byte_ms", "until an HTTP response begins", |n| U64(&mut n.server.limits.http_first_byte_ms)).ms().at_least(1),
    key("limits.http_between_bytes_ms", "between two pieces of an HTTP response", |n| U64(&mut n.server.limits.http_between_bytes_ms)).ms().at_least(1),
    key("limits.http_exchange_ms", "one HTTP exchange in all", |n| U64(&mut n.server.limits.http_exchange_ms)).ms().at_least(1),
    key("compile.cpu_s", "CPU time of a compilation", |n| U64(&mut n.compile.cpu_s)).s().at_least(1),
    key("compile.wall_s", "time of a compilation", |n| U64(&mut n.compile.wall_s)).s().at_least(1),
    key("compile.memory_mib", "memory of a compilation", |n| U64(&mut n.compile.memory_bytes)).mib(MIB).at_least(COMPILER_MIB),
    key("compile.artifact_mib", "native code that comes out of a compilation", |n| U64(&mut n.compile.artifact_bytes)).mib(1024).at_least(1),
    key("compile.at_once", "compilations at the same time, beside one that takes long; the default leaves one core", |n| Usize(&mut n.compile.at_once)).at_least(1).up_to(1024),
    key("compile.quick_s", "time after which a compilation keeps no other waiting", |n| U64(&mut n.compile.quick_s)).s(),
    key("compile.remember_s", "time for which a component is not compiled again after that failed at a limit", |n| U64(&mut n.compile.remember_s)).s(),
    key("components.poll_ms", "how often the components directory is looked into", |n| U64(&mut n.folder_ms)).ms().at_least(1),
    key("upload.instances", "core instances of a component, those of what it instantiates included", |n| U64(&mut n.bounds.instances)).at_least(1),
    key("upload.items", "definitions in a component, counted likewise", |n| U64(&mut n.bounds.items)).at_least(1),
    key("upload.parts", "modules and components inside a component", |n| U64(&mut n.bounds.parts)).at_least(1),
    key("upload.nesting", "levels of components in components", |n| Usize(&mut n.bounds.nesting)).at_least(1).up_to(100),
    key("upload.type_nesting", "levels of types written inside types", |n| Usize(&mut n.bounds.type_nesting)).at_least(1).up_to(100),
    key("upload.type_kib", "one section of types", |n| Usize(&mut n.bounds.type_bytes)).kib().at_least(1),
    key("upload.functions", "functions of a component", |n| U64(&mut n.bounds.functions)).at_least(1),
    key("upload.function_kib", "one function", |n| Usize(&mut n.bounds.function_bytes)).kib().at_least(1),
    key("upload.jump_targets", "targets of all jump tables of a component", |n| U64(&mut n.bounds.jump_targets)),
    key("upload.imports", "imports of a component", |n| Usize(&mut n.bounds.imports)),
    key("upload.exports", "exports of a component", |n| Usize(&mut n.bounds.exports)).at_least(1),
];

/// The table for `serve --help`.
pub(crate) fn help() -> String {
    let mut numbers = Numbers::default();
    let mut text = String::from(
        "Settings, for --set KEY=VALUE, a variable each (LONGSHORE_ and the key in capitals, `.` as `_`), or a settings
file, where what stands before a dot is a section; the first of these that has a value counts:\n",
    );
    for key in KEYS {
        let default = key.value(&mut numbers).to_string();
        text.push_str(&format!(
            "  {:<26} {:>10}  {}\n",
            key.name, default, key.about
        ));
    }
    for (name, about) in [
        ("listen", "where to listen"),
        (
            "components.dir",
            "a directory whose *.wasm are served; empty for none",
        ),
    ] {
        text.push_str(&format!("  {name:<26} {:>10}  {about}\n", ""));
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
            .filter(|rest| {
                rest.starts_with(|c: char| c.is_ascii_digit())
                    || rest.starts_with("true")
                    || rest.starts_with("false")
            })
            .count();
        // What follows from another key has none of its own.
        let follow = ["bytes", "memory_bytes", "table_elements"].len();
        assert_eq!(numbers - follow, KEYS.len(), "{text}");

        let before = Numbers::default();
        let mut seen = std::collections::HashSet::new();
        for key in KEYS {
            let mut numbers = before.clone();
            let other = if key.get(&mut numbers) == key.least {
                key.least + 1
            } else {
                key.least
            };
            let text = if key.is_switch {
                (other != 0).to_string()
            } else {
                other.to_string()
            };
            key.set(&mut numbers, &text).unwrap();
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
