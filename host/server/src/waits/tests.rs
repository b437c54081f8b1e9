//! Waiting for days takes no more at its end than at its beginning.

use std::sync::atomic::{AtomicU64, Ordering};

use longshore_journal::http::{Failure, Response};
use longshore_policy::grant::Grant;
use longshore_policy::limits::Limits;
use longshore_policy::policy::Tenant;
use longshore_sandbox::poll::Until;
use serde_json::json;

use super::*;

const EVERY: Duration = Duration::from_secs(15);
const DAY_MS: u64 = 24 * 3_600_000;

/// An in-process target whose clock is moved by those who wait.
struct Simulated {
    now_ms: AtomicU64,
    done_at_ms: u64,
    sent: AtomicU64,
    is_over: bool,
}

#[async_trait]
impl Way for Simulated {
    async fn send(&self, outgoing: Outgoing) -> Outcome {
        assert_eq!(outgoing.path, "/job");
        let sent = self.sent.fetch_add(1, Ordering::Relaxed);
        let is_done = self.now_ms.load(Ordering::Relaxed) >= self.done_at_ms;
        // Every way to have no answer that is waited for.
        match sent % 4 {
            _ if is_done => Ok(answer(200, r#"{"state":"done"}"#)),
            0 => Err(Failure::Refused),
            1 => Ok(answer(503, "")),
            2 => Ok(answer(200, "no JSON")),
            _ => Ok(answer(200, r#"{"state":"going"}"#)),
        }
    }

    async fn pause(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).expect("it is short");
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }

    async fn is_wanted(&self) -> bool {
        !self.is_over
    }
}

fn answer(status: u16, body: &str) -> Response {
    Response {
        status,
        fields: Vec::new(),
        body: body.as_bytes().to_vec().into(),
    }
}

fn poll() -> (Poll, Outgoing) {
    let poll = Poll {
        method: "GET".to_owned(),
        url: "https://example.org/job".to_owned(),
        headers: Vec::new(),
        every_ms: 15_000,
        first_ms: 0,
        until: Until::Equals {
            pointer: "/state".to_owned(),
            values: vec![json!("done")],
        },
    };
    let grant = Grant::of_toml("[[http]]\nhost = \"example.org\"\n").expect("it is a grant");
    let policy = Policy::in_force(None, &grant, &Tenant::default(), &Limits::default());
    let outgoing = poll.outgoing(&policy).expect("it may be sent");
    (poll, outgoing)
}

async fn simulate(days: u64) -> u64 {
    let (poll, outgoing) = poll();
    let way = Simulated {
        now_ms: AtomicU64::new(0),
        done_at_ms: days * DAY_MS,
        sent: AtomicU64::new(0),
        is_over: false,
    };
    let met = until_met(&poll, &outgoing, EVERY, &way).await;
    let met = met.expect("it is met in the end");
    assert_eq!((met.status, met.headers.len()), (200, 0));
    way.sent.load(Ordering::Relaxed)
}

#[tokio::test]
async fn three_days_of_twenty_waits_take_as_much_a_request_as_one() {
    let cpu = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(
            time.tv_sec.unsigned_abs(),
            u32::try_from(time.tv_nsec).expect("below a second"),
        )
    };
    let mut each = Vec::new();
    for days in [1, 3] {
        let began = cpu();
        let sent = futures_util::future::join_all((0..20).map(|_| simulate(days))).await;
        // One at once, and one each 15 seconds until then.
        assert_eq!(sent, [days * DAY_MS / 15_000 + 1; 20]);
        each.push((cpu() - began).as_secs_f64() / sent.iter().sum::<u64>() as f64);
    }
    assert!(each[1] < each[0] * 2.0, "{each:?} s of CPU a request");
}

#[tokio::test]
async fn nothing_is_sent_for_nobody() {
    let (poll, outgoing) = poll();
    let way = Simulated {
        now_ms: AtomicU64::new(0),
        done_at_ms: 0,
        sent: AtomicU64::new(0),
        is_over: true,
    };
    assert_eq!(until_met(&poll, &outgoing, EVERY, &way).await, None);
    assert_eq!(way.sent.load(Ordering::Relaxed), 0);
}
