//! Whose turn it is, decided without a clock: tenants in a ring, each with its calls in their order.

use std::collections::{BTreeMap, HashMap, VecDeque};

use longshore_tasks::id::Tenant;

use super::Share;

/// How many there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Places.
    pub(crate) running: usize,
    /// Of those, for one tenant.
    pub(crate) running_each: usize,
    /// Calls that wait.
    pub(crate) queued: usize,
    /// Of those, of one tenant.
    pub(crate) queued_each: usize,
}

/// Names a call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// What comes of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// It has a place.
    Taken,
    /// It waits.
    Queued(Ticket),
    /// There is no room to wait either.
    Full,
}

/// Places and those who wait for them. Free places go round the tenants that wait, so that a tenant with a thousand
/// calls in the queue puts off another's first call by one turn and not by a thousand.
pub(super) struct Fair<W> {
    bounds: Bounds,
    running: usize,
    queued: usize,
    tenants: HashMap<Tenant, Line<W>>,
    /// Tenants with somebody waiting, the one whose turn is next first.
    ring: VecDeque<Tenant>,
    tickets: u64,
}

struct Line<W> {
    running: usize,
    waiting: VecDeque<Waits<W>>,
    /// Of those, the ones that take up room in the queue.
    queued: usize,
}

struct Waits<W> {
    ticket: Ticket,
    is_new: bool,
    with: W,
}

impl<W> Default for Line<W> {
    fn default() -> Self {
        Self {
            running: 0,
            waiting: VecDeque::new(),
            queued: 0,
        }
    }
}

