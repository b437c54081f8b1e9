//! `GET /v1/node`: figures for operators and tests.

use axum::Json;
use axum::extract::State;
use longshore_catalog::registry::Kind;
use serde_json::{Value, json};

use super::App;
use super::admin::ApiError;
use crate::server::Server;

pub(super) async fn node(State(app): State<App>) -> Result<Json<Value>, ApiError> {
    let server = &app.server;
    let store = server.tasks.figures().await?;
    let sandbox = server.sandbox.figures();
    let registry = server.registry();
    Ok(Json(json!({
        "version": server.version,
        "node": *server.node.0,
        "uptimeMs": u64::try_from(server.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        "components": registry.components().count(),
        "preparing": server.preparing(),
        "broken": server.broken.lock().len(),
        "tools": registry.count(Kind::Tool),
        "resources": registry.count(Kind::Resource),
        "templates": registry.count(Kind::Template),
        "prompts": registry.count(Kind::Prompt),
        "runs": {
            "live": server.runs.count(),
            "replaying": server.runs.replaying(),
            "liveStores": sandbox.live_stores,
            "started": sandbox.started,
            "slotted": sandbox.slotted,
            "queued": server.admission.waiting(),
            "parked": server.alarms.count(),
            "joined": server.attending.count(),
            "most": server.settings.running,
        },
        "tenants": tenants(server),
        "listeners": server.bus.count(),
        "sessions": server.sessions.count(),
        "polls": { "waiting": server.polls.waiting() },
        "uploads": server.uploading(),
        "answers": { "unreadKib": app.unread.held_kib() },
        "sandbox": { "compiles": sandbox.compiles, "compiling": sandbox.compiling, "guestThreads": sandbox.guest_threads },
        "store": { "commits": store.commits, "changes": store.changes, "unfinishedTasks": store.unfinished },
        "process": process(),
    })))
}

/// Runs and waiting calls of each tenant that has any.
fn tenants(server: &Server) -> Value {
    let shares = server.admission.shares();
    let each = shares.into_iter().map(|(tenant, share)| {
        let share = json!({ "running": share.running, "queued": share.queued });
        (tenant.0.to_string(), share)
    });
    Value::Object(each.collect())
}

/// What the system says of this process; members that it does not tell are left out.
fn process() -> Value {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let fds = std::fs::read_dir("/proc/self/fd")
        .map(|entries| entries.count() as u64)
        .ok();
    json!({
        "pid": std::process::id(),
        "rssKib": line("VmRSS:"),
        "threads": line("Threads:"),
        "fds": fds,
    })
}
