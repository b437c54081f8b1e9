//! `push` and `components`: what a server has, and giving it more.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Subcommand;
use longshore_server::policy::grant::Grant;
use longshore_server::policy::manifest::Manifest;
use longshore_server::policy::policy::Policy;
use longshore_server::policy::show::Lines;
use serde_json::Value;

use crate::admin::{Client, Reach, encode};
use crate::contents;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::output::{self, cell, facts, member, table};
use crate::project::component_at;
use crate::{Done, answered};

/// Uploads a component to a server.
#[derive(clap::Args)]
pub(crate) struct Push {
    /// The component, or the folder of a tool, which is built
    file: PathBuf,
    /// Its name on the server [default: the file's name without .wasm]
    #[arg(long)]
    name: Option<String>,
    /// Compile it again though it was refused not long ago for what that took
    #[arg(long)]
    again: bool,
    /// Only say what it would be and what it would have there
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Components of a server.
#[derive(Subcommand)]
pub(crate) enum Components {
    /// Lists them
    List {
        #[command(flatten)]
        reach: Reach,
    },
    /// Shows one
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        reach: Reach,
    },
    /// Takes one and its tools away; its calls go on to their end
    Remove {
        /// Its name
        name: String,
        /// Also delete the values that it keeps, which a component of that name would find again
        #[arg(long)]
        with_values: bool,
        #[command(flatten)]
        reach: Reach,
    },
}

impl Push {
    pub(crate) async fn run(self) -> Result<Done, Failure> {
        let client = Client::new(self.reach)?;
        let file = component_at(&self.file).await?;
        let name = match self.name {
            Some(name) => name,
            None => stem(&file).or_exit(Exit::Usage)?.to_owned(),
        };
        let reading = || format!("reading {}", file.display());
        let component = contents::read_aside(&file, contents::MOST_BYTES)
            .await
            .with_context(reading)
            .or_exit(Exit::Failed)?;
        let (again, dry_run) = (self.again, self.dry_run);
        let path = format!("{}?again={again}&dry_run={dry_run}", component_path(&name));
        let uploaded = client.upload(&path, component).await;
        let receipt = uploaded.map_err(|failure| refused(&file, failure))?;
        Ok(if dry_run {
            answered(receipt, describe_looked_at)
        } else {
            answered(receipt, describe_receipt)
        })
    }
}

impl Components {
    pub(crate) async fn run(self) -> Result<Done, Failure> {
        match self {
            Self::List { reach } => {
                let list = Client::new(reach)?.get("/v1/components").await?;
                Ok(answered(list, describe_list))
            }
            Self::Show { name, reach } => {
                let component = Client::new(reach)?.get(&component_path(&name)).await?;
                Ok(answered(component, describe_component))
            }
            Self::Remove {
                name,
                with_values,
                reach,
            } => {
                let path = format!("{}?with_values={with_values}", component_path(&name));
                Client::new(reach)?.delete(&path).await?;
                let document = serde_json::json!({ "name": name, "removed": true });
                Ok(answered(document, |document| {
                    format!("{} is removed", cell(document, "name"))
                }))
            }
        }
    }
}

/// A refusal with its reason, under which the list of remedies has more to say.
fn refused(file: &Path, failure: Failure) -> Failure {
    match failure.exit {
        Exit::Failed => {
            let Failure {
                exit,
                reason,
                error,
            } = failure;
            let error = anyhow!("{} is refused ({reason}): {error:#}", file.display());
            Failure {
                exit,
                reason,
                error,
            }
        }
        Exit::Ok | Exit::Usage | Exit::Unreachable | Exit::CannotStart | Exit::Cancelled => failure,
    }
}

fn component_path(name: &str) -> String {
    format!("/v1/components/{}", encode(name))
}

