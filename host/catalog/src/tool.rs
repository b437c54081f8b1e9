//! What a component may offer, checked once at upload and frozen with its digest.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::{self, cut};
use crate::{header, schema};

/// The most tools of one component: models choose badly among more, and each is compiled at start.
pub const MAX_TOOLS: usize = 128;
/// The longest name of a tool. MCP allows 128; clients that put a prefix before it need room.
pub const MAX_NAME: usize = 64;
/// The longest title in bytes.
pub const MAX_TITLE: usize = 255;
/// The longest description in bytes: it goes into the context of every model that sees the list.
pub const MAX_DESCRIPTION: usize = 8 * 1024;
/// The largest object of further members in bytes; an icon as a data URI fits.
pub const MAX_EXTRA: usize = 64 * 1024;

/// Names beginning so are the host's own tools.
const RESERVED_PREFIX: &str = "longshore_";
/// Members that the host reads from `extra` begin so.
const OUR_MEMBERS: &str = "longshore/";
/// The member of `extra` that asks for a deadline.
const DEADLINE: &str = "longshore/deadlineMs";
/// Members of a descriptor that come from fields of [`Offered`], `execution` from the task mode.
const FIELDS: [&str; 6] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "execution",
];

/// One tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// 1 to 64 of `A-Z a-z 0-9 _ . -`, unique on a server.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, for the model that may call it.
    pub description: String,
    /// JSON Schema 2020-12 of its arguments, as the author wrote it.
    pub input_schema: String,
    /// JSON Schema of its structured result.
    pub output_schema: Option<String>,
    /// When a call becomes a task.
    pub task_mode: TaskMode,
    /// What the client must be able to do.
    pub requires: Vec<Requirement>,
    /// Further members of the descriptor, a JSON object.
    pub extra: Option<String>,
    /// The longest that one call may live, in milliseconds, if the author asks for less than the node allows.
    pub deadline_ms: Option<u64>,
}

/// When a call becomes a task, for a client that knows tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskMode {
    /// It is answered when it ends.
    Never,
    /// When the guest says so.
    OnDetach,
    /// When it takes long, says so, or asks.
    Auto,
    /// At once.
    Always,
}

/// Something that a client must be able to do before a tool is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Requirement {
    /// The tasks extension.
    #[serde(rename = "tasks")]
    Tasks,
    /// Elicitation of either kind.
    #[serde(rename = "elicitation")]
    Elicitation,
    /// Elicitation by form.
    #[serde(rename = "elicitation.form")]
    ElicitationForm,
    /// Elicitation by address.
    #[serde(rename = "elicitation.url")]
    ElicitationUrl,
    /// Sampling.
    #[serde(rename = "sampling")]
    Sampling,
    /// Sampling with tools.
    #[serde(rename = "sampling.tools")]
    SamplingTools,
    /// Roots.
    #[serde(rename = "roots")]
    Roots,
}

impl Requirement {
    /// All words that are known.
    pub const ALL: [Self; 7] = [
        Self::Tasks,
        Self::Elicitation,
        Self::ElicitationForm,
        Self::ElicitationUrl,
        Self::Sampling,
        Self::SamplingTools,
        Self::Roots,
    ];

    /// The word that authors write.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Elicitation => "elicitation",
            Self::ElicitationForm => "elicitation.form",
            Self::ElicitationUrl => "elicitation.url",
            Self::Sampling => "sampling",
            Self::SamplingTools => "sampling.tools",
            Self::Roots => "roots",
        }
    }
}

/// A word that names no requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not known in `requires`; use {}", known_words())]
pub struct UnknownRequirement {
    word: String,
}

fn known_words() -> String {
    Requirement::ALL.map(Requirement::word).join(", ")
}

impl FromStr for Requirement {
    type Err = UnknownRequirement;

    fn from_str(word: &str) -> Result<Self, UnknownRequirement> {
        Self::ALL
            .into_iter()
            .find(|known| known.word() == word)
            .ok_or_else(|| UnknownRequirement {
                word: cut(word, 64),
            })
    }
}

/// One tool as a component lists it, before anything was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: String,
    /// JSON Schema of its structured result.
    pub output_schema: Option<String>,
    /// When a call becomes a task.
    pub task_mode: TaskMode,
    /// What the client must be able to do, in words.
    pub requires: Vec<String>,
    /// Further members of the descriptor, a JSON object.
    pub extra: Option<String>,
}

/// Why the tools of a component were not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There are too many.
    #[error(
        "the component lists {0} tools; list at most {MAX_TOOLS}, or split it into several components"
    )]
    TooMany(usize),
    /// A name that clients would not take.
    #[error(
        "tool {0:?} has a name that clients refuse; use 1 to {MAX_NAME} of A-Z, a-z, 0-9, _, . and -"
    )]
    ToolName(String),
    /// A name of the host's own.
    #[error("tool {0:?} has a name that is the host's; do not begin it with {RESERVED_PREFIX}")]
    Reserved(String),
    /// The component lists a name twice.
    #[error("tool {0:?} is listed twice; rename one")]
    DuplicateTool(String),
    /// A schema that is not one, or not one for untrusted values.
    #[error("tool {tool:?}: its {which} schema {fault}")]
    Schema {
        /// The tool's name.
        tool: String,
        /// `input` or `output`.
        which: &'static str,
        /// What is wrong and the remedy.
        fault: schema::SchemaFault,
    },
    /// An annotation for which clients would drop the tool.
    #[error("tool {tool:?}: {fault}")]
    XMcpHeader {
        /// The tool's name.
        tool: String,
        /// What is wrong and the remedy.
        fault: String,
    },
    /// Some other field is not as the contract says.
    #[error("tool {tool:?}: {fault}")]
    Field {
        /// The tool's name.
        tool: String,
        /// What is wrong and the remedy.
        fault: String,
    },
}

