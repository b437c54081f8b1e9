//! The table.

use super::{Row, contract, http, life, runs, send, sessions, upload};

/// What a setting that is no limit makes of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtZero {
    /// Calls are answered as ever.
    Serves,
    /// It is refused when the server starts.
    Refused,
    /// It is no number.
    NoNumber,
}
use AtZero::{NoNumber, Refused, Serves};

/// Settings that bound nothing: they say how fast and how often.
pub(super) const NO_LIMITS: [(&str, AtZero); 27] = [
    ("listen", NoNumber),
    ("components.dir", NoNumber),
    ("components.poll_ms", Refused),
    ("compile.remember_s", Serves),
    ("compile.quick_s", Serves),
    ("compile_wait_ms", Serves),
    ("inline_budget_ms", Serves),
    ("poll_interval_ms", Refused),
    ("early_poll_ms", Serves),
    ("grace_ms", Serves),
    ("status_every_ms", Serves),
    ("progress_every_ms", Serves),
    ("guest_threads", Refused),
    ("instance_slots", Serves),
    ("durable", NoNumber),
    ("handoff", NoNumber),
    ("any_host", NoNumber),
    ("beat_ms", Refused),
    ("hold_ms", Serves),
    ("hold_progress_ms", Serves),
    ("follow_ms", Serves),
    ("poll_least_ms", Refused),
    ("round_ms", Refused),
    ("journal_every_ms", Serves),
    ("warm_ms", Serves),
    ("warm", Serves),
    ("park_from_ms", Serves),
];

/// Nothing is put in a queue.
const NO_QUEUE: &[(&str, u64)] = &[("queued", 0)];
/// One place, and everything else waits for long.
const ONE_PLACE: &[(&str, u64)] = &[("running", 1), ("queue_wait_ms", 600_000)];
/// Nothing that waits keeps its place.
const COLD: &[(&str, u64)] = &[("warm", 0)];
/// What comes early waits for long.
const LATE: &[(&str, u64)] = &[("poll_interval_ms", 600_000), ("early_poll_ms", 600_000)];

