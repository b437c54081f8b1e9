//! Components that were good once: cut off anywhere, changed anywhere.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Instant;

use longshore_sandbox::precheck::{Bounds, check};
use longshore_sandbox::refusal::Reason;
use longshore_tests::alive::{Baseline, canary};
use longshore_tests::chance::Chance;
use longshore_tests::component::Made;
use longshore_tests::effort::rounds;
use longshore_tests::guests;
use longshore_tests::process::Server;
use serde_json::json;

use super::server;

fn smallest_example() -> Vec<u8> {
    let examples = guests::all()
        .into_values()
        .map(|path| std::fs::read(path).expect("an example can be read"));
    examples.min_by_key(Vec::len).expect("there are examples")
}

/// Where the sections of a component end, one after the other.
fn borders(component: &[u8]) -> Vec<usize> {
    sections(component, 8..component.len())
        .into_iter()
        .map(|(_, contents)| contents.end)
        .collect()
}

/// The same, with those of the modules and components inside. Only a validator tells a cut at one of
/// these from an end.
fn all_borders(component: &[u8], inside: Range<usize>, found: &mut BTreeSet<usize>) {
    const CORE_MODULE: u8 = 1;
    const COMPONENT: u8 = 4;
    let header = inside.start..inside.start + 8;
    let is_component = component[header.clone()] == *b"\0asm\x0d\0\x01\0";
    found.insert(header.end);
    for (id, contents) in sections(component, header.end..inside.end) {
        found.insert(contents.end);
        if is_component && matches!(id, CORE_MODULE | COMPONENT) {
            all_borders(component, contents, found);
        }
    }
}

/// Kind and place of each section in a part of a component.
fn sections(component: &[u8], inside: Range<usize>) -> Vec<(u8, Range<usize>)> {
    let mut sections = Vec::new();
    let mut at = inside.start;
    while at < inside.end {
        let id = component[at];
        let (mut size, mut shift) = (0_usize, 0);
        loop {
            at += 1;
            size |= usize::from(component[at] & 0x7f) << shift;
            shift += 7;
            if component[at] & 0x80 == 0 {
                break;
            }
        }
        at += 1;
        sections.push((id, at..at + size));
        at += size;
    }
    assert_eq!(at, inside.end, "the sections are not read right");
    sections
}

/// Uploads it; says whether it was accepted, and lets its tool do what it does.
async fn accepted(server: &Server, bytes: &[u8]) -> bool {
    let reply = server.upload("mutant", bytes.to_vec()).await;
    let body = reply.json();
    match reply.status {
        200 | 201 => {
            let client = server.client();
            for tool in body["tools"].as_array().expect("a list") {
                // Whatever it answers, it is an answer, in time.
                let called = client.send("tools/call", json!({ "name": tool, "arguments": {} }));
                let called = called.await.expect("the server answers");
                let task = called.json()["result"]["taskId"]
                    .as_str()
                    .map(str::to_owned);
                if let Some(id) = task {
                    client.result("tasks/cancel", json!({ "taskId": id })).await;
                    client.until_ended(&id).await;
                }
            }
            assert_eq!(
                server
                    .admin("DELETE", "/v1/components/mutant", "")
                    .await
                    .status,
                204
            );
            true
        }
        // A mutant that keeps a name of the canary's tool collides with it.
        409 | 422 => {
            let reason = body["error"]["reason"]
                .as_str()
                .expect("a refusal has a reason");
            assert!(
                !reason.is_empty() && reason != "compile-crashed" && reason != "host",
                "{body}"
            );
            false
        }
        status => panic!("{status}: {body}"),
    }
}

/// Reading costs as much as there is to read, so all lengths of a real example take minutes: that many
/// rounds have to be asked for.
const ROUNDS_FOR_EVERY_LENGTH: usize = 10;
/// From one length to the next otherwise.
const STRIDE: usize = 64;