/// The name of a component that is told by its file.
pub(crate) fn stem(file: &Path) -> anyhow::Result<&str> {
    let stem = file
        .file_name()
        .and_then(|name| name.to_str())
        .with_context(|| format!("{} has no name that could be used", file.display()))?;
    Ok(stem.strip_suffix(".wasm").unwrap_or(stem))
}

/// What would have come of an upload.
fn describe_looked_at(component: &Value) -> String {
    let name = cell(component, "name");
    format!(
        "{name} could be installed; nothing was\n{}",
        describe_component(component)
    )
}

fn describe_receipt(receipt: &Value) -> String {
    let done = if receipt["changed"] == false {
        "is there already as it is"
    } else {
        "is installed"
    };
    let mut text = format!("{} {done}\n", cell(receipt, "name"));
    text.push_str(&facts(&[
        ("digest", member(receipt, "digest")),
        ("tools", Some(join(&receipt["tools"]))),
        ("resources", some(&receipt["resources"])),
        ("templates", some(&receipt["templates"])),
        ("prompts", some(&receipt["prompts"])),
    ]));
    for warning in receipt["warnings"].as_array().into_iter().flatten() {
        text.push_str(&format!(
            "warning: {}\n",
            output::line(warning.as_str().unwrap_or_default())
        ));
    }
    for left in left_out(receipt) {
        text.push_str(&format!("not a tool: {left}\n"));
    }
    text
}

/// The functions that are no tools, one a line.
fn left_out(component: &Value) -> impl Iterator<Item = String> {
    let left = component["leftOut"].as_array().into_iter().flatten();
    left.map(|left| format!("{}: {}", cell(left, "function"), cell(left, "why")))
}

fn join(list: &Value) -> String {
    let words: Vec<_> = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(output::line)
        .collect();
    if words.is_empty() {
        "-".to_owned()
    } else {
        words.join(", ")
    }
}

/// The same, of what not every component has.
fn some(list: &Value) -> Option<String> {
    list.as_array()
        .is_some_and(|list| !list.is_empty())
        .then(|| join(list))
}

fn count(component: &Value, member: &str) -> String {
    let list = component[member].as_array();
    list.map_or(0, Vec::len).to_string()
}

