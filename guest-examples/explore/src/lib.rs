//! Tools that say what they find around them: the values of their environment, and what the file system lets them do.
//! What a component may touch is for its operator to grant; whoever calls these sees what that comes to.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;

use longshore_guest::ask::Reply;
use longshore_guest::{Argument, CallError, Context, tool};

/// An answer in which nothing is said.
#[derive(Argument)]
struct Go {
    #[tool(title = "Go on")]
    go_on: bool,
}

/// The values of the environment, at once or when somebody says so.
#[tool]
fn environment(
    /** Whether to ask first. */
    ask: Option<bool>,
    ctx: &Context,
) -> Result<String, CallError> {
    if ask == Some(true)
        && !matches!(
            ctx.ask("go", "Go on?")?,
            Reply::Accepted(Go { go_on: true })
        )
    {
        return Ok("not looked at".to_owned());
    }
    let values: BTreeMap<String, String> = std::env::vars().collect();
    Ok(serde_json::to_string(&values).unwrap_or_default())
}

/// Does one thing with files, and says what came of it.
#[tool]
fn touch(
    /** One of read, list, write, truncate, mkdir, remove, rmdir, rename, link, symlink. */
    what: String,
    /** With what. */
    path: String,
    /** Where to, of what has two places; of write the text. */
    to: Option<String>,
) -> String {
    let (path, other) = (Path::new(&path), to.unwrap_or_default());
    let done = match what.as_str() {
        "read" => read(path),
        "list" => list(path),
        "write" => OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .and_then(|mut file| file.write_all(other.as_bytes()))
            .map(|()| "written".to_owned()),
        "truncate" => OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| file.set_len(0))
            .map(|()| "truncated".to_owned()),
        "mkdir" => fs::create_dir(path).map(|()| "made".to_owned()),
        "remove" => fs::remove_file(path).map(|()| "removed".to_owned()),
        "rmdir" => fs::remove_dir(path).map(|()| "removed".to_owned()),
        "rename" => fs::rename(path, other).map(|()| "renamed".to_owned()),
        "link" => fs::hard_link(path, other).map(|()| "linked".to_owned()),
        "symlink" => symlink(path, &other),
        _ => return format!("there is no {what}"),
    };
    done.unwrap_or_else(|error| format!("refused: {error}"))
}

/// The first bytes are enough to know a file by.
fn read(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(1_000).read_to_end(&mut bytes)?;
    Ok(format!("read {}", String::from_utf8_lossy(&bytes)))
}

fn list(path: &Path) -> std::io::Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(format!("listed {}", names.join(" ")))
}

/// `path` is what the link says, `at` where it stands.
#[cfg(target_os = "wasi")]
#[expect(
    deprecated,
    reason = "the one function that makes a link on every system that has links"
)]
fn symlink(path: &Path, at: &str) -> std::io::Result<String> {
    fs::soft_link(path, at).map(|()| "linked".to_owned())
}

/// Only in the sandbox is there anything to try.
#[cfg(not(target_os = "wasi"))]
fn symlink(_: &Path, _: &str) -> std::io::Result<String> {
    Err(std::io::ErrorKind::Unsupported.into())
}