impl Refusal {
    /// The reason for programs, one of the closed list of upload reasons.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::TooMany(_) | Self::Field { .. } => "list-tools",
            Self::ToolName(_) => "tool-name",
            Self::Reserved(_) => "reserved",
            Self::DuplicateTool(_) => "duplicate-tool",
            Self::Schema { .. } => "schema",
            Self::XMcpHeader { .. } => "x-mcp-header",
        }
    }
}

/// Checks what a component lists and gives the tools sorted by name, or the first thing that is wrong.
pub fn accept(offered: Vec<Offered>) -> Result<Vec<Tool>, Refusal> {
    if offered.len() > MAX_TOOLS {
        return Err(Refusal::TooMany(offered.len()));
    }
    let mut tools = offered
        .into_iter()
        .map(accept_one)
        .collect::<Result<Vec<_>, _>>()?;
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    match tools.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => Err(Refusal::DuplicateTool(pair[0].name.clone())),
        None => Ok(tools),
    }
}

fn accept_one(offered: Offered) -> Result<Tool, Refusal> {
    let tool = accept_name(&offered.name)?;
    let field = |fault| Refusal::Field {
        tool: tool.clone(),
        fault,
    };
    let in_schema = |which| {
        let tool = tool.clone();
        move |fault| Refusal::Schema { tool, which, fault }
    };
    let title = offered.title.as_deref().unwrap_or_default();
    for (what, text, max) in [
        ("title", title, MAX_TITLE),
        ("description", &offered.description, MAX_DESCRIPTION),
    ] {
        if text.len() > max {
            let len = text.len();
            return Err(field(format!(
                "its {what} has {len} bytes; make it at most {max}"
            )));
        }
    }
    let mut requires = offered
        .requires
        .iter()
        .map(|word| word.parse())
        .collect::<Result<Vec<Requirement>, UnknownRequirement>>()
        .map_err(|unknown| field(unknown.to_string()))?;
    requires.sort_unstable();
    requires.dedup();
    let deadline_ms = match &offered.extra {
        Some(extra) => deadline_in(extra).map_err(field)?,
        None => None,
    };
    let input = schema::read_input(&offered.input_schema).map_err(in_schema("input"))?;
    header::of(&input).map_err(|fault| Refusal::XMcpHeader {
        tool: tool.clone(),
        fault,
    })?;
    if let Some(output) = &offered.output_schema {
        schema::check_output(output).map_err(in_schema("output"))?;
    }
    Ok(Tool {
        name: tool,
        title: offered.title,
        description: offered.description,
        input_schema: offered.input_schema,
        output_schema: offered.output_schema,
        task_mode: offered.task_mode,
        requires,
        extra: offered.extra,
        deadline_ms,
    })
}

/// Whether clients take that name.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain)
}

fn accept_name(name: &str) -> Result<String, Refusal> {
    if !is_plain_name(name) {
        return Err(Refusal::ToolName(cut(name, 80)));
    }
    // In any case, so that nobody takes `Longshore_task_wait` for the host's.
    let prefix = name.get(..RESERVED_PREFIX.len());
    if prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(RESERVED_PREFIX)) {
        return Err(Refusal::Reserved(name.to_owned()));
    }
    Ok(name.to_owned())
}

/// Checks further members as far as the host reads them, and takes the deadline out of them.
fn deadline_in(extra: &str) -> Result<Option<u64>, String> {
    let value = json::read(extra, MAX_EXTRA).map_err(|fault| format!("its extra {fault}"))?;
    let Value::Object(members) = value else {
        return Err("its extra is not a JSON object".to_owned());
    };
    for key in members.keys() {
        if FIELDS.contains(&key.as_str()) {
            return Err(format!(
                "its extra has the member {key:?}; use the field of `tool` for it"
            ));
        }
        if key.starts_with(OUR_MEMBERS) && key != DEADLINE {
            let key = cut(key, 64);
            return Err(format!(
                "its extra has the unknown member {key:?}; the only one of the host's is {DEADLINE:?}"
            ));
        }
    }
    let Some(deadline) = members.get(DEADLINE) else {
        return Ok(None);
    };
    // Times are added to in signed 64-bit milliseconds.
    let most = i64::MAX as u64 / 2;
    match deadline.as_u64() {
        Some(ms) if (1..=most).contains(&ms) => Ok(Some(ms)),
        _ => Err(format!(
            "{DEADLINE} is not a positive whole number of milliseconds; write one, or leave it out"
        )),
    }
}
