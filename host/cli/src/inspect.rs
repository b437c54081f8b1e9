//! `inspect`: what a component is, before anybody serves it.

use longshore_server::policy::limits::Limits;
use serde_json::Value;

use crate::alone::Which;
use crate::config::Options;
use crate::exit::Failure;
use crate::exit::{Exit, OrExit as _};
use crate::output::{cell, facts, line, member};
use crate::push::describe_component;
use crate::trace;
use crate::{Done, answered};

/// Shows what a component is: digest, tools, resources, prompts, imports, limits, and whether its runs last; needs no server.
#[derive(clap::Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    which: Which,
}

impl Inspect {
    pub(crate) async fn run(self) -> Result<Done, Failure> {
        trace::start(trace::PROMPT).or_exit(Exit::Usage)?;
        let config = self.which.told.config(Options::default())?;
        let mut component = self.which.alone(config).await?.component;
        // Nobody has installed it anywhere.
        if let Some(members) = component.as_object_mut() {
            members.shift_remove("installedAt");
            members.shift_remove("static");
            members.shift_remove("source");
            let is_durable = members["volatile"].as_array().is_none_or(Vec::is_empty);
            members.insert("durable".to_owned(), is_durable.into());
        }
        Ok(answered(component, describe))
    }
}

fn describe(component: &Value) -> String {
    let mut text = describe_component(component);
    for tool in component["tools"].as_array().into_iter().flatten() {
        text.push_str(&format!("\narguments of {}\n", cell(tool, "name")));
        text.push_str(&describe_schema(&tool["inputSchema"]));
        let needs: Vec<&str> = tool["requires"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !needs.is_empty() {
            text.push_str(&format!("  needs a client with {}\n", needs.join(", ")));
        }
    }
    text.push_str("\nlimits of a run, by their settings under limits.\n");
    let limits: Limits = serde_json::from_value(component["limits"].clone()).unwrap_or_default();
    let limits: Vec<(&str, Option<String>)> = limits
        .named()
        .map(|(name, value)| (name, Some(value.to_string())))
        .collect();
    for row in facts(&limits).lines() {
        text.push_str(&format!("  {row}\n"));
    }
    text.push_str(if component["durable"] == true {
        "\nruns are durable: one that dies with its server is resumed\n"
    } else {
        "\nruns are volatile: one that dies with its server is not resumed, for the reasons above\n"
    });
    text
}

/// The properties of a schema, one a line; what else it says is in its JSON.
fn describe_schema(schema: &Value) -> String {
    let none = serde_json::Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    if properties.is_empty() {
        return "  none\n".to_owned();
    }
    let mut text = String::new();
    for (name, property) in properties {
        let is_required = schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|required| required == name));
        let kind = match &property["type"] {
            Value::String(kind) => line(kind).into_owned(),
            Value::Null => "anything".to_owned(),
            kinds => line(&kinds.to_string()).into_owned(),
        };
        let optional = if is_required { "" } else { ", optional" };
        let about = member(property, "description")
            .map(|about| format!("  {about}"))
            .unwrap_or_default();
        text.push_str(&format!("  {} ({kind}{optional}){about}\n", line(name)));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_summed_up() {
        let schema = json!({
            "properties": { "a": { "type": "string", "description": "A\u{7}" }, "b": { "type": ["integer", "null"] }, "c": {} },
            "required": ["a"],
        });
        assert_eq!(
            describe_schema(&schema),
            "  a (string)  A\\u0007\n  b ([\"integer\",\"null\"], optional)\n  c (anything, optional)\n"
        );
        assert_eq!(describe_schema(&json!({})), "  none\n");
    }
}
