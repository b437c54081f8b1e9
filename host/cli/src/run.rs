//! `run`: one call of a component's tool, with the person at the prompt as its client and no server.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use longshore_server::local::{Begun, End, Fault, Person, Standing, Step};
use longshore_server::server::Server;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::Done;
use crate::alone::{Alone, Which};
use crate::arguments::arguments;
use crate::config::Options;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::form;
use crate::output::{self, line};
use crate::prompt::{Prompt, StatusLine, status};
use crate::signals::Stop;
use crate::tasks::{describe_output, failure_of, result_done};
use crate::trace;
use longshore_server::policy::nearest::by_distance;

/// How often it is looked what goes on: a person reads no faster.
const LOOK: Duration = Duration::from_millis(50);

/// Calls a tool of a component here and now, without a server.
///
/// The result goes to stdout; questions and progress to stderr. Ctrl-C cancels the call, which may
/// clean up first; a second Ctrl-C stops at once.
#[derive(clap::Args)]
pub(crate) struct Run {
    #[command(flatten)]
    which: Which,
    /// The tool; not needed if the component has one
    tool: Option<String>,
    /// An argument of the tool: text as it is, other kinds as JSON, as the tool's schema wants it
    #[arg(long = "arg", id = "arg", value_name = "NAME=VALUE")]
    single: Vec<String>,
    /// All arguments, as one JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "arg")]
    arguments: Option<String>,
    /// Whether the tool's questions are put to you: on a terminal, always (an answer a line on stdin), or
    /// never
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    ask: When,
    /// Also show what the tool printed and logged, as is always done when it fails
    #[arg(long)]
    output: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

impl When {
    fn person(self) -> Person {
        let answers = match self {
            Self::Auto => io::stdin().is_terminal() && io::stderr().is_terminal(),
            Self::Always => true,
            Self::Never => false,
        };
        if answers {
            Person::Answers
        } else {
            Person::Absent
        }
    }
}

impl Run {
    pub(crate) async fn run(self) -> Result<Done, Failure> {
        trace::start(trace::PROMPT).or_exit(Exit::Usage)?;
        let mut stop = Stop::listen(Exit::Cancelled)
            .context("listening for signals")
            .or_exit(Exit::Failed)?;
        let config = self.which.told.config(Options::default())?;
        let grace = Duration::from_millis(config.numbers.server.grace_ms);
        let mut line = StatusLine::new();
        line.show("compiling");
        let Alone { server, component } = tokio::select! {
            alone = self.which.alone(config) => alone?,
            () = stop.asked() => return Err(cancelled()),
        };
        line.clear();
        let tool = tool(&component, self.tool.as_deref())?;
        let arguments = arguments(
            &tool["inputSchema"],
            &self.single,
            self.arguments.as_deref(),
        )
        .map_err(|fault| Failure::new(Exit::Usage, fault))?;
        let arguments = to_raw_value(&arguments).or_exit(Exit::Usage)?;
        let name = tool["name"].as_str().unwrap_or_default();
        let mut call = Call {
            server: &server,
            person: self.ask.person(),
            stop: &mut stop,
            line,
            prompt: None,
            is_cancelled: false,
        };
        let end = call.follow(name, &arguments).await;
        call.line.clear();
        // The run hands in what it printed last of all; a held call that was cancelled may clean up.
        server.settle(grace + LOOK).await;
        let done = ended(end?);
        let has_failed = done.as_ref().map_or(true, |done| done.exit != Exit::Ok);
        if (self.output || has_failed)
            && let Some(printed) = server.last_output()
        {
            let printed = describe_output(&printed);
            if !printed.is_empty() {
                output::note(&format!("the tool's output\n{}", printed.trim_end()));
            }
        }
        done
    }
}

/// The tool that is meant.
pub(crate) fn tool<'c>(component: &'c Value, named: Option<&str>) -> Result<&'c Value, Failure> {
    let tools = component["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let fault = match (named, tools) {
        (None, [only]) => return Ok(only),
        (None, _) => "the component has several tools: name one".to_owned(),
        (Some(name), _) => match tools.iter().find(|tool| tool["name"] == name) {
            Some(tool) => return Ok(tool),
            None => format!("the component has no tool {name:?}"),
        },
    };
    let names = tools.iter().filter_map(|tool| tool["name"].as_str());
    let names = by_distance(named.unwrap_or_default(), names);
    Err(Failure::new(
        Exit::Usage,
        format!("{fault}; it has {}", line(&names.join(", "))),
    ))
}

/// One call, as it goes on.
struct Call<'r> {
    server: &'r Server,
    person: Person,
    stop: &'r mut Stop,
    line: StatusLine,
    /// From the first question on.
    prompt: Option<Prompt>,
    is_cancelled: bool,
}

/// What came of a question, or of a moment without one.
enum Next {
    GoOn,
    Cancel,
}

