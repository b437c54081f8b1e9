//! Files in memory: a tree of directories that exists for one run and is the same whenever the run is
//! repeated.
//!
//! Nothing here knows a clock or a disk. The names of a directory are in order, a node's number is a
//! counter, and whoever changes something says when.

mod node;
mod path;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Bound;

use self::node::{Body, Node};
pub use self::node::{Change, Kind, NodeId, Stat, Time, Times};
use self::path::{Name, Path, Step};

/// What one tree may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// Bytes of all files.
    pub bytes: u64,
    /// Files and directories, also those that were unlinked and are still open.
    pub nodes: u64,
}

/// Why something cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is nothing of that name.
    #[error("no such file or directory")]
    NoEntry,
    /// There is something of that name already.
    #[error("it exists already")]
    Exists,
    /// A directory is needed.
    #[error("not a directory")]
    NotDirectory,
    /// A file is needed.
    #[error("it is a directory")]
    IsDirectory,
    /// A directory is not empty.
    #[error("the directory is not empty")]
    NotEmpty,
    /// The arguments make no sense together.
    #[error("invalid")]
    Invalid,
    /// A name is longer than 255 bytes.
    #[error("a name is too long")]
    NameTooLong,
    /// The path leads out of the tree.
    #[error("the path leads outside")]
    Outside,
    /// The tree holds as much as it may.
    #[error("no space is left")]
    NoSpace,
    /// Nothing may be changed now.
    #[error("nothing is written within a step")]
    Still,
}

/// How something is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Made if it is not there.
    pub create: bool,
    /// Only if it is a directory.
    pub directory: bool,
    /// Only if it was not there.
    pub exclusive: bool,
    /// Emptied.
    pub truncate: bool,
    /// To be written to.
    pub write: bool,
}

/// One tree.
#[derive(Debug)]
pub struct Files {
    most: Most,
    bytes: u64,
    made: u64,
    still: bool,
    nodes: BTreeMap<NodeId, Node>,
}

/// The root of every tree.
pub const ROOT: NodeId = NodeId(1);

impl Files {
    /// An empty directory that was made then.
    #[must_use]
    pub fn new(most: Most, now: Time) -> Self {
        let mut root = Node::new(Body::Directory(BTreeMap::new()), now);
        root.parent = Some(ROOT);
        Self {
            most,
            bytes: 0,
            made: ROOT.0,
            still: false,
            nodes: BTreeMap::from([(ROOT, root)]),
        }
    }

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// From now on nothing may be changed, or everything may again: what is written within a step would not be there
    /// for whoever goes on behind it.
    pub fn keep_still(&mut self, still: bool) {
        self.still = still;
    }

    /// Whether nothing may be changed now.
    #[must_use]
    pub fn is_still(&self) -> bool {
        self.still
    }

    fn may_change(&self) -> Result<(), Refused> {
        if self.still {
            Err(Refused::Still)
        } else {
            Ok(())
        }
    }

    // Handles

    /// Somebody has it open: it stays until [`Files::close`], also if its name goes.
    pub fn hold(&mut self, id: NodeId) {
        self.node_mut(id).holders += 1;
    }

    /// One less has it open.
    pub fn close(&mut self, id: NodeId) {
        let node = self.node_mut(id);
        node.holders -= 1;
        self.drop_if_gone(id);
    }

    /// Opens what is at that path from a directory, holding it.
    pub fn open(
        &mut self,
        from: NodeId,
        path: &str,
        how: Open,
        now: Time,
    ) -> Result<NodeId, Refused> {
        if how.directory && (how.create || how.truncate) {
            return Err(Refused::Invalid);
        }
        let place = self.place(from, path)?;
        let found = self.find(&place)?;
        let id = match found {
            Some(_) if how.create && how.exclusive => return Err(Refused::Exists),
            Some(id) => id,
            None if !how.create => return Err(Refused::NoEntry),
            // A directory cannot be made in this way.
            None if place.is_directory => return Err(Refused::IsDirectory),
            None if self.still => return Err(Refused::Still),
            None => self.add(&place, Body::File(Vec::new()), now)?,
        };
        match self.node(id).kind() {
            Kind::Directory if how.write || how.create || how.truncate => {
                return Err(Refused::IsDirectory);
            }
            Kind::File if how.directory || place.is_directory => return Err(Refused::NotDirectory),
            Kind::Directory | Kind::File => {}
        }
        if how.truncate {
            self.resize(id, 0, now)?;
        }
        self.hold(id);
        Ok(id)
    }

