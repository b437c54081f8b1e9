//! A guest that looks at everything it was given before it uses any of it, and leaves all of it dirty.
//!
//! What it should find: memory that holds its own data and else zeros, tables with its own elements and else
//! nothing, globals as they are declared, and nothing but zeros and null in what it is given when it grows.

use crate::component::{BASE, Memory, TYPES};

/// How a call ends, after it has looked, grown and filled all that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It returns.
    Returns,
    /// It executes what cannot be executed.
    Traps,
    /// It reads beyond its memory.
    ReadsBeyond,
    /// It calls itself until its stack is full.
    Overflows,
    /// It computes for ever.
    Loops,
    /// It waits for an hour.
    Waits,
    /// It looks once more, at what it has itself left dirty.
    LooksAgain,
}

impl How {
    /// The arguments of a call that ends so.
    #[must_use]
    pub fn arguments(self) -> String {
        let digit = match self {
            Self::Returns => 0,
            Self::Traps => 1,
            Self::ReadsBeyond => 2,
            Self::Overflows => 3,
            Self::Loops => 4,
            Self::Waits => 5,
            Self::LooksAgain => 6,
        };
        format!("{digit}")
    }
}

/// What it answers when it found nothing, and what when it found something in one of the places.
pub const ANSWERS: [&str; 8] = [
    "clean",
    "sizes",
    "data",
    "memory",
    "table",
    "globals",
    "grown memory",
    "grown table",
];

/// Pages of memory at the beginning, and how many it asks for later.
const PAGES: u32 = 4;
/// Elements of its table at the beginning, and how many it asks for later.
const ELEMENTS: u32 = 64;
/// The first of them are its own.
const OWN_ELEMENTS: u32 = 8;
/// Where its data ends, and what it is called with begins.
const ARENA: u32 = 4096;

/// The bytes of one that leaves this pattern everywhere.
///
/// # Panics
/// Never in practice.
#[must_use]
pub fn component(pattern: u64) -> Vec<u8> {
    wat::parse_str(text(pattern)).expect("the text of the canary is right")
}

