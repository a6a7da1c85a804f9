//! Where the lines of one client are worked on.

use std::sync::Arc;
use std::task::Context;
use std::time::Instant;

use toolcrib_core::suspension::Answer;
use toolcrib_json::Tape;

use super::message::{Message, Wanted};
use super::slow_tools::SlowTools;
use crate::McpServer;
use crate::fast_path::answer_text;
use crate::fast_path::started_call::Begun;
use crate::session::connection::Connection;
use crate::transport::malformed::{too_deep, unreadable};

/// Answers one client's plain lines.
pub(crate) struct Desk {
    server: McpServer,
    connection: Arc<Connection>,
    slow: SlowTools,
}

impl Desk {
    pub(crate) fn new(server: McpServer, connection: Arc<Connection>) -> Self {
        Self { server, connection, slow: SlowTools::default() }
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
                text.extend(error.answer());
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
                for piece in answer_text::list(message.id(), page) {
                    text.extend_from_slice(&piece);
                }
                return Some(());
            }
            Wanted::Call { name, arguments } => (name, arguments),
        };
        // Whoever wants to be told more is told by the library.
        let id = message.request_id();
        if self.connection.level().is_some() || self.slow.has(name) || !standing.has_room_for(&id) {
            return None;
        }
        let called = Instant::now();
        let mut begun = Begun::new(&self.server, message.call(name, arguments), message.trace());
        // Clients that take tasks are not plain; this one is refused.
        if self.server.is_task_only(&begun.turn, name) {
            return None;
        }
        let answer = begun.poll(cx);
        let is_known = || begun.turn.describe(name).is_some();
        self.slow.note(name, called, called.elapsed(), is_known);
        match answer {
            Some(Answer::Done(result)) => {
                self.server.note_links(&result);
                answer_text::call(text, message.id(), &begun.turn, &result, takes);
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
}
