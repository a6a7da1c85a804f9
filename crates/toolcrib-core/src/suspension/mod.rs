#![doc = include_str!("../docs/suspension.md")]

mod caller;
mod grant;
mod id;
mod memory;
mod parents;
mod redeem;
mod resolved;
pub mod run;
mod settled;
mod store;
mod stored_form;
mod submission;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_tool::{
    Arguments, CallId, InputPart, InputRequest, Ticket, ToolCall, ToolEntry, ToolResult,
    canonical_json,
};

use crate::NoRandomness;
use crate::approval::ShownCall;
use crate::identity::fingerprint::Fingerprint;
use crate::storage::clock::Timestamp;

pub(crate) use crate::suspension::parents::{Finished, Frame, MadeCall, Within};
pub use caller::Caller;
pub(crate) use grant::readable;
pub use grant::{Grant, Granted};
pub use id::SuspensionId;
pub use memory::MemorySuspensions;
pub use redeem::{RedeemError, Resolution, check_answer, redeem};
pub(crate) use redeem::{redeem_for_caller, too_late};
pub use resolved::{ResolutionKind, Resolved};
pub use settled::{Outcome, Settled};
pub use store::{StoreError, SuspensionStore};
pub use submission::{NO_OUTPUT, Submission, SubmitError, check_submissions, client_output};

/// The state of a call: its final answer, or its suspension.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are done: a box would cost every call an allocation to spare the few that \
              wait. Whether the lint speaks depends on the features of serde_json"
)]
pub enum Answer {
    /// The final answer.
    Done(ToolResult),
    /// It waits for its final answer.
    Suspended(Box<Suspension>),
}

/// A suspended call, as plain data that outlives its process.
///
/// Its arguments have been checked. It is bound to them, to the definition, to the injected values,
/// and to the caller's identity. [`redeem`] turns it into a [`Grant`] once.
///
/// ```
/// use toolcrib_core::clock::Timestamp;
/// use toolcrib_core::suspension::{Suspension, Waiting};
/// use toolcrib_tool::{Arguments, CallId, Layer, Source, ToolDefinition, ToolEntry};
///
/// let definition = ToolDefinition::builder("pick_file").description("Ask for a file.").build()?;
/// let entry = ToolEntry::client(definition, Source::new(Layer::Host, "doc"));
/// let arguments = Arguments::from_validated(r#"{"filter":"*.txt"}"#.to_owned());
/// let now = Timestamp::from_unix_millis(0);
/// let call = CallId::new("call_1");
/// let suspension = Suspension::new(&call, &entry, &arguments, Waiting::Client, now, Timestamp::NEVER)?
///     .for_identity("ada");
///
/// // Another process can read the stored form.
/// let kept = serde_json::to_string(&suspension)?;
/// assert_eq!(serde_json::from_str::<Suspension>(&kept)?, suspension);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "stored_form::StoredForm", into = "stored_form::StoredForm")]
pub struct Suspension {
    id: SuspensionId,
    call_id: String,
    tool: String,
    arguments: String,
    waiting: Waiting,
    definition_hash: Fingerprint,
    argument_hash: Fingerprint,
    identity: String,
    caller: Caller,
    shown: ShownCall,
    session: Option<String>,
    within: Option<Within>,
    /// Whether an approver has put the arguments in the place of the model's.
    is_changed: bool,
    created_at: Timestamp,
    expires_at: Timestamp,
}

/// What a suspended call waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Waiting {
    /// Approval.
    Approval {
        /// Why approval is needed.
        reason: String,
        /// The rule that requires it.
        rule: String,
    },
    /// The output of a tool that the client runs.
    Client,
    /// An answer to the tool's question.
    Input {
        /// The question.
        message: String,
        /// JSON Schema of the answer.
        schema: Value,
        /// The questions, if there are several.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<InputPart>,
        /// State that the tool gets back with the answer. It is not shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remembered: Option<Value>,
    },
    /// External work.
    Pending {
        /// The id of that work.
        ticket: String,
    },
}

impl Waiting {
    /// The stable word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Approval { .. } => "approval",
            Self::Client => "client",
            Self::Input { .. } => "input",
            Self::Pending { .. } => "pending",
        }
    }

    /// The state that the tool gets back when it runs again.
    pub(crate) fn remembered(&self) -> Option<&Value> {
        match self {
            Self::Input { remembered, .. } => remembered.as_ref(),
            _ => None,
        }
    }
}

/// The parts that identify equal calls of one caller.
pub(crate) struct CallKey<'k> {
    pub(crate) definition: Fingerprint,
    pub(crate) arguments: Fingerprint,
    /// The injected values, or all context values for a call that had already started.
    pub(crate) values: Fingerprint,
    pub(crate) identity: &'k str,
    pub(crate) session: Option<&'k str>,
    pub(crate) client: Option<&'k str>,
    pub(crate) client_key: Option<&'k str>,
}

