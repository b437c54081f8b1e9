//! A client as a script: installed, started, and held to what it printed.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use longshore_tests::guests;
use longshore_tests::process::{Options, Server};
use longshore_tests::tap::{Said, Tap};
use serde_json::{Value, json};
use tokio::process::Command;

use super::cases::{self, Case};

/// How long the packages of a language may take to be installed, which happens once.
const INSTALLING: Duration = Duration::from_secs(600);
/// How long a script may take: half a minute on a busy machine.
const RUNNING: Duration = Duration::from_secs(180);

/// How a client reaches the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// Which revision the client is told to speak: `auto` finds out.
    pub(super) mode: &'static str,
    /// Which one is spoken then.
    pub(super) revision: &'static str,
    /// Whether it listens to its tasks.
    pub(super) listens: bool,
    /// What it comes over.
    pub(super) over: Over,
}

/// What a client comes over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Over {
    /// HTTP, to a server that is there.
    Http,
    /// The pipes of a server that it starts itself.
    Pipes,
}

impl Way {
    /// Over HTTP, with tasks that are polled for.
    pub(super) const POLLING: Self = Self {
        mode: "auto",
        revision: "2026-07-28",
        listens: false,
        over: Over::Http,
    };

    /// The same over pipes.
    pub(super) const PIPES: Self = Self {
        over: Over::Pipes,
        ..Self::POLLING
    };

    /// By a session, in the revision that the client asks for.
    pub(super) const SESSION: Self = Self {
        mode: "legacy",
        revision: "2025-11-25",
        ..Self::POLLING
    };

    /// The same over pipes.
    pub(super) const SESSION_ON_PIPES: Self = Self {
        over: Over::Pipes,
        ..Self::SESSION
    };

    fn has_tasks(self) -> bool {
        self.mode != "legacy"
    }
}

/// What a script is written in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Language {
    JavaScript,
    Python,
}

impl Language {
    /// The folder of its scripts, and of the lock file that names their packages.
    fn folder(self) -> PathBuf {
        let name = match self {
            Self::JavaScript => "npm",
            Self::Python => "python",
        };
        guests::root().join("tests/clients").join(name)
    }

    /// The program that runs it, with its packages: installed once, and used again by the next run.
    async fn interpreter(self) -> PathBuf {
        let install = self.folder().join("install");
        let what = install.display().to_string();
        let printed = output(&mut Command::new(install), &what, INSTALLING).await;
        PathBuf::from(printed.trim())
    }

    /// The program about to run that script.
    pub(super) async fn command(self, file: &str) -> Command {
        let interpreter = self.interpreter().await;
        let script = self.folder().join(file);
        let mut command = Command::new(&interpreter);
        match self {
            // What a module imports is looked for beside its file or, if it has none, where the program runs.
            Self::JavaScript => {
                let packages = interpreter.ancestors().nth(4);
                let script = std::fs::File::open(script).expect("the script can be read");
                command
                    .current_dir(packages.expect("it lies in node_modules/PACKAGE/bin"))
                    .args(["--input-type=module", "-"])
                    .stdin(Stdio::from(script));
            }
            Self::Python => {
                command.arg(script).stdin(Stdio::null());
            }
        }
        command
    }
}

/// A client, and what is known of it.
pub(super) struct Script {
    /// What it is written in.
    pub(super) language: Language,
    /// Its file.
    pub(super) file: &'static str,
    /// How it calls itself.
    pub(super) name: &'static str,
    /// What it cannot do.
    pub(super) lacks: &'static [&'static str],
}

/// What the TypeScript SDK makes of a resource that is not there.
const NO_OLDER_CODE: &str =
    "the code of older revisions for a missing resource: it shows the newest one's";

/// Runs a program to its end and gives back what it printed.
pub(super) async fn output(command: &mut Command, what: &str, most: Duration) -> String {
    let output = tokio::time::timeout(most, command.kill_on_drop(true).output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("{what}: not within {most:?}"))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{what}: {}\n{out}\n{err}",
        output.status
    );
    out.into_owned()
}

