//! Directories of the host in a run: whether they may be opened, and what of them is never opened.
//!
//! The engine's own file system keeps a guest below the directory that it was given, whatever paths and links there
//! are. What it does not keep away are things in it that only look like files: to open a pipe that nobody writes
//! to takes a thread for ever, and a device is no file at all. So what is opened is opened here.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longshore_policy::dirs::{Access, HostPath, Mount};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::process::{Resource as Limit, getrlimit};
use tokio::sync::Semaphore;
use wasmtime::component::{Linker, Resource};
use wasmtime::{Result, StoreContextMut};
use wasmtime_wasi::filesystem::WasiFilesystemView as _;
use wasmtime_wasi::filesystem::{Dir, File};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorType, DirectoryEntryStream, ErrorCode,
    HostDescriptor as _, OpenFlags, PathFlags,
};
use wasmtime_wasi::{FsPerms, OpenMode, WasiCtxBuilder};

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

/// Opens a directory that is to be given to a guest: it is there, no link lies on the way to it at the moment in which
/// it is opened, and nothing of the server's own is in it. Whatever stands at its path later is something else.
fn open(host: &HostPath, own: &[PathBuf]) -> Result<OwnedFd, Unopened> {
    let path = host.as_str().to_owned();
    let how = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let on_the_way = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let dir = match openat2(CWD, &path, how, Mode::empty(), on_the_way) {
        Ok(dir) => dir,
        Err(Errno::LOOP) => {
            let real = std::fs::canonicalize(&path).unwrap_or_default();
            let real = real.display().to_string();
            return Err(Unopened::Linked { path, real });
        }
        Err(Errno::NOTDIR) if Path::new(&path).exists() => {
            return Err(Unopened::NoDirectory(path));
        }
        Err(error) => {
            let error = error.into();
            return Err(Unopened::Absent { path, error });
        }
    };
    // Where it lies now, which may be elsewhere than its path says since a directory above it was moved.
    let real = match std::fs::read_link(by_number(&dir)) {
        Ok(real) => real,
        Err(error) => return Err(Unopened::Absent { path, error }),
    };
    for own in own {
        let own = std::fs::canonicalize(own).unwrap_or_else(|_| own.clone());
        if real.starts_with(&own) || own.starts_with(&real) {
            let own = own.display().to_string();
            return Err(Unopened::Own { path, own });
        }
    }
    Ok(dir)
}

/// A path that is that very directory, whatever its own path leads to.
fn by_number(dir: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", dir.as_raw_fd())
}

/// Whether a directory can be given to a guest now.
pub fn check(host: &HostPath, own: &[PathBuf]) -> Result<(), Unopened> {
    open(host, own).map(drop)
}

/// Gives a guest the directories that it was granted.
pub(crate) fn preopen(
    context: &mut WasiCtxBuilder,
    mounts: &[Mount],
    own: &[PathBuf],
) -> Result<()> {
    for mount in mounts {
        let dir = open(&mount.host, own)
            .map_err(|unopened| wasmtime::Error::msg(unopened.to_string()))?;
        let perms = match mount.access {
            Access::ReadOnly => FsPerms::ReadOnly,
            Access::ReadWrite => FsPerms::ReadWrite,
        };
        context.preopened_dir(by_number(&dir), mount.guest.as_str(), perms)?;
    }
    Ok(())
}

/// Handles of one run that has directories of the host: each may be a file that is open.
pub(crate) const HANDLES: u64 = 128;
/// Names of one directory that are listed. All of them are in memory for as long as the list is.
const NAMES: usize = 10_000;

/// Runs with such directories that there may be at once: they leave half of the files that this process may have open
/// to everything else.
pub(crate) fn runs_at_once() -> usize {
    let most = getrlimit(Limit::Nofile).current.unwrap_or(u64::MAX);
    let runs = most / 2 / HANDLES;
    usize::try_from(runs).map_or(Semaphore::MAX_PERMITS, |runs| {
        runs.clamp(1, Semaphore::MAX_PERMITS)
    })
}

/// The version at which the engine offers its file system.
const TYPES: &str = "wasi:filesystem/types@0.2.12";

