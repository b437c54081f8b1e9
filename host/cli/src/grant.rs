//! `grant`: what a component may touch, which only its operator says.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use longshore_server::policy::dirs::{Access, Mount};
use longshore_server::policy::env::EnvName;
use longshore_server::policy::grant::Grant as Granted;
use longshore_server::policy::http::Rule;
use longshore_server::policy::limits::Named;
use serde_json::{Value, json};

use crate::admin::{Client, Reach, encode};
use crate::exit::{Exit, Failure, OrExit as _};
use crate::output::cell;
use crate::push::describe_policy;
use crate::{Done, answered};

/// Lets a component of a server touch what is named, beside what it was granted before; without options, shows that.
/// Calls that run keep what they began with.
#[derive(clap::Args)]
pub(crate) struct Grant {
    /// The component's name
    name: String,
    /// Requests that it may send: `[METHOD,… ][https://]HOST[:PORT]`, by default those that change nothing
    #[arg(long, value_name = "RULE")]
    http: Vec<Rule>,
    /// A directory that it may look into at GUEST, or change with `:rw`
    #[arg(long, value_name = "GUEST=HOST[:rw]", value_parser = mount)]
    dir: Vec<Mount>,
    /// A value of its environment
    #[arg(long, value_name = "NAME=VALUE", value_parser = value)]
    env: Vec<(EnvName, String)>,
    /// A limit of its runs in place of the server's own; `longshore serve --help` lists them under `limits.`
    #[arg(long, value_name = "NAME=NUMBER", value_parser = limit)]
    limit: Vec<(String, u64)>,
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

fn mount(text: &str) -> Result<Mount, String> {
    let (guest, host) = text
        .split_once('=')
        .ok_or("write it like /data=/srv/data")?;
    let (host, access) = match host.strip_suffix(":rw") {
        Some(host) => (host, Access::ReadWrite),
        None => (host.strip_suffix(":ro").unwrap_or(host), Access::ReadOnly),
    };
    Ok(Mount {
        guest: guest.parse().map_err(|fault| format!("{fault}"))?,
        host: host.parse().map_err(|fault| format!("{fault}"))?,
        access,
    })
}

fn value(text: &str) -> Result<(EnvName, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it like NAME=VALUE")?;
    let name = name.parse().map_err(|fault| format!("{fault}"))?;
    Ok((name, value.to_owned()))
}

fn limit(text: &str) -> Result<(String, u64), String> {
    let named = text.split_once('=').and_then(|(name, number)| {
        let name = name.strip_prefix("limits.").unwrap_or(name);
        Some((name.to_owned(), number.parse().ok()?))
    });
    named.ok_or_else(|| "write it like cpu_ms=10000".to_owned())
}

impl Grant {
    pub(crate) async fn run(self) -> Result<Done, Failure> {
        let Self {
            name,
            http,
            dir,
            env,
            limit,
            file,
            revoke,
            show,
            reach,
        } = self;
        let client = Client::new(reach)?;
        let path = format!("/v1/components/{}/grant", encode(&name));
        let adds = !(http.is_empty() && dir.is_empty() && env.is_empty() && limit.is_empty());
        if show || !(adds || revoke || file.is_some()) {
            return Ok(answered(client.get(&path).await?, describe));
        }
        let mut grant = match file {
            Some(file) => {
                let reading = || format!("reading {}", file.display());
                let text = tokio::fs::read_to_string(&file).await;
                let text = text.with_context(reading).or_exit(Exit::Failed)?;
                Granted::of_toml(&text).map_err(|fault| {
                    Failure::because(Exit::Failed, anyhow!("{}: {fault}", file.display()))
                })?
            }
            None if revoke => Granted::default(),
            None => {
                let before = client.get(&path).await?;
                Granted::of_json(before["granted"].clone())
                    .map_err(|fault| Failure::because(Exit::Failed, anyhow!(fault)))?
            }
        };
        for rule in http {
            if !grant.http.contains(&rule) {
                grant.http.push(rule);
            }
        }
        for mount in dir {
            grant.dirs.retain(|before| before.guest != mount.guest);
            grant.dirs.push(mount);
        }
        grant.env.extend(env);
        let limits = grant
            .limits
            .iter()
            .map(|(name, value)| (name.to_owned(), value));
        grant.limits = Named::try_from(
            limits
                .chain(limit)
                .collect::<std::collections::BTreeMap<_, _>>(),
        )
        .map_err(|fault| Failure::new(Exit::Usage, fault.to_string()))?;
        Ok(answered(client.put(&path, &json!(grant)).await?, describe))
    }
}

fn describe(shown: &Value) -> String {
    format!("{}{}", cell(shown, "name"), describe_policy(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_what_is_granted() {
        let read_only = mount("/data=/srv/data").unwrap();
        assert_eq!(read_only.to_string(), "/data is /srv/data (read-only)");
        assert_eq!(mount("/data=/srv/data:ro").unwrap(), read_only);
        let both = mount("/data=/srv/data:rw").unwrap();
        assert_eq!(both.to_string(), "/data is /srv/data (read-write)");
        for text in [
            "/data",
            "data=/srv",
            "/data=srv",
            "/data=/srv/../etc",
            "=",
            "/data=/",
        ] {
            assert!(mount(text).is_err(), "{text}");
        }
        let (name, text) = value("A=b=c").unwrap();
        assert_eq!((name.as_str(), text.as_str()), ("A", "b=c"));
        assert!(value("A").is_err() && value("1=x").is_err());
        assert_eq!(limit("limits.cpu_ms=5").unwrap(), ("cpu_ms".to_owned(), 5));
        assert!(limit("cpu_ms").is_err() && limit("cpu_ms=x").is_err());
    }
}
