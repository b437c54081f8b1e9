//! Where instances are made: in slots that were made before, or each in memory of its own.
//!
//! A slot saves most of what it takes to make and unmake an instance: address space that is taken and given back, for
//! which all threads of a process wait. There are only so many, and not every component fits. So there are two engines,
//! of which the second takes what the first cannot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longshore_policy::limits::Limits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::artifact::{Artifact, Artifacts};
use crate::engine::{self, POOLED_TABLE_ELEMENTS};

/// Native code of which a second copy may be held for the slots. What has more is an interpreter, which takes so long
/// to start that a slot would not be noticed.
const POOLED_CODE: usize = 4 << 20;
/// Mappings of a process that are not for slots: files, threads, the heap, and instances without a slot. A process that
/// reaches the limit is not told so, it is ended.
const OTHER_MAPPINGS: usize = 10_000;
/// Mappings that one slot comes to at most: a stack, a memory, and a heap for exceptions.
const SLOT_MAPPINGS: usize = 8;
/// What Linux allows a process that was told nothing else.
const USUAL_MAPPINGS: usize = 65_530;

/// The engines of a process.
#[derive(Clone)]
pub(crate) struct Engines {
    own: Engine,
    pool: Option<Pool>,
}

#[derive(Clone)]
struct Pool {
    engine: Engine,
    slots: Arc<Semaphore>,
    taken: Arc<AtomicU64>,
}

/// What there is for each engine.
#[derive(Clone)]
pub(crate) struct Each<T> {
    /// For an instance with memory of its own.
    pub(crate) own: T,
    /// For one in a slot, unless it does not fit into one.
    pub(crate) pooled: Option<T>,
}

/// Where one instance is.
pub(crate) struct Place<'a, T> {
    pub(crate) engine: &'a Engine,
    /// What there is for that engine.
    pub(crate) of: &'a T,
    /// Held for as long as the instance exists.
    pub(crate) slot: Option<OwnedSemaphorePermit>,
}

impl Engines {
    /// The engines, with that many slots at most. Without any if the system does not have the address space: it is
    /// slower so, and nothing else.
    pub(crate) fn new(slots: usize) -> wasmtime::Result<Self> {
        let slots = slots.min(most_slots(mappings()));
        let pool = (slots > 0).then(|| Pool::new(slots)).and_then(|pool| {
            pool.inspect_err(|error| {
                tracing::warn!(%error, slots, "there are no slots for instances: calls take longer to start");
            })
            .ok()
        });
        Ok(Self {
            own: Engine::new(&engine::config())?,
            pool,
        })
    }

    /// The one that every component can run on; both take the same native code.
    pub(crate) fn own(&self) -> &Engine {
        &self.own
    }

    /// Lets everything that computes look up.
    pub(crate) fn increment_epoch(&self) {
        self.own.increment_epoch();
        if let Some(pool) = &self.pool {
            pool.engine.increment_epoch();
        }
    }

    /// The same for each engine.
    pub(crate) fn each<T>(
        &self,
        make: impl Fn(&Engine) -> wasmtime::Result<T>,
    ) -> wasmtime::Result<Each<T>> {
        Ok(Each {
            own: make(&self.own)?,
            pooled: self
                .pool
                .as_ref()
                .map(|pool| make(&pool.engine))
                .transpose()?,
        })
    }

    /// Loads native code for every engine that it fits.
    pub(crate) fn instate(
        &self,
        artifacts: &Artifacts,
        artifact: &Artifact,
    ) -> wasmtime::Result<Each<Component>> {
        let own = artifacts.instate(&self.own, artifact)?;
        let pool = self
            .pool
            .as_ref()
            .filter(|_| artifact.size() <= POOLED_CODE);
        let pooled = pool.and_then(|pool| {
            artifacts
                .instate(&pool.engine, artifact)
                .inspect_err(|error| tracing::debug!(%error, "a component fits into no slot"))
                .ok()
        });
        Ok(Each { own, pooled })
    }

    /// Where an instance is made now: in a slot if one is free and these limits are not beyond what fits into it.
    pub(crate) fn place<'a, T>(&'a self, of: &'a Each<T>, limits: &Limits) -> Place<'a, T> {
        let fits = limits.table_elements <= POOLED_TABLE_ELEMENTS as u64;
        if let (Some(pool), Some(pooled), true) = (&self.pool, &of.pooled, fits)
            && let Ok(slot) = Arc::clone(&pool.slots).try_acquire_owned()
        {
            pool.taken.fetch_add(1, Ordering::Relaxed);
            return Place {
                engine: &pool.engine,
                of: pooled,
                slot: Some(slot),
            };
        }
        Place {
            engine: &self.own,
            of: &of.own,
            slot: None,
        }
    }

    /// How often a slot was taken so far.
    pub(crate) fn slotted(&self) -> u64 {
        let taken = |pool: &Pool| pool.taken.load(Ordering::Relaxed);
        self.pool.as_ref().map_or(0, taken)
    }
}

impl Pool {
    fn new(slots: usize) -> wasmtime::Result<Self> {
        let count = u32::try_from(slots).unwrap_or(u32::MAX);
        Ok(Self {
            engine: Engine::new(&engine::pooled(count))?,
            slots: Arc::new(Semaphore::new(slots)),
            taken: Arc::default(),
        })
    }
}

/// As many slots as leave a process enough mappings for everything else.
fn most_slots(mappings: usize) -> usize {
    mappings.saturating_sub(OTHER_MAPPINGS) / SLOT_MAPPINGS
}

/// Mappings that a process may have.
fn mappings() -> usize {
    std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(USUAL_MAPPINGS)
}

#[cfg(test)]
mod tests {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};

    use super::*;

    #[test]
    fn the_same_native_code_fits_both_engines() {
        let hash = |config| {
            let mut hasher = DefaultHasher::new();
            let engine = Engine::new(&config).unwrap();
            engine.precompile_compatibility_hash().hash(&mut hasher);
            hasher.finish()
        };
        assert_eq!(hash(engine::config()), hash(engine::pooled(1)));
    }

    #[test]
    fn slots_leave_mappings_for_everything_else() {
        assert_eq!(most_slots(USUAL_MAPPINGS), 6_941);
        assert_eq!(most_slots(OTHER_MAPPINGS + SLOT_MAPPINGS), 1);
        assert_eq!(most_slots(OTHER_MAPPINGS + SLOT_MAPPINGS - 1), 0);
        assert_eq!(most_slots(0), 0);
    }

    #[test]
    fn a_place_is_a_slot_while_one_is_free_and_it_fits() {
        let engines = Engines::new(1).unwrap();
        let each = engines.each(|_| Ok(())).unwrap();
        let limits = Limits::default();
        let first = engines.place(&each, &limits);
        assert!(first.slot.is_some());
        assert!(engines.place(&each, &limits).slot.is_none(), "it is full");
        drop(first);
        assert!(engines.place(&each, &limits).slot.is_some());
        let wide = Limits {
            table_elements: limits.table_elements + 1,
            ..limits
        };
        assert!(engines.place(&each, &wide).slot.is_none());
        let large = Each {
            own: (),
            pooled: None,
        };
        assert!(engines.place(&large, &Limits::default()).slot.is_none());
        assert_eq!(engines.slotted(), 2);
        let none = Engines::new(0).unwrap();
        let each = none.each(|_| Ok(())).unwrap();
        assert!(none.place(&each, &Limits::default()).slot.is_none());
    }
}