impl Script {
    /// Puts the cases to a server by way of that client, and gives back what it said on the wire.
    pub(super) async fn drive(&self, way: Way, mut options: Options) -> Vec<Said> {
        options.components.push(guests::component(cases::LIBRARY));
        let mut command = self.language.command(self.file).await;
        let cases = if way.has_tasks() {
            cases::all()
        } else {
            cases::held()
        };
        let mut reached = json!({ "mode": way.mode, "listen": way.listens });
        match way.over {
            Over::Http => {
                let server = Server::start(options).await;
                let tap = Tap::to(server.address).await;
                reached["url"] = json!(format!("http://{}/mcp", tap.address));
                self.run(&mut command, way, &reached, &cases).await;
                tap.said()
            }
            Over::Pipes => {
                let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
                // Compiled before, as for everybody but the first who starts it.
                let mut first = Server::start_in(Arc::clone(&data), options.clone()).await;
                first.terminate().await;
                let mut arguments = vec!["serve".to_owned(), "--stdio".to_owned()];
                arguments.extend(["--data".to_owned(), data.path().display().to_string()]);
                arguments.extend(options.arguments);
                // As every server of these tests that does not ask for it.
                arguments.extend(["--set".to_owned(), "handoff=false".to_owned()]);
                let components = options.components.iter();
                arguments.extend(components.map(|path| path.display().to_string()));
                reached["command"] = json!(guests::longshore());
                reached["arguments"] = json!(arguments);
                self.run(&mut command, way, &reached, &cases).await;
                Vec::new()
            }
        }
    }

    /// Has a client call and follow its tasks by asking for them, as all of them can.
    pub(super) async fn poll(&self, options: Options) -> Vec<Said> {
        let said = self.drive(Way::POLLING, options).await;
        let cases = cases::all();
        assert!(count(&said, "tasks/get") >= cases::tasks(&cases));
        assert_eq!(count(&said, "tasks/update"), cases::questions(&cases));
        assert_eq!(count(&said, "tasks/cancel"), 1);
        said
    }

    /// The same without tasks, in a session: what is asked comes on the call's own stream.
    pub(super) async fn hold_a_session(&self, options: Options) {
        let said = self.drive(Way::SESSION, options).await;
        assert_eq!(count(&said, "initialize"), 1);
        assert_eq!(count(&said, "tools/call"), cases::held().len());
    }

    /// Both over pipes.
    pub(super) async fn talk_over_pipes(&self, options: &Options) {
        for way in [Way::PIPES, Way::SESSION_ON_PIPES] {
            self.drive(way, options.clone()).await;
        }
    }

    async fn run(&self, command: &mut Command, way: Way, reached: &Value, cases: &[Case]) {
        let given = json!({
            "way": reached,
            "cases": cases.iter().map(Case::given).collect::<Vec<Value>>(),
        });
        command.arg(given.to_string());
        let printed = output(command, self.name, RUNNING).await;
        let seen: Vec<Value> = printed
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect();
        self.check(way, cases, &seen);
    }

    fn check(&self, way: Way, cases: &[Case], seen: &[Value]) {
        let [client, list, library, rest @ ..] = seen else {
            panic!("too little: {seen:?}");
        };
        assert_eq!(
            client,
            &json!({ "what": "client", "name": self.name, "revision": way.revision, "server": "longshore" })
        );
        assert_eq!(list, &json!({ "what": "list", "tools": cases::GUESTS }));
        let mut expected = cases::library(way.revision);
        if self.language == Language::JavaScript && expected["missing"] == -32002 {
            expected["missing"] = json!(-32602);
            tell_lacks(self.name, &[NO_OLDER_CODE]);
        }
        assert_eq!(library, &expected);
        let (called, lacks) = rest
            .split_at_checked(cases.len())
            .expect("every case has its line");
        for (case, seen) in cases.iter().zip(called) {
            case.check(seen);
        }
        let lacks_of: &[&str] = if way.has_tasks() { self.lacks } else { &[] };
        let expected: Vec<Value> = lacks_of
            .iter()
            .map(|feature| json!({ "what": "lacks", "feature": feature }))
            .collect();
        assert_eq!(lacks, expected);
        tell_lacks(self.name, lacks_of);
    }
}

/// Names what a client lacks, also where what a passing test prints is kept back.
pub(super) fn tell_lacks(client: &str, lacks: &[&str]) {
    for feature in lacks {
        let line = format!("{client} lacks {feature}\n");
        let _nobody_may_read_it = std::io::stderr().write_all(line.as_bytes());
    }
}

/// How often the client said that.
pub(super) fn count(said: &[Said], method: &str) -> usize {
    said.iter().filter(|said| said.method() == method).count()
}

/// What the client wrote into `Mcp-Name` of each request about a task, beside the task's id.
pub(super) fn names(said: &[Said]) -> Vec<(Option<&str>, Option<&str>)> {
    said.iter()
        .filter(|said| said.method().starts_with("tasks/"))
        .map(|said| {
            let name = said.headers.get("mcp-name");
            (
                name.and_then(|name| name.to_str().ok()),
                said.message["params"]["taskId"].as_str(),
            )
        })
        .collect()
}
