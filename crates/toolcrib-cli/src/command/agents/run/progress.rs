//! What the person at the terminal sees while a run goes on.

use std::collections::{BTreeMap, HashMap};
use std::io::{IsTerminal as _, stderr, stdout};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolcrib::agent::{AgentEvent, JournalEntry};
use toolcrib::core::events::{Event, Payload};
use toolcrib::tool::{ToolResult, fully_visible, fully_visible_text};
use toolcrib::wire::model::{ModelEvent, ModelItem, View};
use toolcrib::{Executor, TurnOptions};

use super::super::journals::StoredRun;
use super::live::LiveOutput;
use crate::screen::{self, ERROR, FAINT, STRONG, WARNING};

/// The number of characters of arguments and of errors in a line.
const SHOWN: usize = 100;

/// Shows the events of a run: as lines for people, or as JSON lines.
pub(super) struct Progress {
    as_events: bool,
    /// Whether the answer is shown while it is written: a person reads both outputs.
    streams: bool,
    /// Whether standard error is a terminal.
    is_live: bool,
    /// The tools, some of which are hidden from people.
    tools: Executor,
    state: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    run: Option<String>,
    /// The text of the current answer on standard output.
    text: String,
    /// What is on the last line of the terminal.
    line: Line,
    /// The tools and arguments of calls, by run and id: models choose the ids.
    calls: HashMap<(String, String), String>,
    /// What the runs of sub-agents are called, by run.
    sub_agents: HashMap<String, String>,
    /// The output of running calls.
    output: LiveOutput,
    /// The call whose output is the answer.
    final_call: Option<String>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Line {
    #[default]
    Ended,
    Answer,
    Reasoning,
}

impl Progress {
    pub(super) fn new(as_events: bool, as_json: bool, tools: Executor) -> Self {
        let is_live = stderr().is_terminal();
        let streams = is_live && stdout().is_terminal() && !as_events && !as_json;
        Self { as_events, streams, is_live, tools, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, Shown> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the run itself, once it has begun.
    pub(super) fn run(&self) -> Option<String> {
        self.state().run.clone()
    }

    /// Whether the terminal has shown the whole answer.
    pub(super) fn has_shown(&self, answer: &str) -> bool {
        let answer = answer.trim_end_matches('\n');
        self.streams && !answer.is_empty() && self.state().text.trim_end_matches('\n') == answer
    }

    /// The person has changed the arguments of a call.
    pub(super) fn change_arguments(&self, run: &str, call: &str, tool: &str, arguments: &str) {
        let turn = self.tools.turn(TurnOptions::default());
        let hidden = turn.hidden_arguments(tool, arguments);
        let shown = shown_call(tool, hidden.as_deref().unwrap_or(arguments));
        self.state().calls.insert(key(run, call), shown);
    }

    /// A call that waits, and that another process may have begun.
    pub(super) fn know(&self, run: &str, call: &str, tool: &str, arguments: &str) {
        if !self.is_hidden(tool) {
            let shown = || shown_call(tool, arguments);
            self.state().calls.entry(key(run, call)).or_insert_with(shown);
        }
    }

    /// The calls of a run that another process has begun.
    pub(super) fn know_all(&self, run: &StoredRun) {
        let mut state = self.state();
        if !self.as_events
            && let Some(JournalEntry::Started { agent, .. }) =
                run.rows.first().map(|row| &row.entry)
        {
            state.note(format!("{FAINT}run {}, agent {}{FAINT:#}", run.id, fully_visible(agent)));
        }
        for row in &run.rows {
            if let JournalEntry::ModelAnswered { items, names, .. } = &row.entry {
                self.remember(&mut state, run.id.as_str(), items, names);
            }
        }
    }

    /// Remembers the calls of an answer.
    fn remember(
        &self,
        state: &mut Shown,
        run: &str,
        items: &[ModelItem],
        names: &BTreeMap<String, String>,
    ) {
        for (id, name, arguments) in items.iter().filter_map(call_of) {
            let name = names.get(name).map_or(name, String::as_str);
            if !self.is_hidden(name) {
                state.calls.insert(key(run, id), shown_call(name, arguments));
            }
        }
    }

    /// Ends a line that is being written.
    pub(super) fn end_line(&self) {
        self.state().end_line();
    }

    pub(super) fn show(&self, event: &AgentEvent<'_>) {
        if self.as_events
            && let Some(value) = event.to_value()
        {
            // A closed output is noticed at the end.
            let _ = screen::out(value.to_string());
        }
        let mut state = self.state();
        // The first event is of the run itself; others may be of its sub-agents.
        let run = event.run().as_str();
        let is_own = *state.run.get_or_insert_with(|| run.to_owned()) == run;
        match event {
            AgentEvent::Recorded { entry, .. } => self.recorded(&mut state, is_own, run, entry),
            AgentEvent::Model { event: ModelEvent::Text { delta }, .. }
                if self.streams && is_own =>
            {
                state.begin(Line::Answer);
                state.text.push_str(delta);
                let _ = screen::out_part(&fully_visible_text(delta));
            }
            AgentEvent::Model { event: ModelEvent::Reasoning { delta }, .. }
                if self.is_live && is_own =>
            {
                state.begin(Line::Reasoning);
                screen::ask(format!("{FAINT}{}{FAINT:#}", fully_visible_text(delta)));
            }
            AgentEvent::Preview { tool, status, .. } if self.is_live => {
                if let Some(tip) = &status.tip {
                    let (tool, tip) = (fully_visible(tool), shortened(tip));
                    state.note(format!("{FAINT}writing a call of {tool}: {tip}{FAINT:#}"));
                }
            }
            AgentEvent::Call { event, .. } if self.is_live => {
                self.reported(&mut state, is_own, run, event);
            }
            AgentEvent::PollWait { tool, wait, .. } => {
                let (tool, wait) = (fully_visible(tool), time(*wait));
                state.note(format!("{FAINT}{tool} is asked again in {wait}{FAINT:#}"));
            }
            AgentEvent::Retry { wait, .. } => {
                state.note(format!("{FAINT}asking the model again in {}{FAINT:#}", time(*wait)));
            }
            _ => {}
        }
    }

    /// Shows what a running call reports.
    fn reported(&self, state: &mut Shown, is_own: bool, run: &str, event: &Event) {
        if let Payload::Output(part) = event.payload()
            && event.final_output()
            && self.streams
            && is_own
        {
            let call = event.call_id().map(ToString::to_string);
            if state.final_call != call {
                // What the model has said before is not the answer.
                state.end_line();
                state.text.clear();
                state.final_call = call;
            }
            state.begin(Line::Answer);
            let part = part.as_text();
            state.text.push_str(&part);
            let _ = screen::out_part(&fully_visible_text(&part));
            return;
        }
        for line in state.output.lines(run, event) {
            state.note(format!("{FAINT}{line}{FAINT:#}"));
        }
    }

    fn is_hidden(&self, tool: &str) -> bool {
        self.tools.registry().snapshot().get(tool).is_some_and(|tool| tool.definition.hidden())
    }

    fn recorded(&self, state: &mut Shown, is_own: bool, run: &str, entry: &JournalEntry) {
        match entry {
            JournalEntry::Started { agent, parent, .. } => {
                let agent = fully_visible(agent);
                let of_task = parent.as_ref().map(|parent| shortened(&parent.task));
                let told =
                    of_task.as_ref().map_or_else(String::new, |task| format!(", task {task}"));
                if let Some(task) = of_task {
                    let is_named = parent.as_ref().is_some_and(|parent| parent.agent.is_some());
                    let name = if is_named { agent.to_string() } else { task };
                    state.sub_agents.insert(run.to_owned(), name);
                }
                state.note(format!("{FAINT}run {run}, agent {agent}{told}{FAINT:#}"));
            }
            JournalEntry::BudgetNotice { limit, .. } => {
                state.note(format!("{WARNING}the limit {limit} is near{WARNING:#}"));
            }
            JournalEntry::ModelRequested { .. } if is_own => state.text.clear(),
            JournalEntry::AnswerRefused { .. } => {
                state.note(format!(
                    "{WARNING}the answer does not match the schema{WARNING:#}; asking again"
                ));
            }
            JournalEntry::Compacted(_) => {
                state.note(format!("{FAINT}the conversation became shorter{FAINT:#}"));
            }
            JournalEntry::ModelLost { reason, shown_chars, .. } => {
                let what = if *shown_chars > 0 { "the answer was lost" } else { "no answer" };
                let reason = fully_visible_text(reason);
                // Some reasons begin with the same words.
                state.note(match reason.strip_prefix(what) {
                    Some(rest) => format!("{WARNING}{what}{WARNING:#}{rest}"),
                    None => format!("{WARNING}{what}{WARNING:#}: {reason}"),
                });
            }
            JournalEntry::ModelAnswered { items, names, .. } => {
                self.remember(state, run, items, names);
                // What it says before calls is no answer.
                let has_calls = items.iter().any(|item| call_of(item).is_some());
                for text in items.iter().filter_map(said).filter(|_| has_calls) {
                    if self.streams && is_own {
                        state.end_line();
                    } else if !self.as_events {
                        let by = state.by(run);
                        state.note(format!("{FAINT}{by}{}{FAINT:#}", fully_visible_text(text)));
                    }
                }
            }
            JournalEntry::CallsStarted { calls } if self.is_live => {
                for call in calls {
                    if let Some(shown) = state.calls.get(&key(run, call.id.as_str())).cloned() {
                        let by = state.by(run);
                        state.note(format!("{FAINT}… {by}{FAINT:#}{shown}"));
                    }
                }
            }
            JournalEntry::CallFinished { result, .. } if !self.is_hidden(result.tool()) => {
                let line = finished(state, run, result);
                state.note(line);
            }
            _ => {}
        }
    }
}

impl Shown {
    /// Whose line it is, if it is not that of the run itself.
    fn by(&self, run: &str) -> String {
        if self.run.as_deref() == Some(run) {
            return String::new();
        }
        let name = self.sub_agents.get(run).map_or("sub-agent", String::as_str);
        format!("{name}: ")
    }

    fn begin(&mut self, line: Line) {
        if self.line != line {
            self.end_line();
            self.line = line;
        }
    }

    fn end_line(&mut self) {
        match self.line {
            Line::Ended => {}
            Line::Answer => drop(screen::out_part("\n")),
            Line::Reasoning => screen::ask("\n"),
        }
        self.line = Line::Ended;
    }

    fn note(&mut self, text: String) {
        self.end_line();
        screen::note(text);
    }
}

fn key(run: &str, call: &str) -> (String, String) {
    (run.to_owned(), call.to_owned())
}

/// A call as lines show it.
fn shown_call(tool: &str, arguments: &str) -> String {
    let tool = fully_visible(tool);
    match arguments {
        "{}" => format!("{STRONG}{tool}{STRONG:#}"),
        _ => format!("{STRONG}{tool}{STRONG:#} {FAINT}{}{FAINT:#}", shortened(arguments)),
    }
}

fn finished(state: &Shown, run: &str, result: &ToolResult) -> String {
    let unknown = || shown_call(result.tool(), "{}");
    let call =
        state.calls.get(&key(run, result.call_id().as_str())).cloned().unwrap_or_else(unknown);
    let (took, by) = (time(result.duration()), state.by(run));
    match result.error() {
        None => format!("✓ {FAINT}{by}{FAINT:#}{call} {FAINT}{took}{FAINT:#}"),
        Some(error) => format!(
            "{ERROR}✗{ERROR:#} {FAINT}{by}{FAINT:#}{call} {FAINT}{took}{FAINT:#} {}: {}",
            error.kind(),
            shortened(error.message())
        ),
    }
}

fn call_of(item: &ModelItem) -> Option<(&str, &str, &str)> {
    match item.view() {
        View::Call(call) => Some((call.id.as_str(), &call.name, &call.arguments)),
        _ => None,
    }
}

fn said(item: &ModelItem) -> Option<&str> {
    match item.view() {
        View::Message { text, .. } if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// A text on one line, as short as fits.
fn shortened(text: &str) -> String {
    screen::shortened(&fully_visible(text), SHOWN).into_owned()
}

/// A duration, rounded: `340 ms`, `2.1 s`.
fn time(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}
