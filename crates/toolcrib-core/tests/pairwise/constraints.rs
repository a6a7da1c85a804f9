//! Which combinations of options are meaningful. A rule forbids a combination; it applies as soon
//! as its dimensions are known.

use crate::factors::{
    Body, Breaker, Consent, Door, Edit, Ending, Instance, Interruption, Looks, Meanwhile, Output,
    Part, Pool, Rate, Resumed, Retry, Reuse, Rights, Row, Secret, Sent, Servers, Shown, Slots,
    Twin, WindDown,
};

/// Whether a row, in which some dimensions may still be open, can be completed according to the
/// rules.
pub(crate) fn possible(part: &Part) -> bool {
    let rules = [
        client_tools_have_no_body,
        bodies_take_time,
        consent_fits_rights,
        approved_arguments_can_be_changed,
        toolsets_hide_tools,
        what_waits_outlives_its_server,
        what_goes_on_elsewhere_waits,
        twins_fit_doors,
        what_is_interrupted_waits,
        what_is_interrupted_runs,
        outputs_fit_secrets,
        a_restart_is_no_shutdown,
        what_is_refused_at_once_is_not_interrupted,
    ];
    !rules.iter().any(|forbids| forbids(part))
}

/// Whether a value is known and is one of these.
fn is<T: PartialEq>(value: Option<T>, any: &[T]) -> bool {
    value.is_some_and(|value| any.contains(&value))
}

/// Whether a value is known and is none of these.
fn is_not<T: PartialEq>(value: Option<T>, any: &[T]) -> bool {
    value.is_some_and(|value| !any.contains(&value))
}

fn client_tools_have_no_body(part: &Part) -> bool {
    is(part.body, &[Body::Client])
        && (is_not(part.ending, &[Ending::Succeeds])
            || is_not(part.instance, &[Instance::Shared])
            || is_not(part.slots, &[Slots::Unlimited])
            || is_not(part.rate, &[Rate::Unlimited])
            || is_not(part.breaker, &[Breaker::Closed])
            || is_not(part.wind_down, &[WindDown::Nothing])
            || is_not(part.retry, &[Retry::Never])
            || is_not(part.looks, &[Looks::Nothing])
            || is_not(part.reuse, &[Reuse::Nothing]))
}

fn bodies_take_time(part: &Part) -> bool {
    is(part.body, &[Body::Ready]) && is(part.ending, &[Ending::Hangs])
        || is(part.pool, &[Pool::Full])
            && (is_not(part.body, &[Body::Blocking]) || is_not(part.slots, &[Slots::Unlimited]))
        // What another takes of the rate is another dimension.
        || is(part.slots, &[Slots::Crowded]) && is_not(part.rate, &[Rate::Unlimited])
        // Slots belong to one process: a call that asks leaves the process whose slot is crowded.
        || is(part.slots, &[Slots::Crowded])
            && is(part.servers, &[Servers::Two])
            && is(part.ending, ASKING)
        // Whether another identity gets the last token after several calls is tested with the bucket.
        || is(part.slots, &[Slots::Contended])
            && is(part.rate, &[Rate::Exhausted])
            && is_not(part.breaker, &[Breaker::Closed])
}

/// Consent that comes from an approver while the call waits.
pub(crate) const APPROVER: &[Consent] = &[Consent::Approves, Consent::Denies, Consent::Remembers];

/// Bodies that ask a question, with which the call waits in the store.
const ASKING: &[Ending] = &[Ending::Asks, Ending::AsksInVain];

/// Consent for which the call is put into the store.
pub(crate) const STORED: &[Consent] =
    &[Consent::Resolved, Consent::Decided, Consent::Expires, Consent::Withdrawn];

fn consent_fits_rights(part: &Part) -> bool {
    is(part.rights, &[Rights::MayNot])
        && (is(part.consent, APPROVER) || is(part.consent, &[Consent::Resolved]))
}

