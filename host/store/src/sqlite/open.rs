//! Opening the file: who may, what it must be, and how each connection is set.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error::OpenError;
use super::schema::{self, Found};

/// How long a statement waits for a lock that another program holds, such as a backup.
const BUSY: Duration = Duration::from_secs(5);
/// A result of some ten KiB then takes a page or two instead of a chain. Only for a new file.
const PAGE_BYTES: u32 = 16 * 1024;
/// The index on random ids is touched everywhere: this keeps that of a million tasks in memory.
const WRITER_CACHE_KIB: i32 = 32 * 1024;
/// There are several readers, and the operating system caches the same pages.
const READER_CACHE_KIB: i32 = 4 * 1024;
/// A large upload makes a large log once; it need not stay.
const LOG_BYTES: u32 = 64 * 1024 * 1024;
/// More statements than either kind of connection has.
const STATEMENTS: usize = 64;

/// A lock that lasts as long as this value, or the process. It must outlast every connection: closing the database's
/// own file would take away the locks that SQLite has on it in this process.
pub(super) struct Lock {
    _file: File,
    _database: File,
}

/// Takes the file's lock, opens it, and brings it to today's schema.
pub(super) fn open_writer(path: &Path) -> Result<(Lock, Connection), OpenError> {
    let directory = path.parent().unwrap_or(path);
    if !directory.is_dir() {
        return Err(OpenError::NoDirectory(directory.to_owned()));
    }
    let lock = lock(path)?;
    let at = |error: rusqlite::Error| OpenError::at(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags).map_err(at)?;
    db.busy_timeout(BUSY).map_err(at)?;
    // Before anything is written: a file that is not ours stays as it is.
    let from = match schema::look(&db).map_err(at)? {
        Found::Nothing => 0,
        Found::Foreign => {
            let found = "a database of another program";
            return Err(OpenError::NotOurs {
                path: path.to_owned(),
                found,
            });
        }
        Found::Schema(found) if found > schema::KNOWN => {
            return Err(OpenError::Newer {
                path: path.to_owned(),
                found,
                known: schema::KNOWN,
            });
        }
        Found::Schema(found) => found,
    };
    // Has no effect on a file that has pages already.
    db.pragma_update(None, "page_size", PAGE_BYTES)
        .map_err(at)?;
    let mode: String = db
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(at)?;
    if mode != "wal" {
        let cause = "its file system cannot share memory between connections: use a local disk";
        return Err(OpenError::Unavailable {
            path: path.to_owned(),
            cause: cause.to_owned(),
        });
    }
    // What is acknowledged is on the disk, not on its way to it.
    db.pragma_update(None, "synchronous", "full").map_err(at)?;
    db.pragma_update(None, "foreign_keys", true).map_err(at)?;
    db.pragma_update(None, "cell_size_check", true)
        .map_err(at)?;
    db.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)
        .map_err(at)?;
    db.pragma_update(None, "journal_size_limit", LOG_BYTES)
        .map_err(at)?;
    keep_statements(&db).map_err(at)?;
    schema::migrate(&mut db, from).map_err(at)?;
    Ok((lock, db))
}

/// One more connection that can only read. The writer must be open.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(BUSY)?;
    db.pragma_update(None, "cell_size_check", true)?;
    db.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    keep_statements(&db)?;
    Ok(db)
}

/// Keeps compiled statements, and keeps them valid. SQLite may otherwise plan a statement for the
/// values bound to it and compile it again for the next ones, which costs fifty times the read.
fn keep_statements(db: &Connection) -> rusqlite::Result<()> {
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

fn lock(path: &Path) -> Result<Lock, OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock = PathBuf::from(name);
    let mut file = private_file(&lock)?;
    let in_use = |lock: &Path, holder: String| OpenError::InUse {
        path: path.to_owned(),
        lock: lock.to_owned(),
        holder,
    };
    if !is_free(&file, &lock)? {
        // Whoever holds it left its number there, as a help and no more.
        let mut holder = String::new();
        let _unknown = file.take(32).read_to_string(&mut holder);
        let holder = match holder.trim().parse::<u32>() {
            Ok(process) => format!(" (process {process})"),
            Err(_) => String::new(),
        };
        return Err(in_use(&lock, holder));
    }
    // Made here rather than by SQLite, since what tasks hold is nobody else's to read; the files
    // that SQLite puts beside it take its mode.
    let database = private_file(path)?;
    // A lock file looks like something that a dead process left behind, and people remove those.
    if !is_free(&database, path)? {
        return Err(in_use(path, String::new()));
    }
    let noted = file
        .set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    match noted {
        Ok(()) => Ok(Lock {
            _file: file,
            _database: database,
        }),
        Err(source) => Err(OpenError::Denied { path: lock, source }),
    }
}

/// Locks the file, unless somebody else has it locked.
fn is_free(file: &File, path: &Path) -> Result<bool, OpenError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(source)) => Err(OpenError::Denied {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Opens a file for this user alone, and makes it if it is not there.
fn private_file(path: &Path) -> Result<File, OpenError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path).map_err(|source| OpenError::Denied {
        path: path.to_owned(),
        source,
    })
}
