//! Calls of a run that wait for somebody: asks the person at the terminal.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;
use toolcrib::Executor;
use toolcrib::agent::run::RunState;
use toolcrib::agent::{Agent, AgentError, RunReport};
use toolcrib::core::approval::{ApprovalRequest, Decision, Remember};
use toolcrib::core::clock::{Clock as _, SystemClock};
use toolcrib::core::run::RunError;
use toolcrib::core::suspension::{RedeemError, Resolution, Suspension, Waiting};
use toolcrib::tool::units::HumanDuration;
use toolcrib::tool::{canonical_json, fully_visible, fully_visible_text};

use super::interrupt::Interrupt;
use super::progress::Progress;
use super::yes::{ApprovedCalls, asks_anew};
use crate::screen::{self, FAINT, STRONG, WARNING};
use crate::{arguments, terminal_approver, terminal_line};

/// How often to look whether somebody else has decided on a call.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the person at a question reads whose call was decided elsewhere.
const DECIDED_ELSEWHERE: &str = "somebody else has decided on this call";

/// What the person at a question reads whose call has expired.
const TOO_LATE: &str = "the time to decide is over: the call is denied";

/// Why a call to a client's tool is denied.
const NO_CLIENT: &str = "this run has no client that could run the tool; find another way";

const KEYS: &str = "\x20 y  run it
  n  do not run it; you may say why, for the model
  e  change the arguments, then run it
  a  run it, and in this session every call of the tool with the same arguments
  t  run it, and in this session every call of the tool
Ctrl-C leaves; the call waits on.";

