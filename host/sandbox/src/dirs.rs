//! Directories of the host in a run: whether they may be opened, and what of them is never opened.
//!
//! The engine's own file system keeps a guest below the directory that it was given, whatever paths and links there
//! are. What it does not keep away are things in it that only look like files: to open a pipe that nobody writes
//! to takes a thread for ever, and a device is no file at all.

use std::path::{Path, PathBuf};

use longshore_policy::dirs::{Access, HostPath, Mount};
use wasmtime::component::{Linker, Resource};
use wasmtime::{Result, StoreContextMut};
use wasmtime_wasi::filesystem::WasiFilesystemView as _;
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor as _, OpenFlags,
    PathFlags,
};
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

use crate::host::State;

/// Why a directory is not opened, in a word for its operator.
#[derive(Debug, thiserror::Error)]
pub enum Unopened {
    /// There is nothing that can be opened.
    #[error("{path} cannot be opened: {error}")]
    Absent {
        /// The path.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// It is something else.
    #[error("{0} is no directory")]
    NoDirectory(String),
    /// A link lies on the way, and could lead elsewhere tomorrow.
    #[error("{path} is reached over a link: name {real}")]
    Linked {
        /// The path.
        path: String,
        /// Where it leads.
        real: String,
    },
    /// The server keeps its own things there.
    #[error("{path} holds, or lies in, {own}, which is the server's own")]
    Own {
        /// The path.
        path: String,
        /// What is the server's.
        own: String,
    },
}

/// Whether a directory can be given to a guest: it is there, it is what its path says, and nothing of the server's own
/// is in it.
pub fn check(host: &HostPath, own: &[PathBuf]) -> Result<(), Unopened> {
    let path = host.as_str().to_owned();
    let real = match std::fs::canonicalize(&path) {
        Ok(real) => real,
        Err(error) => return Err(Unopened::Absent { path, error }),
    };
    if real != Path::new(&path) {
        let real = real.display().to_string();
        return Err(Unopened::Linked { path, real });
    }
    if !real.is_dir() {
        return Err(Unopened::NoDirectory(path));
    }
    for own in own {
        let own = std::fs::canonicalize(own).unwrap_or_else(|_| own.clone());
        if real.starts_with(&own) || own.starts_with(&real) {
            let own = own.display().to_string();
            return Err(Unopened::Own { path, own });
        }
    }
    Ok(())
}

/// Gives a guest the directories that it was granted.
pub(crate) fn preopen(context: &mut WasiCtxBuilder, mounts: &[Mount]) -> Result<()> {
    for mount in mounts {
        check(&mount.host, &[]).map_err(|unopened| wasmtime::Error::msg(unopened.to_string()))?;
        let perms = match mount.access {
            Access::ReadOnly => FsPerms::ReadOnly,
            Access::ReadWrite => FsPerms::ReadWrite,
        };
        context.preopened_dir(mount.host.as_str(), mount.guest.as_str(), perms)?;
    }
    Ok(())
}

/// The version at which the engine offers its file system.
const TYPES: &str = "wasi:filesystem/types@0.2.12";

/// Puts in front of the engine's own way to open a file one that opens nothing but files and directories.
pub(crate) fn guard(linker: &mut Linker<State>) -> Result<()> {
    linker.allow_shadowing(true);
    linker.instance(TYPES)?.func_wrap_async(
        "[method]descriptor.open-at",
        |store: StoreContextMut<'_, State>, (on, at, path, how, flags): Opening| {
            Box::new(open_at(store, on, at, path, how, flags))
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

type Opening = (
    Resource<Descriptor>,
    PathFlags,
    String,
    OpenFlags,
    DescriptorFlags,
);
type Opened = (Result<Resource<Descriptor>, ErrorCode>,);

async fn open_at(
    mut store: StoreContextMut<'_, State>,
    on: Resource<Descriptor>,
    at: PathFlags,
    path: String,
    how: OpenFlags,
    flags: DescriptorFlags,
) -> Result<Opened> {
    let mut files = store.data_mut().filesystem();
    let again = || Resource::new_borrow(on.rep());
    let found = match files.stat_at(again(), at, path.clone()).await {
        Ok(stat) => stat.type_,
        // What is not there may be made, and whatever else is wrong the next one says.
        Err(_) => DescriptorType::RegularFile,
    };
    let opened = match found {
        DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink => {
            files.open_at(again(), at, path, how, flags).await
        }
        DescriptorType::Unknown
        | DescriptorType::BlockDevice
        | DescriptorType::CharacterDevice
        | DescriptorType::Fifo
        | DescriptorType::Socket => Err(FsError::from(ErrorCode::NotPermitted)),
    };
    Ok((match opened {
        Ok(opened) => Ok(opened),
        Err(error) => Err(error.downcast()?),
    },))
}
