//! `grant`: what a component may touch, which only its operator says.

use std::path::PathBuf;

use anyhow::anyhow;
use longshore_server::policy::grant::Grant as Granted;
use serde_json::{Value, json};

use crate::admin::{Client, Reach, encode};
use crate::allowed::{Allowed, granted_in};
use crate::exit::{Exit, Failure};
use crate::output::cell;
use crate::push::describe_policy;
use crate::{Done, answered};

/// Lets a component of a server touch what is named, beside what it was granted before; without options, shows that.
/// Calls that run keep what they began with.
#[derive(clap::Args)]
pub(crate) struct Grant {
    /// The component's name
    name: String,
    #[command(flatten)]
    allowed: Allowed,
    /// What this file grants, in TOML, and nothing of what was granted before
    #[arg(long, value_name = "FILE", conflicts_with = "revoke")]
    file: Option<PathBuf>,
    /// Nothing of what was granted before
    #[arg(long)]
    revoke: bool,
    /// Show what is asked, granted and in force, and change nothing
    #[arg(long, conflicts_with_all = ["http", "dir", "env", "limit", "file", "revoke"])]
    show: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Grant {
    pub(crate) async fn run(self) -> Result<Done, Failure> {
        let Self {
            name,
            allowed,
            file,
            revoke,
            show,
            reach,
        } = self;
        let client = Client::new(reach)?;
        let path = format!("/v1/components/{}/grant", encode(&name));
        if show || (allowed.is_nothing() && !revoke && file.is_none()) {
            return Ok(answered(client.get(&path).await?, describe));
        }
        let mut grant = match file {
            Some(file) => granted_in(&file).await?,
            None if revoke => Granted::default(),
            None => {
                let before = client.get(&path).await?;
                Granted::of_json(before["granted"].clone())
                    .map_err(|fault| Failure::because(Exit::Failed, anyhow!(fault)))?
            }
        };
        allowed.add_to(&mut grant)?;
        Ok(answered(client.put(&path, &json!(grant)).await?, describe))
    }
}

fn describe(shown: &Value) -> String {
    format!("{}{}", cell(shown, "name"), describe_policy(shown))
}
