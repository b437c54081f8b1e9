//! What the command prints. Texts of guests reach a terminal only through here.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use serde_json::Value;

/// Prints what was asked for. A reader that went away wants no more.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let text = text.trim_end_matches('\n');
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Says a line about what goes on, beside what was asked for.
pub(crate) fn note(text: &str) {
    // Whoever closed stderr does not want to know.
    let _unread = writeln!(io::stderr().lock(), "longshore: {text}");
}

/// One JSON document on one line, with nothing in it that a terminal would obey.
pub(crate) fn json(document: &Value) -> String {
    // Such characters stand only inside strings, where an escape means the same.
    let mut text = String::new();
    for c in document.to_string().chars() {
        if is_hostile(c) {
            escape(c, &mut text)
        } else {
            text.push(c)
        }
    }
    text
}

/// A text of somebody else's as one line that a terminal can show: what moves the cursor, sets
/// colours, rings, or turns the direction of writing is written out.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    neutral(text, false)
}

/// The same for a text that may have several lines.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    neutral(text, true)
}

/// The same for a terminal on stdout; a file or a program gets every byte.
pub(crate) fn for_stdout(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() {
        lines(text)
    } else {
        Cow::Borrowed(text)
    }
}

fn neutral(text: &str, keeps_lines: bool) -> Cow<'_, str> {
    let is_kept = |c: char| !is_hostile(c) || (keeps_lines && matches!(c, '\n' | '\t'));
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut neutral = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_kept(c) => neutral.push(c),
            '\n' => neutral.push_str("\\n"),
            '\t' => neutral.push_str("\\t"),
            c => escape(c, &mut neutral),
        }
    }
    Cow::Owned(neutral)
}

/// Control characters, the marks that reorder what stands around them, and the two line ends that
/// only some programs know.
fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(c: char, into: &mut String) {
    into.push_str(&format!("\\u{:04x}", u32::from(c)));
}

/// A path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '~');
    if text.chars().all(is_plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Rows under their heads, each column as wide as its widest cell.
pub(crate) fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let width = |text: &str| text.chars().count();
    let mut widths = heads.map(width);
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
    }
    let heads = heads.map(str::to_owned);
    let mut text = String::new();
    for row in std::iter::once(&heads).chain(rows) {
        let padded: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Names with their values, one a line; what has no value is left out.
pub(crate) fn facts(rows: &[(&str, Option<String>)]) -> String {
    let width = rows
        .iter()
        .filter(|(_, value)| value.is_some())
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for (name, value) in rows {
        if let Some(value) = value {
            text.push_str(&format!("{name:<width$}  {value}\n"));
        }
    }
    text
}

/// A member of a document as one line; none if it is not there or null.
pub(crate) fn member(document: &Value, name: &str) -> Option<String> {
    match document.get(name)? {
        Value::Null => None,
        Value::String(text) => Some(line(text).into_owned()),
        value => Some(json(value)),
    }
}

/// The same, or a dash for a table.
pub(crate) fn cell(document: &Value, name: &str) -> String {
    member(document, name)
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| "-".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_terminal_obeys_nothing() {
        let rows = [
            ("plain – ünïcode 日本", "plain – ünïcode 日本"),
            ("a\x1b[31mred", "a\\u001b[31mred"),
            ("two\nlines\tand\rmore", "two\\nlines\\tand\\u000dmore"),
            ("\u{9b}2J\u{7f}", "\\u009b2J\\u007f"),
            ("\u{202e}txt.exe", "\\u202etxt.exe"),
        ];
        for (text, expected) in rows {
            assert_eq!(line(text), expected);
        }
        assert_eq!(lines("a\n\tb\x07"), "a\n\tb\\u0007");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let document = json!({ "a": "\u{9b}\u{7f}\u{202e}\n\"", "é": [1, null] });
        let text = json(&document);
        assert!(!text.chars().any(is_hostile), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), document);
    }

    #[test]
    fn tables_and_facts_are_aligned() {
        let row = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        assert_eq!(
            table(["ID", "NAME"], &[row("é1234", "x"), row("1", "long")]),
            "ID     NAME\né1234  x\n1      long\n"
        );
        assert_eq!(table(["ID", "NAME"], &[]), "ID  NAME\n");
        let rows = [
            ("a", Some("1".to_owned())),
            ("missing", None),
            ("bcd", Some("2".to_owned())),
        ];
        assert_eq!(facts(&rows), "a    1\nbcd  2\n");
    }

    #[test]
    fn members_by_kind() {
        let document = json!({ "text": "a\nb", "number": 1, "null": null, "empty": "" });
        assert_eq!(member(&document, "text").as_deref(), Some("a\\nb"));
        assert_eq!(member(&document, "number").as_deref(), Some("1"));
        assert_eq!(member(&document, "null"), None);
        assert_eq!(cell(&document, "nothing"), "-");
        assert_eq!(cell(&document, "empty"), "-");
    }
}
