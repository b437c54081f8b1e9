//! `serve`: the pieces of a node put together in the right order, and taken apart again.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use longshore_server::components::Source;
use longshore_server::egress::vault::Vault;
use longshore_server::folder::Folder;
use longshore_server::http::{Admin, Bound, bind};
use longshore_server::marks::Marks;
use longshore_server::recovery::Recovered;
use longshore_server::server::{Parts, Server};
use longshore_server::starting::{self, File};
use longshore_server::stdio;
use longshore_store::sqlite::{OpenError, Sqlite};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::config::{self, Config, Options, Told};
use crate::contents;
use crate::data::{self, DataDir};
use crate::engine::{self, Cache};
use crate::env;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::output;
use crate::push::stem;
use crate::relay::{self, Found, Passed};
use crate::secret;
use crate::settings;
use crate::signals::Stop;
use crate::trace;
use crate::{Done, answered};

/// How long what still runs may take to notice that the server is over.
const LEAVING: Duration = Duration::from_secs(3);
/// How long runs may take to write down where they stand when the server stops.
const LETTING_GO: Duration = Duration::from_secs(5);

/// Serves components over MCP until it is told to stop.
#[derive(clap::Args)]
#[command(after_long_help = settings::help())]
pub(crate) struct Serve {
    /// Components to serve, each under its file's name without .wasm, for as long as this server runs
    #[arg(value_name = "COMPONENT")]
    components: Vec<PathBuf>,
    /// Where to listen: a loopback address; with port 0, any free port [env: LONGSHORE_LISTEN]
    /// [default: 127.0.0.1:8383]
    #[arg(long, value_name = "ADDRESS", value_parser = config::address)]
    listen: Option<SocketAddr>,
    /// A directory whose *.wasm are served as well, each under its file's name; what changes in it is taken up while the
    /// server runs, at once on SIGHUP [env: LONGSHORE_COMPONENTS_DIR]
    #[arg(long, value_name = "DIR")]
    components_dir: Option<PathBuf>,
    /// Speaks MCP on stdin and stdout, for a client that starts its own server. Then it listens nowhere unless --listen says
    /// where; if another server has the data already, it passes on to that one
    #[arg(long)]
    stdio: bool,
    /// Starts though the secret in the data directory is missing or another one, and ends the unfinished tasks that
    /// cannot go on without theirs
    #[arg(long)]
    give_up_sealed: bool,
    #[command(flatten)]
    told: Told,
    /// Prints the settings in force and where each came from, and serves nothing
    #[arg(long)]
    print_config: bool,
}

/// What was there before anybody could call.
struct Ready {
    server: Server,
    folder: Option<Folder>,
    named: usize,
    loaded: usize,
    recovered: Recovered,
}

/// The database, or whoever has it.
type Opened = Found<Sqlite>;

impl Serve {
    /// The database. A server for pipes that finds it taken looks for whoever has it.
    fn store(&self, runtime: &tokio::runtime::Runtime, data: &DataDir) -> Result<Opened, Failure> {
        if !self.stdio {
            return Sqlite::open(&data.database())
                .map(Found::Free)
                .or_exit(Exit::CannotStart);
        }
        let open = || match Sqlite::open(&data.database()) {
            Ok(store) => Ok(Some(store)),
            Err(OpenError::InUse { .. }) => Ok(None),
            Err(error) => Err(error).or_exit(Exit::CannotStart),
        };
        runtime.block_on(relay::find(data.path(), open))
    }

