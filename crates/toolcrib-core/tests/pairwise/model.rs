//! The expected outcome of each call of a row, stage by stage in the order of the pipeline.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use toolcrib_tool::ErrorKind;

use crate::factors::{
    Body, Breaker, Consent, Edit, Ending, Injected, Interruption, Looks, Meanwhile, Output, Pool,
    Rate, Retry, Reuse, Row, Second, Sent, Servers, Twin,
};

/// How a call may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Success,
    Failure(ErrorKind),
    Dropped,
}

/// The certain facts about a call.
#[derive(Clone, Debug)]
pub(crate) struct Forecast {
    /// The permitted outcomes.
    pub(crate) ends: Vec<Kind>,
    /// How often its body runs.
    pub(crate) runs: RangeInclusive<usize>,
    /// Whether it gets the answer of another call, if that is certain.
    pub(crate) reused: Option<bool>,
    /// Whether an approver is asked about it.
    pub(crate) asked: bool,
}

impl Forecast {
    fn of(end: Kind, runs: usize) -> Self {
        Self { ends: vec![end], runs: runs..=runs, reused: Some(false), asked: false }
    }

    fn failed(kind: ErrorKind) -> Self {
        Self::of(Kind::Failure(kind), 0)
    }

    fn or(mut self, other: &Self) -> Self {
        self.ends.extend(&other.ends);
        let (least, most) =
            (*self.runs.start().min(other.runs.start()), *self.runs.end().max(other.runs.end()));
        self.runs = least..=most;
        if self.reused != other.reused {
            self.reused = None;
        }
        self
    }

    fn asked(mut self, asked: bool) -> Self {
        self.asked = asked;
        self
    }

    fn is_success(&self) -> bool {
        self.ends == [Kind::Success]
    }
}

/// The calls of a row.
pub(crate) struct Expected {
    pub(crate) calls: BTreeMap<&'static str, Forecast>,
    /// How often the body runs for the call and its twin together, if they share an answer.
    pub(crate) together: Option<usize>,
}

/// The call that a model is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    First,
    Twin,
    Again,
    Second,
}

/// Computes the model of a row from the earlier calls.
struct Model<'r> {
    row: &'r Row,
    /// Whether there is a cached answer that a later equal call must get; `None` if that is
    /// uncertain.
    kept: Option<bool>,
    /// Ada's calls that reached the time limit since the tool has its current version: minimum and
    /// maximum.
    timeouts: (usize, usize),
}

pub(crate) fn expected(row: &Row) -> Expected {
    let mut model = Model { row, kept: Some(false), timeouts: (0, 0) };
    let mut calls = BTreeMap::new();
    let first = model.call(Call::First);
    let is_interrupted = row.interruption != Interruption::Nothing;
    model.came_to(&first, is_interrupted);
    let mut together = None;
    if row.twin != Twin::Alone {
        let mut twin = model.call(Call::Twin);
        if model.shares() {
            let alone = model.alone();
            let certain = model.shares_for_certain() && alone.is_success();
            together = certain.then(|| *alone.runs.end());
            twin.runs = 0..=*twin.runs.end();
            twin.reused = None;
        }
        model.came_to(&twin, is_interrupted && model.is_interrupted(Call::Twin));
        calls.insert("twin", twin);
    }
    let mut first = first;
    if model.shares() && row.twin != Twin::Alone {
        first.runs = 0..=*first.runs.end();
        first.reused = None;
    }
    calls.insert("first", first);
    model.after_the_change();
    let again = model.call(Call::Again);
    model.came_to(&again, false);
    calls.insert("again", again);
    if row.second != Second::Nobody {
        calls.insert("second", model.call(Call::Second));
    }
    Expected { calls, together }
}

