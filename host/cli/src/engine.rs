//! The engine, as every command that runs guests starts it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use longshore_sandbox::compile::ChildCommand;
use longshore_sandbox::sandbox::{Sandbox, Settings, WasiKind};

use crate::COMPILE_CHILD;
use crate::data::DataDir;
use crate::keys::RootSecret;
use crate::settings::Numbers;

/// Where native code is kept, and the key of its seal.
pub(crate) struct Cache {
    artifacts: cap_std::fs::Dir,
    key: [u8; 32],
}

impl Cache {
    /// That of a data directory, made if it is not there.
    pub(crate) fn of(data: &DataDir, secret: &RootSecret) -> anyhow::Result<Self> {
        Ok(Self {
            artifacts: data.artifacts()?,
            key: secret.artifact_key(),
        })
    }

    /// The same, if a server has made it before.
    pub(crate) fn kept(data: &Path) -> anyhow::Result<Option<Self>> {
        let Some(data) = DataDir::made(data)? else {
            return Ok(None);
        };
        match data.kept_secret()? {
            Some(secret) => Ok(Some(Self {
                artifacts: data.artifacts()?,
                key: secret.artifact_key(),
            })),
            None => Ok(None),
        }
    }
}

/// The engine with its threads. Without a cache every component is compiled anew.
pub(crate) fn sandbox(numbers: &Numbers, cache: Option<Cache>) -> anyhow::Result<Sandbox> {
    let (artifacts, artifact_key) = match cache {
        Some(Cache { artifacts, key }) => (Some(artifacts), key),
        // Nothing is kept, so nothing is sealed.
        None => (None, [0; 32]),
    };
    Sandbox::new(Settings {
        child: ChildCommand {
            program: this_program()?,
            args: vec![OsString::from(COMPILE_CHILD)],
        },
        artifacts,
        artifact_key,
        guest_threads: numbers.guest_threads,
        slots: numbers.instance_slots,
        bounds: numbers.bounds(),
        compile_limits: numbers.compile,
        wasi: if numbers.server.durable {
            WasiKind::Virtual
        } else {
            WasiKind::Host
        },
        own_dirs: numbers.server.own_dirs.clone(),
    })
    .context("starting the engine")
}

/// This very program, also after an upgrade has put another in its place: native code of another build
/// would not load.
fn this_program() -> anyhow::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.symlink_metadata().is_ok() {
        return Ok(running.to_owned());
    }
    std::env::current_exe().context("finding this program, which compiles components")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compile_child_is_this_program() {
        let same = std::fs::canonicalize(this_program().unwrap()).unwrap();
        assert_eq!(
            same,
            std::fs::canonicalize(std::env::current_exe().unwrap()).unwrap()
        );
    }

    #[test]
    fn a_cache_is_used_and_not_made_without_a_server() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("longshore");
        assert!(Cache::kept(&path).unwrap().is_none());
        assert!(!path.exists());
        let data = DataDir::open(&path).unwrap();
        assert!(Cache::kept(&path).unwrap().is_none());
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
        let made = Cache::of(&data, &data.secret().unwrap()).unwrap();
        assert_eq!(Cache::kept(&path).unwrap().unwrap().key, made.key);
    }
}
