//! The data directory: whose it is, what lies where, and what is made in it once.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use longshore_sandbox::regular;
use uuid::Uuid;

use crate::env;
use crate::keys::{ROOT_BYTES, RootSecret};

/// The admin token's file, which the client side reads too.
const ADMIN_TOKEN: &str = "admin-token";
/// A token longer than this is no token but another file.
const TOKEN_BYTES: u64 = 4096;

/// Where the data is if nobody says: where the desktop's rules want it.
pub(crate) fn default_dir() -> anyhow::Result<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let home = || absolute("HOME").map(|home| home.join(".local/share"));
    let base = absolute("XDG_DATA_HOME").or_else(home);
    let base = base.with_context(|| {
        format!(
            "HOME is not set: name a data directory with --data DIR or {}",
            env::DATA
        )
    })?;
    Ok(base.join("longshore"))
}

/// A data directory that is there and is nobody else's to write to.
#[derive(Debug)]
pub(crate) struct DataDir(PathBuf);

impl DataDir {
    /// Makes the directory if it is not there.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let path =
            std::path::absolute(path).with_context(|| format!("finding {}", path.display()))?;
        make_private_dir(&path)
            .with_context(|| format!("making the data directory {}", path.display()))?;
        Self::checked(path)
    }

    /// The directory, if somebody has made it before.
    pub(crate) fn made(path: &Path) -> anyhow::Result<Option<Self>> {
        let path =
            std::path::absolute(path).with_context(|| format!("finding {}", path.display()))?;
        match path.try_exists() {
            Ok(false) => Ok(None),
            Ok(true) => Self::checked(path).map(Some),
            Err(error) => Err(error)
                .with_context(|| format!("looking at the data directory {}", path.display())),
        }
    }

    fn checked(path: PathBuf) -> anyhow::Result<Self> {
        let found = fs::metadata(&path)
            .with_context(|| format!("looking at the data directory {}", path.display()))?;
        ensure!(
            found.is_dir(),
            "{} is no directory: name another with --data",
            path.display()
        );
        // Whoever can write here can put a database and keys of their own in the place of ours.
        ensure!(
            found.mode() & 0o002 == 0,
            "everybody can write to the data directory {}: run `chmod o-w` on it, or name another with --data",
            path.display()
        );
        Ok(Self(path))
    }

    /// The directory itself, absolute.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The file of the database.
    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("longshore.db")
    }

    /// The file of what was on a thread when a server died.
    pub(crate) fn marks(&self) -> PathBuf {
        self.0.join("on-thread")
    }

    /// The directory of the secrets that requests of tools may carry.
    pub(crate) fn secrets(&self) -> PathBuf {
        secrets_in(&self.0)
    }

    /// Keeps a secret that requests of tools may carry. A server that reads it meanwhile reads the old or the new one.
    pub(crate) fn keep_secret_value(&self, name: &str, value: &str) -> anyhow::Result<()> {
        let dir = self.secrets();
        make_private_dir(&dir).with_context(|| format!("making {}", dir.display()))?;
        make_private_file(&dir.join(name), value.as_bytes())
    }

    /// The file of the admin token.
    pub(crate) fn admin_token_file(&self) -> PathBuf {
        self.0.join(ADMIN_TOKEN)
    }

    /// The directory of native code, made if it is not there.
    pub(crate) fn artifacts(&self) -> anyhow::Result<cap_std::fs::Dir> {
        let path = self.0.join("artifacts");
        make_private_dir(&path)
            .and_then(|()| cap_std::fs::Dir::open_ambient_dir(&path, cap_std::ambient_authority()))
            .with_context(|| format!("opening {}", path.display()))
    }

    /// The root secret, made if there is none. The caller holds the database's lock, so that no two
    /// processes make one each.
    pub(crate) fn secret(&self) -> anyhow::Result<RootSecret> {
        if let Some(secret) = self.kept_secret()? {
            return Ok(secret);
        }
        let secret = random();
        make_private_file(&self.secret_file(), &secret)?;
        Ok(RootSecret::new(secret))
    }

    /// The root secret, if there is one.
    pub(crate) fn kept_secret(&self) -> anyhow::Result<Option<RootSecret>> {
        let path = self.secret_file();
        let Some(bytes) = read_private(&path, ROOT_BYTES as u64 + 1)? else {
            return Ok(None);
        };
        let Ok(bytes) = <[u8; ROOT_BYTES]>::try_from(bytes) else {
            bail!(
                "{} does not hold {ROOT_BYTES} bytes: restore it from a backup; if there is none, remove it, and the next start says what is lost with it",
                path.display()
            );
        };
        Ok(Some(RootSecret::new(bytes)))
    }

    /// The file of the root secret.
    pub(crate) fn secret_file(&self) -> PathBuf {
        self.0.join("secret")
    }

    /// The admin token, made if there is none; under the same lock.
    pub(crate) fn admin_token(&self) -> anyhow::Result<String> {
        let path = self.admin_token_file();
        if let Some(token) = read_token(&path)? {
            return Ok(token);
        }
        let token: String = random().iter().map(|byte| format!("{byte:02x}")).collect();
        make_private_file(&path, format!("{token}\n").as_bytes())?;
        Ok(token)
    }
}

