//! Files of a run.

use longshore_policy::limits::Limits;
use wasmtime::component::Resource;

use super::kit::origin;
use super::script::{Scene, Script, scene};
use crate::bindings::wasi_world::wasi::filesystem::preopens::Host as _;
use crate::bindings::wasi_world::wasi::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, Host as _, HostDescriptor,
    HostDirectoryEntryStream as _, OpenFlags, PathFlags,
};
use crate::bindings::wasi_world::wasi::io::streams::{
    Host as _, HostInputStream, HostOutputStream, StreamError as Streamed,
};
use crate::host::State;
use crate::journal::Journal;
use crate::wasi::files::{Descriptor, FileError};
use crate::wasi::io::StreamError;

fn scratch(limits: &Limits) -> (State, Resource<Descriptor>) {
    let script = Script::at(5_000);
    let Scene { mut state, .. } = scene(limits, script, Journal::fresh(origin()));
    let mut directories = state.get_directories().unwrap();
    let (root, name) = directories.pop().unwrap();
    assert!(directories.is_empty());
    assert_eq!(name, "/scratch");
    (state, root)
}

fn on<T: 'static>(resource: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(resource.rep())
}

#[track_caller]
fn fine<T>(outcome: Result<T, FileError>) -> T {
    match outcome {
        Ok(value) => value,
        Err(FileError::Code(code)) => panic!("{code:?}"),
        Err(FileError::Trap(error)) => panic!("{error:?}"),
    }
}

#[track_caller]
fn code<T>(outcome: Result<T, FileError>) -> ErrorCode {
    match outcome {
        Ok(_) => panic!("it was done"),
        Err(FileError::Code(code)) => code,
        Err(FileError::Trap(error)) => panic!("{error:?}"),
    }
}

fn create(state: &mut State, root: &Resource<Descriptor>, path: &str) -> Resource<Descriptor> {
    let flags = DescriptorFlags::READ | DescriptorFlags::WRITE;
    fine(state.open_at(
        on(root),
        PathFlags::empty(),
        path.into(),
        OpenFlags::CREATE,
        flags,
    ))
}

#[test]
fn files_are_written_and_read_in_every_way() {
    let (mut state, root) = scratch(&Limits::default());
    let file = create(&mut state, &root, "a");
    assert_eq!(
        fine(HostDescriptor::write(
            &mut state,
            on(&file),
            b"hello".to_vec(),
            0
        )),
        5
    );
    let stream = fine(state.write_via_stream(on(&file), 5));
    assert!(HostOutputStream::write(&mut state, on(&stream), b" wor".to_vec()).is_ok());
    assert!(
        state
            .blocking_write_and_flush(on(&stream), b"ld".to_vec())
            .is_ok()
    );
    let append = fine(state.append_via_stream(on(&file)));
    assert!(HostOutputStream::write(&mut state, on(&append), b"!".to_vec()).is_ok());
    assert!(state.write_zeroes(on(&append), 2).is_ok());
    let read = fine(HostDescriptor::read(&mut state, on(&file), 100, 0));
    assert_eq!(read, (b"hello world!\0\0".to_vec(), true));
    assert_eq!(
        fine(HostDescriptor::read(&mut state, on(&file), 2, 12)),
        (vec![0; 2], true)
    );
    assert_eq!(
        fine(HostDescriptor::read(&mut state, on(&file), 1, 12)),
        (vec![0], false)
    );

    let input = fine(state.read_via_stream(on(&file), 6));
    assert_eq!(
        HostInputStream::read(&mut state, on(&input), 3)
            .ok()
            .unwrap(),
        b"wor"
    );
    assert_eq!(state.skip(on(&input), 2).ok(), Some(2));
    fine(state.set_size(on(&file), 12));
    assert_eq!(state.blocking_read(on(&input), 9).ok().unwrap(), b"!");
    assert!(matches!(
        HostInputStream::read(&mut state, on(&input), 9),
        Err(StreamError::Closed)
    ));

    // One file into another.
    let copy = create(&mut state, &root, "b");
    let to = fine(state.write_via_stream(on(&copy), 0));
    let from = fine(state.read_via_stream(on(&file), 0));
    assert_eq!(state.splice(to, from, 5).ok(), Some(5));
    assert_eq!(fine(state.stat(copy)).size, 5);

    let stat = fine(state.stat(on(&file)));
    assert_eq!(stat.type_, DescriptorType::RegularFile);
    assert_eq!((stat.link_count, stat.size), (1, 12));
    // The guest did not look at its clock, so to it no time has passed.
    assert_eq!(
        stat.data_modification_timestamp.unwrap().seconds,
        1_000_000_000
    );
}

