//! Continues calls that wait in the store: in the server that accepted them or in another one, in a
//! turn with the same settings or in a different one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use toolcrib_core::approval::{DecideError, Decision};
use toolcrib_core::run::{MemoryRuns, Run, RunError, RunId, RunStore};
use toolcrib_core::suspension::{Outcome, RedeemError, Resolution, Suspension, Waiting};
use toolcrib_core::{Answer, Executor, Turn, TurnOptions};
use toolcrib_tool::Identity;

use crate::bodies::fill;
use crate::calls::{Events, Job, is_streamed};
use crate::factors::{Body, Consent, Edit, Ending, Meanwhile, Resumed, Row, Servers};
use crate::scenario::{ADA, Caller, End, Stage};
use crate::setup::changed_arguments;
use crate::witness::{ObservedCall, Seen, Witness, lock};

/// A call that waits in the store.
pub(crate) struct Parked {
    pub(crate) id: &'static str,
    pub(crate) caller: Caller,
    pub(crate) suspension: Suspension,
}

impl Stage {
    /// Where waiting calls continue.
    fn elsewhere(&self) -> Executor {
        self.beside.as_ref().map_or(&self.executor, |(executor, _)| executor).clone()
    }

    /// Resolves waiting calls until none is left.
    pub(crate) async fn resume_all(&mut self, are_due: bool) {
        for _ in 0..8 {
            let Some(parked) = self.parked.pop_front() else { return };
            if !self.is_changed && are_due && self.row.meanwhile == Meanwhile::Stopped {
                if let Err(problem) = self.stop(Some(&parked.suspension)).await {
                    self.tell(parked.id, parked.caller, End::Lost(problem));
                    continue;
                }
            } else if !self.is_changed && are_due {
                self.change();
            }
            let is_consent = matches!(parked.suspension.waiting(), Waiting::Approval { .. });
            if is_consent && self.row.consent == Consent::Expires {
                tokio::time::advance(Duration::from_secs(601)).await;
                self.setup.witness.pass(601_000);
                self.settle().await;
            }
            let contended = are_due && self.row.has_one_slot() && self.holder.is_none();
            if contended && is_consent {
                self.hold(&self.elsewhere());
                self.step().await;
            }
            let job = self.resume(parked);
            let hog_until = Some(self.now() + 1_500);
            self.drive(vec![job], Events { are_due, holder_at: None, hog_until }).await;
        }
        for parked in std::mem::take(&mut self.parked) {
            self.tell(parked.id, parked.caller, End::Lost("it never stopped waiting".into()));
        }
    }

    fn resume(&mut self, parked: Parked) -> Job {
        let Parked { id, caller, suspension } = parked;
        *self.passes.entry(id).or_default() += 1;
        self.setup.witness.see(Seen::Resumed { call: id });
        let (row, witness) = (self.row, self.setup.witness.clone());
        let other = if caller.project == "alpha" { "beta" } else { "alpha" };
        let mut options = self.options(match row.resumed {
            Resumed::AsMade => caller,
            Resumed::InAnotherProject => Caller { project: other, ..caller },
        });
        if let Some(deadline) = self.deadline(true).filter(|_| id == "first") {
            options = options.deadline(deadline);
        }
        let turn = self.elsewhere().turn(options.clone());
        let mut turns = vec![turn.clone()];
        let is_own = matches!(row.consent, Consent::Resolved | Consent::Withdrawn);
        if row.servers == Servers::Two && is_own {
            // Its own server tries the same at the same time.
            turns.push(self.executor.turn(options));
        }
        let operator = self
            .elsewhere()
            .turn(TurnOptions::default().identity(Identity::user("root")).may_approve(true));
        let approval = Approval::of(&row, &suspension, self.observed_call(&suspension));
        let run = lock(&self.setup.runs_of).get(id).cloned();
        let run = run.map(|run| (run, Arc::clone(&self.setup.runs)));
        let own = self.executor.turn(self.options(caller));
        let task = tokio::spawn(async move {
            let resolution = match (suspension.waiting(), row.consent) {
                (Waiting::Approval { .. }, Consent::Expires) => Resolution::Expire,
                (Waiting::Approval { .. }, Consent::Withdrawn) => Resolution::Cancel,
                (Waiting::Approval { .. }, Consent::Decided) => {
                    let by = (&operator, &own);
                    let answer =
                        decided(&row, by, &suspension, run.as_ref(), &approval, &witness).await;
                    return vec![(id.to_owned(), answer)];
                }
                (Waiting::Approval { .. }, _) => {
                    if let Some(changed) = approval.changed(&witness) {
                        let tried =
                            first_of(&row, &turns, &suspension, changed.into(), run.as_ref()).await;
                        if let Some(answer) = approval.is_over(&row, tried) {
                            return vec![(id.to_owned(), answer)];
                        }
                    }
                    approval.as_made(&witness).into()
                }
                (Waiting::Client, _) => {
                    let mut text = "delivered ".to_owned();
                    fill(&mut text, &row);
                    Resolution::Output(text.into())
                }
                _ if row.ending == Ending::AsksInVain => Resolution::Cancel,
                _ => Resolution::Answer(json!(7)),
            };
            let answer = first_of(&row, &turns, &suspension, resolution, run.as_ref()).await;
            vec![(id.to_owned(), answer)]
        });
        Job { ids: vec![id], caller, turn, task }
    }

