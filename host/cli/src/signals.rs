//! Being told to stop: once kindly, twice at once.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::exit::Exit;

/// Whether somebody has asked this process to stop.
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens for SIGTERM and Ctrl-C from now on. The second of them ends the process, whatever it does,
    /// with that code.
    pub(crate) fn listen(second: Exit) -> io::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // A file that may not grow further is an error of the write, like a full disk, and no reason to die.
        drop(signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?);
        let (asked, is_asked) = watch::channel(false);
        // It lives as long as the process, which may need its second half to get out of anything.
        drop(tokio::spawn(async move {
            for is_second in [false, true] {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                if is_second {
                    std::process::exit(second as i32);
                }
                asked.send_replace(true);
            }
        }));
        Ok(Self(is_asked))
    }

    /// Waits until somebody asks.
    pub(crate) async fn asked(&mut self) {
        // An error means that the runtime ends, which is the same.
        let _ended = self.0.wait_for(|asked| *asked).await;
    }
}
