//! Components that are programs: what one is started with, and what came of it.
//!
//! A program has arguments, an input and a directory of its own, which is gone with the run. What it printed and what
//! it left in the directory is its result.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longshore_journal::files::{Files, Kind, Most, NodeId, Open, ROOT, Time};
use longshore_policy::limits::Limits;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::offer::{Mode, Tool};
use crate::output::Answer;
use crate::ring::Head;

/// What is kept of each of stdout and stderr: the beginning.
pub(crate) const PRINTED_BYTES: usize = 256 * 1024;
/// What is handed back of all files together.
const FILE_BYTES: usize = 512 * 1024;
/// The longest path of a file.
const PATH_BYTES: usize = 1024;
/// Files that are named. A program can make ten thousand.
const NAMED_FILES: usize = 1_000;
/// Room for their names that nothing else takes.
const NAME_BYTES: usize = 64 * 1024;
/// What is shown as text beside the result for programs.
const TEXT_BYTES: usize = 64 * 1024;
/// What a result has around that which a program made.
const AROUND_BYTES: usize = 4 * 1024;
/// The longest usage text that becomes a description, as the registry takes it.
const USAGE_BYTES: u64 = 6 * 1024;

/// What a program is started with.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// Its own name first.
    pub(crate) args: Vec<String>,
    pub(crate) stdin: Vec<u8>,
    /// Files in its directory, by path.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    stdin: String,
    #[serde(default)]
    files: BTreeMap<String, Given>,
}

/// What is in a file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Given {
    Text(String),
    Bytes { base64: String },
}

/// The one tool that a program is.
pub(crate) fn tool(name: &str, usage: Option<&str>) -> Tool {
    let what = format!(
        "Runs the command-line program `{name}` with these arguments, this standard input and these files in its \
         working directory; returns what it prints, its exit status and the files that it made or changed."
    );
    let description = match usage {
        Some(usage) => format!(
            "{what}\n\n{}",
            crate::rules::shorten(usage.trim(), USAGE_BYTES)
        ),
        None => what,
    };
    Tool {
        name: name.to_owned(),
        title: None,
        description,
        input_schema: input_schema().to_string(),
        output_schema: Some(output_schema().to_string()),
        task_mode: Mode::Auto,
        requires: Vec::new(),
        extra: None,
    }
}

fn bytes_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "base64": { "type": "string", "contentEncoding": "base64" } },
        "required": ["base64"],
        "additionalProperties": false,
    })
}

fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "args": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Arguments, without the program's name",
            },
            "stdin": { "type": "string", "description": "Standard input" },
            "files": {
                "type": "object",
                "additionalProperties": { "anyOf": [{ "type": "string" }, bytes_schema()] },
                "description": "Files in the working directory, by relative path: text, or bytes as base64",
            },
        },
        "additionalProperties": false,
    })
}

fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "exit": { "type": "integer", "description": "Exit status; 0 is success" },
            "stdout": { "type": "string" },
            "stderr": { "type": "string" },
            "cut": {
                "type": "array",
                "items": { "enum": ["stdout", "stderr"] },
                "description": "Of which of them only the beginning is here",
            },
            "files": {
                "type": "object",
                "additionalProperties": { "anyOf": [
                    { "type": "string" },
                    bytes_schema(),
                    {
                        "type": "object",
                        "properties": { "omitted": { "type": "integer" } },
                        "required": ["omitted"],
                        "additionalProperties": false,
                    },
                ] },
                "description": "Files that the program made or changed; of one that is too large only its size",
            },
            "moreFiles": { "type": "integer", "description": "Files that are not even named" },
        },
        "required": ["exit", "stdout", "stderr", "files"],
        "additionalProperties": false,
    })
}

/// The program that is asked for its usage.
pub(crate) fn usage(name: &str) -> Program {
    Program {
        args: vec![name.to_owned(), "--help".to_owned()],
        ..Program::default()
    }
}

