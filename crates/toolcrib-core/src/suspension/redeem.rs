//! Redeeming: turning a resolution into a grant, once.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use toolcrib_tool::{Data, ToolError, ToolOutput};

use super::resolved::{ResolutionKind, Resolved};
use super::{Grant, Granted, StoreError, Suspension, SuspensionId, SuspensionStore, Waiting};
use crate::approval::{Decision, Remember};
use crate::arguments::preparation::listed;
use crate::arguments::validators::SchemaValidator;
use crate::storage::clock::Timestamp;

/// How a suspended call is resolved.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Resolution {
    /// A decision. Only calls that wait for approval can be approved; any call can be denied.
    Decision(Decision),
    /// The output of a client tool or of external work.
    Output(ToolOutput),
    /// The answer to a tool's question, which is validated against the question's schema.
    Answer(Value),
    /// The call expired.
    Expire,
    /// The call was cancelled.
    Cancel,
    /// The client lost the right to make the call.
    Revoke {
        /// Why, for the model.
        reason: String,
    },
}

impl Resolution {
    /// Fails if this approves a call and the resolver lacks the right to approve.
    pub(crate) fn check_right(&self, may_approve: bool) -> Result<(), RedeemError> {
        let approves = matches!(
            self,
            Self::Decision(Decision::Approve { .. } | Decision::ApproveChanged { .. })
        );
        if approves && !may_approve { Err(RedeemError::NotAllowed) } else { Ok(()) }
    }

    /// Whether the call would run or use a submitted output.
    pub(crate) fn lets_go_on(&self) -> bool {
        match self {
            Self::Decision(decision) => !matches!(decision, Decision::Deny { .. }),
            Self::Output(_) | Self::Answer(_) => true,
            Self::Expire | Self::Cancel | Self::Revoke { .. } => false,
        }
    }

    /// The arguments with which it approves, if they are not those that the call has.
    pub(crate) fn changed_arguments(&self) -> Option<&str> {
        match self {
            Self::Decision(Decision::ApproveChanged { arguments }) => Some(arguments),
            _ => None,
        }
    }
}

impl From<Decision> for Resolution {
    fn from(decision: Decision) -> Self {
        Self::Decision(decision)
    }
}

/// Why a suspended call could not be resolved. The store was not changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RedeemError {
    /// The identity has no waiting call with this id: there is none, it belongs to another
    /// identity, or its record was removed.
    Unknown,
    /// The resolver lacks the right to approve calls
    /// ([`TurnOptions::may_approve`](crate::TurnOptions::may_approve)).
    NotAllowed,
    /// It was already resolved.
    AlreadyResolved(Box<Resolved>),
    /// It has expired; only [`Resolution::Expire`], [`Resolution::Cancel`] and [`Resolution::Revoke`]
    /// end it.
    Expired,
    /// It has not expired yet.
    NotExpired,
    /// The resolution does not fit what the call waits for.
    Unfit {
        /// What it waits for.
        waiting: &'static str,
    },
    /// Its ancestors are running in another server, which alone can resume them.
    Elsewhere {
        /// The other server's process.
        process: u32,
    },
    /// The host is shutting down and lets no call go on. Calls can still be denied and cancelled.
    ShuttingDown,
    /// The answer does not match the question's schema; the hints say where.
    Answer(ToolError),
    /// The changed arguments are refused like a model's; the hints say where.
    Arguments(ToolError),
    /// The store failed.
    Store(StoreError),
}

impl fmt::Display for RedeemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("no call waits under this id"),
            Self::NotAllowed => f.write_str(
                "this client does not have the right to approve calls; the call still waits",
            ),
            Self::AlreadyResolved(first) => {
                write!(f, "{first}; this later request changed nothing")
            }
            Self::Expired => f.write_str("the call has expired; make it again"),
            Self::NotExpired => f.write_str("the call has not expired; cancel it instead"),
            Self::Unfit { waiting: "approval" } => {
                f.write_str("the call waits for approval: approve or deny it")
            }
            Self::Unfit { waiting: "input" } => {
                f.write_str("the call waits for an answer to its question: answer or deny it")
            }
            Self::Unfit { .. } => f.write_str("the call waits for its output: submit or deny it"),
            Self::Elsewhere { process } => write!(
                f,
                "the call waits in the server with process {process}, where the call that made it is at \
                 work: resolve it there (`toolcrib approvals` asks all servers)"
            ),
            Self::ShuttingDown => f.write_str(
                "the server is shutting down and lets no call go on; the call still waits: resolve it when \
                 the server runs again",
            ),
            Self::Arguments(error) => {
                write!(f, "the changed arguments are refused: {}", error.message())?;
                error.hints().iter().try_for_each(|hint| write!(f, "\n{hint}"))
            }
            Self::Answer(error) => {
                error.fmt(f)?;
                error.hints().iter().try_for_each(|hint| write!(f, "\n{hint}"))
            }
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RedeemError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl From<StoreError> for RedeemError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Resolves a suspended call: takes it from the store and creates its grant. `by` is the resolver's
/// name, for the audit log and for later attempts.
///
/// Fails without changing the store if `identity` has no waiting call with `id`, if it has expired,
/// or if the resolution does not fit.
pub async fn redeem(
    store: &dyn SuspensionStore,
    id: &SuspensionId,
    identity: &str,
    now: Timestamp,
    resolution: Resolution,
    by: &str,
) -> Result<Grant, RedeemError> {
    let (found, asked) = found(store, id, identity, now, resolution, by).await?;
    let taken = store.take(id, &asked.resolved).await?;
    asked.grant(store, found, taken).await
}

