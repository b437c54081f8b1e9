//! The log: to stderr, as much as LONGSHORE_LOG asks for.

use std::io::{self, IsTerminal as _};

use anyhow::{Context as _, anyhow};
use tracing_subscriber::EnvFilter;

use crate::env;

/// What an operator acts on, and nothing of the engine's and the transport's inner life.
pub(crate) const OPERATOR: &str =
    "warn,longshore=info,longshore_server=info,longshore_sandbox=info,longshore_store=info";

/// What somebody at the prompt should know beside the answer.
pub(crate) const PROMPT: &str = "warn";

/// Starts logging, as much as that unless somebody asks for more or less. Once for each process.
pub(crate) fn start(default: &str) -> anyhow::Result<()> {
    let asked = env::text(env::LOG).map_err(|fault| anyhow!(fault))?;
    let filter = filter(asked.as_deref().unwrap_or(default))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .try_init()
        .map_err(|error| anyhow!(error))
}

fn filter(asked: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::builder().parse(asked).with_context(|| {
        format!("{} cannot be understood: write a level, as in `info`, or levels by part, as in `warn,longshore_server=debug`", env::LOG)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters() {
        for asked in [
            OPERATOR,
            PROMPT,
            "info",
            "warn,longshore_server=debug",
            "off",
        ] {
            assert!(filter(asked).is_ok(), "{asked}");
        }
        let error = filter("longshore=loud").unwrap_err().to_string();
        assert!(error.contains("LONGSHORE_LOG"), "{error}");
    }
}
