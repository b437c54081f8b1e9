//! `secret`: what requests of tools may carry, kept where only the server reads it.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use longshore_server::egress::vault::MOST_BYTES;
use longshore_server::policy::secrets::SecretName;
use serde_json::json;

use crate::config::Told;
use crate::data::{DataDir, secrets_in};
use crate::exit::{Exit, Failure, OrExit as _};
use crate::output::line;
use crate::{Done, answered};

/// Keeps secrets that requests of tools may carry, in the data directory of this machine's server.
///
/// A tool never sees one: a grant says to which hosts it is sent, and how. It is read each time that it is sent.
#[derive(clap::Args)]
pub(crate) struct Secret {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Keeps a secret, which is read from stdin, in place of the one of that name
    Set {
        /// Its name: a-z, 0-9, - and _
        name: SecretName,
        #[command(flatten)]
        told: Told,
    },
    /// Names the secrets that there are
    List {
        #[command(flatten)]
        told: Told,
    },
    /// Forgets a secret
    Remove {
        /// Its name
        name: SecretName,
        #[command(flatten)]
        told: Told,
    },
}

impl Secret {
    pub(crate) fn run(self) -> Result<Done, Failure> {
        match self.what {
            What::Set { name, told } => {
                let data = DataDir::open(&told.data()?).or_exit(Exit::Failed)?;
                let value = value(io::stdin().lock()).or_exit(Exit::Failed)?;
                data.keep_secret_value(name.as_str(), &value)
                    .with_context(|| format!("keeping secret {name}"))
                    .or_exit(Exit::Failed)?;
                let text = format!("secret {name} is kept\n");
                Ok(answered(json!({ "secret": name }), move |_| text))
            }
            What::List { told } => {
                let names = names(&told.data()?).or_exit(Exit::Failed)?;
                let text: String = names.iter().map(|name| line(name) + "\n").collect();
                Ok(answered(json!({ "secrets": names }), move |_| text))
            }
            What::Remove { name, told } => {
                let path = secrets_in(&told.data()?).join(name.as_str());
                match fs::remove_file(path) {
                    Ok(()) => {
                        let text = format!("secret {name} is gone\n");
                        Ok(answered(json!({ "secret": name }), move |_| text))
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Failure::because(
                        Exit::Failed,
                        anyhow!("there is no secret {name}"),
                    )),
                    Err(error) => Err(Failure::because(
                        Exit::Failed,
                        anyhow!("removing secret {name}: {error}"),
                    )),
                }
            }
        }
    }
}

/// What is to be kept: one line, without its end.
fn value(input: impl io::Read) -> anyhow::Result<String> {
    let mut text = String::new();
    input
        .take(MOST_BYTES + 1)
        .read_to_string(&mut text)
        .context("reading the secret from stdin")?;
    if text.len() as u64 > MOST_BYTES {
        bail!("the secret is larger than {MOST_BYTES} bytes");
    }
    let value = text.trim_end_matches(['\r', '\n']);
    if value.is_empty() {
        bail!("the secret is empty: give it on stdin");
    }
    if value.chars().any(char::is_control) {
        bail!("the secret has to be one line of text");
    }
    Ok(value.to_owned())
}

fn names(data: &Path) -> anyhow::Result<Vec<String>> {
    let dir = secrets_in(data);
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("reading {}", dir.display())),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry
            .context("reading the directory of secrets")?
            .file_name();
        // What no secret can be called was put there by somebody else.
        if let Some(name) = name
            .to_str()
            .filter(|name| name.parse::<SecretName>().is_ok())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_one_line() {
        assert_eq!(value(&b"a b\r\n"[..]).unwrap(), "a b");
        for (input, word) in [
            (&b"\n"[..], "empty"),
            (b"a\nb", "one line"),
            (b"a\0", "one line"),
            (b"\xff", "reading"),
            (&[b'x'; 20_000], "larger"),
        ] {
            let error = value(input).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
