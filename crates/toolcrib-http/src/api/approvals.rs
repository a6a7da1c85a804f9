//! Calls of others that wait for approval: list, show and decide.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcrib_core::approval::{ApprovalRequest, Approvals, DecideError, Decision};
use toolcrib_core::masking::LiveMask;
use toolcrib_core::run::RunError;
use toolcrib_core::suspension::{Outcome, Settled, SuspensionId};
use toolcrib_tool::{ErrorKind, ToolResult};

use super::calls::ArgumentsShape;
use super::run_body::time;
use super::{Api, json};
use crate::api::problem::Problem;
use crate::auth::client::Client;
use crate::idempotency::Request;
use crate::serving::request_body::{JsonBody, RawArguments, arguments_at};

/// The calls waiting for approval that this client may decide on.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ApprovalList {
    /// The calls, oldest first.
    approvals: Vec<ApprovalBody>,
}

/// A call that waits for approval.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Approval")]
pub(crate) struct ApprovalBody {
    /// The id to decide on it by.
    id: String,
    /// The caller's id of the call.
    call_id: String,
    /// The tool's name.
    tool: String,
    /// The arguments; secrets and sensitive values are masked.
    arguments: Value,
    /// Values that the host fills in, by parameter name, masked in the same way.
    injected: Map<String, Value>,
    /// What the tool would do, as far as it can tell, masked in the same way: `kind` is `command`,
    /// `request` or `upstream`.
    plan: Option<Value>,
    /// A digest of everything that is shown here about the call; the audit log records it with the
    /// decision.
    digest: String,
    /// The rule that requires approval.
    rule: String,
    /// Why approval is required.
    reason: String,
    /// Who made the call.
    asker: AskerBody,
    /// The session that the call belongs to.
    session: Option<String>,
    /// When it started to wait; RFC 3339.
    created_at: String,
    /// When the wait ends; RFC 3339. The call is then denied.
    expires_at: String,
    /// Why the call would be refused even if it were approved now: its tool is gone, unavailable or
    /// changed, or its client may no longer make it. Null where nothing stands in the way.
    obstacle: Option<String>,
    /// All of this as text for a person, one line per item.
    text: String,
}

/// Who made a call, as far as the server knows.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Asker")]
struct AskerBody {
    /// The context value `tenant`.
    tenant: Option<Value>,
    /// The context value `user`.
    user: Option<Value>,
    /// The client's name in the server's config.
    client: Option<String>,
}

/// A decision on a call that waits for approval.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"properties": {"decision": {"const": "approve"}, "message": {"type": "null"}}},
    {"properties": {"decision": {"const": "deny"}, "arguments": false}},
]))]
pub(crate) struct DecideRequest {
    /// Whether the call may run.
    decision: ApprovalDecision,
    /// Other arguments for the approved call, which are validated as usual. If they are refused,
    /// the call still waits.
    #[serde(default, rename = "arguments")]
    #[schemars(with = "ArgumentsShape")]
    _arguments: RawArguments,
    /// Why it was denied, for the model. Default: no explanation.
    #[serde(default)]
    message: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ApprovalDecision {
    /// The call may run.
    Approve,
    /// The call is denied.
    Deny,
}

/// A decision that was accepted, and the outcome of the call. The call's output belongs to its
/// caller and is not included.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DecisionBody {
    /// The id of the call that waited.
    id: String,
    /// The decision.
    decision: ApprovalDecision,
    /// What happened to the call afterwards. An approved call can still be refused: its rules, its
    /// tool or its client may have changed in the meantime.
    outcome: OutcomeBody,
}

/// What happened to a call after the decision.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ApprovalOutcome")]
struct OutcomeBody {
    /// The status of the call.
    status: OutcomeStatus,
    /// For a call that failed or was refused: the error kind, such as `denied`, `invalid_args` or
    /// `execution`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// For a call that failed or was refused: the message that its caller gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The status of a call after the decision.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ApprovalOutcomeStatus")]
enum OutcomeStatus {
    /// It is running.
    Running,
    /// It waits again, for something else.
    Waiting,
    /// It succeeded.
    Succeeded,
    /// It ran and failed.
    Failed,
    /// It was refused and did not run, or it was denied.
    Refused,
}

/// How long the answer waits for the outcome of the call.
const OUTCOME_WAIT: Duration = Duration::from_secs(2);

impl OutcomeBody {
    fn of(settled: Option<&Settled>) -> Self {
        let plain = |status| Self { status, kind: None, message: None };
        match settled.map(Settled::outcome) {
            Some(Outcome::Waits(_)) => plain(OutcomeStatus::Waiting),
            Some(Outcome::Done(_)) => {
                let result = settled.and_then(Settled::result);
                match result.as_ref().and_then(ToolResult::error) {
                    None => plain(OutcomeStatus::Succeeded),
                    Some(error) => Self {
                        status: if never_ran(error.kind()) {
                            OutcomeStatus::Refused
                        } else {
                            OutcomeStatus::Failed
                        },
                        kind: Some(error.kind().as_str().to_owned()),
                        message: Some(error.message().to_owned()),
                    },
                }
            }
            _ => plain(OutcomeStatus::Running),
        }
    }
}

/// Whether a failure of this kind means that nothing ran.
fn never_ran(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Constraint
            | ErrorKind::Denied
            | ErrorKind::InvalidArgs
            | ErrorKind::InvalidJson
            | ErrorKind::MissingContext
            | ErrorKind::NotFound
            | ErrorKind::RequiresApproval
            | ErrorKind::Unavailable
    )
}

