//! `wasi:filesystem`: one directory in memory, which is gone when the run is over.
#![expect(
    unreachable_pub,
    reason = "the generated bindings name these types as public ones"
)]

mod code;

pub use self::code::FileError;

use longshore_journal::files::{Kind, NodeId, Open, ROOT};
use longshore_journal::import::Import;
use wasmtime::Result;
use wasmtime::component::Resource;

use self::code::{FileResult, change_of, code_of, hash_of, stat_of, type_of};
use super::io::{Failure, Input, Output};
use super::time;
use crate::bindings::wasi_world::wasi::filesystem::preopens;
use crate::bindings::wasi_world::wasi::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode,
    MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use crate::host::State;

/// Where it is.
const SCRATCH: &str = "/scratch";
/// What one read may carry.
const CHUNK: u64 = 64 * 1024;

/// Something open, which is held while it is.
pub struct Descriptor {
    node: NodeId,
    flags: DescriptorFlags,
}

/// How far a directory was read. Nothing of it is copied, so that a listing costs no memory.
pub struct Listing {
    node: NodeId,
    last: Option<String>,
}

impl State {
    fn node(&self, descriptor: &Resource<Descriptor>) -> FileResult<NodeId> {
        Ok(self.wasi.table.get(descriptor)?.node)
    }

    fn file(
        &self,
        descriptor: &Resource<Descriptor>,
        needed: DescriptorFlags,
    ) -> FileResult<NodeId> {
        let descriptor = self.wasi.table.get(descriptor)?;
        if self.wasi.files.kind(descriptor.node) == Kind::Directory {
            return Err(ErrorCode::IsDirectory.into());
        }
        if !descriptor.flags.contains(needed) {
            return Err(ErrorCode::BadDescriptor.into());
        }
        Ok(descriptor.node)
    }

    /// A call on a descriptor that passes a path.
    fn passes_path(
        &mut self,
        import: Import,
        on: &Resource<Descriptor>,
        path: &str,
        second: u64,
    ) -> FileResult<NodeId> {
        self.passes_on(import, on, second)?;
        self.world.passed(path.as_bytes());
        self.node(on)
    }

    fn passes_times(&mut self, times: [&NewTimestamp; 2]) {
        for given in times {
            let (kind, seconds, nanoseconds) = match given {
                NewTimestamp::NoChange => (0, 0, 0),
                NewTimestamp::Now => (1, 0, 0),
                NewTimestamp::Timestamp(time) => (2, time.seconds, time.nanoseconds),
            };
            let mut bytes = [kind; 13];
            bytes[1..9].copy_from_slice(&seconds.to_le_bytes());
            bytes[9..].copy_from_slice(&nanoseconds.to_le_bytes());
            self.world.passed(&bytes);
        }
    }

    fn writes_to(&mut self, node: NodeId, stream: Output) -> FileResult<Resource<Output>> {
        let stream = self.wasi.table.push(stream)?;
        self.wasi.files.hold(node);
        Ok(stream)
    }
}

impl types::Host for State {
    fn convert_error_code(&mut self, error: FileError) -> Result<ErrorCode> {
        match error {
            FileError::Code(code) => Ok(code),
            FileError::Trap(error) => Err(error),
        }
    }

    fn filesystem_error_code(&mut self, error: Resource<Failure>) -> Result<Option<ErrorCode>> {
        let import = import!("wasi:filesystem/types.filesystem-error-code");
        self.passes_on(import, &error, 0)?;
        Ok(match self.wasi.table.get(&error)? {
            Failure::File(refused) => Some(code_of(*refused)),
            Failure::BodyFull => None,
        })
    }
}

impl types::HostDescriptor for State {
    fn read_via_stream(
        &mut self,
        descriptor: Resource<Descriptor>,
        offset: u64,
    ) -> FileResult<Resource<Input>> {
        let import = import!("wasi:filesystem/types.descriptor.read-via-stream");
        self.passes_on(import, &descriptor, offset)?;
        let node = self.file(&descriptor, DescriptorFlags::READ)?;
        let stream = self.wasi.table.push(Input::File { node, at: offset })?;
        self.wasi.files.hold(node);
        Ok(stream)
    }

    fn write_via_stream(
        &mut self,
        descriptor: Resource<Descriptor>,
        offset: u64,
    ) -> FileResult<Resource<Output>> {
        let import = import!("wasi:filesystem/types.descriptor.write-via-stream");
        self.passes_on(import, &descriptor, offset)?;
        let node = self.file(&descriptor, DescriptorFlags::WRITE)?;
        self.writes_to(node, Output::File { node, at: offset })
    }

