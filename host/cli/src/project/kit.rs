//! What Longshore brings for a language: the contract, the helper, and how a component is made. It is part of the
//! program, so that it fits the version, and is written into each project.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use include_dir::{Dir, DirEntry, include_dir};

use super::{Language, write};

/// The contract between a tool and its host.
static CONTRACT: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../wit");
static RUST: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../guest-examples/longshore-guest");
static RUST_MACROS: Dir<'_> =
    include_dir!("$CARGO_MANIFEST_DIR/../../guest-examples/longshore-guest-macros");
/// What those two have in common with the examples.
const RUST_WORKSPACE: &str = include_str!("../../../../guest-examples/Cargo.toml");
static PYTHON: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../guest-examples/longshore-python");
static TYPESCRIPT: Dir<'_> =
    include_dir!("$CARGO_MANIFEST_DIR/../../guest-examples/longshore-typescript");

/// Where helpers lie, as their makers look for the contract from there.
const HELPERS: &str = "guests";
/// What makes a component of a folder.
const MAKER: &str = "make";

/// Writes what a project of that language needs. What is there as it should be is left alone, so that nothing is made
/// again for it.
pub(super) fn lay_out(ours: &Path, language: Language) -> anyhow::Result<()> {
    // None of it is the author's.
    write_new(&ours.join(".gitignore"), b"*\n")?;
    write_all(&ours.join("wit"), &CONTRACT)?;
    let helpers = ours.join(HELPERS);
    let helper = helpers.join(language.helper());
    match language {
        Language::Rust => {
            write_all(&helper, &RUST)?;
            write_all(&helpers.join("longshore-guest-macros"), &RUST_MACROS)?;
            let workspace = rust_workspace()?;
            write_new(&helpers.join("Cargo.toml"), workspace.as_bytes())
        }
        Language::Python => write_all(&helper, &PYTHON),
        Language::TypeScript | Language::JavaScript => write_all(&helper, &TYPESCRIPT),
    }
}

/// What makes a component of a project of that language.
pub(super) fn maker(ours: &Path, language: Language) -> PathBuf {
    ours.join(HELPERS).join(language.helper()).join(MAKER)
}

/// A word that changes with the versions of what is installed to make one.
pub(super) fn versions(language: Language) -> String {
    let pins: &[(&Dir<'_>, &str)] = match language {
        // Its own tools keep versions apart.
        Language::Rust => &[],
        Language::Python => &[(&PYTHON, "requirements.txt")],
        Language::TypeScript | Language::JavaScript => &[
            (&TYPESCRIPT, "package.json"),
            (&TYPESCRIPT, "package-lock.json"),
        ],
    };
    let mut hasher = blake3::Hasher::new();
    for (dir, name) in pins {
        hasher.update(dir.get_file(name).map_or(&[], |file| file.contents()));
    }
    let hash = hasher.finalize().to_hex();
    format!("{}-{}", language.helper(), &hash[..16])
}

/// The workspace of the helper and its macros, without the examples.
fn rust_workspace() -> anyhow::Result<String> {
    let mut workspace: toml::Table = RUST_WORKSPACE
        .parse()
        .context("reading the helper's workspace")?;
    let table = workspace
        .get_mut("workspace")
        .and_then(toml::Value::as_table_mut);
    let table = table.context("the helper has no workspace")?;
    let members = ["longshore-guest", "longshore-guest-macros"];
    table.insert(
        "members".to_owned(),
        members.map(toml::Value::from).to_vec().into(),
    );
    Ok(workspace.to_string())
}

fn write_all(to: &Path, dir: &Dir<'_>) -> anyhow::Result<()> {
    for entry in dir.entries() {
        let name = entry
            .path()
            .file_name()
            .context("an entry without a name")?;
        match entry {
            DirEntry::Dir(dir) => write_all(&to.join(name), dir)?,
            DirEntry::File(file) => write_new(&to.join(name), file.contents())?,
        }
    }
    Ok(())
}

fn write_new(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    match std::fs::read(path) {
        Ok(there) if there == bytes => Ok(()),
        Ok(_) | Err(_) => write(path, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_its_maker_and_the_contract() {
        for language in [
            Language::Rust,
            Language::Python,
            Language::TypeScript,
            Language::JavaScript,
        ] {
            let folder = tempfile::tempdir().unwrap();
            lay_out(folder.path(), language).unwrap();
            let maker = maker(folder.path(), language);
            assert!(maker.is_file(), "{}", maker.display());
            // As makers and the helper for Rust look for it.
            let contract = maker.parent().unwrap().join("../../wit/tool.wit");
            assert!(contract.is_file(), "{language:?}");
            // A second time nothing changes, not even a time.
            let before = std::fs::metadata(&maker).unwrap().modified().unwrap();
            lay_out(folder.path(), language).unwrap();
            assert_eq!(
                std::fs::metadata(&maker).unwrap().modified().unwrap(),
                before
            );
        }
    }

    #[test]
    fn the_workspace_of_the_helper_has_no_examples() {
        let workspace: toml::Table = rust_workspace().unwrap().parse().unwrap();
        let members = workspace["workspace"]["members"].as_array().unwrap();
        assert_eq!(members.len(), 2);
        assert!(workspace["workspace"]["dependencies"]["longshore-guest"]["path"].is_str());
    }
}
