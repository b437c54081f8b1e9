//! Our own WASI, without a guest.

use std::sync::atomic::Ordering;

use longshore_journal::world::Begin;
use longshore_policy::limits::Limits;
use wasmtime::component::Resource;

use super::kit::origin;
use super::script::{Scene, Script, new_scene, scene};
use crate::bindings::wasi_world::wasi::cli::environment::Host as _;
use crate::bindings::wasi_world::wasi::cli::stdin::Host as _;
use crate::bindings::wasi_world::wasi::cli::stdout::Host as _;
use crate::bindings::wasi_world::wasi::cli::terminal_stdin::Host as _;
use crate::bindings::wasi_world::wasi::cli::terminal_stdout::Host as _;
use crate::bindings::wasi_world::wasi::clocks::monotonic_clock::{self, Host as _};
use crate::bindings::wasi_world::wasi::clocks::wall_clock;
use crate::bindings::wasi_world::wasi::io::poll::{Host as _, HostPollable as _};
use crate::bindings::wasi_world::wasi::io::streams::{HostInputStream, HostOutputStream as _};
use crate::bindings::wasi_world::wasi::random::insecure::Host as _;
use crate::bindings::wasi_world::wasi::random::insecure_seed::Host as _;
use crate::bindings::wasi_world::wasi::random::random::Host as _;
use crate::bindings::wasi_world::wasi::sockets::instance_network::Host as _;
use crate::bindings::wasi_world::wasi::sockets::ip_name_lookup::Host as _;
use crate::bindings::wasi_world::wasi::sockets::network::{ErrorCode, IpAddressFamily};
use crate::bindings::wasi_world::wasi::sockets::tcp_create_socket::Host as _;
use crate::bindings::wasi_world::wasi::sockets::udp_create_socket::Host as _;
use crate::fault::Halt;
use crate::host::State;
use crate::journal::Journal;
use crate::wasi::clocks::Pollable;
use crate::wasi::io::{Output, StreamError};

const SECOND: u64 = 1_000_000_000;

fn now(state: &mut State) -> u64 {
    monotonic_clock::Host::now(state).unwrap()
}

fn is_misuse(error: &wasmtime::Error) -> bool {
    matches!(error.downcast_ref(), Some(Halt::Misuse(_)))
}

fn traps<T>(outcome: Result<T, StreamError>) -> bool {
    matches!(outcome, Err(StreamError::Trap(error)) if is_misuse(&error))
}

#[tokio::test]
async fn a_guest_finds_nothing_of_ours() {
    let Scene { mut state, .. } = new_scene();
    assert!(state.get_environment().unwrap().is_empty());
    assert!(state.get_arguments().unwrap().is_empty());
    assert_eq!(state.initial_cwd().unwrap(), None);
    assert!(state.get_terminal_stdin().unwrap().is_none());
    assert!(state.get_terminal_stdout().unwrap().is_none());
    let stdin = state.get_stdin().unwrap();
    let pollable =
        HostInputStream::subscribe(&mut state, Resource::new_borrow(stdin.rep())).unwrap();
    assert!(state.ready(pollable).await.unwrap());
    let read = state.read(Resource::new_borrow(stdin.rep()), 1);
    assert!(matches!(read, Err(StreamError::Closed)));
}

#[test]
fn both_clocks_are_the_calls_own() {
    let Scene {
        mut state, script, ..
    } = new_scene();
    let mut at = |ms: u64| {
        script.set(ms);
        let wall = wall_clock::Host::now(&mut state).unwrap();
        (now(&mut state), wall.seconds, wall.nanoseconds)
    };
    assert_eq!(at(0), (SECOND, 1_000_000_000, 0));
    assert_eq!(
        at(2_345),
        (SECOND + 2_345_000_000, 1_000_000_002, 345_000_000)
    );
    // The machine's clock was set back.
    assert_eq!(at(1), (SECOND + 2_345_000_000, 1_000_000_002, 345_000_000));
    assert_eq!(
        monotonic_clock::Host::resolution(&mut state).unwrap(),
        1_000_000
    );
    let resolution = wall_clock::Host::resolution(&mut state).unwrap();
    assert_eq!((resolution.seconds, resolution.nanoseconds), (0, 1_000_000));
}

#[tokio::test]
async fn a_duration_begins_when_it_is_asked_for() {
    let Scene {
        mut state, script, ..
    } = new_scene();
    assert_eq!(now(&mut state), SECOND);
    // It computed for five seconds and did not look.
    script.set(5_000);
    let timer = state.subscribe_duration(300_000_000).unwrap();
    assert!(
        !state
            .ready(Resource::new_borrow(timer.rep()))
            .await
            .unwrap()
    );
    state
        .block(Resource::new_borrow(timer.rep()))
        .await
        .unwrap();
    assert_eq!(*script.waits.lock(), [5_300]);
    assert_eq!(now(&mut state), SECOND + 5_300_000_000);
    assert!(state.ready(timer).await.unwrap());
}