    fn append_via_stream(
        &mut self,
        descriptor: Resource<Descriptor>,
    ) -> FileResult<Resource<Output>> {
        let import = import!("wasi:filesystem/types.descriptor.append-via-stream");
        self.passes_on(import, &descriptor, 0)?;
        let node = self.file(&descriptor, DescriptorFlags::WRITE)?;
        self.writes_to(node, Output::Append { node })
    }

    fn advise(
        &mut self,
        descriptor: Resource<Descriptor>,
        offset: u64,
        _length: u64,
        _advice: Advice,
    ) -> FileResult<()> {
        let import = import!("wasi:filesystem/types.descriptor.advise");
        self.passes_on(import, &descriptor, offset)?;
        self.file(&descriptor, DescriptorFlags::empty()).map(drop)
    }

    fn sync_data(&mut self, descriptor: Resource<Descriptor>) -> FileResult<()> {
        let import = import!("wasi:filesystem/types.descriptor.sync-data");
        self.passes_on(import, &descriptor, 0)?;
        self.node(&descriptor).map(drop)
    }

    fn get_flags(&mut self, descriptor: Resource<Descriptor>) -> FileResult<DescriptorFlags> {
        let import = import!("wasi:filesystem/types.descriptor.get-flags");
        self.passes_on(import, &descriptor, 0)?;
        Ok(self.wasi.table.get(&descriptor)?.flags)
    }

    fn get_type(&mut self, descriptor: Resource<Descriptor>) -> FileResult<DescriptorType> {
        let import = import!("wasi:filesystem/types.descriptor.get-type");
        self.passes_on(import, &descriptor, 0)?;
        Ok(type_of(self.wasi.files.kind(self.node(&descriptor)?)))
    }

    fn set_size(&mut self, descriptor: Resource<Descriptor>, size: u64) -> FileResult<()> {
        let import = import!("wasi:filesystem/types.descriptor.set-size");
        self.passes_on(import, &descriptor, size)?;
        let node = self.file(&descriptor, DescriptorFlags::WRITE)?;
        let now = time(&self.world);
        Ok(self.wasi.files.resize(node, size, now)?)
    }

    fn set_times(
        &mut self,
        descriptor: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FileResult<()> {
        let import = import!("wasi:filesystem/types.descriptor.set-times");
        self.passes_on(import, &descriptor, 0)?;
        self.passes_times([&accessed, &modified]);
        let node = self.node(&descriptor)?;
        let now = time(&self.world);
        let (accessed, modified) = (change_of(accessed), change_of(modified));
        Ok(self.wasi.files.set_times(node, accessed, modified, now)?)
    }

    fn read(
        &mut self,
        descriptor: Resource<Descriptor>,
        length: u64,
        offset: u64,
    ) -> FileResult<(Vec<u8>, bool)> {
        let import = import!("wasi:filesystem/types.descriptor.read");
        self.passes_on(import, &descriptor, length)?;
        self.world.passed(&offset.to_le_bytes());
        let node = self.file(&descriptor, DescriptorFlags::READ)?;
        let most = usize::try_from(length.min(CHUNK)).expect("a chunk is small");
        let (bytes, is_end) = self.wasi.files.read(node, offset, most)?;
        Ok((bytes.to_vec(), is_end))
    }

    fn write(
        &mut self,
        descriptor: Resource<Descriptor>,
        buffer: Vec<u8>,
        offset: u64,
    ) -> FileResult<u64> {
        let import = import!("wasi:filesystem/types.descriptor.write");
        self.passes_on(import, &descriptor, offset)?;
        self.world.passed(&buffer);
        let node = self.file(&descriptor, DescriptorFlags::WRITE)?;
        let now = time(&self.world);
        self.wasi.files.write(node, offset, &buffer, now)?;
        Ok(buffer.len() as u64)
    }

    fn read_directory(
        &mut self,
        descriptor: Resource<Descriptor>,
    ) -> FileResult<Resource<Listing>> {
        let import = import!("wasi:filesystem/types.descriptor.read-directory");
        self.passes_on(import, &descriptor, 0)?;
        let node = self.node(&descriptor)?;
        if self.wasi.files.kind(node) == Kind::File {
            return Err(ErrorCode::NotDirectory.into());
        }
        let listing = self.wasi.table.push(Listing { node, last: None })?;
        self.wasi.files.hold(node);
        Ok(listing)
    }

    fn sync(&mut self, descriptor: Resource<Descriptor>) -> FileResult<()> {
        let import = import!("wasi:filesystem/types.descriptor.sync");
        self.passes_on(import, &descriptor, 0)?;
        self.node(&descriptor).map(drop)
    }

    fn create_directory_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        path: String,
    ) -> FileResult<()> {
        let import = import!("wasi:filesystem/types.descriptor.create-directory-at");
        let from = self.passes_path(import, &descriptor, &path, 0)?;
        let now = time(&self.world);
        Ok(self.wasi.files.make_directory(from, &path, now)?)
    }