/// Consent with which arguments can be changed.
const APPROVED: &[Consent] =
    &[Consent::Approves, Consent::Remembers, Consent::Resolved, Consent::Decided];

fn approved_arguments_can_be_changed(part: &Part) -> bool {
    is_not(part.edit, &[Edit::Nothing]) && is_not(part.consent, APPROVED)
}

fn toolsets_hide_tools(part: &Part) -> bool {
    is(part.meanwhile, &[Meanwhile::Hidden]) && is(part.shown, &[Shown::Everything])
}

/// A server stops in good order while a call waits in the store. What happens to calls that it makes or runs at that
/// time is another dimension.
fn what_waits_outlives_its_server(part: &Part) -> bool {
    is(part.meanwhile, &[Meanwhile::Stopped])
        && (is_not(part.consent, STORED)
            && is_not(part.ending, ASKING)
            && is_not(part.body, &[Body::Client])
            || is(part.door, &[Door::Nested])
            || part.interruption.is_some_and(|one| one != Interruption::Nothing))
}

fn twins_fit_doors(part: &Part) -> bool {
    is(part.twin, &[Twin::SameBatch]) && is_not(part.door, &[Door::Batch, Door::Run])
}

/// Only waiting calls continue in another server or in another context.
fn what_goes_on_elsewhere_waits(part: &Part) -> bool {
    let waits_for_nobody = is_not(part.consent, STORED)
        && is_not(part.ending, ASKING)
        && is_not(part.body, &[Body::Client]);
    let goes_on_elsewhere =
        is(part.servers, &[Servers::Two]) || is(part.resumed, &[Resumed::InAnotherProject]);
    goes_on_elsewhere && waits_for_nobody
        // A call whose parent is still running continues in its own server.
        || is(part.servers, &[Servers::Two]) && is(part.door, &[Door::Nested])
        // One of two servers that ends leaves the other one running, which equals a restart.
        || is(part.servers, &[Servers::Two])
            && is(part.interruption, &[Interruption::ShutdownWaiting, Interruption::ShutdownRunning])
}

/// Events that end a call while it waits.
const WAITING: &[Interruption] = &[
    Interruption::CancelWaiting,
    Interruption::DropWaiting,
    Interruption::ShutdownWaiting,
    Interruption::DeadlineWaiting,
];

/// Events that end a call while its body runs.
const RUNNING: &[Interruption] = &[
    Interruption::CancelRunning,
    Interruption::DropRunning,
    Interruption::ShutdownRunning,
    Interruption::DeadlineRunning,
];

/// A call that is interrupted while it waits must actually wait: for an approver, or else for an instance, a slot or a
/// thread, which it reaches only if the breaker and the rate limit let it pass.
fn what_is_interrupted_waits(part: &Part) -> bool {
    if !is(part.interruption, WAITING) || is(part.consent, APPROVER) {
        return false;
    }
    let waits_for_nothing = is(part.instance, &[Instance::Shared])
        && is(part.slots, &[Slots::Unlimited])
        && is(part.pool, &[Pool::Free]);
    is_not(part.consent, &[Consent::Free])
        || part.consent.is_some()
            && (waits_for_nothing
                || is(part.body, &[Body::Client])
                || is(part.breaker, &[Breaker::Open])
                || is(part.rate, &[Rate::Exhausted]))
}

