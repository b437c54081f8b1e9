//! Memory, tables and instances of one run, counted over all of it.

use longshore_policy::limits::Limits;
use wasmtime::{Error, ResourceLimiter, Result};

use crate::fault::Halt;

/// Refuses what goes beyond the run's limits. A guest that asks for more while it runs is told no and
/// may go on; one that needs more to start does not start.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_left: usize,
    table_left: usize,
    instances: usize,
}

impl Limiter {
    /// The limiter of one run.
    pub(crate) fn new(limits: &Limits) -> Self {
        let bound = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            memory_left: bound(limits.memory_bytes),
            table_left: bound(limits.table_elements),
            instances: bound(limits.instances),
        }
    }
}

/// Takes the growth out of what is left of the whole run, unless there is not enough.
fn grow(left: &mut usize, current: usize, desired: usize, maximum: Option<usize>) -> bool {
    // The guest's own maximum is answered here too, so that a growth that fails later failed for
    // want of memory in the machine.
    if maximum.is_some_and(|maximum| desired > maximum) {
        return false;
    }
    match left.checked_sub(desired.saturating_sub(current)) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        Ok(grow(&mut self.memory_left, current, desired, maximum))
    }

    fn memory_grow_failed(&mut self, error: Error) -> Result<()> {
        Err(Halt::NoMemory(format!("{error:#}")).into())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        Ok(grow(&mut self.table_left, current, desired, maximum))
    }

    fn table_grow_failed(&mut self, error: Error) -> Result<()> {
        Err(Halt::NoMemory(format!("{error:#}")).into())
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.instances
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_summed_over_all_memories_and_a_refused_one_costs_nothing() {
        let mut limiter = Limiter::new(&Limits {
            memory_bytes: 100,
            table_elements: 10,
            ..Limits::default()
        });
        let mut memory =
            |current, desired, maximum| limiter.memory_growing(current, desired, maximum).unwrap();
        assert!(memory(0, 60, None));
        assert!(!memory(0, 41, None), "a second memory has only the rest");
        assert!(!memory(60, 90, Some(80)), "beyond its own maximum");
        assert!(memory(0, 30, None));
        assert!(memory(60, 70, None));
        assert!(!memory(70, 71, None));
        assert!(limiter.table_growing(0, 10, None).unwrap());
        assert!(!limiter.table_growing(10, 11, None).unwrap());
    }
}
