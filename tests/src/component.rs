//! Components made to order: a test says what one lists and how it behaves, and gets its bytes.
//!
//! Each is a real component of the world `tool-component`, written by hand against the canonical ABI,
//! so that it can say what no toolchain would let an author say.

mod library;

use std::fmt::Write as _;

pub use library::{Library, Prompt, Resource};

/// How a function of a component behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Behaviour {
    /// It returns.
    Returns,
    /// It computes for ever.
    Loops,
    /// It executes what cannot be executed.
    Traps,
    /// It asks the host to wake it after so many milliseconds, and then returns.
    Sleeps(u64),
    /// The same, and it computes for ever afterwards: it looks whether it is cancelled, and stays.
    SleepsAndLoops(u64),
    /// It waits so many milliseconds on a clock of WASI, and then returns.
    Waits(u64),
    /// It looks so often at a clock of WASI, and then returns.
    ReadsClock(u32),
    /// It does all this, and then returns.
    Does(&'static [Act]),
}

/// One thing that a call does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    /// It says how far it is, of how much.
    Progress(f64, Option<f64>),
    /// It writes to its log, at that level, counted from the least.
    Log(u32, &'static str),
    /// It asks the host to wake it after so many milliseconds.
    Sleep(u64),
    /// It says that nobody need wait.
    Detach,
    /// It says that its tools changed.
    ToolsChanged,
    /// It says that its prompts changed.
    PromptsChanged,
    /// It says that its resources changed.
    ResourcesChanged,
    /// It says that this resource changed.
    ResourceUpdated(&'static str),
}

/// What every log line of a made component says that it comes from.
pub const LOGGER: &str = "made";

/// When a call becomes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `never`
    Never,
    /// `on-detach`
    OnDetach,
    /// `auto`
    Auto,
    /// `always`
    Always,
}

/// One tool as it is listed: nothing in it has to be right.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// The schema of its arguments.
    pub input_schema: String,
    /// The schema of its structured results.
    pub output_schema: Option<String>,
    /// When a call becomes a task.
    pub mode: Mode,
    /// What a caller must be capable of.
    pub requires: Vec<String>,
    /// Further members of its descriptor.
    pub extra: Option<String>,
}

impl Tool {
    /// A tool with nothing wrong about it but perhaps its name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: None,
            description: "Says something.".to_owned(),
            input_schema: "{\"type\":\"object\"}".to_owned(),
            output_schema: None,
            mode: Mode::Auto,
            requires: Vec::new(),
            extra: None,
        }
    }

    /// The same with that input schema.
    #[must_use]
    pub fn with_input(mut self, schema: impl Into<String>) -> Self {
        self.input_schema = schema.into();
        self
    }
}

/// What a component lists, how it behaves, and what its tools answer.
#[derive(Clone, Debug)]
pub struct Made {
    /// What `list-tools` returns, if it does.
    pub tools: Vec<Tool>,
    /// What it has beside them. Without any tool but with this it exports no `tools`.
    pub library: Option<Library>,
    /// How its start function behaves.
    pub start: Behaviour,
    /// How `list-tools` behaves.
    pub listing: Behaviour,
    /// How `call-tool` behaves, whichever tool it is.
    pub call: Behaviour,
    /// The text that `call-tool` answers with.
    pub answer: String,
    /// Core instances that it has beside the one with its code.
    pub more_instances: usize,
    /// Values that a function of it, which is never called, loads before it uses them: compiling it takes time with the
    /// cube of their number.
    pub live_values: usize,
}

impl Made {
    /// A component with nothing wrong about it but perhaps its tools.
    #[must_use]
    pub fn of(tools: impl Into<Vec<Tool>>) -> Self {
        Self {
            tools: tools.into(),
            library: None,
            start: Behaviour::Returns,
            listing: Behaviour::Returns,
            call: Behaviour::Returns,
            answer: "something".to_owned(),
            more_instances: 0,
            live_values: 0,
        }
    }

    /// A component without any tool.
    #[must_use]
    pub fn of_library(library: Library) -> Self {
        Self {
            library: Some(library),
            ..Self::of([])
        }
    }

    /// A component with one tool that has nothing wrong about it but perhaps its name.
    #[must_use]
    pub fn with_tool(name: &str) -> Self {
        Self::of([Tool::named(name)])
    }