impl<W> Fair<W> {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            running: 0,
            queued: 0,
            tenants: HashMap::new(),
            ring: VecDeque::new(),
            tickets: 0,
        }
    }

    /// A call comes in. `waits` makes what [`Self::next`] gives back for it, should it have to wait.
    pub(super) fn enter(&mut self, tenant: &Tenant, waits: impl FnOnce() -> W) -> Entry {
        self.let_in(tenant, waits, true)
    }

    /// A run that was let in before goes on. There is always room for it to wait.
    pub(super) fn enter_again(&mut self, tenant: &Tenant, waits: impl FnOnce() -> W) -> Entry {
        self.let_in(tenant, waits, false)
    }

    fn let_in(&mut self, tenant: &Tenant, waits: impl FnOnce() -> W, is_new: bool) -> Entry {
        let (running, queued, waiting) = self.tenants.get(tenant).map_or((0, 0, 0), |line| {
            (line.running, line.queued, line.waiting.len())
        });
        // A free place is nobody's only while no tenant that could take it waits; one that waits for a place of its
        // own does not keep others from theirs.
        let is_free = self.running < self.bounds.running && running < self.bounds.running_each;
        if is_free && waiting == 0 {
            self.running += 1;
            self.tenants.entry(tenant.clone()).or_default().running += 1;
            return Entry::Taken;
        }
        if is_new && (self.queued >= self.bounds.queued || queued >= self.bounds.queued_each) {
            return Entry::Full;
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.queued += usize::from(is_new);
        let line = self.tenants.entry(tenant.clone()).or_default();
        line.queued += usize::from(is_new);
        line.waiting.push_back(Waits {
            ticket,
            is_new,
            with: waits(),
        });
        if waiting == 0 {
            self.ring.push_back(tenant.clone());
        }
        Entry::Queued(ticket)
    }

    /// A place is free again.
    pub(super) fn leave(&mut self, tenant: &Tenant) {
        self.running -= 1;
        if let Some(line) = self.tenants.get_mut(tenant) {
            line.running -= 1;
        }
        self.forget(tenant);
    }

    /// A call waits no more, if it still did.
    pub(super) fn give_up(&mut self, tenant: &Tenant, ticket: Ticket) {
        let Some(line) = self.tenants.get_mut(tenant) else {
            return;
        };
        let Some(at) = line.waiting.iter().position(|there| there.ticket == ticket) else {
            return;
        };
        let gone = line.waiting.remove(at).expect("it was found there");
        line.queued -= usize::from(gone.is_new);
        self.queued -= usize::from(gone.is_new);
        if line.waiting.is_empty() {
            self.ring.retain(|there| there != tenant);
        }
        self.forget(tenant);
    }

    /// Who has the next place, if one is free and somebody may have it; it is taken by that.
    pub(super) fn next(&mut self) -> Option<(Tenant, W)> {
        if self.running >= self.bounds.running {
            return None;
        }
        let most = self.bounds.running_each;
        let at = self.ring.iter().position(|tenant| {
            self.tenants
                .get(tenant)
                .is_some_and(|line| line.running < most)
        })?;
        let tenant = self.ring.remove(at).expect("it was found there");
        let line = self.tenants.get_mut(&tenant)?;
        let Waits {
            is_new,
            with: waits,
            ..
        } = line.waiting.pop_front()?;
        line.running += 1;
        line.queued -= usize::from(is_new);
        let has_more = !line.waiting.is_empty();
        self.running += 1;
        self.queued -= usize::from(is_new);
        if has_more {
            self.ring.push_back(tenant.clone());
        }
        Some((tenant, waits))
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    pub(super) fn shares(&self) -> BTreeMap<Tenant, Share> {
        let share = |line: &Line<W>| Share {
            running: line.running,
            queued: line.queued,
        };
        self.tenants
            .iter()
            .map(|(tenant, line)| (tenant.clone(), share(line)))
            .collect()
    }

    /// Tenants that have nothing are not kept: there may be any number of them in a year.
    fn forget(&mut self, tenant: &Tenant) {
        if self
            .tenants
            .get(tenant)
            .is_some_and(|line| line.running == 0 && line.waiting.is_empty())
        {
            self.tenants.remove(tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Bounds = Bounds {
        running: 2,
        running_each: 2,
        queued: 100,
        queued_each: 100,
    };

    fn tenant(name: &str) -> Tenant {
        Tenant(name.into())
    }

    /// The order in which places are handed out, one at a time, to calls that came in this order, while two calls of
    /// somebody else hold all places.
    fn order(bounds: Bounds, calls: &str) -> String {
        let mut fair = Fair::new(bounds);
        let holder = tenant("holder");
        while fair.enter(&holder, || ' ') == Entry::Taken {}
        let held = fair.running;
        // The one that did not get in waits for nothing.
        fair.give_up(&holder, Ticket(fair.tickets));
        for call in calls.chars() {
            let entry = fair.enter(&tenant(&call.to_string()), || call);
            assert!(matches!(entry, Entry::Queued(_)), "{call}: {entry:?}");
        }
        for _ in 0..held {
            fair.leave(&holder);
        }
        let mut served = String::new();
        while let Some((tenant, call)) = fair.next() {
            served.push(call);
            // It is over before the next one begins.
            fair.leave(&tenant);
        }
        served
    }

    #[test]
    fn tenants_take_turns_and_each_keeps_its_order() {
        let rows = [
            ("a", "a"),
            ("aaa", "aaa"),
            ("ab", "ab"),
            ("aaaab", "abaaa"),
            ("aaabbbc", "abcabab"),
            ("caab", "caba"),
        ];
        for (calls, expected) in rows {
            assert_eq!(order(WIDE, calls), expected, "{calls}");
        }
    }

    #[test]
    fn what_goes_on_waits_its_turn_and_takes_no_room_in_the_queue() {
        let bounds = Bounds {
            running: 1,
            running_each: 1,
            queued: 1,
            queued_each: 1,
        };
        let mut fair = Fair::new(bounds);
        let [a, b] = ["a", "b"].map(tenant);
        assert_eq!(fair.enter(&a, || 1), Entry::Taken);
        for n in 2..5 {
            assert!(matches!(fair.enter_again(&a, || n), Entry::Queued(_)));
        }
        assert_eq!(fair.queued(), 0);
        assert!(matches!(fair.enter(&b, || 5), Entry::Queued(_)));
        assert_eq!(fair.enter(&b, || 6), Entry::Full);
        let mut served = Vec::new();
        let mut running = a.clone();
        loop {
            fair.leave(&running);
            let Some((tenant, call)) = fair.next() else {
                break;
            };
            served.push(call);
            running = tenant;
        }
        assert_eq!(served, [2, 5, 3, 4]);
        assert_eq!((fair.queued(), fair.shares().len()), (0, 0));
    }

    #[test]
    fn a_flood_of_one_tenant_puts_off_another_by_one_turn() {
        let mut calls = "a".repeat(90);
        calls.push('b');
        let served = order(WIDE, &calls);
        assert_eq!(served.find('b'), Some(1));
        assert_eq!(served.len(), 91);
    }

    #[test]
    fn a_tenant_at_its_own_bound_leaves_the_places_to_others() {
        let bounds = Bounds {
            running: 3,
            running_each: 1,
            queued: 3,
            queued_each: 2,
        };
        let mut fair = Fair::new(bounds);
        let [a, b, c] = ["a", "b", "c"].map(tenant);
        assert_eq!(fair.enter(&a, || 1), Entry::Taken);
        assert_eq!(fair.enter(&a, || 2), Entry::Queued(Ticket(1)));
        assert_eq!(fair.enter(&a, || 3), Entry::Queued(Ticket(2)));
        assert_eq!(fair.enter(&a, || 4), Entry::Full, "of its own");
        assert_eq!(fair.next(), None, "it has all that it may");
        assert_eq!(fair.enter(&b, || 5), Entry::Taken);
        assert_eq!(fair.enter(&b, || 6), Entry::Queued(Ticket(3)));
        assert_eq!(fair.enter(&c, || 7), Entry::Taken);
        assert_eq!(fair.enter(&c, || 8), Entry::Full, "of the node");
        fair.leave(&b);
        assert_eq!(fair.next(), Some((b.clone(), 6)));
        assert_eq!(fair.next(), None);
        fair.leave(&a);
        assert_eq!(fair.next(), Some((a.clone(), 2)));
        fair.give_up(&a, Ticket(2));
        fair.give_up(&a, Ticket(2));
        assert_eq!(fair.queued(), 0);
        for tenant in [&a, &b, &c] {
            fair.leave(tenant);
        }
        assert!(fair.shares().is_empty() && fair.ring.is_empty());
    }

    #[test]
    fn whatever_comes_the_bounds_hold_and_nobody_is_lost() {
        // A small generator of our own (xorshift), so that a failing sequence comes again.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % bound as u64).expect("it is small")
        };
        let bounds = Bounds {
            running: 4,
            running_each: 3,
            queued: 9,
            queued_each: 4,
        };
        let mut fair = Fair::new(bounds);
        let tenants = ["a", "b", "c", "d"].map(tenant);
        let mut running: Vec<Tenant> = Vec::new();
        let mut waiting: Vec<(Tenant, Ticket, u64)> = Vec::new();
        let (mut entered, mut handed, mut refused) = (0_u64, 0, 0);
        for _ in 0..20_000 {
            match next(4) {
                0 | 1 => {
                    let tenant = &tenants[next(4)];
                    entered += 1;
                    match fair.enter(tenant, || entered) {
                        Entry::Taken => running.push(tenant.clone()),
                        Entry::Queued(ticket) => waiting.push((tenant.clone(), ticket, entered)),
                        Entry::Full => refused += 1,
                    }
                }
                2 if !running.is_empty() => {
                    fair.leave(&running.swap_remove(next(running.len())));
                    while let Some((tenant, call)) = fair.next() {
                        let first = waiting.iter().find(|(there, _, _)| *there == tenant);
                        assert_eq!(first.map(|(_, _, call)| *call), Some(call), "out of order");
                        waiting.retain(|(_, _, there)| *there != call);
                        running.push(tenant);
                        handed += 1;
                    }
                }
                3 if !waiting.is_empty() => {
                    let (tenant, ticket, _) = waiting.remove(next(waiting.len()));
                    fair.give_up(&tenant, ticket);
                }
                _ => {}
            }
            assert!(running.len() <= bounds.running && waiting.len() <= bounds.queued);
            assert_eq!(
                (fair.running, fair.queued()),
                (running.len(), waiting.len())
            );
            for tenant in &tenants {
                let of = running.iter().filter(|there| *there == tenant).count();
                assert!(of <= bounds.running_each);
                let has_room = running.len() < bounds.running && of < bounds.running_each;
                let waits = waiting.iter().any(|(there, _, _)| there == tenant);
                assert!(!(has_room && waits), "a place is free and {tenant:?} waits");
            }
        }
        println!("{entered} calls: {handed} waited and had a place, {refused} were refused");
        assert!(handed > 1_000 && refused > 500);
    }
}
