use super::*;
use crate::call::{Ask, AskKind, LogLevel};
use crate::values::{Found, Operation, Outcome};

/// What the outside has to say: a clock that moves with every look, a person who answers, and a cancel
/// that comes at some time.
#[derive(Clone)]
struct Outside {
    now: u64,
    pace: u64,
    cancel_at: u64,
    answer: &'static str,
}

impl Outside {
    fn look(&mut self) -> u64 {
        self.now += self.pace;
        self.now
    }
}

const CLOCK: Import = Import::new("wasi:clocks/wall-clock.now");
const RANDOM: Import = Import::new("wasi:random/random.get-random-u64");

fn most() -> Total {
    Total {
        records: 1_000,
        bytes: 1_000_000,
    }
}

fn origin() -> Origin {
    Origin {
        created_at_ms: 1_000_000,
        random_key: [7; 32],
        most: most(),
    }
}

fn world(records: Vec<Record>, after: After) -> World {
    let begin = Begin {
        from: None,
        records,
    };
    World::new(&origin(), begin, after, Tape::default())
}

fn form(key: &str) -> Vec<Question> {
    vec![Question {
        key: key.into(),
        ask: Ask::Form {
            message: "m".into(),
            schema: "{}".into(),
        },
    }]
}

/// A guest that does something of everything, and whose way depends on all that it sees. `outputs` is what
/// others can have seen of it.
fn guest(
    world: &mut World,
    outside: &mut Outside,
    outputs: &mut Vec<String>,
) -> Result<String, Fault> {
    let mut seen = Vec::new();
    let now = |world: &mut World, outside: &mut Outside| {
        world.begin(CLOCK, 0, 0)?;
        world.clock(|| outside.look())
    };
    for _ in 0..3 {
        seen.push(now(world, outside)?);
    }
    world.begin(RANDOM, 0, 0)?;
    let mut bytes = [0; 8];
    world.random(&mut bytes);
    seen.push(u64::from_le_bytes(bytes));

    show(world, &format!("so far {seen:?}"), outputs)?;
    seen.push(u64::from(rest(world, outside, 50)?));
    seen.push(now(world, outside)?);

    let step = Request::StepBegin("s");
    world.begin_request(&step)?;
    let value = match world.step_begin("s")? {
        Some(value) => value,
        None => {
            let inner = now(world, outside)?;
            world.begin(RANDOM, 0, 0)?;
            world.random(&mut bytes);
            let value = format!("{inner} {bytes:?}").into_bytes();
            world.begin_request(&Request::StepEnd {
                name: "s",
                value: &value,
            })?;
            world.step_end(&value)?;
            value
        }
    };
    seen.extend(value.iter().map(|byte| u64::from(*byte)));

    let questions = form("q");
    world.begin_request(&Request::Ask {
        questions: &questions,
        wait_ms: Some(500),
    })?;
    world.clock(|| outside.look())?;
    let answers = match world.ask(&questions, Some(500))? {
        Asked::Answered(answers) => answers,
        Asked::Live { until, before: _ } => {
            outputs.push(format!("asked until {until:?}"));
            let answers = Ok(vec![Answer::Accepted(Some(outside.answer.into()))]);
            world.answered(&answers)?;
            answers
        }
    };
    let found = count(world, 1, || outside.look())?;
    seen.push(found);
    for _ in 0..3 {
        world.begin_request(&Request::IsCancelled)?;
        let cancelled = world.cancelled(|| outside.look() >= outside.cancel_at)?;
        seen.push(u64::from(cancelled));
        if cancelled {
            show(world, "cleaning up", outputs)?;
        }
    }
    world.begin(RANDOM, 0, 0)?;
    world.random(&mut bytes);
    seen.push(u64::from_le_bytes(bytes));
    let result = format!("{seen:?} {answers:?}");
    world.ended(
        *blake3::hash(result.as_bytes())
            .as_bytes()
            .first_chunk()
            .unwrap(),
    )?;
    Ok(result)
}

/// Adds to a number that is kept outside.
fn count(world: &mut World, delta: i64, mut outside: impl FnMut() -> u64) -> Result<u64, Fault> {
    let key = "n".to_owned();
    let operation = Operation::Increment { key, delta };
    world.begin_request(&Request::Values(&operation))?;
    let outcome = match world.changes()? {
        Some(outcome) => outcome,
        None => {
            let outcome = Ok(Found::Number(outside().cast_signed()));
            world.found(&outcome)?;
            outcome
        }
    };
    match outcome {
        Ok(Found::Number(number)) => Ok(number.cast_unsigned()),
        other => panic!("{other:?} is no number"),
    }
}

