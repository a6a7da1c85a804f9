//! Properties that every row must have, and the comparison with the model.

use std::collections::{BTreeMap, BTreeSet};

use toolcrib_core::audit::AuditOutcome;
use toolcrib_core::events::Payload;
use toolcrib_tool::{CallId, ErrorKind, ToolError};

use crate::bodies::{BUDGET, HOLD, LIMIT, MAKE, RETRY_AFTER, SECRET, WIND_DOWN};
use crate::calls::HOLDER;
use crate::consent_checks::{changes_are_told, only_what_was_approved_ran};
use crate::factors::{
    Barrier, Body, Consent, Door, Ending, Injected, Instance, Interruption, Looks, Meanwhile, Pool,
    Row, Secret, Servers, Slots, Twin, Watcher, WindDown,
};
use crate::model::{self, Kind};
use crate::scenario::{End, Log, Story, Told};
use crate::setup::THINKING;
use crate::witness::Seen;

/// How much less precise the steps of a row are than its clock, in milliseconds.
const COARSE: u64 = 150;

/// How long a blocking body may need to notice that it is to end, in milliseconds.
const LINGER: u64 = 100;

/// All problems of a row.
pub(crate) fn problems(row: &Row, story: &Story) -> Vec<String> {
    let expected = model::expected(row);
    let mut problems = Vec::new();
    answered_once(row, story, &expected, &mut problems);
    ran_as_often_as_it_should(row, story, &expected, &mut problems);
    asked_when_it_should(row, story, &expected, &mut problems);
    answers_are_their_callers(row, story, &mut problems);
    within_its_time(row, story, &mut problems);
    nothing_is_left(row, story, &mut problems);
    only_what_was_approved_ran(row, story, &mut problems);
    nothing_ran_beside_what_runs_alone(row, story, &mut problems);
    nobody_waits_behind_the_queue_of_another(row, story, &mut problems);
    counts_are_what_happened(row, story, &mut problems);
    secrets_are_masked(row, story, &mut problems);
    outputs_fit_their_budget(story, &mut problems);
    failures_are_whole(row, story, &mut problems);
    changes_are_told(row, story, &mut problems);
    reports_are_whole_and_end_with_the_call(row, story, &mut problems);
    problems
}

/// The id of the call of the tool itself.
fn subject_id(row: &Row, id: &str) -> String {
    if row.is_nested() { format!("{id}.1") } else { id.to_owned() }
}

fn kind_of(end: &End) -> Option<Kind> {
    match end {
        End::Done(result) => Some(result.error_kind().map_or(Kind::Success, Kind::Failure)),
        End::Dropped => Some(Kind::Dropped),
        End::Lost(_) => None,
    }
}

fn answered_once(row: &Row, story: &Story, expected: &model::Expected, problems: &mut Vec<String>) {
    for (id, forecast) in &expected.calls {
        let told = story.told.get(id).map_or(&[][..], Vec::as_slice);
        let [Told { end, .. }] = told else {
            problems.push(format!("{id}: answered {} times", told.len()));
            continue;
        };
        match (kind_of(end), end) {
            (Some(kind), _) if forecast.ends.contains(&kind) => {}
            (_, End::Lost(problem)) => problems.push(format!("{id}: {problem}")),
            (kind, End::Done(result)) => problems.push(format!(
                "{id}: expected {:?}, got {kind:?}: {:.200}",
                forecast.ends,
                result.text()
            )),
            (kind, _) => problems.push(format!("{id}: expected {:?}, got {kind:?}", forecast.ends)),
        }
        if let End::Done(result) = end
            && let Some(reused) = forecast.reused
            // This is the answer of the outer call.
            && !row.is_nested()
            && (result.cached() || result.skipped()) != reused
            && result.is_success()
            && forecast.ends == [Kind::Success]
        {
            problems.push(format!("{id}: expected reused: {reused}, got {}", !reused));
        }
    }
}

fn runs_of(row: &Row, story: &Story, id: &str) -> usize {
    let wanted = subject_id(row, id);
    let is_of = |seen: &Seen| matches!(seen, Seen::Began { call, .. } if *call == wanted);
    story.moments.iter().filter(|moment| is_of(&moment.seen)).count()
}

fn ran_as_often_as_it_should(
    row: &Row,
    story: &Story,
    expected: &model::Expected,
    problems: &mut Vec<String>,
) {
    for (id, forecast) in &expected.calls {
        let runs = runs_of(row, story, id);
        if !forecast.runs.contains(&runs) {
            problems.push(format!("{id}: ran {runs} times, expected {:?}", forecast.runs));
        }
    }
    let together = runs_of(row, story, "first") + runs_of(row, story, "twin");
    if let Some(wanted) = expected.together
        && together != wanted
    {
        problems.push(format!("first and twin ran {together} times, expected {wanted}"));
    }
}