impl CallKey<'_> {
    pub(crate) fn digest(&self) -> Fingerprint {
        Fingerprint::of_json(&serde_json::json!({
            "definition": self.definition.to_string(),
            "arguments": self.arguments.to_string(),
            "values": self.values.to_string(),
            "identity": self.identity,
            "session": self.session,
            "client": self.client,
            "client_key": self.client_key,
        }))
    }
}

impl From<InputRequest> for Waiting {
    fn from(request: InputRequest) -> Self {
        let InputRequest { message, schema, parts, remembered, .. } = request;
        Self::Input { message, schema, parts, remembered }
    }
}

impl From<Ticket> for Waiting {
    fn from(ticket: Ticket) -> Self {
        Self::Pending { ticket: ticket.id }
    }
}

impl Suspension {
    /// Creates the suspension of a call of `entry` with checked arguments.
    pub fn new(
        call: &CallId,
        entry: &ToolEntry,
        arguments: &Arguments,
        waiting: Waiting,
        created_at: Timestamp,
        expires_at: Timestamp,
    ) -> Result<Self, NoRandomness> {
        let tool = (entry.name(), Fingerprint::of_definition(entry));
        Self::of(call, tool, arguments, waiting, (created_at, expires_at))
    }

    /// As [`new`](Self::new), with the name and the fingerprint of the tool, and the times.
    pub(crate) fn of(
        call: &CallId,
        (tool, definition): (&str, Fingerprint),
        arguments: &Arguments,
        waiting: Waiting,
        (created_at, expires_at): (Timestamp, Timestamp),
    ) -> Result<Self, NoRandomness> {
        Ok(Self {
            id: SuspensionId::random()?,
            call_id: call.as_str().to_owned(),
            tool: tool.to_owned(),
            arguments: arguments.as_str().to_owned(),
            waiting,
            definition_hash: definition,
            argument_hash: Fingerprint::of_arguments(arguments),
            identity: String::new(),
            caller: Caller::default(),
            shown: ShownCall::default(),
            session: None,
            within: None,
            is_changed: false,
            created_at,
            expires_at,
        })
    }

    /// Binds it to an identity. Default: to callers without identity.
    #[must_use]
    pub fn for_identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// Sets the caller, with whose values the call runs.
    #[must_use]
    pub fn by(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// Sets what the approver is shown.
    #[must_use]
    pub fn showing(mut self, shown: ShownCall) -> Self {
        self.shown = shown;
        self
    }

    /// Sets whether an approver has put the arguments in the place of the model's.
    pub(crate) fn with_changed_arguments(mut self, is_changed: bool) -> Self {
        self.is_changed = is_changed;
        self
    }

    /// Sets the session of the call.
    #[must_use]
    pub fn in_session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Whether an approver has put the arguments in the place of the model's.
    pub(crate) fn has_changed_arguments(&self) -> bool {
        self.is_changed
    }

    /// What everybody may read of it: the arguments as the approver is shown them, without the state of its tool and
    /// the calls that led to it. A call cannot go on from that.
    #[must_use]
    pub fn for_readers(mut self) -> Self {
        self.arguments = match &self.shown.arguments {
            Value::Null => "{}".to_owned(),
            shown => canonical_json(shown),
        };
        if let Waiting::Input { remembered, .. } = &mut self.waiting {
            *remembered = None;
        }
        self.within = None;
        self
    }

    /// Its unguessable id.
    pub fn id(&self) -> &SuspensionId {
        &self.id
    }

    /// The caller's id of the call.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The name of the tool.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The checked arguments as JSON text.
    pub fn arguments(&self) -> &str {
        &self.arguments
    }

    /// The call as the caller made it.
    pub fn call(&self) -> ToolCall {
        self.outermost_call().unwrap_or_else(|| {
            ToolCall::new(self.call_id.as_str(), self.tool.as_str(), self.arguments.as_str())
        })
    }

    /// What it waits for.
    pub fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// The tool's fingerprint at the time of the call.
    pub fn definition_hash(&self) -> Fingerprint {
        self.definition_hash
    }

    /// The arguments' fingerprint.
    pub fn argument_hash(&self) -> Fingerprint {
        self.argument_hash
    }

    /// The identity on whose behalf the call was made; empty if the host named none.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The caller.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// What the approver is shown.
    pub fn shown(&self) -> &ShownCall {
        &self.shown
    }

    /// The digest of everything that identifies equal calls: the caller, the session, and the tool
    /// with its arguments and injected values. Stores find calls by it.
    pub fn call_key(&self) -> Fingerprint {
        let (definition, arguments, values) = self.outermost_identity();
        CallKey {
            definition,
            arguments,
            values,
            identity: &self.identity,
            session: self.session.as_deref(),
            client: self.caller.client_name(),
            client_key: self.caller.client_key(),
        }
        .digest()
    }

    /// The session the call belongs to.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// When it was suspended.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// When it expires.
    pub fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    /// Whether it has expired.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }
}