impl Call<'_> {
    async fn follow(&mut self, tool: &str, arguments: &RawValue) -> Result<End, Failure> {
        self.line.show("working");
        let status_line = &mut self.line;
        let told = |step: Step| {
            status_line.show(&status(
                "working",
                Some(step.progress),
                step.message.as_deref(),
            ));
        };
        let begun = tokio::select! {
            // What has begun can clean up, so it is begun before it is looked whether somebody stops it.
            biased;
            begun = self.server.call_locally(self.person, tool, arguments, told) => begun,
            // Letting go of it is what cancels it.
            () = self.stop.asked() => return Ok(End::Cancelled),
        };
        let id = match begun {
            Ok(Begun::Ended(result)) => return Ok(End::Result(result)),
            Ok(Begun::Task(id)) => id,
            Err(fault) => return Ok(End::Failed(fault)),
        };
        let server = self.server;
        let lost = |error| Failure::because(Exit::Failed, anyhow!("the call is lost: {error}"));
        let look = async || server.standing(id).await.map_err(lost);
        loop {
            let standing = look().await?;
            if let Some(end) = standing.end {
                return Ok(end);
            }
            let next = match standing.questions.first() {
                Some((key, request)) if !self.is_cancelled => {
                    let withdrawn = async {
                        // What cannot be read is not asked any more either.
                        while look().await.is_ok_and(|now| now.asks(key)) {
                            tokio::time::sleep(LOOK).await;
                        }
                    };
                    match self.ask(request, withdrawn).await? {
                        Ok(answer) => {
                            let answers = [(key.as_str(), answer.as_ref())];
                            if let Err(refused) = server.answer_task(id, None, &answers).await {
                                output::note(&line(&refused.to_string()));
                            }
                            Next::GoOn
                        }
                        Err(next) => next,
                    }
                }
                _ => self.wait(&standing).await,
            };
            match next {
                Next::GoOn => {}
                Next::Cancel => {
                    self.is_cancelled = true;
                    server.cancel_task(id, None).await.map_err(lost)?;
                }
            }
        }
    }

    /// The answer to a question, or what came in between.
    async fn ask(
        &mut self,
        request: &str,
        withdrawn: impl Future<Output = ()>,
    ) -> Result<Result<Box<RawValue>, Next>, Failure> {
        self.line.clear();
        let is_first = self.prompt.is_none();
        let prompt = match &mut self.prompt {
            Some(prompt) => prompt,
            none => none.insert(
                Prompt::start()
                    .context("reading stdin")
                    .or_exit(Exit::Failed)?,
            ),
        };
        let answer = tokio::select! {
            answer = form::ask(prompt, request, is_first) => answer,
            () = withdrawn => {
                output::note("the question is withdrawn");
                return Ok(Err(Next::GoOn));
            }
            () = self.stop.asked() => return Ok(Err(Next::Cancel)),
        };
        to_raw_value(&answer).or_exit(Exit::Failed).map(Ok)
    }

    /// A moment, with what goes on in sight.
    async fn wait(&mut self, standing: &Standing) -> Next {
        let word = if self.is_cancelled {
            "stopping"
        } else {
            standing.status
        };
        let text = status(word, standing.progress, standing.message.as_deref());
        self.line.show(&text);
        tokio::select! {
            () = tokio::time::sleep(LOOK) => Next::GoOn,
            () = self.stop.asked(), if !self.is_cancelled => Next::Cancel,
        }
    }
}

/// How it ended, for people and programs.
fn ended(end: End) -> Result<Done, Failure> {
    match end {
        End::Result(result) => serde_json::from_str(&result)
            .context("reading the result")
            .or_exit(Exit::Failed)
            .map(result_done),
        End::Failed(Fault {
            reason, message, ..
        }) => Err(failure_of("the call", reason.as_deref(), &message)),
        End::Cancelled => Err(cancelled()),
    }
}

fn cancelled() -> Failure {
    Failure::new(Exit::Cancelled, "the call was cancelled")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_is_found_or_the_nearest_are_named() {
        let one = json!({ "tools": [{ "name": "hello" }] });
        assert_eq!(tool(&one, None).unwrap()["name"], "hello");
        let many =
            json!({ "tools": [{ "name": "alpha" }, { "name": "hallo" }, { "name": "hello" }] });
        assert_eq!(tool(&many, Some("hallo")).unwrap()["name"], "hallo");
        let failure = tool(&many, None).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.to_string().contains("several tools"), "{failure}");
        let failure = tool(&many, Some("helo")).unwrap_err().to_string();
        assert!(failure.ends_with("it has hello, hallo, alpha"), "{failure}");
    }

    #[test]
    fn every_end_has_its_code() {
        let code = |end| ended(end).map_or_else(|failure| failure.exit, |done| done.exit);
        let result =
            |is_error| End::Result(json!({ "content": [], "isError": is_error }).to_string());
        assert_eq!(code(result(false)), Exit::Ok);
        assert_eq!(code(result(true)), Exit::Failed);
        assert_eq!(code(End::Cancelled), Exit::Cancelled);
        let fault = Fault {
            code: 1000,
            reason: Some("trap".to_owned()),
            message: "m".to_owned(),
        };
        assert_eq!(code(End::Failed(fault.clone())), Exit::Failed);
        assert_eq!(ended(End::Failed(fault)).unwrap_err().reason, "trap");
    }
}
