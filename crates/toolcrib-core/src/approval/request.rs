//! The question that an approver is asked.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolcrib_tool::units::ByteSize;
use toolcrib_tool::{Arguments, CallId, ToolDefinition, fully_visible};

use crate::identity::fingerprint::Fingerprint;
use crate::storage::clock::Timestamp;
use crate::suspension::{Caller, Suspension, SuspensionId, Waiting};

/// A call that waits for a decision, with everything that the approver should know.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// The suspension's id, if the call is suspended.
    pub id: Option<SuspensionId>,
    /// The caller's id of the call.
    pub call_id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The tool's current definition, if this process has the tool.
    pub definition: Option<Arc<ToolDefinition>>,
    /// The arguments that the tool will get: checked and complete, and not masked.
    pub arguments: Arguments,
    /// What the approver may see of the call.
    pub shown: ShownCall,
    /// The user on whose behalf the call was made.
    pub asker: Asker,
    /// The caller's tenant and user as one text; empty where the host named neither.
    pub identity: Arc<str>,
    /// The session, if there is one.
    pub session: Option<Arc<str>>,
    /// Which rule asks, as text.
    pub rule: String,
    /// Why it asks.
    pub reason: String,
    /// When the question was asked.
    pub created_at: Timestamp,
    /// When the question expires, which denies the call.
    pub expires_at: Timestamp,
    /// Why the call would be refused even if it were approved now: its tool is gone, unavailable or changed,
    /// or its client may no longer make it.
    pub obstacle: Option<String>,
}

/// What an approver sees of a call: secrets and sensitive values are masked.
///
/// Nothing is truncated: what is approved is what was shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownCall {
    /// The arguments.
    pub arguments: Value,
    /// The values that the host injects, by parameter name.
    #[serde(default)]
    pub injected: Map<String, Value>,
    /// The tool's plan, if it can make one: [`Plan::to_value`](toolcrib_tool::Plan::to_value).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Value>,
    /// The digest of the code that would run, if the code can change while the definition stays the
    /// same ([`Tool::code`](toolcrib_tool::Tool::code)). The approval covers only this code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The tools whose running calls make this call, outermost first. Empty if the caller makes the
    /// call directly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub called_by: Vec<String>,
}

/// On whose behalf a call was made, as far as the host states it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asker {
    /// The tenant, as the host's context states it.
    pub tenant: Option<Value>,
    /// The user, as the host's context states it.
    pub user: Option<Value>,
    /// The name that the host gave the client.
    pub client: Option<String>,
}

impl Asker {
    /// Who made a suspended call.
    pub fn of(caller: &Caller) -> Self {
        Self {
            tenant: caller.tenant().cloned(),
            user: caller.user().cloned(),
            client: caller.client_name().map(str::to_owned),
        }
    }
}

impl ApprovalRequest {
    /// The question about a suspended call; `None` if it does not wait for approval.
    pub fn of(suspension: &Suspension, definition: Option<Arc<ToolDefinition>>) -> Option<Self> {
        let Waiting::Approval { reason, rule } = suspension.waiting() else { return None };
        Some(Self {
            id: Some(suspension.id().clone()),
            call_id: CallId::new(suspension.call_id()),
            tool: suspension.tool().to_owned(),
            definition,
            arguments: Arguments::from_validated(suspension.arguments().to_owned()),
            shown: suspension.shown().clone(),
            asker: Asker::of(suspension.caller()),
            identity: suspension.identity().into(),
            session: suspension.session().map(Arc::from),
            rule: rule.clone(),
            reason: reason.clone(),
            created_at: suspension.created_at(),
            expires_at: suspension.expires_at(),
            obstacle: None,
        })
    }

