//! What can be refused by reading: a cheap walk over an upload before anything else touches it.
//!
//! It runs in the server's own process, so it must be safe against every input: it reads sections
//! one after the other, keeps nothing that grows faster than the upload, and never goes deeper into
//! the process stack than its bounds say. It does *not* validate. A validator keeps the types of a
//! function's whole operand stack, which half a megabyte of calls with a thousand results each turns
//! into a gigabyte; so validation happens in the compile child, under the child's limits, and
//! [`verdict`] puts the same words to what is found there.

mod types;
pub(crate) mod verdict;
mod walk;

use wasmparser::Parser;
use wasmtime::{Engine, Precompiled};

use crate::refusal::{Reason, Refusal};
use crate::typed::docs::Docs;

/// How much of everything an upload may have. The defaults leave room for a whole Python or
/// JavaScript interpreter.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Bytes in all. An interpreter with its library has 20 MiB.
    pub bytes: usize,
    /// Core instances once every nested instantiation is written out. Each costs time and memory at
    /// every call, and nesting multiplies: seven levels of ten in 605 bytes cost 2 GiB to compile.
    pub instances: u64,
    /// Definitions of every kind, once every nested instantiation is written out: the compiler goes
    /// through them one by one.
    pub items: u64,
    /// Modules and components inside, before writing out.
    pub parts: u64,
    /// Components inside components. Composing tools go two or three deep.
    pub nesting: usize,
    /// Types inside types, as written in one place.
    pub type_nesting: usize,
    /// Bytes of one section of types. Reading a type takes memory, thirty times its bytes at worst.
    pub type_bytes: usize,
    /// Functions in all modules; 200,000 empty ones cost the compiler more than a gigabyte.
    pub functions: u64,
    /// Bytes of one function. The largest in a Python interpreter has 417 KiB; the compiler's time can
    /// grow with the cube, which only the child's limit bounds.
    pub function_bytes: usize,
    /// Targets of all jump tables; fifty tables of 65,000 cost the compiler 2 GiB.
    pub jump_targets: u64,
    /// Imports of the component itself.
    pub imports: usize,
    /// Exports of the component itself.
    pub exports: usize,
    /// Bytes that a memory may start with: as much as any memory may ever have.
    pub memory_bytes: u64,
    /// Elements that a table may start with.
    pub table_elements: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes: 32 << 20,
            instances: 256,
            items: 200_000,
            parts: 1_000,
            nesting: 32,
            type_nesting: 100,
            type_bytes: 1 << 20,
            functions: 100_000,
            function_bytes: 1 << 20,
            jump_targets: 200_000,
            imports: 200,
            exports: 200,
            memory_bytes: 256 << 20,
            table_elements: 100_000,
        }
    }
}

/// What the walk saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Names that the component imports, in its order.
    pub imports: Vec<String>,
    /// Names that it exports, in its order.
    pub exports: Vec<String>,
    /// What it says of itself, if it does: a manifest that can be read.
    pub manifest: Option<String>,
    /// What its author wrote about its functions, as far as it can be read.
    pub(crate) docs: Docs,
}

/// Refuses what can be refused without compiling. Text is never parsed, native code never loaded.
/// The time it takes grows with the upload, to some tenths of a second for the largest: call it where
/// blocking is fine.
///
/// # Errors
///
/// The first reason found.
pub fn check(bytes: &[u8], bounds: &Bounds) -> Result<Facts, Refusal> {
    if bytes.len() > bounds.bytes {
        return Err(Refusal::new(
            Reason::TooLarge,
            format!(
                "the upload has {} bytes, at most {} are allowed",
                bytes.len(),
                bounds.bytes
            ),
        ));
    }
    classify(bytes)?;
    walk::walk(bytes, bounds)
}

/// Tells a component from everything else by its first bytes.
fn classify(bytes: &[u8]) -> Result<(), Refusal> {
    if Parser::is_component(bytes) {
        return Ok(());
    }
    if Parser::is_core_wasm(bytes) {
        return Err(Refusal::new(
            Reason::CoreModule,
            "this is a core module; wrap it as a component with `longshore component new`",
        ));
    }
    if let Some(Precompiled::Module | Precompiled::Component) = Engine::detect_precompiled(bytes) {
        return Err(Refusal::new(
            Reason::Precompiled,
            "this is native code made by an engine; upload the component that it was made from",
        ));
    }
    if bytes.starts_with(b"\0asm") {
        return Err(Refusal::new(
            Reason::Malformed,
            "the version in its first eight bytes is that of no component; build it with current tools",
        ));
    }
    let message = match bytes.trim_ascii_start().first() {
        None if bytes.is_empty() => "the upload is empty",
        Some(b'(') => {
            "this looks like the text format; make a binary of it with `wasm-tools parse`"
        }
        _ => "this is no WebAssembly; upload a component in its binary form",
    };
    Err(Refusal::new(Reason::NotWasm, message))
}

#[cfg(test)]
mod tests;
