//! What a run is started for.

/// What a run is started for: each is one function that a component exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To run a tool.
    Tool {
        /// Its name.
        name: String,
        /// Its arguments, JSON.
        arguments: String,
    },
    /// To read a resource.
    Resource {
        /// Which.
        uri: String,
    },
    /// To fill in a prompt.
    Prompt {
        /// Its name.
        name: String,
        /// Its arguments, a JSON object of strings.
        arguments: String,
    },
    /// To propose how to go on with an argument.
    Completion {
        /// Of what.
        of: Reference,
        /// The argument's name.
        argument: String,
        /// What was typed so far.
        value: String,
        /// What was chosen before, JSON.
        context: String,
    },
}

/// What an argument belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The prompt of that name.
    Prompt(String),
    /// The template of resources with that text.
    Template(String),
}

impl Target {
    /// What it is about, for people: a name or a URI.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Tool { name, .. } | Self::Prompt { name, .. } => name,
            Self::Resource { uri } => uri,
            Self::Completion { of, .. } => match of {
                Reference::Prompt(name) | Reference::Template(name) => name,
            },
        }
    }
}
