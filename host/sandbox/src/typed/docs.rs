//! What the author of a component wrote about its functions: section `package-docs`, as tools that make components
//! keep it. Whatever in it cannot be read is as if it were not there.

use std::collections::HashMap;

use serde::Deserialize;

/// The section.
pub(crate) const SECTION: &str = "package-docs";
/// The largest section that is looked at. Parsing one takes some times as much memory.
const MAX_BYTES: usize = 1 << 20;
/// The longest text of a function: it goes into the context of every model that sees the list.
const MAX_TEXT: u64 = 8 * 1024;
/// The first byte of a section says how the rest is written.
const VERSIONS: [u8; 2] = [0, 1];

/// Texts of functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Docs(HashMap<(Option<String>, String), String>);

#[derive(Deserialize)]
struct Package {
    #[serde(default)]
    worlds: HashMap<String, World>,
    #[serde(default)]
    interfaces: HashMap<String, Interface>,
}

#[derive(Deserialize)]
struct World {
    #[serde(default)]
    interfaces: HashMap<String, Interface>,
    #[serde(default)]
    interface_exports: HashMap<String, Interface>,
    #[serde(default)]
    funcs: HashMap<String, Text>,
    #[serde(default)]
    func_exports: HashMap<String, Text>,
}

#[derive(Deserialize)]
struct Interface {
    #[serde(default)]
    funcs: HashMap<String, Text>,
}

#[derive(Deserialize)]
struct Text {
    #[serde(default)]
    docs: Option<String>,
}

impl Docs {
    /// What a section says.
    pub(crate) fn read(section: &[u8]) -> Self {
        let mut docs = Self::default();
        let package = match section.split_first() {
            Some((version, json)) if VERSIONS.contains(version) && json.len() <= MAX_BYTES => {
                serde_json::from_slice::<Package>(json)
            }
            _ => return docs,
        };
        let Ok(package) = package else {
            return docs;
        };
        for (name, interface) in package.interfaces {
            docs.add(Some(&name), interface.funcs);
        }
        for world in package.worlds.into_values() {
            // What stands for exports alone goes first.
            docs.add(None, world.func_exports);
            docs.add(None, world.funcs);
            for (name, interface) in world.interface_exports.into_iter().chain(world.interfaces) {
                docs.add(Some(&name), interface.funcs);
            }
        }
        docs
    }

    fn add(&mut self, interface: Option<&str>, functions: HashMap<String, Text>) {
        for (name, Text { docs }) in functions {
            let Some(text) = docs.filter(|text| !text.trim().is_empty()) else {
                continue;
            };
            let text = crate::rules::shorten(text.trim(), MAX_TEXT);
            let key = (interface.map(str::to_owned), name);
            self.0.entry(key).or_insert(text);
        }
    }

    /// What it says of a function. A section is about one package and does not say which, so that interfaces are known
    /// by their own names.
    pub(super) fn of(&self, interface: Option<&str>, function: &str) -> Option<String> {
        let local = interface.map(|interface| {
            let local = interface.rsplit('/').next().unwrap_or(interface);
            local.split('@').next().unwrap_or(local).to_owned()
        });
        self.0.get(&(local, function.to_owned())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(json: &str) -> Vec<u8> {
        [&[1], json.as_bytes()].concat()
    }

    #[test]
    fn what_an_author_wrote_is_found_by_interface_and_function() {
        let docs = Docs::read(&section(
            r#"{"docs":"p","worlds":{"w":{"docs":"w","funcs":{"f":{"docs":" root "}},"interfaces":{"own":{"funcs":{"g":{"docs":"own"}}}}}},
                "interfaces":{"i":{"docs":"i","funcs":{"f":{"docs":"in i"},"h":{"stability":{}},"e":{"docs":" "}},"types":{"t":{"docs":"t"}}}}}"#,
        ));
        let rows = [
            (None, "f", Some("root")),
            (Some("a:b/i@1.0.0"), "f", Some("in i")),
            (Some("own"), "g", Some("own")),
            (Some("a:b/i"), "h", None),
            (Some("a:b/i"), "e", None),
            (Some("a:b/j"), "f", None),
            (None, "g", None),
        ];
        for (interface, function, text) in rows {
            assert_eq!(
                docs.of(interface, function).as_deref(),
                text,
                "{interface:?} {function}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_as_if_it_were_not_there() {
        let deep = format!("{{\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let text = |bytes: usize| {
            format!(
                r#"{{"interfaces":{{"i":{{"funcs":{{"f":{{"docs":"{}"}}}}}}}}}}"#,
                "x".repeat(bytes)
            )
        };
        let around = text(0).len();
        let large = text(30 << 20);
        for nothing in [
            "",
            "{",
            "[]",
            "{\"worlds\":[]}",
            &deep,
            &large,
            &text(MAX_BYTES - around + 1),
        ] {
            assert_eq!(Docs::read(&section(nothing)), Docs::default());
        }
        assert_eq!(Docs::read(&[]), Docs::default());
        assert_eq!(Docs::read(b"\x02{}"), Docs::default());
        assert_eq!(
            Docs::read(&section("{\"worlds\":{\"\u{0}\":1}}")),
            Docs::default()
        );
        let most = Docs::read(&section(&text(MAX_BYTES - around)));
        let kept = most.of(Some("i"), "f").unwrap();
        assert!(
            kept.len() as u64 <= MAX_TEXT && kept.len() > 8_000,
            "{}",
            kept.len()
        );
    }
}
