//! What a component offers beside its tools: resources and templates that clients read, prompts that people choose.
//! Checked once at upload and frozen with its digest.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::{self, cut};
use crate::tool::{self, MAX_DESCRIPTION, MAX_EXTRA, MAX_NAME, MAX_TITLE, Tool};
use crate::uri::{self, Pattern};

/// The most resources of one component: clients read the whole list, page by page.
pub const MAX_RESOURCES: usize = 1_024;
/// The most templates of one component: a URI that is no listed one is compared with each.
pub const MAX_TEMPLATES: usize = 128;
/// The most prompts of one component: people choose among them in a menu.
pub const MAX_PROMPTS: usize = 128;
/// The most arguments of one prompt: people are asked for each.
pub const MAX_ARGUMENTS: usize = 32;
/// The longest name of an argument in bytes.
pub const MAX_ARGUMENT_NAME: usize = 128;
/// The longest media type in bytes.
pub const MAX_MIME_TYPE: usize = 255;
/// The texts of one list together, in bytes: it is kept in memory for as long as the component is in force.
pub const MAX_LIST: usize = 1024 * 1024;

/// All of it, checked and in the order of the names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Library {
    /// Resources, by URI.
    pub resources: Vec<Resource>,
    /// Templates, by their text.
    pub templates: Vec<Template>,
    /// Prompts, by name.
    pub prompts: Vec<Prompt>,
    /// Whether it proposes how to go on with an argument.
    pub completes: bool,
}

impl Library {
    /// Whether there is nothing to read and nothing to fill in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.templates.is_empty() && self.prompts.is_empty()
    }
}

/// Something to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// Its absolute URI, unique on a server.
    pub uri: String,
    /// A name for programs and, in want of a title, for people.
    pub name: String,
    /// The media type.
    pub mime_type: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Further members of the descriptor, a JSON object.
    pub extra: Option<String>,
}

/// A family of resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// Their URIs with variables, an RFC 6570 template, unique on a server.
    pub uri_template: String,
    /// A name for programs and, in want of a title, for people.
    pub name: String,
    /// The media type of all of them.
    pub mime_type: Option<String>,
    /// What they are.
    pub description: Option<String>,
    /// Further members of the descriptor, a JSON object.
    pub extra: Option<String>,
}

/// Something to fill in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// 1 to 64 of `A-Z a-z 0-9 _ . -`, unique on a server.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Its arguments, in the order in which people are asked for them.
    pub arguments: Vec<Argument>,
    /// Further members of the descriptor, a JSON object.
    pub extra: Option<String>,
}

/// One argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What to give.
    pub description: Option<String>,
    /// Whether the prompt is refused without it.
    pub required: bool,
}

/// All that a component lists, before anything was checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offered {
    /// Its tools.
    pub tools: Vec<tool::Offered>,
    /// Its resources.
    pub resources: Vec<Resource>,
    /// Its templates.
    pub templates: Vec<Template>,
    /// Its prompts.
    pub prompts: Vec<Prompt>,
    /// Whether it proposes how to go on with an argument.
    pub completes: bool,
}

/// One of the lists beside that of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// `list-resources`
    Resources,
    /// `list-templates`
    Templates,
    /// `list-prompts`
    Prompts,
}

impl List {
    fn most(self) -> usize {
        match self {
            Self::Resources => MAX_RESOURCES,
            Self::Templates => MAX_TEMPLATES,
            Self::Prompts => MAX_PROMPTS,
        }
    }

    fn item(self) -> &'static str {
        match self {
            Self::Resources => "resource",
            Self::Templates => "template",
            Self::Prompts => "prompt",
        }
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.item())
    }
}