    // What a node says of itself

    /// What it is.
    #[must_use]
    pub fn kind(&self, id: NodeId) -> Kind {
        self.node(id).kind()
    }

    /// What is known of it.
    #[must_use]
    pub fn stat(&self, id: NodeId) -> Stat {
        let node = self.node(id);
        Stat {
            kind: node.kind(),
            links: u64::from(node.parent.is_some()),
            size: node.size(),
            times: node.times,
        }
    }

    /// What is at that path, which is not opened.
    pub fn at(&self, from: NodeId, path: &str) -> Result<NodeId, Refused> {
        let place = self.place(from, path)?;
        let id = self.find(&place)?.ok_or(Refused::NoEntry)?;
        if place.is_directory && self.node(id).kind() == Kind::File {
            return Err(Refused::NotDirectory);
        }
        Ok(id)
    }

    /// Sets when it was used.
    pub fn set_times(
        &mut self,
        id: NodeId,
        accessed: Change,
        modified: Change,
        now: Time,
    ) -> Result<(), Refused> {
        self.may_change()?;
        let times = &mut self.node_mut(id).times;
        times.accessed = accessed.of(times.accessed, now);
        times.modified = modified.of(times.modified, now);
        times.changed = now;
        Ok(())
    }

    // Files

    /// At most so many of a file's bytes from there on, and whether they are its last.
    pub fn read(&self, id: NodeId, offset: u64, most: usize) -> Result<(&[u8], bool), Refused> {
        let Body::File(bytes) = &self.node(id).body else {
            return Err(Refused::IsDirectory);
        };
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let end = start.saturating_add(most).min(bytes.len());
        Ok((&bytes[start..end], end == bytes.len()))
    }

    /// Writes all of it there; what lies between the end and there becomes zeroes.
    pub fn write(
        &mut self,
        id: NodeId,
        offset: u64,
        written: &[u8],
        now: Time,
    ) -> Result<(), Refused> {
        let size = self.size_of_file(id)?;
        self.may_change()?;
        if written.is_empty() {
            return Ok(());
        }
        let end = offset
            .checked_add(written.len() as u64)
            .ok_or(Refused::NoSpace)?;
        if end > size {
            self.resize(id, end, now)?;
        }
        let node = self.node_mut(id);
        node.modified(now);
        let Body::File(bytes) = &mut node.body else {
            unreachable!("that it is a file was checked");
        };
        let start = usize::try_from(offset).expect("it fits the bytes that there are");
        bytes[start..start + written.len()].copy_from_slice(written);
        Ok(())
    }

    /// Where a file ends.
    pub fn size_of_file(&self, id: NodeId) -> Result<u64, Refused> {
        match &self.node(id).body {
            Body::File(bytes) => Ok(bytes.len() as u64),
            Body::Directory(_) => Err(Refused::IsDirectory),
        }
    }

    /// Cuts a file, or fills it up with zeroes.
    pub fn resize(&mut self, id: NodeId, size: u64, now: Time) -> Result<(), Refused> {
        let before = self.size_of_file(id)?;
        self.may_change()?;
        let after = self.bytes - before;
        if size > self.most.bytes.saturating_sub(after) {
            return Err(Refused::NoSpace);
        }
        let length = usize::try_from(size).map_err(|_| Refused::NoSpace)?;
        self.bytes = after + size;
        let node = self.node_mut(id);
        node.modified(now);
        let Body::File(bytes) = &mut node.body else {
            unreachable!("that it is a file was checked");
        };
        bytes.resize(length, 0);
        // What was cut off is not held in memory either.
        bytes.shrink_to(length.saturating_mul(2));
        Ok(())
    }

