//! Asking an approver with a time limit: whatever happens, there is a decision.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;

use super::{ApprovalRequest, Approver, Decision};
use crate::suspension::readable;

/// How long a call waits for a decision by default.
pub const APPROVAL_TIMEOUT: Duration = Duration::from_secs(600);

/// Asks, and denies if there is no decision in time or the approver panics.
///
/// `timeout` applies to the question only; the call's own time limit does not run meanwhile. `None`
/// waits forever. Needs a tokio runtime with its timer.
pub async fn ask(
    approver: &dyn Approver,
    request: &ApprovalRequest,
    timeout: Option<Duration>,
) -> Decision {
    let decision = AssertUnwindSafe(async { approver.decide(request).await }).catch_unwind();
    let decided = match timeout {
        None => decision.await,
        Some(limit) => match tokio::time::timeout(limit, decision).await {
            Ok(decided) => decided,
            Err(_) => {
                return Decision::deny(format!(
                    "nobody approved the call within {}, which counts as no",
                    readable(limit)
                ));
            }
        },
    };
    decided.unwrap_or_else(|_| {
        tracing::error!(
            tool = %request.tool,
            call_id = %request.call_id,
            "the approver panicked; the call is denied"
        );
        Decision::deny("the call could not be approved, because the approver failed")
    })
}

#[cfg(test)]
mod tests {
    use toolcrib_tool::{Arguments, BoxFuture, CallId};

    use super::*;
    use crate::approval::{Asker, ShownCall};
    use crate::storage::clock::Timestamp;

    fn request() -> ApprovalRequest {
        ApprovalRequest {
            id: None,
            call_id: CallId::new("1"),
            tool: "rm".to_owned(),
            definition: None,
            arguments: Arguments::from_validated("{}".to_owned()),
            shown: ShownCall::default(),
            asker: Asker::default(),
            identity: "".into(),
            session: None,
            rule: "policy.rules[0]".to_owned(),
            reason: "because".to_owned(),
            created_at: Timestamp::from_unix_millis(0),
            expires_at: Timestamp::NEVER,
            obstacle: None,
        }
    }

    /// Never decides.
    struct Absent;

    impl Approver for Absent {
        fn decide<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_decision_in_time_is_a_denial() {
        let decision = ask(&Absent, &request(), Some(APPROVAL_TIMEOUT)).await;
        let message = "nobody approved the call within 600 s, which counts as no";
        assert_eq!(decision, Decision::deny(message));
    }

    #[tokio::test(start_paused = true)]
    async fn an_approver_that_panics_has_denied() {
        let panics = |_: &ApprovalRequest| -> Decision { panic!("out of coffee") };
        let decision = ask(&panics, &request(), None).await;
        assert!(matches!(decision, Decision::Deny { .. }));
    }

    #[tokio::test(start_paused = true)]
    async fn a_decision_in_time_is_the_decision() {
        let changes = |_: &ApprovalRequest| Decision::approve_changed("{\"dry\":true}");
        let decision = ask(&changes, &request(), Some(APPROVAL_TIMEOUT)).await;
        assert_eq!(decision, Decision::approve_changed("{\"dry\":true}"));
    }
}