/// What a program is started with, or what is wrong with the arguments of the call.
pub(crate) fn read(name: &str, arguments: &str, most: Most) -> Result<Program, String> {
    let input: Input = serde_json::from_str(arguments).map_err(|error| error.to_string())?;
    let mut args = vec![name.to_owned()];
    args.extend(input.args);
    if args.iter().any(|arg| arg.contains('\0')) {
        return Err("an argument holds a zero byte, which no program takes".to_owned());
    }
    let mut files = BTreeMap::new();
    for (path, given) in input.files {
        check_path(&path)?;
        let bytes = match given {
            Given::Text(text) => text.into_bytes(),
            Given::Bytes { base64 } => STANDARD
                .decode(base64)
                .map_err(|error| format!("file {path:?} is not base64: {error}"))?,
        };
        files.insert(path, bytes);
    }
    let then = Time {
        seconds: 0,
        nanoseconds: 0,
    };
    place(&mut Files::new(most, then), &files, then)?;
    Ok(Program {
        args,
        stdin: input.stdin.into_bytes(),
        files,
    })
}

/// A path that stays below where it begins, in the one way in which it can be written.
fn check_path(path: &str) -> Result<(), String> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    if path.len() <= PATH_BYTES && path.split('/').all(is_plain) {
        return Ok(());
    }
    let shown = crate::rules::shorten(path, 100);
    Err(format!(
        "file {shown:?}: give a relative path below the working directory, without `.` and `..`, of at most {PATH_BYTES} bytes"
    ))
}

/// Puts files in their places.
pub(crate) fn place(
    tree: &mut Files,
    files: &BTreeMap<String, Vec<u8>>,
    now: Time,
) -> Result<(), String> {
    let how = Open {
        create: true,
        write: true,
        ..Open::default()
    };
    for (path, bytes) in files {
        let refused = |why| format!("file {path:?} cannot be placed: {why}");
        for (end, _) in path.match_indices('/') {
            let directory = &path[..end];
            if tree.at(ROOT, directory).is_err() {
                tree.make_directory(ROOT, directory, now).map_err(refused)?;
            }
        }
        let node = tree.open(ROOT, path, how, now).map_err(refused)?;
        let written = tree.write(node, 0, bytes, now);
        tree.close(node);
        written.map_err(refused)?;
    }
    Ok(())
}

/// What a program left behind.
pub(crate) struct Left<'a> {
    pub(crate) exit: i32,
    pub(crate) stdout: Head,
    pub(crate) stderr: Head,
    pub(crate) given: &'a Program,
    pub(crate) files: &'a Files,
}