    // Directories

    /// The first name behind that one, and what bears it.
    pub fn next_entry(
        &self,
        id: NodeId,
        after: Option<&str>,
    ) -> Result<Option<(&str, NodeId)>, Refused> {
        let entries = self.entries(id)?;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        Ok(entries
            .range::<str, _>((from, Bound::Unbounded))
            .next()
            .map(|(name, id)| (name.as_str(), *id)))
    }

    /// Makes a directory.
    pub fn make_directory(&mut self, from: NodeId, path: &str, now: Time) -> Result<(), Refused> {
        self.may_change()?;
        let place = self.place(from, path)?;
        if self.find(&place)?.is_some() {
            return Err(Refused::Exists);
        }
        self.add(&place, Body::Directory(BTreeMap::new()), now)?;
        Ok(())
    }

    /// Takes a file's name away.
    pub fn unlink(&mut self, from: NodeId, path: &str, now: Time) -> Result<(), Refused> {
        self.may_change()?;
        let place = self.place(from, path)?;
        let id = self.find(&place)?.ok_or(Refused::NoEntry)?;
        match self.node(id).kind() {
            Kind::Directory => Err(Refused::IsDirectory),
            Kind::File if place.is_directory => Err(Refused::NotDirectory),
            Kind::File => {
                self.take(&place, now);
                self.drop_if_gone(id);
                Ok(())
            }
        }
    }

    /// Takes an empty directory away.
    pub fn remove_directory(&mut self, from: NodeId, path: &str, now: Time) -> Result<(), Refused> {
        self.may_change()?;
        let place = self.place(from, path)?;
        let id = self.find(&place)?.ok_or(Refused::NoEntry)?;
        // The end of a path that names the directory itself is no name to take away.
        if place.name.is_none() {
            return Err(Refused::Invalid);
        }
        if !self.entries(id)?.is_empty() {
            return Err(Refused::NotEmpty);
        }
        self.take(&place, now);
        self.drop_if_gone(id);
        Ok(())
    }

    /// Gives something another name, in place of what bears it now.
    pub fn rename(
        &mut self,
        (from, old): (NodeId, &str),
        (to, new): (NodeId, &str),
        now: Time,
    ) -> Result<(), Refused> {
        self.may_change()?;
        let old = self.place(from, old)?;
        let new = self.place(to, new)?;
        let id = self.find(&old)?.ok_or(Refused::NoEntry)?;
        if old.name.is_none() || new.name.is_none() {
            return Err(Refused::Invalid);
        }
        let kind = self.node(id).kind();
        if kind == Kind::File && (old.is_directory || new.is_directory) {
            return Err(Refused::NotDirectory);
        }
        if self.is_within(new.directory, id) {
            return Err(Refused::Invalid);
        }
        let replaced = self.find(&new)?;
        if replaced == Some(id) {
            return Ok(());
        }
        if let Some(other) = replaced {
            match (kind, self.node(other).kind()) {
                (Kind::Directory, Kind::File) => return Err(Refused::NotDirectory),
                (Kind::File, Kind::Directory) => return Err(Refused::IsDirectory),
                (Kind::Directory, Kind::Directory) if !self.entries(other)?.is_empty() => {
                    return Err(Refused::NotEmpty);
                }
                (Kind::Directory, Kind::Directory) | (Kind::File, Kind::File) => {}
            }
        } else {
            // A directory that was removed takes no new names.
            self.must_be_linked(new.directory)?;
        }
        self.take(&old, now);
        if let Some(other) = replaced {
            self.take(&new, now);
            self.drop_if_gone(other);
        }
        self.put(&new, id, now);
        Ok(())
    }

    // Within