#[test]
fn what_was_not_opened_for_it_is_refused() {
    let (mut state, root) = scratch(&Limits::default());
    let none = OpenFlags::empty();
    let written = create(&mut state, &root, "a");
    let flags = DescriptorFlags::WRITE;
    let write_only = fine(state.open_at(on(&root), PathFlags::empty(), "a".into(), none, flags));
    let refused = HostDescriptor::read(&mut state, on(&write_only), 1, 0);
    assert_eq!(code(refused), ErrorCode::BadDescriptor);
    let flags = DescriptorFlags::empty();
    let read_only = fine(state.open_at(on(&root), PathFlags::empty(), "a".into(), none, flags));
    assert_eq!(fine(state.get_flags(on(&read_only))), DescriptorFlags::READ);
    fine(HostDescriptor::read(&mut state, on(&read_only), 1, 0));
    let refused = HostDescriptor::write(&mut state, on(&read_only), vec![1], 0);
    assert_eq!(code(refused), ErrorCode::BadDescriptor);
    assert_eq!(
        code(state.set_size(on(&read_only), 1)),
        ErrorCode::BadDescriptor
    );
    assert_eq!(
        code(state.append_via_stream(on(&read_only))),
        ErrorCode::BadDescriptor
    );
    assert_eq!(
        code(state.read_via_stream(on(&root), 0)),
        ErrorCode::IsDirectory
    );
    assert_eq!(
        code(state.read_directory(on(&written))),
        ErrorCode::NotDirectory
    );
    let outside = state.open_at(on(&root), PathFlags::empty(), "../etc".into(), none, flags);
    assert_eq!(code(outside), ErrorCode::NotPermitted);
    let outside = state.open_at(on(&root), PathFlags::empty(), "/etc".into(), none, flags);
    assert_eq!(code(outside), ErrorCode::NotPermitted);
    let link = state.symlink_at(on(&root), "a".into(), "l".into());
    assert_eq!(code(link), ErrorCode::Unsupported);
    let link = state.link_at(
        on(&root),
        PathFlags::empty(),
        "a".into(),
        on(&root),
        "l".into(),
    );
    assert_eq!(code(link), ErrorCode::Unsupported);
    assert_eq!(
        code(state.readlink_at(on(&root), "a".into())),
        ErrorCode::Invalid
    );
    assert_eq!(
        code(state.readlink_at(on(&root), "l".into())),
        ErrorCode::NoEntry
    );
}

#[test]
fn directories_are_listed_in_order_and_files_known_by_their_number() {
    let (mut state, root) = scratch(&Limits::default());
    fine(state.create_directory_at(on(&root), "d".into()));
    for path in ["c", "a", "d/x"] {
        create(&mut state, &root, path);
    }
    let names = |state: &mut State| {
        let listing = fine(state.read_directory(on(&root)));
        let mut names = Vec::new();
        while let Some(entry) = fine(state.read_directory_entry(on(&listing))) {
            names.push((entry.name, entry.type_ == DescriptorType::Directory));
        }
        assert!(fine(state.read_directory_entry(on(&listing))).is_none());
        names
    };
    let name = |text: &str, directory| (text.to_owned(), directory);
    assert_eq!(
        names(&mut state),
        [name("a", false), name("c", false), name("d", true)]
    );
    let hash = |state: &mut State, path: &str| {
        let hash = fine(state.metadata_hash_at(on(&root), PathFlags::empty(), path.into()));
        (hash.lower, hash.upper)
    };
    let before = hash(&mut state, "d/x");
    fine(state.rename_at(on(&root), "d/x".into(), on(&root), "b".into()));
    assert_eq!(hash(&mut state, "b"), before);
    assert_ne!(hash(&mut state, "a"), before);
    fine(state.remove_directory_at(on(&root), "d".into()));
    fine(state.unlink_file_at(on(&root), "c".into()));
    assert_eq!(names(&mut state), [name("a", false), name("b", false)]);
    let (a, b) = (
        create(&mut state, &root, "a"),
        create(&mut state, &root, "a"),
    );
    let c = create(&mut state, &root, "b");
    assert!(state.is_same_object(on(&a), b).unwrap());
    assert!(!state.is_same_object(a, c).unwrap());
}

