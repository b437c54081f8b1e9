//! `dev`: the tool of a folder, served while somebody writes it.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use longshore_server::component::Digest;
use longshore_server::policy::grant::Grant;
use longshore_server::policy::manifest::Manifest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::Done;
use crate::admin::{Client, Reach};
use crate::config;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::new::{named, tools};
use crate::output::{self, cell, line};
use crate::project::{Project, sources};
use crate::prompt::Prompt;
use crate::signals::Stop;
use crate::trace;

/// How often it is looked whether something was saved: nobody notices less.
const LOOK: Duration = Duration::from_millis(300);
/// How long a server may take to notice what was built, before it is said that it does not.
const TAKEN_UP: Duration = Duration::from_secs(120);
/// How long it takes the server to look, at most.
const LOOKED: Duration = Duration::from_secs(3);

/// Builds and serves the tool of a folder, again whenever something in it is saved.
///
/// It says what the tool asks to touch, and lets you grant it. The server is for this tool alone and keeps its data in
/// the folder, below .longshore.
#[derive(clap::Args)]
pub(crate) struct Dev {
    /// The folder
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Where to listen: a loopback address; with port 0, any free port [default: 127.0.0.1:8383]
    #[arg(long, value_name = "ADDRESS", value_parser = config::address)]
    listen: Option<SocketAddr>,
    /// Grant what the tool asks for without asking back
    #[arg(long)]
    grant_all: bool,
}

/// The server, and how to speak with it.
struct Serving {
    child: Child,
    client: Client,
    url: String,
    /// Where it looks for components.
    folder: PathBuf,
}

impl Dev {
    pub(crate) async fn run(self) -> Result<Done, Failure> {
        trace::start(trace::PROMPT).or_exit(Exit::Usage)?;
        let mut stop = Stop::listen(Exit::Cancelled)
            .context("listening for signals")
            .or_exit(Exit::Failed)?;
        let project = Project::at(&self.folder)?;
        let mut serving = self.serve(&project).await?;
        let ended = tokio::select! {
            ended = self.follow(&project, &mut serving) => ended,
            () = stop.asked() => Ok(()),
        };
        serving.end().await;
        ended?;
        let document = json!({ "name": project.name().as_str(), "served": false });
        Ok(crate::answered(document, |document| {
            format!("{} is not served any more", cell(document, "name"))
        }))
    }

    /// A server of its own for what is built.
    async fn serve(&self, project: &Project) -> Result<Serving, Failure> {
        let folder = project.ours().join("serving");
        let data = project.ours().join("data");
        fs::create_dir_all(&folder)
            .with_context(|| format!("making {}", folder.display()))
            .or_exit(Exit::Failed)?;
        let listen = self.listen.unwrap_or(config::LISTEN_DEFAULT);
        let program = std::env::current_exe()
            .context("finding this program")
            .or_exit(Exit::Failed)?;
        let mut child = Command::new(program)
            .args(["serve", "--json", "--set", "components.poll_ms=500"])
            .arg("--listen")
            .arg(listen.to_string())
            .arg("--components-dir")
            .arg(&folder)
            .arg("--data")
            .arg(&data)
            // What is served is said here.
            .env(
                crate::env::LOG,
                std::env::var_os(crate::env::LOG).unwrap_or_else(|| "warn".into()),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // A Ctrl-C is for this process, which tells the server once.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("starting the server")
            .or_exit(Exit::CannotStart)?;
        let said = child.stdout.take().expect("it was asked for");
        let ready = BufReader::new(said).lines().next_line().await;
        let ready = ready
            .ok()
            .flatten()
            .and_then(|line| serde_json::from_str::<Value>(&line).ok());
        let Some(ready) = ready.filter(|ready| ready["event"] == "ready") else {
            let _its_words_say_more = child.wait().await;
            return Err(Failure::new(
                Exit::CannotStart,
                "the server did not start: what is said above tells why; another address can be named with --listen",
            ));
        };
        let word = |member: &str| ready[member].as_str().unwrap_or_default().to_owned();
        let (url, admin) = (word("url"), word("admin"));
        let server = admin.trim_end_matches("/v1");
        Ok(Serving {
            child,
            client: Client::new(Reach::of(server.to_owned(), data))?,
            url,
            folder,
        })
    }

    async fn follow(&self, project: &Project, serving: &mut Serving) -> Result<(), Failure> {
        let mut asked_before = None;
        loop {
            let before = sources(project.folder());
            match serving.take_up(project).await {
                Ok(component) => {
                    output::note(&format!(
                        "serving {} at {}",
                        named(&tools(&component)),
                        serving.url
                    ));
                    let asked = component["policy"]["asked"].clone();
                    if asked_before.as_ref() != Some(&asked) {
                        self.let_grant(project, serving, &component).await?;
                        asked_before = Some(asked);
                    }
                }
                Err(failure) => output::note(&output::lines(&failure.to_string())),
            }
            while sources(project.folder()) == before {
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    ended = serving.child.wait() => {
                        let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
                        return Err(Failure::new(Exit::CannotStart, format!("the server has ended ({how})")));
                    }
                }
            }
            output::note("something was saved: building again");
        }
    }

