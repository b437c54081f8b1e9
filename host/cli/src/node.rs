//! `node`: the figures of a server.

use serde_json::Value;

use crate::admin::{Client, Reach};
use crate::exit::Failure;
use crate::output::{cell, facts};
use crate::{Done, answered};

/// Shows the figures of a server.
#[derive(clap::Args)]
pub(crate) struct Node {
    #[command(flatten)]
    reach: Reach,
}

impl Node {
    pub(crate) async fn run(self) -> Result<Done, Failure> {
        let figures = Client::new(self.reach)?.get("/v1/node").await?;
        Ok(answered(figures, describe))
    }
}

/// Whatever figures there are, those in groups under the name of their group.
fn describe(figures: &Value) -> String {
    let mut rows = Vec::new();
    for (name, value) in figures.as_object().into_iter().flatten() {
        match value {
            Value::Object(group) => {
                rows.extend(
                    group
                        .keys()
                        .map(|member| (format!("{name}.{member}"), cell(value, member))),
                );
            }
            _ => rows.push((name.clone(), cell(figures, name))),
        }
    }
    let rows: Vec<(&str, Option<String>)> = rows
        .iter()
        .map(|(name, value)| (name.as_str(), Some(value.clone())))
        .collect();
    facts(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_written_out() {
        let figures =
            serde_json::json!({ "tools": 2, "runs": { "live": 1, "most": 256 }, "version": "0" });
        assert_eq!(
            describe(&figures),
            "tools      2\nruns.live  1\nruns.most  256\nversion    0\n"
        );
    }
}