/// Decides on calls that wait, and continues the run, until it ends or nobody here can decide.
pub(super) async fn decide_and_go_on(
    agent: &Agent,
    mut report: RunReport,
    approved: &ApprovedCalls,
    interrupt: &mut Interrupt,
    progress: &Progress,
    tools: &Executor,
) -> anyhow::Result<RunReport> {
    let is_terminal = terminal_line::is_there();
    // The tools that are allowed for the rest of the run; the executor remembers them for calls to come.
    let mut allowed = HashSet::new();
    while report.state() == RunState::RequiresAction && !interrupt.is_stopped() {
        let waiting: Vec<Suspension> = report.waiting().cloned().collect();
        let mut is_decided = false;
        for (at, call) in waiting.iter().enumerate() {
            let place = (at + 1, waiting.len());
            let asks = report.run_of(call.id()).unwrap_or(&report);
            let (id, agent_name) = (asks.id().clone(), asks.run().agent().to_owned());
            let shown = canonical_json(&call.shown().arguments);
            progress.know(id.as_str(), call.call_id(), call.tool(), &shown);
            let resolution = match call.waiting() {
                Waiting::Client => Some(Decision::deny(NO_CLIENT).into()),
                _ if !asks_anew(call)
                    && allowed.contains(&(call.tool().to_owned(), call.definition_hash())) =>
                {
                    Some(Decision::approve().into())
                }
                _ if approved.include(call) => {
                    progress.end_line();
                    screen::note(format!(
                        "approved by --yes: {STRONG}{}{STRONG:#} {FAINT}{}{FAINT:#}",
                        fully_visible(call.tool()),
                        fully_visible(&canonical_json(&call.shown().arguments)),
                    ));
                    Some(Decision::approve().into())
                }
                _ if !is_terminal => None,
                Waiting::Approval { .. } | Waiting::Input { .. } => {
                    let question = question(call, place, (&agent_name, id.as_str()));
                    let asked = while_it_waits(tools, call, question);
                    match interrupt.unless_pressed(asked).await {
                        Some(Asked::Answered(resolution)) => resolution.map(|given| *given),
                        Some(Asked::Over) => {
                            is_decided = true;
                            continue;
                        }
                        None => return Ok(report),
                    }
                }
                _ => None,
            };
            let Some(resolution) = resolution else { continue };
            if let Resolution::Decision(Decision::Approve { remember: Remember::Tool }) = resolution
            {
                allowed.insert((call.tool().to_owned(), call.definition_hash()));
            }
            if let Resolution::Decision(Decision::ApproveChanged { arguments }) = &resolution {
                progress.change_arguments(id.as_str(), call.call_id(), call.tool(), arguments);
            }
            is_decided = true;
            let control = interrupt.control().clone();
            let resolved = agent.resolve_with(report.id(), call.id(), resolution, &control);
            match Box::pin(interrupt.during(resolved)).await? {
                Ok(_) => {}
                Err(AgentError::Resolve(RunError::Redeem(RedeemError::AlreadyResolved(_)))) => {
                    screen::note(DECIDED_ELSEWHERE);
                }
                Err(AgentError::Resolve(RunError::Redeem(RedeemError::Expired))) => {
                    screen::note(TOO_LATE);
                }
                Err(AgentError::Resolve(RunError::Redeem(
                    error @ (RedeemError::Arguments(_) | RedeemError::Answer(_)),
                ))) => {
                    screen::note(format!("{error}\nThe call still waits."));
                    progress.change_arguments(id.as_str(), call.call_id(), call.tool(), &shown);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if !is_decided {
            break;
        }
        let control = interrupt.control().clone();
        let resumed = agent.resume_with(report.id(), &control);
        report = Box::pin(interrupt.during(resumed)).await??;
    }
    Ok(report)
}

/// Names the calls that wait and who can decide.
pub(super) fn tell_waiting(report: &RunReport) {
    for call in report.waiting() {
        let what = match call.waiting() {
            Waiting::Approval { .. } => "waits for approval",
            Waiting::Client => "waits for a client",
            Waiting::Input { .. } => "waits for an answer",
            _ => "waits for work elsewhere",
        };
        let left = time_left(call).map(|left| format!(" (denied in {left} if nobody decides)"));
        let left = left.unwrap_or_default();
        screen::note(format!(
            "{WARNING}{what}{WARNING:#} {}: {STRONG}{}{STRONG:#} {}{left}",
            call.id(),
            fully_visible(call.tool()),
            fully_visible(&canonical_json(&call.shown().arguments)),
        ));
    }
    screen::note(
        "decide with `toolcrib approvals` while a server runs with this config (`toolcrib serve`), or resume the run \
         on a terminal",
    );
}

/// How long a call waits; `None` for ever.
fn time_left(call: &Suspension) -> Option<String> {
    let left = call.expires_at().since(SystemClock.now()).as_secs();
    if left > 366 * 86_400 {
        return None;
    }
    // In whole minutes if there are several: a new question shows the limit of the config.
    let left = if left > 90 { (left + 30) / 60 * 60 } else { left };
    Some(HumanDuration(Some(Duration::from_secs(left))).to_string())
}

/// What came of a question.
enum Asked {
    /// The answer; none if the input has ended.
    Answered(Option<Box<Resolution>>),
    /// The call no longer waits for it.
    Over,
}

/// Asks until the call has expired or somebody else has decided on it.
async fn while_it_waits(
    tools: &Executor,
    call: &Suspension,
    question: impl Future<Output = Option<Resolution>>,
) -> Asked {
    let over = async {
        loop {
            let now = SystemClock.now();
            if call.is_expired(now) {
                return TOO_LATE;
            }
            if let Some(store) = tools.suspensions()
                && let Ok(Some(_)) = store.resolved(call.id()).await
            {
                return DECIDED_ELSEWHERE;
            }
            tokio::time::sleep(call.expires_at().since(now).min(LOOK_EVERY)).await;
        }
    };
    tokio::select! {
        biased;
        answer = question => Asked::Answered(answer.map(Box::new)),
        why = over => {
            // The question is on the last line.
            screen::note(format!("\n{why}"));
            Asked::Over
        }
    }
}

/// Asks what the call waits for.
async fn question(
    call: &Suspension,
    place: (usize, usize),
    asker: (&str, &str),
) -> Option<Resolution> {
    match call.waiting() {
        Waiting::Input { message, .. } => answer(message).await,
        _ => decision(call, place, asker).await,
    }
}

/// Asks on standard error and reads the answer from standard input; `None` if the input has ended.
async fn decision(
    call: &Suspension,
    (at, of): (usize, usize),
    (agent, run): (&str, &str),
) -> Option<Resolution> {
    let request = ApprovalRequest::of(call, None)?;
    let place = if of > 1 { format!(" ({at} of {of})") } else { String::new() };
    screen::note(terminal_approver::call_to_decide(&request, &place));
    screen::note(format!("agent: {}, run {run}", fully_visible(agent)));
    if let Some(left) = time_left(call) {
        screen::note(format!("waits: {left}, then it is denied"));
    }
    terminal_line::forget().await;
    loop {
        screen::ask("Run it? [y/n/e/a/t/?] ");
        let chosen = read_line().await?;
        let decision = match chosen.trim().to_lowercase().as_str() {
            "y" | "yes" => Decision::approve(),
            "a" => Decision::Approve { remember: Remember::SameCall },
            "t" => Decision::Approve { remember: Remember::Tool },
            "n" | "no" => {
                screen::ask("Why, for the model (may be empty): ");
                let why = read_line().await?;
                Decision::deny(match why.trim() {
                    "" => "the operator did not approve the call",
                    why => why,
                })
            }
            "e" => match edited(call).await? {
                Some(arguments) => Decision::approve_changed(arguments),
                None => continue,
            },
            _ => {
                screen::note(KEYS);
                continue;
            }
        };
        return Some(decision.into());
    }
}

/// New arguments for a call; `None` if they stay as they are.
async fn edited(call: &Suspension) -> Option<Option<String>> {
    screen::note(format!(
        "the arguments are {}",
        fully_visible_text(&canonical_json(&call.shown().arguments))
    ));
    screen::ask("New arguments, a JSON object on one line (empty: back): ");
    let line = read_line().await?;
    Some(match line.trim() {
        "" => None,
        text => match serde_json::from_str(text) {
            Ok(Value::Object(_)) => Some(text.to_owned()),
            Ok(_) => {
                screen::note("the arguments of a call are a JSON object");
                None
            }
            Err(error) => {
                let place = error.column();
                screen::note(format!("this is not JSON: character {place} does not fit"));
                None
            }
        },
    })
}

/// The answer to a tool's question.
async fn answer(message: &str) -> Option<Resolution> {
    screen::note(format!("{WARNING}a question{WARNING:#} {}", fully_visible_text(message)));
    screen::ask("Your answer, as JSON or as text (empty: none): ");
    let line = read_line().await?;
    let text = line.trim();
    if text.is_empty() {
        return Some(Decision::deny("the operator did not answer the question").into());
    }
    let value = arguments::json(text).unwrap_or_else(|_| Value::from(text));
    Some(Resolution::Answer(value))
}

/// A line from the terminal; `None` at its end.
async fn read_line() -> Option<String> {
    terminal_line::read().await.ok()?
}