    /// Says what a tool asks to touch, and grants what its author says.
    async fn let_grant(
        &self,
        project: &Project,
        serving: &Serving,
        component: &Value,
    ) -> Result<(), Failure> {
        let policy = &component["policy"];
        let Ok(Some(asked)) = serde_json::from_value::<Option<Manifest>>(policy["asked"].clone())
        else {
            return Ok(());
        };
        let mut grant = Grant::of_json(policy["granted"].clone())
            .map_err(|fault| Failure::because(Exit::Failed, anyhow!(fault)))?;
        let mut missing = Vec::new();
        for rule in &asked.http {
            if !grant.http.contains(rule) {
                missing.push(format!("send {rule}"));
            }
        }
        for secret in &asked.secrets {
            if !grant.secrets.contains(secret) {
                missing.push(format!("have its requests carry the secret {secret}"));
            }
        }
        if !missing.is_empty() {
            output::note(&format!(
                "{} asks to\n  {}",
                project.name(),
                line(&missing.join("\n  ")).replace("\\n", "\n")
            ));
            if self.grant_all || may().await {
                for rule in asked.http {
                    if !grant.http.contains(&rule) {
                        grant.http.push(rule);
                    }
                }
                for secret in asked.secrets {
                    grant.secrets.retain(|before| before.name != secret.name);
                    grant.secrets.push(secret);
                }
                let path = format!("/v1/components/{}/grant", project.name());
                serving.client.put(&path, &json!(grant)).await?;
                output::note("it may");
            } else {
                output::note(
                    "it may not: a call that tries is told so; start `longshore dev` again to be asked again",
                );
            }
        }
        let dirs = asked
            .dirs
            .iter()
            .map(|dir| format!("the directory {dir}: --dir GUEST=YOURS"));
        let env = asked
            .env
            .iter()
            .map(|name| format!("the variable {name}: --env {name}=VALUE"));
        let own: Vec<String> = dirs.chain(env).collect();
        if !own.is_empty() {
            output::note(&format!(
                "it also asks for what only you can name, with `longshore grant {} --data {} --server {} …`\n  {}",
                project.name(),
                output::quoted(&project.ours().join("data")),
                serving.url.trim_end_matches("/mcp"),
                own.join("\n  "),
            ));
        }
        Ok(())
    }
}

impl Serving {
    /// Builds and waits until the server has what was built.
    async fn take_up(&self, project: &Project) -> Result<Value, Failure> {
        let made = project.build().await?;
        let refused_before = self.refusal(project).await?;
        let place = self.folder.join(format!("{}.wasm", project.name()));
        let draft = place.with_extension("new");
        let copied = fs::copy(&made, &draft).and_then(|_| fs::rename(&draft, &place));
        copied
            .with_context(|| format!("writing {}", place.display()))
            .or_exit(Exit::Failed)?;
        let bytes = fs::read(&made)
            .with_context(|| format!("reading {}", made.display()))
            .or_exit(Exit::Failed)?;
        let digest = Digest::of(&bytes);
        self.look_now();
        let path = format!("/v1/components/{}", project.name());
        let (began, waited) = (Instant::now(), LOOK / 6);
        let waited = tokio::time::timeout(TAKEN_UP, async {
            loop {
                if let Ok(component) = self.client.get(&path).await
                    && component["digest"] == digest.as_str()
                {
                    return Ok(component);
                }
                let refused = self.refusal(project).await?;
                // The same may be said of what was built before, until the server has looked.
                let is_of_this = refused != refused_before || began.elapsed() > LOOKED;
                if let Some(refused) = refused.filter(|_| is_of_this) {
                    return Err(Failure::new(Exit::Failed, refused));
                }
                tokio::time::sleep(waited).await;
            }
        });
        waited.await.unwrap_or_else(|_elapsed| {
            let message = format!("the server has not taken up {}", place.display());
            Err(Failure::new(Exit::Failed, message))
        })
    }

    /// Why the server does not serve it.
    async fn refusal(&self, project: &Project) -> Result<Option<String>, Failure> {
        let list = self.client.get("/v1/components").await?;
        let mut broken = list["broken"].as_array().into_iter().flatten();
        let found = broken.find(|broken| broken["name"] == project.name().as_str());
        Ok(found.map(|broken| {
            let reason = cell(broken, "reason");
            format!(
                "{} cannot be served ({reason}): {}",
                project.name(),
                cell(broken, "message")
            )
        }))
    }

    /// Lets the server look at once; it looks by itself in a moment.
    fn look_now(&self) {
        self.signal(Signal::HUP);
    }

    async fn end(&mut self) {
        self.signal(Signal::TERM);
        let _whatever_it_says = self.child.wait().await;
    }

    fn signal(&self, signal: Signal) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(id) = id.and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _gone = kill_process(id, signal);
        }
    }
}

/// Whether whoever sits there says yes. Where nobody does, it is no.
async fn may() -> bool {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return false;
    }
    let Ok(mut prompt) = Prompt::start() else {
        return false;
    };
    let said = prompt.line("May it? [y/N] ").await.unwrap_or_default();
    matches!(said.trim(), "y" | "Y" | "yes")
}
