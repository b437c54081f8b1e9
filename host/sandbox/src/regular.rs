//! Files that somebody else may have put in place: reading one must come to an end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use cap_std::fs::Dir;
use cap_std::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;

/// Opens a regular file. A pipe would wait for somebody who writes, a device may never end.
///
/// # Errors
///
/// As the system says, or [`io::ErrorKind::InvalidInput`] for anything else than a file.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    only(options.read(true).custom_flags(no_waiting()).open(path)?)
}

/// The same of what stands at that very path: a link at its end is not followed.
///
/// # Errors
///
/// As [`open`].
pub fn open_itself(path: &Path) -> io::Result<File> {
    let flags = no_waiting() | i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut options = OpenOptions::new();
    only(options.read(true).custom_flags(flags).open(path)?)
}

/// The same of a file in a directory that is open.
pub(crate) fn open_in(dir: &Dir, name: &str) -> io::Result<File> {
    let mut options = cap_std::fs::OpenOptions::new();
    options.read(true).custom_flags(no_waiting());
    only(dir.open_with(name, &options)?.into_std())
}

fn no_waiting() -> i32 {
    i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default()
}

fn only(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ))
    }
}

/// All bytes of one that has at most so many; [`io::ErrorKind::FileTooLarge`] if it has more.
///
/// # Errors
///
/// That, and what [`open`] and the system say.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_all(open(path)?, most)
}

/// The same of a file that is open. What it says of its own size is not relied on.
///
/// # Errors
///
/// [`io::ErrorKind::FileTooLarge`], and what the system says.
pub fn read_all(file: File, most: u64) -> io::Result<Vec<u8>> {
    let too_large = || {
        io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes"),
        )
    };
    if file.metadata()?.len() > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large());
    }
    Ok(bytes)
}
