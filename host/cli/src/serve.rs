//! `serve`: the pieces of a node put together in the right order, and taken apart again.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use longshore_server::components::ChangeError;
use longshore_server::http::bind;
use longshore_server::server::{Parts, Server};
use longshore_store::sqlite::Sqlite;
use serde_json::json;

use crate::config::{Config, Told};
use crate::data::{self, DataDir};
use crate::engine::{self, Cache};
use crate::env;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::output;
use crate::push::stem;
use crate::settings;
use crate::signals::Stop;
use crate::trace;
use crate::{Done, answered};

/// How long what still runs may take to notice that the server is over.
const LEAVING: Duration = Duration::from_secs(3);

/// Serves components over MCP until it is told to stop.
#[derive(clap::Args)]
#[command(after_long_help = settings::help())]
pub(crate) struct Serve {
    /// Components to serve, each under its file's name without .wasm, for as long as this server runs
    #[arg(value_name = "COMPONENT")]
    components: Vec<PathBuf>,
    /// Where to listen: a loopback address; with port 0, any free port [env: LONGSHORE_LISTEN]
    /// [default: 127.0.0.1:8383]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    told: Told,
    /// Prints the settings in force and where each came from, and serves nothing
    #[arg(long)]
    print_config: bool,
}

/// What was there before anybody could call.
struct Ready {
    server: Server,
    named: usize,
    loaded: usize,
    recovered: usize,
}

impl Serve {
    /// Runs until a signal, or until the disk fails.
    pub(crate) fn run(self, as_json: bool) -> Result<Option<Done>, Failure> {
        let config = self.told.config(self.listen)?;
        if self.print_config {
            return Ok(Some(answered(config.to_json(), |_| config.to_text())));
        }
        let named = named(&self.components).or_exit(Exit::Usage)?;
        trace::start(trace::OPERATOR).or_exit(Exit::Usage)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("starting the threads of the server")
            .or_exit(Exit::CannotStart)?;
        let served = self.serve(&runtime, config, &named, as_json);
        // A thread that writes a file can be waited for a moment; the rest has ended.
        runtime.shutdown_timeout(LEAVING);
        served.map(|()| None)
    }

    fn serve(
        &self,
        runtime: &tokio::runtime::Runtime,
        config: Config,
        named: &[(String, &Path)],
        as_json: bool,
    ) -> Result<(), Failure> {
        let data = DataDir::open(&self.told.data()?).or_exit(Exit::CannotStart)?;
        // First of all, since its lock keeps another server from making the secrets as well.
        let store = Sqlite::open(&data.database()).or_exit(Exit::CannotStart)?;
        let token = token(&data).or_exit(Exit::CannotStart)?;
        let sandbox = Cache::of(&data)
            .and_then(|cache| engine::sandbox(&config.numbers, Some(cache)))
            .or_exit(Exit::CannotStart)?;
        let listen = config.listen;
        let mut config = config;
        fit_memory(&mut config.numbers.server);
        let server = Server::new(Parts {
            sandbox,
            tasks: Arc::new(store.clone()),
            components: Arc::new(store.clone()),
            settings: config.numbers.server,
            version: env!("CARGO_PKG_VERSION"),
        });
        runtime.block_on(async {
            let mut stop = Stop::listen(Exit::Failed)
                .context("listening for signals")
                .or_exit(Exit::CannotStart)?;
            let ready = tokio::select! {
                ready = prepare(server, named) => ready.or_exit(Exit::CannotStart)?,
                () = stop.asked() => return Ok(()),
            };
            let bound = bind(listen).await.or_exit(Exit::CannotStart)?;
            say_ready(bound.address(), &data, &ready, as_json).or_exit(Exit::CannotStart)?;

            let cleaning = tokio::spawn(ready.server.clone().keep_clean());
            let mut lost = None;
            let until = async {
                tokio::select! {
                    () = stop.asked() => tracing::info!("stopping"),
                    cause = store.given_up() => lost = Some(cause),
                }
            };
            bound.serve(ready.server, &token, until).await;
            cleaning.abort();
            match lost {
                None => Ok(()),
                // Nobody knows what the disk holds until the file is opened again.
                Some(cause) => Err(Failure::new(
                    Exit::Failed,
                    format!("{cause}; the server has stopped: see to the disk and start it again"),
                )),
            }
        })
    }
}

