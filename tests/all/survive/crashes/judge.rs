//! What must hold once a run has ended, whatever happened to its servers.

use std::fmt;

use longshore_server::server::Server;
use longshore_tasks::id::TaskId;
use longshore_tests::crash::{Lived, Machine, Policy, Watcher as _};
use longshore_tests::fault::{Fault, Kept, Kit};
use serde_json::Value;

use super::examples::{Example, Said};
use super::witness::{Witness, admin, lines};

pub(super) const LOST: &str = "nothing is lost";
pub(super) const CONTRADICTED: &str = "nothing that was shown is contradicted";
pub(super) const STUCK: &str = "nothing is stuck";
pub(super) const ONCE: &str = "what was said is said once";
pub(super) const ANSWERED: &str = "answers are taken once";
pub(super) const REPEATS: &str = "the journal gives the same result again";
pub(super) const CHAIN: &str = "the journal is one chain";

/// An invariant that does not hold.
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) invariant: &'static str,
    what: String,
    /// The first record that another server wrote than the one before it.
    pub(super) first_record: String,
    place: String,
}

impl Violation {
    pub(super) fn at(mut self, policy: Policy, faults: &[Fault]) -> Self {
        let faults: Vec<String> = faults
            .iter()
            .map(|fault| format!("{:?} {}", fault.how, fault.write))
            .collect();
        self.place = format!("{policy:?}, {}", faults.join(", then "));
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            invariant,
            what,
            first_record,
            place,
        } = self;
        write!(
            f,
            "{place}: {invariant}, but {what}; the first record after the change of hands: {first_record}"
        )
    }
}

