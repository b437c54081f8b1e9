//! The call that is running.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::argument::Argument;
use crate::ask::{self, Answer, AskError, AskKind, KeyedQuestion, Question, Reply};
use crate::result::Cancelled;
use crate::task::{self, Level};

/// The call that is running, and what it can tell and ask. A tool takes it as an argument of type `&Context`, at any
/// place among the others; callers do not see it.
///
/// Outside a component, as in an author's own unit tests, each of these panics.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Context;

impl Context {
    /// Says in a few words what the call is doing now.
    pub fn status(&self, message: impl AsRef<str>) {
        task::set_status(message.as_ref());
    }

    /// Says how far the call is: `done` of `total`, in any unit.
    pub fn progress(&self, done: f64, total: f64) {
        task::report_progress(done, Some(total), None);
    }

    /// Writes to the log of the call: the operator's, and the client's if it asked for this level.
    pub fn log(&self, level: Level, message: impl AsRef<str>) {
        task::log(level, message.as_ref());
    }

    /// Waits without using up CPU.
    ///
    /// # Errors
    /// [`Cancelled`] if a cancel woke it.
    pub fn sleep(&self, time: Duration) -> Result<(), Cancelled> {
        task::sleep(time)
    }

    /// Whether the call was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        task::is_cancelled()
    }

    /// Goes on, or ends the call if it was cancelled: `ctx.check_cancelled()?`.
    ///
    /// # Errors
    /// [`Cancelled`] if it was.
    pub fn check_cancelled(&self) -> Result<(), Cancelled> {
        task::check_cancelled()
    }

    /// Time until the deadline of the call, zero once it has passed, `None` if it has none.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        task::time_left()
    }

    /// The id of this call: unique, and the same when the run goes on in another process.
    #[must_use]
    pub fn id(&self) -> String {
        task::call_id()
    }

    /// Makes the call a task now, if its caller knows tasks and the tool's mode is not `never`.
    pub fn detach(&self) {
        task::detach();
    }

    /// Does a piece of work once, even if the process dies in between; see [`task::step`].
    ///
    /// # Panics
    /// When the value has no JSON form, or a form that does not give the value back.
    pub fn step<T: Serialize + DeserializeOwned>(&self, name: &str, work: impl FnOnce() -> T) -> T {
        task::step(name, work)
    }

    /// Saves a point to start from if the run dies; see [`task::checkpoint`].
    ///
    /// # Panics
    /// When the state has no JSON form.
    pub fn checkpoint<T: Serialize>(&self, state: &T) -> ! {
        task::checkpoint(state)
    }

    /// Whether a question of that kind can reach the client of this call.
    #[must_use]
    pub fn can_ask(&self, kind: AskKind) -> bool {
        ask::can_ask(kind)
    }

    /// Shows a form with a field for each of `T`, and waits until it is filled in or the call's deadline is there.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn ask<T: Argument>(&self, key: &str, message: &str) -> Result<Reply<T>, AskError> {
        ask::one(key, &Question::form_of::<T>(message), None)?.into_argument()
    }

    /// Asks any one question.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn ask_one(
        &self,
        key: &str,
        question: &Question,
        wait: Option<Duration>,
    ) -> Result<Answer, AskError> {
        ask::one(key, question, wait)
    }

    /// Asks several questions at once and waits for all.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn ask_all(
        &self,
        questions: &[KeyedQuestion],
        wait: Option<Duration>,
    ) -> Result<Vec<Answer>, AskError> {
        ask::all(questions, wait)
    }
}