    /// Every id that is given out is held or linked, so its node is there.
    fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(&id).expect("what is held stays")
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes.get_mut(&id).expect("what is held stays")
    }

    fn entries(&self, id: NodeId) -> Result<&BTreeMap<String, NodeId>, Refused> {
        match &self.node(id).body {
            Body::Directory(entries) => Ok(entries),
            Body::File(_) => Err(Refused::NotDirectory),
        }
    }

    fn entries_mut(&mut self, id: NodeId) -> &mut BTreeMap<String, NodeId> {
        match &mut self.node_mut(id).body {
            Body::Directory(entries) => entries,
            Body::File(_) => unreachable!("a place is in a directory"),
        }
    }

    /// Where a path leads: everything but its last name has to be there.
    fn place(&self, from: NodeId, path: &str) -> Result<Path, Refused> {
        // Each is below the one before it; where the path begins is the lowest that it may go.
        let mut way = vec![from];
        self.entries(from)?;
        let here = |way: &[NodeId]| *way.last().expect("it never gets empty");
        let mut steps = path::steps(path)?.peekable();
        while let Some(step) = steps.next() {
            match step {
                Step::Here => {}
                Step::Up => {
                    way.pop();
                    if way.is_empty() {
                        return Err(Refused::Outside);
                    }
                }
                Step::Into(name) if steps.peek().is_none() => {
                    return Ok(Path {
                        directory: here(&way),
                        name: Some(Name::new(name)?),
                        is_directory: path.ends_with('/'),
                    });
                }
                Step::Into(name) => {
                    let next = *self
                        .entries(here(&way))?
                        .get(name)
                        .ok_or(Refused::NoEntry)?;
                    self.entries(next)?;
                    way.push(next);
                }
            }
        }
        Ok(Path {
            directory: here(&way),
            name: None,
            is_directory: true,
        })
    }

    fn find(&self, place: &Path) -> Result<Option<NodeId>, Refused> {
        match &place.name {
            None => Ok(Some(place.directory)),
            Some(name) => Ok(self.entries(place.directory)?.get(name.as_str()).copied()),
        }
    }

    fn add(&mut self, place: &Path, body: Body, now: Time) -> Result<NodeId, Refused> {
        self.must_be_linked(place.directory)?;
        if self.nodes.len() as u64 >= self.most.nodes {
            return Err(Refused::NoSpace);
        }
        self.made += 1;
        let id = NodeId(self.made);
        self.nodes.insert(id, Node::new(body, now));
        self.put(place, id, now);
        Ok(id)
    }

    fn must_be_linked(&self, directory: NodeId) -> Result<(), Refused> {
        match self.node(directory).parent {
            Some(_) => Ok(()),
            None => Err(Refused::NoEntry),
        }
    }

    fn put(&mut self, place: &Path, id: NodeId, now: Time) {
        let name = place.name.as_ref().expect("what is put has a name");
        self.entries_mut(place.directory)
            .insert(name.as_str().to_owned(), id);
        self.node_mut(place.directory).modified(now);
        let node = self.node_mut(id);
        node.parent = Some(place.directory);
        node.times.changed = now;
    }

    fn take(&mut self, place: &Path, now: Time) {
        let name = place.name.as_ref().expect("what is taken has a name");
        let taken = self.entries_mut(place.directory).remove(name.as_str());
        self.node_mut(place.directory).modified(now);
        let node = self.node_mut(taken.expect("it was found"));
        node.parent = None;
        node.times.changed = now;
    }

    fn drop_if_gone(&mut self, id: NodeId) {
        let node = self.node(id);
        if node.parent.is_none() && node.holders == 0 {
            self.bytes -= node.size();
            self.nodes.remove(&id);
        }
    }

    fn is_within(&self, id: NodeId, above: NodeId) -> bool {
        let mut at = id;
        loop {
            if at == above {
                return true;
            }
            match self.node(at).parent {
                Some(parent) if parent != at => at = parent,
                _ => return false,
            }
        }
    }
}