    /// The question as text, the same everywhere: the tool, why approval is needed, the tools that
    /// call it, the arguments, the injected values, what would run, and on whose behalf. Each has a
    /// line of its own. Nothing in the call can add a line or a terminal control character.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {} ({})", self.tool, line(&self.reason), line(&self.rule));
        let mut add = |name: &str, value: String| {
            let _ = write!(text, "\n{name}: {value}");
        };
        if !self.shown.called_by.is_empty() {
            add("called by", line(&self.shown.called_by.join(" > ")));
        }
        add("arguments", json_line(&self.shown.arguments));
        if !self.shown.injected.is_empty() {
            add("injected", json_line(&Value::Object(self.shown.injected.clone())));
        }
        if let Some(plan) = &self.shown.plan {
            for (name, value) in plan_lines(plan) {
                add(name, value);
            }
        }
        let Asker { tenant, user, client } = &self.asker;
        let client = client.as_deref().map(Value::from);
        let asker: Vec<_> = [("user", user), ("tenant", tenant), ("client", &client)]
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name} {}", json_line(value.as_ref()?))))
            .collect();
        if !asker.is_empty() {
            add("asked by", asker.join(", "));
        }
        if let Some(obstacle) = &self.obstacle {
            add("refused even if approved", line(obstacle));
        }
        text
    }

    /// The digest of what the approver sees: the tool, the rule and its reason, the tools that call
    /// it, the arguments, the injected values, the plan and the code that would run. The audit log
    /// stores it beside the decision. Equal digests mean equal questions.
    pub fn digest(&self) -> Fingerprint {
        question_digest(&self.tool, &self.shown, &self.rule, &self.reason)
    }

    /// The question as JSON: `digest`, `id`, `call_id`, `tool`, `arguments`, `injected`, `plan`,
    /// `called_by`, `rule`, `reason`, `asker`, `session`, `created_at` and `expires_at` (milliseconds since 1970),
    /// `obstacle`, and `text`.
    pub fn to_value(&self) -> Value {
        json!({
            "digest": self.digest().to_string(),
            "id": self.id.as_ref().map(SuspensionId::as_str),
            "call_id": self.call_id.as_str(),
            "tool": self.tool,
            "arguments": self.shown.arguments,
            "injected": self.shown.injected,
            "plan": self.shown.plan,
            "called_by": self.shown.called_by,
            "rule": self.rule,
            "reason": self.reason,
            "asker": {
                "tenant": self.asker.tenant,
                "user": self.asker.user,
                "client": self.asker.client,
            },
            "session": self.session.as_deref(),
            "created_at": self.created_at.unix_millis(),
            "expires_at": self.expires_at.unix_millis(),
            "obstacle": self.obstacle,
            "text": self.text(),
        })
    }
}

/// Computes [`ApprovalRequest::digest`] without a request.
pub(crate) fn question_digest(
    tool: &str,
    shown: &ShownCall,
    rule: &str,
    reason: &str,
) -> Fingerprint {
    let mut question = json!({
        "tool": tool,
        "rule": rule,
        "reason": reason,
        "arguments": shown.arguments,
        "injected": shown.injected,
        "plan": shown.plan,
        "code": shown.code,
    });
    if !shown.called_by.is_empty() {
        question["called_by"] = json!(shown.called_by);
    }
    Fingerprint::of_json(&question)
}

/// A limit of a plan in words, for example `2GiB of memory`.
fn limit_words(name: &str, limit: &Value) -> String {
    let bytes = || limit.as_u64().map(ByteSize);
    match (name, bytes()) {
        ("time_seconds", _) => format!("{limit} s"),
        ("cpu_seconds", _) => format!("{limit} s on a processor"),
        ("memory_bytes", Some(size)) => format!("{size} of memory"),
        ("file_bytes", Some(size)) => format!("files of {size}"),
        ("open_files", _) => format!("{limit} open files"),
        _ => format!("{limit} {name}"),
    }
}

/// A plan, line by line.
fn plan_lines(plan: &Value) -> Vec<(&'static str, String)> {
    let text = |key: &str| plan[key].as_str().map(line).unwrap_or_default();
    match plan["kind"].as_str() {
        Some("command") => {
            let mut lines = vec![("runs", json_line(&plan["argv"]))];
            let cwd = text("cwd");
            lines.push(("in", if cwd.is_empty() { "a folder of its own".to_owned() } else { cwd }));
            let sandbox = text("sandbox");
            lines.push(("sandbox", if sandbox.is_empty() { "none".to_owned() } else { sandbox }));
            let limits = plan["limits"].as_object().into_iter().flatten();
            let limits: Vec<_> = limits.map(|(name, limit)| limit_words(name, limit)).collect();
            if !limits.is_empty() {
                lines.push(("limits", limits.join(", ")));
            }
            if let Some(bytes) = plan["stdin_bytes"].as_u64().filter(|bytes| *bytes > 0) {
                lines.push(("standard input", format!("{bytes} bytes")));
            }
            lines
        }
        Some("request") => {
            let mut lines = vec![("requests", format!("{} {}", text("method"), text("url")))];
            if !plan["body"].is_null() {
                lines.push(("body", json_line(&plan["body"])));
            }
            lines
        }
        Some("upstream") => {
            vec![("calls", format!("{} of the MCP server {}", text("tool"), text("server")))]
        }
        _ => vec![("plan", json_line(plan))],
    }
}

fn json_line(value: &Value) -> String {
    line(&value.to_string())
}

/// A text on one line, with invisible characters escaped.
fn line(text: &str) -> String {
    fully_visible(text).into_owned()
}
