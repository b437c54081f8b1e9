//! Components that are no tools by themselves and export functions of their own: each function becomes a tool.
//!
//! [`of`] finds the functions and gives them names, `schema` says in JSON Schema what their types are, `signature` says
//! it in WIT for people, `docs` finds what their author wrote about them, `read` makes values of JSON and `write`
//! makes JSON of values.

pub(crate) mod docs;
mod names;
mod read;
mod schema;
mod signature;
mod write;

use wasmtime::component::types::{ComponentFunc, ComponentItem, Type};
use wasmtime::component::{Component, ComponentExportIndex, Val};

use self::docs::Docs;
use self::names::Place;
use crate::ending::Fault;
use crate::offer::{LeftOut, Mode, Tool};
use crate::output::Answer;

/// The most tools that the functions of one component become: a registry takes no more.
pub(crate) const MAX_FUNCTIONS: usize = 128;
/// The most functions that are named as left out: enough to see why.
const MAX_LEFT_OUT: usize = 64;
/// The schemas of one component together, in bytes: as much as a component could list by itself.
const SCHEMA_BYTES: usize = 4 << 20;

/// The functions of one component.
pub(crate) struct Typed {
    functions: Vec<Function>,
    left_out: Vec<LeftOut>,
}

/// One that can be a tool.
struct Function {
    name: String,
    /// The interface that exports it, unless the component does so itself.
    interface: Option<String>,
    function: String,
    index: ComponentExportIndex,
    kind: ComponentFunc,
}

/// More functions than can be tools.
pub(crate) struct TooMany(pub(crate) usize);

/// Whether an export of that name is for others than us: it may hold functions of the component's own.
pub(crate) fn may_be(export: &str) -> bool {
    !export.starts_with("wasi:") && !export.starts_with("longshore:tool/")
}

/// The functions that a component exports by itself and in its interfaces.
pub(crate) fn of(component: &Component) -> Result<Typed, TooMany> {
    let engine = component.engine();
    let mut found = Vec::new();
    let mut left_out = Vec::new();
    let mut look = |interface: Option<(&str, &ComponentExportIndex)>, name: &str, kind| {
        let at = Place {
            interface: interface.map(|(name, _)| name),
            function: name,
        };
        if let Some(why) = why_not(&kind) {
            left_out.push(LeftOut {
                function: at.to_string(),
                why: why.to_owned(),
            });
            return;
        }
        let instance = interface.map(|(_, index)| index);
        if let Some(index) = component.get_export_index(instance, name) {
            found.push(Function {
                name: String::new(),
                interface: at.interface.map(str::to_owned),
                function: name.to_owned(),
                index,
                kind,
            });
        }
    };
    for (export, item) in component.component_type().exports(engine) {
        if !may_be(export) {
            continue;
        }
        match item.ty {
            ComponentItem::ComponentFunc(kind) => look(None, export, kind),
            ComponentItem::ComponentInstance(instance) => {
                let Some(index) = component.get_export_index(None, export) else {
                    continue;
                };
                for (name, item) in instance.exports(engine) {
                    if let ComponentItem::ComponentFunc(kind) = item.ty {
                        look(Some((export, &index)), name, kind);
                    }
                }
            }
            _ => {}
        }
    }
    if found.len() > MAX_FUNCTIONS {
        return Err(TooMany(found.len()));
    }
    let places: Vec<Place<'_>> = found.iter().map(Function::place).collect();
    let names = names::of(&places);
    let mut functions = Vec::with_capacity(found.len());
    for (mut function, name) in found.into_iter().zip(names) {
        match name {
            Some(name) => {
                function.name = name;
                functions.push(function);
            }
            None => left_out.push(LeftOut {
                function: function.place().to_string(),
                why: "its name, once short enough, is that of another one".to_owned(),
            }),
        }
    }
    Ok(Typed {
        functions,
        left_out,
    })
}

/// Why a function cannot be a tool by what it takes and returns.
fn why_not(kind: &ComponentFunc) -> Option<&'static str> {
    if kind.async_() {
        return Some("it is async");
    }
    let mut left = schema::MAX_TYPES;
    let params = kind.params().map(|(_, kind)| kind);
    params
        .chain(kind.results())
        .find_map(|kind| unfit(&kind, &mut left))
}

