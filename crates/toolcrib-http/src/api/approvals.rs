//! Calls of others that wait for approval: listed, shown and decided on.

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
use toolcrib_core::run::RunError;
use toolcrib_core::suspension::{Outcome, Settled, SuspensionId};
use toolcrib_tool::{ErrorKind, ToolResult};

use super::calls::ArgumentsShape;
use super::run_body::time;
use super::{Api, json};
use crate::api::problem::Problem;
use crate::auth::client::Client;
use crate::idempotency::Request;
use crate::serving::request_body::{InPlace, JsonBody, arguments_at};

/// The calls that wait for approval and that this client may decide on.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ApprovalList {
    /// The calls, the oldest first.
    approvals: Vec<ApprovalBody>,
}

/// A call that waits for approval.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Approval")]
pub(crate) struct ApprovalBody {
    /// What to decide on it by.
    id: String,
    /// The caller's id of the call.
    call_id: String,
    /// The tool's name.
    tool: String,
    /// The arguments; secrets and sensitive values are masked.
    arguments: Value,
    /// What the host fills in, by the parameters' names, masked likewise.
    injected: Map<String, Value>,
    /// What the tool would do, as far as it can say, masked likewise: `kind` is `command`, `request`
    /// or `upstream`.
    plan: Option<Value>,
    /// The digest of all that is shown here of the call, as the audit log has it beside the decision.
    digest: String,
    /// Which rule asks.
    rule: String,
    /// Why it asks.
    reason: String,
    /// On whose behalf the call was made.
    asker: AskerBody,
    /// The session that the call belongs to.
    session: Option<String>,
    /// Since when it waits; RFC 3339.
    created_at: String,
    /// Until when it waits; RFC 3339. Then the call is denied.
    expires_at: String,
    /// All of this as text for a person, a line for each part.
    text: String,
}

/// On whose behalf a call was made, as far as the server knows.
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
    decision: Word,
    /// Other arguments for the approved call, which are checked like any. Where they are refused, the
    /// call still waits.
    #[serde(default, rename = "arguments")]
    #[schemars(with = "ArgumentsShape")]
    _arguments: InPlace,
    /// Why it was denied, for the model. Default: nothing more is said.
    #[serde(default)]
    message: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ApprovalDecision")]
pub(crate) enum Word {
    /// It may run.
    Approve,
    /// It may not.
    Deny,
}

/// A decision that holds, and what became of the call. The call's output is its caller's and is not
/// here.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Decided {
    /// The call's id among those that waited.
    id: String,
    /// What was decided.
    decision: Word,
    /// What became of the call after that. An approved call can still be refused: its rules, its tool or
    /// its client may have changed meanwhile.
    outcome: OutcomeBody,
}

/// What became of a call after it was decided on.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ApprovalOutcome")]
struct OutcomeBody {
    /// How far the call has come.
    status: OutcomeStatus,
    /// Of a call that failed or was refused: the stable word for why, such as `denied`,
    /// `invalid_args` or `execution`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// Of a call that failed or was refused: why, as its caller is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// How far a call has come after it was decided on.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ApprovalOutcomeStatus")]
enum OutcomeStatus {
    /// It runs.
    Running,
    /// It waits again, for something else.
    Waiting,
    /// It succeeded.
    Succeeded,
    /// It ran and failed.
    Failed,
    /// It was refused and did not run, also where that was the decision.
    Refused,
}

/// How long an answer waits to tell what became of the call.
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

/// Whether a failure of this kind says that nothing ran.
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
            text,
        }
    }
}

pub(crate) async fn list(Extension(client): Extension<Arc<Client>>) -> Result<Response, Problem> {
    let approvals = approvals(&client)?.list().await?;
    let approvals = approvals.into_iter().map(ApprovalBody::from).collect();
    Ok(json(StatusCode::OK, &ApprovalList { approvals }))
}

pub(crate) async fn show(
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let (approvals, id) = (approvals(&client)?, parsed(&id)?);
    if let Some(found) = approvals.find(&id).await? {
        return Ok(json(StatusCode::OK, &ApprovalBody::from(found)));
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
    let request = Request::of(&headers, &client.keys, &["decide", &id], &body)?;
    let id = parsed(&id)?;
    let body = JsonBody::parse(&headers, &body)?;
    let DecideRequest { decision: word, message, .. } = body.read()?;
    let changed = body.root().get("arguments").is_some();
    let decision = match word {
        Word::Deny if changed => {
            return Err(Problem::unfit("/arguments: a call that is denied has none"));
        }
        Word::Approve if message.is_some() => {
            return Err(Problem::unfit("/message: only a denial is explained"));
        }
        Word::Approve if changed => Decision::approve_changed(arguments_at(body.root())),
        Word::Approve => Decision::approve(),
        Word::Deny => Decision::deny(message.unwrap_or_default()),
    };
    let approvals = approvals(&client)?;
    // A decision is not left halfway because whoever made it has hung up.
    let own = api.clone();
    let deciding = async move {
        let decided = own.to_the_end(async move {
            let decided = approvals.decide(&id, decision).await?;
            tracing::info!(approver = &*client.name, approval = %id, "a waiting call was decided on");
            let outcome = OutcomeBody::of(decided.outcome(OUTCOME_WAIT).await.as_ref());
            Ok(json(StatusCode::OK, &Decided { id: id.to_string(), decision: word, outcome }))
        });
        let decided: Result<Response, Problem> = decided.await.and_then(|decided| decided);
        decided.into_response()
    };
    api.idempotency().once_if(&api, request, Box::pin(deciding)).await
}

/// What the client may decide on: an operator sees the calls of all tenants.
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
    Problem::not_found("no call that this client may decide on waits under this id")
}

impl From<DecideError> for Problem {
    fn from(error: DecideError) -> Self {
        match error {
            DecideError::Redeem(error) => RunError::from(error).into(),
            DecideError::Arguments(refused) => {
                let detail = DecideError::Arguments(refused.clone()).to_string();
                Self::unfit(detail).kind(refused.kind().as_str())
            }
            error @ DecideError::Revoked(_) => {
                Self::new(StatusCode::CONFLICT, error.to_string()).kind("denied")
            }
            error @ DecideError::Elsewhere { .. } => {
                Self::new(StatusCode::CONFLICT, error.to_string()).kind("elsewhere")
            }
            error => Self::unfit(error.to_string()),
        }
    }
}