/// Looks at what is left with a server that has nothing to do with how it came about.
pub(super) async fn judge(
    machine: &Machine,
    kit: &Kit,
    policy: Policy,
    example: &Example,
    witness: &mut Witness,
    lived: Lived,
) -> Vec<Violation> {
    let mut broken: Vec<(&'static str, String)> = Vec::new();
    broken.extend(kit.broken().await.into_iter().map(|rule| (CHAIN, rule)));
    let Some(id) = witness.id.clone() else {
        broken.push((STUCK, "the call was never taken on".to_owned()));
        return violations(broken, "none");
    };
    let last = machine.start(kit, policy, None, None).await;
    let last = last.expect("a server can be started");
    let address = last.address.expect("nothing happens to it");
    let task: TaskId = id.parse().expect("ids are given out as ids");
    let kept = kit.kept(task).await;
    if !lived.done {
        let row = longshore_tasks::store::TaskStore::get(&kit.memory, task).await;
        let row = row.expect("the store has no faults of its own");
        let stands = row.map(|row| (row.state, row.lease, row.wake_at, row.questions));
        broken.push((STUCK, format!("it stands at {stands:?}")));
    }
    // What was shown once is shown again.
    witness.look(address).await.expect("it answers");
    let history = last.server.history(task).await;
    match &history {
        Err(error) => broken.push((CHAIN, error.to_string())),
        Ok(history) => {
            if lived.done {
                broken.extend(repeated(&last.server, task, witness, history).await);
            }
            broken.extend(counted(example, history));
        }
    }
    if lived.done {
        let output = admin(address, &format!("/v1/tasks/{id}")).await;
        let output = output.expect("it answers")["output"].take();
        broken.extend(told(example, witness, &output));
    }
    broken.append(&mut witness.faults);
    let first_record = first_record(&kept, history.as_ref().ok());
    violations(broken, &first_record)
}

fn violations(broken: Vec<(&'static str, String)>, first_record: &str) -> Vec<Violation> {
    broken
        .into_iter()
        .map(|(invariant, what)| Violation {
            invariant,
            what,
            first_record: first_record.to_owned(),
            place: String::new(),
        })
        .collect()
}

/// The journal as a whole: it can be repeated, and gives the result that the client has.
async fn repeated(
    server: &Server,
    task: TaskId,
    witness: &Witness,
    history: &Value,
) -> Option<(&'static str, String)> {
    let status = witness
        .end
        .as_ref()
        .map_or(&Value::Null, |end| &end["status"]);
    if status != "completed" {
        return Some((LOST, format!("it ended as {:?}", witness.end)));
    }
    let last = records(history).last().map(|record| record["what"].clone());
    if last != Some("end".into()) {
        return Some((REPEATS, format!("its journal ends with {last:?}")));
    }
    let export = match server.export(task).await {
        Ok(export) => export,
        Err(error) => return Some((REPEATS, error.to_string())),
    };
    // The result's own hash is a part of the last record.
    match server.replay(&export).await {
        Ok(replayed) if replayed.same => None,
        Ok(replayed) => Some((REPEATS, replayed.ending)),
        Err(error) => Some((REPEATS, error.to_string())),
    }
}

/// What is in the journal of each kind.
fn counted(example: &Example, history: &Value) -> Vec<(&'static str, String)> {
    let count = |what: &str| {
        records(history)
            .filter(|record| record["what"] == what)
            .count() as u64
    };
    let mut broken = Vec::new();
    let (asked, answered) = (count("question"), count("answer"));
    if (asked, answered) != (example.asks, example.asks) {
        broken.push((
            ANSWERED,
            format!("{asked} questions and {answered} answers are in the journal of a run that asks {} times", example.asks),
        ));
    }
    let epochs: Vec<u64> = segments(history)
        .map(|segment| segment["epoch"].as_u64().unwrap_or_default())
        .collect();
    let numbers: Vec<u64> = segments(history)
        .map(|segment| segment["number"].as_u64().unwrap_or_default())
        .collect();
    if !epochs.is_sorted() {
        broken.push((CHAIN, format!("its epochs are {epochs:?}")));
    }
    if numbers.windows(2).any(|two| two[1] != two[0] + 1) {
        broken.push((CHAIN, format!("its segments are {numbers:?}")));
    }
    broken
}

/// What the client was shown, against what the run itself says that it said.
fn told(example: &Example, witness: &Witness, output: &Value) -> Vec<(&'static str, String)> {
    let mut broken = Vec::new();
    let result = witness
        .end
        .as_ref()
        .map_or(&Value::Null, |end| &end["result"]);
    let Said {
        is_right,
        statuses,
        log,
        stdout,
    } = (example.said)(result);
    if !is_right {
        broken.push((CONTRADICTED, format!("its result is {result}")));
    }
    if let Some(shown) = first_missing(&witness.statuses, &statuses) {
        broken.push((
            CONTRADICTED,
            format!("{shown:?} was shown, and by its result it said {statuses:?}"),
        ));
    }
    let logged = lines(&output["log"]);
    let all = output["stdout"].as_str().unwrap_or_default();
    if !logged.starts_with(&witness.logged) || !all.starts_with(&witness.printed) {
        broken.push((
            CONTRADICTED,
            format!(
                "it was seen to say {:?} and {:?}, and has said {output}",
                witness.logged, witness.printed
            ),
        ));
    }
    if logged != log {
        broken.push((ONCE, format!("its log is {logged:?} and should be {log:?}")));
    }
    let printed: Vec<&str> = output["stdout"]
        .as_str()
        .unwrap_or_default()
        .lines()
        .collect();
    if printed != stdout {
        broken.push((
            ONCE,
            format!("it printed {printed:?} and should have {stdout:?}"),
        ));
    }
    if witness.asked != example.keys {
        broken.push((
            CONTRADICTED,
            format!(
                "it asked {:?} and should have asked {:?}",
                witness.asked, example.keys
            ),
        ));
    }
    let seen: Value = result["content"][0]["text"]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    for (key, sent) in &witness.sent {
        let Some(used) = seen.get(key) else { continue };
        let most = sent.acknowledged.unwrap_or(sent.tries.len());
        if !sent.tries[..most]
            .iter()
            .any(|content| content[key] == *used)
        {
            broken.push((
                ANSWERED,
                format!(
                    "{used} was used for `{key}`, and of {:?} the first {most} count",
                    sent.tries
                ),
            ));
        }
    }
    broken
}

/// The first that is not there, in the same order.
fn first_missing<'a>(shown: &'a [String], all: &[String]) -> Option<&'a String> {
    let mut rest = all.iter();
    shown.iter().find(|line| !rest.any(|one| one == *line))
}

fn segments(history: &Value) -> impl Iterator<Item = &Value> {
    history["segments"].as_array().into_iter().flatten()
}

fn records(history: &Value) -> impl Iterator<Item = &Value> {
    segments(history).flat_map(|segment| segment["records"].as_array().into_iter().flatten())
}

/// The first record that was written by another server than the one before it.
fn first_record(kept: &[Kept], history: Option<&Value>) -> String {
    // Whoever made the task had the first lease.
    let mut before = 1;
    let first = kept.iter().find(|kept| {
        let is_another = kept.epoch != before;
        before = kept.epoch;
        is_another
    });
    let Some(&Kept {
        number,
        epoch,
        first_call,
    }) = first
    else {
        return match kept.last() {
            Some(last) => format!("none; the last was in segment {}", last.number),
            None => "none, nothing was written".to_owned(),
        };
    };
    let what = history
        .and_then(|history| segments(history).find(|segment| segment["number"] == number))
        .and_then(|segment| segment["records"][0]["what"].as_str())
        .unwrap_or("a record");
    format!("{what} at call {first_call}, segment {number} under epoch {epoch}")
}
