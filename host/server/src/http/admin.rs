//! The admin API: components, tasks, the node.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{OriginalUri, Path, Query, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use longshore_catalog::component::Name;
use longshore_catalog::registry::Entry;
use longshore_catalog::store::Installed;
use longshore_policy::grant::Grant;
use longshore_tasks::id::TaskId;
use longshore_tasks::store::{Query as TaskQuery, StoreError, Summary};
use longshore_tasks::task::{State as TaskState, StateName, Task, Trust};
use longshore_tasks::values::Shelf;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::App;
use super::body::{self, BodyError, Most};
use super::whole;
use crate::components::{ChangeError, Receipt};
use crate::dispatch::Identity;
use crate::follow::{FollowError, Followed};
use crate::history::HistoryError;
use crate::loaded::Loaded;
use crate::reason::{NAME_COLLISION, RequestReason, RunReason};
use crate::run::Output;
use crate::server::Server;
use crate::trial::export::Export;
use crate::{waits, wire};
use longshore_protocol::timestamp::iso8601;

/// An error of the admin API: `{error: {reason, message}}`.
pub(super) struct ApiError {
    status: StatusCode,
    reason: &'static str,
    message: String,
}

impl ApiError {
    pub(super) fn new(
        status: StatusCode,
        reason: impl Into<&'static str>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status,
            reason: reason.into(),
            message: message.into(),
        }
    }

    fn unavailable(error: &impl ToString) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            RequestReason::StoreUnavailable,
            error.to_string(),
        )
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "reason": self.reason, "message": self.message } });
        (self.status, Json(body)).into_response()
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::unavailable(&error)
    }
}

impl From<ChangeError> for ApiError {
    fn from(error: ChangeError) -> Self {
        let message = error.to_string();
        match error {
            ChangeError::Refused(refusal) => {
                let status = match refusal.reason {
                    "host" => StatusCode::INTERNAL_SERVER_ERROR,
                    NAME_COLLISION => StatusCode::CONFLICT,
                    _ => StatusCode::UNPROCESSABLE_ENTITY,
                };
                Self::new(status, refusal.reason, message)
            }
            ChangeError::Static(_) => Self::new(StatusCode::CONFLICT, "static-name", message),
            ChangeError::Unknown(_) => {
                Self::new(StatusCode::NOT_FOUND, RequestReason::NotFound, message)
            }
            ChangeError::Store(error) => Self::unavailable(&error),
        }
    }
}

impl From<FollowError> for ApiError {
    fn from(error: FollowError) -> Self {
        let message = error.to_string();
        match error {
            FollowError::Unknown => {
                Self::new(StatusCode::NOT_FOUND, RequestReason::NotFound, message)
            }
            FollowError::Answer(_) => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                RequestReason::Answer,
                message,
            ),
            FollowError::Store(error) => error.into(),
        }
    }
}

impl From<HistoryError> for ApiError {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::Follow(error) => error.into(),
            HistoryError::Unusable(message) => {
                Self::new(StatusCode::CONFLICT, RequestReason::Journal, message)
            }
        }
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        Self::new(error.status(), error.reason(), error.message())
    }
}

pub(super) async fn nothing_here(OriginalUri(uri): OriginalUri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(
        StatusCode::NOT_FOUND,
        RequestReason::NotFound,
        format!(
            "nothing is at {path}: MCP is at /mcp, the admin API under /v1 (components, tasks, node)"
        ),
    )
}

pub(super) async fn wrong_method(method: Method, OriginalUri(uri): OriginalUri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        RequestReason::Method,
        format!("{method} is not possible at {path}"),
    )
}

// Components

type PathOf<T> = Result<Path<T>, PathRejection>;

fn name(path: PathOf<String>) -> Result<Name, ApiError> {
    let refuse = |message: String| ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "id", message);
    let Path(text) = path.map_err(|rejection| refuse(rejection.body_text()))?;
    text.parse()
        .map_err(|error: longshore_catalog::component::BadName| refuse(error.to_string()))
}