    fn stat(&mut self, descriptor: Resource<Descriptor>) -> FileResult<DescriptorStat> {
        let import = import!("wasi:filesystem/types.descriptor.stat");
        self.passes_on(import, &descriptor, 0)?;
        Ok(stat_of(self.wasi.files.stat(self.node(&descriptor)?)))
    }

    fn stat_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        _: PathFlags,
        path: String,
    ) -> FileResult<DescriptorStat> {
        let import = import!("wasi:filesystem/types.descriptor.stat-at");
        let from = self.passes_path(import, &descriptor, &path, 0)?;
        let node = self.wasi.files.at(from, &path)?;
        Ok(stat_of(self.wasi.files.stat(node)))
    }

    fn set_times_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        _: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FileResult<()> {
        let import = import!("wasi:filesystem/types.descriptor.set-times-at");
        let from = self.passes_path(import, &descriptor, &path, 0)?;
        self.passes_times([&accessed, &modified]);
        let node = self.wasi.files.at(from, &path)?;
        let now = time(&self.world);
        let (accessed, modified) = (change_of(accessed), change_of(modified));
        Ok(self.wasi.files.set_times(node, accessed, modified, now)?)
    }

    fn link_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        _: PathFlags,
        old_path: String,
        new_descriptor: Resource<Descriptor>,
        new_path: String,
    ) -> FileResult<()> {
        let import = import!("wasi:filesystem/types.descriptor.link-at");
        self.passes_path(
            import,
            &descriptor,
            &old_path,
            u64::from(new_descriptor.rep()),
        )?;
        self.world.passed(new_path.as_bytes());
        Err(ErrorCode::Unsupported.into())
    }

    fn open_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        _: PathFlags,
        path: String,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FileResult<Resource<Descriptor>> {
        let import = import!("wasi:filesystem/types.descriptor.open-at");
        let how = Open {
            create: open.contains(OpenFlags::CREATE),
            directory: open.contains(OpenFlags::DIRECTORY),
            exclusive: open.contains(OpenFlags::EXCLUSIVE),
            truncate: open.contains(OpenFlags::TRUNCATE),
            write: flags.contains(DescriptorFlags::WRITE),
        };
        let bits = [how.create, how.directory, how.exclusive, how.truncate];
        let bits = bits.iter().fold(0, |bits, bit| 2 * bits + u64::from(*bit));
        let from = self.passes_path(import, &descriptor, &path, bits)?;
        for part in flags.as_array() {
            self.world.passed(&part.to_le_bytes());
        }
        let now = time(&self.world);
        let node = self.wasi.files.open(from, &path, how, now)?;
        let flags = match self.wasi.files.kind(node) {
            Kind::Directory => DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY,
            // To open a file for nothing is to look at it.
            Kind::File if !how.write => flags | DescriptorFlags::READ,
            Kind::File => flags,
        };
        match self.wasi.table.push(Descriptor { node, flags }) {
            Ok(opened) => Ok(opened),
            Err(error) => {
                self.wasi.files.close(node);
                Err(error.into())
            }
        }
    }

    fn readlink_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        path: String,
    ) -> FileResult<String> {
        let import = import!("wasi:filesystem/types.descriptor.readlink-at");
        let from = self.passes_path(import, &descriptor, &path, 0)?;
        self.wasi.files.at(from, &path)?;
        // There are no links.
        Err(ErrorCode::Invalid.into())
    }

    fn remove_directory_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        path: String,
    ) -> FileResult<()> {
        let import = import!("wasi:filesystem/types.descriptor.remove-directory-at");
        let from = self.passes_path(import, &descriptor, &path, 0)?;
        let now = time(&self.world);
        Ok(self.wasi.files.remove_directory(from, &path, now)?)
    }

    fn rename_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        old_path: String,
        new_descriptor: Resource<Descriptor>,
        new_path: String,
    ) -> FileResult<()> {
        let import = import!("wasi:filesystem/types.descriptor.rename-at");
        let from = self.passes_path(
            import,
            &descriptor,
            &old_path,
            u64::from(new_descriptor.rep()),
        )?;
        self.world.passed(new_path.as_bytes());
        let to = self.node(&new_descriptor)?;
        let now = time(&self.world);
        let files = &mut self.wasi.files;
        Ok(files.rename((from, &old_path), (to, &new_path), now)?)
    }

    fn symlink_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        old_path: String,
        new_path: String,
    ) -> FileResult<()> {
        let import = import!("wasi:filesystem/types.descriptor.symlink-at");
        self.passes_path(import, &descriptor, &old_path, 0)?;
        self.world.passed(new_path.as_bytes());
        Err(ErrorCode::Unsupported.into())
    }

    fn unlink_file_at(&mut self, descriptor: Resource<Descriptor>, path: String) -> FileResult<()> {
        let import = import!("wasi:filesystem/types.descriptor.unlink-file-at");
        let from = self.passes_path(import, &descriptor, &path, 0)?;
        let now = time(&self.world);
        Ok(self.wasi.files.unlink(from, &path, now)?)
    }

    fn is_same_object(
        &mut self,
        descriptor: Resource<Descriptor>,
        other: Resource<Descriptor>,
    ) -> Result<bool> {
        let import = import!("wasi:filesystem/types.descriptor.is-same-object");
        self.passes_on(import, &descriptor, u64::from(other.rep()))?;
        let table = &self.wasi.table;
        Ok(table.get(&descriptor)?.node == table.get(&other)?.node)
    }

    fn metadata_hash(&mut self, descriptor: Resource<Descriptor>) -> FileResult<MetadataHashValue> {
        let import = import!("wasi:filesystem/types.descriptor.metadata-hash");
        self.passes_on(import, &descriptor, 0)?;
        Ok(hash_of(self.node(&descriptor)?))
    }

    fn metadata_hash_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        _: PathFlags,
        path: String,
    ) -> FileResult<MetadataHashValue> {
        let import = import!("wasi:filesystem/types.descriptor.metadata-hash-at");
        let from = self.passes_path(import, &descriptor, &path, 0)?;
        Ok(hash_of(self.wasi.files.at(from, &path)?))
    }

    fn drop(&mut self, descriptor: Resource<Descriptor>) -> Result<()> {
        let import = import!("wasi:filesystem/types.descriptor.drop");
        let descriptor = self.passes_drop(import, descriptor)?;
        self.wasi.files.close(descriptor.node);
        Ok(())
    }
}

