//! The first tool of a project: small, and with what most tools need.

use super::{Language, OURS};

/// The files of a new project.
pub(super) fn files(name: &str, language: Language) -> Vec<(&'static str, String)> {
    let mut files = vec![(".gitignore", ignored())];
    files.extend(match language {
        Language::Rust => vec![
            ("Cargo.toml", cargo(name)),
            (".cargo/config.toml", CARGO_CONFIG.to_owned()),
            ("src/lib.rs", RUST.replace("NAME", name)),
        ],
        Language::Python => vec![
            ("tool.py", PYTHON.replace("NAME", &identifier(name))),
            ("pyrightconfig.json", pyright()),
        ],
        Language::TypeScript => vec![
            ("tool.ts", TYPESCRIPT.replace("NAME", name)),
            ("tsconfig.json", tsconfig()),
        ],
        Language::JavaScript => {
            let untyped = TYPESCRIPT.replace("<{ name: string }>", "");
            vec![("tool.js", untyped.replace("NAME", name))]
        }
    });
    files
}

/// The same as a name in Python, where a tool is called like its function.
fn identifier(name: &str) -> String {
    let name = name.replace('-', "_");
    let is_taken =
        KEYWORDS.contains(&name.as_str()) || name.starts_with(|first: char| first.is_ascii_digit());
    if is_taken {
        format!("tool_{name}")
    } else {
        name
    }
}

/// Words of Python that no function can have, and names that the template uses.
const KEYWORDS: [&str; 37] = [
    "and",
    "as",
    "assert",
    "async",
    "await",
    "break",
    "class",
    "continue",
    "def",
    "del",
    "elif",
    "else",
    "except",
    "finally",
    "for",
    "from",
    "global",
    "if",
    "import",
    "in",
    "is",
    "lambda",
    "name",
    "nonlocal",
    "not",
    "or",
    "pass",
    "raise",
    "return",
    "str",
    "task",
    "tool",
    "try",
    "while",
    "with",
    "yield",
    "longshore",
];

fn ignored() -> String {
    format!("/{OURS}/\n/target/\n/node_modules/\n__pycache__/\n*.wasm\n")
}

fn cargo(name: &str) -> String {
    format!(
        r#"[package]
name = "{name}"
version = "0.1.0"
edition = "2024"

[lib]
crate-type = ["cdylib"]

[dependencies]
longshore-guest = {{ path = "{OURS}/guests/longshore-guest" }}

[profile.release]
opt-level = "s"
lto = true
codegen-units = 1
strip = "debuginfo"

[workspace]
exclude = ["{OURS}"]
"#
    )
}

const CARGO_CONFIG: &str = r#"# A small stack keeps all that a small tool uses close together, so that the server has little to clean up after a call.
[target.wasm32-wasip2]
rustflags = ["-C", "link-arg=-zstack-size=65536"]
"#;

const RUST: &str = r#"use longshore_guest::{Context, tool};

/// Greets somebody by name.
#[tool(name = "NAME")]
fn greet(
    ctx: &Context,
    /** Who is greeted. */
    name: String,
) -> String {
    ctx.status("thinking of a greeting");
    format!("Hello, {name}!")
}
"#;

const PYTHON: &str = r#"from longshore import task, tool


@tool()
def NAME(name: str) -> str:
    """Greets somebody by name.

    Args:
        name: Who is greeted.
    """
    task.status("thinking of a greeting")
    return f"Hello, {name}!"
"#;

const TYPESCRIPT: &str = r#"import { task, tool } from "longshore";

tool<{ name: string }>({
  name: "NAME",
  description: "Greets somebody by name.",
  input: { name: { type: "string", description: "Who is greeted." } },
  run({ name }) {
    task.status("thinking of a greeting");
    return `Hello, ${name}!`;
  },
});
"#;

/// So that an editor finds the helper.
fn pyright() -> String {
    format!("{{ \"extraPaths\": [\"{OURS}/guests/longshore-python\"] }}\n")
}

/// So that an editor finds the helper.
fn tsconfig() -> String {
    let helper = format!("{OURS}/guests/longshore-typescript");
    format!(
        r#"{{
  "extends": "./{helper}/tsconfig.json",
  "compilerOptions": {{ "paths": {{ "longshore": ["./{helper}/longshore.ts"] }} }},
  "files": ["./{helper}/environment.ts", "./{helper}/imports.d.ts", "tool.ts"],
  "include": []
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_python_can_have() {
        for (name, expected) in [
            ("greet", "greet"),
            ("my-tool", "my_tool"),
            ("import", "tool_import"),
            ("tool", "tool_tool"),
            ("2nd", "tool_2nd"),
        ] {
            assert_eq!(identifier(name), expected);
        }
    }
}
