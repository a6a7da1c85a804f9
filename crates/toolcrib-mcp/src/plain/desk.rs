//! Where the lines of one client are worked on.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, Instant};

use toolcrib_core::suspension::Answer;
use toolcrib_json::Tape;

use super::begun::Begun;
use super::message::{Message, Wanted};
use super::written;
use crate::McpServer;
use crate::connection::Connection;
use crate::unreadable::{self, too_deep, unreadable};

/// A tool that keeps its thread for longer is not called between two lines,
const HEAVY: Duration = Duration::from_millis(1);
/// for as long as this.
const HEAVY_FOR: Duration = Duration::from_secs(1);

/// Answers one client's plain lines.
pub(crate) struct Desk {
    server: McpServer,
    connection: Arc<Connection>,
    /// Since when tools are known to keep their thread. Names of tools there are, or were.
    heavy: HashMap<Box<str>, Instant>,
}

impl Desk {
    pub(crate) fn new(server: McpServer, connection: Arc<Connection>) -> Self {
        Self { server, connection, heavy: HashMap::new() }
    }

    /// Appends the answer to a line, and the end of a line, to `text`. False if the protocol library
    /// has to answer it, which passes over what is no JSON.
    pub(super) fn answer(&mut self, line: &[u8], text: &mut Vec<u8>, cx: &mut Context<'_>) -> bool {
        let line = line.trim_ascii_end();
        if line.is_empty() {
            return false;
        }
        let parsed =
            std::str::from_utf8(line).ok().and_then(|line| toolcrib_json::parse(line).ok());
        let error = match &parsed {
            // First: what has begun is handed over, and the library would never come to it.
            Some(tape) => too_deep(tape.text()),
            None => unreadable(line),
        };
        let answered = match (error, parsed) {
            (Some(error), _) => {
                text.extend(unreadable::answer(error));
                true
            }
            (None, Some(tape)) => self.answered(&tape, text, cx).is_some(),
            (None, None) => false,
        };
        if answered {
            text.push(b'\n');
        }
        answered
    }

    fn answered(
        &mut self,
        tape: &Tape<'_>,
        text: &mut Vec<u8>,
        cx: &mut Context<'_>,
    ) -> Option<()> {
        let message = Message::of(tape)?;
        let standing = &self.connection.standing;
        let takes = standing.takes(&message)?;
        let (name, arguments) = match message.wanted {
            Wanted::List => {
                let page = self.server.tools(&self.server.turn()).written(takes)?;
                for piece in written::list(message.id(), page) {
                    text.extend_from_slice(&piece);
                }
                return Some(());
            }
            Wanted::Call { name, arguments } => (name, arguments),
        };
        // Whoever wants to be told more is told by the library.
        let id = message.request_id();
        if self.connection.level().is_some() || self.is_heavy(name) || !standing.has_room_for(&id) {
            return None;
        }
        let since = Instant::now();
        let mut begun = Begun::new(&self.server, message.call(name, arguments), message.trace());
        // Clients that take tasks are not plain; this one is refused.
        if self.server.is_task_only(&begun.turn, name) {
            return None;
        }
        let answer = begun.poll(cx);
        if since.elapsed() > HEAVY && begun.turn.describe(name).is_some() {
            self.heavy.insert(name.into(), since);
        }
        match answer {
            Some(Answer::Done(result)) => {
                self.server.note_links(&result);
                written::call(text, message.id(), &begun.turn, &result, takes);
                Some(())
            }
            Some(waiting @ Answer::Suspended(_)) => {
                self.connection.standing.hand_over(id, begun.answered(waiting));
                None
            }
            None => {
                self.connection.standing.hand_over(id, begun);
                None
            }
        }
    }

    fn is_heavy(&self, name: &str) -> bool {
        !self.heavy.is_empty()
            && self.heavy.get(name).is_some_and(|since| since.elapsed() < HEAVY_FOR)
    }
}