impl Left<'_> {
    /// What is shown as its usage: some print it to one, some to the other.
    pub(crate) fn usage(&self) -> Option<String> {
        [&self.stdout, &self.stderr]
            .into_iter()
            .map(|head| text_of(head).trim().to_owned())
            .find(|text| !text.is_empty())
    }

    /// Its result. Whatever it did, that fits into one.
    pub(crate) fn answer(&self, limits: &Limits) -> Answer {
        let most = usize::try_from(limits.result_bytes).unwrap_or(usize::MAX);
        let room = most.saturating_sub(AROUND_BYTES);
        // However much it printed, its files are named.
        let kept_for_names = NAME_BYTES.min(room / 4);
        let mut room = room - kept_for_names;
        let mut cut = Vec::new();
        let mut printed = |name: &'static str, head: &Head, room: &mut usize| {
            let text = text_of(head);
            let kept = beginning(&text, PRINTED_BYTES, *room);
            *room = room.saturating_sub(json_len(kept));
            if head.is_cut || kept.len() < text.len() {
                cut.push(name);
            }
            kept.to_owned()
        };
        // What is most needed goes first, should the limits be small.
        let is_error = self.exit != 0;
        let (stdout, stderr) = if is_error {
            let stderr = printed("stderr", &self.stderr, &mut room);
            (printed("stdout", &self.stdout, &mut room), stderr)
        } else {
            let stdout = printed("stdout", &self.stdout, &mut room);
            (stdout, printed("stderr", &self.stderr, &mut room))
        };
        let text = self.text(&stdout, &stderr, &mut room);
        room += kept_for_names;
        let (files, more) = self.files(&mut room);
        let mut result = json!({
            "exit": self.exit,
            "stdout": stdout,
            "stderr": stderr,
            "files": files,
        });
        if !cut.is_empty() {
            result["cut"] = cut.into();
        }
        if more > 0 {
            result["moreFiles"] = more.into();
        }
        Answer {
            is_error,
            json: result.to_string(),
            text: Some(text),
        }
    }

    /// What people and models read of it.
    fn text(&self, stdout: &str, stderr: &str, room: &mut usize) -> String {
        let said = if self.exit == 0 { stdout } else { stderr };
        let mut text = match (said.trim().is_empty(), self.exit) {
            (false, _) => {
                let kept = beginning(said, TEXT_BYTES, *room);
                let mut text = kept.to_owned();
                if kept.len() < said.len() {
                    text.push_str("\n… (cut: the structured result has more)");
                }
                text
            }
            (true, 0) => "it ended and printed nothing".to_owned(),
            (true, _) => String::new(),
        };
        if self.exit != 0 {
            let _infallible = write!(
                text,
                "{}exit status {}",
                if text.is_empty() || text.ends_with('\n') {
                    ""
                } else {
                    "\n"
                },
                self.exit
            );
        }
        *room = room.saturating_sub(json_len(&text));
        text
    }

    /// Files that are others than before, and how many are not even named.
    fn files(&self, room: &mut usize) -> (serde_json::Map<String, Value>, u64) {
        let mut found = serde_json::Map::new();
        let mut more = 0;
        let mut left = FILE_BYTES;
        let mut walk = Walk::new(self.files);
        while let Some((path, node)) = walk.next() {
            let bytes = whole(self.files, node);
            let path = path.filter(|path| path.len() <= PATH_BYTES);
            if let Some(path) = &path
                && self
                    .given
                    .files
                    .get(path)
                    .is_some_and(|given| given == bytes)
            {
                continue;
            }
            let Some(path) = path.filter(|_| found.len() < NAMED_FILES) else {
                more += 1;
                continue;
            };
            let omitted = json!({ "omitted": bytes.len() });
            let mut shown = if bytes.len() > left {
                omitted.clone()
            } else {
                match std::str::from_utf8(bytes) {
                    Ok(text) => text.into(),
                    Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
                }
            };
            let around = json_len(&path) + 8;
            let length = |value: &Value| value.to_string().len() + around;
            if length(&shown) > *room {
                shown = omitted;
            }
            let Some(fewer) = room.checked_sub(length(&shown)) else {
                more += 1;
                continue;
            };
            *room = fewer;
            if !shown.get("omitted").is_some_and(Value::is_number) {
                left -= bytes.len();
            }
            found.insert(path, shown);
        }
        (found, more)
    }
}

/// All of a file.
fn whole(files: &Files, node: NodeId) -> &[u8] {
    files
        .read(node, 0, usize::MAX)
        .map_or(&[], |(bytes, _)| bytes)
}

/// All files of a tree in the order of their names. A guest can nest directories as deep as it has files, so that paths
/// are not written out beyond what anybody is shown.
struct Walk<'a> {
    files: &'a Files,
    /// The directories from the root to here, with the name in each that was last seen and the length of its path, if
    /// that can be written.
    way: Vec<(NodeId, Option<String>, Option<usize>)>,
    path: String,
}

impl<'a> Walk<'a> {
    fn new(files: &'a Files) -> Self {
        Self {
            files,
            way: vec![(ROOT, None, Some(0))],
            path: String::new(),
        }
    }

    fn next(&mut self) -> Option<(Option<String>, NodeId)> {
        loop {
            let (directory, last, length) = self.way.last_mut()?;
            let entry = self.files.next_entry(*directory, last.as_deref());
            let Ok(Some((name, node))) = entry else {
                self.way.pop();
                continue;
            };
            *last = Some(name.to_owned());
            let is_written = length.filter(|length| length + name.len() <= PATH_BYTES);
            if let Some(length) = is_written {
                self.path.truncate(length);
                self.path.push_str(name);
            }
            match self.files.kind(node) {
                Kind::File => return Some((is_written.map(|_| self.path.clone()), node)),
                Kind::Directory => {
                    let length = is_written.map(|_| {
                        self.path.push('/');
                        self.path.len()
                    });
                    self.way.push((node, None, length));
                }
            }
        }
    }
}

/// What was printed, as text: what is none is replaced, and a character that was cut is left away.
fn text_of(head: &Head) -> String {
    let mut bytes = head.bytes.as_slice();
    if head.is_cut {
        let half = bytes.utf8_chunks().last();
        let half = half.map_or(0, |last| last.invalid().len());
        bytes = &bytes[..bytes.len() - half];
    }
    String::from_utf8_lossy(bytes).into_owned()
}