pub(super) async fn components(State(app): State<App>) -> Json<Value> {
    let registry = app.server.registry();
    let components: Vec<Value> = registry
        .components()
        .map(|entry| describe(&app.server, entry))
        .collect();
    let broken: Vec<Value> = app
        .server
        .broken
        .lock()
        .iter()
        .map(|broken| {
            json!({ "name": broken.name, "reason": broken.refusal.reason, "message": broken.refusal.message })
        })
        .collect();
    let nobodys = app.server.granted_to_nobody();
    Json(json!({ "components": components, "broken": broken, "grantedToNobody": nobodys }))
}

pub(super) async fn component(
    State(app): State<App>,
    path: PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    let name = name(path)?;
    let registry = app.server.registry();
    let entry = registry
        .component(&name)
        .ok_or_else(|| ApiError::from(ChangeError::Unknown(name.clone())))?;
    let taken = app.server.values.taken(&values_of(&name)).await?;
    let mut described = describe(&app.server, entry);
    described["values"] = json!(taken);
    Ok(Json(described))
}

/// What a component keeps for those who may call it now.
fn values_of(name: &Name) -> Shelf {
    Shelf {
        tenant: Identity::local().tenant,
        component: name.as_str().to_owned(),
    }
}

pub(crate) fn describe(server: &Server, entry: &Entry<Loaded>) -> Value {
    let Entry { component, payload } = entry;
    let source = payload.source;
    let tools: Vec<Value> = component
        .tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "taskMode": tool.task_mode,
                "requires": tool.requires,
            })
        })
        .collect();
    json!({
        "name": component.name,
        "digest": component.digest,
        "size": component.size,
        "shape": component.shape,
        "tools": tools,
        "leftOut": component.left_out,
        "resources": component.library.resources.iter().map(|resource| json!({
            "uri": resource.uri,
            "name": resource.name,
            "mimeType": resource.mime_type,
            "description": resource.description,
        })).collect::<Vec<_>>(),
        "templates": component.library.templates.iter().map(|template| json!({
            "uriTemplate": template.uri_template,
            "name": template.name,
            "mimeType": template.mime_type,
            "description": template.description,
        })).collect::<Vec<_>>(),
        "prompts": component.library.prompts.iter().map(|prompt| json!({
            "name": prompt.name,
            "title": prompt.title,
            "description": prompt.description,
            "arguments": prompt.arguments,
        })).collect::<Vec<_>>(),
        "completes": component.library.completes,
        "imports": component.imports,
        "policy": server.policy_shown(entry),
        "volatile": server.volatile(entry),
        "static": source.is_static(),
        "source": source.as_str(),
        "installedAt": iso8601(component.installed_at_ms),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InstallQuery {
    /// Whether what is remembered of an earlier attempt is put aside.
    #[serde(default)]
    again: bool,
    /// Whether it is only looked at.
    #[serde(default)]
    dry_run: bool,
}

pub(super) async fn install(
    State(app): State<App>,
    path: PathOf<String>,
    query: Result<Query<InstallQuery>, QueryRejection>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let name = name(path)?;
    let Query(InstallQuery { again, dry_run }) = query.map_err(|rejection| {
        let message = rejection.body_text();
        ApiError::new(StatusCode::BAD_REQUEST, RequestReason::Query, message)
    })?;
    let place = Arc::clone(&app.server.uploads)
        .try_acquire_owned()
        .map_err(|_| {
            ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                RunReason::Busy.as_str(),
                format!(
                    "{} uploads are taken in at once, which is all there may be (uploads): try again when one of them is done",
                    app.server.settings.uploads
                ),
            )
        })?;
    let (parts, body) = request.into_parts();
    let settings = &app.server.settings;
    let pause = Duration::from_secs(settings.body_pause_s);
    let bytes = body::read(
        &parts.headers,
        body,
        Most::of("upload_mib", settings.upload_bytes),
        pause,
    )
    .await?;
    let server = app.server.clone();
    if dry_run {
        let looked = whole(async move {
            let _until_it_is_done = place;
            server.look_at(name, bytes).await
        });
        return Ok((StatusCode::OK, Json(looked.await?)));
    }
    let Receipt {
        component,
        installed,
        warnings,
    } = whole(async move {
        let _until_it_is_done = place;
        if again {
            server.forgive(&bytes);
        }
        server.install(name, bytes).await
    })
    .await?;
    let status = match installed {
        Installed::Created => StatusCode::CREATED,
        Installed::Replaced(_) | Installed::Unchanged => StatusCode::OK,
    };
    let tools: Vec<&str> = component
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let body = json!({
        "name": component.name,
        "digest": component.digest,
        "shape": component.shape,
        "tools": tools,
        "leftOut": component.left_out,
        "resources": component.library.resources.iter().map(|it| &it.uri).collect::<Vec<_>>(),
        "templates": component.library.templates.iter().map(|it| &it.uri_template).collect::<Vec<_>>(),
        "prompts": component.library.prompts.iter().map(|it| &it.name).collect::<Vec<_>>(),
        "volatile": warnings,
        "warnings": warnings,
        "changed": installed != Installed::Unchanged,
    });
    Ok((status, Json(body)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveQuery {
    /// Whether what it keeps beyond its calls goes as well. Without it, a component of that name finds it again.
    #[serde(default)]
    with_values: bool,
}

pub(super) async fn remove(
    State(app): State<App>,
    path: PathOf<String>,
    query: Result<Query<RemoveQuery>, QueryRejection>,
) -> Result<StatusCode, ApiError> {
    let name = name(path)?;
    let Query(RemoveQuery { with_values }) = query.map_err(|rejection| {
        ApiError::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "id",
            rejection.body_text(),
        )
    })?;
    whole(async move {
        app.server.remove(name.clone()).await?;
        if with_values {
            app.server.values.clear(&values_of(&name)).await?;
        }
        Ok::<_, ApiError>(())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn granted(
    State(app): State<App>,
    path: PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    let name = name(path)?;
    let shown = app.server.grant_shown(&name);
    let shown = shown.ok_or_else(|| ApiError::from(ChangeError::Unknown(name.clone())))?;
    Ok(named(shown, &name))
}

fn named(mut shown: Value, name: &Name) -> Json<Value> {
    shown["name"] = json!(name);
    Json(shown)
}

pub(super) async fn grant(
    State(app): State<App>,
    path: PathOf<String>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let name = name(path)?;
    let bytes = read_json(&app, request).await?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("the body must be a grant, in JSON: {error}");
        ApiError::new(StatusCode::BAD_REQUEST, RequestReason::Body, message)
    })?;
    let grant = Grant::of_json(value).map_err(|fault| {
        let message = format!("nothing is granted: {fault}");
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "grant", message)
    })?;
    let (server, whom) = (app.server.clone(), name.clone());
    whole(async move { server.grant(whom, grant).await }).await?;
    let shown = app.server.grant_shown(&name);
    let shown = shown.unwrap_or_else(|| app.server.nothing_in_force(&name));
    Ok(named(shown, &name))
}

// Tasks

/// How many tasks a list shows if it is not told, and at most.
const LIST: usize = 50;
const LIST_MOST: usize = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    status: Option<String>,
    component: Option<String>,
    /// How its id begins.
    id: Option<String>,
    limit: Option<usize>,
    cursor: Option<u64>,
}

pub(super) async fn tasks(
    State(app): State<App>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let bad =
        |message: String| ApiError::new(StatusCode::BAD_REQUEST, RequestReason::Query, message);
    let Query(query) = query.map_err(|rejection| bad(rejection.body_text()))?;
    let state = query
        .status
        .map(|word| {
            let known: Vec<&str> = StateName::ALL.iter().map(|state| state.as_str()).collect();
            StateName::parse(&word)
                .ok_or_else(|| bad(format!("status must be one of {}", known.join(", "))))
        })
        .transpose()?;
    let ids = match query.id.as_deref().map(TaskId::beginning_with) {
        None => None,
        Some(Some(range)) => Some(range),
        // No id begins so.
        Some(None) => return Ok(Json(json!({ "tasks": [], "cursor": null }))),
    };
    let page = app
        .server
        .tasks
        .list(TaskQuery {
            of: None,
            state,
            component: query.component,
            ids,
            limit: query.limit.unwrap_or(LIST).clamp(1, LIST_MOST),
            after: query.cursor,
        })
        .await?;
    let tasks: Vec<Value> = page.tasks.iter().map(summary).collect();
    Ok(Json(json!({ "tasks": tasks, "cursor": page.next })))
}

fn summary(task: &Summary) -> Value {
    json!({
        "id": task.id.to_string(),
        "component": task.component,
        "tool": task.tool,
        "principal": task.principal,
        "status": task.state.as_str(),
        "statusMessage": task.status_message,
        "createdAt": iso8601(task.created_at.0),
        "updatedAt": iso8601(task.updated_at.0),
    })
}

fn task_id(path: PathOf<String>) -> Result<TaskId, ApiError> {
    path.ok()
        .and_then(|Path(text)| text.parse().ok())
        .ok_or_else(|| FollowError::Unknown.into())
}

pub(super) async fn task(
    State(app): State<App>,
    path: PathOf<String>,
) -> Result<Response, ApiError> {
    let id = task_id(path)?;
    let task = app.server.task(id, None).await?;
    let output = app.server.output_of(&task).await?;
    let held_up = app.server.lookout.held_up(id);
    Ok(show(&task, output, held_up.as_deref()))
}

pub(super) async fn history(
    State(app): State<App>,
    path: PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(app.server.history(task_id(path)?).await?))
}

pub(super) async fn export(
    State(app): State<App>,
    path: PathOf<String>,
) -> Result<Json<Export>, ApiError> {
    Ok(Json(app.server.export(task_id(path)?).await?))
}

pub(super) async fn resume(
    State(app): State<App>,
    path: PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    let id = task_id(path)?;
    let server = app.server.clone();
    let followed = whole(async move { server.readmit_task(id).await }).await?;
    let task = app.server.task(id, None).await?;
    if followed == Followed::Unchanged {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            RequestReason::NotQuarantined,
            format!(
                "the task is not set aside: it is {}",
                task.state.name().as_str()
            ),
        ));
    }
    Ok(Json(
        json!({ "id": id.to_string(), "status": task.state.name().as_str() }),
    ))
}

