//! The settings file: found, read, and flattened to keys.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use longshore_sandbox::regular;
use toml::{Table, Value};

use crate::contents;

/// Its name in the data directory.
pub(crate) const NAME: &str = "longshore.toml";
/// A file larger than this is another file.
const MOST_BYTES: u64 = 1024 * 1024;

/// What one says.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its keys with their paths, in its order.
    pub(crate) values: Vec<(String, Value)>,
}

impl SettingsFile {
    /// The file that somebody named, which must be there, or else the one in the data directory, if it is.
    pub(crate) fn find(named: Option<&Path>, data: &Path) -> Result<Option<Self>, String> {
        match named {
            Some(path) => Self::read(path, contents::read).map(Some).map_err(|fault| {
                format!("{fault}; --config or LONGSHORE_CONFIG names this settings file")
            }),
            None => {
                let path = data.join(NAME);
                // A link to nowhere is somebody's mistake, and not the same as no file.
                match path.symlink_metadata() {
                    Ok(_) => Self::read(&path, regular::read).map(Some),
                    Err(_) => Ok(None),
                }
            }
        }
    }

    fn read(path: &Path, read: fn(&Path, u64) -> io::Result<Vec<u8>>) -> Result<Self, String> {
        let shown = path.display();
        let bytes = read(path, MOST_BYTES).map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => format!("{shown} is too large for a settings file"),
            _ => format!("cannot read {shown}: {error}"),
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| format!("cannot read {shown}: it is not UTF-8 text"))?;
        let values = parse(&text).map_err(|fault| format!("{shown}{fault}"))?;
        Ok(Self {
            path: path.to_owned(),
            values,
        })
    }
}

fn parse(text: &str) -> Result<Vec<(String, Value)>, String> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| {
            text[..span.start.min(text.len())].matches('\n').count() + 1
        });
        format!(" is not TOML: line {line}: {}", error.message())
    })?;
    let mut values = Vec::new();
    flatten("", table, &mut values);
    Ok(values)
}

fn flatten(section: &str, table: Table, into: &mut Vec<(String, Value)>) {
    for (name, value) in table {
        let key = if section.is_empty() {
            name
        } else {
            format!("{section}.{name}")
        };
        match value {
            Value::Table(table) => flatten(&key, table, into),
            value => into.push((key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_become_paths() {
        let values = parse("grace_ms = 5\nlisten = \"x\"\n[limits]\ncpu_ms = 7\n").unwrap();
        let keys: Vec<(&str, String)> = values
            .iter()
            .map(|(key, value)| (key.as_str(), value.to_string()))
            .collect();
        assert_eq!(
            keys,
            [
                ("grace_ms", "5".to_owned()),
                ("limits.cpu_ms", "7".to_owned()),
                ("listen", "\"x\"".to_owned())
            ]
        );
    }

    #[test]
    fn what_is_not_toml_is_named_with_its_line() {
        for (text, line) in [("a = 1\nb =\n", "line 2"), ("a = 1\na = 2\n", "line 2")] {
            let fault = parse(text).unwrap_err();
            assert!(fault.contains(line), "{fault}");
        }
    }

    #[test]
    fn only_a_named_file_must_be_there() {
        let data = tempfile::tempdir().unwrap();
        assert!(SettingsFile::find(None, data.path()).unwrap().is_none());
        let named = data.path().join("other.toml");
        let fault = SettingsFile::find(Some(&named), data.path()).unwrap_err();
        assert!(
            fault.contains("other.toml") && fault.contains("--config"),
            "{fault}"
        );
        std::fs::write(data.path().join(NAME), "grace_ms = 5").unwrap();
        let found = SettingsFile::find(None, data.path()).unwrap().unwrap();
        assert_eq!(found.values.len(), 1);
        std::fs::write(&named, "").unwrap();
        let found = SettingsFile::find(Some(&named), data.path())
            .unwrap()
            .unwrap();
        assert_eq!((found.path, found.values.len()), (named, 0));
    }
}
