//! A folder in which somebody writes a tool, and what is made of it.

mod kit;
mod template;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use anyhow::{Context as _, anyhow};
use clap::ValueEnum;
use longshore_server::component::Name;
use longshore_server::policy::manifest::{self, Manifest};
use tokio::process::Command;

use crate::contents;
use crate::exit::{Exit, Failure, OrExit as _};

/// What is ours in a project: it is made anew whenever it is missing.
pub(crate) const OURS: &str = ".longshore";
/// What a tool needs, beside its source.
const MANIFEST: &str = "manifest.toml";
/// Files beyond this many are nobody's handwriting.
const MOST_FILES: usize = 10_000;
/// Far more than anybody writes by hand.
const MANIFEST_BYTES: u64 = 1024 * 1024;

/// A language with a helper of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub(crate) enum Language {
    Rust,
    Python,
    TypeScript,
    JavaScript,
}

impl Language {
    /// The file by which a project of it is known.
    fn source(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Python => "tool.py",
            Self::TypeScript => "tool.ts",
            Self::JavaScript => "tool.js",
        }
    }

    /// The file that people write in.
    fn written_in(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs",
            Self::Python | Self::TypeScript | Self::JavaScript => self.source(),
        }
    }

    /// The folder of its helper.
    fn helper(self) -> &'static str {
        match self {
            Self::Rust => "longshore-guest",
            Self::Python => "longshore-python",
            Self::TypeScript | Self::JavaScript => "longshore-typescript",
        }
    }
}

/// A folder in which somebody writes a tool.
#[derive(Debug)]
pub(crate) struct Project {
    folder: PathBuf,
    language: Language,
    name: Name,
}

impl Project {
    /// A new one, with a tool that works.
    pub(crate) fn begin(folder: &Path, language: Language) -> Result<Self, Failure> {
        let named = named(folder).or_exit(Exit::Usage)?;
        let is_free = match fs::read_dir(folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => {
                let looking = format!("looking at {}", folder.display());
                return Err(error).context(looking).or_exit(Exit::Failed);
            }
        };
        if !is_free {
            let message = format!(
                "{} is there already, and not empty: use another name",
                folder.display()
            );
            return Err(Failure::new(Exit::Failed, message));
        }
        for (path, text) in template::files(named.as_str(), language) {
            write(&folder.join(path), text.as_bytes()).or_exit(Exit::Failed)?;
        }
        let project = Self {
            folder: fs::canonicalize(folder).or_exit(Exit::Failed)?,
            language,
            name: named,
        };
        project.lay_out().or_exit(Exit::Failed)?;
        Ok(project)
    }