fn asked_when_it_should(
    row: &Row,
    story: &Story,
    expected: &model::Expected,
    problems: &mut Vec<String>,
) {
    for (id, forecast) in &expected.calls {
        let wanted = subject_id(row, id);
        let is_of = |seen: &Seen| matches!(seen, Seen::Asked { call, .. } if *call == wanted);
        let asked = story.moments.iter().filter(|moment| is_of(&moment.seen)).count();
        // The approval may have been remembered before its twin is asked about, or the call may
        // have been interrupted before.
        let may_be_spared = *id == "twin"
            && (row.consent == Consent::Remembers || row.interruption != Interruption::Nothing);
        // An instance is created first, to show what the call would do.
        let may_come_before =
            *id == "first" && row.is_interrupted_waiting() && row.instance == Instance::PerUse;
        let may_be_none = may_be_spared || may_come_before;
        if asked != usize::from(forecast.asked) && !(may_be_none && asked == 0) {
            problems.push(format!("{id}: asked about {asked} times"));
        }
    }
}

fn answers_are_their_callers(row: &Row, story: &Story, problems: &mut Vec<String>) {
    if row.body == Body::Client {
        return;
    }
    for (id, told) in &story.told {
        for Told { caller, end, .. } in told {
            let End::Done(result) = end else { continue };
            if !result.is_success() {
                continue;
            }
            let mut wanted = vec![format!("user={} ", caller.user)];
            if row.injected == Injected::Project {
                wanted.push(format!("project={} ", caller.project));
            }
            if row.looks == Looks::Session {
                wanted.push(format!("session={} ", caller.session));
            }
            let text = result.text();
            for part in wanted.iter().filter(|part| !text.contains(part.as_str())) {
                problems.push(format!("{id}: the answer is not of {part}: {text:.150}"));
            }
        }
    }
}

/// The latest event of a call that `is_it` selects.
fn last(story: &Story, is_it: impl Fn(&Seen) -> bool) -> Option<u64> {
    story.moments.iter().filter(|moment| is_it(&moment.seen)).map(|moment| moment.at).last()
}

fn within_its_time(row: &Row, story: &Story, problems: &mut Vec<String>) {
    let winding = if row.wind_down == WindDown::Some { WIND_DOWN } else { 0 };
    // A server checks the store once a second for changes by others.
    let is_elsewhere = row.servers == Servers::Two && row.consent == Consent::Decided;
    let coarse = if is_elsewhere { COARSE + 1_000 } else { COARSE };
    // A batch is answered as a whole, so its other calls may need approval, get an instance and run after the first one
    // has ended.
    let thinking = if row.has_approver() { THINKING } else { 0 };
    let making = if row.instance == Instance::PerUse { MAKE } else { 0 };
    // Another identity's call may come between two calls of a crowded slot.
    let between = if row.slots == Slots::Crowded { HOLD } else { 0 };
    let after_it =
        if row.twin == Twin::SameBatch { thinking + making + between + LIMIT } else { 0 };
    for (id, told) in &story.told {
        let wanted = subject_id(row, id);
        let began = last(story, |seen| matches!(seen, Seen::Began { call, .. } if *call == wanted));
        for Told { end, at, .. } in told {
            let End::Done(result) = end else { continue };
            // What a call waits for between its question and the answer does not count.
            let resumed = last(story, |seen| matches!(seen, Seen::Resumed { call } if call == id));
            if let Some(since) = began.map(|began| began.max(resumed.unwrap_or_default()))
                && *at > since + LIMIT + after_it + winding + coarse
                && *id != "twin"
            {
                problems.push(format!("{id}: answered {} ms after it began", at - since));
            }
            let hung = result.error_kind() == Some(ErrorKind::Timeout);
            if let Some(began) = began
                && hung
                && row.pool == Pool::Free
                && row.interruption == Interruption::Nothing
                && row.ending == Ending::Hangs
                && *at + COARSE < began + LIMIT
            {
                problems.push(format!("{id}: its limit was {} ms", at - began));
            }
        }
    }
    let interrupted = last(story, |seen| *seen == Seen::Interrupted);
    if let Some(interrupted) = interrupted
        && let Some([Told { end: End::Done(_), at, .. }]) =
            story.told.get("first").map(Vec::as_slice)
        && *at > interrupted + winding + COARSE
    {
        problems.push(format!("first: answered {} ms after it was ended", at - interrupted));
    }
    winds_down_in_peace(row, story, problems);
}

