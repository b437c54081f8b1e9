//! Where a schema's subschemas are, and which of them apply to the same value.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Dialect;
use crate::json::cut;

/// The longest chain of subschemas that apply to one and the same value. Together with the depth of a value it bounds
/// the stack that checking needs.
pub(super) const MAX_CHAIN: usize = 32;

/// Keywords whose value is one subschema, applied to the same value.
const SAME_ONE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords whose value is a list of subschemas, applied to the same value.
const SAME_LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords whose value is a map of subschemas, applied to the same value.
const SAME_MAP: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose value is one subschema, applied to parts of the value.
const PART_ONE: [&str; 8] = [
    "additionalProperties",
    "additionalItems",
    "contains",
    "contentSchema",
    "items",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of subschemas, applied to parts of the value.
const PART_LIST: [&str; 2] = ["items", "prefixItems"];
/// Keywords whose value is a map of subschemas, applied to parts of the value.
const PART_MAP: [&str; 2] = ["properties", "patternProperties"];
/// Keywords whose value is a map of subschemas that apply only where a reference says so.
pub(super) const STORE_MAP: [&str; 2] = ["$defs", "definitions"];

const REFERENCES: [&str; 2] = ["$ref", "$dynamicRef"];
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];

/// How a subschema is reached from the one that holds it.
#[derive(Clone, Copy)]
enum Step<'s> {
    Same,
    Property(&'s str),
    /// Any other part of the value, or no part until a reference says so.
    Apart,
}

/// One subschema.
pub(super) struct Node<'s> {
    /// Its JSON pointer from the root.
    pub(super) pointer: String,
    pub(super) value: &'s Value,
    /// The names of the properties that lead here, if nothing but `properties` does.
    pub(super) properties: Option<Vec<&'s str>>,
    /// The subschemas that apply to the same value.
    same: Vec<usize>,
    /// What its references point at, by keyword.
    targets: Vec<(&'static str, usize)>,
}

impl Node<'_> {
    /// Everything that its references point at.
    pub(super) fn targets(&self) -> impl Iterator<Item = usize> {
        self.targets.iter().map(|(_, target)| *target)
    }

    /// Where the reference under this keyword points.
    pub(super) fn target(&self, keyword: &str) -> Option<usize> {
        self.targets
            .iter()
            .find_map(|(name, target)| (*name == keyword).then_some(*target))
    }
}

/// All subschemas of a schema; the root is the first.
pub(super) struct Shape<'s> {
    pub(super) nodes: Vec<Node<'s>>,
    by_address: HashMap<*const Value, usize>,
}

impl<'s> Shape<'s> {
    /// Finds the subschemas and resolves the references, or says what is wrong with them.
    pub(super) fn of(root: &'s Value, dialect: Dialect) -> Result<Self, String> {
        let mut shape = Self {
            nodes: Vec::new(),
            by_address: HashMap::new(),
        };
        shape.add(root, String::new(), Some(Vec::new()));
        let mut next = 0;
        while next < shape.nodes.len() {
            shape.visit(next, dialect)?;
            next += 1;
        }
        shape.resolve(root)?;
        shape.check_chains()?;
        Ok(shape)
    }

    /// Whether the value of that keyword is a list that may hold subschemas.
    pub(super) fn holds_list(keyword: &str) -> bool {
        SAME_LIST.contains(&keyword) || PART_LIST.contains(&keyword)
    }

    /// Whether the value of that keyword is a map that may hold subschemas.
    pub(super) fn holds_map(keyword: &str) -> bool {
        SAME_MAP.contains(&keyword) || PART_MAP.contains(&keyword) || STORE_MAP.contains(&keyword)
    }

    /// The subschema that this value is.
    pub(super) fn index_of(&self, value: &Value) -> Option<usize> {
        self.by_address.get(&std::ptr::from_ref(value)).copied()
    }

    fn add(
        &mut self,
        value: &'s Value,
        pointer: String,
        properties: Option<Vec<&'s str>>,
    ) -> usize {
        let index = self.nodes.len();
        self.by_address.insert(std::ptr::from_ref(value), index);
        self.nodes.push(Node {
            pointer,
            value,
            properties,
            same: Vec::new(),
            targets: Vec::new(),
        });
        index
    }

    fn visit(&mut self, index: usize, dialect: Dialect) -> Result<(), String> {
        let Some(members) = self.nodes[index].value.as_object() else {
            return Ok(());
        };
        if index > 0 {
            self.check_inner(index, members)?;
        }
        // Draft-07 ignores what stands beside a `$ref`.
        let only_ref = dialect == Dialect::Draft7 && members.contains_key("$ref");
        for (step, path, child) in children(members) {
            let pointer = format!("{}{path}", self.nodes[index].pointer);
            let properties = match (step, &self.nodes[index].properties) {
                (Step::Property(name), Some(names)) if !only_ref => {
                    Some(names.iter().copied().chain([name]).collect())
                }
                _ => None,
            };
            let child = self.add(child, pointer, properties);
            if matches!(step, Step::Same) && !only_ref {
                self.nodes[index].same.push(child);
            }
        }
        Ok(())
    }