#[tokio::test]
async fn poll_gives_what_is_ready_in_the_order_of_its_arguments() {
    const START: u64 = SECOND;
    // What is waited for, after 100 ms: places that are ready, and until when it waited.
    type Case<'a> = (&'a [Pollable], &'a [u32], Option<u64>);
    let at = |ms: u64| Pollable::At(START + ms * 1_000_000);
    let cases: [Case<'_>; 7] = [
        (&[Pollable::Now], &[0], None),
        (&[at(100), Pollable::Now, at(101), at(0)], &[0, 1, 3], None),
        (&[Pollable::At(0), Pollable::At(u64::MAX)], &[0], None),
        (&[at(300), at(200), at(250)], &[1], Some(200)),
        (&[at(200), at(300), at(200)], &[0, 2], Some(200)),
        // Part of a millisecond is waited for as a whole one.
        (&[Pollable::At(START + 200_000_001)], &[0], Some(201)),
        (
            &[Pollable::At(u64::MAX)],
            &[0],
            Some(u64::MAX.div_ceil(1_000_000) - 1_000),
        ),
    ];
    for (waited_for, ready, until) in cases {
        let Scene {
            mut state, script, ..
        } = new_scene();
        script.set(100);
        let mut list = Vec::new();
        for pollable in waited_for {
            list.push(match pollable {
                Pollable::Now => {
                    let stdin = state.get_stdin().unwrap();
                    HostInputStream::subscribe(&mut state, stdin).unwrap()
                }
                Pollable::At(ns) => state.subscribe_instant(*ns).unwrap(),
                Pollable::Exchange(_) => unreachable!("no request is sent here"),
            });
        }
        assert_eq!(state.poll(list).await.unwrap(), ready, "{waited_for:?}");
        assert_eq!(
            *script.waits.lock(),
            Vec::from_iter(until),
            "{waited_for:?}"
        );
    }
    let Scene { mut state, .. } = new_scene();
    let error = state.poll(Vec::new()).await.unwrap_err();
    assert!(is_misuse(&error));
}

#[tokio::test]
async fn a_stop_ends_a_wait_and_a_cancel_does_not() {
    use super::kit::{Remembers, until};
    use super::script::nothing;
    use crate::control::{Control, StopReason};
    use crate::run::Trail;
    use crate::sandbox::WasiKind;
    let limits = Limits::default();
    let journal = Journal::fresh(origin());
    let (trail, control) = (Trail::new(&limits, &journal), Control::default());
    let tape = journal.tape.clone();
    let world =
        longshore_journal::world::World::new(&origin(), journal.begin, journal.after, journal.tape);
    let outside = std::sync::Arc::new(Remembers::default());
    let mut state = State::new(
        WasiKind::Virtual,
        &nothing(limits),
        &trail,
        world,
        0,
        outside,
        control.clone(),
    )
    .unwrap();
    let timer = state.subscribe_duration(u64::MAX).unwrap();
    let stop = async {
        until("the wait", || tape.total().records > 0 && tape.calls() == 2).await;
        control.cancel();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        control.stop(StopReason::Expired);
    };
    let (blocked, ()) = tokio::join!(state.block(timer), stop);
    assert_eq!(
        blocked.unwrap_err().downcast_ref(),
        Some(&Halt::Stopped(StopReason::Expired))
    );
    assert!(
        !control.cooperates(),
        "it does not look at its cancel there"
    );
}

#[test]
fn random_numbers_belong_to_the_call() {
    let draw = |key: u8| {
        let mut journal = Journal::fresh(origin());
        journal.origin.random_key = [key; 32];
        let mut state = scene(&Limits::default(), Script::default(), journal).state;
        let bytes = state.get_random_bytes(16).unwrap();
        let number = state.get_random_u64().unwrap();
        let insecure = state.get_insecure_random_bytes(16).unwrap();
        let seed = state.insecure_seed().unwrap();
        let other = state.get_insecure_random_u64().unwrap();
        (bytes, number, insecure, seed, other)
    };
    assert_eq!(draw(1), draw(1));
    let (one, two) = (draw(1), draw(2));
    assert_ne!(one, two);
    assert_ne!(one.0, one.2, "the two streams differ");
}

#[test]
fn randomness_per_call_is_limited() {
    let limits = Limits {
        random_bytes: 10,
        ..Limits::default()
    };
    let mut state = scene(&limits, Script::default(), Journal::fresh(origin())).state;
    assert_eq!(state.get_random_bytes(10).unwrap().len(), 10);
    assert_eq!(state.get_insecure_random_bytes(10).unwrap().len(), 10);
    for len in [11, u64::MAX] {
        let error = state.get_random_bytes(len).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(Halt::Hostcall(_))));
        assert!(state.get_insecure_random_bytes(len).is_err());
    }
}