/// What in a type has no form in JSON. Types are shared, so that one may be far larger than what was written for it.
fn unfit(kind: &Type, left: &mut usize) -> Option<&'static str> {
    let Some(fewer) = left.checked_sub(1) else {
        return Some(schema::TOO_LARGE);
    };
    *left = fewer;
    match kind {
        Type::Bool
        | Type::S8
        | Type::U8
        | Type::S16
        | Type::U16
        | Type::S32
        | Type::U32
        | Type::S64
        | Type::U64
        | Type::Float32
        | Type::Float64
        | Type::Char
        | Type::String
        | Type::Enum(_)
        | Type::Flags(_) => None,
        Type::List(list) => unfit(&list.ty(), left),
        Type::Option(option) => unfit(&option.ty(), left),
        Type::Record(record) => record.fields().find_map(|field| unfit(&field.ty, left)),
        Type::Tuple(tuple) => tuple.types().find_map(|part| unfit(&part, left)),
        Type::Variant(variant) => variant
            .cases()
            .filter_map(|case| case.ty)
            .find_map(|payload| unfit(&payload, left)),
        Type::Result(result) => [result.ok(), result.err()]
            .into_iter()
            .flatten()
            .find_map(|payload| unfit(&payload, left)),
        Type::Own(_) | Type::Borrow(_) => {
            Some("it uses handles of resources, which end with the instance of a call")
        }
        Type::Future(_) | Type::Stream(_) => Some("it uses a future or a stream"),
        Type::ErrorContext => Some("it uses an error context"),
        Type::Map(_) | Type::FixedLengthList(_) => {
            Some("it uses a map or a list of fixed length, which are not taken yet")
        }
    }
}

impl Function {
    fn place(&self) -> Place<'_> {
        Place {
            interface: self.interface.as_deref(),
            function: &self.function,
        }
    }
}

impl Typed {
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// What is left out, as far as it is named.
    pub(crate) fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The tools that they are, and those that are none.
    pub(crate) fn tools(&self, docs: &Docs) -> (Vec<Tool>, Vec<LeftOut>) {
        let mut tools = Vec::with_capacity(self.functions.len());
        let mut left_out = self.left_out.clone();
        let mut bytes = 0;
        for function in &self.functions {
            let leave = |why: &str| LeftOut {
                function: function.place().to_string(),
                why: why.to_owned(),
            };
            let schemas = schema::input(&function.kind)
                .and_then(|input| Ok((input, schema::output(&function.kind)?)));
            let (input_schema, output_schema) = match schemas {
                Ok(schemas) => schemas,
                Err(why) => {
                    left_out.push(leave(why));
                    continue;
                }
            };
            bytes += input_schema.len() + output_schema.len();
            if bytes > SCHEMA_BYTES {
                left_out.push(leave(
                    "the schemas of the functions before it leave no room for its own",
                ));
                continue;
            }
            let place = function.place();
            let description = docs
                .of(place.interface, place.function)
                .unwrap_or_else(|| signature::of(&place, &function.kind));
            tools.push(Tool {
                name: function.name.clone(),
                title: None,
                description,
                input_schema,
                output_schema: Some(output_schema),
                task_mode: Mode::Auto,
                requires: Vec::new(),
                extra: None,
            });
        }
        if left_out.len() > MAX_LEFT_OUT {
            let more = left_out.len() - MAX_LEFT_OUT;
            left_out.truncate(MAX_LEFT_OUT);
            left_out.push(LeftOut {
                function: format!("{more} more"),
                why: "for reasons like these".to_owned(),
            });
        }
        (tools, left_out)
    }

    /// The function that is this tool.
    pub(crate) fn find(&self, tool: &str) -> Option<(&ComponentExportIndex, &ComponentFunc)> {
        let function = self.functions.iter().find(|known| known.name == tool)?;
        Some((&function.index, &function.kind))
    }
}

/// What a function is called with, or what is wrong with the JSON.
pub(crate) fn arguments(kind: &ComponentFunc, json: &str) -> Result<Vec<Val>, String> {
    read::arguments(kind, json)
}

/// What it returned, if it has no more than so many bytes as JSON.
pub(crate) fn answer(kind: &ComponentFunc, returned: &[Val], most: u64) -> Result<Answer, Fault> {
    write::answer(kind, returned, most)
}
