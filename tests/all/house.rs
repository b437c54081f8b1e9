//! The rules of the house that a compiler does not know: who may name whom, and who may name what.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use longshore_tests::guests;
use longshore_tests::process::{command, run};

/// Who names whom in their manifest. A room that is not here, or an arrow that is not here, is a fault.
const ARROWS: [(&str, &[&str]); 9] = [
    ("protocol", &[]),
    ("tasks", &[]),
    ("catalog", &[]),
    ("journal", &[]),
    ("policy", &[]),
    ("store", &["tasks", "catalog"]),
    ("sandbox", &["journal", "policy"]),
    (
        "server",
        &[
            "protocol", "tasks", "catalog", "policy", "journal", "sandbox",
        ],
    ),
    ("cli", &["server", "store", "sandbox"]),
];

/// What rooms without a clock, a network or a disk must not depend on.
const IMPURE: [&str; 12] = [
    "tokio",
    "wasmtime",
    "wasmtime-wasi",
    "rusqlite",
    "axum",
    "hyper",
    "hyper-util",
    "rustix",
    "cap-std",
    "reqwest",
    "tracing",
    "tempfile",
];

fn manifest(room: &str) -> toml::Table {
    let path = guests::root().join("host").join(room).join("Cargo.toml");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn names(manifest: &toml::Table, table: &str) -> BTreeSet<String> {
    let Some(table) = manifest.get(table).and_then(toml::Value::as_table) else {
        return BTreeSet::new();
    };
    table.keys().cloned().collect()
}

fn ours(names: &BTreeSet<String>) -> BTreeSet<String> {
    names
        .iter()
        .filter_map(|name| name.strip_prefix("longshore-"))
        .map(str::to_owned)
        .collect()
}

/// Every Rust file below a folder, with its text.
fn sources(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("a folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source is text");
                found.insert(path, text);
            }
        }
    }
    found
}

/// The sources of what is shipped, without their tests.
fn product(host: &Path) -> BTreeMap<PathBuf, String> {
    let is_test = |path: &Path| {
        path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
    };
    sources(host)
        .into_iter()
        .filter(|(path, _)| !is_test(path.strip_prefix(host).expect("it lies there")))
        .map(|(path, text)| {
            let product = text
                .split("#[cfg(test)]\nmod tests")
                .next()
                .unwrap_or_default()
                .to_owned();
            (path, product)
        })
        .collect()
}

#[test]
fn rooms_name_only_whom_they_may() {
    let rooms: BTreeSet<String> = std::fs::read_dir(guests::root().join("host"))
        .expect("host/ can be read")
        .map(|entry| {
            entry
                .expect("host/ can be read")
                .file_name()
                .into_string()
                .expect("rooms have plain names")
        })
        .filter(|room| {
            guests::root()
                .join("host")
                .join(room)
                .join("Cargo.toml")
                .exists()
        })
        .collect();
    let known: BTreeSet<String> = ARROWS.iter().map(|(room, _)| (*room).to_owned()).collect();
    assert_eq!(
        rooms, known,
        "a room without a row in the table of arrows, or a row without its room"
    );
    for (room, may) in ARROWS {
        let manifest = manifest(room);
        let mut named = ours(&names(&manifest, "dependencies"));
        named.extend(ours(&names(&manifest, "build-dependencies")));
        let may: BTreeSet<String> = may.iter().map(|room| (*room).to_owned()).collect();
        assert_eq!(named, may, "the arrows from {room}");
    }
}

#[test]
fn pure_rooms_stay_pure() {
    for (room, may) in ARROWS {
        if !may.is_empty() {
            continue;
        }
        let named = names(&manifest(room), "dependencies");
        let impure: Vec<&String> = named
            .iter()
            .filter(|name| IMPURE.contains(&name.as_str()))
            .collect();
        assert!(impure.is_empty(), "{room} depends on {impure:?}");
        for (path, text) in sources(&guests::root().join("host").join(room).join("src")) {
            for word in [
                "std::fs",
                "std::net",
                "std::env",
                "SystemTime::now",
                "Instant::now",
                "std::process",
            ] {
                assert!(!text.contains(word), "{} uses {word}", path.display());
            }
        }
    }
}

/// A word, and the only places under host/ whose sources may hold it.
const KEEPERS: [(&str, &[&str]); 6] = [
    ("wasmtime::", &["sandbox"]),
    ("bindgen!", &["sandbox/src/bindings.rs"]),
    ("rusqlite::", &["store"]),
    ("axum::", &["server/src/http"]),
    ("clap::", &["cli"]),
    ("std::env::var", &["cli"]),
];

#[test]
fn each_foreign_word_has_its_room() {
    let host = guests::root().join("host");
    for (path, text) in product(&host) {
        let place = path.strip_prefix(&host).expect("it lies in host/");
        for (word, keepers) in KEEPERS {
            let may = keepers.iter().any(|keeper| place.starts_with(keeper));
            assert!(
                may || !text.contains(word),
                "{} says {word}",
                place.display()
            );
        }
    }
}

