//! A directory whose `*.wasm` are components, each under the stem of its file, for as long as it lies there.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use longshore_catalog::component::{Digest, Name};
use longshore_sandbox::regular;
use tokio::sync::Notify;

use crate::components::{Broken, Source};
use crate::reason::{Refusal, RequestReason};
use crate::server::Server;
use crate::starting::File;

/// The directory, and what was seen in it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    seen: BTreeMap<Name, Seen>,
    /// Files whose stem cannot name a component: they are said once.
    unnamed: BTreeMap<PathBuf, Stamp>,
}

#[derive(Debug)]
struct Seen {
    stamp: Stamp,
    digest: Digest,
}

/// What changes when a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    file: u64,
}

/// What one look found.
struct Found {
    name: Name,
    path: PathBuf,
    stamp: Stamp,
}

impl Folder {
    /// A directory that was not looked into yet.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            seen: BTreeMap::new(),
            unnamed: BTreeMap::new(),
        }
    }

    /// Everything in it, to be served from the start on. What cannot be is kept aside by the server.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub async fn files(&mut self, server: &Server) -> io::Result<Vec<File>> {
        let mut files = Vec::new();
        for found in self.look().await? {
            if let Some(file) = self.read(server, &found).await {
                files.push(file);
            }
        }
        Ok(files)
    }

    /// Looks again and again, and at once when it is told to: what came, changed or went is served, switched or taken
    /// away. Ends when it is dropped.
    pub async fn follow(mut self, server: Server, every: Duration, at_once: Arc<Notify>) {
        // What was there at the start is the start's business until it is over.
        let mut starting = server.starting.subscribe();
        drop(starting.wait_for(|left| *left == 0).await);
        let mut was_there = true;
        loop {
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = at_once.notified() => {}
            }
            match self.look().await {
                Ok(found) => {
                    was_there = true;
                    self.keep_up(&server, found).await;
                }
                // Said once. What is served goes on: a directory that is away for a moment takes no tools away.
                Err(error) if was_there => {
                    was_there = false;
                    tracing::error!(%error, directory = %self.path.display(), "the components directory cannot be read: what it had is served on");
                }
                Err(_) => {}
            }
        }
    }

    async fn keep_up(&mut self, server: &Server, found: Vec<Found>) {
        let gone: Vec<Name> = self
            .seen
            .keys()
            .filter(|name| !found.iter().any(|found| found.name == **name))
            .cloned()
            .collect();
        for name in gone {
            self.seen.remove(&name);
            server.file_is_gone(&name).await;
        }
        for found in found {
            let before = self.seen.get(&found.name);
            if before.is_some_and(|before| before.stamp == found.stamp) {
                continue;
            }
            let digest = before.map(|before| before.digest.clone());
            let Some(file) = self.read(server, &found).await else {
                continue;
            };
            // Touched, and the same.
            if digest == Some(Digest::of(&file.bytes)) {
                continue;
            }
            server.file_has_changed(file).await;
        }
    }

    /// All files that are components by their names, sorted.
    async fn look(&mut self) -> io::Result<Vec<Found>> {
        let mut found = Vec::new();
        let mut unnamed = BTreeMap::new();
        let mut entries = tokio::fs::read_dir(&self.path).await?;
        while let Some(entry) = entries.next_entry().await? {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "wasm") {
                continue;
            }
            // Links are followed: that is how some put a file in place.
            let Ok(about) = tokio::fs::metadata(&path).await else {
                continue;
            };
            if about.is_dir() {
                continue;
            }
            let stamp = Stamp::of(&about);
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            match stem.unwrap_or_default().parse::<Name>() {
                Ok(name) => found.push(Found { name, path, stamp }),
                Err(error) => {
                    if self.unnamed.get(&path) != Some(&stamp) {
                        tracing::error!(file = %path.display(), reason = "id", %error, "a file cannot be served: rename it");
                    }
                    unnamed.insert(path, stamp);
                }
            }
        }
        self.unnamed = unnamed;
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// The file of a component, unless it is none; then the server is told so.
    async fn read(&mut self, server: &Server, found: &Found) -> Option<File> {
        let Found { name, path, stamp } = found;
        let most = server.most_bytes();
        let read = read_whole(path.clone(), most)
            .await
            .map_err(|error| match error.kind() {
                io::ErrorKind::FileTooLarge => Refusal::new(
                    RequestReason::TooLarge.as_str(),
                    format!(
                        "the file has more than {most} bytes: make it smaller, or raise upload_mib"
                    ),
                ),
                io::ErrorKind::InvalidInput => {
                    Refusal::new("not-wasm", format!("{error}: put a component in its place"))
                }
                _ => Refusal::new("host", format!("it cannot be read: {error}")),
            });
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(refusal) => {
                // Its digest is not known, so whatever comes next is another.
                let digest = Digest::of(b"");
                self.seen.insert(
                    name.clone(),
                    Seen {
                        stamp: *stamp,
                        digest,
                    },
                );
                server.break_one(name.clone(), refusal);
                return None;
            }
        };
        self.seen.insert(
            name.clone(),
            Seen {
                stamp: *stamp,
                digest: Digest::of(&bytes),
            },
        );
        Some(File {
            name: name.clone(),
            source: Source::Folder,
            bytes: Arc::from(bytes),
        })
    }
}

impl Stamp {
    fn of(about: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;

        Self {
            modified: about.modified().ok(),
            bytes: about.len(),
            file: about.ino(),
        }
    }
}

async fn read_whole(path: PathBuf, most: u64) -> io::Result<Vec<u8>> {
    let read = tokio::task::spawn_blocking(move || regular::read(&path, most));
    read.await
        .unwrap_or_else(|died| Err(io::Error::other(died)))
}

impl Server {
    /// A file of the directory is new or another.
    async fn file_has_changed(&self, file: File) {
        let name = file.name.clone();
        let holder = self.source_of(&name);
        if holder.is_some_and(|source| source != Source::Folder) {
            let refusal = Refusal::new(
                "name-collision",
                format!(
                    "another component has the name {name}, which did not come with this directory: rename the file"
                ),
            );
            self.break_one(name, refusal);
            return;
        }
        self.of_files.lock().insert(name.clone(), Source::Folder);
        let examined = self
            .examine(name.clone(), Arc::clone(&file.bytes), Source::Folder)
            .await;
        let switched = match examined {
            Ok((component, loaded)) => self.switch(component, loaded, &file.bytes).await,
            Err(refusal) => Err(refusal),
        };
        match switched {
            Ok(()) => tracing::info!(component = %name, "a component of the directory is served"),
            // What was served before is served on.
            Err(refusal) => self.break_one(name, refusal),
        }
    }

    /// A file of the directory is not there any more.
    async fn file_is_gone(&self, name: &Name) {
        let _alone = self.changing.lock().await;
        self.broken
            .lock()
            .retain(|Broken { name: broken, .. }| broken != name);
        if self.of_files.lock().get(name) != Some(&Source::Folder) {
            return;
        }
        self.of_files.lock().remove(name);
        if self
            .registry()
            .component(name)
            .is_some_and(|entry| entry.payload.source == Source::Folder)
        {
            self.put_in_place(self.registry().without(name), name);
            tracing::info!(component = %name, "a component left the directory and is not served any more");
        }
    }

    /// Where the name comes from, if somebody has it.
    fn source_of(&self, name: &Name) -> Option<Source> {
        let of_files = self.of_files.lock().get(name).copied();
        of_files.or_else(|| {
            self.registry()
                .component(name)
                .map(|entry| entry.payload.source)
        })
    }
}