    /// Runs until a signal, or until the disk fails.
    pub(crate) fn run(self, as_json: bool) -> Result<Option<Done>, Failure> {
        let config = self.told.config(Options {
            listen: self.listen,
            components_dir: self.components_dir.clone(),
        })?;
        if self.print_config {
            return Ok(Some(answered(config.to_json(), |_| config.to_text())));
        }
        let named = named(&self.components).or_exit(Exit::Usage)?;
        trace::start(trace::OPERATOR).or_exit(Exit::Usage)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(answering_threads())
            .enable_all()
            .build()
            .context("starting the threads of the server")
            .or_exit(Exit::CannotStart)?;
        let served = self.serve(&runtime, config, &named, as_json);
        if self.stdio {
            // A thread may stand at stdin for ever. Whatever had to be written has been.
            runtime.shutdown_background();
        } else {
            // A thread that writes a file can be waited for a moment; the rest has ended.
            runtime.shutdown_timeout(LEAVING);
        }
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
        let mut stdin = runtime.block_on(async { tokio::io::stdin() });
        let mut said = Vec::new();
        let store = loop {
            let stream = match self.store(runtime, &data)? {
                Found::Free(store) => break store,
                Found::Server(stream) => stream,
            };
            output::note(
                "another longshore serves this data: its components and settings are in force, and this one passes on to it",
            );
            match runtime.block_on(relay::pass_on(stream, &mut stdin, &mut said))? {
                Passed::Over => return Ok(()),
                Passed::Unheard => {}
            }
        };
        let mut config = config;
        let components_dir = Some(config.components_dir.clone());
        let components_dir = components_dir.filter(|dir| !dir.as_os_str().is_empty());
        let own = [
            Some(data.path()),
            components_dir.as_deref(),
            self.told.file(),
        ];
        config.numbers.server.own_dirs = own.into_iter().flatten().map(Path::to_owned).collect();
        let token = token(&data).or_exit(Exit::CannotStart)?;
        let place = match std::env::var_os(env::ADMIN_TOKEN) {
            Some(_) => format!("{}, as this server was given it", env::ADMIN_TOKEN),
            None => data.admin_token_file().display().to_string(),
        };
        let secret::Known { secret, gives_up } = runtime
            .block_on(secret::of(&data, &store, self.give_up_sealed))
            .or_exit(Exit::CannotStart)?;
        let sign = secret.sign();
        let sandbox = Cache::of(&data, &secret)
            .and_then(|cache| engine::sandbox(&config.numbers, Some(cache)))
            .or_exit(Exit::CannotStart)?;
        let listen = config.listen;
        let folder_every = Duration::from_millis(config.numbers.folder_ms);
        fit_memory(&mut config.numbers.server);
        let server = Server::new(Parts {
            sandbox,
            tasks: Arc::new(store.clone()),
            components: Arc::new(store.clone()),
            values: Arc::new(store.clone()),
            artifacts: Arc::new(store.clone()),
            settings: config.numbers.server,
            keys: secret.run_keys(),
            marks: marks(&data),
            vault: Vault::in_directory(data.secrets()),
            version: env!("CARGO_PKG_VERSION"),
        });
        runtime.block_on(async {
            let mut stop = Stop::listen(Exit::Failed)
                .context("listening for signals")
                .or_exit(Exit::CannotStart)?;
            // Before components are compiled: an address that cannot be had is not waited for.
            let bound = if self.stdio && self.listen.is_none() {
                None
            } else {
                Some(bind(listen).await.or_exit(Exit::CannotStart)?)
            };
            if gives_up {
                let given_up = server.give_up_sealed().await;
                given_up
                    .context("ending the tasks that need another secret")
                    .or_exit(Exit::CannotStart)?;
                let noted = store.note_secret(sign).await;
                noted
                    .context("noting the new secret")
                    .or_exit(Exit::CannotStart)?;
            }
            let ready = tokio::select! {
                ready = prepare(server, named, components_dir) => {
                    ready.map_err(|error| damaged(error, &data)).or_exit(Exit::CannotStart)?
                }
                () = stop.asked() => return Ok(()),
            };
            let address = bound.as_ref().map(Bound::address);
            if let Some(address) = address {
                ready.server.listens_at(address);
            }
            let as_json = as_json && !self.stdio;
            say_ready(address, &data, &ready, as_json).or_exit(Exit::CannotStart)?;
            let relaying = relay::Open::serve(data.path(), |listener| {
                stdio::relay::accept(ready.server.clone(), listener)
            });

            let Ready { server, folder, .. } = ready;
            let waking = tokio::spawn(server.clone().keep_awake());
            let leaving = server.clone();
            let cleaning = tokio::spawn(server.clone().keep_clean());
            let following = match folder {
                Some(folder) => {
                    let now = hangups()
                        .context("listening for SIGHUP")
                        .or_exit(Exit::CannotStart)?;
                    Some(tokio::spawn(folder.follow(
                        server.clone(),
                        folder_every,
                        now,
                    )))
                }
                None => None,
            };
            let mut lost = None;
            let until = async {
                tokio::select! {
                    () = stop.asked() => tracing::info!("stopping"),
                    cause = store.given_up() => lost = Some(cause),
                }
                relaying.close();
            };
            let admin = Admin {
                token: &token,
                place: &place,
            };
            let (over, is_over) = tokio::sync::oneshot::channel::<()>();
            let with_pipes = async {
                if self.stdio {
                    // Behind what was said to another server that ended before it heard it.
                    let input = std::io::Cursor::new(said).chain(stdin);
                    stdio::serve(&server, input, tokio::io::stdout(), until, || {
                        relaying.close()
                    })
                    .await;
                } else {
                    until.await;
                }
                drop(over);
            };
            match bound {
                Some(bound) => {
                    let until = async {
                        let _either_way = is_over.await;
                    };
                    tokio::join!(bound.serve(server.clone(), admin, until), with_pipes);
                }
                None => with_pipes.await,
            }
            cleaning.abort();
            if let Some(following) = following {
                following.abort();
            }
            waking.abort();
            leaving.leave(LETTING_GO).await;
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

/// Threads that answer callers: half of the cores. Most calls are over within a turn on one of them, and each makes and
/// unmakes an instance, which changes the one memory map of the process: two threads on two cores took twice the CPU
/// for a call and served fewer of them than one, since each stops the other to do so.
fn answering_threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cores / 2).max(1)
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

/// Without them all is well, but that innocent runs may be taken for what brought the server down.
fn marks(data: &DataDir) -> Marks {
    let path = data.marks();
    Marks::open(&path).unwrap_or_else(|error| {
        tracing::warn!(%error, file = %path.display(), "it cannot be told which runs were on a thread when the server died");
        Marks::default()
    })
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

/// Each SIGHUP, from now on, as a notice.
fn hangups() -> std::io::Result<Arc<Notify>> {
    let mut hangup = signal(SignalKind::hangup())?;
    let notice = Arc::new(Notify::new());
    let given = Arc::clone(&notice);
    // It lives as long as the process.
    drop(tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            given.notify_one();
        }
    }));
    Ok(notice)
}

/// A damaged database with its place and the remedy; any other error as it is.
fn damaged(error: anyhow::Error, data: &DataDir) -> anyhow::Error {
    if !starting::is_damage(&error) {
        return error;
    }
    let path = data.database();
    error.context(format!(
        "the database {} is damaged: restore it from a backup, or start with another data directory (--data DIR)",
        path.display()
    ))
}

/// Everything that must be over before the first request. Nothing is compiled here.
async fn prepare(
    server: Server,
    named: &[(String, &Path)],
    components_dir: Option<PathBuf>,
) -> anyhow::Result<Ready> {
    let mut files = Vec::with_capacity(named.len());
    for (name, file) in named {
        let shown = file.display();
        let bytes = contents::read_aside(file, server.most_bytes())
            .await
            .with_context(|| format!("reading the component {shown}"))?;
        let name = name
            .parse()
            .with_context(|| format!("the component {shown} is named after its file: rename it"))?;
        let bytes: Arc<[u8]> = Arc::from(bytes);
        server.check(Arc::clone(&bytes)).await.map_err(|refusal| {
            anyhow!(
                "the component {shown} is refused ({}): {}",
                refusal.reason,
                refusal.message
            )
        })?;
        files.push(File {
            name,
            source: Source::CommandLine,
            bytes,
        });
    }
    let folder = match components_dir {
        Some(dir) => {
            let shown = dir.display().to_string();
            let reading = || format!("reading the components directory {shown}");
            let mut folder = Folder::at(dir);
            files.extend(folder.files(&server).await.with_context(reading)?);
            Some(folder)
        }
        None => None,
    };
    let named = files.len();
    let loaded = server
        .begin(files)
        .await
        .context("loading the uploaded components")?;
    let recovered = server
        .recover()
        .await
        .context("looking after the tasks of an earlier run")?;
    if recovered != Recovered::default() {
        let Recovered {
            going_on,
            parked,
            interrupted,
            quarantined,
        } = recovered;
        tracing::info!(
            going_on,
            parked,
            interrupted,
            quarantined,
            "tasks of an earlier run of this server"
        );
    }
    Ok(Ready {
        server,
        folder,
        named,
        loaded,
        recovered,
    })
}

/// Says where everything is, once it can be reached.
fn say_ready(
    address: Option<SocketAddr>,
    data: &DataDir,
    ready: &Ready,
    as_json: bool,
) -> std::io::Result<()> {
    let Some(address) = address else {
        output::note(&format!(
            "ready on stdin and stdout, data in {}",
            data.path().display()
        ));
        return Ok(());
    };
    let url = format!("http://{address}/mcp");
    let preparing = ready.server.preparing();
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
            "components": { "named": ready.named, "uploaded": ready.loaded, "preparing": preparing },
            "tasks": {
                "goingOn": ready.recovered.going_on,
                "parked": ready.recovered.parked,
                "interrupted": ready.recovered.interrupted,
                "quarantined": ready.recovered.quarantined,
            },
        })));
    }
    let token = token_file.map_or_else(
        || env::ADMIN_TOKEN.to_owned(),
        |path| path.display().to_string(),
    );
    let components = ready.named + ready.loaded;
    let note = match (components, preparing) {
        (0, _) => format!(
            "; no components yet: upload one with `longshore push{} FILE`",
            reach(address, data)
        ),
        (_, 0) => String::new(),
        (_, 1) => "; one component is still being made ready".to_owned(),
        (_, some) => format!("; {some} components are still being made ready"),
    };
    output::note(&format!(
        "ready at {url}, data in {dir}, admin token in {token}{note}"
    ));
    Ok(())
}

/// What a command needs to find this server, if it is not where commands look by themselves.
fn reach(address: SocketAddr, data: &DataDir) -> String {
    let mut options = String::new();
    if address != config::LISTEN_DEFAULT {
        options.push_str(&format!(" --server http://{address}"));
    }
    let is_default = data::default_dir().is_ok_and(|default| default == data.path());
    if !is_default && std::env::var_os(env::ADMIN_TOKEN).is_none() {
        options.push_str(&format!(" --data {}", output::quoted(data.path())));
    }
    options
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
