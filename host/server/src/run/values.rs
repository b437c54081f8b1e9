//! What a run keeps beyond its call, and finds again: in the store, on the shelf of its component.

use std::time::Duration;

use longshore_journal::record::Bytes;
use longshore_journal::values::{Failure, Found, Operation, Outcome};
use longshore_policy::limits::Limits;
use longshore_tasks::store::StoreError;
use longshore_tasks::values::{Change, Changed, How, Keys, Once, Room, Shelf, ValueStore};

/// How long a store that cannot be used is left alone, at most.
const PAUSE_MOST: Duration = Duration::from_secs(5);

/// What is asked of a shelf.
pub(crate) enum Asked {
    Value(String),
    Keys(Keys),
    Change(Change),
}

impl From<Operation> for Asked {
    fn from(operation: Operation) -> Self {
        let change = |key, how| Self::Change(Change { key, how });
        match operation {
            Operation::Get { key } => Self::Value(key),
            Operation::List {
                prefix,
                after,
                limit,
            } => Self::Keys(Keys {
                prefix,
                after,
                limit: limit as usize,
            }),
            Operation::Set { key, value } => change(key, How::Set(value)),
            Operation::Delete { key } => change(key, How::Delete),
            Operation::Increment { key, delta } => change(key, How::Add(delta)),
            Operation::Swap { key, expected, new } => change(key, How::Swap { expected, new }),
        }
    }
}

/// What a shelf has room for.
pub(crate) fn room(limits: &Limits) -> Room {
    Room {
        keys: limits.values,
        bytes: limits.values_bytes,
    }
}

/// What a guest is told of a change.
pub(crate) fn told(changed: Changed) -> Outcome {
    match changed {
        Changed::Done => Ok(Found::Done),
        Changed::Sum(sum) => Ok(Found::Number(sum)),
        Changed::Swapped(swapped) => Ok(Found::Swapped(swapped)),
        Changed::NoNumber => Err(Failure::Invalid(
            "what is kept there is not the text of a number".to_owned(),
        )),
        Changed::Overflow => Err(Failure::Invalid(
            "the sum does not fit into 64 bits".to_owned(),
        )),
        Changed::TooManyKeys(most) => Err(Failure::Limit(format!(
            "a component may keep {most} keys, and keeps that many (limits.values)"
        ))),
        Changed::TooManyBytes(most) => Err(Failure::Limit(format!(
            "a component may keep {most} bytes, and with these it would keep more (limits.values_mib)"
        ))),
    }
}

/// Does it, however long the store cannot be used: a change may have been made and only its answer been lost, and nobody
/// but the store knows. Never returns to a call that has ended.
pub(crate) async fn operate(
    store: &dyn ValueStore,
    shelf: &Shelf,
    once: Once,
    room: Room,
    operation: Operation,
) -> Outcome {
    let asked = Asked::from(operation);
    let mut pause = Duration::from_millis(50);
    loop {
        let outcome = match &asked {
            Asked::Value(key) => store
                .value(shelf, key)
                .await
                .map(|value| Ok(Found::Value(value.map(Bytes)))),
            Asked::Keys(which) => store.keys(shelf, which.clone()).await.map(|page| {
                Ok(Found::Keys {
                    keys: page.keys,
                    next: page.next,
                })
            }),
            Asked::Change(change) => store
                .change(shelf, once, change.clone(), room)
                .await
                .map(told),
        };
        match outcome {
            Ok(outcome) => return outcome,
            Err(StoreError::Fenced) => std::future::pending().await,
            Err(error) => {
                tracing::warn!(%error, call = %once.call, "what a component keeps waits for the store");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MOST);
            }
        }
    }
}