impl types::HostDirectoryEntryStream for State {
    fn read_directory_entry(
        &mut self,
        listing: Resource<Listing>,
    ) -> FileResult<Option<DirectoryEntry>> {
        let import = import!("wasi:filesystem/types.directory-entry-stream.read-directory-entry");
        self.passes_on(import, &listing, 0)?;
        let listing = self.wasi.table.get_mut(&listing)?;
        let files = &self.wasi.files;
        let Some((name, node)) = files.next_entry(listing.node, listing.last.as_deref())? else {
            return Ok(None);
        };
        listing.last = Some(name.to_owned());
        Ok(Some(DirectoryEntry {
            type_: type_of(files.kind(node)),
            name: name.to_owned(),
        }))
    }

    fn drop(&mut self, listing: Resource<Listing>) -> Result<()> {
        let import = import!("wasi:filesystem/types.directory-entry-stream.drop");
        let listing = self.passes_drop(import, listing)?;
        self.wasi.files.close(listing.node);
        Ok(())
    }
}

impl preopens::Host for State {
    fn get_directories(&mut self) -> Result<Vec<(Resource<Descriptor>, String)>> {
        self.passes(import!("wasi:filesystem/preopens.get-directories"), 0, 0)?;
        let root = self.wasi.table.push(Descriptor {
            node: ROOT,
            flags: DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY,
        })?;
        self.wasi.files.hold(ROOT);
        let mut directories = vec![(root, SCRATCH.to_owned())];
        // A program finds its files there without being told where that is.
        if self.wasi.program.is_some() {
            let here = self.wasi.table.push(Descriptor {
                node: ROOT,
                flags: DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY,
            })?;
            self.wasi.files.hold(ROOT);
            directories.push((here, ".".to_owned()));
        }
        Ok(directories)
    }
}