/// As much of a text as has so many bytes by itself and so many as JSON.
fn beginning(text: &str, most: usize, as_json: usize) -> &str {
    let mut left = as_json.saturating_sub(2);
    let end = text
        .char_indices()
        .find_map(|(at, c)| {
            let fits = at + c.len_utf8() <= most;
            match left.checked_sub(char_json_len(c)) {
                Some(fewer) if fits => {
                    left = fewer;
                    None
                }
                _ => Some(at),
            }
        })
        .unwrap_or(text.len());
    &text[..end]
}

fn json_len(text: &str) -> usize {
    2 + text.chars().map(char_json_len).sum::<usize>()
}

fn char_json_len(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Most = Most {
        bytes: 100,
        nodes: 10,
    };
    const THEN: Time = Time {
        seconds: 0,
        nanoseconds: 0,
    };

    fn given(arguments: &Value) -> Result<Program, String> {
        read("p", &arguments.to_string(), MOST)
    }

    #[test]
    fn a_program_is_started_with_what_the_call_says() {
        let program = given(&json!({
            "args": ["-a", "ä b"],
            "stdin": "in",
            "files": { "a": "text", "d/e/b": { "base64": "AP8=" } },
        }));
        let program = program.unwrap();
        assert_eq!(program.args, ["p", "-a", "ä b"]);
        assert_eq!(program.stdin, b"in");
        assert_eq!(program.files["a"], b"text");
        assert_eq!(program.files["d/e/b"], [0, 255]);
        assert_eq!(given(&json!({})).unwrap().args, ["p"]);
    }

    #[test]
    fn what_it_cannot_be_started_with_is_told() {
        let long = "x".repeat(PATH_BYTES + 1);
        let name = "x".repeat(256);
        let paths = [
            "", "/a", "../a", "a/../b", "./a", "a//b", "a/", "a\0b", &long,
        ];
        let paths = paths.map(|path| (json!({ "files": { path: "" } }), "give a relative path"));
        let others = [
            (json!({ "args": ["a\0b"] }), "zero byte"),
            (json!({ "args": [1] }), "invalid type"),
            (json!({ "env": {} }), "unknown field"),
            (json!({ "files": { "a": { "base64": "?" } } }), "not base64"),
            (
                json!({ "files": { "a": "", "a/b": "" } }),
                "cannot be placed",
            ),
            (json!({ "files": { name: "" } }), "too long"),
            (json!({ "files": { "a": "x".repeat(101) } }), "no space"),
            (
                json!({ "files": { "1/2/3/4/5/6/7/8/9/a": "" } }),
                "no space",
            ),
        ];
        for (arguments, says) in paths.into_iter().chain(others) {
            let error = given(&arguments).unwrap_err();
            assert!(error.contains(says), "{arguments}: {error}");
        }
        given(&json!({ "files": { "a": "x".repeat(100) } })).unwrap();
        given(&json!({ "files": { "1/2/3/4/5/6/7/8/9": "" } })).unwrap();
    }

    fn head(text: impl Into<Vec<u8>>) -> Head {
        let ring = crate::ring::Ring::new(0);
        ring.keep_head(PRINTED_BYTES);
        ring.push_head(&text.into());
        ring.head()
    }

    fn files(made: &[(&str, &[u8])]) -> Files {
        let most = Most {
            bytes: 16 << 20,
            nodes: 10_000,
        };
        let mut files = Files::new(most, THEN);
        let made = made
            .iter()
            .map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec()));
        place(&mut files, &made.collect(), THEN).unwrap();
        files
    }

    fn answered(exit: i32, [stdout, stderr]: [&[u8]; 2], files: &Files, given: &Program) -> Answer {
        let left = Left {
            exit,
            stdout: head(stdout),
            stderr: head(stderr),
            given,
            files,
        };
        let answer = left.answer(&Limits::default());
        let whole = answer.json.len() + json_len(answer.text.as_deref().unwrap());
        assert!(
            whole as u64 + 2_000 < Limits::default().result_bytes,
            "{whole}"
        );
        answer
    }

    fn value(answer: &Answer) -> Value {
        serde_json::from_str(&answer.json).unwrap()
    }

    #[test]
    fn a_result_has_what_was_printed_and_what_was_made_or_changed() {
        let program = Program {
            files: BTreeMap::from([
                ("same".to_owned(), b"1".to_vec()),
                ("d/other".to_owned(), b"1".to_vec()),
            ]),
            ..Program::default()
        };
        let tree = files(&[("same", b"1"), ("d/other", b"2"), ("new", b"\xff")]);
        let answer = answered(0, [b"out\xff", b"err"], &tree, &program);
        assert!(!answer.is_error);
        assert_eq!(answer.text.as_deref(), Some("out\u{fffd}"));
        assert_eq!(
            value(&answer),
            json!({
                "exit": 0, "stdout": "out\u{fffd}", "stderr": "err",
                "files": { "d/other": "2", "new": { "base64": "/w==" } },
            })
        );
        let answer = answered(3, [b"out", b"err\n"], &files(&[]), &Program::default());
        assert!(answer.is_error);
        assert_eq!(answer.text.as_deref(), Some("err\nexit status 3"));
        assert_eq!(value(&answer)["exit"], 3);
    }

    #[test]
    fn what_is_too_much_is_cut_and_said_to_be() {
        let (most, over) = (vec![b'x'; PRINTED_BYTES], vec![b'x'; PRINTED_BYTES + 1]);
        let none = files(&[]);
        let fits = value(&answered(0, [&most, b""], &none, &Program::default()));
        assert_eq!(
            (fits["stdout"].as_str().map(str::len), fits.get("cut")),
            (Some(PRINTED_BYTES), None)
        );
        let cut = value(&answered(1, [&over, &over], &none, &Program::default()));
        assert_eq!(cut["cut"], json!(["stderr", "stdout"]));
        // Every character of these takes six in JSON, and every one of those three.
        for worst in [vec![0; PRINTED_BYTES], vec![0xff; PRINTED_BYTES]] {
            let large = vec![0; FILE_BYTES];
            let tree = files(&[("large", &large)]);
            let worst = value(&answered(1, [&worst, &worst], &tree, &Program::default()));
            assert_eq!(worst["files"]["large"], json!({ "omitted": FILE_BYTES }));
        }
        // An ä that is cut in half is left away.
        let odd = [b"x".as_slice(), "ä".repeat(PRINTED_BYTES / 2).as_bytes()].concat();
        let cut = value(&answered(0, [&odd, b""], &none, &Program::default()));
        assert_eq!(
            cut["stdout"].as_str().map(str::len),
            Some(PRINTED_BYTES - 1)
        );
    }

    #[test]
    fn files_beyond_the_limits_are_named_or_at_least_counted() {
        let (half, rest) = (vec![b'x'; FILE_BYTES / 2], vec![b'x'; FILE_BYTES / 2 + 1]);
        let tree = files(&[("a", &half), ("b", &rest), ("c", b"y")]);
        let shown = value(&answered(0, [b"", b""], &tree, &Program::default()));
        assert_eq!(shown["files"]["a"].as_str().map(str::len), Some(half.len()));
        assert_eq!(shown["files"]["b"], json!({ "omitted": rest.len() }));
        assert_eq!(shown["files"]["c"], "y");

        let names: Vec<String> = (0..NAMED_FILES + 7).map(|n| format!("f{n:05}")).collect();
        let many: Vec<(&str, &[u8])> = names
            .iter()
            .map(|name| (name.as_str(), b"".as_slice()))
            .collect();
        let shown = value(&answered(0, [b"", b""], &files(&many), &Program::default()));
        assert_eq!(
            shown["files"].as_object().map(serde_json::Map::len),
            Some(NAMED_FILES)
        );
        assert_eq!(shown["moreFiles"], 7);

        // As deep as a guest can make it: nobody writes out its path.
        let mut deep = files(&[]);
        let mut at = ROOT;
        for _ in 0..5_000 {
            deep.make_directory(at, "d", THEN).unwrap();
            at = deep.at(at, "d").unwrap();
        }
        let how = Open {
            create: true,
            write: true,
            ..Open::default()
        };
        deep.open(at, "f", how, THEN).unwrap();
        let shown = value(&answered(0, [b"", b""], &deep, &Program::default()));
        assert_eq!(
            (&shown["files"], &shown["moreFiles"]),
            (&json!({}), &json!(1))
        );
    }
}
