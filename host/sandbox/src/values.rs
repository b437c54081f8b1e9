//! What a component keeps beyond its calls, and what its calls leave, as its runs reach it.

use longshore_journal::call::Request;
use longshore_journal::record::Bytes;
use longshore_journal::values::{Failure, Found, Operation, Outcome};
use wasmtime::Result;

use crate::bindings::longshore::tool::artifacts;
use crate::bindings::longshore::tool::key_value::{Error, Host, Page};
use crate::fault::Halt;
use crate::host::State;
use crate::rules::Settled;

/// The most keys of a page, as the interface says.
const PAGE: u32 = 1_000;

impl State {
    async fn operate(&mut self, operation: Operation) -> Result<Result<Found, Error>> {
        let outcome = self.outcome(operation).await?;
        Ok(outcome.map_err(|failure| match failure {
            Failure::Limit(text) => Error::Limit(text),
            Failure::Invalid(text) => Error::Invalid(text),
        }))
    }

    /// Asks for what is recorded, or else for what there is.
    async fn outcome(&mut self, operation: Operation) -> Result<Outcome> {
        if let Settled::Refused(failure) = self.request(&Request::Values(&operation))? {
            return Ok(Err(failure));
        }
        let is_change = operation.is_change();
        let recorded = if is_change {
            self.world.changes()?
        } else {
            self.world.finds()?
        };
        if let Some(outcome) = recorded {
            return Ok(outcome);
        }
        if is_change {
            // Whoever repeats this comes here again and asks for the same, and gets what is done now.
            self.outside.settle().await;
            self.go_on()?;
        }
        let call = self.world.calls();
        let outcome = tokio::select! {
            biased;
            _ = self.control().until_stopped() => None,
            outcome = self.outside.values(call, operation) => Some(outcome),
        };
        self.go_on()?;
        let outcome = outcome.expect("whoever is not stopped has an answer");
        self.world.found(&outcome)?;
        Ok(outcome)
    }
}

/// What is found for that operation, or somebody has answered another one.
fn other(found: &Found) -> wasmtime::Error {
    Halt::Bug(format!("{found:?} was found for something else")).into()
}

impl artifacts::Host for State {
    async fn put(
        &mut self,
        name: String,
        mime_type: String,
        data: Vec<u8>,
    ) -> Result<Result<String, artifacts::Error>> {
        let operation = Operation::Put {
            name,
            mime_type,
            data,
        };
        Ok(match self.outcome(operation).await? {
            Ok(Found::Uri(uri)) => Ok(uri),
            Ok(found) => return Err(other(&found)),
            Err(Failure::Limit(text)) => Err(artifacts::Error::Limit(text)),
            Err(Failure::Invalid(text)) => Err(artifacts::Error::Invalid(text)),
        })
    }
}

impl Host for State {
    async fn get(&mut self, key: String) -> Result<Result<Option<Vec<u8>>, Error>> {
        Ok(match self.operate(Operation::Get { key }).await? {
            Ok(Found::Value(value)) => Ok(value.map(|Bytes(value)| value)),
            Ok(found) => return Err(other(&found)),
            Err(error) => Err(error),
        })
    }

    async fn set(&mut self, key: String, value: Vec<u8>) -> Result<Result<(), Error>> {
        Ok(match self.operate(Operation::Set { key, value }).await? {
            Ok(Found::Done) => Ok(()),
            Ok(found) => return Err(other(&found)),
            Err(error) => Err(error),
        })
    }

    async fn delete(&mut self, key: String) -> Result<Result<(), Error>> {
        Ok(match self.operate(Operation::Delete { key }).await? {
            Ok(Found::Done) => Ok(()),
            Ok(found) => return Err(other(&found)),
            Err(error) => Err(error),
        })
    }

    async fn list_keys(
        &mut self,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> Result<Result<Page, Error>> {
        let operation = Operation::List {
            prefix,
            after,
            limit: limit.clamp(1, PAGE),
        };
        Ok(match self.operate(operation).await? {
            Ok(Found::Keys { keys, next }) => Ok(Page { keys, next }),
            Ok(found) => return Err(other(&found)),
            Err(error) => Err(error),
        })
    }

    async fn increment(&mut self, key: String, delta: i64) -> Result<Result<i64, Error>> {
        let operation = Operation::Increment { key, delta };
        Ok(match self.operate(operation).await? {
            Ok(Found::Number(sum)) => Ok(sum),
            Ok(found) => return Err(other(&found)),
            Err(error) => Err(error),
        })
    }

    async fn swap(
        &mut self,
        key: String,
        expected: Option<Vec<u8>>,
        new: Option<Vec<u8>>,
    ) -> Result<Result<bool, Error>> {
        let operation = Operation::Swap { key, expected, new };
        Ok(match self.operate(operation).await? {
            Ok(Found::Swapped(swapped)) => Ok(swapped),
            Ok(found) => return Err(other(&found)),
            Err(error) => Err(error),
        })
    }
}