/// Puts in front of the engine's own way to open a file one that opens nothing but files and directories, and before
/// the one to list a directory one that lists none that is very large.
pub(crate) fn guard(linker: &mut Linker<State>) -> Result<()> {
    linker.allow_shadowing(true);
    linker.instance(TYPES)?.func_wrap_async(
        "[method]descriptor.open-at",
        |store: StoreContextMut<'_, State>, (on, at, path, how, flags): Opening| {
            Box::new(open_at(store, on, at, path, how, flags))
        },
    )?;
    linker.instance(TYPES)?.func_wrap_async(
        "[method]descriptor.read-directory",
        |store: StoreContextMut<'_, State>, (on,): (Resource<Descriptor>,)| {
            Box::new(read_directory(store, on))
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

type Listed = (Result<Resource<DirectoryEntryStream>, ErrorCode>,);

async fn read_directory(
    mut store: StoreContextMut<'_, State>,
    on: Resource<Descriptor>,
) -> Result<Listed> {
    let mut files = store.data_mut().filesystem();
    if let Descriptor::Dir(dir) = files.table.get(&on)? {
        let dir = Arc::clone(&dir.dir);
        let is_large = tokio::task::spawn_blocking(move || {
            // With itself and what is above it.
            let most = NAMES + 2;
            let names = rustix::fs::Dir::read_from(&*dir);
            names.is_ok_and(|names| names.take(most + 1).count() > most)
        });
        if is_large.await.unwrap_or(true) {
            return Ok((Err(ErrorCode::InsufficientMemory),));
        }
    }
    let listed = files.read_directory(Resource::new_borrow(on.rep())).await;
    Ok((match listed {
        Ok(listed) => Ok(listed),
        Err(error) => Err(error.downcast()?),
    },))
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
    // Opening a device may already do something.
    match found {
        DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink => {}
        DescriptorType::Unknown
        | DescriptorType::BlockDevice
        | DescriptorType::CharacterDevice
        | DescriptorType::Fifo
        | DescriptorType::Socket => return Ok((Err(ErrorCode::NotPermitted),)),
    }
    let Descriptor::Dir(dir) = files.table.get(&on)? else {
        return Ok((Err(ErrorCode::NotDirectory),));
    };
    let dir = dir.clone();
    let opened = tokio::task::spawn_blocking(move || open_below(&dir, at, &path, how, flags));
    Ok((match opened.await? {
        Ok(opened) => Ok(files.table.push(opened)?),
        Err(code) => Err(code),
    },))
}

/// How often a path is looked up while directories on its way are moved about.
const TRIES: usize = 4;

/// Opens a file or a directory below one that is open. The kernel itself keeps to what is below, and whatever has been
/// put there since somebody looked, it does not wait: a pipe or a device is opened at most, seen for what it is, and
/// closed.
pub(crate) fn open_below(
    dir: &Dir,
    at: PathFlags,
    path: &str,
    how: OpenFlags,
    flags: DescriptorFlags,
) -> std::result::Result<Descriptor, ErrorCode> {
    let synced = DescriptorFlags::FILE_INTEGRITY_SYNC
        | DescriptorFlags::DATA_INTEGRITY_SYNC
        | DescriptorFlags::REQUESTED_WRITE_SYNC;
    if flags.intersects(synced) {
        return Err(ErrorCode::Unsupported);
    }
    let makes = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
    if how.contains(OpenFlags::DIRECTORY) && how.intersects(makes) {
        return Err(ErrorCode::Invalid);
    }
    let changes = OpenFlags::CREATE | OpenFlags::TRUNCATE;
    let writes = flags.contains(DescriptorFlags::WRITE) || how.intersects(changes);
    let reads = flags.contains(DescriptorFlags::READ) || !flags.contains(DescriptorFlags::WRITE);
    if writes && dir.perms == FsPerms::ReadOnly {
        return Err(ErrorCode::NotPermitted);
    }
    let mut mode = OpenMode::empty();
    mode.set(OpenMode::READ, reads);
    mode.set(OpenMode::WRITE, writes);
    let mut oflags = match (reads, writes) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (_, false) => OFlags::RDONLY,
    };
    oflags |= OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    oflags.set(OFlags::CREATE, how.contains(OpenFlags::CREATE));
    oflags.set(
        OFlags::EXCL,
        how.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE),
    );
    oflags.set(OFlags::TRUNC, how.contains(OpenFlags::TRUNCATE));
    oflags.set(OFlags::DIRECTORY, how.contains(OpenFlags::DIRECTORY));
    oflags.set(OFlags::NOFOLLOW, !at.contains(PathFlags::SYMLINK_FOLLOW));
    let made = if how.contains(OpenFlags::CREATE) {
        Mode::from_raw_mode(0o666)
    } else {
        Mode::empty()
    };
    let below = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    let file = loop {
        tries += 1;
        match openat2(&*dir.dir, path, oflags, made, below) {
            Ok(file) => break std::fs::File::from(file),
            Err(Errno::AGAIN) if tries < TRIES => {}
            // It leads out.
            Err(Errno::XDEV) => return Err(ErrorCode::NotPermitted),
            // Nobody reads that pipe, or it is a socket.
            Err(Errno::NXIO) => return Err(ErrorCode::NotPermitted),
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
    };
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        Ok(Descriptor::Dir(Dir::new(file, dir.perms, mode, false)))
    } else if kind.is_file() {
        Ok(Descriptor::File(File::new(file, dir.perms, mode, false)))
    } else {
        Err(ErrorCode::NotPermitted)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{FileType, mknodat};

    use super::*;

    /// A directory with one thing of each kind, and something beside it.
    fn tree() -> (tempfile::TempDir, Dir) {
        let whole = tempfile::tempdir().unwrap();
        let path = |name: &str| whole.path().join(name);
        std::fs::create_dir_all(path("in/deep")).unwrap();
        std::fs::write(path("in/note"), "note").unwrap();
        std::fs::write(path("canary"), "canary").unwrap();
        std::fs::hard_link(path("in/note"), path("in/same")).unwrap();
        mknodat(
            CWD,
            path("in/pipe"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        std::os::unix::net::UnixListener::bind(path("in/socket")).unwrap();
        symlink("note", path("in/near")).unwrap();
        symlink("../canary", path("in/up")).unwrap();
        symlink(path("canary"), path("in/absolute")).unwrap();
        symlink("/dev/null", path("in/device")).unwrap();
        symlink("/proc/self/root", path("in/magic")).unwrap();
        symlink("loop", path("in/loop")).unwrap();
        let dir = std::fs::File::open(path("in")).unwrap();
        let dir = Dir::new(dir, FsPerms::ReadWrite, OpenMode::READ, false);
        (whole, dir)
    }

    const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;
    const READ: DescriptorFlags = DescriptorFlags::READ;
    const WRITE: DescriptorFlags = DescriptorFlags::WRITE;

    #[test]
    fn what_is_opened_is_a_file_or_directory_below_and_nothing_is_waited_for() {
        let (_whole, dir) = tree();
        let none = OpenFlags::empty();
        let stay = PathFlags::empty();
        let rows = [
            ("note", FOLLOW, none, READ, Ok("file")),
            ("deep/../note", FOLLOW, none, READ, Ok("file")),
            ("same", FOLLOW, none, WRITE, Ok("file")),
            ("near", FOLLOW, none, READ, Ok("file")),
            ("near", stay, none, READ, Err(ErrorCode::Loop)),
            (".", FOLLOW, none, READ, Ok("directory")),
            ("deep", FOLLOW, OpenFlags::DIRECTORY, READ, Ok("directory")),
            (
                "note",
                FOLLOW,
                OpenFlags::DIRECTORY,
                READ,
                Err(ErrorCode::NotDirectory),
            ),
            ("deep", FOLLOW, none, WRITE, Err(ErrorCode::IsDirectory)),
            ("new", FOLLOW, none, READ, Err(ErrorCode::NoEntry)),
            ("new", FOLLOW, OpenFlags::CREATE, READ, Ok("file")),
            (
                "new",
                FOLLOW,
                OpenFlags::CREATE | OpenFlags::EXCLUSIVE,
                WRITE,
                Err(ErrorCode::Exist),
            ),
            ("new", FOLLOW, OpenFlags::TRUNCATE, WRITE, Ok("file")),
            ("", FOLLOW, none, READ, Err(ErrorCode::NoEntry)),
            ("..", FOLLOW, none, READ, Err(ErrorCode::NotPermitted)),
            (
                "../canary",
                FOLLOW,
                none,
                READ,
                Err(ErrorCode::NotPermitted),
            ),
            (
                "/etc/passwd",
                FOLLOW,
                none,
                READ,
                Err(ErrorCode::NotPermitted),
            ),
            ("up", FOLLOW, none, READ, Err(ErrorCode::NotPermitted)),
            (
                "up",
                FOLLOW,
                OpenFlags::TRUNCATE,
                WRITE,
                Err(ErrorCode::NotPermitted),
            ),
            ("absolute", FOLLOW, none, READ, Err(ErrorCode::NotPermitted)),
            ("device", FOLLOW, none, READ, Err(ErrorCode::NotPermitted)),
            ("magic", FOLLOW, none, READ, Err(ErrorCode::NotPermitted)),
            ("loop", FOLLOW, none, READ, Err(ErrorCode::Loop)),
            // Without a writer, without a reader, and with both at its own end.
            ("pipe", FOLLOW, none, READ, Err(ErrorCode::NotPermitted)),
            ("pipe", FOLLOW, none, WRITE, Err(ErrorCode::NotPermitted)),
            (
                "pipe",
                FOLLOW,
                none,
                READ | WRITE,
                Err(ErrorCode::NotPermitted),
            ),
            ("socket", FOLLOW, none, READ, Err(ErrorCode::NotPermitted)),
        ];
        for (path, at, how, flags, expected) in rows {
            let opened = open_below(&dir, at, path, how, flags);
            let seen = opened.map(|opened| match opened {
                Descriptor::File(_) => "file",
                Descriptor::Dir(_) => "directory",
            });
            assert_eq!(
                seen.map_err(|code| code.name()),
                expected.map_err(|code| code.name()),
                "{path} {at:?} {how:?} {flags:?}"
            );
        }
    }

    #[test]
    fn what_is_to_be_looked_at_is_opened_for_nothing_else() {
        let (_whole, mut dir) = tree();
        dir.perms = FsPerms::ReadOnly;
        let none = OpenFlags::empty();
        assert!(open_below(&dir, FOLLOW, "note", none, READ).is_ok());
        let changes = [
            (none, WRITE),
            (OpenFlags::CREATE, READ),
            (OpenFlags::TRUNCATE, READ),
        ];
        for (how, flags) in changes {
            let refused = open_below(&dir, FOLLOW, "note", how, flags);
            assert!(matches!(refused, Err(ErrorCode::NotPermitted)), "{how:?}");
        }
    }
}
