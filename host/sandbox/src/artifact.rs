//! Native code: kept between starts, and made into something that runs.
//!
//! Loading native code is running it. So there are two ways to an [`Artifact`], both in this crate:
//! out of our own compile child, or out of a file whose seal was checked over the very bytes that are
//! then loaded.

use std::fmt;
use std::hash::{Hash as _, Hasher};
use std::io::{self, Read as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::regular;

/// Native code of a component that this program vouches for.
pub struct Artifact(Vec<u8>);

impl fmt::Debug for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Artifact({} bytes)", self.0.len())
    }
}

impl Artifact {
    /// What our own compile child has written.
    pub(crate) fn compiled(code: Vec<u8>) -> Self {
        Self(code)
    }

    /// Its size, for quotas.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.len()
    }
}

/// The SHA-256 of the component that native code was made from.
pub type Digest = [u8; 32];

/// The seal in front of the native code in a file.
const SEAL: usize = blake3::OUT_LEN;
/// How the names of files end that say why there is no native code.
pub(crate) const REFUSED: &str = ".refused";
/// A file larger than this is none of ours: more than twice what a compile child may write.
const FILE_BYTES: u64 = 1 << 30;

/// Native code kept in a directory, or nowhere.
///
/// Its functions read and write files and map memory; call them where blocking is fine.
pub struct Artifacts {
    dir: Option<Dir>,
    key: [u8; 32],
}

impl Artifacts {
    /// Keeps native code in a directory, sealed with a key that nobody else has. A file that somebody
    /// else put there, or changed, or that another build wrote, is as good as absent.
    #[must_use]
    pub fn new(dir: Option<Dir>, key: [u8; 32]) -> Self {
        Self { dir, key }
    }

    /// What is made of the native code of a digest, if that is kept and fits this engine.
    pub fn load<T>(
        &self,
        engine: &Engine,
        digest: &Digest,
        instate: impl FnOnce(&Artifact) -> wasmtime::Result<T>,
    ) -> Option<T> {
        let dir = self.dir.as_ref()?;
        let name = name(engine, digest);
        let artifact = match self.open(dir, &name) {
            Ok(artifact) => artifact,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(name, %error, "kept native code is not used; it is compiled again");
                return None;
            }
        };
        instate(&artifact)
            .inspect_err(|error| tracing::warn!(name, %error, "kept native code does not load; it is compiled again"))
            .ok()
    }

    /// Whether there is a file for that digest and this engine; whether it is a good one is not looked at.
    #[must_use]
    pub fn has(&self, engine: &Engine, digest: &Digest) -> bool {
        self.dir
            .as_ref()
            .is_some_and(|dir| dir.exists(name(engine, digest)))
    }

    /// Makes native code into a component.
    ///
    /// # Errors
    ///
    /// If another build or other settings made it.
    #[expect(unsafe_code, reason = "the one place that loads native code")]
    pub fn instate(&self, engine: &Engine, artifact: &Artifact) -> wasmtime::Result<Component> {
        // SAFETY: the bytes came out of `Engine::precompile_component`. Either our own compile child
        // has just written them into our pipe (`compile::Compiler`), or they were read from a file
        // and their seal was checked after reading (`Artifacts::open`), which only this program can
        // make and only over what that child has written. An `Artifact` is made nowhere else, and
        // cannot be changed.
        unsafe { Component::deserialize(engine, &artifact.0) }
    }

    /// Keeps native code for the next start.
    ///
    /// # Errors
    ///
    /// If it cannot be written; nothing half-written is ever found under its name.
    pub fn keep(&self, engine: &Engine, digest: &Digest, artifact: &Artifact) -> io::Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let name = name(engine, digest);
        // Two uploads of the same component at once must not write into the same file.
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        let draft = format!(
            "{name}.{}-{}.draft",
            std::process::id(),
            DRAFTS.fetch_add(1, Ordering::Relaxed)
        );
        // Of a process that died while writing, and had our number.
        let _usually_absent = dir.remove_file(&draft);
        let written = self
            .write(dir, &draft, &name, artifact)
            .and_then(|()| dir.rename(&draft, dir, &name));
        if written.is_err() {
            let _not_even_begun = dir.remove_file(&draft);
        }
        written
    }

    /// Removes the native code of a digest, whichever build made it.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read or a file in it not be removed.
    pub fn forget(&self, digest: &Digest) -> io::Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let of_digest = format!("{}-", hex(digest));
        for entry in dir.entries()? {
            let name = entry?.file_name();
            // That it was refused is worth remembering just when nothing else is kept of it.
            if name
                .to_str()
                .is_some_and(|name| name.starts_with(&of_digest) && !name.ends_with(REFUSED))
            {
                dir.remove_file(&name)?;
            }
        }
        Ok(())
    }

    fn write(&self, dir: &Dir, draft: &str, name: &str, artifact: &Artifact) -> io::Result<()> {
        let mut file = dir.open_with(
            draft,
            OpenOptions::new().write(true).create_new(true).mode(0o600),
        )?;
        file.write_all(self.seal(name, &artifact.0).as_bytes())?;
        file.write_all(&artifact.0)?;
        file.sync_all()
    }

    fn open(&self, dir: &Dir, name: &str) -> io::Result<Artifact> {
        let mut bytes = Vec::new();
        regular::open_in(dir, name)?
            .take(FILE_BYTES)
            .read_to_end(&mut bytes)?;
        let Some((seal, code)) = bytes.split_first_chunk::<SEAL>() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is too short",
            ));
        };
        // This comparison takes the same time wherever the two differ.
        if self.seal(name, code) != *seal {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "its seal is not ours",
            ));
        }
        Ok(Artifact(code.to_vec()))
    }

    /// Over the name too, so that a file cannot be passed off as another component's.
    fn seal(&self, name: &str, code: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(code);
        hasher.finalize()
    }
}