/// A tool with a wind-down period gets it, unless its future is dropped.
fn winds_down_in_peace(row: &Row, story: &Story, problems: &mut Vec<String>) {
    let cancelled =
        matches!(row.interruption, Interruption::CancelRunning | Interruption::ShutdownRunning);
    let id = subject_id(row, "first");
    let is_first = |seen: &Seen| matches!(seen, Seen::Began { call, .. } if *call == id);
    let Some(first) = story.moments.iter().find(|moment| is_first(&moment.seen)) else { return };
    let Seen::Began { run, .. } = first.seen else { return };
    let hangs = row.ending == Ending::Hangs && row.interruption == Interruption::Nothing;
    let wound_down = story.moments.iter().any(|moment| moment.seen == Seen::WoundDown { run });
    if row.wind_down == WindDown::Some && (cancelled || hangs) && !wound_down {
        problems.push("first: it had no time to wind down".into());
    }
}

fn nothing_is_left(row: &Row, story: &Story, problems: &mut Vec<String>) {
    let mut running = BTreeSet::new();
    let mut made = 0;
    for moment in &story.moments {
        match &moment.seen {
            Seen::Began { run, call, tool, .. } => {
                running.insert(*run);
                let label = call.trim_end_matches(".1");
                let ended = story.told.get(label).and_then(|told| told.last());
                if let Some(Told { at, .. }) = ended
                    && moment.at > *at
                    && *tool == "subject"
                {
                    problems.push(format!("{call}: ran after its answer"));
                }
            }
            Seen::Left { run } => {
                running.remove(run);
            }
            Seen::Made => made += 1,
            Seen::Charged => {
                problems.push("a call has called a tool that it may not call".into());
            }
            _ => {}
        }
    }
    if !running.is_empty() {
        problems.push(format!("still running: {running:?}"));
    }
    if story.open != 0 {
        problems.push(format!("{} instances are not closed", story.open));
    }
    instances_are_made_for_calls_that_run(row, made, story, problems);
    if story.waiting != 0 {
        problems.push(format!("{} calls wait that nobody knows of", story.waiting));
    }
    for report in &story.report {
        let interrupted = row.is_shut_down() || row.meanwhile == Meanwhile::Stopped;
        if report.abandoned > 0 || report.cancelled > 0 && !interrupted {
            problems.push(format!("at the end: {report:?}"));
        }
    }
}

/// Cached answers need no instance. An approver may be shown a dry run, which does.
fn instances_are_made_for_calls_that_run(
    row: &Row,
    made: usize,
    story: &Story,
    problems: &mut Vec<String>,
) {
    let spared = story.told.values().flatten().filter(|told| match &told.end {
        End::Done(result) => result.cached() || result.skipped(),
        _ => false,
    });
    let passes: usize = story.passes.values().sum();
    let holders = row.holders() as usize;
    let shown = if row.consent == Consent::Free { 0 } else { passes };
    let most = passes + holders + shown - spared.count();
    if made > most {
        problems.push(format!("{made} instances were made for {most} calls that ran"));
    }
}

fn nothing_ran_beside_what_runs_alone(row: &Row, story: &Story, problems: &mut Vec<String>) {
    // A thread cannot be stopped: a blocking body that is told to end notices it in the next steps, and its batch
    // does not wait for it.
    let may_linger = row.body == Body::Blocking
        && (row.ending == Ending::Hangs || row.interruption != Interruption::Nothing);
    let is_ending = |run: usize, at: u64| {
        may_linger
            && last(story, |seen| *seen == Seen::Left { run })
                .is_some_and(|left| left <= at + LINGER)
    };
    let mut running: BTreeMap<usize, (&str, &str)> = BTreeMap::new();
    for moment in &story.moments {
        match &moment.seen {
            Seen::Began { run, tool, call, .. } => {
                running.insert(*run, (tool, call));
                let subjects = running.values().filter(|(tool, _)| *tool == "subject").count();
                if row.has_one_slot() && subjects > 1 {
                    problems.push(format!("{call}: {subjects} runs in one slot"));
                }
                let of_batch = |call: &str| {
                    ["first", "first.1", "left", "right"].contains(&call)
                        || call == "twin" && row.twin == Twin::SameBatch
                };
                let in_batch = || {
                    let current = running.iter().filter(|(run, _)| !is_ending(**run, moment.at));
                    current.map(|(_, one)| one).filter(|(_, call)| of_batch(call))
                };
                let beside = in_batch().count();
                let is_alone = row.barrier == Barrier::Barrier
                    && in_batch().any(|(tool, _)| *tool == "subject");
                if is_alone && beside > 1 {
                    problems.push(format!("{call}: ran beside a call that runs alone"));
                }
            }
            Seen::Left { run } => {
                running.remove(run);
            }
            // Slots and batches belong to one process. A blocking body of the previous process may
            // need a moment to notice its cancellation; a real process would have ended with it.
            Seen::Restarted => running.clear(),
            _ => {}
        }
    }
}