/// As [`redeem`], for a call whose answer is stored for its caller.
pub(crate) async fn redeem_for_caller(
    store: &dyn SuspensionStore,
    id: &SuspensionId,
    identity: &str,
    now: Timestamp,
    resolution: Resolution,
    by: &str,
) -> Result<Grant, RedeemError> {
    let (found, asked) = found(store, id, identity, now, resolution, by).await?;
    let taken = store.take_for_caller(id, &asked.resolved).await?;
    asked.grant(store, found, taken).await
}

/// A request to resolve a call.
struct ResolveRequest {
    resolved: Resolved,
    granted: Granted,
    changed: Option<String>,
}

impl ResolveRequest {
    /// Creates the grant if the call was taken.
    async fn grant(
        self,
        store: &dyn SuspensionStore,
        found: Suspension,
        taken: Option<Suspension>,
    ) -> Result<Grant, RedeemError> {
        // The taken call must be the one that was checked; ids are never reused.
        match taken.filter(|taken| *taken == found) {
            Some(taken) => {
                let (by, now) = (self.resolved.by(), self.resolved.at());
                Ok(Grant::new(taken, self.granted, self.changed, now).decided_by(by))
            }
            None => Err(too_late(store, found.id(), found.identity()).await?),
        }
    }
}

/// Finds a call and checks the resolution against it.
async fn found(
    store: &dyn SuspensionStore,
    id: &SuspensionId,
    identity: &str,
    now: Timestamp,
    resolution: Resolution,
    by: &str,
) -> Result<(Suspension, ResolveRequest), RedeemError> {
    let Some(found) = store.find(id).await? else {
        return Err(too_late(store, id, identity).await?);
    };
    let kind = ResolutionKind::of(&resolution);
    let (granted, changed) = granted(&found, identity, now, resolution)?;
    let resolved = Resolved::new(&found, kind, by, now);
    Ok((found, ResolveRequest { resolved, granted, changed }))
}

/// The error for a call of this identity that does not wait.
pub(crate) async fn too_late(
    store: &dyn SuspensionStore,
    id: &SuspensionId,
    identity: &str,
) -> Result<RedeemError, StoreError> {
    let first = store.resolved(id).await?.filter(|first| first.identity() == identity);
    Ok(first.map_or(RedeemError::Unknown, |first| RedeemError::AlreadyResolved(Box::new(first))))
}

fn granted(
    found: &Suspension,
    identity: &str,
    now: Timestamp,
    resolution: Resolution,
) -> Result<(Granted, Option<String>), RedeemError> {
    if found.identity() != identity {
        return Err(RedeemError::Unknown);
    }
    let expired = found.is_expired(now);
    match &resolution {
        Resolution::Expire if !expired => return Err(RedeemError::NotExpired),
        Resolution::Expire | Resolution::Cancel | Resolution::Revoke { .. } => {}
        _ if expired => return Err(RedeemError::Expired),
        _ => {}
    }
    let granted = match (resolution, found.waiting()) {
        (Resolution::Cancel, _) => Granted::Cancelled,
        (Resolution::Expire, _) => Granted::Expired,
        (
            Resolution::Decision(Decision::Deny { message })
            | Resolution::Revoke { reason: message },
            _,
        ) => Granted::Denied { message },
        (Resolution::Decision(Decision::Approve { remember }), Waiting::Approval { .. }) => {
            Granted::Run { remember }
        }
        (
            Resolution::Decision(Decision::ApproveChanged { arguments }),
            Waiting::Approval { .. },
        ) => return Ok((Granted::Run { remember: Remember::Nothing }, Some(arguments))),
        (Resolution::Output(output), Waiting::Client | Waiting::Pending { .. }) => {
            Granted::Output(output)
        }
        (Resolution::Answer(answer), Waiting::Input { schema, .. }) => {
            check_answer(schema, &answer).map_err(RedeemError::Answer)?;
            Granted::Answer(answer)
        }
        (_, waiting) => return Err(RedeemError::Unfit { waiting: waiting.as_str() }),
    };
    Ok((granted, None))
}

/// Checks the answer to a tool's question against the question's schema, as redeeming does.
pub fn check_answer(schema: &Value, answer: &Value) -> Result<(), ToolError> {
    // Tools read the answer as a `Value`, which must not change a number.
    let exact = Data::from_protected(answer.clone());
    if exact.is_rounded() {
        let message = "the answer has a number beyond 64 bits or double precision, which would not stay \
                       the same";
        let shown = exact.to_json();
        let error = ToolError::invalid_args(message);
        return Err(error.with_hint(format!("Send the number as a string instead: {shown}")));
    }
    // Compiled for this one answer.
    let violations = SchemaValidator::compile(&Arc::new(schema.clone()), false)?.violations(answer);
    if violations.is_empty() {
        return Ok(());
    }
    let error = ToolError::invalid_args("the answer does not fit what the tool asked for");
    Err(listed(error, &violations))
}
