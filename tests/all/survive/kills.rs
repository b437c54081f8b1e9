//! A server that is killed again and again under load, at every kind of moment.

mod clients;
mod windows;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longshore_tests::chance::Chance;
use longshore_tests::effort::rounds;
use longshore_tests::process::{Options, Server};
use serde_json::Value;
use tokio::task::JoinSet;

use self::clients::{Clients, TOOLS, readmit};
use self::windows::{Left, Windows, until_written};

/// For the kills of one round.
const TIME: Duration = Duration::from_secs(60);
/// Unfinished tasks that every kill meets.
const UNFINISHED: usize = 10;
/// Kills in each window that the long form asks for.
const EACH: usize = 20;
/// Clients that start, answer and look at the same time.
const CLIENTS: usize = 4;
/// Calls that are made at once before some of the kills.
const BURST: usize = 6;
/// Long after everything should have ended.
const END: Duration = Duration::from_secs(180);

/// What is waited for before a kill.
#[derive(Clone, Copy)]
enum Moment {
    /// Some of what runs has come further, and some waits.
    Later,
    /// Calls have just been sent.
    Sent,
    /// Calls have just been sent, and the database was written to since.
    Written,
    /// The server is still busy with what the last one left.
    Early,
}

const MOMENTS: [Moment; 5] = [
    Moment::Later,
    Moment::Sent,
    Moment::Written,
    Moment::Early,
    Moment::Written,
];

/// Waits for such a moment. What the server said of itself just before, and the calls that are on their way.
async fn until(
    moment: Moment,
    server: &Server,
    clients: &Clients,
    chance: &mut Chance,
) -> (Value, JoinSet<()>) {
    let pause = match moment {
        Moment::Early => chance.below(15),
        Moment::Later | Moment::Sent | Moment::Written => 150 + chance.below(400),
    };
    tokio::time::sleep(Duration::from_millis(pause as u64)).await;
    let figures = server.figures().await;
    let mut calls = JoinSet::new();
    if matches!(moment, Moment::Later | Moment::Early) {
        return (figures, calls);
    }
    for _ in 0..BURST {
        let (clients, client) = (clients.clone(), server.client());
        calls.spawn(async move { clients.start(&client).await });
    }
    if matches!(moment, Moment::Sent) {
        tokio::time::sleep(Duration::from_millis(chance.below(4) as u64)).await;
        return (figures, calls);
    }
    let (data, times) = (server.data().to_owned(), 1 + chance.below(3));
    let watch = tokio::task::spawn_blocking(move || until_written(&data, times));
    watch.await.unwrap();
    (figures, calls)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_moment_every_task_goes_on() {
    let guests: Vec<&str> = TOOLS.iter().map(|(tool, _)| *tool).collect();
    // Half of what waits keeps its memory, half is parked at once.
    let options = Options::with_guests(&guests)
        .set("warm", 4)
        .set("warm_ms", 200)
        .set("early_poll_ms", 0)
        .set("limits.cpu_ms", 3_600_000)
        // Whatever goes on comes further before the next kill, however slow the machine.
        .set("journal_every_ms", 20)
        .set("status_every_ms", 20);
    let mut server = Server::start(options).await;
    let clients = Clients::default();
    let mut chance = Chance::new(11);
    let rounds = rounds(1);
    let time = TIME * u32::try_from(rounds).unwrap();
    let began = Instant::now();
    let (mut kills, mut met_few, mut set_aside) = (0, 0, 0);
    let (mut windows, mut slowest_start) = (Windows::default(), Duration::ZERO);
    // The long form ends as soon as it has met each often enough.
    while began.elapsed() < TIME
        || (began.elapsed() < 4 * time && rounds > 1 && !windows.each(EACH))
    {
        let client = server.client();
        while clients.unfinished() < UNFINISHED + 6 {
            clients.start(&client).await;
        }
        let is_dead = Arc::new(AtomicBool::new(false));
        let lookers: JoinSet<()> = (0..CLIENTS)
            .map(|share| {
                let (clients, client) = (clients.clone(), client.clone());
                let is_dead = Arc::clone(&is_dead);
                async move {
                    // One that has nothing to look at is not told by a request that fails.
                    while !is_dead.load(Ordering::Acquire)
                        && clients.look(&client, share, CLIENTS).await
                    {
                        if clients.unfinished() < UNFINISHED + 10 {
                            clients.start(&client).await;
                        }
                        tokio::task::yield_now().await;
                    }
                }
            })
            .collect();
        let moment = MOMENTS[kills % MOMENTS.len()];
        let (figures, calls) = until(moment, &server, &clients, &mut chance).await;
        server.kill().await;
        is_dead.store(true, Ordering::Release);
        lookers.join_all().await;
        calls.join_all().await;
        kills += 1;
        let left = Left::in_folder(server.data());
        let met = left.unfinished().intersection(&clients.told()).count();
        let unanswered = clients.take_unanswered();
        // On a machine that is busy with something else all of them may have ended meanwhile.
        if met >= UNFINISHED {
            windows.note(&left, &unanswered, &figures["runs"]["replaying"]);
        } else {
            met_few += 1;
        }
        let started = Instant::now();
        server.restart().await;
        slowest_start = slowest_start.max(started.elapsed());
        set_aside += readmit(&server).await;
        clients
            .call_again(&server.client(), &unanswered, &left)
            .await;
    }
    let client = server.client();
    let ending = Instant::now();
    while clients.unfinished() > 0 {
        assert!(clients.look(&client, 0, 1).await, "nobody kills any more");
        assert!(ending.elapsed() < END, "stuck: {}", clients.open());
    }
    clients.verify(&client).await;
    println!(
        "{kills} kills, {met_few} of them not counted since they met less than {UNFINISHED} unfinished tasks: {windows}; {} tasks; {set_aside} set aside by four deaths in a row and readmitted; slowest start {slowest_start:?}",
        clients.told().len(),
    );
    let faults = clients.faults();
    assert!(faults.is_empty(), "{} faults: {faults:#?}", faults.len());
    assert!(kills - met_few >= 10, "{kills} kills, {met_few} met few");
    assert!(rounds == 1 || windows.each(EACH), "{windows}");
}
