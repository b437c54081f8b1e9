//! The one configuration of the engine. Parent and compile child must agree on every line here,
//! since native code is valid only for the settings that it was made with.

use wasmtime::{Config, OptLevel};

/// Frames of the guest; part of what a guest can observe, so it never changes with the machine.
const WASM_STACK: usize = 512 * 1024;
/// The fiber's whole stack: the guest's frames and those of host functions that it calls.
const ASYNC_STACK: usize = 2 * 1024 * 1024;

/// The settings for compiling and for running.
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
