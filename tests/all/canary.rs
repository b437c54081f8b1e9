//! Two components that leave everything dirty, and look whether anything of the other is left.

use std::time::Duration;

use longshore_sandbox::control::StopReason;
use longshore_sandbox::ending::{Block, Ending, FaultKind};
use longshore_sandbox::sandbox::{Figures, FirstTurn, Prepared, Sandbox, WasiKind};
use longshore_tests::canary::{self, How};
use longshore_tests::effort::rounds;
use longshore_tests::inside;

/// Runs, in all.
const RUNS: usize = 1_000;
/// Runs at the same time, each beside the other's.
const LANES: usize = 2;
const PATTERNS: [u64; 2] = [0xa5a5_a5a5_a5a5_a5a5, 0x5a5a_5a5a_5a5a_5a5a];

/// How the run of that number ends. Most return, and a run in forty computes for a whole turn before it is stopped.
fn how(number: usize) -> How {
    match number % 40 {
        0 => How::Loops,
        place => match place % 5 {
            0 => How::Traps,
            1 => How::ReadsBeyond,
            2 => How::Overflows,
            3 => How::Waits,
            _ => How::Returns,
        },
    }
}

/// Two slots for two lanes: each run is in one that was used before, by its own component or by the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_one_guest_is_seen_by_another_in_its_slot() {
    let (runs, slotted) = seen_by_another(LANES).await;
    assert_eq!(slotted, runs);
}

/// One slot, which the two take from each other; whoever has none is in memory of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_one_guest_is_seen_by_another_where_slots_are_short() {
    let (runs, slotted) = seen_by_another(1).await;
    assert!(slotted > 0 && slotted <= runs, "{slotted} of {runs}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_one_guest_is_seen_by_another_without_slots() {
    assert_eq!(seen_by_another(0).await.1, 0);
}

/// How many runs there were, and how many of them in a slot.
async fn seen_by_another(slots: usize) -> (u64, u64) {
    let sandbox = inside::sandbox(LANES, slots, WasiKind::Virtual).expect("a sandbox starts");
    let mut guests = Vec::new();
    for pattern in PATTERNS {
        let bytes = canary::component(pattern);
        let prepared = inside::prepare(&sandbox, &bytes).await;
        guests.push(prepared.expect("the canary is a component"));
    }
    // If it saw nothing of itself either, it would see nothing at all.
    for guest in &guests {
        let ending = run(&sandbox, guest, How::LooksAgain).await;
        assert_eq!(answer(&ending), Some("memory"), "{ending:?}");
    }
    let runs = rounds(RUNS);
    let lanes = (0..LANES).map(|lane| {
        let (sandbox, guests) = (sandbox.clone(), guests.clone());
        tokio::spawn(async move {
            for number in (lane..runs).step_by(LANES) {
                // Each lane alternates, and so do the two of them.
                let guest = &guests[(number / LANES + lane) % guests.len()];
                let how = how(number / LANES);
                let ending = run(&sandbox, guest, how).await;
                assert!(
                    is_as_asked(how, &ending),
                    "run {number}, {how:?}: {ending:?}"
                );
            }
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.expect("what a guest sees is its own");
    }
    let figures = sandbox.figures();
    assert_eq!(figures.live_stores, 0);
    let Figures {
        started, slotted, ..
    } = figures;
    println!(
        "{started} runs of two guests, {slotted} of them in {slots} slots: neither saw anything of the other"
    );
    (started, slotted)
}

async fn run(sandbox: &Sandbox, guest: &Prepared, how: How) -> Ending {
    let run = inside::call(guest, "tool", &how.arguments(), FirstTurn::Here);
    let control = run.control.clone();
    let started = sandbox.start(run);
    // Its first turn is over: one that is still there computes or waits, with everything dirty.
    if matches!(how, How::Loops | How::Waits) {
        sandbox.stop(&control, StopReason::Abandoned);
    }
    tokio::time::timeout(Duration::from_secs(60), started.ended)
        .await
        .expect("it ends in time")
        .expect("it reports")
        .ending
}

fn is_as_asked(how: How, ending: &Ending) -> bool {
    match how {
        How::Returns => answer(ending) == Some("clean"),
        How::Traps | How::ReadsBeyond => is_fault(ending, FaultKind::Trap),
        How::Overflows => is_fault(ending, FaultKind::StackOverflow),
        How::Loops | How::Waits => *ending == Ending::Stopped(StopReason::Abandoned),
        How::LooksAgain => false,
    }
}

fn is_fault(ending: &Ending, kind: FaultKind) -> bool {
    matches!(ending, Ending::Fault(fault) if fault.kind == kind)
}

fn answer(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::Returned(result) => match result.content.as_slice() {
            [Block::Text(text)] => Some(text),
            _ => None,
        },
        _ => None,
    }
}
