//! A node in this process that nobody can reach: for commands that need a component and no server.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use longshore_server::components::ChangeError;
use longshore_server::egress::vault::Vault;
use longshore_server::marks::Marks;
use longshore_server::policy::grant::Grant;
use longshore_server::seal::Keys;
use longshore_server::server::{Parts, Server};
use longshore_store::memory::Memory;
use serde_json::Value;

use crate::allowed::{Allowed, granted_in};
use crate::config::{Config, Told};
use crate::contents;
use crate::data::secrets_in;
use crate::engine::{self, Cache};
use crate::exit::{Exit, Failure, OrExit as _};
use crate::output;
use crate::project::component_at;
use crate::push::stem;

/// What a component is called whose file has a name that no component can have.
const UNNAMED: &str = "component";
/// The page with a remedy for each reason, part of the program so that it fits the version.
pub(crate) const REASONS: &str = include_str!("../../docs/reasons.md");

/// One component, ready to be called.
pub(crate) struct Alone {
    pub(crate) server: Server,
    /// As the admin API shows it, with schemas and limits.
    pub(crate) component: Value,
}

impl Alone {
    /// A node with that component and nothing else. It keeps nothing but native code, and that only
    /// where a server of the same data directory keeps its own.
    pub(crate) async fn with(
        file: &Path,
        told: &Told,
        config: Config,
        grant: Grant,
    ) -> Result<Self, Failure> {
        let shown = file.display();
        let most = config.numbers.bounds().bytes as u64;
        let bytes = match contents::read_aside(file, most).await {
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                return Err(refused(file, "too-large", &error.to_string()));
            }
            read => read
                .with_context(|| format!("reading the component {shown}"))
                .or_exit(Exit::Failed)?,
        };
        let name = stem(file).or_exit(Exit::Usage)?;
        Self::of(file, name, bytes, told, config, grant).await
    }

    /// The same of bytes that came out of a file.
    pub(crate) async fn of(
        file: &Path,
        name: &str,
        bytes: Vec<u8>,
        told: &Told,
        config: Config,
        grant: Grant,
    ) -> Result<Self, Failure> {
        let data = told.data()?;
        let mut config = config;
        config.numbers.server.own_dirs = vec![data.clone()];
        let cache = cache(&data);
        let sandbox = engine::sandbox(&config.numbers, cache).or_exit(Exit::CannotStart)?;
        let store = Memory::default();
        let mut settings = config.numbers.server;
        // What a task says can be seen here, what a held call says cannot.
        settings.inline_budget_ms = 0;
        // Its memory is all that there is to be kept in.
        settings.warm_ms = u64::MAX;
        let server = Server::new(Parts {
            sandbox,
            tasks: Arc::new(store.clone()),
            components: Arc::new(store.clone()),
            values: Arc::new(store.clone()),
            artifacts: Arc::new(store),
            settings,
            // Nothing that they seal outlives this process.
            keys: Keys::of_this_process(),
            marks: Marks::default(),
            vault: Vault::in_directory(secrets_in(&data)),
            version: env!("CARGO_PKG_VERSION"),
        });
        let name = name.parse().unwrap_or_else(|_| {
            let name = UNNAMED.parse();
            name.expect("it is the name of a component")
        });
        server.grant_beforehand(&name, grant);
        let component = server
            .install_static(name, bytes)
            .await
            .map_err(|error| match error {
                ChangeError::Refused(refusal) => refused(file, refusal.reason, &refusal.message),
                other => Failure::because(Exit::Failed, anyhow!(other)),
            })?;
        let component = server.inspection(&component);
        Ok(Self { server, component })
    }
}

/// Native code of a server of the same data directory. Without it all is well, only slower.
fn cache(data: &Path) -> Option<Cache> {
    Cache::kept(data).unwrap_or_else(|error| {
        output::note(&format!("native code is not kept: {error:#}"));
        None
    })
}

fn refused(file: &Path, reason: &str, message: &str) -> Failure {
    let mut text = format!(
        "the component {} is refused ({reason}): {message}",
        file.display()
    );
    if let Some(remedy) = remedy(reason) {
        text.push_str(&format!("; remedy: {remedy}"));
    }
    Failure {
        exit: Exit::Failed,
        reason: reason.to_owned(),
        error: anyhow!(text),
    }
}

/// What helps against a reason, from the page.
fn remedy(reason: &str) -> Option<&'static str> {
    let row = REASONS
        .lines()
        .find(|row| row.starts_with(&format!("| `{reason}` |")))?;
    row.trim_end()
        .trim_end_matches('|')
        .rsplit('|')
        .next()
        .map(str::trim)
}

/// The component's file, and what every command that runs guests can be told.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// The component's file, or the folder of a tool, which is built
    #[arg(value_name = "COMPONENT")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) told: Told,
    /// What the component may touch here, in a file, in TOML
    #[arg(long, value_name = "FILE")]
    grant: Option<PathBuf>,
    #[command(flatten)]
    allowed: Allowed,
}

impl Which {
    /// A node with that component, which has what was granted for it here and nothing else.
    pub(crate) async fn alone(self, config: Config) -> Result<Alone, Failure> {
        let mut grant = match &self.grant {
            Some(file) => granted_in(file).await?,
            None => Grant::default(),
        };
        self.allowed.add_to(&mut grant)?;
        let file = component_at(&self.file).await?;
        Alone::with(&file, &self.told, config, grant).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_comes_from_the_page() {
        assert!(
            remedy("core-module")
                .unwrap()
                .contains("longshore component new")
        );
        assert!(remedy("trap").unwrap().contains("last words"));
        assert_eq!(remedy("reason"), None);
        let failure = refused(Path::new("x.wasm"), "core-module", "m");
        assert_eq!(failure.reason, "core-module");
        assert!(
            failure
                .to_string()
                .contains("x.wasm is refused (core-module): m; remedy: wrap it"),
            "{failure}"
        );
    }
}