/// Looks for what is kept outside.
fn look(world: &mut World, key: &str) -> Result<Outcome, Fault> {
    let key = key.to_owned();
    world.begin_request(&Request::Values(&Operation::Get { key }))?;
    Ok(match world.finds()? {
        Some(outcome) => outcome,
        None => {
            let outcome = Ok(Found::Value(Some(Bytes(vec![7]))));
            world.found(&outcome)?;
            outcome
        }
    })
}

#[test]
fn a_change_is_recorded_before_it_is_made_and_again_when_it_is() {
    let mut live = world(Vec::new(), After::Live);
    let tape = live.tape.clone();
    let mut seen = Vec::new();
    count(&mut live, 1, || {
        seen = tape.take().records;
        5
    })
    .unwrap();
    let _recorded_too = look(&mut live, "k").unwrap();
    let names: Vec<&str> = seen.iter().map(|record| record.what.name()).collect();
    assert_eq!(names, ["change"]);
    seen.extend(tape.take().records);

    let mut again = world(seen.clone(), After::Stop);
    let nobody = || unreachable!("all of it is recorded");
    assert_eq!(count(&mut again, 1, nobody), Ok(5));
    assert_eq!(
        look(&mut again, "k"),
        Ok(Ok(Found::Value(Some(Bytes(vec![7])))))
    );
    assert!(again.tape.is_empty(), "a repetition records nothing");

    // It was about to change something, and nobody knows whether it did: whoever knows is asked.
    let mut in_doubt = world(seen[..1].to_vec(), After::Live);
    assert_eq!(count(&mut in_doubt, 1, || 9), Ok(9));
    assert_eq!(in_doubt.tape.take().records.len(), 1);

    let differs = |fault: Result<(), Fault>, how: &str| match fault {
        Err(Fault::Diverged(divergence)) => assert_eq!(divergence.how, how),
        other => panic!("{other:?}"),
    };
    let mut other = world(seen.clone(), After::Live);
    differs(
        count(&mut other, 2, nobody).map(drop),
        "it changes something else",
    );
    let mut other = world(seen.clone(), After::Live);
    differs(
        look(&mut other, "n").map(drop),
        "it looks for something where it did not",
    );
    let mut other = world(seen[2..].to_vec(), After::Live);
    other.begin(CLOCK, 0, 0).unwrap();
    differs(
        look(&mut other, "l").map(drop),
        "it looks for something else",
    );
    let mut other = world(seen, After::Live);
    count(&mut other, 1, nobody).unwrap();
    differs(
        count(&mut other, 1, nobody).map(drop),
        "it changes something where it did not",
    );
}

fn show(world: &mut World, text: &str, outputs: &mut Vec<String>) -> Result<(), Fault> {
    world.begin_request(&Request::SetStatus(text))?;
    world.show(Shown {
        message: Some(text.into()),
        progress: None,
    })?;
    outputs.push(text.to_owned());
    Ok(())
}

fn rest(world: &mut World, outside: &mut Outside, ms: u64) -> Result<bool, Fault> {
    world.begin_request(&Request::Sleep { ms })?;
    if world.cancelled(|| outside.now >= outside.cancel_at)? {
        return Ok(false);
    }
    let until = world.clock(|| outside.look())? + ms;
    let wake = match world.wait(until)? {
        Some(wake) => wake,
        None => {
            outside.now = outside.now.max(until);
            let wake = if outside.now >= outside.cancel_at {
                Wake::Cancelled
            } else {
                Wake::Time
            };
            world.woke(wake, outside.now)?;
            wake
        }
    };
    Ok(wake == Wake::Time)
}

fn first(cancel_at: u64) -> Outside {
    Outside {
        now: 0,
        pace: 3,
        cancel_at,
        answer: "\"yes\"",
    }
}

/// What another process finds: time has passed, somebody answers otherwise, a cancel has come.
fn later() -> Outside {
    Outside {
        now: 700,
        pace: 11,
        cancel_at: 0,
        answer: "\"no\"",
    }
}

fn record(outside: &mut Outside) -> (String, Vec<Record>, Vec<String>) {
    let mut world = world(Vec::new(), After::Live);
    let tape = world.tape.clone();
    let mut outputs = Vec::new();
    let result = guest(&mut world, outside, &mut outputs).unwrap();
    (result, tape.take().records, outputs)
}

#[test]
fn a_whole_journal_gives_the_same_run_with_nothing_from_outside() {
    for cancel_at in [0, 20, 60, u64::MAX] {
        let (result, records, outputs) = record(&mut first(cancel_at));
        let mut world = world(records, After::Stop);
        let mut again = Vec::new();
        assert_eq!(
            guest(&mut world, &mut later(), &mut again).unwrap(),
            result,
            "cancelled at {cancel_at}"
        );
        assert!(outputs.ends_with(&again) || again.iter().all(|output| outputs.contains(output)));
        assert!(world.tape.is_empty(), "a repetition records nothing");
    }
}