#[test]
fn a_full_scratch_is_an_error_and_never_a_trap() {
    let (mut state, root) = scratch(&Limits {
        scratch_bytes: 10,
        handles: 100,
        ..Limits::default()
    });
    let file = create(&mut state, &root, "a");
    fine(HostDescriptor::write(&mut state, on(&file), vec![1; 10], 0));
    let full = HostDescriptor::write(&mut state, on(&file), vec![1], 10);
    assert_eq!(code(full), ErrorCode::InsufficientSpace);
    assert_eq!(
        code(state.set_size(on(&file), u64::MAX)),
        ErrorCode::InsufficientSpace
    );
    let append = fine(state.append_via_stream(on(&file)));
    let error = match HostOutputStream::write(&mut state, on(&append), vec![1]) {
        Err(error) => state.convert_stream_error(error).unwrap(),
        Ok(()) => panic!("it was written"),
    };
    let Streamed::LastOperationFailed(error) = error else {
        panic!("{error:?}");
    };
    let error = state.filesystem_error_code(error).unwrap();
    assert_eq!(error, Some(ErrorCode::InsufficientSpace));
    assert_eq!(
        fine(HostDescriptor::read(&mut state, file, 100, 0)).0,
        [1; 10]
    );
    // What is gone makes room, once nobody has it open.
    fine(state.unlink_file_at(on(&root), "a".into()));
    let other = create(&mut state, &root, "b");
    let full = HostDescriptor::write(&mut state, on(&other), vec![1], 0);
    assert_eq!(code(full), ErrorCode::InsufficientSpace);
}

#[test]
fn files_are_as_many_as_handles() {
    let (mut state, root) = scratch(&Limits {
        handles: 4,
        ..Limits::default()
    });
    for path in ["a", "b", "c"] {
        fine(state.create_directory_at(on(&root), path.into()));
    }
    let full = state.create_directory_at(on(&root), "d".into());
    assert_eq!(code(full), ErrorCode::InsufficientSpace);
    fine(state.remove_directory_at(on(&root), "a".into()));
    fine(state.create_directory_at(on(&root), "d".into()));
}

#[test]
fn what_is_dropped_is_let_go_of() {
    let (mut state, root) = scratch(&Limits {
        scratch_bytes: 10,
        ..Limits::default()
    });
    let file = create(&mut state, &root, "a");
    fine(HostDescriptor::write(&mut state, on(&file), vec![1; 10], 0));
    let stream = fine(state.read_via_stream(on(&file), 0));
    fine(state.unlink_file_at(on(&root), "a".into()));
    HostDescriptor::drop(&mut state, Resource::new_own(file.rep())).unwrap();
    assert_eq!(
        HostInputStream::read(&mut state, on(&stream), 100)
            .ok()
            .unwrap()
            .len(),
        10
    );
    let other = create(&mut state, &root, "b");
    let full = HostDescriptor::write(&mut state, on(&other), vec![1; 10], 0);
    assert_eq!(code(full), ErrorCode::InsufficientSpace);
    HostInputStream::drop(&mut state, Resource::new_own(stream.rep())).unwrap();
    fine(HostDescriptor::write(&mut state, other, vec![1; 10], 0));
}

/// Whoever goes on behind a step does not do it again, and would miss what it wrote.
#[tokio::test]
async fn nothing_is_written_within_a_step() {
    use crate::bindings::longshore::tool::task::Host as _;
    let (mut state, root) = scratch(&Limits::default());
    let file = create(&mut state, &root, "a");
    let stream = fine(state.write_via_stream(on(&file), 0));
    assert_eq!(state.step_begin("s".into()).await.unwrap(), None);
    let write = HostDescriptor::write(&mut state, on(&file), b"x".to_vec(), 0);
    assert_eq!(code(write), ErrorCode::ReadOnly);
    assert_eq!(
        code(state.create_directory_at(on(&root), "d".into())),
        ErrorCode::ReadOnly
    );
    let written = HostOutputStream::write(&mut state, on(&stream), b"x".to_vec());
    assert!(
        matches!(written, Err(StreamError::Failed(_))),
        "a stream that was open before is no way around"
    );
    assert_eq!(fine(state.stat(on(&file))).size, 0);
    state.step_end("s".into(), Vec::new()).await.unwrap();
    let write = HostDescriptor::write(&mut state, on(&file), b"x".to_vec(), 0);
    assert_eq!(fine(write), 1);
}
