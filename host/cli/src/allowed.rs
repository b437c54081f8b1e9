//! What a component may touch, as it is named on a command line.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use longshore_server::policy::dirs::{Access, Mount};
use longshore_server::policy::env::EnvName;
use longshore_server::policy::grant::Grant;
use longshore_server::policy::http::Rule;
use longshore_server::policy::limits::Named;
use longshore_server::policy::secrets::Secret;

use crate::contents;
use crate::exit::{Exit, Failure, OrExit as _};

/// Far more than anybody writes by hand.
const MOST_BYTES: u64 = 1024 * 1024;

/// What a component may touch.
#[derive(clap::Args)]
pub(crate) struct Allowed {
    /// Requests that it may send: `[METHOD,… ][https://]HOST[:PORT]`, by default those that change nothing
    #[arg(long, value_name = "RULE")]
    http: Vec<Rule>,
    /// A directory that it may look into at GUEST, or change with `:rw`
    #[arg(long, value_name = "GUEST=HOST[:rw]", value_parser = mount)]
    dir: Vec<Mount>,
    /// A value of its environment
    #[arg(long, value_name = "NAME=VALUE", value_parser = value)]
    env: Vec<(EnvName, String)>,
    /// A secret that its requests to these hosts carry as bearer token; other ways are for a file
    #[arg(long, value_name = "NAME=HOST[,HOST…]", value_parser = secret)]
    secret: Vec<Secret>,
    /// A limit of its runs in place of the server's own; `longshore serve --help` lists them under `limits.`
    #[arg(long, value_name = "NAME=NUMBER", value_parser = limit)]
    limit: Vec<(String, u64)>,
}

impl Allowed {
    pub(crate) fn is_nothing(&self) -> bool {
        self.http.is_empty()
            && self.dir.is_empty()
            && self.env.is_empty()
            && self.secret.is_empty()
            && self.limit.is_empty()
    }

    /// Grants it beside what was granted before.
    pub(crate) fn add_to(self, grant: &mut Grant) -> Result<(), Failure> {
        for rule in self.http {
            if !grant.http.contains(&rule) {
                grant.http.push(rule);
            }
        }
        for mount in self.dir {
            grant.dirs.retain(|before| before.guest != mount.guest);
            grant.dirs.push(mount);
        }
        grant.env.extend(self.env);
        for secret in self.secret {
            grant.secrets.retain(|before| before.name != secret.name);
            grant.secrets.push(secret);
        }
        let limits = grant
            .limits
            .iter()
            .map(|(name, value)| (name.to_owned(), value));
        grant.limits = Named::try_from(limits.chain(self.limit).collect::<BTreeMap<_, _>>())
            .map_err(|fault| Failure::new(Exit::Usage, fault.to_string()))?;
        Ok(())
    }
}

/// What a file grants.
pub(crate) async fn granted_in(file: &Path) -> Result<Grant, Failure> {
    let reading = || format!("reading {}", file.display());
    let bytes = contents::read_aside(file, MOST_BYTES).await;
    let bytes = bytes.with_context(reading).or_exit(Exit::Failed)?;
    let text = String::from_utf8(bytes)
        .context("it is no text")
        .with_context(reading)
        .or_exit(Exit::Failed)?;
    Grant::of_toml(&text)
        .map_err(|fault| Failure::because(Exit::Failed, anyhow!("{}: {fault}", file.display())))
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

fn secret(text: &str) -> Result<Secret, String> {
    let (name, hosts) = text
        .split_once('=')
        .ok_or("write it like NAME=api.example.org")?;
    let hosts: Vec<&str> = hosts.split(',').collect();
    let written = serde_json::json!({ "name": name, "hosts": hosts });
    serde_json::from_value(written).map_err(|fault| fault.to_string())
}

fn limit(text: &str) -> Result<(String, u64), String> {
    let named = text.split_once('=').and_then(|(name, number)| {
        let name = name.strip_prefix("limits.").unwrap_or(name);
        Some((name.to_owned(), number.parse().ok()?))
    });
    named.ok_or_else(|| "write it like cpu_ms=10000".to_owned())
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
        let token = secret("token=a.test,*.b.test").unwrap();
        assert_eq!(
            token.to_string(),
            "token to a.test, *.b.test as bearer token"
        );
        assert!(secret("token").is_err() && secret("token=*").is_err() && secret("T=a").is_err());
        assert_eq!(limit("limits.cpu_ms=5").unwrap(), ("cpu_ms".to_owned(), 5));
        assert!(limit("cpu_ms").is_err() && limit("cpu_ms=x").is_err());
    }
}