/// The file of a digest's native code for this build and these settings.
pub(crate) fn name(engine: &Engine, digest: &Digest) -> String {
    let mut fit = Fit(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut fit);
    format!("{}-{:016x}.native", hex(digest), fit.finish())
}

/// A hasher whose results stay the same from one build of this program to the next.
struct Fit(blake3::Hasher);

impl Hasher for Fit {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let hash = self.0.finalize();
        u64::from_le_bytes(
            *hash
                .as_bytes()
                .first_chunk()
                .expect("a hash has more than eight bytes"),
        )
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;

    use super::*;
    use crate::{child, engine};

    const DIGEST: Digest = [0xab; 32];

    struct Kept {
        place: tempfile::TempDir,
        engine: Engine,
        artifacts: Artifacts,
    }

    impl Kept {
        fn new() -> Self {
            let kept = Self::empty();
            let component = wat::parse_str("(component (core module (func)))").unwrap();
            let artifact = Artifact::compiled(child::compile(&component, 1 << 20).unwrap());
            kept.artifacts
                .keep(&kept.engine, &DIGEST, &artifact)
                .unwrap();
            kept
        }

        fn empty() -> Self {
            let place = tempfile::tempdir().unwrap();
            let artifacts = artifacts(&place, 1);
            Self {
                place,
                engine: Engine::new(&engine::config()).unwrap(),
                artifacts,
            }
        }

        fn loads(&self) -> bool {
            loads(&self.artifacts, &self.engine, &DIGEST)
        }

        fn file(&self) -> std::path::PathBuf {
            self.place.path().join(name(&self.engine, &DIGEST))
        }

        fn files(&self) -> usize {
            self.place.path().read_dir().unwrap().count()
        }
    }

    fn loads(artifacts: &Artifacts, engine: &Engine, digest: &Digest) -> bool {
        let instate = |artifact: &Artifact| artifacts.instate(engine, artifact);
        artifacts.load(engine, digest, instate).is_some()
    }

    fn artifacts(place: &tempfile::TempDir, key: u8) -> Artifacts {
        Artifacts::new(
            Some(Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap()),
            [key; 32],
        )
    }

