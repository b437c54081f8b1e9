//! Why an upload was refused: one word for programs, one line for people.

use std::fmt;

/// An upload that cannot become a component of this node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Refusal {
    /// Which kind.
    pub reason: Reason,
    /// One line that names the thing and, where there is one, the remedy: no host paths.
    pub message: String,
    /// Whether the same bytes may well be accepted a moment later: it was the machine, not the upload.
    pub is_passing: bool,
}

impl Refusal {
    /// A refusal for a reason. Whatever the message quotes, it becomes one bounded line.
    pub fn new(reason: Reason, message: impl AsRef<str>) -> Self {
        Self {
            reason,
            message: one_line(message.as_ref()),
            is_passing: reason == Reason::Host,
        }
    }

    /// The same, of which the upload is not to blame.
    #[must_use]
    pub(crate) fn passing(self) -> Self {
        Self {
            is_passing: true,
            ..self
        }
    }
}

/// Enough to name a thing and its remedy; names inside an upload can be far longer.
const MESSAGE_CHARS: usize = 300;

fn one_line(text: &str) -> String {
    let mut line: String = text
        .trim()
        .chars()
        .take(MESSAGE_CHARS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.trim().chars().nth(MESSAGE_CHARS).is_some() {
        line.push('…');
    }
    line
}

/// The kinds of refusal; all but the last are the upload's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// More bytes than an upload may have.
    TooLarge,
    /// Bytes that are no WebAssembly at all.
    NotWasm,
    /// A core module, which has to be wrapped as a component.
    CoreModule,
    /// Native code, which is only ever made here.
    Precompiled,
    /// WebAssembly that breaks the rules of its format.
    Malformed,
    /// Types nested too deeply.
    TypeDepth,
    /// Types too large when written out.
    TypeSize,
    /// More instances than one component may create.
    TooManyInstances,
    /// More functions, imports, exports or other items than one component may hold.
    TooManyFunctions,
    /// A function too large to be compiled in reasonable time.
    FunctionSize,
    /// A memory that starts larger than it may ever be.
    MemoryMin,
    /// A table that starts larger than it may ever be.
    TableMin,
    /// A feature of WebAssembly that is switched off here.
    FeatureOff,
    /// An import that nothing here provides.
    Import,
    /// Exports or imports that do not fit the interface of a tool.
    World,
    /// A manifest that cannot be understood.
    Manifest,
    /// The component would not list its tools.
    ListTools,
    /// The component would not list its resources.
    ListResources,
    /// The component would not list its templates of resources.
    ListTemplates,
    /// The component would not list its prompts.
    ListPrompts,
    /// The component could not be started.
    Init,
    /// Compiling took more time or memory than it may.
    CompileLimit,
    /// The compiler died of it.
    CompileCrashed,
    /// Our own fault.
    Host,
}

impl Reason {
    /// Every reason there is.
    pub const ALL: [Self; 24] = [
        Self::TooLarge,
        Self::NotWasm,
        Self::CoreModule,
        Self::Precompiled,
        Self::Malformed,
        Self::TypeDepth,
        Self::TypeSize,
        Self::TooManyInstances,
        Self::TooManyFunctions,
        Self::FunctionSize,
        Self::MemoryMin,
        Self::TableMin,
        Self::FeatureOff,
        Self::Import,
        Self::World,
        Self::Manifest,
        Self::ListTools,
        Self::ListResources,
        Self::ListTemplates,
        Self::ListPrompts,
        Self::Init,
        Self::CompileLimit,
        Self::CompileCrashed,
        Self::Host,
    ];

    /// The reason of a word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }

    /// The word for programs, which never changes.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too-large",
            Self::NotWasm => "not-wasm",
            Self::CoreModule => "core-module",
            Self::Precompiled => "precompiled",
            Self::Malformed => "malformed",
            Self::TypeDepth => "type-depth",
            Self::TypeSize => "type-size",
            Self::TooManyInstances => "too-many-instances",
            Self::TooManyFunctions => "too-many-functions",
            Self::FunctionSize => "function-size",
            Self::MemoryMin => "memory-min",
            Self::TableMin => "table-min",
            Self::FeatureOff => "feature-off",
            Self::Import => "import",
            Self::World => "world",
            Self::Manifest => "manifest",
            Self::ListTools => "list-tools",
            Self::ListResources => "list-resources",
            Self::ListTemplates => "list-templates",
            Self::ListPrompts => "list-prompts",
            Self::Init => "init",
            Self::CompileLimit => "compile-limit",
            Self::CompileCrashed => "compile-crashed",
            Self::Host => "host",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::{MESSAGE_CHARS, Reason, Refusal};

    #[test]
    fn every_word_leads_back_to_its_reason() {
        for reason in Reason::ALL {
            assert_eq!(Reason::of(reason.as_str()), Some(reason));
        }
        assert_eq!(Reason::of("no-such-word"), None);
    }

    #[test]
    fn a_message_is_one_bounded_line() {
        let refusal = Refusal::new(Reason::Import, format!("a\n\u{1b}[31m{}", "é".repeat(1000)));
        assert!(
            !refusal.message.contains(char::is_control),
            "{}",
            refusal.message
        );
        assert_eq!(refusal.message.chars().count(), MESSAGE_CHARS + 1);
        assert!(refusal.to_string().starts_with("import: a "));
    }
}