#[test]
fn the_smallest_example_cut_off_anywhere_is_refused_unless_between_sections() {
    let whole = smallest_example();
    let mut borders = BTreeSet::new();
    all_borders(&whole, 0..whole.len(), &mut borders);
    let stride = if rounds(1) < ROUNDS_FOR_EVERY_LENGTH {
        STRIDE
    } else {
        1
    };
    let near = borders
        .iter()
        .flat_map(|border| border.saturating_sub(8)..border + 8);
    let lengths: BTreeSet<usize> = (0..256)
        .chain((0..whole.len()).step_by(stride))
        .chain(near)
        .filter(|length| *length < whole.len())
        .collect();
    let started = Instant::now();
    for length in &lengths {
        match check(&whole[..*length], &Bounds::default()) {
            Ok(_) => assert!(
                borders.contains(length),
                "{length} bytes end within a section and pass"
            ),
            Err(refusal) => {
                let expected = if *length < 4 {
                    Reason::NotWasm
                } else {
                    Reason::Malformed
                };
                assert_eq!(refusal.reason, expected, "{length} bytes: {refusal}");
            }
        }
    }
    println!(
        "{} of {} lengths in {:?}",
        lengths.len(),
        whole.len(),
        started.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_smallest_component_cut_off_at_every_length_is_refused_or_still_one() {
    let whole = Made::with_tool("made").bytes();
    let server = server().await;
    let baseline = Baseline::of(&server).await;
    let borders = borders(&whole);
    let mut fine = 0;
    for length in 0..whole.len() {
        if accepted(&server, &whole[..length]).await {
            // What stands behind its last export is a section of names.
            assert!(
                borders.contains(&length),
                "{length} bytes end within a section"
            );
            fine += 1;
        }
    }
    println!("of {} lengths {fine} are accepted", whole.len());
    assert!(fine < borders.len(), "what has no export is accepted");
    assert_eq!(server.upload("cut", whole).await.status, 201);
    baseline.holds(&server).await;
}

#[tokio::test]
async fn cut_off_uploads_leave_the_server_alive() {
    let whole = smallest_example();
    let server = server().await;
    let baseline = Baseline::of(&server).await;
    let mut chance = Chance::new(1);
    // Between two sections is where what is left may still be a component, or look like one.
    let mut borders = BTreeSet::new();
    all_borders(&whole, 0..whole.len(), &mut borders);
    borders.remove(&whole.len());
    let mut lengths: Vec<usize> = borders.into_iter().collect();
    while lengths.len() > 20 {
        lengths.remove(chance.below(lengths.len()));
    }
    lengths.extend([0, 1, 4, 7, 9, whole.len() - 1]);
    while lengths.len() < 40 {
        lengths.push(chance.below(whole.len()));
    }
    let mut fine = 0;
    for length in lengths {
        fine += usize::from(accepted(&server, &whole[..length]).await);
        canary(&server).await;
    }
    println!("of 40 lengths {fine} are accepted");
    baseline.holds(&server).await;
}

#[tokio::test]
async fn changed_uploads_are_refused_or_run_within_their_limits() {
    let good = Made::with_tool("made").bytes();
    let mut chance = Chance::new(2);
    let mutants: Vec<Vec<u8>> = (0..300).map(|_| chance.mutate(&good)).collect();
    let (past, refused): (Vec<_>, Vec<_>) = mutants
        .into_iter()
        .partition(|mutant| check(mutant, &Bounds::default()).is_ok());
    // Else the mutants test nothing but the first check, or not that one.
    assert!(
        past.len() > 45 && refused.len() > 15,
        "{} pass the pre-check, {} do not",
        past.len(),
        refused.len()
    );

    let server = server().await;
    let baseline = Baseline::of(&server).await;
    let mut fine = 0;
    for mutant in past.iter().take(45).chain(refused.iter().take(15)) {
        fine += usize::from(accepted(&server, mutant).await);
        canary(&server).await;
    }
    println!(
        "of 300 mutants {} pass the pre-check; of 60 uploaded {fine} are accepted",
        past.len()
    );
    assert!(
        fine > 0,
        "no mutant is near enough to a component to test anything"
    );
    baseline.holds(&server).await;
}
