//! Every limit at its number, one above it, and at nothing.
//!
//! One table: a key, what it is set to, how to reach any number of it, and the reason with which one more is refused.

mod contract;
mod http;
mod life;
mod rows;
mod runs;
mod send;
mod sessions;
mod upload;

use std::collections::BTreeSet;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::stream::{self, StreamExt as _};
use longshore_tests::guests;
use longshore_tests::process::{Options, Server, command, run};
use serde_json::Value;
use tempfile::TempDir;

use rows::{NO_LIMITS, rows};

/// What came of it: nothing was refused, or a word that says how it was. `cut` is what was taken in part, `waits`
/// what was neither refused nor done.
type Outcome = Result<(), String>;

/// Reaching a number of something.
type Reaching<'s> = Pin<Box<dyn Future<Output = Outcome> + Send + 's>>;

/// How a number is reached.
type Reach = for<'s> fn(&'s Server, u64) -> Reaching<'s>;

/// One limit.
struct Row {
    key: &'static str,
    /// What it is set to, in the unit of its name; nothing for what the contract fixes.
    set: Option<u64>,
    /// What else is set, so that this limit is the first that is met.
    with: &'static [(&'static str, u64)],
    /// Examples that are served.
    examples: &'static [&'static str],
    /// The most that is not refused.
    fine: u64,
    /// The least that is refused.
    over: u64,
    /// The word with which it is.
    word: &'static str,
    reach: Reach,
    zero: Zero,
}

/// What becomes of a limit of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zero {
    /// So much is refused then, by the same word.
    Allows(u64),
    /// The setting is refused when the server starts: nothing could be served.
    AtStart,
    /// There is no setting.
    Fixed,
}

impl Row {
    /// A limit that is met exactly: at its number in bytes or items, and at one more.
    fn exact(key: &'static str, set: u64, word: &'static str, reach: Reach) -> Self {
        let unit = match key.rsplit('_').next() {
            Some("kib") => 1 << 10,
            Some("mib") => 1 << 20,
            _ => 1,
        };
        Self::between(key, set, set * unit, set * unit + 1, word, reach)
    }

    /// A limit on time or work, which cannot be met to the last unit.
    fn between(
        key: &'static str,
        set: u64,
        fine: u64,
        over: u64,
        word: &'static str,
        reach: Reach,
    ) -> Self {
        Self {
            key,
            set: Some(set),
            with: &[],
            examples: &[],
            fine,
            over,
            word,
            reach,
            zero: Zero::AtStart,
        }
    }

    /// A limit that the contract with guests or clients fixes.
    fn fixed(what: &'static str, fine: u64, word: &'static str, reach: Reach) -> Self {
        Self {
            set: None,
            zero: Zero::Fixed,
            ..Self::between(what, 0, fine, fine + 1, word, reach)
        }
    }

    /// That much of it is refused where it is 0.
    fn at_zero(self, refused: u64) -> Self {
        Self {
            zero: Zero::Allows(refused),
            ..self
        }
    }

    fn with(self, with: &'static [(&'static str, u64)]) -> Self {
        Self { with, ..self }
    }

    fn on(self, examples: &'static [&'static str]) -> Self {
        Self { examples, ..self }
    }

    fn options(&self, set: Option<u64>) -> Options {
        let mut options = Options::with_guests(self.examples);
        for (key, value) in self.with {
            options = options.set(key, value);
        }
        match set {
            Some(value) => options.set(self.key, value),
            None => options,
        }
    }

    /// The same, where a panic is a fault like any other: the rows after it are tried as well.
    async fn checked(&self, kept: &Kept) -> Vec<String> {
        let checked = AssertUnwindSafe(self.check(kept)).catch_unwind().await;
        checked.unwrap_or_else(|_said_before| vec![format!("{}: it panicked", self.key)])
    }

    /// Tries it all, and says what is not as it should be.
    async fn check(&self, kept: &Kept) -> Vec<String> {
        let mut faults = Vec::new();
        let expected = Err(self.word.to_owned());
        let server = Server::start_in(kept.folder(), self.options(self.set)).await;
        for (amount, expected) in [(self.fine, &Ok(())), (self.over, &expected)] {
            let outcome = (self.reach)(&server, amount).await;
            if outcome != *expected {
                faults.push(format!(
                    "{} = {:?}: {amount} gives {outcome:?} and not {expected:?}",
                    self.key, self.set
                ));
            }
        }
        drop(server);
        match self.zero {
            Zero::Fixed => {}
            Zero::AtStart => {
                if let Err(fault) = refused_at_start(self.key).await {
                    faults.push(fault);
                }
            }
            Zero::Allows(amount) => {
                let server = Server::start_in(kept.folder(), self.options(Some(0))).await;
                let outcome = (self.reach)(&server, amount).await;
                if outcome != expected {
                    faults.push(format!(
                        "{} = 0: {amount} gives {outcome:?} and not {expected:?}",
                        self.key
                    ));
                }
            }
        }
        faults
    }
}

