//! The one configuration of the engine. Parent and compile child must agree on every line here that is not about
//! allocation, since native code is valid only for the settings that it was made with.

use wasmtime::{Config, Enabled, OptLevel, PoolingAllocationConfig};

/// Frames of the guest; part of what a guest can observe, so it never changes with the machine.
const WASM_STACK: usize = 512 * 1024;
/// The fiber's whole stack: the guest's frames and those of host functions that it calls.
const ASYNC_STACK: usize = 2 * 1024 * 1024;

/// What a component may consist of to fit into one slot of the pool. What needs more gets no slot: it is rare, and
/// takes so long to start that making its memory is the least of it.
const CORE_INSTANCES: u32 = 16;
const TABLES: u32 = 4;
/// Elements of one table in the pool: as many as a run may have that was told nothing else.
pub(crate) const POOLED_TABLE_ELEMENTS: usize = 100_000;
/// Of a memory in the pool, the beginning that is overwritten when its guest is gone. The rest is given back to the
/// system, for which other threads are interrupted, and taken again page by page: twice the work of a small guest. So
/// this is what one needs that has a stack of 64 KiB, data, and a little to spare; more would be slower for large ones.
const KEPT_MEMORY: usize = 128 * 1024;
/// The same of a table: that of most guests is smaller.
const KEPT_TABLE: usize = 16 * 1024;

/// The settings for compiling, and for running where each instance gets memory of its own from the system.
pub(crate) fn config() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(ASYNC_STACK)
        .cranelift_opt_level(OptLevel::Speed)
        // A run may go on after a replay on another machine: floats must agree to the bit.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .wasm_memory64(false)
        .wasm_gc(false)
        // Interpreters in C catch their errors with these.
        .wasm_exceptions(true)
        .wasm_function_references(false);
    config
}

/// The settings for running in that many slots that were made before. They are those of [`config`] but for where
/// memory comes from, so the same native code fits.
pub(crate) fn pooled(slots: u32) -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool
        // It skips pages that are swapped out or being moved by the kernel, and so hands what one guest left to
        // the next.
        .pagemap_scan(Enabled::No)
        .total_component_instances(slots)
        .total_core_instances(slots.saturating_mul(CORE_INSTANCES))
        .max_core_instances_per_component(CORE_INSTANCES)
        .total_tables(slots.saturating_mul(TABLES))
        .max_tables_per_component(TABLES)
        .max_tables_per_module(TABLES)
        .table_elements(POOLED_TABLE_ELEMENTS)
        // What catches exceptions has a heap for them beside its memory.
        .total_memories(slots.saturating_mul(2))
        .total_gc_heaps(slots)
        .max_memories_per_component(1)
        .total_stacks(slots)
        .linear_memory_keep_resident(KEPT_MEMORY)
        .table_keep_resident(KEPT_TABLE);
    let mut config = config();
    config.allocation_strategy(pool);
    config
}
