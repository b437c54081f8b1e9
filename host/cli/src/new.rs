//! `new` and `build`: a tool of one's own, from an empty folder to what can be served.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::Done;
use crate::alone::Alone;
use crate::answered;
use crate::config::{Options, Told};
use crate::exit::{Exit, Failure, OrExit as _};
use crate::output::{self, cell, quoted};
use crate::project::{Language, Project};
use crate::trace;

/// Begins a tool of your own: a folder with one that works, to be changed.
#[derive(clap::Args)]
pub(crate) struct New {
    /// The folder to make; its name becomes the tool's
    #[arg(value_name = "NAME")]
    folder: PathBuf,
    /// What it is written in
    #[arg(long, value_enum)]
    lang: Language,
}

impl New {
    pub(crate) fn run(self) -> Result<Done, Failure> {
        let project = Project::begin(&self.folder, self.lang)?;
        let document = json!({
            "name": project.name().as_str(),
            "folder": project.folder().to_string_lossy(),
            "source": project.source().to_string_lossy(),
        });
        let folder = quoted(&self.folder);
        Ok(answered(document, |document| {
            format!(
                "{} is begun: write it in {}\n\n  cd {folder}\n  longshore dev                        # builds and serves it, again whenever you save\n  longshore run . --arg name=Ada       # calls it here and now\n  longshore test . --arg name=Ada      # does it go on rightly wherever its server dies?\n",
                cell(document, "name"),
                cell(document, "source"),
            )
        }))
    }
}

/// Builds the tool of a folder, and says what it is.
#[derive(clap::Args)]
pub(crate) struct Build {
    /// The folder
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    #[command(flatten)]
    told: Told,
}

impl Build {
    pub(crate) async fn run(self) -> Result<Done, Failure> {
        trace::start(trace::PROMPT).or_exit(Exit::Usage)?;
        let project = Project::at(&self.folder)?;
        let made = project.build().await?;
        let config = self.told.config(Options::default())?;
        let looked_at = Alone::with(&made, &self.told, config, Default::default()).await?;
        let component = &looked_at.component;
        let document = json!({
            "file": made.to_string_lossy(),
            "size": component["size"],
            "digest": component["digest"],
            "tools": tools(component),
        });
        Ok(answered(document, |document| {
            format!(
                "{} is built ({} bytes), with {}\n",
                cell(document, "file"),
                cell(document, "size"),
                named(&tools(component)),
            )
        }))
    }
}

/// The names of a component's tools.
pub(crate) fn tools(component: &Value) -> Vec<String> {
    let tools = component["tools"].as_array().into_iter().flatten();
    let names = tools.filter_map(|tool| tool["name"].as_str());
    names.map(|name| output::line(name).into_owned()).collect()
}

/// Tools as a part of a sentence.
pub(crate) fn named(tools: &[String]) -> String {
    match tools {
        [] => "no tool".to_owned(),
        [one] => format!("the tool {one}"),
        several => format!("the tools {}", several.join(", ")),
    }
}