/// Why what a component lists was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its tools were not.
    #[error(transparent)]
    Tools(#[from] tool::Refusal),
    /// There is nothing to call, to read or to fill in.
    #[error(
        "the component lists no tool, no resource and no prompt; return at least one from `list-tools`, \
         `list-resources`, `list-templates` or `list-prompts`"
    )]
    Nothing,
    /// There are too many.
    #[error(
        "the component lists {count} {list}; list at most {}, or split it into several components",
        .list.most()
    )]
    TooMany {
        /// Of what.
        list: List,
        /// How many.
        count: usize,
    },
    /// The texts of a list are too long together.
    #[error(
        "the component's {list} have {bytes} bytes of text; make it at most {MAX_LIST}, or split it into several \
         components"
    )]
    TooLarge {
        /// Of what.
        list: List,
        /// How many bytes.
        bytes: usize,
    },
    /// One name stands twice.
    #[error("{} {name:?} is listed twice; rename one", .list.item())]
    Twice {
        /// In what.
        list: List,
        /// Which.
        name: String,
    },
    /// A field is not as the contract says.
    #[error("{} {name:?}: {fault}", .list.item())]
    Field {
        /// In what.
        list: List,
        /// Of which.
        name: String,
        /// What is wrong and the remedy.
        fault: String,
    },
}

impl Refusal {
    /// The reason for programs, one of the closed list of upload reasons.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Tools(refusal) => refusal.reason(),
            Self::Nothing => "list-tools",
            Self::TooMany { list, .. }
            | Self::TooLarge { list, .. }
            | Self::Twice { list, .. }
            | Self::Field { list, .. } => match list {
                List::Resources => "list-resources",
                List::Templates => "list-templates",
                List::Prompts => "list-prompts",
            },
        }
    }
}

/// Checks what a component lists, and gives its tools and its library sorted by name, or the first thing that is wrong.
pub fn accept(offered: Offered) -> Result<(Vec<Tool>, Library), Refusal> {
    let Offered {
        tools,
        resources,
        templates,
        prompts,
        completes,
    } = offered;
    let tools = tool::accept(tools)?;
    let library = Library {
        resources: accept_list(List::Resources, resources)?,
        templates: accept_list(List::Templates, templates)?,
        prompts: accept_list(List::Prompts, prompts)?,
        completes,
    };
    if tools.is_empty() && library.is_empty() {
        return Err(Refusal::Nothing);
    }
    Ok((tools, library))
}

/// What stands in a list.
trait Item {
    /// What it is known by: no two have the same.
    fn key(&self) -> &str;

    /// What is wrong with it, and the remedy.
    fn check(&self) -> Result<(), String>;

    /// All its texts, in bytes.
    fn bytes(&self) -> usize;
}

fn accept_list<I: Item>(list: List, mut items: Vec<I>) -> Result<Vec<I>, Refusal> {
    if items.len() > list.most() {
        let count = items.len();
        return Err(Refusal::TooMany { list, count });
    }
    let bytes = items.iter().map(Item::bytes).sum();
    if bytes > MAX_LIST {
        return Err(Refusal::TooLarge { list, bytes });
    }
    for item in &items {
        item.check().map_err(|fault| Refusal::Field {
            list,
            name: cut(item.key(), 80),
            fault,
        })?;
    }
    items.sort_by(|a, b| a.key().cmp(b.key()));
    match items.windows(2).find(|pair| pair[0].key() == pair[1].key()) {
        Some(pair) => Err(Refusal::Twice {
            list,
            name: cut(pair[0].key(), 80),
        }),
        None => Ok(items),
    }
}

fn length(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
}

fn at_most(what: &str, bytes: usize, most: usize) -> Result<(), String> {
    if bytes > most {
        return Err(format!(
            "its {what} has {bytes} bytes; make it at most {most}"
        ));
    }
    Ok(())
}

/// Further members may not be those that have a field: it would stand twice.
fn check_extra(extra: Option<&String>, fields: &[&str]) -> Result<(), String> {
    let Some(extra) = extra else { return Ok(()) };
    let value = json::read(extra, MAX_EXTRA).map_err(|fault| format!("its extra {fault}"))?;
    let Value::Object(members) = value else {
        return Err("its extra is not a JSON object".to_owned());
    };
    match members.keys().find(|key| fields.contains(&key.as_str())) {
        Some(key) => Err(format!(
            "its extra has the member {key:?}; use the field for it"
        )),
        None => Ok(()),
    }
}