    /// Tries to let a waiting call go on in a server that is shutting down, which must leave it to the next one.
    pub(crate) async fn decide_too_late(&self, waiting: &Suspension) -> Result<(), String> {
        let resolution = match waiting.waiting() {
            Waiting::Approval { .. } => Decision::approve().into(),
            Waiting::Client => Resolution::Output("late".into()),
            _ => Resolution::Answer(json!(7)),
        };
        let turn = self.executor.turn(self.options(ADA).may_approve(true));
        let tried = turn.resolve(waiting.id(), resolution).await;
        if !matches!(tried, Err(RedeemError::ShuttingDown)) {
            return Err(format!("resolved during a shutdown: {tried:?}"));
        }
        let root = TurnOptions::default().identity(Identity::user("root")).may_approve(true);
        let root = self.executor.turn(root);
        let approvals = root.approvals().ok_or("the operator may approve")?.of_all_tenants();
        match approvals.decide(waiting.id(), Decision::approve()).await {
            Err(_) => Ok(()),
            Ok(_) => Err("decided on during a shutdown".into()),
        }
    }

    /// The dry run of a waiting call, as it was shown.
    pub(crate) fn observed_call(&self, suspension: &Suspension) -> ObservedCall {
        let now = self.executor.registry().snapshot().fingerprint("subject");
        let is_current = now.is_some_and(|now| now == suspension.definition_hash());
        let is_second = self.is_changed && self.row.meanwhile == Meanwhile::Changed && is_current;
        let text = |value: Option<&serde_json::Value>| {
            value.and_then(serde_json::Value::as_str).map(str::to_owned)
        };
        ObservedCall {
            version: if is_second { 2 } else { 1 },
            arguments: suspension.arguments().to_owned(),
            project: text(suspension.shown().injected.get("project")),
            user: text(suspension.caller().value("user")).unwrap_or_default(),
        }
    }
}

/// The run of a call, and its store.
type Kept = (RunId, Arc<MemoryRuns>);

async fn loaded((id, runs): &Kept) -> Result<Run, String> {
    let record = runs.load(id).await.map_err(|error| error.to_string())?;
    Ok(Run::from_record(record.ok_or("the run is gone")?))
}

/// The state of one call in a run.
pub(crate) fn answer_of(run: &Run, call: &str) -> Result<Answer, String> {
    if let Some(waiting) = run.outstanding().find(|one| one.call_id() == call) {
        return Ok(Answer::Suspended(Box::new(waiting.clone())));
    }
    let done = run.answered().find(|result| result.call_id().as_str() == call);
    done.map(Answer::Done).ok_or_else(|| "its run does not know it".into())
}