    fn behaviours(&self) -> Vec<Behaviour> {
        let mut all = vec![self.start, self.listing, self.call];
        if let Some(library) = &self.library {
            all.extend(library.lists);
            all.extend([library.read, library.get]);
        }
        all
    }

    /// Its bytes.
    ///
    /// # Panics
    /// Never in practice.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        wat::parse_str(self.text()).expect("the text of a made component is right")
    }

    fn text(&self) -> String {
        let mut memory = Memory::default();
        let tools: Vec<Vec<u8>> = self.tools.iter().map(|tool| memory.tool(tool)).collect();
        let tools = memory.list(&tools);
        let list_result = memory.aligned(&tools);
        let call_result = memory.result_with_text(&self.answer);
        let [start, listing, call] =
            [self.start, self.listing, self.call].map(|how| instructions(&mut memory, how));
        let behaviours = self.behaviours();
        // What a component does not use is left out, so that the smallest stay small.
        let does = behaviours
            .iter()
            .any(|behaviour| matches!(behaviour, Behaviour::Does(_)));
        let memory_of = if does { "$memory" } else { "$code" };
        let library = self
            .library
            .as_ref()
            .map(|library| library.text(&mut memory, memory_of));
        let end = memory.end();
        // Arguments are at most a megabyte and are put behind the data.
        let pages = end / PAGE + 1 + 2 * (MIB / PAGE);
        let data = memory.escaped();
        let part = |text: &'static str| if does { text } else { "" };
        let reads_clock = [self.start, self.listing, self.call]
            .iter()
            .any(|behaviour| matches!(behaviour, Behaviour::ReadsClock(_)));
        let [now, now_lowered, now_imported, now_exported] =
            NOW.map(|text| if reads_clock { text } else { "" });
        let imports = IMPORTS
            .replace("{task}", part(TASK_IMPORTS))
            .replace("{changes}", part(CHANGES_IMPORT))
            .replace("{now}", now);
        let (lowered, imported, exported, changes) = (
            part(LOWERED),
            part(IMPORTED),
            part(EXPORTED),
            part("(with \"longshore:tool/changes@0.1.0\" (instance $changes))"),
        );
        // What is lowered with texts needs the memory before there is code.
        let before = if does {
            format!(
                r#"(core module $memory (memory (export "memory") {pages}))
        (core instance $memory (instantiate $memory))"#
            )
        } else {
            String::new()
        };
        let (own, given) = if does {
            (
                format!(r#"(import "memory" "memory" (memory {pages}))"#),
                r#"(with "memory" (instance $memory))"#,
            )
        } else {
            (format!(r#"(memory (export "memory") {pages})"#), "")
        };
        let (library_core, library_inside, library_exports) = match &library {
            Some(text) => (text.core.as_str(), text.inside.as_str(), text.exports),
            None => ("", "", ""),
        };
        let tools_export = if self.tools.is_empty() && library.is_some() {
            ""
        } else {
            r#"(export "longshore:tool/tools@0.1.0" (instance $tools))"#
        };
        let more = if self.more_instances > 0 {
            format!(
                "(core module $more) {}",
                "(core instance (instantiate $more))".repeat(self.more_instances)
            )
        } else {
            String::new()
        };
        let slow = if self.live_values > 0 {
            let loads: String = (0..self.live_values)
                .map(|n| format!("(i32.load offset={} (local.get 0))", 4 * n))
                .collect();
            let xors = "i32.xor ".repeat(self.live_values - 1);
            format!("(core module (memory 1) (func (param i32) (result i32) {loads} {xors}))")
        } else {
            String::new()
        };
        // The types need names, which an instance of a component of its own can give them.
        format!(
            r#"(component
    {imports}
    (component $inside
        {imports}
        {before}
        {more}
        {slow}
        (core func $sleep (canon lower (func $task "sleep")))
        {lowered}
        {now_lowered}
        (core func $subscribe (canon lower (func $clock "subscribe-duration")))
        (core func $block (canon lower (func $poll "[method]pollable.block")))
        (core module $code
            (import "host" "sleep" (func $sleep (param i64) (result i32)))
            (import "host" "subscribe" (func $subscribe (param i64) (result i32)))
            (import "host" "block" (func $block (param i32)))
            {imported}
            {now_imported}
            {own}
            (global $next (mut i32) (i32.const {end}))
            (func (export "realloc") (param $old i32) (param $was i32) (param $align i32) (param $size i32)
                (result i32)
                (local $at i32)
                (local.set $at (i32.and
                    (i32.add (global.get $next) (i32.sub (local.get $align) (i32.const 1)))
                    (i32.sub (i32.const 0) (local.get $align))))
                (global.set $next (i32.add (local.get $at) (local.get $size)))
                (local.get $at))
            (func (export "list-tools") (result i32) {listing} (i32.const {list_result}))
            (func (export "call-tool") (param i32 i32 i32 i32) (result i32) {call} (i32.const {call_result}))
            {library_core}
            (func $start {start})
            (start $start)
            (data (i32.const {BASE}) "{data}"))
        (core instance $code (instantiate $code {given} (with "host" (instance
            (export "sleep" (func $sleep))
            (export "subscribe" (func $subscribe))
            (export "block" (func $block))
            {exported}
            {now_exported}))))
        {TYPES}
        (func $list-tools (result (list $tool))
            (canon lift (core func $code "list-tools") (memory (core memory {memory_of} "memory"))))
        (func $call-tool (param "name" string) (param "arguments" string)
            (result (result $tool-result (error $call-error)))
            (canon lift (core func $code "call-tool") (memory (core memory {memory_of} "memory"))
                (realloc (core func $code "realloc"))))
        (export "list-tools" (func $list-tools))
        (export "call-tool" (func $call-tool))
        {library_inside})
    (instance $tools (instantiate $inside
        (with "longshore:tool/task@0.1.0" (instance $task))
        {changes}
        (with "wasi:io/poll@0.2.0" (instance $poll))
        (with "wasi:clocks/monotonic-clock@0.2.0" (instance $clock))))
    {tools_export}
    {library_exports})"#
        )
    }
}

const PAGE: u32 = 64 * 1024;
const MIB: u32 = 1024 * 1024;
/// Where the data begins: no pointer to it is 0.
pub(crate) const BASE: u32 = 16;

const IMPORTS: &str = r#"
    (import "longshore:tool/task@0.1.0" (instance $task
        (export "sleep" (func (param "ms" u64) (result bool)))
        {task}))
    {changes}
    (import "wasi:io/poll@0.2.0" (instance $poll
        (export "pollable" (type $pollable (sub resource)))
        (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
    (alias export $poll "pollable" (type $pollable))
    (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
        (alias outer 1 $pollable (type $of-poll))
        (export "pollable" (type $pollable-here (eq $of-poll)))
        (export "subscribe-duration" (func (param "when" u64) (result (own $pollable-here))))
        {now}))
"#;

/// What those need that read the clock: the import, lowered, imported and exported.
const NOW: [&str; 4] = [
    r#"(export "now" (func (result u64)))"#,
    r#"(core func $now (canon lower (func $clock "now")))"#,
    r#"(import "host" "now" (func $now (result i64)))"#,
    r#"(export "now" (func $now))"#,
];

// What those need that do more than return or wait.

const TASK_IMPORTS: &str = r#"
        (type $level' (enum "debug" "info" "notice" "warning" "error" "critical" "alert" "emergency"))
        (export "level" (type $level (eq $level')))
        (export "report-progress" (func (param "done" f64) (param "total" (option f64))
            (param "message" (option string))))
        (export "log" (func (param "level" $level) (param "logger" (option string)) (param "message" string)))
        (export "detach" (func))"#;

const CHANGES_IMPORT: &str = r#"
    (import "longshore:tool/changes@0.1.0" (instance $changes
        (export "tools-changed" (func))
        (export "prompts-changed" (func))
        (export "resources-changed" (func))
        (export "resource-updated" (func (param "uri" string)))))"#;

const LOWERED: &str = r#"
        (core func $progress (canon lower (func $task "report-progress") (memory (core memory $memory "memory"))))
        (core func $log (canon lower (func $task "log") (memory (core memory $memory "memory"))))
        (core func $detach (canon lower (func $task "detach")))
        (core func $tools-changed (canon lower (func $changes "tools-changed")))
        (core func $prompts-changed (canon lower (func $changes "prompts-changed")))
        (core func $resources-changed (canon lower (func $changes "resources-changed")))
        (core func $resource-updated
            (canon lower (func $changes "resource-updated") (memory (core memory $memory "memory"))))"#;

const IMPORTED: &str = r#"
            (import "host" "progress" (func $progress (param f64 i32 f64 i32 i32 i32)))
            (import "host" "log" (func $log (param i32 i32 i32 i32 i32 i32)))
            (import "host" "detach" (func $detach))
            (import "host" "tools-changed" (func $tools-changed))
            (import "host" "prompts-changed" (func $prompts-changed))
            (import "host" "resources-changed" (func $resources-changed))
            (import "host" "resource-updated" (func $resource-updated (param i32 i32)))"#;

const EXPORTED: &str = r#"
            (export "progress" (func $progress))
            (export "log" (func $log))
            (export "detach" (func $detach))
            (export "tools-changed" (func $tools-changed))
            (export "prompts-changed" (func $prompts-changed))
            (export "resources-changed" (func $resources-changed))
            (export "resource-updated" (func $resource-updated))"#;

/// The types of `wit/tool.wit` that stand in the signatures of `tools`.
pub(crate) const TYPES: &str = r#"
    (type $media' (record (field "data" (list u8)) (field "mime-type" string)))
    (export $media "media" (type $media'))
    (type $link' (record (field "uri" string) (field "name" string)
        (field "mime-type" (option string)) (field "description" (option string))))
    (export $link "link" (type $link'))
    (type $body' (variant (case "text" string) (case "bytes" (list u8))))
    (export $body "body" (type $body'))
    (type $embedded' (record (field "uri" string) (field "mime-type" (option string)) (field "body" $body)))
    (export $embedded "embedded" (type $embedded'))
    (type $block' (variant (case "text" string) (case "image" $media) (case "audio" $media)
        (case "resource-link" $link) (case "embedded" $embedded) (case "raw" string)))
    (export $block "block" (type $block'))
    (type $rpc-error' (record (field "code" s32) (field "message" string) (field "data" (option string))))
    (export $rpc-error "rpc-error" (type $rpc-error'))
    (type $tool-result' (record (field "content" (list $block)) (field "structured" (option string))
        (field "meta" (option string))))
    (export $tool-result "tool-result" (type $tool-result'))
    (type $call-error' (variant (case "failed" $tool-result) (case "protocol" $rpc-error) (case "cancelled")))
    (export $call-error "call-error" (type $call-error'))
    (type $task-mode' (enum "never" "on-detach" "auto" "always"))
    (export $task-mode "task-mode" (type $task-mode'))
    (type $tool' (record (field "name" string) (field "title" (option string)) (field "description" string)
        (field "input-schema" string) (field "output-schema" (option string)) (field "task-mode" $task-mode)
        (field "requires" (list string)) (field "extra" (option string))))
    (export $tool "tool" (type $tool'))
"#;

fn instructions(memory: &mut Memory, behaviour: Behaviour) -> String {
    match behaviour {
        Behaviour::Returns => String::new(),
        Behaviour::Loops => "(loop (br 0))".to_owned(),
        Behaviour::Traps => "unreachable".to_owned(),
        Behaviour::Sleeps(ms) => act(memory, Act::Sleep(ms)),
        Behaviour::SleepsAndLoops(ms) => {
            format!("{} (loop (br 0))", act(memory, Act::Sleep(ms)))
        }
        Behaviour::Waits(ms) => format!(
            "(call $block (call $subscribe (i64.const {})))",
            ms * 1_000_000
        ),
        Behaviour::ReadsClock(times) => format!(
            "(local $left i32) (local.set $left (i32.const {times}))
            (loop $reads (drop (call $now))
                (br_if $reads (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))"
        ),
        Behaviour::Does(acts) => acts.iter().map(|one| act(memory, *one)).collect(),
    }
}

fn act(memory: &mut Memory, act: Act) -> String {
    match act {
        Act::Progress(done, total) => format!(
            "(call $progress (f64.const {done}) (i32.const {}) (f64.const {}) (i32.const 0) (i32.const 0) (i32.const 0))",
            i32::from(total.is_some()),
            total.unwrap_or_default()
        ),
        Act::Log(level, message) => {
            let [logger, message] = [LOGGER, message].map(|text| {
                format!(
                    "(i32.const {}) (i32.const {})",
                    memory.put(text.as_bytes()),
                    text.len()
                )
            });
            format!("(call $log (i32.const {level}) (i32.const 1) {logger} {message})")
        }
        Act::Sleep(ms) => format!("(drop (call $sleep (i64.const {ms})))"),
        Act::Detach => "(call $detach)".to_owned(),
        Act::ToolsChanged => "(call $tools-changed)".to_owned(),
        Act::PromptsChanged => "(call $prompts-changed)".to_owned(),
        Act::ResourcesChanged => "(call $resources-changed)".to_owned(),
        Act::ResourceUpdated(uri) => format!(
            "(call $resource-updated (i32.const {}) (i32.const {}))",
            memory.put(uri.as_bytes()),
            uri.len()
        ),
    }
}

/// The data of a component, laid out as the canonical ABI wants it: little-endian, every record in
/// the order of its fields, everything that is not a byte aligned to 4.
#[derive(Default)]
pub(crate) struct Memory {
    bytes: Vec<u8>,
}

impl Memory {
    pub(crate) fn end(&self) -> u32 {
        BASE + u32::try_from(self.bytes.len()).expect("a component's data is small")
    }

    fn put(&mut self, bytes: &[u8]) -> u32 {
        let at = self.end();
        self.bytes.extend_from_slice(bytes);
        at
    }

    fn aligned(&mut self, bytes: &[u8]) -> u32 {
        while !self.end().is_multiple_of(4) {
            self.bytes.push(0);
        }
        self.put(bytes)
    }

    /// A string, by the words that stand for it.
    fn string(&mut self, text: &str) -> Vec<u8> {
        let at = self.put(text.as_bytes());
        words([
            at,
            u32::try_from(text.len()).expect("a component's texts are small"),
        ])
    }

    fn option(&mut self, text: Option<&str>) -> Vec<u8> {
        match text {
            Some(text) => [words([1]), self.string(text)].concat(),
            None => words([0, 0, 0]),
        }
    }

    /// A list of items of one size.
    pub(crate) fn list(&mut self, items: &[Vec<u8>]) -> Vec<u8> {
        let at = self.aligned(&items.concat());
        words([
            at,
            u32::try_from(items.len()).expect("a component's lists are short"),
        ])
    }

    fn tool(&mut self, tool: &Tool) -> Vec<u8> {
        let mode = match tool.mode {
            Mode::Never => 0,
            Mode::OnDetach => 1,
            Mode::Auto => 2,
            Mode::Always => 3,
        };
        let requires: Vec<Vec<u8>> = tool.requires.iter().map(|word| self.string(word)).collect();
        [
            self.string(&tool.name),
            self.option(tool.title.as_deref()),
            self.string(&tool.description),
            self.string(&tool.input_schema),
            self.option(tool.output_schema.as_deref()),
            words([mode]),
            self.list(&requires),
            self.option(tool.extra.as_deref()),
        ]
        .concat()
    }

    /// `ok` of a `tool-result` with one text, and where it lies.
    pub(crate) fn result_with_text(&mut self, text: &str) -> u32 {
        // `block` is as large as its largest case, a link of ten words, and the word that tells the case.
        let mut block = [words([0]), self.string(text)].concat();
        block.resize(44, 0);
        let content = self.list(&[block]);
        let result = [words([0]), content, self.option(None), self.option(None)].concat();
        self.aligned(&result)
    }

    /// The bytes, from [`BASE`] on.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All of it as the text format writes bytes.
    pub(crate) fn escaped(&self) -> String {
        self.bytes.iter().fold(String::new(), |mut text, byte| {
            let _infallible = write!(text, "\\{byte:02x}");
            text
        })
    }
}

fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_component_is_well_formed() {
        let all = [
            Behaviour::Returns,
            Behaviour::Loops,
            Behaviour::Traps,
            Behaviour::Sleeps(1),
            Behaviour::Waits(1),
            Behaviour::Does(&[
                Act::Progress(0.5, Some(1.0)),
                Act::Log(7, "a line"),
                Act::Sleep(1),
                Act::Detach,
                Act::ToolsChanged,
            ]),
        ];
        for behaviour in all {
            let made = Made {
                start: behaviour,
                listing: behaviour,
                call: behaviour,
                ..Made::with_tool("one")
            };
            assert!(made.bytes().starts_with(b"\0asm\x0d\0\x01\0"));
            let library = Library {
                resources: vec![Resource::at("test://a")],
                templates: vec![Resource::at("test://{a}")],
                prompts: vec![Prompt::named("a")],
                lists: [behaviour; 3],
                read: behaviour,
                get: behaviour,
                ..Library::default()
            };
            let made = Made::of_library(library);
            assert!(made.bytes().starts_with(b"\0asm\x0d\0\x01\0"));
        }
    }
}