    #[test]
    fn a_pipe_in_place_of_native_code_is_not_waited_for() {
        let kept = Kept::new();
        std::fs::remove_file(kept.file()).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, kept.file(), mode).unwrap();
        assert!(!kept.loads());
        let component = wat::parse_str("(component (core module (func)))").unwrap();
        let artifact = Artifact::compiled(child::compile(&component, 1 << 20).unwrap());
        kept.artifacts
            .keep(&kept.engine, &DIGEST, &artifact)
            .unwrap();
        assert!(kept.loads(), "it is put in the pipe's place");
    }

    #[test]
    fn what_is_kept_loads_and_what_is_forgotten_does_not() {
        use std::os::unix::fs::PermissionsExt as _;

        let kept = Kept::new();
        assert!(kept.loads());
        assert_eq!(kept.files(), 1, "no draft is left");
        assert_eq!(
            kept.file().metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(!loads(&kept.artifacts, &kept.engine, &[0; 32]));
        kept.artifacts.forget(&[0; 32]).unwrap();
        assert!(kept.loads());
        kept.artifacts.forget(&DIGEST).unwrap();
        assert!(!kept.loads());
        assert_eq!(kept.files(), 0);
    }

    #[test]
    fn a_changed_file_is_as_good_as_absent() {
        let kept = Kept::new();
        let whole = std::fs::read(kept.file()).unwrap();
        for place in [
            0,
            SEAL - 1,
            SEAL,
            SEAL + 1,
            whole.len() / 2,
            whole.len() - 1,
        ] {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            std::fs::write(kept.file(), &changed).unwrap();
            assert!(!kept.loads(), "byte {place}");
        }
        for length in [0, 1, SEAL - 1, SEAL, SEAL + 1, whole.len() - 1] {
            std::fs::write(kept.file(), &whole[..length]).unwrap();
            assert!(!kept.loads(), "{length} bytes");
        }
        std::fs::write(kept.file(), &whole).unwrap();
        assert!(kept.loads());
    }

    #[test]
    fn a_file_of_another_name_or_another_key_is_as_good_as_absent() {
        let kept = Kept::new();
        let other: Digest = [0xcd; 32];
        std::fs::copy(
            kept.file(),
            kept.place.path().join(name(&kept.engine, &other)),
        )
        .unwrap();
        assert!(!loads(&kept.artifacts, &kept.engine, &other));
        for (key, is_ours) in [(1, true), (2, false)] {
            let artifacts = artifacts(&kept.place, key);
            assert_eq!(loads(&artifacts, &kept.engine, &DIGEST), is_ours);
        }
    }

    #[test]
    fn sealed_bytes_that_are_no_code_do_not_load() {
        let kept = Kept::empty();
        kept.artifacts
            .keep(&kept.engine, &DIGEST, &Artifact(b"no code".to_vec()))
            .unwrap();
        assert!(!kept.loads());
    }

    #[test]
    fn code_for_other_settings_has_another_name_and_does_not_load() {
        let kept = Kept::new();
        let mut config = engine::config();
        config.epoch_interruption(false);
        let other = Engine::new(&config).unwrap();
        assert!(!loads(&kept.artifacts, &other, &DIGEST));
        let artifact = kept
            .artifacts
            .open(
                kept.artifacts.dir.as_ref().unwrap(),
                &name(&kept.engine, &DIGEST),
            )
            .unwrap();
        assert!(kept.artifacts.instate(&other, &artifact).is_err());
    }

    #[test]
    fn without_a_directory_nothing_is_kept() {
        let kept = Kept::new();
        let nowhere = Artifacts::new(None, [1; 32]);
        nowhere
            .keep(&kept.engine, &DIGEST, &Artifact(Vec::new()))
            .unwrap();
        nowhere.forget(&DIGEST).unwrap();
        assert!(!loads(&nowhere, &kept.engine, &DIGEST));
    }
}