/// How whoever approves a waiting call answers.
struct Approval {
    call: String,
    observed: ObservedCall,
    edit: Edit,
    changed: Option<String>,
}

impl Approval {
    fn of(row: &Row, suspension: &Suspension, observed: ObservedCall) -> Self {
        let changed = changed_arguments(row);
        Self { call: suspension.call_id().to_owned(), observed, edit: row.edit, changed }
    }

    /// The approval with other arguments, if the row has one. It approves nothing if they are refused.
    fn changed(&self, witness: &Witness) -> Option<Decision> {
        let arguments = self.changed.clone()?;
        if self.edit == Edit::Fits {
            let observed = ObservedCall { arguments: arguments.clone(), ..self.observed.clone() };
            witness.see(Seen::Approved { call: self.call.clone(), observed, remembered: false });
        }
        Some(Decision::approve_changed(arguments))
    }

    /// The approval of the call as it was made.
    fn as_made(&self, witness: &Witness) -> Decision {
        let (call, observed) = (self.call.clone(), self.observed.clone());
        witness.see(Seen::Approved { call, observed, remembered: false });
        Decision::approve()
    }

    /// The answer after an approval with changed arguments; `None` if they were refused as they had to be, and the
    /// call still waits.
    fn is_over(&self, row: &Row, tried: Result<Answer, String>) -> Option<Result<Answer, String>> {
        let refused = matches!(&tried, Err(problem) if problem.contains("changed arguments are"));
        let is_gone = matches!(
            row.meanwhile,
            Meanwhile::Removed | Meanwhile::Blocked | Meanwhile::Constrained
        );
        match self.edit {
            Edit::Fits if refused && is_gone => None,
            Edit::Fits | Edit::Nothing => Some(tried),
            _ if refused => None,
            // The client may no longer make the call, whatever its arguments.
            _ if row.meanwhile == Meanwhile::Revoked || row.meanwhile == Meanwhile::Hidden => {
                Some(tried)
            }
            // It was given up because nobody decides on it later.
            _ if row.is_shut_down() => Some(tried),
            _ => Some(Err(format!("arguments that do not fit were approved: {tried:?}"))),
        }
    }
}

/// Resolves a call in all of these turns at the same time; one of them gets its answer.
async fn first_of(
    row: &Row,
    turns: &[Turn],
    suspension: &Suspension,
    resolution: Resolution,
    run: Option<&Kept>,
) -> Result<Answer, String> {
    let tries = turns.iter().map(|turn| resolved(row, turn, suspension, resolution.clone(), run));
    let (mut answers, mut problems) = (Vec::new(), Vec::new());
    for answer in join_all(tries).await {
        match answer {
            Ok(answer) => answers.push(answer),
            Err(problem) => problems.push(problem),
        }
    }
    match (answers.pop(), answers.is_empty()) {
        (Some(answer), true) => Ok(answer),
        (Some(_), false) => Err("two servers have resolved it".into()),
        (None, _) => Err(format!("not resolved: {}", problems.join(", "))),
    }
}

/// Resolves a call by itself, or in its run.
async fn resolved(
    row: &Row,
    turn: &Turn,
    suspension: &Suspension,
    resolution: Resolution,
    run: Option<&Kept>,
) -> Result<Answer, String> {
    let Some(kept) = run else {
        return match turn.resolve(suspension.id(), resolution).await {
            // A call whose parent is running ends by itself when its time is up.
            Err(RedeemError::AlreadyResolved(_)) if row.keeps_its_maker() => {
                ended_by_itself(turn, suspension).await
            }
            Err(RedeemError::ShuttingDown) if row.is_shut_down() => {
                given_up(turn, suspension, None).await
            }
            answer => answer.map_err(|error| error.to_string()),
        };
    };
    let mut run = loaded(kept).await?;
    match run.resolve(turn, suspension.id(), resolution).await {
        Err(RunError::Redeem(RedeemError::ShuttingDown)) if row.is_shut_down() => {
            return given_up(turn, suspension, Some(kept)).await;
        }
        resolved => resolved.map_err(|error| error.to_string())?,
    }
    run.save(&*kept.1).await.map_err(|error| error.to_string())?;
    answer_of(&run, suspension.call_id())
}

