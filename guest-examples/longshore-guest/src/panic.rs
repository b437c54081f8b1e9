//! A panic's last words.

use std::panic::PanicHookInfo;
use std::sync::Once;

use crate::bindings::longshore::tool::task::{self, Level};

static HOOK: Once = Once::new();

/// Sends the message of a panic to the log of the call and to standard error. A client never sees the second, and a
/// panic ends the instance before anything could be returned.
///
/// It takes the place of std's hook, whose last line is advice about backtraces that the sandbox cannot give: the last
/// line of standard error is what a person is shown when an instance dies.
pub(crate) fn install_hook() {
    // In an author's own unit tests there is no host to hear it, and a panic in the hook would hide the first one.
    if cfg!(not(target_family = "wasm")) {
        return;
    }
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let words = last_words(info);
            eprintln!("panic: {words}");
            task::log(Level::Error, Some("panic"), &words);
        }));
    });
}

fn last_words(info: &PanicHookInfo<'_>) -> String {
    let message = info.payload_as_str().unwrap_or("a panic without a message");
    match info.location() {
        Some(place) => format!("{message} ({place})"),
        None => message.to_owned(),
    }
}