    /// The one in that folder.
    pub(crate) fn at(folder: &Path) -> Result<Self, Failure> {
        let shown = folder.display();
        let folder = fs::canonicalize(folder)
            .with_context(|| format!("finding {shown}"))
            .or_exit(Exit::Usage)?;
        let has = |language: &Language| folder.join(language.source()).is_file();
        // A Cargo.toml lies in many a folder; what is written for us says so by its name.
        let all = [
            Language::Python,
            Language::TypeScript,
            Language::JavaScript,
            Language::Rust,
        ];
        let Some(language) = all.into_iter().find(has) else {
            let message = format!(
                "there is no tool in {shown}: neither tool.py, tool.ts, tool.js nor Cargo.toml; `longshore new NAME --lang LANGUAGE` makes one"
            );
            return Err(Failure::new(Exit::Usage, message));
        };
        let name = named(&folder).or_exit(Exit::Usage)?;
        Ok(Self {
            folder,
            language,
            name,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What its tools are served under.
    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// The file that people write in.
    pub(crate) fn source(&self) -> PathBuf {
        self.folder.join(self.language.written_in())
    }

    /// What is made of it.
    fn made(&self) -> PathBuf {
        self.folder.join(format!("{}.wasm", self.name))
    }

    /// What is ours in it.
    pub(crate) fn ours(&self) -> PathBuf {
        self.folder.join(OURS)
    }

    fn lay_out(&self) -> anyhow::Result<()> {
        kit::lay_out(&self.ours(), self.language)
    }

    /// Whether what was made of it is newer than all that it is made of.
    fn is_made(&self) -> anyhow::Result<bool> {
        self.lay_out()?;
        let Ok(made) = fs::metadata(self.made()).and_then(|made| made.modified()) else {
            return Ok(false);
        };
        let parts = [
            self.folder.clone(),
            self.ours().join("guests"),
            self.ours().join("wit"),
        ];
        let mut sources = parts.iter().flat_map(|part| sources(part));
        Ok(sources.all(|(_, (written, _))| written.is_some_and(|written| written < made)))
    }

    /// Makes it, with all that it needs, and gives the file.
    pub(crate) async fn build(&self) -> Result<PathBuf, Failure> {
        self.lay_out()
            .with_context(|| format!("writing {}", self.ours().display()))
            .or_exit(Exit::Failed)?;
        let tools = tools(self.language).or_exit(Exit::Failed)?;
        let draft = self.ours().join("made.wasm");
        let status = Command::new("bash")
            .arg(kit::maker(&self.ours(), self.language))
            .args([&tools, &self.folder, &draft])
            .stdin(Stdio::null())
            // What is asked for goes there, and this is not it.
            .stdout(io::stderr())
            .kill_on_drop(true)
            .status()
            .await
            .context("starting bash, which makes it")
            .or_exit(Exit::Failed)?;
        if !status.success() {
            let message = format!(
                "{} could not be built: what is said above tells why",
                self.folder.display()
            );
            return Err(Failure::new(Exit::Failed, message));
        }
        let made = self.made();
        self.finish(&draft, &made).or_exit(Exit::Failed)?;
        Ok(made)
    }

    /// What was made, with what it asks for in it.
    fn finish(&self, draft: &Path, made: &Path) -> anyhow::Result<()> {
        let path = self.folder.join(MANIFEST);
        if path.is_file() {
            let reading = || format!("reading {}", path.display());
            let text = contents::read(&path, MANIFEST_BYTES).with_context(reading)?;
            let text = String::from_utf8(text)
                .context("it is no text")
                .with_context(reading)?;
            Manifest::of_toml(&text).map_err(|fault| anyhow!("{}: {fault}", path.display()))?;
            let mut bytes = fs::read(draft).context("reading what was made")?;
            bytes.extend(custom_section(manifest::SECTION, text.as_bytes()));
            write(draft, &bytes)?;
        }
        fs::rename(draft, made).with_context(|| format!("writing {}", made.display()))
    }
}

/// The component of a path: the file itself, or what is made of the folder, anew if anything in it changed.
pub(crate) async fn component_at(path: &Path) -> Result<PathBuf, Failure> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let project = Project::at(path)?;
    if project.is_made().or_exit(Exit::Failed)? {
        Ok(project.made())
    } else {
        project.build().await
    }
}

/// A section at the end of a component that engines leave alone (WebAssembly, custom sections).
fn custom_section(name: &str, content: &[u8]) -> Vec<u8> {
    const CUSTOM: u8 = 0;
    let mut body = number(name.len());
    body.extend(name.as_bytes());
    body.extend(content);
    let mut section = vec![CUSTOM];
    section.extend(number(body.len()));
    section.extend(body);
    section
}

/// Unsigned LEB128.
fn number(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn named(folder: &Path) -> anyhow::Result<Name> {
    let absolute = std::path::absolute(folder)?;
    let name = absolute.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} has no name", folder.display()))?;
    name.parse()
        .map_err(|fault| anyhow!("the folder's name becomes the tool's: {fault}"))
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// Where what it takes to make one is installed: once for all projects, and for each set of versions.
fn tools(language: Language) -> anyhow::Result<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let cache = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .context("HOME is not set: set it, or XDG_CACHE_HOME")?;
    Ok(cache.join("longshore").join(kit::versions(language)))
}

/// What a folder held at a moment: each source, when it was written, and how large it is.
type Sources = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// What somebody may have written, and nothing that is made of it.
pub(crate) fn sources(folder: &Path) -> Sources {
    let mut found = Sources::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_made = name.starts_with('.')
                || [
                    "target",
                    "node_modules",
                    "__pycache__",
                    "package-lock.json",
                    "Cargo.lock",
                ]
                .contains(&name.as_ref())
                || name.ends_with(".wasm");
            if is_made || found.len() >= MOST_FILES {
                continue;
            }
            let Ok(about) = entry.metadata() else {
                continue;
            };
            if about.is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(entry.path(), (about.modified().ok(), about.len()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_format_wants_them() {
        let rows: [(usize, &[u8]); 4] = [
            (0, &[0]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (624_485, &[0xe5, 0x8e, 0x26]),
        ];
        for (value, bytes) in rows {
            assert_eq!(number(value), bytes, "{value}");
        }
        assert_eq!(custom_section("ab", b"c"), [0, 4, 2, b'a', b'b', b'c']);
    }

    #[test]
    fn a_project_is_known_by_what_lies_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("my-tool");
        fs::create_dir(&at).unwrap();
        let nothing = Project::at(&at).unwrap_err();
        assert_eq!(nothing.exit, Exit::Usage);
        assert!(nothing.to_string().contains("longshore new"), "{nothing}");
        // The last that is written goes before those that came earlier.
        for language in [
            Language::Rust,
            Language::JavaScript,
            Language::TypeScript,
            Language::Python,
        ] {
            fs::write(at.join(language.source()), "").unwrap();
            let project = Project::at(&at).unwrap();
            assert_eq!(
                (project.language, project.name().as_str()),
                (language, "my-tool")
            );
        }
        let unnamed = folder.path().join("My Tool");
        fs::create_dir(&unnamed).unwrap();
        fs::write(unnamed.join("tool.py"), "").unwrap();
        let refused = Project::at(&unnamed).unwrap_err().to_string();
        assert!(refused.contains("a-z"), "{refused}");
    }

    #[test]
    fn a_new_project_takes_nobodys_place() {
        let folder = tempfile::tempdir().unwrap();
        for language in Language::value_variants() {
            let name = language.to_possible_value().unwrap().get_name().to_owned();
            let at = folder.path().join(name);
            let begun = Project::begin(&at, *language).unwrap();
            assert!(begun.source().is_file() && begun.ours().is_dir());
            assert_eq!(Project::at(&at).unwrap().language, *language);
            let again = Project::begin(&at, *language).unwrap_err();
            assert!(again.to_string().contains("not empty"), "{again}");
        }
    }

    #[test]
    fn what_is_made_is_no_source() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for dir in ["src", "target", ".longshore", "node_modules"] {
            fs::create_dir(at(dir)).unwrap();
        }
        for file in [
            "tool.py",
            "src/lib.rs",
            "target/x",
            ".longshore/y",
            "node_modules/z",
            "tool.wasm",
        ] {
            fs::write(at(file), "1").unwrap();
        }
        let before = sources(folder.path());
        let names: Vec<PathBuf> = before.keys().cloned().collect();
        assert_eq!(names, [at("src/lib.rs"), at("tool.py")]);
        fs::write(at("tool.wasm"), "22").unwrap();
        assert_eq!(sources(folder.path()), before);
        fs::write(at("src/lib.rs"), "22").unwrap();
        assert_ne!(sources(folder.path()), before);
    }
}