#[tokio::test]
async fn output_takes_what_it_says_and_no_more() {
    let Scene {
        mut state, trail, ..
    } = new_scene();
    let stdout = state.get_stdout().unwrap();
    let out = || Resource::<Output>::new_borrow(stdout.rep());
    let room = state.check_write(out()).ok().unwrap();
    assert_eq!(room, 65_536);
    let bytes = |len: u64| vec![b'.'; usize::try_from(len).unwrap()];
    assert!(state.write(out(), bytes(room)).is_ok());
    assert!(traps(state.write(out(), bytes(room + 1))));
    assert!(state.blocking_write_and_flush(out(), bytes(4_096)).is_ok());
    assert!(traps(state.blocking_write_and_flush(out(), bytes(4_097))));
    assert!(state.write_zeroes(out(), room).is_ok());
    assert!(traps(state.write_zeroes(out(), room + 1)));
    assert!(state.blocking_write_zeroes_and_flush(out(), 4_096).is_ok());
    assert!(traps(
        state.blocking_write_zeroes_and_flush(out(), u64::MAX)
    ));
    assert!(state.flush(out()).is_ok() && state.blocking_flush(out()).is_ok());
    assert_eq!(state.check_write(out()).ok(), Some(room));
    let kept = trail.stdout.text();
    assert_eq!(kept.text.len() as u64 + kept.dropped, 2 * (65_536 + 4_096));
    let stdin = state.get_stdin().unwrap();
    let spliced = state.splice(out(), stdin, 10);
    assert!(matches!(spliced, Err(StreamError::Closed)));
}

#[tokio::test]
async fn what_was_kept_before_is_not_printed_again() {
    let mut journal = Journal::fresh(origin());
    journal.printed_through = 2;
    let Scene {
        mut state,
        trail,
        script,
        ..
    } = scene(&Limits::default(), Script::default(), journal);
    use crate::bindings::longshore::tool::task::{Host as _, Level};
    let stdout = state.get_stdout().unwrap();
    let out = || Resource::<Output>::new_borrow(stdout.rep());
    assert!(state.write(out(), b"before".to_vec()).is_ok());
    state.log(Level::Info, None, "before".into()).await.unwrap();
    state.log(Level::Info, None, "after".into()).await.unwrap();
    assert!(state.write(out(), b"after".to_vec()).is_ok());
    assert_eq!(trail.stdout.text().text, "after");
    assert_eq!(*script.logs.lock(), [(3, "after".to_owned())]);
}

#[test]
fn sockets_and_names_are_refused_with_an_error_not_a_trap() {
    let Scene { mut state, .. } = new_scene();
    for family in [IpAddressFamily::Ipv4, IpAddressFamily::Ipv6] {
        let refused = state.create_tcp_socket(family).unwrap().unwrap_err();
        assert_eq!(refused, ErrorCode::AccessDenied);
        let refused = state.create_udp_socket(family).unwrap().unwrap_err();
        assert_eq!(refused, ErrorCode::AccessDenied);
    }
    let network = state.instance_network().unwrap();
    let refused = state
        .resolve_addresses(network, "localhost".into())
        .unwrap();
    assert_eq!(refused.unwrap_err(), ErrorCode::PermanentResolverFailure);
}

#[test]
fn entries_in_the_hosts_table_are_limited() {
    let limits = Limits {
        handles: 3,
        ..Limits::default()
    };
    let mut state = scene(&limits, Script::default(), Journal::fresh(origin())).state;
    let held: Vec<_> = (0..3).map(|_| state.get_stdin().unwrap()).collect();
    let error = state.get_stdin().unwrap_err();
    let ending = crate::fault::ending(&error, &Default::default());
    assert!(format!("{ending:?}").contains("HandleLimit"), "{ending:?}");
    for stream in held {
        HostInputStream::drop(&mut state, stream).unwrap();
    }
    state.get_stdin().unwrap();
}

#[tokio::test]
async fn every_call_is_counted_and_a_repeated_one_asks_nobody() {
    let play = async |journal: Journal, script: Script| {
        let Scene {
            mut state,
            script,
            trail,
            ..
        } = scene(&Limits::default(), script, journal);
        let first = now(&mut state);
        let timer = state.subscribe_duration(SECOND).unwrap();
        state.poll(vec![timer]).await.unwrap();
        let seen = (first, now(&mut state), state.get_random_u64().unwrap());
        assert_eq!(trail.tape.calls(), 5);
        (seen, trail.tape.take().records, script)
    };
    let script = Script {
        now: 7.into(),
        step: 3,
        ..Script::default()
    };
    let (seen, records, _) = play(Journal::fresh(origin()), script).await;
    let mut journal = Journal::fresh(origin());
    let recorded = records.len();
    assert!(recorded >= 4, "{records:?}");
    journal.begin = Begin {
        from: None,
        records,
    };
    let (again, new, script) = play(journal, Script::at(900_000)).await;
    assert_eq!(again, seen);
    assert_eq!(new, []);
    assert!(!script.was_needed());
    assert_eq!(script.settled.load(Ordering::Relaxed), 0);
}