/// Never more runs than the machine has memory for, if each took all that it may: a guest that grows must
/// not end the server.
fn fit_memory(settings: &mut longshore_server::settings::Settings) {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total_kib: Option<u64> = info
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|kib| kib.parse().ok());
    let Some(total_kib) = total_kib else { return };
    let for_guests = total_kib * 1024 / 4 * 3;
    let each = settings.limits.memory_bytes.max(1);
    let fit = usize::try_from(for_guests / each)
        .unwrap_or(usize::MAX)
        .max(1);
    if fit < settings.running {
        tracing::warn!(
            allowed = settings.running,
            fit,
            "fewer runs at once than allowed: this machine has memory for no more, at the memory that each may use"
        );
        settings.running = fit;
    }
}

/// The files with the names that they get. Whether a name is a good one is the server's to say.
fn named(files: &[PathBuf]) -> anyhow::Result<Vec<(String, &Path)>> {
    let mut names = BTreeSet::new();
    let mut named = Vec::with_capacity(files.len());
    for file in files {
        let name = stem(file)?.to_owned();
        if !names.insert(name.clone()) {
            bail!(
                "two of the files would be named {name}: rename {}",
                file.display()
            );
        }
        named.push((name, file.as_path()));
    }
    Ok(named)
}

/// The token from the environment, or else the one that is kept.
fn token(data: &DataDir) -> anyhow::Result<String> {
    match env::text(env::ADMIN_TOKEN).map_err(|fault| anyhow!(fault))? {
        Some(token) => {
            data::check_token(&token)
                .with_context(|| format!("{} is no token", env::ADMIN_TOKEN))?;
            Ok(token)
        }
        None => data.admin_token(),
    }
}

/// Everything that must be over before the first request.
async fn prepare(server: Server, named: &[(String, &Path)]) -> anyhow::Result<Ready> {
    for (name, file) in named {
        let shown = file.display();
        let bytes = tokio::fs::read(file)
            .await
            .with_context(|| format!("reading the component {shown}"))?;
        let name = name
            .parse()
            .with_context(|| format!("the component {shown} is named after its file: rename it"))?;
        server
            .install_static(name, bytes)
            .await
            .map_err(|error| match error {
                ChangeError::Refused(refusal) => anyhow!(
                    "the component {shown} is refused ({}): {}",
                    refusal.reason,
                    refusal.message
                ),
                other => anyhow!(other).context(format!("serving the component {shown}")),
            })?;
    }
    let loaded = server
        .load()
        .await
        .context("loading the uploaded components")?;
    let recovered = server
        .recover()
        .await
        .context("looking after the tasks of an earlier run")?;
    if recovered > 0 {
        tracing::warn!(
            tasks = recovered,
            "tasks of an earlier run of this server were interrupted"
        );
    }
    Ok(Ready {
        server,
        named: named.len(),
        loaded,
        recovered,
    })
}

/// Says where everything is, once it can be reached.
fn say_ready(
    address: SocketAddr,
    data: &DataDir,
    ready: &Ready,
    as_json: bool,
) -> std::io::Result<()> {
    let url = format!("http://{address}/mcp");
    let dir = data.path().display();
    let token_file = std::env::var_os(env::ADMIN_TOKEN)
        .is_none()
        .then(|| data.admin_token_file());
    if as_json {
        return output::print(&output::json(&json!({
            "event": "ready",
            "url": url,
            "admin": format!("http://{address}/v1"),
            "data": data.path().to_string_lossy(),
            "adminTokenFile": token_file.map(|path| path.to_string_lossy().into_owned()),
            "components": { "named": ready.named, "uploaded": ready.loaded },
            "interrupted": ready.recovered,
        })));
    }
    let token = token_file.map_or_else(
        || env::ADMIN_TOKEN.to_owned(),
        |path| path.display().to_string(),
    );
    let components = ready.named + ready.loaded;
    let note = if components == 0 {
        "; no components yet: upload one with `longshore push FILE`"
    } else {
        ""
    };
    output::note(&format!(
        "ready at {url}, data in {dir}, admin token in {token}{note}"
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_cannot_share_a_name() {
        let files = [PathBuf::from("a/hello.wasm"), PathBuf::from("b/other.wasm")];
        let names: Vec<String> = named(&files)
            .unwrap()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["hello", "other"]);
        let error = named(&[PathBuf::from("a/hello.wasm"), PathBuf::from("b/hello.wasm")])
            .unwrap_err()
            .to_string();
        assert!(error.contains("b/hello.wasm"), "{error}");
    }
}
