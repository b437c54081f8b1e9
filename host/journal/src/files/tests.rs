use super::*;

fn time(seconds: u64) -> Time {
    Time {
        seconds,
        nanoseconds: 0,
    }
}

fn files(bytes: u64, nodes: u64) -> Files {
    Files::new(Most { bytes, nodes }, time(0))
}

const MAKE: Open = Open {
    create: true,
    directory: false,
    exclusive: false,
    truncate: false,
    write: true,
};

fn make(files: &mut Files, path: &str) -> NodeId {
    files.open(ROOT, path, MAKE, time(1)).unwrap()
}

fn names(files: &Files, id: NodeId) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    while let Some((name, _)) = files
        .next_entry(id, names.last().map(String::as_str))
        .unwrap()
    {
        let name = name.to_owned();
        names.push(name);
    }
    names
}

#[test]
fn what_is_written_is_read_and_gaps_are_zeroes() {
    let mut files = files(100, 10);
    let id = make(&mut files, "a");
    files.write(id, 3, b"xyz", time(2)).unwrap();
    assert_eq!(files.read(id, 0, 100).unwrap(), (&b"\0\0\0xyz"[..], true));
    assert_eq!(files.read(id, 1, 3).unwrap(), (&b"\0\0x"[..], false));
    assert_eq!(files.read(id, 6, 1).unwrap(), (&b""[..], true));
    assert_eq!(files.read(id, u64::MAX, 1).unwrap(), (&b""[..], true));
    files.write(id, 4, b"-", time(3)).unwrap();
    files.resize(id, 5, time(4)).unwrap();
    assert_eq!(files.read(id, 3, 9).unwrap(), (&b"x-"[..], true));
    assert_eq!(files.stat(id).size, 5);
    assert_eq!(files.read(ROOT, 0, 1).unwrap_err(), Refused::IsDirectory);
    assert_eq!(
        files.write(ROOT, 0, b"", time(5)),
        Err(Refused::IsDirectory)
    );
}

#[test]
fn bytes_are_capped_over_all_files_also_those_without_a_name() {
    let mut files = files(10, 10);
    let (a, b) = (make(&mut files, "a"), make(&mut files, "b"));
    files.write(a, 0, b"123456", time(2)).unwrap();
    files.write(b, 0, b"1234", time(2)).unwrap();
    assert_eq!(files.write(b, 4, b"5", time(2)), Err(Refused::NoSpace));
    assert_eq!(files.resize(a, 7, time(2)), Err(Refused::NoSpace));
    assert_eq!(
        files.write(b, u64::MAX, b"5", time(2)),
        Err(Refused::NoSpace)
    );
    files.write(b, 0, b"abcd", time(2)).unwrap();
    assert_eq!(
        files.read(b, 0, 9).unwrap().0,
        b"abcd",
        "nothing was half done"
    );

    files.unlink(ROOT, "a", time(3)).unwrap();
    assert_eq!(files.bytes(), 10, "it is still open");
    assert_eq!(files.stat(a).links, 0);
    files.write(a, 0, b"6", time(3)).unwrap();
    files.close(a);
    assert_eq!(files.bytes(), 4);
    files.resize(b, 10, time(4)).unwrap();
}

#[test]
fn nodes_are_capped() {
    let mut files = files(10, 3);
    make(&mut files, "a");
    files.make_directory(ROOT, "d", time(1)).unwrap();
    let full = files.open(ROOT, "b", MAKE, time(1)).unwrap_err();
    assert_eq!(full, Refused::NoSpace);
    assert_eq!(
        files.make_directory(ROOT, "e", time(1)),
        Err(Refused::NoSpace)
    );
    make(&mut files, "a");
    files.remove_directory(ROOT, "d", time(1)).unwrap();
    make(&mut files, "b");
}

#[test]
fn names_are_in_order_and_numbers_count() {
    let mut files = files(0, 10);
    let made: Vec<u64> = ["c", "a", "b"]
        .map(|name| make(&mut files, name).number())
        .to_vec();
    assert_eq!(made, [2, 3, 4]);
    assert_eq!(names(&files, ROOT), ["a", "b", "c"]);
    // A listing goes on behind the last name, whatever happened to it.
    files.unlink(ROOT, "b", time(2)).unwrap();
    assert_eq!(files.next_entry(ROOT, Some("b")).unwrap().unwrap().0, "c");
    let file = make(&mut files, "a");
    assert_eq!(files.next_entry(file, None), Err(Refused::NotDirectory));
}