impl From<ApprovalRequest> for ApprovalBody {
    fn from(request: ApprovalRequest) -> Self {
        let (text, digest) = (request.text(), request.digest().to_string());
        Self {
            digest,
            id: request.id.map(|id| id.to_string()).unwrap_or_default(),
            call_id: request.call_id.as_str().to_owned(),
            tool: request.tool,
            arguments: request.shown.arguments,
            injected: request.shown.injected,
            plan: request.shown.plan,
            rule: request.rule,
            reason: request.reason,
            asker: AskerBody {
                tenant: request.asker.tenant,
                user: request.asker.user,
                client: request.asker.client,
            },
            session: request.session.map(|session| session.as_ref().to_owned()),
            created_at: time(request.created_at),
            expires_at: time(request.expires_at),
            obstacle: request.obstacle,
            text,
        }
    }
}

impl ApprovalBody {
    /// The body for a screen: a value may have become a secret while the call waited. The digest stays that of the
    /// question as it was asked, which the audit log records.
    fn shown(request: ApprovalRequest, mask: &LiveMask) -> Self {
        let body = Self::from(request);
        let injected = match mask.value(Value::Object(body.injected)) {
            Value::Object(injected) => injected,
            _ => Map::new(),
        };
        Self {
            arguments: mask.value(body.arguments),
            injected,
            plan: body.plan.map(|plan| mask.value(plan)),
            text: mask.text(body.text),
            ..body
        }
    }
}

pub(crate) async fn list(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
) -> Result<Response, Problem> {
    let approvals = approvals(&client)?.list().await?;
    let mask = api.backend().executor().mask();
    let shown = |request| ApprovalBody::shown(request, &mask);
    let approvals = approvals.into_iter().map(shown).collect();
    Ok(json(StatusCode::OK, &ApprovalList { approvals }))
}

pub(crate) async fn show(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let (approvals, id) = (approvals(&client)?, parsed(&id)?);
    if let Some(found) = approvals.find(&id).await? {
        let mask = api.backend().executor().mask();
        return Ok(json(StatusCode::OK, &ApprovalBody::shown(found, &mask)));
    }
    Err(match approvals.resolved(&id).await? {
        Some(first) => Problem::not_found(first.to_string()).kind("already_resolved"),
        None => unknown(),
    })
}

pub(crate) async fn decide(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let request = Request::of(&headers, &client.key_owner, &["decide", &id], &body)?;
    let id = parsed(&id)?;
    let body = JsonBody::parse(&headers, &body)?;
    let DecideRequest { decision: word, message, .. } = body.read()?;
    let changed = body.root().get("arguments").is_some();
    let decision = match word {
        ApprovalDecision::Deny if changed => {
            return Err(Problem::unprocessable("/arguments: omit them when the call is denied"));
        }
        ApprovalDecision::Approve if message.is_some() => {
            return Err(Problem::unprocessable("/message: allowed with a denial only"));
        }
        ApprovalDecision::Approve if changed => {
            Decision::approve_changed(arguments_at(body.root()))
        }
        ApprovalDecision::Approve => Decision::approve(),
        ApprovalDecision::Deny => Decision::deny(message.unwrap_or_default()),
    };
    let approvals = approvals(&client)?;
    // Finish the decision even if the approver disconnects.
    let own = api.clone();
    let deciding = async move {
        let decided = own.run_to_completion(async move {
            let decided = approvals.decide(&id, decision).await?;
            tracing::info!(approver = &*client.name, approval = %id, "a waiting call was decided on");
            let outcome = OutcomeBody::of(decided.outcome(OUTCOME_WAIT).await.as_ref());
            Ok(json(StatusCode::OK, &DecisionBody { id: id.to_string(), decision: word, outcome }))
        });
        let decided: Result<Response, Problem> = decided.await.and_then(|decided| decided);
        decided.into_response()
    };
    api.idempotency().once_if(&api, request, Box::pin(deciding)).await
}

/// The calls that the client may decide on; an operator sees the calls of all tenants.
fn approvals(client: &Client) -> Result<Approvals, Problem> {
    let approvals = client.turn(|options| options).approvals().ok_or_else(|| {
        let detail = "this client lacks the right `approve`";
        Problem::new(StatusCode::FORBIDDEN, detail)
    })?;
    Ok(if client.is_operator() { approvals.of_all_tenants() } else { approvals })
}

fn parsed(id: &str) -> Result<SuspensionId, Problem> {
    id.parse().map_err(|_| unknown())
}

fn unknown() -> Problem {
    Problem::not_found("no call with this id waits for a decision by this client")
}

impl From<DecideError> for Problem {
    fn from(error: DecideError) -> Self {
        match error {
            DecideError::Redeem(error) => RunError::from(error).into(),
            DecideError::Arguments(refused) => {
                let detail = DecideError::Arguments(refused.clone()).to_string();
                Self::unprocessable(detail).kind(refused.kind().as_str())
            }
            error @ DecideError::Revoked(_) => {
                Self::new(StatusCode::CONFLICT, error.to_string()).kind("denied")
            }
            error @ DecideError::Elsewhere { .. } => {
                Self::new(StatusCode::CONFLICT, error.to_string()).kind("elsewhere")
            }
            error => Self::unprocessable(error.to_string()),
        }
    }
}
