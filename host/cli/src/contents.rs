//! What is in a file that somebody named.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use longshore_sandbox::regular;

/// More than any component or export is; settings say less.
pub(crate) const MOST_BYTES: u64 = 1 << 30;

/// All of a file, or of a pipe that somebody writes to, with at most so many bytes. A device never ends, and is refused
/// like anything else that is no file.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.file_type().is_fifo() {
        regular::read_all(File::open(path)?, most)
    } else {
        regular::read(path, most)
    }
}

/// The same where somebody may press Ctrl-C meanwhile.
pub(crate) async fn read_aside(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || read(&path, most));
    read.await
        .unwrap_or_else(|died| Err(io::Error::other(died)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_their_bound_and_devices_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "1234").unwrap();
        assert_eq!(read(&file, 4).unwrap(), b"1234");
        let rows = [
            (file.as_path(), 3, io::ErrorKind::FileTooLarge),
            (Path::new("/dev/zero"), 4, io::ErrorKind::InvalidInput),
            (folder.path(), 4, io::ErrorKind::InvalidInput),
            (
                Path::new("/proc/self/status"),
                4,
                io::ErrorKind::FileTooLarge,
            ),
        ];
        for (path, most, expected) in rows {
            assert_eq!(read(path, most).unwrap_err().kind(), expected, "{path:?}");
        }
    }

    #[test]
    fn a_pipe_is_read_to_its_end_and_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        for (most, expected) in [
            (4, Ok(b"1234".to_vec())),
            (3, Err(io::ErrorKind::FileTooLarge)),
        ] {
            let written = pipe.clone();
            let writer = std::thread::spawn(move || std::fs::write(written, "1234"));
            assert_eq!(read(&pipe, most).map_err(|error| error.kind()), expected);
            writer.join().unwrap().unwrap();
        }
    }
}
