//! The replies of a scripted model.

use serde_json::Value;
use toolcrib_wire::model::Wire;

use super::stream;

/// A reply of a scripted model.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) reasoning: Option<String>,
    pub(super) text: Option<String>,
    /// Names and arguments.
    pub(super) calls: Vec<(String, String)>,
    pub(super) is_cut_by_length: bool,
    pub(super) body: Option<Vec<u8>>,
    pub(super) fault: Fault,
}

/// A mistake of a scripted model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// None.
    None,
    /// A status instead of an answer.
    Status {
        /// The status.
        status: u16,
        /// Headers.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
    /// The connection closes regularly after this many bytes of the answer.
    CutAfter(usize),
    /// The connection breaks after this many bytes of the answer.
    BreakAfter(usize),
    /// Nothing more comes after this many bytes of the answer, and the connection stays open.
    StallAfter(usize),
    /// The connection closes before a status.
    NoStatus,
    /// The answer comes in pieces of this many bytes.
    Pieces(usize),
}

impl Reply {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            reasoning: None,
            text: Some(text.into()),
            calls: Vec::new(),
            is_cut_by_length: false,
            body: None,
            fault: Fault::None,
        }
    }

    /// A call. The arguments are JSON; a string is sent as it is, even if it is not JSON.
    pub fn call(tool: impl Into<String>, arguments: impl Into<Value>) -> Self {
        Self { text: None, ..Self::text("") }.and_call(tool, arguments)
    }

    /// A body as it is, for example a recorded stream. What it says is unknown to the checks of later requests.
    pub fn body(bytes: impl Into<Vec<u8>>) -> Self {
        Self { body: Some(bytes.into()), ..Self::text("") }
    }

    /// A status instead of an answer.
    pub fn status(status: u16, body: impl Into<String>) -> Self {
        Self::text("").with_fault(Fault::Status { status, headers: Vec::new(), body: body.into() })
    }

    /// The reply with one more call.
    #[must_use]
    pub fn and_call(mut self, tool: impl Into<String>, arguments: impl Into<Value>) -> Self {
        let arguments = match arguments.into() {
            Value::String(text) => text,
            value => value.to_string(),
        };
        self.calls.push((tool.into(), arguments));
        self
    }

    /// The reply with a text before its calls.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// The reply with reasoning before its text. Clients have to send it back unchanged.
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: impl Into<String>) -> Self {
        self.reasoning = Some(reasoning.into());
        self
    }

    /// The reply, stopped by the limit on its length.
    #[must_use]
    pub fn cut_by_length(mut self) -> Self {
        self.is_cut_by_length = true;
        self
    }

    /// The reply with a fault.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }

    /// The bytes of the reply with this number, as the server streams them.
    pub fn stream(&self, wire: Wire, number: usize) -> Vec<u8> {
        stream::bytes(wire, self, number)
    }

    /// Whether a client may take the reply for complete, or not.
    pub(super) fn may_be_lost(&self) -> bool {
        matches!(self.fault, Fault::CutAfter(_) | Fault::BreakAfter(_) | Fault::StallAfter(_))
    }

    /// Whether a client cannot get an answer.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.fault, Fault::Status { .. } | Fault::NoStatus)
    }

    /// The id of a call.
    pub(super) fn call_id(number: usize, index: usize) -> String {
        format!("call_{number}_{index}")
    }

    /// What has to come back with the reasoning.
    pub(super) fn signature(number: usize) -> String {
        format!("c2lnbmF0dXJl{number}==")
    }
}