    /// An inner `$id` or `$schema` would change what `#` means below it.
    fn check_inner(&self, index: usize, members: &Map<String, Value>) -> Result<(), String> {
        let here = self.place(index);
        if members.contains_key("$id") {
            return Err(format!(
                "has an `$id` at {here}; keep the subschema under `$defs` and refer to it by `#/$defs/NAME`"
            ));
        }
        if members.contains_key("$schema") {
            return Err(format!(
                "has a `$schema` at {here}; only the root may name the dialect"
            ));
        }
        Ok(())
    }

    fn resolve(&mut self, root: &'s Value) -> Result<(), String> {
        let anchors = self.anchors()?;
        for index in 0..self.nodes.len() {
            let Some(members) = self.nodes[index].value.as_object() else {
                continue;
            };
            for keyword in REFERENCES {
                let Some(reference) = members.get(keyword).and_then(Value::as_str) else {
                    continue;
                };
                let shown = cut(reference, 80);
                let here = self.place(index);
                let Some(fragment) = reference.strip_prefix('#') else {
                    return Err(format!(
                        "refers to {shown:?} at {here}; only references inside the schema are followed, so copy it \
                         under `$defs` and use `#/$defs/NAME`"
                    ));
                };
                let fragment = percent_decoded(fragment);
                let target = if fragment.is_empty() || fragment.starts_with('/') {
                    root.pointer(&fragment)
                        .and_then(|value| self.index_of(value))
                } else {
                    anchors.get(fragment.as_str()).copied()
                };
                let Some(target) = target else {
                    return Err(format!(
                        "refers to {shown:?} at {here}, where no subschema is; put one under `$defs`"
                    ));
                };
                self.nodes[index].targets.push((keyword, target));
                self.nodes[index].same.push(target);
            }
        }
        Ok(())
    }

    fn anchors(&self) -> Result<HashMap<&'s str, usize>, String> {
        let mut anchors = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            for keyword in ANCHORS {
                let Some(name) = node.value.get(keyword).and_then(Value::as_str) else {
                    continue;
                };
                if anchors
                    .insert(name, index)
                    .is_some_and(|other| other != index)
                {
                    return Err(format!(
                        "has two anchors named {:?}; rename one",
                        cut(name, 80)
                    ));
                }
            }
        }
        Ok(anchors)
    }

    /// Refuses subschemas that come back to themselves without going into a part of the value: they say nothing, and
    /// validators disagree about them. Also refuses chains that are too long.
    fn check_chains(&self) -> Result<(), String> {
        let mut waiting = vec![0_usize; self.nodes.len()];
        for node in &self.nodes {
            for &target in &node.same {
                waiting[target] += 1;
            }
        }
        let mut length = vec![1_usize; self.nodes.len()];
        let mut ready: Vec<usize> = (0..waiting.len()).filter(|&n| waiting[n] == 0).collect();
        while let Some(index) = ready.pop() {
            if length[index] > MAX_CHAIN {
                return Err(format!(
                    "applies more than {MAX_CHAIN} subschemas inside each other to one value, ending at {}; flatten it",
                    self.place(index)
                ));
            }
            for &target in &self.nodes[index].same {
                length[target] = length[target].max(length[index] + 1);
                waiting[target] -= 1;
                if waiting[target] == 0 {
                    ready.push(target);
                }
            }
        }
        match waiting.iter().position(|&count| count > 0) {
            Some(index) => Err(format!(
                "refers to itself without a property or an item in between, at {}; remove that reference",
                self.place(index)
            )),
            None => Ok(()),
        }
    }

    fn place(&self, index: usize) -> String {
        super::place(&self.nodes[index].pointer)
    }
}

/// The subschemas that an object holds, with the way to each.
fn children(members: &Map<String, Value>) -> Vec<(Step<'_>, String, &Value)> {
    let mut found = Vec::new();
    for (keyword, value) in members {
        let keyword = keyword.as_str();
        if SAME_ONE.contains(&keyword) && is_schema(value) {
            found.push((Step::Same, format!("/{keyword}"), value));
        } else if PART_ONE.contains(&keyword) && is_schema(value) {
            found.push((Step::Apart, format!("/{keyword}"), value));
        } else if Shape::holds_list(keyword) {
            let step = if SAME_LIST.contains(&keyword) {
                Step::Same
            } else {
                Step::Apart
            };
            for (position, item) in value.as_array().into_iter().flatten().enumerate() {
                if is_schema(item) {
                    found.push((step, format!("/{keyword}/{position}"), item));
                }
            }
        } else if Shape::holds_map(keyword) {
            for (name, item) in value.as_object().into_iter().flatten() {
                let step = match keyword {
                    "properties" => Step::Property(name),
                    _ if SAME_MAP.contains(&keyword) => Step::Same,
                    _ => Step::Apart,
                };
                if is_schema(item) {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    found.push((step, format!("/{keyword}/{name}"), item));
                }
            }
        }
    }
    found
}

fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

/// A URI fragment as it was before encoding. Broken escapes stay: they then name nothing.
fn percent_decoded(fragment: &str) -> String {
    let bytes = fragment.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = fragment.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