fn what_is_interrupted_runs(part: &Part) -> bool {
    is(part.interruption, RUNNING)
        && (is_not(part.body, &[Body::Pending, Body::Blocking])
            || is(part.consent, &[Consent::Denies, Consent::Expires, Consent::Withdrawn])
            || is(part.breaker, &[Breaker::Open])
            || is(part.rate, &[Rate::Exhausted])
            || is(part.pool, &[Pool::Full])
            || is(part.consent, APPROVER) && is(part.edit, &[Edit::Misfit, Edit::Forbidden])
            // A call that somebody else approved continues by itself.
            || is(part.consent, &[Consent::Decided])
                && is_not(part.interruption, &[Interruption::ShutdownRunning])
            || is(part.consent, STORED)
                && is_not(
                    part.meanwhile,
                    &[Meanwhile::Nothing, Meanwhile::Reloaded, Meanwhile::Restarted],
                )
            // A call that cannot wait does not run.
            || is(part.consent, STORED) && is(part.door, &[Door::Nested])
            // A call that continues after its twin may get the twin's answer.
            || is(part.consent, STORED)
                && is(part.twin, &[Twin::Beside])
                && is_not(part.reuse, &[Reuse::Nothing])
            // A deadline is set beforehand, so the start of the body must be known.
            || is(part.interruption, &[Interruption::DeadlineRunning])
                && (is_not(part.instance, &[Instance::Shared])
                    || is_not(part.slots, &[Slots::Unlimited])))
}

fn outputs_fit_secrets(part: &Part) -> bool {
    is(part.secret, &[Secret::AtCut]) && is_not(part.output, &[Output::Long])
}

fn a_restart_is_no_shutdown(part: &Part) -> bool {
    is(part.meanwhile, &[Meanwhile::Restarted])
        && is(part.interruption, &[Interruption::ShutdownWaiting, Interruption::ShutdownRunning])
}

fn what_is_refused_at_once_is_not_interrupted(part: &Part) -> bool {
    is(part.sent, &[Sent::Wrong]) && is_not(part.interruption, &[Interruption::Nothing])
}

impl Row {
    /// Whether the call is interrupted before its body begins.
    pub(crate) fn is_interrupted_waiting(&self) -> bool {
        WAITING.contains(&self.interruption)
    }

    /// Whether the call is interrupted while its body runs.
    pub(crate) fn is_interrupted_running(&self) -> bool {
        RUNNING.contains(&self.interruption)
    }

    /// Whether the executor is shut down while the call waits or runs.
    pub(crate) fn is_shut_down(&self) -> bool {
        matches!(self.interruption, Interruption::ShutdownWaiting | Interruption::ShutdownRunning)
    }

    /// How many calls of another identity come for the only slot before the call.
    pub(crate) fn holders(&self) -> u32 {
        match self.slots {
            Slots::Unlimited => 0,
            Slots::Contended => 1,
            Slots::Crowded => 4,
        }
    }

    /// Whether one call of the tool runs at once.
    pub(crate) fn has_one_slot(&self) -> bool {
        self.slots != Slots::Unlimited
    }

    /// Whether the call is in the middle of a batch.
    pub(crate) fn has_neighbors(&self) -> bool {
        self.door != Door::Direct
    }

    /// Whether an approver is asked while the call waits.
    pub(crate) fn has_approver(&self) -> bool {
        APPROVER.contains(&self.consent)
    }

    /// Whether the call waits for consent in the store.
    pub(crate) fn is_stored(&self) -> bool {
        STORED.contains(&self.consent)
    }

    /// Whether the body asks a question.
    pub(crate) fn asks(&self) -> bool {
        ASKING.contains(&self.ending)
    }

    /// Whether the calls after the change are made in another process than those before.
    pub(crate) fn is_started_again(&self) -> bool {
        matches!(self.meanwhile, Meanwhile::Restarted | Meanwhile::Stopped)
    }

    /// Whether the body tries to call a tool that its turn does not show.
    pub(crate) fn reaches_out(&self) -> bool {
        self.shown == Shown::Narrowed && self.reuse == Reuse::Nothing
    }

    /// Whether another call, which keeps running while it waits, makes the call.
    pub(crate) fn keeps_its_maker(&self) -> bool {
        self.door == Door::Nested
    }

    /// Whether another call makes the call.
    pub(crate) fn is_nested(&self) -> bool {
        matches!(self.door, Door::Nested | Door::Meta)
    }
}