/// A call that comes to a slot while another identity has calls in the queue is the next to start.
fn nobody_waits_behind_the_queue_of_another(row: &Row, story: &Story, problems: &mut Vec<String>) {
    let first = subject_id(row, "first");
    let mut before = 0;
    for moment in &story.moments {
        match &moment.seen {
            Seen::Began { call, .. } if *call == first => {
                if before > 1 {
                    problems.push(format!("{call}: {before} calls of another came before it"));
                }
                return;
            }
            Seen::Began { call, .. } if call.starts_with(HOLDER) => before += 1,
            // Its twin is a call of the same identity, and slots are those of a process.
            Seen::Began { tool: "subject", .. } | Seen::Restarted => before = 0,
            _ => {}
        }
    }
}

fn counts_are_what_happened(row: &Row, story: &Story, problems: &mut Vec<String>) {
    for (id, passes) in &story.passes {
        let all = story.logs.iter().flat_map(|log| &log.audit);
        let records: Vec<_> = all.filter(|record| record.call_id == **id).collect();
        // Of a batch that is dropped, calls that have not begun leave nothing.
        let may_miss = *id == "twin" && row.barrier == Barrier::Barrier && records.is_empty();
        let is_dropped = matches!(
            story.told.get(id).and_then(|told| told.last()),
            Some(Told { end: End::Dropped, .. })
        );
        // A call that stays at work while one within it waits is one pass.
        let passes = if row.keeps_its_maker() { (*passes).min(1) } else { *passes };
        if records.len() != passes && !(may_miss && is_dropped) {
            problems.push(format!("{id}: {passes} passes, {} audit records", records.len()));
        }
        let (Some(record), Some(told)) =
            (records.last(), story.told.get(id).and_then(|told| told.last()))
        else {
            continue;
        };
        match &told.end {
            End::Done(result) => {
                let outcome = match result.error_kind() {
                    None => AuditOutcome::Success,
                    // Its caller is told that it waits.
                    Some(ErrorKind::RequiresApproval)
                        if record.outcome == AuditOutcome::Waiting =>
                    {
                        AuditOutcome::Waiting
                    }
                    Some(kind) => AuditOutcome::Failure(kind),
                };
                let said = (record.outcome, record.cached, record.skipped);
                if said != (outcome, result.cached(), result.skipped()) {
                    problems.push(format!("{id}: the audit log says {said:?}"));
                }
                let user = record.user.as_ref().and_then(|user| user.as_str());
                if user != Some(told.caller.user) {
                    problems.push(format!("{id}: the audit log names {user:?}"));
                }
            }
            End::Dropped => {
                if record.outcome != AuditOutcome::Failure(ErrorKind::Cancelled) {
                    problems.push(format!("{id}: the audit log says {:?}", record.outcome));
                }
            }
            End::Lost(_) => {}
        }
    }
    for log in &story.logs {
        statistics_are_the_audit_log(row, log, problems);
    }
}

/// The log has a record for everything that the statistics count.
fn statistics_are_the_audit_log(row: &Row, log: &Log, problems: &mut Vec<String>) {
    let (mut successes, mut failures, mut cache_hits, mut timeouts) = (0, 0, 0, 0);
    for record in log.audit.iter().filter(|record| record.tool == "subject") {
        match record.outcome {
            _ if record.cached || record.skipped => cache_hits += 1,
            AuditOutcome::Success => successes += 1,
            // It is counted when it goes on.
            AuditOutcome::Waiting => {}
            AuditOutcome::Failure(ErrorKind::Timeout) => {
                failures += 1;
                timeouts += 1;
            }
            _ => failures += 1,
        }
    }
    let counted = &log.counted;
    if counted.successes != successes || counted.cache_hits != cache_hits {
        problems.push(format!(
            "counted {counted:?}, logged {successes} successes and {cache_hits} cache hits"
        ));
    }
    if counted.timeouts != timeouts {
        problems.push(format!("counted {counted:?}, logged {timeouts} timeouts"));
    }
    // Calls that waited for a client or an answer, and those that were not let in, are not counted.
    if counted.failures > failures {
        problems.push(format!("counted {counted:?}, logged {failures} failures"));
    }
    // Running calls of the first process continue, because no test can kill it.
    let may_linger = row.keeps_its_maker() && row.meanwhile == Meanwhile::Restarted;
    if log.in_flight != 0 && !may_linger {
        problems.push(format!("{} calls count as under way", log.in_flight));
    }
}