pub(super) fn rows() -> Vec<Row> {
    [
        of_runs(),
        of_requests(),
        of_the_server(),
        of_components(),
        contract::rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[rustfmt::skip]
fn of_runs() -> Vec<Row> {
    let reaching = |row: Row| row.on(&["limits"]);
    [
        Row::exact("limits.memory_mib", 16, "told no", runs::memory),
        Row::exact("limits.handles", 10, "handle-limit", runs::handles).at_zero(1),
        Row::exact("limits.hostcall_kib", 64, "hostcall-limit", runs::hostcall),
        Row::exact("limits.random_kib", 1, "hostcall-limit", runs::random).at_zero(1),
        Row::exact("limits.output_ring_kib", 4, "cut", runs::output).at_zero(1),
        Row::exact("limits.log_ring_kib", 1, "cut", runs::log).at_zero(1),
        Row::exact("limits.log_line_bytes", 100, "cut", runs::log_line).at_zero(1),
        Row::exact("limits.status_bytes", 100, "cut", runs::status).at_zero(1),
        Row::exact("limits.questions_open", 2, "input-limit", runs::questions).at_zero(1),
        Row::exact("limits.questions_in_life", 3, "input-limit", runs::questions_in_life).at_zero(1),
        Row::exact("limits.question_kib", 1, "input-limit", runs::question).at_zero(1),
        Row::exact("limits.answer_kib", 1, "too-large", runs::answer).at_zero(1),
        Row::exact("limits.step_kib", 1, "input-limit", runs::step).at_zero(1),
        Row::exact("limits.scratch_mib", 1, "told no", runs::scratch).at_zero(1),
        Row::exact("limits.value_kib", 1, "told no", runs::value).at_zero(1),
        Row::exact("limits.values", 3, "told no", runs::values).at_zero(1),
        Row::exact("limits.values_mib", 1, "told no", runs::values_bytes).at_zero(1),
        Row::exact("limits.artifact_kib", 1, "told no", runs::artifact).at_zero(1),
        Row::exact("limits.artifacts", 2, "told no", runs::artifacts).at_zero(1),
        Row::exact("limits.artifacts_mib", 1, "told no", runs::artifacts_bytes).at_zero(1),
        Row::between("limits.journal_mib", 1, 1_000, 1 << 20, "journal-limit", runs::step),
    ]
    .map(reaching)
    .into_iter()
    .chain([
        Row::between("limits.journal_records", 30, 2, 60, "journal-limit", runs::waits).on(&["long-job"]),
        Row::exact("limits.result_kib", 4, "output-limit", runs::result).on(&["large"]),
        Row::between("limits.cpu_ms", 500, 20, 4_000, "cpu-limit", runs::spin).on(&["spin"]),
        Row::between("limits.active_wall_ms", 500, 20, 4_000, "wall-limit", runs::spin).on(&["spin"]),
        Row::exact("limits.memory_mib", 1, "memory-min", upload::memory),
        Row::exact("limits.table_elements", 50, "table-min", upload::table).at_zero(1),
        Row::exact("limits.instances", 8, "init", upload::instances_of_a_run),
    ])
    .collect()
}

/// Nothing else ends a request that takes long.
const PATIENT: &[(&str, u64)] = &[
    ("limits.http_first_byte_ms", 60_000),
    ("limits.http_between_bytes_ms", 60_000),
];
/// A connection is not waited for as long as a request takes.
const HASTY: &[(&str, u64)] = &[("limits.http_connect_ms", 2_000)];

#[rustfmt::skip]
fn of_requests() -> Vec<Row> {
    [
        Row::exact("limits.http_at_once", 2, "too-many", send::at_once),
        Row::exact("limits.http_request_kib", 4, "too-large", send::request).at_zero(1),
        Row::exact("limits.http_response_kib", 4, "too-large", send::response).at_zero(1),
        Row::between("limits.http_head_kib", 4, 3_000, 5_000, "too-large", send::head).at_zero(1),
        Row::between("limits.http_connect_ms", 2_000, 0, 1, "timed-out", send::connect),
        Row::between("limits.http_first_byte_ms", 2_000, 0, 60_000, "timed-out", send::late),
        Row::between("limits.http_between_bytes_ms", 2_000, 0, 60_000, "timed-out", send::pause),
        Row::between("limits.http_exchange_ms", 2_000, 0, 60_000, "timed-out", send::late).with(PATIENT),
        Row::exact("http_connections", 2, "too-many", send::at_once).with(HASTY),
    ]
    .map(|row| row.on(&["limits"]))
    .into()
}

#[rustfmt::skip]
fn of_the_server() -> Vec<Row> {
    vec![
        Row::between("deadline_ms", 1_000, 10, 60_000, "expired", life::deadline).on(&["sleep"]),
        Row::between("retention_ms", 1_500, 0, 1, "gone", life::retention).on(&["sleep"]),
        Row::exact("running", 2, "queue-full", life::running).with(NO_QUEUE).on(&["spin"]),
        Row::exact("running_each", 2, "queue-full", life::running).with(NO_QUEUE).on(&["spin"]),
        Row::exact("queued", 2, "queue-full", life::queued).with(ONE_PLACE).on(&["spin"]).at_zero(1),
        Row::exact("queued_each", 2, "queue-full", life::queued).with(ONE_PLACE).on(&["spin"]).at_zero(1),
        Row::exact("parked", 2, "queue-full", life::parked).with(COLD).on(&["sleep"]),
        Row::between("queue_wait_ms", 2_000, 0, 1, "busy", life::queue_wait).with(&[("running", 1)]).on(&["spin"]).at_zero(1),
        Row::exact("early_polls", 2, "queue-full", life::early_polls).with(LATE).on(&["sleep"]).at_zero(1),
        Row::exact("listeners", 2, "busy", life::listeners).at_zero(1),
        Row::exact("listeners_each", 2, "queue-full", life::listeners).at_zero(1),
        Row::between("listen_s", 1, 0, 1, "closed", life::listen),
        Row::exact("listen_tasks", 2, "too-many", life::listen_tasks).at_zero(1),
        Row::exact("sessions", 2, "busy", sessions::open).at_zero(1),
        Row::exact("sessions_each", 2, "queue-full", sessions::open).at_zero(1),
        Row::between("session_idle_s", 1, 0, 1, "no-session", sessions::idle),
        Row::between("session_kept_kib", 4, 5, 100, "gone", sessions::kept).at_zero(1),
        Row::exact("listen_resources", 2, "too-many", life::listen_resources).at_zero(1),
        Row::exact("page", 3, "continued", life::page),
        Row::exact("request_kib", 4, "too-large", http::body),
        Row::exact("headers", 20, "too-many", http::headers),
        Row::exact("header_kib", 2, "too-large", http::header_bytes),
        Row::between("header_s", 1, 0, 1, "closed", http::slow_head),
        Row::between("body_pause_s", 1, 0, 1, "too-slow", http::slow_body),
        Row::between("write_s", 3, 0, 1, "closed", http::unread).on(&["large"]),
        Row::between("answers_mib", 1, 0, 1, "busy", http::unread_by_all).with(&[("limits.result_kib", 32_768), ("limits.hostcall_kib", 32_768)]).on(&["large"]),
        Row::exact("connections", 4, "waits", http::connections),
        Row::exact("upload_mib", 1, "too-large", upload::bytes).at_zero(1),
        Row::exact("uploads", 2, "busy", upload::at_once).at_zero(1),
    ]
}

#[rustfmt::skip]
fn of_components() -> Vec<Row> {
    vec![
        Row::between("compile.cpu_s", 1, 10, 20_000, "compile-limit", upload::live_values),
        Row::between("compile.wall_s", 1, 10, 20_000, "compile-limit", upload::live_values),
        Row::between("compile.memory_mib", 256, 10, 90_000, "compile-limit", upload::many_functions),
        Row::between("compile.artifact_mib", 1, 10, 20_000, "compile-limit", upload::many_functions),
        Row::exact("compile.at_once", 1, "waits", upload::compilations).with(&[("compile.cpu_s", 2), ("compile.remember_s", 0)]),
        Row::exact("upload.instances", 5, "too-many-instances", upload::instances),
        Row::exact("upload.items", 100, "too-many-instances", upload::items),
        Row::exact("upload.parts", 6, "too-many-instances", upload::parts),
        Row::exact("upload.nesting", 4, "type-depth", upload::nesting),
        Row::exact("upload.type_nesting", 3, "type-depth", upload::type_nesting),
        Row::exact("upload.type_kib", 1, "type-size", upload::types),
        Row::exact("upload.functions", 5, "too-many-functions", upload::functions),
        Row::exact("upload.function_kib", 1, "function-size", upload::function),
        Row::exact("upload.jump_targets", 5, "function-size", upload::jump_targets).at_zero(1),
        Row::exact("upload.imports", 5, "too-many-functions", upload::imports).at_zero(1),
        Row::exact("upload.exports", 5, "too-many-functions", upload::exports),
    ]
}