#[test]
fn from_every_prefix_a_run_goes_on_and_what_it_saw_before_stays() {
    let mut tried = 0;
    for cancel_at in [0, 20, 60, u64::MAX] {
        let (_, records, _) = record(&mut first(cancel_at));
        for cut in 0..=records.len() {
            let kept = records[..cut].to_vec();
            let mut world = world(kept.clone(), After::Live);
            let tape = world.tape.clone();
            let result = guest(&mut world, &mut later(), &mut Vec::new())
                .unwrap_or_else(|fault| panic!("cut at {cut}: {fault}"));
            assert!(!tape.is_replaying());

            // The old records and the new ones together are again a whole journal of one run.
            let mut whole = kept;
            whole.extend(tape.take().records);
            let mut world = self::world(whole, After::Stop);
            let again = guest(&mut world, &mut first(u64::MAX), &mut Vec::new()).unwrap();
            assert_eq!(again, result, "cut at {cut}");
            tried += 1;
        }
    }
    assert!(tried > 40, "{tried} cuts");
}

#[test]
fn a_run_that_stops_where_its_records_end_says_where() {
    let (_, records, _) = record(&mut first(u64::MAX));
    let cut = records.len() / 2;
    let mut world = world(records[..cut].to_vec(), After::Stop);
    let fault = guest(&mut world, &mut later(), &mut Vec::new()).unwrap_err();
    assert!(matches!(fault, Fault::RecordsEnd { call } if call >= records[cut - 1].call));
}

#[test]
fn a_guest_that_does_something_else_is_found_out_at_its_first_record() {
    let say = |world: &mut World, text: &str| {
        world.begin_request(&Request::SetStatus(text))?;
        world.show(Shown {
            message: Some(text.into()),
            progress: None,
        })
    };
    let recorded = || {
        let mut world = world(Vec::new(), After::Live);
        world.begin(RANDOM, 0, 0).unwrap();
        say(&mut world, "a").unwrap();
        let _seen = world.tape.take();
        let mut outside = first(u64::MAX);
        world.begin(CLOCK, 0, 0).unwrap();
        world.clock(|| outside.look()).unwrap();
        world.tape.take().records
    };
    let shown = Record {
        call: 2,
        what: What::Shown {
            shown: Shown {
                message: Some("a".into()),
                progress: None,
            },
            path: 0,
        },
    };
    assert_eq!(recorded()[0].call, 3);

    type Other = fn(&mut World) -> Result<(), Fault>;
    let others: [(&str, Other); 5] = [
        ("another text", |world| {
            world.begin(RANDOM, 0, 0)?;
            world.begin_request(&Request::SetStatus("b"))?;
            world.show(Shown {
                message: Some("b".into()),
                progress: None,
            })
        }),
        ("another call before it", |world| {
            world.begin(CLOCK, 0, 0)?;
            world.begin_request(&Request::SetStatus("a"))?;
            world.show(Shown {
                message: Some("a".into()),
                progress: None,
            })
        }),
        ("another argument before it", |world| {
            world.begin(RANDOM, 1, 0)?;
            world.begin_request(&Request::SetStatus("a"))?;
            world.show(Shown {
                message: Some("a".into()),
                progress: None,
            })
        }),
        ("a call too many", |world| {
            for _ in 0..3 {
                world.begin(RANDOM, 0, 0)?;
            }
            Ok(())
        }),
        ("an end too early", |world| {
            world.begin(RANDOM, 0, 0)?;
            world.ended([0; 16])
        }),
    ];
    for (name, other) in others {
        let mut world = world(vec![shown.clone()], After::Live);
        let fault = other(&mut world).unwrap_err();
        let Fault::Diverged(divergence) = fault else {
            panic!("{name}: {fault}")
        };
        assert!((1..=3).contains(&divergence.call), "{name}: {divergence}");
    }
}

