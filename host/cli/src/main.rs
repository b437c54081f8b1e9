//! The `longshore` command: the door between people, the environment and the other rooms.
//!
//! Read in this order: this file (which command was meant, and how it ends), `serve` (a server from
//! its parts), `relay` (the second one beside the same data), `alone`, `run` and `inspect` (the same without one, with `prompt`, `form` and `arguments` for
//! the person), `new`, `project` and `dev` (a tool of one's own), `engine`, `data`, `keys` and `contents` (what lies in its directory and in files), `settings`, `config`, `file` and `env` (what
//! it can be told), `admin` and `exchange` (the client of a running server), `tasks`, `watch`, `answer`, `push`, `grant` and `node`
//! (the commands that use it), `component` (makes one of a core module), `output` and `exit` (what people and programs get to see).

mod admin;
mod allowed;
mod alone;
mod answer;
mod arguments;
mod completions;
mod component;
mod config;
mod contents;
mod data;
mod dev;
mod engine;
mod env;
mod exchange;
mod exit;
mod file;
mod form;
mod grant;
mod inspect;
mod keys;
mod new;
mod node;
mod output;
mod project;
mod prompt;
mod push;
mod relay;
mod replay;
mod run;
mod secret;
mod secrets;
mod serve;
mod settings;
mod signals;
mod tasks;
mod trace;
mod trial;
mod watch;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure, OrExit as _};

/// The hidden command under which this program compiles one component for a server.
const COMPILE_CHILD: &str = "compile-child";

/// Runs WebAssembly components as tools of an MCP server.
#[derive(Parser)]
#[command(name = "longshore", version, arg_required_else_help = true, after_help = exit::HELP)]
struct Command {
    /// Print one JSON document on stdout, errors included
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    New(new::New),
    Build(new::Build),
    Dev(dev::Dev),
    Serve(serve::Serve),
    Run(run::Run),
    Inspect(inspect::Inspect),
    Test(trial::Test),
    Replay(replay::Replay),
    Push(push::Push),
    Grant(grant::Grant),
    Secret(secrets::Secret),
    #[command(subcommand)]
    Component(component::Component),
    #[command(subcommand)]
    Components(push::Components),
    #[command(subcommand)]
    Tasks(tasks::Tasks),
    Node(node::Node),
    Completions(completions::Completions),
}

/// What a command found out or did.
#[derive(Debug)]
struct Done {
    document: Value,
    text: String,
    /// What it means for whoever called.
    exit: Exit,
}

/// A document, and the same for people.
fn answered(document: Value, describe: impl FnOnce(&Value) -> String) -> Done {
    let text = describe(&document);
    Done {
        document,
        text,
        exit: Exit::Ok,
    }
}

fn main() -> ExitCode {
    // Before anything else, since the child's limits leave no room for threads, logs and options.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|verb| verb == COMPILE_CHILD)
    {
        return longshore_sandbox::child::main();
    }
    let Command {
        json: as_json,
        verb,
    } = match Command::try_parse() {
        Ok(command) => command,
        Err(error) => return explain(&error),
    };
    let ended = run(verb, as_json).and_then(|done| match done {
        Some(Done { document, exit, .. }) if as_json => {
            print(&output::json(&document)).map(|()| exit)
        }
        Some(Done { text, exit, .. }) => print(&text).map(|()| exit),
        None => Ok(Exit::Ok),
    });
    let exit = match ended {
        Ok(exit) => exit,
        Err(failure) => {
            report(&failure, as_json);
            failure.exit
        }
    };
    ExitCode::from(exit as u8)
}

/// What the parser has to say: help that was asked for, or what it does not understand.
fn explain(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && wants_json {
        let message = error.to_string();
        let message = message.trim_start_matches("error: ").trim_end();
        report(&Failure::new(Exit::Usage, message), true);
        return ExitCode::from(Exit::Usage as u8);
    }
    // Whoever went away does not need it.
    let _unread = error.print();
    ExitCode::from(if error.use_stderr() {
        Exit::Usage
    } else {
        Exit::Ok
    } as u8)
}