/// Where secrets are in a data directory, which need not be there.
pub(crate) fn secrets_in(data: &Path) -> PathBuf {
    data.join("secrets")
}

/// The token that the server of that data directory keeps, if there is one.
pub(crate) fn kept_admin_token(dir: &Path) -> anyhow::Result<Option<String>> {
    read_token(&dir.join(ADMIN_TOKEN))
}

fn read_token(path: &Path) -> anyhow::Result<Option<String>> {
    let Some(bytes) = read_private(path, TOKEN_BYTES)? else {
        return Ok(None);
    };
    let token = String::from_utf8(bytes)
        .unwrap_or_default()
        .trim()
        .to_owned();
    check_token(&token).with_context(|| {
        format!(
            "{} holds no token: remove it and start the server again",
            path.display()
        )
    })?;
    Ok(Some(token))
}

/// Whether a text can be a token: it has to fit into a header, and nothing is no secret.
pub(crate) fn check_token(token: &str) -> anyhow::Result<()> {
    ensure!(!token.is_empty(), "it is empty");
    ensure!(
        token.bytes().all(|byte| byte.is_ascii_graphic()),
        "it has characters that cannot stand in a header"
    );
    Ok(())
}

fn make_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The content of a file that should be for its owner only, if there is such a file.
fn read_private(path: &Path, most: u64) -> anyhow::Result<Option<Vec<u8>>> {
    let file = match regular::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    let mut bytes = Vec::new();
    let read = file.metadata().and_then(|found| {
        if found.mode() & 0o077 != 0 {
            tracing::warn!(file = %path.display(), "others can read this secret: run `chmod 600` on it, or remove it to have a new one made");
        }
        file.take(most).read_to_end(&mut bytes)
    });
    read.with_context(|| format!("reading {}", path.display()))?;
    Ok(Some(bytes))
}

/// Writes a file for its owner only, whole or not at all.
fn make_private_file(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let draft = path.with_extension("new");
    let write = || {
        // Of a process that died while writing; its mode is not to be trusted.
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        let directory = path.parent().expect("it is a file in the data directory");
        File::open(directory)?.sync_all()
    };
    write().with_context(|| format!("writing {}", path.display()))
}

/// Fresh random bytes: three UUIDs have 366 random bits from the operating system, of which the hash
/// keeps 256.
fn random() -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for _ in 0..3 {
        hasher.update(Uuid::new_v4().as_bytes());
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_private_and_stays() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("share/longshore");
        let data = DataDir::open(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        let secret = data.secret().unwrap();
        let token = data.admin_token().unwrap();
        data.artifacts().unwrap();
        assert_eq!(mode(&path.join("secret")), 0o600);
        assert_eq!(mode(&path.join("admin-token")), 0o600);
        assert_eq!(mode(&path.join("artifacts")), 0o700);
        assert_eq!(token.len(), 64);
        assert!(!path.join("secret.new").exists() && !path.join("admin-token.new").exists());

        let again = DataDir::open(&path).unwrap();
        assert_eq!(
            again.secret().unwrap().artifact_key(),
            secret.artifact_key()
        );
        assert_eq!(again.admin_token().unwrap(), token);
        assert_eq!(kept_admin_token(&path).unwrap(), Some(token));
    }

    #[test]
    fn two_directories_share_no_secret() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = |dir: &tempfile::TempDir| {
            DataDir::open(dir.path())
                .unwrap()
                .secret()
                .unwrap()
                .artifact_key()
        };
        assert_ne!(key(&one), key(&other));
    }

    #[test]
    fn what_is_damaged_or_not_ours_is_named_and_left() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::open(dir.path()).unwrap();
        for content in [&b"short"[..], &[0; 33]] {
            fs::write(dir.path().join("secret"), content).unwrap();
            let error = format!("{:#}", data.secret().unwrap_err());
            assert!(error.contains("does not hold 32 bytes"), "{error}");
            assert_eq!(fs::read(dir.path().join("secret")).unwrap(), content);
        }
        for content in [&b""[..], b"\n", b"two words", b"\xff\xff"] {
            fs::write(data.admin_token_file(), content).unwrap();
            let error = format!("{:#}", data.admin_token().unwrap_err());
            assert!(error.contains("holds no token"), "{error}");
        }
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = format!("{:#}", DataDir::open(&file).unwrap_err());
        assert!(error.contains(&file.display().to_string()), "{error}");

        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = DataDir::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("chmod o-w"), "{error}");
    }

    #[test]
    fn a_draft_that_was_left_behind_does_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("secret.new"), "half").unwrap();
        let data = DataDir::open(dir.path()).unwrap();
        data.secret().unwrap();
        assert_eq!(mode(&dir.path().join("secret")), 0o600);
        assert!(!dir.path().join("secret.new").exists());
    }

    #[test]
    fn no_token_is_not_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(kept_admin_token(dir.path()).unwrap(), None);
        assert_eq!(kept_admin_token(&dir.path().join("nowhere")).unwrap(), None);
    }
}
