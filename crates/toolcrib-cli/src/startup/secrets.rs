//! Reads secrets, and says what is waited for if their commands take long.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use toolcrib::runners::{SecretSources, Secrets};

use crate::screen;

/// After how long to print what is waited for.
const NOTICE_DELAY: Duration = Duration::from_secs(2);

/// Reads all secrets.
pub(super) fn read(sources: SecretSources) -> Secrets {
    if !sources.has_commands() {
        return Secrets::read(sources);
    }
    let (done, ended) = channel::<()>();
    let notice = move || {
        if ended.recv_timeout(NOTICE_DELAY) == Err(RecvTimeoutError::Timeout) {
            screen::note("waiting for the commands that print secrets (`secrets` of the config)");
        }
    };
    // Without the thread there is no notice.
    let notice = thread::Builder::new().name("notice".to_owned()).spawn(notice);
    let secrets = Secrets::read(sources);
    drop(done);
    if let Ok(notice) = notice {
        let _ = notice.join();
    }
    secrets
}
