//! Whole servers that die, or are told wrongly, at every write that a run makes: what a client was shown stays true,
//! nothing is lost or done twice, and nothing is stuck.

mod examples;
mod judge;
mod witness;

use std::time::Instant;

use longshore_server::mutant::Mutant;
use longshore_tests::crash::{Machine, Policy, live_through};
use longshore_tests::effort::rounds;
use longshore_tests::fault::{Fault, How, Kit};

use tempfile::TempDir;

use self::examples::{Example, QUICK, SLOW, example};
use self::judge::{Violation, judge};
use self::witness::Witness;

/// What an enumeration came to.
#[derive(Debug, Default)]
struct Count {
    trials: u64,
    /// Faults that struck.
    points: u64,
    lives: u64,
    looks: u64,
    violations: Vec<Violation>,
}

/// Which points are tried.
#[derive(Clone, Copy)]
struct Depth {
    /// Every so many-th write.
    every: usize,
    /// Whoever takes over dies as well, at each of its first so many writes; in the long form only.
    second: u64,
}

const ALL: Depth = Depth {
    every: 1,
    second: 3,
};
/// A life of these takes as long as many of the others.
const SOME: Depth = Depth {
    every: 5,
    second: 0,
};

/// One example, one policy, one rule that is broken or none.
struct Enumeration<'a> {
    machine: &'a Machine,
    /// Whether it is over with the first violation.
    is_hunt: bool,
    example: &'static Example,
    policy: Policy,
    mutant: Option<Mutant>,
    count: Count,
}

impl Enumeration<'_> {
    async fn run(mut self, depth: Depth) -> Count {
        for how in How::ALL {
            // Servers here share one process. One that goes down in order takes a while, in which its successor is
            // there already, as no two servers of one file ever are: that is looked at where there is time for it.
            if how != How::GoesDown || rounds(1) > 1 {
                self.at_every_write(how, depth.every, None).await;
            }
        }
        for how in [How::DiesBefore, How::DiesUntold] {
            let second = if rounds(1) > 1 { depth.second } else { 0 };
            for write in 1..=second {
                let then = Fault { write, how };
                self.at_every_write(how, 2 * depth.every, Some(then)).await;
            }
        }
        self.count
    }

    /// Until a run is over before its server has made so many writes.
    async fn at_every_write(&mut self, how: How, every: usize, then: Option<Fault>) {
        for write in (1..).step_by(every) {
            let faults: Vec<Fault> = [Some(Fault { write, how }), then]
                .into_iter()
                .flatten()
                .collect();
            if self.is_hunt && !self.count.violations.is_empty() {
                return;
            }
            if !self.attempt(&faults).await {
                break;
            }
        }
    }

    /// One trial. False if nothing struck.
    async fn attempt(&mut self, faults: &[Fault]) -> bool {
        let kit = Kit::default();
        let mut witness = Witness::of(self.example);
        let lived = live_through(
            self.machine,
            &kit,
            self.policy,
            self.mutant,
            faults,
            &mut witness,
        )
        .await
        .expect("servers can be started");
        let said = judge(
            self.machine,
            &kit,
            self.policy,
            self.example,
            &mut witness,
            lived,
        )
        .await;
        let count = &mut self.count;
        count.trials += 1;
        count.points += lived.struck;
        count.lives += lived.lives;
        count.looks += witness.looks;
        let policy = self.policy;
        for said in said {
            let said = said.at(policy, faults);
            println!("{}: {said}", self.example.name);
            count.violations.push(said);
        }
        lived.struck > 0
    }
}

/// A machine with that example, and the folder of its native code.
async fn machine(example: &'static Example) -> (TempDir, Machine) {
    let artifacts = tempfile::tempdir().expect("a temporary folder can be made");
    let machine = Machine::with(example.name, artifacts.path()).await;
    (artifacts, machine.expect("the example can be compiled"))
}

async fn enumerate(example: &'static Example, depth: Depth) -> Count {
    let (_artifacts, machine) = machine(example).await;
    let mut whole = Count::default();
    for policy in Policy::ALL {
        let began = Instant::now();
        let enumeration = Enumeration {
            machine: &machine,
            example,
            policy,
            mutant: None,
            is_hunt: false,
            count: Count::default(),
        };
        let count = enumeration.run(depth).await;
        println!(
            "{} {policy:?}: {} faults in {} trials, {} servers, {} looks, {} violations, {:?}",
            example.name,
            count.points,
            count.trials,
            count.lives,
            count.looks,
            count.violations.len(),
            began.elapsed()
        );
        whole.trials += count.trials;
        whole.points += count.points;
        whole.violations.extend(count.violations);
    }
    whole
}

fn none(violations: &[Violation]) {
    let shown: Vec<String> = violations
        .iter()
        .take(10)
        .map(ToString::to_string)
        .collect();
    assert!(
        violations.is_empty(),
        "{} violations, the first of them:\n{}",
        violations.len(),
        shown.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_at_a_write_nothing_is_lost_or_contradicted() {
    let (mut points, mut violations) = (0, Vec::new());
    for example in &QUICK {
        let count = enumerate(example, ALL).await;
        assert!(count.points >= 30, "{}: {}", example.name, count.points);
        points += count.points;
        violations.extend(count.violations);
    }
    println!("{points} faults in {} examples", QUICK.len());
    none(&violations);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_holds_for_examples_in_other_languages() {
    let mut violations = Vec::new();
    for example in &SLOW {
        println!("{}: every {} writes of each life", example.name, SOME.every);
        let count = enumerate(example, SOME).await;
        assert!(count.points >= 15, "{}: {}", example.name, count.points);
        violations.extend(count.violations);
    }
    none(&violations);
}

/// What the enumeration first finds in a server that breaks a rule: whether this invariant is among it, with the
/// record at which it shows.
async fn is_caught(mutant: Mutant, name: &str, invariant: &str) {
    let example = example(name);
    let (_artifacts, machine) = machine(example).await;
    let mut trials = 0;
    for policy in Policy::ALL {
        let enumeration = Enumeration {
            machine: &machine,
            example,
            policy,
            mutant: Some(mutant),
            is_hunt: true,
            count: Count::default(),
        };
        let count = enumeration.run(ALL).await;
        trials += count.trials;
        if !count.violations.is_empty() {
            println!("{mutant:?} is caught in {name} after {trials} trials");
            let named = count.violations.iter().find(|violation| {
                violation.invariant == invariant && violation.first_record.contains("at call")
            });
            assert!(named.is_some(), "{:?}", count.violations);
            return;
        }
    }
    panic!("{mutant:?} passes {trials} trials of {name}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_record_what_it_lets_out_is_caught() {
    is_caught(Mutant::OutputsUnrecorded, "looks", judge::CONTRADICTED).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_shows_before_it_keeps_is_caught() {
    is_caught(Mutant::KeptLate, "dice", judge::CONTRADICTED).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_writes_on_after_another_took_over_is_caught() {
    is_caught(Mutant::EpochUnchecked, "dice", judge::CHAIN).await;
}
