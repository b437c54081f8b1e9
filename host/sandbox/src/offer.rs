//! What a component offers. The texts are the guest's: nothing in them was checked.

/// All that a component offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// What makes it a tool.
    pub shape: Shape,
    /// Functions that it exports and that are no tools.
    pub left_out: Vec<LeftOut>,
    /// Its tools.
    pub tools: Vec<Tool>,
    /// Its resources.
    pub resources: Vec<Resource>,
    /// Its templates of resources.
    pub templates: Vec<Template>,
    /// Its prompts.
    pub prompts: Vec<Prompt>,
    /// Whether it proposes how to go on with an argument.
    pub completes: bool,
}

/// What makes a component a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// It lists what it offers.
    #[default]
    Tools,
    /// It exports functions, and each is one.
    Library,
    /// It is a program that is run.
    Command,
}

/// A function that is no tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Which, with its interface.
    pub function: String,
    /// Why not.
    pub why: String,
}

/// A tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: String,
    /// The JSON Schema of its structured results.
    pub output_schema: Option<String>,
    /// When a call becomes a task.
    pub task_mode: Mode,
    /// What a caller must be capable of.
    pub requires: Vec<String>,
    /// Further members of its descriptor, a JSON object.
    pub extra: Option<String>,
}

/// When a call becomes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Never.
    Never,
    /// When the guest says so.
    OnDetach,
    /// When it takes long.
    Auto,
    /// At once.
    Always,
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its URI.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Further members of its descriptor, a JSON object.
    pub extra: Option<String>,
}

/// A template of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Their URIs, with variables.
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// The media type of all of them.
    pub mime_type: Option<String>,
    /// What they are.
    pub description: Option<String>,
    /// Further members of its descriptor, a JSON object.
    pub extra: Option<String>,
}

/// A prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// Further members of its descriptor, a JSON object.
    pub extra: Option<String>,
}

/// One argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What to give.
    pub description: Option<String>,
    /// Whether the prompt is refused without it.
    pub required: bool,
}