fn run(verb: Verb, as_json: bool) -> Result<Option<Done>, Failure> {
    env::refuse_unknown(env::names()).map_err(|fault| Failure::new(Exit::Usage, fault))?;
    match verb {
        Verb::New(new) => new.run().map(Some),
        Verb::Build(build) => wait_at_work(build.run()).map(Some),
        Verb::Dev(dev) => wait_at_work(dev.run()).map(Some),
        Verb::Serve(serve) => serve.run(as_json),
        Verb::Run(run) => wait_at_work(run.run()).map(Some),
        Verb::Inspect(inspect) => wait_at_work(inspect.run()).map(Some),
        Verb::Test(test) => wait_at_work(test.run()).map(Some),
        Verb::Replay(replay) => wait_at_work(replay.run()).map(Some),
        Verb::Push(push) => wait(push.run()).map(Some),
        Verb::Grant(grant) => wait(grant.run()).map(Some),
        Verb::Secret(secret) => secret.run().map(Some),
        Verb::Component(component) => component.run().map(Some),
        Verb::Components(components) => wait(components.run()).map(Some),
        Verb::Tasks(tasks) => wait(tasks.run(as_json)).map(Some),
        Verb::Node(node) => wait(node.run()).map(Some),
        Verb::Completions(completions) => completions
            .print(&mut <Command as clap::CommandFactory>::command())
            .map(|()| None),
    }
}

/// Runs what only talks to a server: one thread is enough.
fn wait(command: impl Future<Output = Result<Done, Failure>>) -> Result<Done, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting")
        .or_exit(Exit::Failed)?;
    runtime.block_on(command)
}

/// Runs what has guests beside it: signals and questions must not wait for a turn of theirs.
fn wait_at_work(command: impl Future<Output = Result<Done, Failure>>) -> Result<Done, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("starting")
        .or_exit(Exit::Failed)?;
    let ended = runtime.block_on(command);
    // What still reads or writes a file has nothing to say any more.
    runtime.shutdown_background();
    ended
}

fn print(text: &str) -> Result<(), Failure> {
    output::print(text)
        .context("writing to stdout")
        .or_exit(Exit::Failed)
}

fn report(failure: &Failure, as_json: bool) {
    // A message can quote a guest.
    let message = failure.to_string();
    output::note(&output::lines(&message));
    if as_json {
        let document = json!({ "error": { "reason": failure.reason, "message": message } });
        // Stdout is gone too; stderr has it.
        let _unwritten = output::print(&output::json(&document));
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Command::command().debug_assert();
        // Its name is looked for before options are parsed, so it must not be one of theirs.
        assert!(Command::command().find_subcommand(COMPILE_CHILD).is_none());
    }

    #[test]
    fn answers_exclude_each_other() {
        let parse = |line: &str| Command::try_parse_from(line.split(' '));
        let good = [
            "longshore tasks answer i --accept",
            "longshore tasks answer i --accept {}",
            "longshore tasks answer i k --field a=b --field c=d",
            "longshore tasks answer i k --decline --json",
            "longshore tasks answer i",
            "longshore --json tasks list --status failed --limit 3",
            "longshore serve a.wasm b.wasm --listen 127.0.0.1:0 --data d --set grace_ms=1 --set running=2",
            "longshore push f.wasm --name n --server http://127.0.0.1:1",
        ];
        for line in good {
            assert!(parse(line).is_ok(), "{line}");
        }
        let bad = [
            "longshore",
            "longshore tasks answer i --accept {} --decline",
            "longshore tasks answer i --decline --dismiss",
            "longshore tasks answer i --field a=b --dismiss",
            "longshore serve --listen nowhere",
            "longshore compile",
        ];
        for line in bad {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
