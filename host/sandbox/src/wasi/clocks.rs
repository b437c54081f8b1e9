//! `wasi:clocks` and `wasi:io/poll`: the guest's clock, and waiting for it.
#![expect(
    unreachable_pub,
    reason = "the generated bindings name these types as public ones"
)]

use longshore_journal::import::Import;
use wasmtime::Result;
use wasmtime::component::Resource;

use super::time;
use crate::bindings::wasi_world::wasi::clocks::wall_clock::{self, Datetime};
use crate::bindings::wasi_world::wasi::clocks::{monotonic_clock, timezone};
use crate::bindings::wasi_world::wasi::io::poll;
use crate::fault::Halt;
use crate::host::{State, Wakeable};

/// Where the monotonic clock of a call begins: at zero, Go's runtime takes it for broken.
const START_NS: u64 = 1_000_000_000;
/// What the clocks move by.
const MS: u64 = 1_000_000;

/// Something to wait for. What is ready at once stays so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pollable {
    /// Ready.
    Now,
    /// Ready when the monotonic clock stands there.
    At(u64),
    /// Ready when something came of that exchange.
    Exchange(u64),
}

fn monotonic(clock_ms: u64) -> u64 {
    clock_ms.saturating_mul(MS).saturating_add(START_NS)
}

impl Pollable {
    /// When it is ready, by the guest's clock, if time has anything to do with it.
    fn ready_at(self) -> Option<u64> {
        match self {
            Self::Now => Some(0),
            Self::At(ns) => Some(ns.saturating_sub(START_NS).div_ceil(MS)),
            Self::Exchange(_) => None,
        }
    }
}

impl State {
    fn subscribe_at(&mut self, ns: u64) -> Result<Resource<Pollable>> {
        Ok(self.wasi.table.push(Pollable::At(ns))?)
    }

    fn is_ready(&self, pollable: Pollable, now: u64) -> bool {
        match pollable {
            Pollable::Exchange(number) => self.wasi.exchanges.is_ready(number),
            timed => timed.ready_at().is_some_and(|at| at <= now),
        }
    }

    /// The places of those that are ready, once there are any.
    async fn until_ready(&mut self, pollables: &[Resource<Pollable>]) -> Result<Vec<u32>> {
        let mut wanted = Vec::with_capacity(pollables.len());
        for pollable in pollables {
            wanted.push(*self.wasi.table.get(pollable)?);
        }
        if wanted.is_empty() {
            return Err(Halt::Misuse("poll of an empty list".into()).into());
        }
        let mut now = self.clock()?;
        loop {
            self.look_for_responses().await?;
            let ready: Vec<u32> = (0..)
                .zip(&wanted)
                .filter(|(_, pollable)| self.is_ready(**pollable, now))
                .map(|(n, _)| n)
                .collect();
            if !ready.is_empty() {
                return Ok(ready);
            }
            let first = wanted.iter().filter_map(|wanted| wanted.ready_at()).min();
            if first.is_none() && !self.wasi.exchanges.may_come() {
                let message = "it waits for the response to a request that it has not finished";
                return Err(Halt::Misuse(message.into()).into());
            }
            self.rest(first.unwrap_or(u64::MAX), Wakeable::ByNothing)
                .await?;
            now = self.world.clock_seen();
        }
    }

    fn counts_poll(&mut self, import: Import, pollables: &[Resource<Pollable>]) -> Result<()> {
        self.passes(import, pollables.len() as u64, 0)
    }
}

impl monotonic_clock::Host for State {
    fn now(&mut self) -> Result<u64> {
        self.passes(import!("wasi:clocks/monotonic-clock.now"), 0, 0)?;
        Ok(monotonic(self.clock()?))
    }

    fn resolution(&mut self) -> Result<u64> {
        self.passes(import!("wasi:clocks/monotonic-clock.resolution"), 0, 0)?;
        Ok(MS)
    }

    fn subscribe_instant(&mut self, when: u64) -> Result<Resource<Pollable>> {
        self.passes(
            import!("wasi:clocks/monotonic-clock.subscribe-instant"),
            when,
            0,
        )?;
        self.clock()?;
        self.subscribe_at(when)
    }

    fn subscribe_duration(&mut self, when: u64) -> Result<Resource<Pollable>> {
        self.passes(
            import!("wasi:clocks/monotonic-clock.subscribe-duration"),
            when,
            0,
        )?;
        // From now on, and not from when the guest last looked: it may have computed for long.
        let now = monotonic(self.clock()?);
        self.subscribe_at(now.saturating_add(when))
    }
}

impl wall_clock::Host for State {
    fn now(&mut self) -> Result<Datetime> {
        self.passes(import!("wasi:clocks/wall-clock.now"), 0, 0)?;
        self.clock()?;
        let now = time(&self.world);
        Ok(Datetime {
            seconds: now.seconds,
            nanoseconds: now.nanoseconds,
        })
    }

    fn resolution(&mut self) -> Result<Datetime> {
        self.passes(import!("wasi:clocks/wall-clock.resolution"), 0, 0)?;
        Ok(Datetime {
            seconds: 0,
            nanoseconds: 1_000_000,
        })
    }
}

impl timezone::Host for State {
    fn display(&mut self, when: Datetime) -> Result<timezone::TimezoneDisplay> {
        self.passes(
            import!("wasi:clocks/timezone.display"),
            when.seconds,
            u64::from(when.nanoseconds),
        )?;
        Ok(timezone::TimezoneDisplay {
            utc_offset: 0,
            name: "UTC".to_owned(),
            in_daylight_saving_time: false,
        })
    }

    fn utc_offset(&mut self, when: Datetime) -> Result<i32> {
        self.passes(
            import!("wasi:clocks/timezone.utc-offset"),
            when.seconds,
            u64::from(when.nanoseconds),
        )?;
        Ok(0)
    }
}

impl poll::Host for State {
    async fn poll(&mut self, pollables: Vec<Resource<Pollable>>) -> Result<Vec<u32>> {
        self.counts_poll(import!("wasi:io/poll.poll"), &pollables)?;
        self.until_ready(&pollables).await
    }
}

impl poll::HostPollable for State {
    async fn ready(&mut self, pollable: Resource<Pollable>) -> Result<bool> {
        self.passes_on(import!("wasi:io/poll.pollable.ready"), &pollable, 0)?;
        let pollable = *self.wasi.table.get(&pollable)?;
        let now = self.clock()?;
        self.look_for_responses().await?;
        Ok(self.is_ready(pollable, now))
    }

    async fn block(&mut self, pollable: Resource<Pollable>) -> Result<()> {
        self.passes_on(import!("wasi:io/poll.pollable.block"), &pollable, 0)?;
        self.until_ready(&[pollable]).await.map(drop)
    }

    fn drop(&mut self, pollable: Resource<Pollable>) -> Result<()> {
        self.passes_drop(import!("wasi:io/poll.pollable.drop"), pollable)
            .map(drop)
    }
}
