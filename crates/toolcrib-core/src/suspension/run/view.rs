//! Runs as JSON.

use serde_json::{Value, json};

use super::Run;
use crate::approval::ShownCall;
use crate::suspension::{Suspension, Waiting};

impl Run {
    /// The run as JSON for protocols: `{id, status, required_action?}`, where the action has the
    /// type `submit_tool_outputs` if calls wait for the client, and lists them in OpenAI's form;
    /// calls that wait for anything else are listed under `waiting`.
    pub fn to_value(&self) -> Value {
        let (client, others): (Vec<_>, Vec<_>) =
            self.outstanding().partition(|one| matches!(one.waiting(), Waiting::Client));
        let mut run = json!({"id": self.id().as_str(), "status": self.state().as_str()});
        if !client.is_empty() {
            let calls: Vec<_> = client.into_iter().map(tool_call).collect();
            run["required_action"] = json!({
                "type": "submit_tool_outputs",
                "submit_tool_outputs": {"tool_calls": calls},
            });
        }
        if !others.is_empty() {
            run["waiting"] = others.into_iter().map(waiting).collect();
        }
        run
    }
}

fn tool_call(suspension: &Suspension) -> Value {
    json!({
        "id": suspension.call_id(),
        "type": "function",
        "function": {"name": suspension.tool(), "arguments": suspension.arguments()},
    })
}

fn waiting(suspension: &Suspension) -> Value {
    let mut value = json!({
        "id": suspension.id().as_str(),
        "call_id": suspension.call_id(),
        "tool": suspension.tool(),
        "type": suspension.waiting().as_str(),
        "expires_at": suspension.expires_at().unix_millis(),
    });
    match suspension.waiting() {
        Waiting::Approval { reason, rule } => {
            value["reason"] = reason.as_str().into();
            value["rule"] = rule.as_str().into();
            let ShownCall { arguments, injected, plan, .. } = suspension.shown();
            value["arguments"] = arguments.clone();
            value["injected"] = Value::Object(injected.clone());
            if let Some(plan) = plan {
                value["plan"] = plan.clone();
            }
        }
        Waiting::Input { message, schema, .. } => {
            value["message"] = message.as_str().into();
            value["schema"] = schema.clone();
        }
        Waiting::Pending { ticket } => value["ticket"] = ticket.as_str().into(),
        Waiting::Client => {}
    }
    value
}