fn show(task: &Task, output: Option<Output>, held_up: Option<&str>) -> Response {
    let raw = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    let questions: serde_json::Map<String, Value> = task
        .open_questions()
        .map(|question| (question.key.clone(), raw(&question.request.0)))
        .collect();
    let waits: Vec<String> = task.open_waits().filter_map(waits::describe).collect();
    let (result, error) = match &task.state {
        TaskState::Completed { result, .. } => (Some(raw(&result.0)), None),
        TaskState::Failed { failure, .. } => {
            let error = wire::rpc_error(failure);
            let data = error.data.as_deref().map(raw);
            (
                None,
                Some(json!({ "code": error.code, "message": error.message, "data": data })),
            )
        }
        TaskState::Working | TaskState::InputRequired | TaskState::Cancelled { .. } => (None, None),
    };
    let progress = task
        .status
        .progress
        .map(|progress| json!({ "done": progress.done, "total": progress.total }));
    Json(json!({
        "id": task.id.to_string(),
        "component": task.pinned.component,
        "digest": task.pinned.digest,
        "tool": task.pinned.tool,
        "principal": *task.pinned.principal.0,
        "arguments": raw(&task.pinned.arguments.0),
        "status": task.state.name().as_str(),
        "statusMessage": task.status.message,
        "progress": progress,
        "cancelRequestedAt": task.cancel_requested_at.map(|at| iso8601(at.0)),
        "createdAt": iso8601(task.created_at.0),
        "updatedAt": iso8601(task.updated_at.0),
        "deadlineAt": iso8601(task.deadline_at.0),
        "ttlMs": task.ttl_ms(),
        "cpuMs": task.usage.cpu_ms,
        "activeMs": task.usage.active_ms,
        "parked": task.lease.owner.is_none() && !task.state.name().is_final(),
        "quarantined": task.trust() == Trust::Quarantined,
        "heldUp": held_up,
        "wakeAt": task.wake_at.map(|at| iso8601(at.0)),
        "replayDebtMs": task.replay_debt_ms(),
        "journalSegments": task.journal.segments.saturating_sub(task.journal.base),
        "questions": questions,
        "waitsFor": waits,
        "result": result,
        "error": error,
        "output": output.map(|output| show_output(&output)),
    }))
    .into_response()
}

