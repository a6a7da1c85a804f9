//! Lines that a person types at the terminal, for questions that may be given up.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use rustix::termios::{self, LocalModes, OptionalActions, QueueSelector, Termios, tcflush};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Mutex, oneshot};

type Line = io::Result<Option<String>>;

/// A read that has begun. It cannot be stopped when its question is given up.
static BEGUN: Mutex<Option<oneshot::Receiver<Line>>> = Mutex::const_new(None);

/// Whether there is a person who sees a question and can answer it.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The time within which nobody can have read a call and decided on it.
const TO_BE_SEEN: Duration = Duration::from_millis(300);

/// Forgets what was typed until now, and shortly after: it cannot be meant for what the terminal has just begun to
/// show. A model, whose words are on the same terminal, could have shown something like it before.
pub(crate) async fn forget() {
    tokio::time::sleep(TO_BE_SEEN).await;
    let mut begun = BEGUN.lock().await;
    drop_old(&mut begun);
    // What is no terminal has nothing to forget.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
}

/// A line that was typed after its question had been given up answers no later question.
fn drop_old(begun: &mut Option<oneshot::Receiver<Line>>) {
    if begun.as_mut().is_some_and(|line| !matches!(line.try_recv(), Err(TryRecvError::Empty))) {
        *begun = None;
    }
}

/// The next line, without its end; `None` at the end of input. The future may be dropped.
pub(crate) async fn read() -> Line {
    let mut begun = BEGUN.lock().await;
    drop_old(&mut begun);
    let line = begun.get_or_insert_with(begin).await;
    *begun = None;
    line.unwrap_or_else(|_| Err(io::Error::other("the thread that reads it has ended")))
}

/// Keeps the terminal from showing what is typed, until it is dropped.
pub(crate) struct HiddenInput {
    before: Option<Termios>,
}

impl HiddenInput {
    /// If the terminal cannot be set, what is typed stays visible: the question can still be answered.
    pub(crate) fn begin() -> Self {
        let before = termios::tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut hidden = before.clone();
            hidden.local_modes.remove(LocalModes::ECHO);
            // The end of the line is shown, so that what follows begins on a new one.
            hidden.local_modes.insert(LocalModes::ECHONL);
            let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &hidden);
        }
        Self { before }
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

fn begin() -> oneshot::Receiver<Line> {
    let (sender, receiver) = oneshot::channel();
    // Reading a terminal blocks a thread until the process ends.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        let read =
            read.map(|bytes| (bytes > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()));
        // The question may have been given up.
        let _ = sender.send(read);
    });
    receiver
}
