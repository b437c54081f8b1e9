# `just` lists what can be done; .ci/run calls the same recipes.
set shell := ["bash", "-euo", "pipefail", "-c"]

# What there is to do.
default:
    @just --list

# Build the server and the example tools, and serve the examples on 127.0.0.1:8383, small ones first.
run *ARGS: build guests
    target/debug/longshore serve {{ARGS}} $(ls -rS guest-examples/target/components/*.wasm)

# Build everything of the host, with the same features for every later step.
build:
    cargo build --locked --workspace --all-targets

# Build the example tools into guest-examples/target/components/NAME.wasm.
guests:
    guest-examples/build

# All tests: the rooms' own, then the whole house over real guests, processes and clients.
test: build guests
    cargo test --locked --workspace --all-targets

# The tests of the guest helpers, which run on this machine and not in a sandbox.
test-guests:
    cd guest-examples && cargo test --locked --target "$(rustc -vV | sed -n 's/host: //p')" -p longshore-guest -p longshore-guest-macros

# What the README tells whoever writes a tool, in an empty folder, and how long that took.
new-user LANG: build
    #!/usr/bin/env bash
    set -euo pipefail
    commands=$(.ci/readme new | sed 's/--lang python/--lang {{LANG}}/')
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    PATH=$PWD/target/debug:$PATH
    SECONDS=0
    said=$(cd "$folder" && bash -euc "$commands")
    echo "$said"
    grep -qx 'Hello, Ada!' <<<"$said"
    echo "from nothing to a tool in {{LANG}} that was called: $SECONDS s"

# The MCP conformance suite against the server and its example component; needs npm.
conformance: build guests
    tests/conformance/run target/debug/longshore guest-examples/target/components/conformance.wasm

# Formatting and lints, as errors.
check:
    cargo fmt --all --check
    cargo clippy --locked --workspace --all-targets -- -D warnings
    cd guest-examples && cargo fmt --all --check

# Figures of this machine, in an optimised build; best on a machine that does nothing else. PARTS for some of them.
bench *PARTS: guests
    cargo build --locked --release --workspace
    target/release/bench {{PARTS}}

# A hundred thousand runs of two guests that look for what the other left.
canary: build
    LONGSHORE_TEST_ROUNDS=100000 cargo test --locked --workspace --test house -- --nocapture canary::

# Kills, restarts and computing that outlives processes, ROUNDS times as long as among the tests.
chaos ROUNDS="5": build guests
    LONGSHORE_TEST_ROUNDS={{ROUNDS}} cargo test --locked --workspace --all-targets --test house -- --nocapture survive::kills survive::spinning survive::crashes survive::many

# Servers that break one rule each, under all tests but those that are made to notice: what fails then notices as well.
mutants: guests
    #!/usr/bin/env bash
    set -uo pipefail
    noticed=0
    for mutant in outputs-unrecorded kept-late epoch-unchecked; do
        printf '\n== %s\n' "$mutant"
        LONGSHORE_MUTANT=$mutant cargo build --locked --workspace --all-targets || exit
        LONGSHORE_MUTANT=$mutant cargo test --locked --workspace --all-targets --test house -- \
            --skip survive::crashes --skip survive::kills || noticed=1
    done
    cargo build --locked --workspace --all-targets && exit $noticed

# A server at its admission limit for SECONDS: it must hold at the end what it held when it was warm.
soak SECONDS="600": guests
    cargo build --locked --release --workspace
    target/release/soak {{SECONDS}}