fn secrets_are_masked(row: &Row, story: &Story, problems: &mut Vec<String>) {
    if row.secret == Secret::Nowhere {
        return;
    }
    // A part of the secret reveals as much.
    let pieces: Vec<_> = SECRET.as_bytes().windows(10).map(String::from_utf8_lossy).collect();
    let leaks = |text: &str| pieces.iter().any(|piece| text.contains(piece.as_ref()));
    let audit =
        story.logs.iter().flat_map(|log| &log.audit).map(|record| ("audit", record.to_json()));
    for (place, text) in story.texts.iter().cloned().chain(audit) {
        if leaks(&text) {
            problems.push(format!("the secret is in: {place} {text:.300}"));
        }
    }
}

fn outputs_fit_their_budget(story: &Story, problems: &mut Vec<String>) {
    for (id, told) in &story.told {
        for Told { end, .. } in told {
            let End::Done(result) = end else { continue };
            let chars = result.text().chars().count();
            // The marker and the hint come in addition. A message has its own limit, and for wrong arguments twenty
            // problems are listed, each of limited length.
            let most = match result.error().map(ToolError::kind) {
                None => BUDGET + 600,
                Some(ErrorKind::InvalidArgs) => 5_000,
                Some(_) => 1_600,
            };
            if chars > most {
                problems.push(format!("{id}: {chars} characters of text"));
            }
        }
    }
}

/// No stage removes from a failure what the caller needs.
fn failures_are_whole(row: &Row, story: &Story, problems: &mut Vec<String>) {
    for (id, told) in &story.told {
        for Told { end, .. } in told {
            let End::Done(result) = end else { continue };
            let is_the_tools = result.error_kind() == Some(ErrorKind::Execution);
            let retry_after = result.error().and_then(ToolError::retry_after);
            if row.ending == Ending::Fails && is_the_tools && retry_after != Some(RETRY_AFTER) {
                problems.push(format!("{id}: to be called again after {retry_after:?}"));
            }
        }
    }
}

/// A watching client gets the tool's progress, masked, and nothing of a call that waits or has ended.
fn reports_are_whole_and_end_with_the_call(row: &Row, story: &Story, problems: &mut Vec<String>) {
    let (mut ended, mut waiting) = (BTreeSet::new(), BTreeSet::new());
    let mut output: BTreeMap<&str, String> = BTreeMap::new();
    for event in &story.reported {
        let Some(call) = event.call_id().map(CallId::as_str) else { continue };
        let is_report = matches!(event.payload(), Payload::Status(_) | Payload::Output(_));
        if ended.contains(call) || (is_report && waiting.contains(call)) {
            problems.push(format!("{call}: `{}` was reported after its end", event.name()));
        }
        match event.payload() {
            Payload::Suspended { .. } => drop(waiting.insert(call)),
            Payload::Prepare { .. } => drop(waiting.remove(call)),
            Payload::Completed(_) => drop(ended.insert(call)),
            Payload::Output(part) => {
                output.entry(call).or_default().push_str(&part.as_text());
            }
            _ => {}
        }
    }
    let secret = if row.secret == Secret::Nowhere { "nothing" } else { "[masked]" };
    let whole = format!("[read {secret}]");
    // A client that disconnects has read only the first event.
    for (call, text) in output.iter().filter(|_| row.watcher == Watcher::Reads) {
        if !text.replace(&whole, "").is_empty() {
            problems.push(format!("{call}: watchers read {text:?}"));
        }
    }
    let subject = subject_id(row, "first");
    // A waiting call continues without its watcher.
    let is_uninterrupted = row.consent == Consent::Free
        && row.body != Body::Client
        && row.door == Door::Direct
        && row.interruption == Interruption::Nothing;
    let has_run = row.watcher == Watcher::Reads && runs_of(row, story, "first") > 0;
    if has_run && !row.is_nested() && !output.contains_key(subject.as_str()) && is_uninterrupted {
        problems.push(format!("{subject}: it ran, and its watcher heard nothing of it"));
    }
}
