# `just` lists what can be done; .ci/run calls the same recipes.
set shell := ["bash", "-euo", "pipefail", "-c"]

# What there is to do.
default:
    @just --list

# Build the server and the example tools, and serve the examples on 127.0.0.1:8383.
run *ARGS: build guests
    target/debug/longshore serve {{ARGS}} guest-examples/target/components/*.wasm

# Build everything of the host, with the same features for every later step.
build:
    cargo build --locked --workspace --all-targets

# Build the example tools into guest-examples/target/components/NAME.wasm.
guests:
    #!/usr/bin/env bash
    set -euo pipefail
    cd guest-examples
    target=wasm32-wasip2
    rustup target list --installed | grep -qx "$target" || rustup target add "$target"
    cargo build --release --locked --workspace --target "$target" --target-dir target
    mkdir -p target/components
    for manifest in */Cargo.toml; do
        grep -q cdylib "$manifest" || continue
        name=${manifest%/Cargo.toml}
        built=target/$target/release/${name//-/_}.wasm
        placed=target/components/$name.wasm
        # An unchanged file keeps its time, so that nothing that depends on it is done again.
        cmp -s "$built" "$placed" || cp "$built" "$placed"
    done
    # A component whose crate is gone is not an example any more.
    for placed in target/components/*.wasm; do
        [ -f "$(basename "$placed" .wasm)/Cargo.toml" ] || rm "$placed"
    done

# All tests: the rooms' own, then the whole house over real guests, processes and clients.
test: build guests
    cargo test --locked --workspace --all-targets

# The tests of the guest helpers, which run on this machine and not in a sandbox.
test-guests:
    cd guest-examples && cargo test --locked --target "$(rustc -vV | sed -n 's/host: //p')" -p longshore-guest -p longshore-guest-macros

# The MCP conformance suite against the server and its example component; needs npm.
conformance: build guests
    tests/conformance/run target/debug/longshore guest-examples/target/components/conformance.wasm

# Formatting and lints, as errors.
check:
    cargo fmt --all --check
    cargo clippy --locked --workspace --all-targets -- -D warnings
    cd guest-examples && cargo fmt --all --check

# Figures of this machine, in an optimised build; best on a machine that does nothing else.
bench: guests
    cargo build --locked --release --workspace
    target/release/bench