fn tool_names(component: &Value) -> String {
    let names: Vec<String> = component["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|tool| cell(tool, "name"))
        .collect();
    if names.is_empty() {
        "-".to_owned()
    } else {
        names.join(", ")
    }
}

fn describe_list(list: &Value) -> String {
    let components = list["components"].as_array().into_iter().flatten();
    let rows: Vec<[String; 7]> = components
        .map(|component| {
            [
                cell(component, "name"),
                tool_names(component),
                count(component, "resources"),
                count(component, "templates"),
                count(component, "prompts"),
                cell(component, "installedAt"),
                // Enough to tell one from another; all of it is in `components show` and --json.
                cell(component, "digest").chars().take(19).collect(),
            ]
        })
        .collect();
    let nobodys = list["grantedToNobody"].as_array().into_iter().flatten();
    let nobodys = nobodys.filter_map(Value::as_str).map(|name| {
        let name = output::line(name);
        format!("{name} has no component, and a grant: `longshore grant {name} --revoke` takes it back\n")
    });
    let broken: Vec<String> = list["broken"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|broken| {
            format!(
                "{} cannot be served ({}): {}\n",
                cell(broken, "name"),
                cell(broken, "reason"),
                cell(broken, "message")
            )
        })
        .chain(nobodys)
        .collect();
    let mut text = if rows.is_empty() {
        "no components: upload one with `longshore push FILE`\n".to_owned()
    } else {
        let heads = [
            "NAME",
            "TOOLS",
            "RESOURCES",
            "TEMPLATES",
            "PROMPTS",
            "INSTALLED",
            "DIGEST",
        ];
        table(heads, &rows)
    };
    text.extend(broken);
    text
}

/// What a component keeps beyond its calls, if it keeps anything.
fn kept(values: &Value) -> Option<String> {
    let count = |member: &str| values[member].as_u64().filter(|count| *count > 0);
    let keys = count("keys")?;
    Some(format!(
        "{keys} keys, {} bytes with their values",
        count("bytes").unwrap_or_default()
    ))
}

/// A component as the admin API shows it.
pub(crate) fn describe_component(component: &Value) -> String {
    let mut text = facts(&[
        ("name", member(component, "name")),
        ("digest", member(component, "digest")),
        (
            "size",
            component["size"]
                .as_u64()
                .map(|size| format!("{size} bytes")),
        ),
        (
            "shape",
            component["shape"].as_str().map(|shape| {
                match shape {
                    "tools" => "it lists its tools",
                    "library" => "a library: each function that it exports is a tool",
                    "command" => "a command: it is run as one tool",
                    other => other,
                }
                .to_owned()
            }),
        ),
        ("installed", member(component, "installedAt")),
        (
            "from",
            component["source"].as_str().map(|source| {
                match source {
                    "command-line" => "the server's command line",
                    "directory" => "the server's components directory",
                    "upload" => "an upload",
                    other => other,
                }
                .to_owned()
            }),
        ),
        ("keeps", kept(&component["values"])),
    ]);
    for tool in component["tools"].as_array().into_iter().flatten() {
        text.push_str(&format!(
            "\ntool {}  (task mode: {})\n  {}\n",
            cell(tool, "name"),
            cell(tool, "taskMode"),
            cell(tool, "description")
        ));
    }
    let mut left_out = left_out(component).peekable();
    if left_out.peek().is_some() {
        text.push_str("\nexported and not a tool\n");
    }
    for left in left_out {
        text.push_str(&format!("  {left}\n"));
    }
    text.push_str(&describe_library(component));
    text.push_str(&describe_policy(&component["policy"]));
    for (heading, member) in [
        ("imports", "imports"),
        ("a run cannot be resumed, because", "volatile"),
    ] {
        let mut lines = component[member]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .peekable();
        if lines.peek().is_some() {
            text.push_str(&format!("\n{heading}\n"));
        }
        for line in lines {
            text.push_str(&format!("  {}\n", output::line(line)));
        }
    }
    text
}

/// What a component asks for, is granted, and has.
pub(crate) fn describe_policy(policy: &Value) -> String {
    let asked = serde_json::from_value::<Option<Manifest>>(policy["asked"].clone()).ok();
    let granted = serde_json::from_value::<Grant>(policy["granted"].clone());
    let in_force = Policy::of_kept(&policy["inForce"].to_string());
    let mut text = String::new();
    match asked.flatten() {
        Some(asked) => text.push_str(&section("asks for", &asked.lines())),
        None => text.push_str("\nasks for\n  what it is granted: it has no manifest\n"),
    }
    if let Ok(granted) = granted {
        text.push_str(&section("is granted", &granted.lines()));
    }
    if let Ok(in_force) = in_force {
        text.push_str(&section("has", &in_force.lines()));
    }
    text
}

fn section(heading: &str, lines: &Lines) -> String {
    let mut text = format!("\n{heading}\n");
    if lines.is_empty() {
        text.push_str("  nothing\n");
    }
    for (word, line) in lines {
        text.push_str(&format!("  {word}  {}\n", output::line(line)));
    }
    text
}

/// What there is to read and to fill in.
fn describe_library(component: &Value) -> String {
    let items = |member: &str| component[member].as_array().into_iter().flatten();
    let about = |item: &Value| {
        let description = member(item, "description");
        description.map_or_else(String::new, |text| format!("  {text}\n"))
    };
    let mime = |item: &Value| {
        let mime_type = member(item, "mimeType");
        mime_type.map_or_else(String::new, |text| format!("  ({text})"))
    };
    let mut text = String::new();
    for resource in items("resources") {
        let (uri, mime) = (cell(resource, "uri"), mime(resource));
        text.push_str(&format!("\nresource {uri}{mime}\n{}", about(resource)));
    }
    for template in items("templates") {
        let (uri, mime) = (cell(template, "uriTemplate"), mime(template));
        text.push_str(&format!("\ntemplate {uri}{mime}\n{}", about(template)));
    }
    for prompt in items("prompts") {
        text.push_str(&format!(
            "\nprompt {}\n{}",
            cell(prompt, "name"),
            about(prompt)
        ));
        for argument in prompt["arguments"].as_array().into_iter().flatten() {
            let optional = if argument["required"] == true {
                ""
            } else {
                " (optional)"
            };
            let name = cell(argument, "name");
            let about = member(argument, "description")
                .map(|about| format!("  {about}"))
                .unwrap_or_default();
            text.push_str(&format!("  {name}{optional}{about}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_from_files() {
        for (file, name) in [
            ("a/hello.wasm", "hello"),
            ("hello", "hello"),
            ("x.component.wasm", "x.component"),
        ] {
            assert_eq!(stem(Path::new(file)).unwrap(), name);
        }
        assert!(stem(Path::new("..")).is_err());
    }

    #[test]
    fn a_refusal_says_its_reason() {
        let failure = |exit| Failure {
            exit,
            reason: "import".to_owned(),
            error: anyhow!("no"),
        };
        let file = Path::new("x.wasm");
        assert_eq!(
            refused(file, failure(Exit::Failed)).to_string(),
            "x.wasm is refused (import): no"
        );
        assert_eq!(refused(file, failure(Exit::Unreachable)).to_string(), "no");
    }

    #[test]
    fn receipts_for_people() {
        let receipt = json!({ "name": "hello", "digest": "sha256:00", "tools": ["a", "b"], "volatile": [], "warnings": ["w\u{7}"], "changed": true });
        assert_eq!(
            describe_receipt(&receipt),
            "hello is installed\ndigest  sha256:00\ntools   a, b\nwarning: w\\u0007\n"
        );
        let again = json!({ "name": "hello", "tools": [], "changed": false });
        assert_eq!(
            describe_receipt(&again),
            "hello is there already as it is\ntools  -\n"
        );
        let readable = json!({ "name": "book", "tools": [], "resources": ["t:a", "t:b"], "templates": [], "prompts": ["p"] });
        assert_eq!(
            describe_receipt(&readable),
            "book is installed\ntools      -\nresources  t:a, t:b\nprompts    p\n"
        );
    }

    #[test]
    fn what_is_read_and_filled_in_is_shown_with_what_it_is() {
        let component = json!({
            "resources": [{ "uri": "t:a", "mimeType": "text/plain", "description": "A\u{7}" }, { "uri": "t:b" }],
            "templates": [{ "uriTemplate": "t:{x}", "description": "X" }],
            "prompts": [{
                "name": "p",
                "description": "P",
                "arguments": [{ "name": "a", "description": "What", "required": true }, { "name": "b", "required": false }],
            }],
        });
        assert_eq!(
            describe_library(&component),
            "\nresource t:a  (text/plain)\n  A\\u0007\n\nresource t:b\n\ntemplate t:{x}\n  X\n\nprompt p\n  P\n  a  What\n  b (optional)\n"
        );
        assert_eq!(describe_library(&json!({})), "");
    }

    #[test]
    fn lists_for_people() {
        let list = json!({
            "components": [{
                "name": "hello", "digest": "sha256:00", "installedAt": "t", "tools": [{ "name": "hello" }],
                "resources": [{}, {}], "templates": [], "prompts": [{}],
            }],
            "broken": [{ "name": "old", "reason": "host", "message": "gone" }],
        });
        let text = describe_list(&list);
        assert!(
            text.ends_with(
                "hello  hello  2          0          1        t          sha256:00\nold cannot be served (host): gone\n"
            ),
            "{text}"
        );
        assert!(
            describe_list(&json!({ "components": [], "broken": [] })).contains("longshore push")
        );
    }
}