#[test]
fn unsafe_code_has_one_reasoned_exception() {
    let exceptions: Vec<PathBuf> = sources(&guests::root().join("host"))
        .into_iter()
        .filter(|(_, text)| {
            text.contains("unsafe {") || text.contains("unsafe fn") || text.contains("unsafe_code")
        })
        .map(|(path, _)| path)
        .collect();
    assert_eq!(
        exceptions,
        [guests::root().join("host/sandbox/src/artifact.rs")]
    );
}

/// Names of examples that are words of the trade as well, and say nothing about an example.
const WORDS: [&str; 6] = ["cleanup", "content", "limits", "panic", "sleep", "trap"];

#[test]
fn no_host_code_knows_an_example() {
    let examples = guests::all();
    for (path, text) in product(&guests::root().join("host")) {
        for name in examples
            .keys()
            .filter(|name| !WORDS.contains(&name.as_str()))
        {
            assert!(
                !text.contains(&format!("\"{name}\"")),
                "{} names the example {name}",
                path.display()
            );
        }
    }
}

fn this_platform() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// What cargo knows of everything that is built.
fn metadata() -> serde_json::Value {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        // What other systems need was not fetched.
        .args(["--filter-platform", &this_platform()])
        .current_dir(guests::root())
        .output()
        .expect("cargo can be run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo writes JSON")
}

fn packages(metadata: &serde_json::Value) -> &[serde_json::Value] {
    metadata["packages"].as_array().expect("there are packages")
}

fn text<'v>(package: &'v serde_json::Value, member: &str) -> &'v str {
    package[member].as_str().unwrap_or_default()
}

#[test]
fn vendored_wit_is_what_the_engine_ships() {
    let metadata = metadata();
    let folder = |name: &str| -> PathBuf {
        let package = packages(&metadata)
            .iter()
            .find(|package| package["name"] == name);
        let package = package.unwrap_or_else(|| panic!("no package {name}"));
        PathBuf::from(text(package, "manifest_path")).with_file_name("")
    };
    let shipped = [
        folder("wasmtime-wasi-http").join("wit/deps"),
        folder("wasmtime-wasi").join("src/p2/wit/deps"),
    ];
    let vendored = guests::root().join("wit/deps");
    let files: BTreeSet<String> = std::fs::read_dir(&vendored)
        .expect("wit/deps can be read")
        .map(|entry| {
            entry
                .expect("wit/deps can be read")
                .file_name()
                .into_string()
                .expect("plain names")
        })
        .collect();
    assert!(!files.is_empty());
    for file in files {
        let ours = std::fs::read(vendored.join(&file)).expect("it can be read");
        let theirs: Vec<Vec<u8>> = shipped
            .iter()
            .filter_map(|folder| std::fs::read(folder.join(&file)).ok())
            .collect();
        assert!(!theirs.is_empty(), "nobody ships {file}");
        assert!(
            theirs.iter().all(|theirs| *theirs == ours),
            "{file} differs from what the engine ships"
        );
    }
}

/// Licences that go with Apache-2.0 in one program; one of an `OR` is enough.
const LICENCES: [&str; 13] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "CC0-1.0",
    "Unlicense",
    "BSL-1.0",
    "0BSD",
];

#[test]
fn every_dependency_may_be_shipped() {
    for package in packages(&metadata()) {
        let licence = text(package, "license")
            .replace('/', " OR ")
            .replace(['(', ')'], "");
        let fits = licence.split(" OR ").any(|choice| {
            choice
                .split(" AND ")
                .all(|part| LICENCES.contains(&part.trim()))
        });
        assert!(
            fits,
            "{} {}: licence {licence:?}",
            text(package, "name"),
            text(package, "version")
        );
    }
}

/// Versions below these have known holes that reach a server like this one.
const SAFE_FROM: [(&str, [u64; 3], &str); 8] = [
    (
        "wasmtime",
        [48, 0, 8],
        "forbidden HTTP headers pass, file sandbox escapes (RUSTSEC-2026-0269)",
    ),
    ("rmcp", [1, 4, 0], "no Host check (CVE-2026-42559)"),
    ("h2", [0, 4, 16], "floods of empty DATA frames"),
    ("bytes", [1, 11, 1], "integer overflow"),
    (
        "tokio-postgres",
        [0, 7, 18],
        "a server can panic its client (RUSTSEC-2026-0178)",
    ),
    ("time", [0, 3, 47], "stack exhaustion"),
    ("rustls-webpki", [0, 103, 13], "revocation is skipped"),
    ("tar", [0, 4, 45], "PAX smuggling"),
];

#[test]
fn no_dependency_has_a_known_hole() {
    for package in packages(&metadata()) {
        let (name, version) = (text(package, "name"), text(package, "version"));
        let core = version.split(['-', '+']).next().unwrap_or_default();
        let numbers: Vec<u64> = core
            .split('.')
            .filter_map(|part| part.parse().ok())
            .collect();
        for (holed, safe, hole) in SAFE_FROM {
            assert!(
                name != holed || numbers.as_slice() >= safe.as_slice(),
                "{name} {version}: {hole}"
            );
        }
    }
}

