//! The JSON form of a run.

use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use toolcrib_core::audit::rfc3339;
use toolcrib_core::clock::Timestamp;
use toolcrib_core::masking::LiveMask;
use toolcrib_core::run::{Run, RunState};

use super::result::CallResult;

/// Calls of which some may be suspended, until every call has its final answer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Run")]
pub(crate) struct RunBody {
    /// The run's id.
    id: String,
    /// `requires_action`, `completed`, `cancelled` or `expired`.
    #[schemars(with = "String")]
    status: RunState,
    /// When the run was created; RFC 3339.
    created_at: String,
    /// What the client has to do: run these calls and submit their outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RequiredAction>")]
    required_action: Option<Value>,
    /// Calls that wait for something else: an approval, an answer, or work elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<SuspendedCall>>")]
    waiting: Option<Value>,
    /// The answers so far, in the order of the calls.
    results: Vec<CallResult>,
}

/// What the client has to do, in OpenAI's format.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the shape of what `Run::to_value` makes")]
struct RequiredAction {
    /// Always `submit_tool_outputs`.
    r#type: String,
    submit_tool_outputs: OutstandingCalls,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "the shape of what `Run::to_value` makes")]
struct OutstandingCalls {
    /// The calls, each `{id, type: function, function: {name, arguments}}`.
    tool_calls: Vec<Map<String, Value>>,
}

/// A suspended call.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the shape of what `Run::to_value` makes")]
struct SuspendedCall {
    /// The id to resolve it by.
    id: String,
    /// The caller's id of the call.
    call_id: String,
    /// The tool's name.
    tool: String,
    /// What it waits for: `approval`, `input` or `pending`.
    r#type: String,
    /// When the wait ends, in milliseconds since 1970.
    expires_at: u64,
    /// Why somebody is asked.
    reason: Option<String>,
    /// The rule that requires approval.
    rule: Option<String>,
    /// The arguments of a call that waits for approval; secrets and sensitive values are masked.
    arguments: Option<Value>,
    /// Values that the host fills in, by parameter name, masked in the same way.
    injected: Option<Map<String, Value>>,
    /// What the tool would do, as far as it can tell, masked in the same way.
    plan: Option<Value>,
    /// The tool's question.
    message: Option<String>,
    /// The JSON Schema of the answer.
    schema: Option<Value>,
    /// The id of the work elsewhere.
    ticket: Option<String>,
}

impl From<&Run> for RunBody {
    fn from(run: &Run) -> Self {
        let mut shown = run.to_value();
        let mut take = |key: &str| shown.get_mut(key).map(Value::take);
        let (required_action, waiting) = (take("required_action"), take("waiting"));
        Self {
            id: run.id().as_str().to_owned(),
            status: run.state(),
            created_at: time(run.record().created_at()),
            required_action,
            waiting,
            results: run.answered().map(|result| CallResult::from(&result)).collect(),
        }
    }
}

impl RunBody {
    /// Masks what waits: a value may have become a secret since it was stored.
    pub(super) fn masked(self, mask: &LiveMask) -> Self {
        Self { waiting: self.waiting.map(|waiting| mask.value(waiting)), ..self }
    }
}

pub(super) fn time(at: Timestamp) -> String {
    rfc3339(SystemTime::UNIX_EPOCH + Duration::from_millis(at.unix_millis()))
}
