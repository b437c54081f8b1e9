//! The example components, as `just guests` leaves them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests lie in a folder of the repository")
        .to_owned()
}

/// Every built component, by name.
///
/// # Panics
/// If none was built.
#[must_use]
pub fn all() -> BTreeMap<String, PathBuf> {
    let folder = root().join("guest-examples/target/components");
    let found: BTreeMap<String, PathBuf> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_stem()?.to_str()?.to_owned();
            (path.extension()? == "wasm").then_some((name, path))
        })
        .collect();
    assert!(
        !found.is_empty(),
        "no components in {}: run `just guests` first",
        folder.display()
    );
    found
}

/// One built component.
///
/// # Panics
/// If it was not built.
#[must_use]
pub fn component(name: &str) -> PathBuf {
    all()
        .remove(name)
        .unwrap_or_else(|| panic!("no component {name}: run `just guests` first"))
}

/// The program under test, built beside the tests.
///
/// # Panics
/// If it was not built.
#[must_use]
pub fn longshore() -> PathBuf {
    let mut path = std::env::current_exe().expect("a test has a path");
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path.push("longshore");
    assert!(
        path.exists(),
        "{} is missing: run `just build` first",
        path.display()
    );
    path
}