#[test]
fn every_reason_has_its_remedy() {
    let page = std::fs::read_to_string(guests::root().join("host/docs/reasons.md"))
        .expect("the page is there");
    let uploads =
        longshore_sandbox::refusal::Reason::ALL.map(longshore_sandbox::refusal::Reason::as_str);
    let runs = longshore_server::reason::RunReason::ALL;
    for word in uploads {
        assert!(
            page.contains(&format!("| `{word}` | ")),
            "no remedy for {word}"
        );
    }
    let requests = longshore_server::reason::RequestReason::ALL
        .map(longshore_server::reason::RequestReason::as_str);
    for word in requests {
        assert!(
            page.contains(&format!("| `{word}` | ")),
            "no remedy for {word}"
        );
    }
    for word in words_in_sources() {
        assert!(
            page.contains(&format!("| `{word}` | ")),
            "no remedy for {word}"
        );
    }
    for reason in runs {
        let row = format!("| `{}` | {} | ", reason.as_str(), reason.code());
        assert!(page.contains(&row), "no remedy for {}", reason.as_str());
    }
}

/// Reasons that are written where they are given, and stand in no list.
fn words_in_sources() -> BTreeSet<String> {
    /// A word that stands at once behind that.
    fn behind<'a>(source: &'a str, opening: &str) -> impl Iterator<Item = &'a str> {
        source
            .split(opening)
            .skip(1)
            .filter_map(|after| after.trim_start().strip_prefix('"')?.split('"').next())
    }
    let mut words = BTreeSet::new();
    for room in ["catalog", "sandbox", "server", "cli"] {
        let folder = guests::root().join("host").join(room).join("src");
        for source in sources(&folder).values() {
            let source = source.split("#[cfg(test)]").next().unwrap_or_default();
            let statuses = source.split("StatusCode::").skip(1);
            let of_statuses = statuses.filter_map(|after| {
                let next = after.split_once(',')?.1.trim_start();
                next.strip_prefix('"')?.split('"').next()
            });
            let given = behind(source, "Refusal::new(")
                .chain(behind(source, "reason: "))
                .chain(of_statuses);
            words.extend(given.map(str::to_owned));
        }
    }
    assert!(
        words.contains("static-name") && words.contains("damaged"),
        "{words:?}"
    );
    words
}

/// The words in a text that look like settings.
fn like_keys(text: &str) -> impl Iterator<Item = &str> {
    let is_of_a_key = |sign: char| sign.is_ascii_lowercase() || matches!(sign, '_' | '.');
    text.split(move |sign: char| !is_of_a_key(sign))
        .map(|word| word.trim_matches('.'))
        .filter(|word| {
            let has_unit = ["_ms", "_s", "_mib", "_kib", "_bytes", "_each"]
                .iter()
                .any(|unit| word.ends_with(unit));
            let has_group = ["limits.", "compile.", "upload."]
                .iter()
                .any(|group| word.starts_with(group));
            has_unit || has_group
        })
}

/// What is said to people in a source: its literals that are more than a word, or a limit.
fn sentences(source: &str) -> Vec<String> {
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| line.replace("'\"'", "") + "\n")
        .collect();
    let code = code.replace("\\\"", "");
    let literals = code.split('"').skip(1).step_by(2);
    literals
        .filter(|literal| literal.contains(' ') || literal.starts_with("limits."))
        .map(|literal| {
            // What is filled in is named by the code.
            let parts = literal.split('{').enumerate();
            let kept = parts.map(|(at, part)| match (at, part.split_once('}')) {
                (0, _) | (_, None) => part,
                (_, Some((_, rest))) => rest,
            });
            kept.collect()
        })
        .collect()
}

#[tokio::test]
async fn every_setting_that_a_message_names_is_one() {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let mut serve = command(data.path());
    serve.args(["serve", "--print-config", "--json"]);
    let (code, out, errors) = run(serve).await;
    assert_eq!(code, 0, "{errors}");
    let config: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    let keys: BTreeSet<&str> = config
        .as_object()
        .expect("it has members")
        .keys()
        .map(String::as_str)
        .collect();
    // Manifests and grants name limits without their group.
    let is_known =
        |word: &str| keys.contains(word) || keys.contains(format!("limits.{word}").as_str());
    let host = guests::root().join("host");
    let mut named = BTreeSet::new();
    for (path, source) in product(&host) {
        // Columns are no settings.
        if path.starts_with(host.join("store")) {
            continue;
        }
        for sentence in sentences(&source) {
            for word in like_keys(&sentence) {
                assert!(is_known(word), "{}: {word}", path.display());
                named.insert(word.to_owned());
            }
        }
    }
    for page in ["host/docs/reasons.md", "README.md"] {
        let text = std::fs::read_to_string(guests::root().join(page)).expect("it can be read");
        for word in text.split('`').skip(1).step_by(2).flat_map(like_keys) {
            assert!(is_known(word), "{page}: {word}");
            named.insert(word.to_owned());
        }
    }
    assert!(named.len() > 30, "only {named:?}");
}