#[test]
fn paths_lead_where_they_say_and_never_outside() {
    let mut files = files(0, 20);
    files.make_directory(ROOT, "d", time(1)).unwrap();
    files.make_directory(ROOT, "d/e/", time(1)).unwrap();
    let file = make(&mut files, "d/e/f");
    for path in ["d/e/f", "./d//e/./f", "d/../d/e/f", "d/e/../e/f"] {
        assert_eq!(files.at(ROOT, path), Ok(file), "{path}");
    }
    let e = files.at(ROOT, "d/e").unwrap();
    assert_eq!(files.at(ROOT, "d/e/."), Ok(e));
    assert_eq!(files.at(e, "."), Ok(e));
    let cases = [
        ("", Refused::NoEntry),
        ("/d", Refused::Outside),
        ("..", Refused::Outside),
        ("d/../..", Refused::Outside),
        ("d/../../d", Refused::Outside),
        ("x", Refused::NoEntry),
        ("x/../d", Refused::NoEntry),
        ("d/e/f/g", Refused::NotDirectory),
        ("d/e/f/..", Refused::NotDirectory),
        ("d/e/f/", Refused::NotDirectory),
        ("a\0b", Refused::Invalid),
    ];
    for (path, refused) in cases {
        assert_eq!(files.at(ROOT, path), Err(refused), "{path:?}");
    }
    assert_eq!(files.at(e, "../e"), Err(Refused::Outside));
    let longest = "n".repeat(255);
    make(&mut files, &longest);
    let refused = files.open(ROOT, &format!("{longest}n"), MAKE, time(1));
    assert_eq!(refused, Err(Refused::NameTooLong));
}

#[test]
fn opening_heeds_its_flags() {
    let mut files = files(10, 20);
    files.make_directory(ROOT, "d", time(1)).unwrap();
    let file = make(&mut files, "f");
    files.write(file, 0, b"abc", time(1)).unwrap();
    let none = Open::default();
    let cases = [
        ("f", none, Ok(())),
        ("d", none, Ok(())),
        ("x", none, Err(Refused::NoEntry)),
        ("x/", MAKE, Err(Refused::IsDirectory)),
        (
            "d",
            Open {
                directory: true,
                ..none
            },
            Ok(()),
        ),
        (
            "f",
            Open {
                directory: true,
                ..none
            },
            Err(Refused::NotDirectory),
        ),
        (
            "d",
            Open {
                write: true,
                ..none
            },
            Err(Refused::IsDirectory),
        ),
        (
            "d",
            Open {
                create: true,
                ..none
            },
            Err(Refused::IsDirectory),
        ),
        (
            "d",
            Open {
                truncate: true,
                ..none
            },
            Err(Refused::IsDirectory),
        ),
        (
            "x",
            Open {
                create: true,
                directory: true,
                ..none
            },
            Err(Refused::Invalid),
        ),
        (
            "f",
            Open {
                create: true,
                exclusive: true,
                ..none
            },
            Err(Refused::Exists),
        ),
        (
            "d",
            Open {
                create: true,
                exclusive: true,
                ..none
            },
            Err(Refused::Exists),
        ),
        (
            "f",
            Open {
                exclusive: true,
                ..none
            },
            Ok(()),
        ),
        (
            "new",
            Open {
                create: true,
                exclusive: true,
                ..none
            },
            Ok(()),
        ),
    ];
    for (path, how, expected) in cases {
        let opened = files.open(ROOT, path, how, time(2)).map(drop);
        assert_eq!(opened, expected, "{path} {how:?}");
    }
    assert_eq!(files.stat(file).size, 3);
    let truncate = Open {
        truncate: true,
        ..MAKE
    };
    files.open(ROOT, "f", truncate, time(3)).unwrap();
    assert_eq!((files.stat(file).size, files.bytes()), (0, 0));
}

#[test]
fn renaming_replaces_what_may_be_replaced() {
    let mut files = files(10, 20);
    for path in ["d", "d/sub", "empty", "full", "full/x"] {
        files.make_directory(ROOT, path, time(1)).unwrap();
    }
    let (f, g) = (make(&mut files, "f"), make(&mut files, "g"));
    files.write(g, 0, b"123", time(1)).unwrap();
    let cases = [
        ("x", "y", Err(Refused::NoEntry)),
        ("d", "d/sub/d", Err(Refused::Invalid)),
        ("d", "d/inner", Err(Refused::Invalid)),
        ("d", "f", Err(Refused::NotDirectory)),
        ("f", "d", Err(Refused::IsDirectory)),
        ("d", "full", Err(Refused::NotEmpty)),
        ("f", "y/", Err(Refused::NotDirectory)),
        (".", "y", Err(Refused::Invalid)),
        ("d", "d", Ok(())),
        ("d", "empty", Ok(())),
        ("f", "g", Ok(())),
        ("g", "empty/g", Ok(())),
    ];
    for (old, new, expected) in cases {
        let renamed = files.rename((ROOT, old), (ROOT, new), time(2));
        assert_eq!(renamed, expected, "{old} to {new}");
    }
    assert_eq!(files.at(ROOT, "empty/g"), Ok(f));
    assert_eq!(names(&files, ROOT), ["empty", "full"]);
    assert_eq!(files.bytes(), 3, "what was replaced is still open");
    files.close(g);
    assert_eq!(files.bytes(), 0);
}