#[test]
fn steps_pair_and_hold_no_questions() {
    let end = |name| Request::StepEnd { name, value: b"" };
    let questions = form("q");
    let ask = Request::Ask {
        questions: &questions,
        wait_ms: None,
    };
    let a = || "a".to_owned();
    let refused: [(bool, Request<'_>, Misuse); 5] = [
        (false, end("a"), Misuse::UnmatchedStepEnd { name: a() }),
        (
            true,
            end("b"),
            Misuse::UnmatchedStepEnd { name: "b".into() },
        ),
        (
            true,
            Request::StepBegin("b"),
            Misuse::NestedStep { open: a() },
        ),
        (true, ask, Misuse::AskInStep { open: a() }),
        (
            true,
            Request::Checkpoint(b""),
            Misuse::CheckpointInStep { open: a() },
        ),
    ];
    for (opened, request, misuse) in refused {
        let mut world = world(Vec::new(), After::Live);
        if opened {
            world.begin_request(&Request::StepBegin("a")).unwrap();
            assert_eq!(world.step_begin("a"), Ok(None));
        }
        assert_eq!(world.begin_request(&request), Err(Fault::Misuse(misuse)));
    }
}

#[test]
fn a_guest_goes_on_from_its_restart_point_without_what_came_before() {
    let mut outside = first(u64::MAX);
    let after = |world: &mut World, outside: &mut Outside| {
        world.begin(RANDOM, 0, 0).unwrap();
        let mut bytes = [0; 8];
        world.random(&mut bytes);
        world.begin(CLOCK, 0, 0).unwrap();
        (bytes, world.clock(|| outside.look()).unwrap())
    };
    let mut world = world(Vec::new(), After::Live);
    after(&mut world, &mut outside);
    assert!(world.comes_further(5.0));
    world.begin_request(&Request::Checkpoint(b"state")).unwrap();
    world.checkpoint(b"state").unwrap();
    let seen = after(&mut world, &mut outside);

    let mut records = world.tape.take().records;
    assert_eq!(
        records.len(),
        2,
        "what came before is forgotten: {records:?}"
    );
    let Record {
        call,
        what: What::Checkpoint { state, at },
    } = records.remove(0)
    else {
        panic!("{records:?}")
    };
    assert_eq!(state.0, b"state");
    let begin = Begin {
        from: Some((call, at)),
        records,
    };
    let mut again = World::new(&origin(), begin, After::Stop, Tape::default());
    assert_eq!(after(&mut again, &mut later()), seen);
    assert_eq!(again.calls(), world.calls());
    assert!(!again.comes_further(5.0) && again.comes_further(5.5));
}

#[test]
fn progress_only_ever_grows() {
    let mut world = world(Vec::new(), After::Live);
    let reports = [
        (f64::NAN, false),
        (0.0, true),
        (0.0, false),
        (-1.0, false),
        (2.0, true),
        (f64::INFINITY, false),
        (3.0, true),
    ];
    for (done, expected) in reports {
        assert_eq!(world.comes_further(done), expected, "{done}");
    }
    // A step that was done before leaves the guest where it was then.
    let step = |world: &mut World| {
        world.begin_request(&Request::StepBegin("a")).unwrap();
        let done = world.step_begin("a").unwrap();
        if done.is_none() {
            assert!(world.comes_further(7.0));
            let end = Request::StepEnd {
                name: "a",
                value: b"",
            };
            world.begin_request(&end).unwrap();
            world.step_end(b"").unwrap();
        }
        done
    };
    assert_eq!(step(&mut world), None);
    let mut again = super::World::new(
        &origin(),
        Begin {
            from: None,
            records: world.tape.take().records,
        },
        After::Live,
        Tape::default(),
    );
    assert_eq!(step(&mut again), Some(Vec::new()));
    assert!(!again.comes_further(7.0) && again.comes_further(8.0));
}

#[test]
fn a_journal_has_bounds() {
    let full = |most: Total| {
        let origin = Origin { most, ..origin() };
        let mut world = World::new(&origin, Begin::default(), After::Live, Tape::default());
        (1..100)
            .find_map(|n| {
                world.begin(CLOCK, 0, 0).unwrap();
                world.clock(|| n).err()
            })
            .unwrap()
    };
    assert_eq!(
        full(Total {
            records: 10,
            ..most()
        }),
        Fault::Full {
            what: "records",
            most: 10
        }
    );
    assert!(matches!(
        full(Total {
            bytes: 160,
            ..most()
        }),
        Fault::Full { what: "bytes", .. }
    ));
}

#[test]
fn the_clock_never_goes_back_and_every_request_counts() {
    let mut world = world(Vec::new(), After::Live);
    for (real, seen) in [(5, 5), (3, 5), (9, 9)] {
        world.begin(CLOCK, 0, 0).unwrap();
        assert_eq!(world.clock(|| real), Ok(seen));
    }
    let requests = [
        Request::CallId,
        Request::ReportProgress {
            done: 1.0,
            total: None,
            message: None,
        },
        Request::TimeLeft,
        Request::Detach,
        Request::CanAsk(AskKind::Form),
        Request::Log {
            level: LogLevel::Info,
            logger: None,
            message: "m",
        },
    ];
    for request in &requests {
        world.begin_request(request).unwrap();
    }
    assert_eq!(world.calls(), 3 + requests.len() as u64);
    assert_eq!(world.tape.calls(), world.calls());
}
