//! What a run does, as its row keeps it. A row has two texts for that, made for tools: their name and their arguments.
//! What is no tool stands there as a method and its parameters, since no tool's name has a slash.

use std::collections::HashMap;

use longshore_catalog::tool::TaskMode;
use longshore_sandbox::target::Target;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const READ: &str = "resources/read";
const GET: &str = "prompts/get";

#[derive(Serialize, Deserialize)]
struct Read {
    uri: String,
}

#[derive(Serialize, Deserialize)]
struct Get {
    name: String,
    arguments: Box<RawValue>,
}

/// The two texts. A completion asks nothing and never waits, so that it has no row; it is told by its name in logs.
pub(crate) fn kept(target: &Target) -> (String, String) {
    let json =
        |params: Result<String, serde_json::Error>| params.expect("texts have a form in JSON");
    match target {
        Target::Tool { name, arguments } => (name.clone(), arguments.clone()),
        Target::Resource { uri } => {
            let params = Read { uri: uri.clone() };
            (READ.to_owned(), json(serde_json::to_string(&params)))
        }
        Target::Prompt { name, arguments } => {
            let arguments = RawValue::from_string(arguments.clone())
                .expect("the arguments of a prompt were written here");
            let params = Get {
                name: name.clone(),
                arguments,
            };
            (GET.to_owned(), json(serde_json::to_string(&params)))
        }
        Target::Completion { .. } => (target.name().to_owned(), "{}".to_owned()),
    }
}

/// What the two texts stand for; nothing if they were not written here.
pub(crate) fn of_kept(tool: &str, arguments: &str) -> Option<Target> {
    Some(match tool {
        READ => {
            let Read { uri } = serde_json::from_str(arguments).ok()?;
            Target::Resource { uri }
        }
        GET => {
            let Get { name, arguments } = serde_json::from_str(arguments).ok()?;
            Target::Prompt {
                name,
                arguments: arguments.get().to_owned(),
            }
        }
        name => {
            // Whatever a tool was called with was an object.
            let _object: HashMap<String, IgnoredAny> = serde_json::from_str(arguments).ok()?;
            Target::Tool {
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            }
        }
    })
}

/// When a run of it becomes a task, where that is not the tool's to say.
pub(crate) const NO_TOOLS_MODE: TaskMode = TaskMode::Never;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_row_keeps_leads_back() {
        let all = [
            Target::Tool {
                name: "t".to_owned(),
                arguments: r#"{"a":1}"#.to_owned(),
            },
            Target::Resource {
                uri: "test://\"a\"".to_owned(),
            },
            Target::Prompt {
                name: "p".to_owned(),
                arguments: r#"{"a":"1"}"#.to_owned(),
            },
        ];
        for target in all {
            let (tool, arguments) = kept(&target);
            assert_eq!(of_kept(&tool, &arguments), Some(target));
        }
        assert_eq!(of_kept(READ, "{}"), None);
        assert_eq!(of_kept(GET, r#"{"name":"p"}"#), None);
    }
}
