//! What a function takes and returns, as WIT: the description of one whose author left none.

use wasmtime::component::types::{ComponentFunc, Type};

use super::names::Place;

/// More than that nobody reads, and types can be far larger.
const MAX_BYTES: usize = 600;

/// One line.
pub(super) fn of(place: &Place<'_>, kind: &ComponentFunc) -> String {
    let mut line = Line(String::new());
    line.put(place.function);
    line.put(": func(");
    for (index, (name, param)) in kind.params().enumerate() {
        line.separate(index);
        line.put(name);
        line.put(": ");
        line.kind(&param);
    }
    line.put(")");
    for result in kind.results() {
        line.put(" -> ");
        line.kind(&result);
    }
    let mut text = line.end();
    if let Some(interface) = place.interface {
        text.push_str(&format!(" of {}", crate::rules::shorten(interface, 200)));
    }
    text
}

struct Line(String);

impl Line {
    fn is_full(&self) -> bool {
        self.0.len() > MAX_BYTES
    }

    fn put(&mut self, text: &str) {
        if !self.is_full() {
            self.0.push_str(text);
        }
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.put(", ");
        }
    }

    fn end(self) -> String {
        crate::rules::shorten(&self.0, MAX_BYTES as u64)
    }

    fn kind(&mut self, kind: &Type) {
        if self.is_full() {
            return;
        }
        match kind {
            Type::List(list) => self.of("list<", [Some(list.ty())]),
            Type::Option(option) => self.of("option<", [Some(option.ty())]),
            Type::Tuple(tuple) => self.of("tuple<", tuple.types().map(Some)),
            Type::Result(result) => match (result.ok(), result.err()) {
                (None, None) => self.put("result"),
                (ok, None) => self.of("result<", [ok]),
                (ok, err) => self.of("result<", [ok, err]),
            },
            Type::Record(record) => {
                let fields = record.fields();
                self.named(
                    "record { ",
                    fields.map(|field| (field.name, Some(field.ty))),
                );
            }
            Type::Variant(variant) => {
                self.put("variant { ");
                for (index, case) in variant.cases().enumerate() {
                    self.separate(index);
                    self.put(case.name);
                    if let Some(payload) = case.ty {
                        self.put("(");
                        self.kind(&payload);
                        self.put(")");
                    }
                    if self.is_full() {
                        return;
                    }
                }
                self.put(" }");
            }
            Type::Enum(names) => self.named("enum { ", names.names().map(|name| (name, None))),
            Type::Flags(names) => self.named("flags { ", names.names().map(|name| (name, None))),
            Type::Float32 => self.put("f32"),
            Type::Float64 => self.put("f64"),
            Type::Bool => self.put("bool"),
            Type::S8 => self.put("s8"),
            Type::U8 => self.put("u8"),
            Type::S16 => self.put("s16"),
            Type::U16 => self.put("u16"),
            Type::S32 => self.put("s32"),
            Type::U32 => self.put("u32"),
            Type::S64 => self.put("s64"),
            Type::U64 => self.put("u64"),
            Type::Char => self.put("char"),
            Type::String => self.put("string"),
            // Such a function is no tool.
            Type::Own(_)
            | Type::Borrow(_)
            | Type::Future(_)
            | Type::Stream(_)
            | Type::ErrorContext
            | Type::Map(_)
            | Type::FixedLengthList(_) => self.put("…"),
        }
    }

    /// A type of types; what is not there is an underscore.
    fn of(&mut self, head: &str, parts: impl IntoIterator<Item = Option<Type>>) {
        self.put(head);
        for (index, part) in parts.into_iter().enumerate() {
            self.separate(index);
            match part {
                Some(part) => self.kind(&part),
                None => self.put("_"),
            }
            if self.is_full() {
                return;
            }
        }
        self.put(">");
    }

    fn named<'n>(&mut self, head: &str, parts: impl Iterator<Item = (&'n str, Option<Type>)>) {
        self.put(head);
        for (index, (name, kind)) in parts.enumerate() {
            self.separate(index);
            self.put(name);
            if let Some(kind) = kind {
                self.put(": ");
                self.kind(&kind);
            }
            if self.is_full() {
                return;
            }
        }
        self.put(" }");
    }
}