pub(crate) fn show_output(output: &Output) -> Value {
    let log: Vec<Value> = output
        .log
        .iter()
        .map(|line| json!({ "level": line.level.as_str(), "logger": line.logger, "message": line.message }))
        .collect();
    json!({
        "stdout": output.stdout.text,
        "stdoutDropped": output.stdout.dropped,
        "stderr": output.stderr.text,
        "stderrDropped": output.stderr.dropped,
        "log": log,
        "logDropped": output.log_dropped,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answers<'a> {
    #[serde(borrow)]
    answers: std::collections::BTreeMap<String, &'a RawValue>,
}

pub(super) async fn answer(
    State(app): State<App>,
    path: PathOf<String>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let id = task_id(path)?;
    let bytes = read_json(&app, request).await?;
    whole(answer_read(app, id, bytes)).await
}

async fn answer_read(app: App, id: TaskId, bytes: Vec<u8>) -> Result<Json<Value>, ApiError> {
    let bad =
        |message: String| ApiError::new(StatusCode::BAD_REQUEST, RequestReason::Body, message);
    let Answers { answers } = serde_json::from_slice(&bytes).map_err(|error| {
        bad(format!(
            "the body must be {{\"answers\": {{KEY: {{\"action\": …, \"content\": …}}}}}}: {error}"
        ))
    })?;
    // Unlike a client of the protocol, whoever types a key wants to know that it is wrong.
    let task = app.server.task(id, None).await?;
    let open: Vec<&str> = task
        .open_questions()
        .map(|question| question.key.as_str())
        .collect();
    if let Some(unknown) = answers.keys().find(|key| !open.contains(&key.as_str())) {
        let open = if open.is_empty() {
            "it asks nothing now".to_owned()
        } else {
            format!("it asks {}", open.join(", "))
        };
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            RequestReason::NotAsked,
            format!("the task does not ask {unknown:?}: {open}"),
        ));
    }
    let answers: Vec<(&str, &RawValue)> = answers
        .iter()
        .map(|(key, answer)| (key.as_str(), *answer))
        .collect();
    let followed = app.server.answer_task(id, None, &answers).await?;
    if followed == Followed::Unchanged {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            RequestReason::NotAsked,
            "somebody else answered first, or the task does not ask any more",
        ));
    }
    let task = app.server.task(id, None).await?;
    Ok(Json(
        json!({ "id": id.to_string(), "status": task.state.name().as_str() }),
    ))
}

pub(super) async fn cancel(
    State(app): State<App>,
    path: PathOf<String>,
) -> Result<Json<Value>, ApiError> {
    let id = task_id(path)?;
    let server = app.server.clone();
    let followed = whole(async move { server.cancel_task(id, None).await }).await?;
    let task = app.server.task(id, None).await?;
    Ok(Json(json!({
        "id": id.to_string(),
        "status": task.state.name().as_str(),
        "changed": followed == Followed::Changed,
    })))
}

async fn read_json(app: &App, request: Request<Body>) -> Result<Vec<u8>, ApiError> {
    let (parts, body) = request.into_parts();
    let settings = &app.server.settings;
    let pause = Duration::from_secs(settings.body_pause_s);
    Ok(body::read(
        &parts.headers,
        body,
        Most::of("request_kib", settings.request_bytes),
        pause,
    )
    .await?)
}
