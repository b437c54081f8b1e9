//! A directory whose `*.wasm` are components, each under the stem of its file, for as long as it lies there.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use longshore_catalog::component::{Digest, Name};
use longshore_sandbox::refusal::Reason;
use longshore_sandbox::regular;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::components::{Broken, Source};
use crate::reason::{NAME_COLLISION, Refusal, RequestReason};
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
    /// When it is tried again without having changed, if it is not served.
    again: Option<Again>,
}

/// A file that is not served for a reason that may pass.
#[derive(Clone, Copy, Debug)]
struct Again {
    at: Instant,
    pause: Duration,
}

impl Again {
    /// The longest between two tries: soon enough for whoever made room, and rare enough to cost nothing.
    const MOST: Duration = Duration::from_secs(120);

    fn after(before: Option<Self>, every: Duration, now: Instant) -> Self {
        let pause = before.map_or(every, |before| before.pause.saturating_mul(2));
        let pause = pause.clamp(every, Self::MOST.max(every));
        Self {
            at: now + pause,
            pause,
        }
    }
}

/// Whether what keeps a component from being served may be gone later, without its file having changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hope {
    /// It is in the file.
    None,
    /// It takes much to try, so somebody has to say so.
    WhenTold,
    /// Another component may go, a file may be readable, a disk may have room again.
    Always,
}

impl Hope {
    fn of(refusal: &Refusal) -> Self {
        let is = |reason: Reason| refusal.reason == reason.as_str();
        if is(Reason::CompileLimit) || is(Reason::CompileCrashed) {
            Self::WhenTold
        } else if is(Reason::Host) || refusal.reason == NAME_COLLISION {
            Self::Always
        } else {
            Self::None
        }
    }
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
            let is_told = tokio::select! {
                () = tokio::time::sleep(every) => false,
                () = at_once.notified() => true,
            };
            match self.look().await {
                Ok(found) => {
                    was_there = true;
                    self.keep_up(&server, found, every, is_told).await;
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

    async fn keep_up(
        &mut self,
        server: &Server,
        found: Vec<Found>,
        every: Duration,
        is_told: bool,
    ) {
        let gone: Vec<Name> = self
            .seen
            .keys()
            .filter(|name| !found.iter().any(|found| found.name == **name))
            .cloned()
            .collect();
        // What had to wait for a name may have it now.
        let has_room = is_told || !gone.is_empty();
        for name in gone {
            self.seen.remove(&name);
            server.file_is_gone(&name).await;
        }
        for found in found {
            let before = self.seen.get(&found.name);
            let is_same = before.is_some_and(|before| before.stamp == found.stamp);
            let again = before.and_then(|before| before.again);
            let broken = server.why_broken(&found.name);
            let hope = broken.as_ref().map(Hope::of);
            if is_same {
                let is_due = again.is_none_or(|again| again.at <= Instant::now());
                let is_tried = match hope {
                    // It is served, unless whatever had its name took the word of it along.
                    None => again.is_some(),
                    Some(Hope::None) => false,
                    Some(Hope::WhenTold) => is_told,
                    Some(Hope::Always) => has_room || is_due,
                };
                if !is_tried {
                    continue;
                }
            }
            let digest = before.map(|before| before.digest.clone());
            let name = found.name.clone();
            if let Some(file) = self.read(server, &found).await {
                // Touched, and the same.
                let is_served = broken.is_none() && again.is_none();
                if is_served && digest == Some(Digest::of(&file.bytes)) {
                    continue;
                }
                if hope == Some(Hope::WhenTold) {
                    server.forgive(&file.bytes);
                }
                server.file_has_changed(file).await;
            }
            let is_broken = server.why_broken(&name).is_some();
            if let Some(seen) = self.seen.get_mut(&name) {
                let before = again.filter(|_| is_same);
                seen.again = is_broken.then(|| Again::after(before, every, Instant::now()));
            }
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
                _ => Refusal::new(Reason::Host.as_str(), format!("it cannot be read: {error}")),
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
                        again: None,
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
                again: None,
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
                NAME_COLLISION,
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

    /// Why the component of that name is not served as it should be.
    fn why_broken(&self, name: &Name) -> Option<Refusal> {
        let broken = self.broken.lock();
        let one = broken.iter().find(|broken| broken.name == *name)?;
        Some(one.refusal.clone())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_tried_again() {
        let rows = [
            (NAME_COLLISION, Hope::Always),
            (Reason::Host.as_str(), Hope::Always),
            (Reason::CompileLimit.as_str(), Hope::WhenTold),
            (Reason::CompileCrashed.as_str(), Hope::WhenTold),
            (Reason::NotWasm.as_str(), Hope::None),
            (Reason::ListTools.as_str(), Hope::None),
            (RequestReason::TooLarge.as_str(), Hope::None),
        ];
        for (reason, hope) in rows {
            assert_eq!(Hope::of(&Refusal::new(reason, "")), hope, "{reason}");
        }
    }

    #[test]
    fn tries_become_rarer_up_to_a_point() {
        let (now, every) = (Instant::now(), Duration::from_secs(2));
        let mut again = None;
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let next = Again::after(again, every, now);
            assert_eq!(next.at, now + next.pause);
            pauses.push(next.pause.as_secs());
            again = Some(next);
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 120, 120]);
        // Whoever looks less often than that is not made to look more often.
        let rare = Duration::from_secs(600);
        assert_eq!(Again::after(again, rare, now).pause, rare);
    }
}