fn text(pattern: u64) -> String {
    let mut memory = Memory::default();
    let no_tools = memory.list(&[]);
    let [at, length] = [&no_tools[..4], &no_tools[4..]]
        .map(|word| u32::from_le_bytes(word.try_into().expect("a word")));
    // Two words that say where a list of none begins.
    let results = ANSWERS.map(|answer| memory.result_with_text(answer));
    let end = memory.end().next_multiple_of(4);
    assert!(end + 8 <= ARENA, "the data fits before what comes later");
    let answers: String = results
        .iter()
        .enumerate()
        .map(|(found, result)| {
            format!(
                "(if (i32.eq (local.get $found) (i32.const {found})) (then (return (i32.const {result}))))\n"
            )
        })
        .collect();
    let mut page = vec![0; ARENA as usize];
    page[BASE as usize..][..memory.bytes().len()].copy_from_slice(memory.bytes());
    let sum = page
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("a word")))
        .fold(0, u64::wrapping_add);
    let data = memory.escaped();
    format!(
        r#"(component
    (import "longshore:tool/task@0.1.0" (instance $task
        (export "sleep" (func (param "ms" u64) (result bool)))))
    (component $inside
        (import "longshore:tool/task@0.1.0" (instance $task
            (export "sleep" (func (param "ms" u64) (result bool)))))
        (core func $sleep (canon lower (func $task "sleep")))
        (core module $code
            (import "host" "sleep" (func $sleep (param i64) (result i32)))
            (type $number (func (result i32)))
            (memory (export "memory") {PAGES} {most_pages})
            (table $table {ELEMENTS} {most_elements} funcref)
            (elem (table $table) (i32.const 0) func {own})
            (elem declare func $its-own)
            (global $next (mut i32) (i32.const {ARENA}))
            (global $narrow (mut i32) (i32.const 7))
            (global $wide (mut i64) (i64.const -7))
            (global $real (mut f64) (f64.const 0.5))
            (global $reference (mut funcref) (ref.null func))
            (func $its-own (result i32) (i32.const 42))

            ;; Whether these words are all zero.
            (func $are-zero (param $at i32) (param $end i32) (result i32)
                (loop $words
                    (if (i32.lt_u (local.get $at) (local.get $end)) (then
                        (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then (return (i32.const 0))))
                        (local.set $at (i32.add (local.get $at) (i32.const 8)))
                        (br $words))))
                (i32.const 1))
            ;; Whether these elements are all null.
            (func $are-null (param $at i32) (param $end i32) (result i32)
                (loop $elements
                    (if (i32.lt_u (local.get $at) (local.get $end)) (then
                        (if (i32.eqz (ref.is_null (table.get $table (local.get $at)))) (then (return (i32.const 0))))
                        (local.set $at (i32.add (local.get $at) (i32.const 1)))
                        (br $elements))))
                (i32.const 1))
            (func $data-is-right (result i32)
                (local $at i32) (local $sum i64)
                (loop $words
                    (local.set $sum (i64.add (local.get $sum) (i64.load (local.get $at))))
                    (br_if $words (i32.lt_u
                        (local.tee $at (i32.add (local.get $at) (i32.const 8)))
                        (i32.const {ARENA}))))
                (i64.eq (local.get $sum) (i64.const {sum})))
            (func $elements-are-right (result i32)
                (local $at i32)
                (loop $own
                    (if (i32.ne (call_indirect $table (type $number) (local.get $at)) (i32.const 42))
                        (then (return (i32.const 0))))
                    (br_if $own (i32.lt_u
                        (local.tee $at (i32.add (local.get $at) (i32.const 1)))
                        (i32.const {OWN_ELEMENTS}))))
                (call $are-null (local.get $at) (table.size $table)))
            (func $globals-are-right (result i32)
                (i32.and
                    (i32.and (i32.eq (global.get $narrow) (i32.const 7)) (i64.eq (global.get $wide) (i64.const -7)))
                    (i32.and (f64.eq (global.get $real) (f64.const 0.5)) (ref.is_null (global.get $reference)))))

            ;; What is not as it should be, or 0.
            (func $look (result i32)
                (if (i32.or
                        (i32.ne (memory.size) (i32.const {PAGES}))
                        (i32.ne (table.size $table) (i32.const {ELEMENTS})))
                    (then (return (i32.const 1))))
                (call $look-inside))
            (func $look-inside (result i32)
                (if (i32.eqz (call $data-is-right)) (then (return (i32.const 2))))
                (if (i32.eqz (call $are-zero
                        (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8))
                        (i32.shl (memory.size) (i32.const 16))))
                    (then (return (i32.const 3))))
                (if (i32.eqz (call $elements-are-right)) (then (return (i32.const 4))))
                (if (i32.eqz (call $globals-are-right)) (then (return (i32.const 5))))
                (i32.const 0))
            (func $grow (result i32)
                (if (i32.ne (memory.grow (i32.const {PAGES})) (i32.const {PAGES})) (then (return (i32.const 1))))
                (if (i32.ne (table.grow $table (ref.null func) (i32.const {ELEMENTS})) (i32.const {ELEMENTS}))
                    (then (return (i32.const 1))))
                (if (i32.eqz (call $are-zero
                        (i32.const {grown_memory})
                        (i32.shl (memory.size) (i32.const 16))))
                    (then (return (i32.const 6))))
                (if (i32.eqz (call $are-null (i32.const {ELEMENTS}) (table.size $table)))
                    (then (return (i32.const 7))))
                (i32.const 0))
            ;; Leaves its pattern everywhere from there on.
            (func $fill (param $at i32)
                (loop $words
                    (i64.store (local.get $at) (i64.const {pattern}))
                    (br_if $words (i32.lt_u
                        (local.tee $at (i32.add (local.get $at) (i32.const 8)))
                        (i32.shl (memory.size) (i32.const 16)))))
                (table.fill $table (i32.const 0) (ref.func $its-own) (table.size $table))
                (global.set $narrow (i32.wrap_i64 (i64.const {pattern})))
                (global.set $wide (i64.const {pattern}))
                (global.set $real (f64.reinterpret_i64 (i64.const {pattern})))
                (global.set $reference (ref.func $its-own)))
            (func $deeper (param $depth i64) (result i64)
                (i64.add (local.get $depth) (call $deeper (i64.add (local.get $depth) (i64.const 1)))))
            (func $answer (param $found i32) (result i32)
                {answers} unreachable)

            (func (export "realloc") (param $old i32) (param $was i32) (param $align i32) (param $size i32)
                (result i32)
                (local $at i32)
                (local.set $at (i32.and
                    (i32.add (global.get $next) (i32.sub (local.get $align) (i32.const 1)))
                    (i32.sub (i32.const 0) (local.get $align))))
                (global.set $next (i32.add (local.get $at) (local.get $size)))
                (local.get $at))
            (func (export "list-tools") (result i32)
                (i32.store (i32.const {end}) (i32.const {at}))
                (i32.store offset=4 (i32.const {end}) (i32.const {length}))
                (i32.const {end}))
            (func (export "call-tool") (param i32 i32) (param $arguments i32) (param i32) (result i32)
                (local $how i32) (local $found i32)
                (local.set $how (i32.sub (i32.load8_u (local.get $arguments)) (i32.const 48)))
                (if (local.tee $found (call $look)) (then (return (call $answer (local.get $found)))))
                (if (local.tee $found (call $grow)) (then (return (call $answer (local.get $found)))))
                (call $fill (i32.const {ARENA}))
                (if (i32.eqz (local.get $how)) (then (return (call $answer (i32.const 0)))))
                (if (i32.eq (local.get $how) (i32.const 6)) (then (return (call $answer (call $look-inside)))))
                ;; Nothing is answered from here on, so the data can go as well.
                (call $fill (i32.const 0))
                (if (i32.eq (local.get $how) (i32.const 1)) (then unreachable))
                (if (i32.eq (local.get $how) (i32.const 2)) (then (drop (i64.load (i32.const -8)))))
                (if (i32.eq (local.get $how) (i32.const 3)) (then (drop (call $deeper (i64.const 0)))))
                (if (i32.eq (local.get $how) (i32.const 5)) (then (drop (call $sleep (i64.const 3600000)))))
                (loop (br 0))
                unreachable)
            (data (i32.const {BASE}) "{data}"))
        (core instance $code (instantiate $code (with "host" (instance (export "sleep" (func $sleep))))))
        {TYPES}
        (func $list-tools (result (list $tool))
            (canon lift (core func $code "list-tools") (memory (core memory $code "memory"))))
        (func $call-tool (param "name" string) (param "arguments" string)
            (result (result $tool-result (error $call-error)))
            (canon lift (core func $code "call-tool") (memory (core memory $code "memory"))
                (realloc (core func $code "realloc"))))
        (export "list-tools" (func $list-tools))
        (export "call-tool" (func $call-tool)))
    (instance $tools (instantiate $inside (with "longshore:tool/task@0.1.0" (instance $task))))
    (export "longshore:tool/tools@0.1.0" (instance $tools)))"#,
        most_pages = 2 * PAGES,
        most_elements = 2 * ELEMENTS,
        own = "$its-own ".repeat(OWN_ELEMENTS as usize),
        grown_memory = PAGES << 16,
    )
}
