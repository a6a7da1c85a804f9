//! Events of a stream, written so that each is sent at once.

use std::fmt::Write as _;

/// The last line of a stream of server-sent events, after its last event.
pub const SSE_DONE: &str = "data: [DONE]\n\n";

/// One event of a response's stream, ready to be sent.
///
/// Send the whole of [`as_sse`](Self::as_sse) with one write: there are clients that forget an event whose lines arrive in
/// two reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    name: String,
    sequence_number: u64,
    is_terminal: bool,
    /// `event: …`, `data: …` and an empty line.
    frame: String,
    /// Where the JSON begins in the frame.
    json: usize,
}

impl StreamEvent {
    /// An event; `write` appends its members after `type` and `sequence_number`, each with a comma before it.
    pub(crate) fn new(
        name: impl Into<String>,
        sequence_number: u64,
        is_terminal: bool,
        write: impl FnOnce(&mut String),
    ) -> Self {
        let name = name.into();
        let mut frame = String::with_capacity(name.len() * 2 + 192);
        frame.push_str("event: ");
        frame.push_str(&name);
        frame.push_str("\ndata: ");
        let json = frame.len();
        frame.push_str("{\"type\":\"");
        frame.push_str(&name);
        // Writing into a string cannot fail.
        let _ = write!(frame, "\",\"sequence_number\":{sequence_number}");
        write(&mut frame);
        frame.push_str("}\n\n");
        Self { name, sequence_number, is_terminal, frame, json }
    }

    /// The same event with another number.
    #[must_use]
    pub fn renumbered(self, sequence_number: u64) -> Self {
        if self.sequence_number == sequence_number {
            return self;
        }
        let json = self.json();
        let members = json
            .split_once("\"sequence_number\":")
            .map_or("", |(_, rest)| rest.trim_start_matches(|digit: char| digit.is_ascii_digit()));
        let members = members.strip_suffix('}').unwrap_or(members);
        Self::new(self.name.as_str(), sequence_number, self.is_terminal, |out| {
            out.push_str(members);
        })
    }

    /// The event's `type`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The event's position in the stream.
    pub fn sequence_number(&self) -> u64 {
        self.sequence_number
    }

    /// Whether no event follows.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// The event as a server-sent event, with the empty line at its end.
    pub fn as_sse(&self) -> &str {
        &self.frame
    }

    /// The event as a server-sent event, with the empty line at its end.
    pub fn into_sse(self) -> String {
        self.frame
    }

    /// The event's JSON, for example for a message on a WebSocket.
    pub fn json(&self) -> &str {
        self.frame.get(self.json..).unwrap_or_default().trim_end()
    }
}