impl Model<'_> {
    /// The outcome of a call on its way through the pipeline.
    fn call(&self, call: Call) -> Forecast {
        let row = self.row;
        let is_later = matches!(call, Call::Again | Call::Second);
        if is_later && let Some(refused) = self.refused_now() {
            return refused;
        }
        if row.sent == Sent::Wrong {
            return Forecast::failed(ErrorKind::InvalidArgs);
        }
        let is_remembered = is_later && self.is_remembered(call);
        let is_asked = row.has_approver() && !is_remembered;
        if self.is_interrupted_waiting(call) {
            return self.interrupted(call, 0).asked(is_asked);
        }
        match row.consent {
            Consent::Denies => return Forecast::failed(ErrorKind::Denied).asked(true),
            _ if is_asked && row.edit == Edit::Misfit => {
                return Forecast::failed(ErrorKind::InvalidArgs).asked(true);
            }
            _ if is_asked && row.edit == Edit::Forbidden => {
                return Forecast::failed(ErrorKind::Denied).asked(true);
            }
            Consent::Expires if self.is_gone(call) => return gone(0),
            Consent::Expires if row.meanwhile == Meanwhile::Removed => {
                return Forecast::failed(ErrorKind::NotFound);
            }
            Consent::Expires if row.meanwhile == Meanwhile::Hidden => {
                let denied = Forecast::failed(ErrorKind::Denied);
                return denied.or(&Forecast::failed(ErrorKind::NotFound));
            }
            Consent::Expires => return Forecast::failed(ErrorKind::Denied),
            Consent::Withdrawn => return self.withdrawn(),
            _ if row.is_stored() => {
                if let Some(refused) = self.refused_on_return(call) {
                    return refused;
                }
            }
            _ => {}
        }
        if row.body == Body::Client {
            return self.delivered(call).asked(is_asked);
        }
        let kept = if is_later { self.kept_for(call) } else { Some(false) };
        let reused = Forecast { reused: Some(true), ..Forecast::of(Kind::Success, 0) };
        let runs = self.admitted(call);
        match kept {
            Some(true) => reused,
            Some(false) => runs,
            None => runs.or(&reused),
        }
        .asked(is_asked)
    }

    /// Calls that start after the change and the shutdown.
    fn refused_now(&self) -> Option<Forecast> {
        if self.row.is_shut_down() {
            return Some(Forecast::failed(ErrorKind::Unavailable));
        }
        let is_wrong = self.row.sent == Sent::Wrong;
        Some(Forecast::failed(match self.row.meanwhile {
            Meanwhile::Removed | Meanwhile::Hidden => ErrorKind::NotFound,
            Meanwhile::Blocked => ErrorKind::Unavailable,
            Meanwhile::Constrained if !is_wrong => ErrorKind::Constraint,
            _ => return None,
        }))
    }

    /// Calls that waited in the store during a change.
    fn refused_on_return(&self, call: Call) -> Option<Forecast> {
        let is_later = matches!(call, Call::Again | Call::Second);
        let denied = Forecast::failed(ErrorKind::Denied);
        match self.row.meanwhile {
            Meanwhile::Revoked => Some(denied),
            _ if is_later => None,
            _ if self.is_gone(call) => Some(gone(0)),
            Meanwhile::Changed => Some(denied),
            // Whoever decides on the calls of others is told more than a caller who does not see the tool.
            Meanwhile::Hidden if self.row.consent == Consent::Decided => Some(denied),
            Meanwhile::Hidden => Some(Forecast::failed(ErrorKind::NotFound).or(&denied)),
            Meanwhile::Removed => Some(Forecast::failed(ErrorKind::NotFound)),
            Meanwhile::Blocked => Some(Forecast::failed(ErrorKind::Unavailable).or(&denied)),
            Meanwhile::Constrained => Some(Forecast::failed(ErrorKind::Constraint)),
            _ => None,
        }
    }

    /// Calls that are cancelled while they wait in the store, whatever has changed. A call that makes one is told why
    /// it may not go on.
    fn withdrawn(&self) -> Forecast {
        let may_not = matches!(self.row.meanwhile, Meanwhile::Revoked | Meanwhile::Hidden);
        let is_told = self.row.keeps_its_maker() && may_not;
        Forecast::failed(if is_told { ErrorKind::Denied } else { ErrorKind::Cancelled })
    }

    /// Whether the call waited inside another one whose process has ended.
    fn is_gone(&self, call: Call) -> bool {
        let is_later = matches!(call, Call::Again | Call::Second);
        self.row.keeps_its_maker() && self.row.meanwhile == Meanwhile::Restarted && !is_later
    }

    /// The output of a client is accepted even if the tool can no longer be called.
    fn delivered(&self, call: Call) -> Forecast {
        let success = Forecast::of(Kind::Success, 0);
        match (self.refused_on_return(call), self.row.meanwhile) {
            (Some(refused), Meanwhile::Blocked | Meanwhile::Constrained) => success.or(&refused),
            (Some(refused), _) => refused,
            (None, _) => success,
        }
    }

    /// The breaker, the rate limit, and then the body.
    fn admitted(&self, call: Call) -> Forecast {
        let row = self.row;
        let open = match (call, row.second) {
            (Call::Second, Second::OtherUser) => row.breaker == Breaker::OpenForOther,
            _ => row.breaker == Breaker::Open,
        };
        let paused = Forecast::failed(ErrorKind::Paused);
        if open && !self.is_fresh(call) && !self.is_changed(call) {
            return paused;
        }
        match self.has_opened(call) {
            Some(true) => paused,
            Some(false) => self.let_in(call),
            None => self.let_in(call).or(&paused),
        }
    }

    /// The rate limit, and then the body.
    fn let_in(&self, call: Call) -> Forecast {
        let row = self.row;
        let exhausted = Forecast::failed(ErrorKind::RateLimited);
        if row.rate == Rate::Exhausted && !self.is_fresh(call) {
            return exhausted;
        }
        let runs = self.run(call);
        // A restarted process lets as many calls pass as the first did before the row.
        if row.rate == Rate::Exhausted { runs.or(&exhausted) } else { runs }
    }

    /// How the body itself ends.
    fn run(&self, call: Call) -> Forecast {
        let row = self.row;
        if self.is_interrupted_running(call) {
            let least = usize::from(call == Call::First);
            let mut forecast = self.interrupted(call, 1);
            forecast.runs = least..=1;
            return forecast;
        }
        let tried_again = row.retry == Retry::Once;
        let success = match row.output {
            Output::LargeData => Kind::Failure(ErrorKind::InvalidOutput),
            _ => Kind::Success,
        };
        let failure = Kind::Failure(ErrorKind::Execution);
        let mut forecast = match row.ending {
            Ending::Succeeds => Forecast::of(success, 1),
            Ending::Recovers if tried_again => Forecast::of(success, 2),
            Ending::LeavesHalf if tried_again => Forecast::of(failure, 2),
            Ending::Fails | Ending::Recovers | Ending::LeavesHalf => Forecast::of(failure, 1),
            Ending::Panics => Forecast::of(Kind::Failure(ErrorKind::Panic), 1),
            Ending::Hangs => Forecast::of(Kind::Failure(ErrorKind::Timeout), 1),
            Ending::AsksInVain => Forecast { runs: 1..=1, ..self.withdrawn() },
            Ending::Asks => match self.refused_on_return(call) {
                Some(refused) if !row.is_stored() || row.meanwhile == Meanwhile::Revoked => {
                    Forecast { runs: 1..=1, ..refused }
                }
                _ => Forecast::of(success, 2),
            },
        };
        // Calls that wait in the store continue one after another, before or after the shutdown.
        if row.is_stored() && row.is_shut_down() && call == Call::Twin {
            forecast = forecast.or(&self.interrupted(call, 0));
        }
        if row.pool == Pool::Full && matches!(call, Call::First | Call::Twin) {
            // Whether waiting for a thread counts as running is left open. A body that has not
            // begun by the limit never begins.
            let late = Forecast::of(Kind::Failure(ErrorKind::Timeout), 0);
            return forecast.or(&late);
        }
        forecast
    }

    /// The call and its twin may share one answer.
    fn shares(&self) -> bool {
        self.row.reuse != Reuse::Nothing
    }

    /// The call and its twin are made so that one of them gets the other's answer.
    fn shares_for_certain(&self) -> bool {
        let row = self.row;
        let joined = match row.twin {
            Twin::Alone => false,
            Twin::SameBatch => true,
            Twin::Beside => row.reuse == Reuse::Cache && !row.is_nested(),
        };
        joined
            && !row.is_stored()
            && !row.asks()
            && row.interruption == Interruption::Nothing
            && row.looks == Looks::Nothing
            && row.pool == Pool::Free
    }

    /// The outcome of the call without a twin.
    fn alone(&self) -> Forecast {
        self.call(Call::First)
    }

    fn interrupted(&self, call: Call, runs: usize) -> Forecast {
        match self.row.interruption {
            Interruption::DropWaiting | Interruption::DropRunning => {
                return Forecast::of(Kind::Dropped, runs);
            }
            Interruption::DeadlineWaiting | Interruption::DeadlineRunning => {
                return Forecast::of(Kind::Failure(ErrorKind::Timeout), runs);
            }
            _ => {}
        }
        let cancelled = Forecast::of(Kind::Failure(ErrorKind::Cancelled), runs);
        // Later calls of its batch are not admitted.
        let is_late = call == Call::Twin && self.row.is_shut_down();
        if is_late {
            return cancelled.or(&Forecast::failed(ErrorKind::Unavailable));
        }
        cancelled
    }

    fn is_interrupted(&self, call: Call) -> bool {
        match call {
            Call::First => true,
            Call::Twin if self.row.is_stored() => false,
            Call::Twin => self.row.twin == Twin::SameBatch || self.row.is_shut_down(),
            Call::Again | Call::Second => false,
        }
    }

    fn is_interrupted_waiting(&self, call: Call) -> bool {
        self.row.is_interrupted_waiting() && self.is_interrupted(call)
    }

    fn is_interrupted_running(&self, call: Call) -> bool {
        self.row.is_interrupted_running() && self.is_interrupted(call)
    }

    /// Whether the program was restarted before the call reached the breaker, or the call reaches the breaker of
    /// another server.
    fn is_fresh(&self, call: Call) -> bool {
        let is_later = matches!(call, Call::Again | Call::Second);
        let goes_on_elsewhere = self.row.servers == Servers::Two && self.row.is_stored();
        self.row.is_started_again() && (is_later || self.row.is_stored()) || goes_on_elsewhere
    }

    fn is_changed(&self, call: Call) -> bool {
        let is_later = matches!(call, Call::Again | Call::Second);
        self.row.meanwhile == Meanwhile::Changed && is_later
    }

    /// Whether calls of the row itself have opened the breaker; `None` if that is uncertain.
    fn has_opened(&self, call: Call) -> Option<bool> {
        let is_ada = call != Call::Second || self.row.second != Second::OtherUser;
        let (least, most) = self.timeouts;
        match (is_ada && most >= 3, least >= 3) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        }
    }

    fn is_remembered(&self, call: Call) -> bool {
        let row = self.row;
        let is_same = match (call, row.second) {
            (Call::Second, Second::OtherUser | Second::OtherSession) => false,
            (Call::Second, Second::OtherProject) => row.injected == Injected::Nothing,
            _ => true,
        };
        // What was approved: before the change, before the restart, or not at all.
        let holds = call == Call::Second
            || row.meanwhile != Meanwhile::Changed
                && !row.is_started_again()
                && (!row.is_interrupted_waiting()
                    || row.twin == Twin::Beside && !row.is_shut_down());
        row.consent == Consent::Remembers && row.edit == Edit::Nothing && is_same && holds
    }

    /// Whether there is a cached answer for this later call.
    fn kept_for(&self, call: Call) -> Option<bool> {
        let row = self.row;
        let looks = row.looks == Looks::Session;
        let fits = match (call, row.second) {
            (Call::Second, Second::OtherUser) => false,
            (Call::Second, Second::OtherProject) => row.injected == Injected::Nothing,
            (Call::Second, Second::OtherSession) => row.reuse == Reuse::Cache && !looks,
            _ => true,
        };
        match self.kept {
            Some(false) => Some(false),
            _ if !fits => Some(false),
            // The answer is cached where the call continued; a later call gets there only after it was approved.
            _ if row.servers == Servers::Two && !row.is_stored() => None,
            // An answer that depends on the session may be left out of the cache.
            _ if looks => None,
            kept => kept,
        }
    }

    /// Records what a call leaves behind.
    fn came_to(&mut self, forecast: &Forecast, is_interrupted: bool) {
        let row = self.row;
        let keeps = matches!(row.reuse, Reuse::Cache | Reuse::Session) && row.body != Body::Client;
        if keeps && forecast.ends.contains(&Kind::Success) {
            let certain = forecast.is_success();
            self.kept = if certain || self.kept == Some(true) { Some(true) } else { None };
        }
        let timeout = Kind::Failure(ErrorKind::Timeout);
        // The caller's deadline does not count as the tool's time limit.
        if !is_interrupted && forecast.ends.contains(&timeout) {
            self.timeouts.0 += usize::from(forecast.ends == [timeout]);
            self.timeouts.1 += 1;
        }
    }

    /// What the change of the row removes.
    fn after_the_change(&mut self) {
        let row = self.row;
        let runs_after = row.is_stored() || row.asks();
        match row.meanwhile {
            Meanwhile::Changed => (self.kept, self.timeouts) = (Some(false), (0, 0)),
            _ if row.is_started_again() && !runs_after => {
                (self.kept, self.timeouts) = (Some(false), (0, 0));
            }
            _ => {}
        }
    }
}

/// The answer to a call that was running in a process that has ended.
fn gone(runs: usize) -> Forecast {
    Forecast::of(Kind::Failure(ErrorKind::OutcomeUnknown), runs)
}