/// What resources and templates have in common.
fn check_described(
    name: &str,
    mime_type: Option<&String>,
    description: Option<&String>,
) -> Result<(), String> {
    if name.is_empty() {
        return Err("its name is empty; give it one".to_owned());
    }
    at_most("name", name.len(), MAX_TITLE)?;
    at_most("media type", length(mime_type), MAX_MIME_TYPE)?;
    at_most("description", length(description), MAX_DESCRIPTION)
}

impl Item for Resource {
    fn key(&self) -> &str {
        &self.uri
    }

    fn check(&self) -> Result<(), String> {
        uri::check(&self.uri).map_err(|fault| format!("its URI {fault}"))?;
        check_described(
            &self.name,
            self.mime_type.as_ref(),
            self.description.as_ref(),
        )?;
        check_extra(
            self.extra.as_ref(),
            &["uri", "name", "mimeType", "description"],
        )
    }

    fn bytes(&self) -> usize {
        let Self {
            uri,
            name,
            mime_type,
            description,
            extra,
        } = self;
        uri.len()
            + name.len()
            + length(mime_type.as_ref())
            + length(description.as_ref())
            + length(extra.as_ref())
    }
}

impl Item for Template {
    fn key(&self) -> &str {
        &self.uri_template
    }

    fn check(&self) -> Result<(), String> {
        Pattern::parse(&self.uri_template).map_err(|fault| format!("its URI template {fault}"))?;
        check_described(
            &self.name,
            self.mime_type.as_ref(),
            self.description.as_ref(),
        )?;
        check_extra(
            self.extra.as_ref(),
            &["uriTemplate", "name", "mimeType", "description"],
        )
    }

    fn bytes(&self) -> usize {
        let Self {
            uri_template,
            name,
            mime_type,
            description,
            extra,
        } = self;
        uri_template.len()
            + name.len()
            + length(mime_type.as_ref())
            + length(description.as_ref())
            + length(extra.as_ref())
    }
}

impl Item for Prompt {
    fn key(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), String> {
        if !tool::is_plain_name(&self.name) {
            return Err(format!(
                "clients refuse such a name; use 1 to {MAX_NAME} of A-Z, a-z, 0-9, _, . and -"
            ));
        }
        at_most("title", length(self.title.as_ref()), MAX_TITLE)?;
        at_most(
            "description",
            length(self.description.as_ref()),
            MAX_DESCRIPTION,
        )?;
        let count = self.arguments.len();
        if count > MAX_ARGUMENTS {
            return Err(format!(
                "it has {count} arguments; make it at most {MAX_ARGUMENTS}"
            ));
        }
        let mut names = HashSet::new();
        for Argument {
            name,
            description,
            required: _,
        } in &self.arguments
        {
            let shown = cut(name, 80);
            if !(1..=MAX_ARGUMENT_NAME).contains(&name.len()) {
                return Err(format!(
                    "the name of its argument {shown:?} has {} bytes; make it 1 to {MAX_ARGUMENT_NAME}",
                    name.len()
                ));
            }
            if !names.insert(name) {
                return Err(format!("its argument {shown:?} stands twice; rename one"));
            }
            at_most(
                &format!("argument {shown:?}"),
                length(description.as_ref()),
                MAX_DESCRIPTION,
            )?;
        }
        check_extra(
            self.extra.as_ref(),
            &["name", "title", "description", "arguments"],
        )
    }

    fn bytes(&self) -> usize {
        let Self {
            name,
            title,
            description,
            arguments,
            extra,
        } = self;
        let arguments: usize = arguments
            .iter()
            .map(|argument| argument.name.len() + length(argument.description.as_ref()))
            .sum();
        name.len()
            + length(title.as_ref())
            + length(description.as_ref())
            + arguments
            + length(extra.as_ref())
    }
}