/// The answer to a call that a server left waiting because it was shutting down, and that nobody decides on later.
async fn given_up(
    turn: &Turn,
    suspension: &Suspension,
    run: Option<&Kept>,
) -> Result<Answer, String> {
    let Some(kept) = run else {
        let cancelled = turn.resolve(suspension.id(), Resolution::Cancel).await;
        return cancelled.map_err(|error| error.to_string());
    };
    let mut run = loaded(kept).await?;
    let cancelled = run.resolve(turn, suspension.id(), Resolution::Cancel).await;
    cancelled.map_err(|error| error.to_string())?;
    run.save(&*kept.1).await.map_err(|error| error.to_string())?;
    answer_of(&run, suspension.call_id())
}

/// The answer to a call that has ended without a decision.
async fn ended_by_itself(turn: &Turn, suspension: &Suspension) -> Result<Answer, String> {
    let settled = turn.wait_for_outcome(suspension.id(), Duration::from_secs(5)).await;
    let settled = settled.map_err(|error| error.to_string())?;
    let result = settled.and_then(|settled| settled.result());
    result.map(Answer::Done).ok_or_else(|| "it has no outcome".into())
}

/// Somebody else decides on a call, and the caller awaits the result.
async fn decided(
    row: &Row,
    (operator, caller): (&Turn, &Turn),
    suspension: &Suspension,
    run: Option<&Kept>,
    approval: &Approval,
    witness: &Witness,
) -> Result<Answer, String> {
    let approvals = operator.approvals().ok_or("the operator may not approve")?.of_all_tenants();
    let mut is_decided = false;
    if let Some(changed) = approval.changed(witness) {
        let refused = match approvals.decide(suspension.id(), changed).await {
            Err(error @ DecideError::Arguments(_)) => Err(error.to_string()),
            Err(DecideError::Redeem(RedeemError::ShuttingDown)) if row.is_shut_down() => {
                return given_up(caller, suspension, run).await;
            }
            _ => Ok(Answer::Suspended(Box::new(suspension.clone()))),
        };
        match approval.is_over(row, refused) {
            Some(Err(problem)) => return Err(problem),
            over => is_decided = over.is_some(),
        }
    }
    if !is_decided {
        // The server learns here that a client was revoked, and denies its call.
        let decided = approvals.decide(suspension.id(), approval.as_made(witness)).await;
        let is_late = matches!(decided, Err(DecideError::Redeem(RedeemError::ShuttingDown)));
        if is_late && row.is_shut_down() {
            return given_up(caller, suspension, run).await;
        }
    }
    if is_streamed(row.door, suspension.call_id()) && row.body != Body::Client && !row.asks() {
        let result = tokio::time::timeout(Duration::from_secs(40), caller.result_of(suspension));
        let result = result.await.map_err(|_| "it has no result")?;
        return result.map(Answer::Done).map_err(|error| error.to_string());
    }
    let waited = caller.wait_for_outcome(suspension.id(), Duration::from_secs(40)).await;
    let settled = waited.map_err(|error| error.to_string())?.ok_or("it has no outcome")?;
    if let Some(kept) = run {
        let mut run = loaded(kept).await?;
        run.settle(caller).await.map_err(|error| error.to_string())?;
        run.save(&*kept.1).await.map_err(|error| error.to_string())?;
        return answer_of(&run, suspension.call_id());
    }
    let taken = caller.take_outcome(suspension.id()).await.map_err(|error| error.to_string())?;
    if taken.is_none() {
        return Err("its outcome is gone".into());
    }
    match settled.outcome() {
        Outcome::Waits(next) => Ok(Answer::Suspended(next.clone())),
        _ => settled.result().map(Answer::Done).ok_or_else(|| "it still runs".into()),
    }
}
