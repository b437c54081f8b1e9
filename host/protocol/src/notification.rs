//! What is told without having been asked for: how far a call is, and what it logs.

use crate::meta::{LogLevel, ProgressToken};
use crate::write::{Object, push_plain};

/// How far a call is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The token of the request that wants to know.
    pub token: &'a ProgressToken,
    /// Units done; larger each time. Not finite is a fault of whoever made it.
    pub done: f64,
    /// Units in all, if known; finite.
    pub total: Option<f64>,
    /// A word on it, for people.
    pub message: Option<&'a str>,
}

impl Progress<'_> {
    /// `notifications/progress`, one JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        notification("notifications/progress", |params| {
            params.ours("progressToken", self.token.as_json());
            push_number(params.key("progress"), self.done);
            if let Some(total) = self.total {
                push_number(params.key("total"), total);
            }
            params.optional_text("message", self.message);
        })
    }
}

/// `notifications/message`, one JSON text.
#[must_use]
pub fn log_message(level: LogLevel, logger: Option<&str>, message: &str) -> String {
    notification("notifications/message", |params| {
        params.text("level", level.as_str());
        params.optional_text("logger", logger);
        params.text("data", message);
    })
}

/// Writes a finite number; without an exponent some would have hundreds of digits.
fn push_number(out: &mut String, number: f64) {
    let plain = number == 0.0 || (1e-5..1e15).contains(&number.abs());
    if plain {
        push_plain(out, number);
    } else {
        push_plain(out, format_args!("{number:e}"));
    }
}

fn notification(method: &str, write: impl FnOnce(&mut Object<'_>)) -> String {
    let mut out = String::new();
    let mut object = Object::open(&mut out);
    object.text("jsonrpc", "2.0");
    object.text("method", method);
    let mut params = object.object("params");
    write(&mut params);
    params.close();
    object.close();
    out
}
