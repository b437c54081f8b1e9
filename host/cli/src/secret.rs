//! Whether the secret is the one that the unfinished tasks of a database need. Without it they cannot go on, and nobody
//! could tell why.

use anyhow::{Context as _, bail};
use longshore_store::sqlite::{Sealed, Sqlite};

use crate::data::DataDir;
use crate::keys::RootSecret;

/// The option of `serve` by which they are given up.
pub(crate) const GIVE_UP: &str = "--give-up-sealed";

/// What was found.
pub(crate) struct Known {
    /// The secret from now on.
    pub(crate) secret: RootSecret,
    /// It is another one than that of tasks that have not ended.
    pub(crate) gives_up: bool,
}

/// The secret of a data directory: that of its database, or a new one if nothing needs the old one any more.
pub(crate) async fn of(data: &DataDir, store: &Sqlite, may_give_up: bool) -> anyhow::Result<Known> {
    let kept = data.kept_secret()?;
    let Sealed { sign, unfinished } = store
        .sealed()
        .await
        .context("looking for the secret of the database")?;
    let is_other = match (&kept, &sign) {
        (Some(secret), Some(sign)) => secret.sign()[..] != sign[..],
        // Of a version that noted no sign.
        (Some(_), None) => false,
        (None, _) => true,
    };
    let gives_up = is_other && unfinished > 0;
    if gives_up && !may_give_up {
        let tasks = match unfinished {
            1 => "one unfinished task of this data was".to_owned(),
            some => format!("{some} unfinished tasks of this data were"),
        };
        let is = if kept.is_some() {
            "is another secret than the one that"
        } else {
            "is missing, the secret that"
        };
        bail!(
            "{} {is} {tasks} sealed with: restore it from a backup, or give them up by starting with {GIVE_UP}",
            data.secret_file().display(),
        );
    }
    let secret = match kept {
        Some(secret) => secret,
        None => data.secret()?,
    };
    let new = secret.sign();
    // Of what is given up only when that is done.
    if !gives_up && sign.as_deref() != Some(&new[..]) {
        store
            .note_secret(new)
            .await
            .context("noting the secret in the database")?;
    }
    if is_other && sign.is_some() {
        tracing::warn!(
            file = %data.secret_file().display(),
            given_up = unfinished,
            "another secret than before is in force"
        );
    }
    Ok(Known { secret, gives_up })
}
