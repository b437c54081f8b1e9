//! What a run keeps beyond its call, and finds again: in the store, on the shelf of its component.

use std::time::Duration;

use longshore_journal::record::Bytes;
use longshore_journal::values::{Failure, Found, Operation, Outcome};
use longshore_policy::limits::Limits;
use longshore_tasks::id::TaskId;
use longshore_tasks::store::StoreError;
use longshore_tasks::values::{Change, Changed, How, KeyPage, Keys, Once, Room, Shelf, ValueStore};

/// How long a store that cannot be used is left alone, at most.
const PAUSE_MOST: Duration = Duration::from_secs(5);

/// What is asked of a shelf.
pub(crate) enum Asked {
    Value(String),
    Keys(Keys),
    Change(Change),
}

/// Something that is to be left.
pub(crate) struct Leaving {
    pub(crate) name: String,
    pub(crate) mime_type: String,
    pub(crate) data: Vec<u8>,
}

/// Who is asked.
pub(crate) fn sorted(operation: Operation) -> Result<Asked, Leaving> {
    let change = |key, how| Ok(Asked::Change(Change { key, how }));
    match operation {
        Operation::Get { key } => Ok(Asked::Value(key)),
        Operation::List {
            prefix,
            after,
            limit,
        } => Ok(Asked::Keys(Keys {
            prefix,
            after,
            limit: limit as usize,
        })),
        Operation::Set { key, value } => change(key, How::Set(value)),
        Operation::Delete { key } => change(key, How::Delete),
        Operation::Increment { key, delta } => change(key, How::Add(delta)),
        Operation::Swap { key, expected, new } => change(key, How::Swap { expected, new }),
        Operation::Put {
            name,
            mime_type,
            data,
        } => Err(Leaving {
            name,
            mime_type,
            data,
        }),
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

/// How whoever needs an answer of the store waits for one, however long it cannot be used: a change may have been made
/// and only its answer been lost, and nobody but the store knows.
pub(crate) struct Patience {
    call: TaskId,
    pause: Duration,
}

impl Patience {
    pub(crate) fn of(call: TaskId) -> Self {
        Self {
            call,
            pause: Duration::from_millis(50),
        }
    }

    /// Returns when it may be tried again. Never returns to a call that has ended.
    pub(crate) async fn wait(&mut self, error: StoreError) {
        if matches!(error, StoreError::Fenced) {
            std::future::pending::<()>().await;
        }
        tracing::warn!(%error, call = %self.call, "what a call keeps waits for the store");
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MOST);
    }
}

/// Does one thing with a shelf.
pub(crate) async fn operate(
    store: &dyn ValueStore,
    shelf: &Shelf,
    once: Once,
    room: Room,
    asked: Asked,
) -> Outcome {
    let mut patience = Patience::of(once.call);
    loop {
        match attempt(store, shelf, once, room, &asked).await {
            Ok(outcome) => return outcome,
            Err(error) => patience.wait(error).await,
        }
    }
}

async fn attempt(
    store: &dyn ValueStore,
    shelf: &Shelf,
    once: Once,
    room: Room,
    asked: &Asked,
) -> Result<Outcome, StoreError> {
    Ok(match asked {
        Asked::Value(key) => {
            let value = store.value(shelf, key).await?;
            Ok(Found::Value(value.map(Bytes)))
        }
        Asked::Keys(which) => {
            let KeyPage { keys, next } = store.keys(shelf, which.clone()).await?;
            Ok(Found::Keys { keys, next })
        }
        Asked::Change(change) => told(store.change(shelf, once, change.clone(), room).await?),
    })
}
