//! Waiting for others: the host looks now and again, and the call need not be there meanwhile.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use longshore_guest::wait::{self, Poll};
//!
//! # fn wait_for_it() -> Result<(), wait::Error> {
//! let job = Poll::get("https://ci.example.org/job/7")
//!     .every(Duration::from_secs(15))
//!     .until_equals("/state", ["done", "failed"])?;
//! println!("{}", job.text());
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::longshore::tool::types::CallError;
use crate::bindings::longshore::tool::wait as host;
use crate::task::whole_millis;

pub use host::PollError as Error;

/// A request that is sent again and again until its response is what is waited for.
#[derive(Clone, Debug)]
pub struct Poll {
    request: host::Request,
    every: Duration,
    give_up: Option<Duration>,
}

/// The response that was waited for.
#[derive(Clone, Debug)]
pub struct Response {
    inner: host::Response,
}

impl Poll {
    /// A GET of that URL, each minute until it is told otherwise.
    #[must_use]
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            request: host::Request {
                method: "GET".to_owned(),
                url: url.into(),
                headers: Vec::new(),
            },
            every: Duration::from_secs(60),
            give_up: None,
        }
    }

    /// Carries a field.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.request.headers.push((name.into(), value.into()));
        self
    }

    /// From one request to the next.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// How long to wait at most; without it until the deadline of the call.
    #[must_use]
    pub fn give_up_after(mut self, time: Duration) -> Self {
        self.give_up = Some(time);
        self
    }

    /// Waits until the response has one of these statuses.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn until_status(&self, statuses: impl IntoIterator<Item = u16>) -> Result<Response, Error> {
        self.until(&host::Condition::Status(statuses.into_iter().collect()))
    }

    /// Waits until one of these values stands at that JSON pointer of the response, such as `/state`.
    ///
    /// # Errors
    /// See [`Error`]; `Invalid` if a value has no JSON form.
    pub fn until_equals<T: Serialize>(
        &self,
        pointer: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Result<Response, Error> {
        let texts = values.into_iter().map(|value| {
            serde_json::to_string(&value).map_err(|error| Error::Invalid(error.to_string()))
        });
        self.until(&host::Condition::Equals(host::Expected {
            pointer: pointer.into(),
            one_of: texts.collect::<Result<_, _>>()?,
        }))
    }

    /// Waits until the response is not what it is at first.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn until_changed(&self) -> Result<Response, Error> {
        self.until(&host::Condition::Changed(None))
    }

    /// Waits until what stands at that JSON pointer of the response is not what it is at first.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn until_changed_at(&self, pointer: impl Into<String>) -> Result<Response, Error> {
        self.until(&host::Condition::Changed(Some(pointer.into())))
    }

    fn until(&self, until: &host::Condition) -> Result<Response, Error> {
        let every = whole_millis(self.every);
        let give_up = self.give_up.map(whole_millis);
        host::poll(&self.request, every, until, give_up).map(|inner| Response { inner })
    }
}

impl Response {
    /// Its status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.inner.status
    }

    /// The first value of a field.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.inner.headers.iter();
        fields
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Its body.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.inner.body
    }

    /// Its body as text; what is no UTF-8 in it is replaced.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.inner.body)
    }

    /// Its body as JSON.
    ///
    /// # Errors
    /// If it is none, or none of `T`.
    pub fn json<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.inner.body)
    }
}

impl From<Error> for CallError {
    /// A wait that a cancel ended ends the call as cancelled, any other as a tool error.
    fn from(error: Error) -> Self {
        match error {
            Error::CallCancelled => Self::Cancelled,
            Error::GaveUp => Self::tool("what was waited for did not come in time"),
            Error::Denied(why) => Self::tool(format!("the request to wait for is not sent: {why}")),
            Error::Invalid(why) => Self::tool(format!("the wait is malformed: {why}")),
            Error::Limit(why) => Self::tool(format!("the wait is over a limit: {why}")),
        }
    }
}