#[test]
fn what_is_open_stays_and_a_removed_directory_takes_nothing_new() {
    let mut files = files(10, 20);
    files.make_directory(ROOT, "d", time(1)).unwrap();
    let d = files.open(ROOT, "d", Open::default(), time(1)).unwrap();
    make(&mut files, "d/f");
    assert_eq!(
        files.remove_directory(ROOT, "d", time(2)),
        Err(Refused::NotEmpty)
    );
    assert_eq!(files.unlink(ROOT, "d", time(2)), Err(Refused::IsDirectory));
    assert_eq!(
        files.unlink(ROOT, "d/f/", time(2)),
        Err(Refused::NotDirectory)
    );
    files.unlink(d, "f", time(2)).unwrap();
    assert_eq!(
        files.remove_directory(ROOT, "d/.", time(2)),
        Err(Refused::Invalid)
    );
    assert_eq!(
        files.remove_directory(ROOT, ".", time(2)),
        Err(Refused::Invalid)
    );
    files.remove_directory(ROOT, "d", time(2)).unwrap();
    assert_eq!(files.open(d, "f", MAKE, time(3)), Err(Refused::NoEntry));
    assert_eq!(files.make_directory(d, "e", time(3)), Err(Refused::NoEntry));
    make(&mut files, "g");
    assert_eq!(
        files.rename((ROOT, "g"), (d, "g"), time(3)),
        Err(Refused::NoEntry)
    );
    assert_eq!(names(&files, d), Vec::<String>::new());
    files.close(d);
}

#[test]
fn times_are_those_that_were_given() {
    let mut files = files(10, 20);
    let f = make(&mut files, "f");
    let times = |files: &Files, id| {
        let Times {
            accessed,
            modified,
            changed,
        } = files.stat(id).times;
        [accessed.seconds, modified.seconds, changed.seconds]
    };
    assert_eq!(times(&files, f), [1, 1, 1]);
    assert_eq!(times(&files, ROOT), [0, 1, 1]);
    files.write(f, 0, b"a", time(5)).unwrap();
    assert_eq!(times(&files, f), [1, 5, 5]);
    let set = files.set_times(f, Change::Now, Change::To(time(3)), time(6));
    assert_eq!(set, Ok(()));
    assert_eq!(times(&files, f), [6, 3, 6]);
    let set = files.set_times(f, Change::Keep, Change::Keep, time(7));
    assert_eq!(set, Ok(()));
    assert_eq!(times(&files, f), [6, 3, 7]);
    files.rename((ROOT, "f"), (ROOT, "h"), time(8)).unwrap();
    assert_eq!(times(&files, f), [6, 3, 8]);
    assert_eq!(times(&files, ROOT), [0, 8, 8]);
}

#[test]
fn a_tree_that_keeps_still_is_read_and_not_changed() {
    let mut files = files(100, 10);
    let f = make(&mut files, "f");
    files.write(f, 0, b"before", time(1)).unwrap();
    files.make_directory(ROOT, "d", time(1)).unwrap();
    files.keep_still(true);
    let empty = Open {
        truncate: true,
        ..MAKE
    };
    let refused = [
        files.write(f, 0, b"x", time(2)),
        files.resize(f, 0, time(2)),
        files.make_directory(ROOT, "e", time(2)),
        files.remove_directory(ROOT, "d", time(2)),
        files.unlink(ROOT, "f", time(2)),
        files.rename((ROOT, "f"), (ROOT, "g"), time(2)),
        files.set_times(f, Change::Now, Change::Now, time(2)),
        files.open(ROOT, "g", MAKE, time(2)).map(drop),
        files.open(ROOT, "f", empty, time(2)).map(drop),
    ];
    assert_eq!(refused, [Err(Refused::Still); 9]);
    // What is there is read, and opened to be written to later.
    assert_eq!(files.read(f, 0, 10).unwrap(), (&b"before"[..], true));
    assert_eq!(files.open(ROOT, "f", MAKE, time(2)), Ok(f));
    files.keep_still(false);
    files.write(f, 0, b"behind", time(3)).unwrap();
    assert_eq!(files.read(f, 0, 10).unwrap(), (&b"behind"[..], true));
}
