//! Dry runs: the stations of a call before consent.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_tool::{Arguments, CallContext, Plan, ToolCall, ToolError};

use super::checks::{Incoming, unknown};
use super::{Candidate, Origin};
use crate::admission::Lineage;
use crate::approval::policy::Verdict;
use crate::arguments::corrections::Corrections;
use crate::call::turn::Turn;
use crate::identity::fingerprint::Fingerprint;
use crate::output::sensitive_arguments::{exact_value, redact, sensitive_texts};

/// The result of checking a call without making it ([`Turn::dry_run`]).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DryRun {
    /// What the tool would get.
    pub arguments: Arguments,
    /// What the tool would see of the call.
    pub context: CallContext,
    /// The policy's verdict: whether it would run, need approval or be denied.
    pub verdict: Verdict,
    /// The corrections to its text, one clause each.
    pub mended: Vec<String>,
    /// Whether an earlier answer can be used; `None` for tools whose calls always run.
    pub answer: Option<CacheStatus>,
    /// Its time limit; `None` for no limit.
    pub timeout: Option<Duration>,
    /// The tool's plan, if it can make one. Secrets in it are not masked; use
    /// [`to_value`](Self::to_value) for display.
    pub plan: Option<Plan>,
    shown_arguments: Value,
    shown_plan: Option<Plan>,
}

/// An answer that may be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStatus {
    /// Covers the tool, the arguments, the injected values and the identity: calls with the same
    /// key have the same answer.
    pub key: Fingerprint,
    /// Whether the answer is cached, so that the tool would not run.
    pub is_there: bool,
}

impl DryRun {
    /// What the tool would do, with secrets and sensitive arguments masked.
    pub fn shown_plan(&self) -> Option<&Plan> {
        self.shown_plan.as_ref()
    }

    /// The arguments, with secrets and sensitive ones masked.
    pub fn shown_arguments(&self) -> &Value {
        &self.shown_arguments
    }

    /// The dry run as JSON for display: `tool`, `arguments`, `mended`, `decision` (`allow`, `ask`
    /// or `deny`) with `by` and `reason`, `timeout_seconds`, `output_chars`, `answer` and `plan`.
    pub fn to_value(&self) -> Value {
        let definition = self.context.definition();
        let (decision, reason) = match &self.verdict {
            Verdict::Allow { .. } => ("allow", None),
            Verdict::Ask { reason, .. } => ("ask", Some(reason)),
            Verdict::Deny { message, .. } => ("deny", Some(message)),
        };
        json!({
            "tool": definition.name(),
            "arguments": self.shown_arguments,
            "mended": self.mended,
            "decision": {
                "decision": decision,
                "by": self.verdict.by().to_string(),
                "reason": reason,
            },
            "client": definition.client(),
            "timeout_seconds": self.timeout.map(|timeout| timeout.as_secs_f64()),
            "output_chars": self.context.output_chars(),
            "answer": self.answer.map(|answer| json!({
                "key": answer.key.to_string(),
                "is_there": answer.is_there,
            })),
            "plan": self.shown_plan.as_ref().map(Plan::to_value),
        })
    }
}

/// Checks a call like a real one, in the same order and with the same errors, but asks nobody and
/// does not start, count or record anything. Errors are masked, as those of a call are.
pub(crate) async fn dry_run(turn: &Turn, call: ToolCall) -> Result<DryRun, ToolError> {
    let checked = checked(turn, call).await;
    checked.map_err(|error| turn.state.shared.mask.load().error(error))
}

async fn checked(turn: &Turn, call: ToolCall) -> Result<DryRun, ToolError> {
    let (id, name, raw) = call.into_parts();
    let state = &turn.state;
    let slot = state.slot(&name).ok_or_else(|| unknown(turn, &name))?;
    let definition = Arc::clone(&slot.entry.definition);
    let (lineage, mut mending) =
        (Lineage::root(Arc::default(), Arc::default()), Corrections::default());
    let config = &state.shared.config.load_full();
    let origin = &Origin::alone(&lineage);
    let incoming = Incoming { turn, config, origin, id: &id, emitter: None };
    let call = incoming.before_consent(slot, raw, &mut mending).await?;
    let verdict = state.verdict(&slot.entry, &call.checked.arguments);
    let answer = call.checked.key.as_ref().map(|key| {
        let is_there = state.shared.answers.is_there(key, state.session.as_deref());
        let key = key.fingerprint(Fingerprint::of_definition(&slot.entry));
        CacheStatus { key, is_there }
    });
    let own_check = call.own_check();
    let plan = own_check.map(|own| own.plan(&call.checked.arguments)).transpose()?.flatten();
    let Candidate { checked, cx, limit: timeout, .. } = call;
    let mask = state.shared.mask.load();
    let shown = exact_value(&checked.arguments);
    let sensitive = sensitive_texts(&definition, &shown);
    let hidden = |text: String| {
        let text = sensitive.iter().fold(text, |text, hidden| text.replace(hidden, "[redacted]"));
        mask.text(&text).into_owned()
    };
    Ok(DryRun {
        shown_arguments: redact(&definition, &shown, &mask),
        shown_plan: plan.clone().map(|plan| plan.map(hidden)),
        mended: mending.clauses().into_iter().map(|clause| mask.owned(clause)).collect(),
        arguments: checked.arguments,
        context: cx,
        verdict,
        answer,
        timeout,
        plan,
    })
}
