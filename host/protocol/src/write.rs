//! Writing JSON into a `String`, member by member, with the commas in the right places.

use std::fmt::{Display, Write as _};

/// An object under construction. `close` it, or the text has no end.
pub(crate) struct Object<'o> {
    out: &'o mut String,
    empty: bool,
}

impl<'o> Object<'o> {
    pub(crate) fn open(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, empty: true }
    }

    pub(crate) fn close(self) {
        self.out.push('}');
    }

    /// Writes the key; the caller writes the value into what it gets.
    pub(crate) fn key(&mut self, key: &str) -> &mut String {
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
        push_string(self.out, key);
        self.out.push(':');
        self.out
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        push_string(self.key(key), value);
    }

    pub(crate) fn optional_text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    /// JSON that somebody else wrote.
    pub(crate) fn raw(&mut self, key: &str, json: &str) {
        push_raw(self.key(key), json);
    }

    /// JSON that this crate wrote, and is one line already.
    pub(crate) fn ours(&mut self, key: &str, json: &str) {
        self.key(key).push_str(json);
    }

    /// A number or a boolean.
    pub(crate) fn plain(&mut self, key: &str, value: impl Display) {
        push_plain(self.key(key), value);
    }

    pub(crate) fn object(&mut self, key: &str) -> Object<'_> {
        Object::open(self.key(key))
    }

    /// Members written before, without their braces.
    pub(crate) fn splice(&mut self, members: &str) {
        if members.is_empty() {
            return;
        }
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
        self.out.push_str(members);
    }
}

/// Writes a list, each item by `write`.
pub(crate) fn push_list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

/// Writes a number or a boolean, whose text is JSON already.
pub(crate) fn push_plain(out: &mut String, value: impl Display) {
    write!(out, "{value}").expect("a string takes whatever is written to it");
}

/// Splices JSON of others. A line break in JSON can only be space between tokens, so a space replaces it.
pub(crate) fn push_raw(out: &mut String, json: &str) {
    if json.bytes().any(|byte| matches!(byte, b'\n' | b'\r')) {
        out.extend(
            json.chars()
                .map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }),
        );
    } else {
        out.push_str(json);
    }
}

/// Writes a string with its quotes and escapes.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            control => {
                write!(out, "\\u{control:04x}").expect("a string takes whatever is written to it")
            }
        }
        // What was escaped is one ASCII byte.
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_string_reads_back_as_itself() {
        let every: String = (0..=0x2100).filter_map(char::from_u32).collect();
        for text in [
            "",
            "plain",
            "\"\\\u{0}\u{8}\u{c}\u{1f}\u{7f}\u{2028}",
            "tab\tand\r\n",
            "é世界🦀",
            &every,
        ] {
            let mut out = String::new();
            push_string(&mut out, text);
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
            assert!(!out.contains(['\n', '\r']));
        }
    }

    #[test]
    fn spliced_json_is_one_line_and_means_the_same() {
        let json = "{\n  \"a\": \"x\\ny\",\r\n  \"é\": [1,\n2]\n}";
        let mut out = String::new();
        push_raw(&mut out, json);
        assert!(!out.contains(['\n', '\r']));
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&out), value(json));
    }
}
