//! Calls that a run waits for the client to answer.

use serde_json::{Value, json};
use toolcrib_tool::CallId;

/// A call that the client runs, and whose output is outstanding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutstandingCall {
    /// The call's id, which the output repeats.
    pub id: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON text.
    pub arguments: String,
}

impl OutstandingCall {
    /// A call of `name` with `arguments`, which are JSON text.
    pub fn new(id: CallId, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id, name: name.into(), arguments: arguments.into() }
    }
}

/// The `required_action` of a run that waits for tool outputs.
///
/// ```
/// use serde_json::json;
/// use toolcrib_tool::CallId;
/// use toolcrib_wire::responses::{OutstandingCall, RequiredAction};
///
/// let call = OutstandingCall::new(CallId::new("call_1"), "open_door", r#"{"door": 2}"#);
/// let action = RequiredAction::new([call]);
/// assert_eq!(
///     action.to_value(),
///     json!({
///         "type": "submit_tool_outputs",
///         "submit_tool_outputs": {"tool_calls": [{
///             "id": "call_1",
///             "type": "function",
///             "function": {"name": "open_door", "arguments": r#"{"door": 2}"#},
///         }]},
///     })
/// );
/// // What was written down can be read again, by another process too.
/// assert_eq!(RequiredAction::from_value(&action.to_value()), Some(action));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequiredAction {
    /// The calls, in the order in which the model made them.
    pub tool_calls: Vec<OutstandingCall>,
}

impl RequiredAction {
    /// The only `type` of this action.
    pub const TYPE: &'static str = "submit_tool_outputs";

    /// An action that waits for the outputs of these calls.
    pub fn new(tool_calls: impl IntoIterator<Item = OutstandingCall>) -> Self {
        Self { tool_calls: tool_calls.into_iter().collect() }
    }

    /// The action as JSON.
    pub fn to_value(&self) -> Value {
        let calls: Vec<Value> = self
            .tool_calls
            .iter()
            .map(|call| {
                json!({
                    "id": call.id.as_str(),
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                })
            })
            .collect();
        json!({"type": Self::TYPE, Self::TYPE: {"tool_calls": calls}})
    }

    /// Parses the result of [`to_value`](Self::to_value); `None` for anything else.
    pub fn from_value(value: &Value) -> Option<Self> {
        if value.get("type")?.as_str()? != Self::TYPE {
            return None;
        }
        let calls = value.get(Self::TYPE)?.get("tool_calls")?.as_array()?;
        let call = |call: &Value| {
            let function = call.get("function")?;
            Some(OutstandingCall::new(
                CallId::new(call.get("id")?.as_str()?),
                function.get("name")?.as_str()?,
                function.get("arguments")?.as_str()?,
            ))
        };
        Some(Self { tool_calls: calls.iter().map(call).collect::<Option<_>>()? })
    }
}