/// A setting of 0 is a fault of the command line, which names the key and what it must be.
async fn refused_at_start(key: &str) -> Result<(), String> {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let mut serve = command(data.path());
    serve.args(["serve", "--print-config", "--set", &format!("{key}=0")]);
    let (code, _, err) = run(serve).await;
    let is_told = err.contains(key) && err.contains("from ") && err.contains("nothing could be");
    if code == 2 && is_told {
        Ok(())
    } else {
        Err(format!("{key} = 0 exits with {code}: {err}"))
    }
}

/// Native code of the examples, so that they are compiled once and not for every row.
struct Kept(TempDir);

impl Kept {
    async fn of(examples: &BTreeSet<&str>) -> Self {
        let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
        let examples: Vec<&str> = examples.iter().copied().collect();
        let mut server = Server::start_in(Arc::clone(&data), Options::with_guests(&examples)).await;
        server.terminate().await;
        drop(server);
        Self(Arc::into_inner(data).expect("the server is gone"))
    }

    /// A new data directory that has it already.
    fn folder(&self) -> Arc<TempDir> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        copy(&self.0.path().join("secret"), &folder.path().join("secret"));
        let artifacts = folder.path().join("artifacts");
        std::fs::create_dir(&artifacts).expect("a folder can be made");
        for entry in std::fs::read_dir(self.0.path().join("artifacts")).expect("there is one") {
            let entry = entry.expect("a folder can be read");
            copy(&entry.path(), &artifacts.join(entry.file_name()));
        }
        Arc::new(folder)
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::hard_link(from, to)
        .or_else(|_| std::fs::copy(from, to).map(drop))
        .expect("a file can be copied");
}

/// Rows at the same time: most of them wait.
const AT_ONCE: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_limit_holds_at_its_number_and_not_beyond() {
    let rows = rows();
    let examples: BTreeSet<&str> = rows.iter().flat_map(|row| row.examples).copied().collect();
    let kept = Kept::of(&examples).await;
    // For whoever works on one of them.
    let only = std::env::var("LIMITS_ONLY").unwrap_or_default();
    let chosen: Vec<&Row> = rows.iter().filter(|row| row.key.contains(&only)).collect();
    let faults: Vec<String> = stream::iter(&chosen)
        .map(|row| row.checked(&kept))
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await
        .concat();
    let fixed = chosen.iter().filter(|row| row.set.is_none()).count();
    println!(
        "{} limits of {} were tried at their number, one above and at 0; {fixed} of them are fixed by the contract",
        chosen.len(),
        rows.len()
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Every key there is, as the program says.
async fn keys() -> BTreeSet<String> {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let mut serve = command(data.path());
    serve.args(["serve", "--print-config", "--json"]);
    let (code, out, err) = run(serve).await;
    assert_eq!(code, 0, "{err}");
    let settings: Value = serde_json::from_str(&out).expect("it is JSON");
    settings
        .as_object()
        .expect("keys")
        .keys()
        .cloned()
        .collect()
}

#[tokio::test]
async fn no_limit_is_without_its_row() {
    let with_rows: BTreeSet<String> = rows()
        .iter()
        .filter(|row| row.set.is_some())
        .map(|row| row.key.to_owned())
        .collect();
    let without: BTreeSet<String> = NO_LIMITS.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert!(
        with_rows.is_disjoint(&without),
        "a key is a limit or it is none"
    );
    let accounted: BTreeSet<String> = with_rows.union(&without).cloned().collect();
    assert_eq!(
        keys().await,
        accounted,
        "a key without a row, or a row without its key"
    );
}

#[tokio::test]
async fn whatever_is_no_limit_serves_at_zero_or_is_refused() {
    let kept = Kept::of(&BTreeSet::from(["hello"])).await;
    for (key, at_zero) in NO_LIMITS {
        match at_zero {
            rows::AtZero::Serves => {
                let options = Options::with_guests(&["hello"]).set(key, 0);
                let server = Server::start_in(kept.folder(), options).await;
                longshore_tests::alive::canary(&server).await;
            }
            rows::AtZero::Refused => refused_at_start(key).await.expect("it is refused"),
            rows::AtZero::NoNumber => {}
        }
    }
}

/// Every reason is one that somebody can look up.
#[test]
fn words_of_refusals_are_on_the_page() {
    let page = std::fs::read_to_string(guests::root().join("host/docs/reasons.md"))
        .expect("the page is there");
    // What is not refused has no reason.
    let other = [
        "cut",
        "waits",
        "closed",
        "continued",
        "gone",
        "told no",
        "timed-out",
    ];
    for row in rows() {
        let is_there = page.contains(&format!("| `{}` | ", row.word));
        assert!(
            is_there || other.contains(&row.word) || row.word.starts_with('-'),
            "{}: {}",
            row.key,
            row.word
        );
    }
}
