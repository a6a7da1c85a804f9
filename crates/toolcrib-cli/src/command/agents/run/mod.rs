//! `toolcrib run`: an agent works with the tools until it has an answer.

mod attachments;
mod decisions;
mod interrupt;
mod live;
mod progress;
mod yes;

use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use toolcrib::agent::budget::Spent;
use toolcrib::agent::model::ModelClient;
use toolcrib::agent::run::{Outcome, RunState};
use toolcrib::agent::{Agent, RunReport};
use toolcrib::agents::{AgentName, AgentSetupError};
use toolcrib::core::policy::PolicyRule;
use toolcrib::settings::Dollars;
use toolcrib::tool::{Content, fully_visible, fully_visible_text};
use toolcrib::wire::model::{Input, Item, Role};

use self::interrupt::Interrupt;
use self::progress::Progress;
use self::yes::ApprovedCalls;
use super::journals::{self, StoredRun};
use super::scripted;
use crate::options::{JsonOutput, Options, ToolsetChoice};
use crate::screen::{self, ERROR, FAINT, STRONG, WARNING};
use crate::serving::stop::{self, Interrupted};
use crate::startup::{self, Started};
use crate::{Exit, could_not_run, runtime, upstream_wait};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib run 'Which file systems are nearly full?'
  toolcrib run --agent reviewer - < request.txt
  toolcrib run --model openai/gpt-5 --toolset reader 'Summarize today’s log.'
  toolcrib run --resume last                       go on, or decide on calls that wait
  toolcrib run --resume 7f3a 'And the other host?' say more to a run
  toolcrib run --attach chart.png 'What does it show?'
  toolcrib run --yes 'git_*' 'Tidy up.'             approve calls of these tools in advance
  toolcrib run --events 'List the tools.' | jq -c .type

The answer is the only text on standard output; progress is on standard error. If a call needs approval, you are asked
on the terminal, unless --yes approves it. Without a terminal the run waits: decide with `toolcrib approvals`, then resume
it. Ctrl-C pauses the run; a second one within 2 s leaves at once. Either way it can be resumed.

Exit codes: 0 the agent has answered; 1 the run failed; 2 it could not begin; 3 it waits for somebody; 130 interrupted.")]
pub(crate) struct RunOptions {
    /// What the agent is told; - reads standard input
    prompt: Option<String>,
    /// The agent of the config [default: the only one, or `default`]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// A model of a provider instead of an agent, or scripted:FILE, a JSON list of answers. With --agent: in place of the
    /// models of the agent and its sub-agents
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    #[command(flatten)]
    toolset: ToolsetChoice,
    /// Send this file along: a text, a picture, a sound or a PDF; may be repeated
    #[arg(long, value_name = "FILE", requires = "prompt")]
    attach: Vec<PathBuf>,
    /// Approve calls in advance: those of a tool, `*` for any text, or a policy rule's conditions as JSON; may be
    /// repeated. Calls that a policy denies stay denied
    #[arg(long, value_name = "RULE", value_parser = yes::rule)]
    yes: Vec<PolicyRule>,
    /// The most answers of the model, instead of the config's
    #[arg(long, value_name = "N", value_parser = turns)]
    max_turns: Option<NonZeroU32>,
    /// The most US dollars that it may cost, instead of the config's
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_cost: Option<f64>,
    /// Continue a run: its id, a beginning of it, or `last` (the default)
    #[arg(
        long,
        value_name = "ID",
        num_args = 0..=1,
        default_missing_value = "last",
        conflicts_with_all = ["agent", "max_turns", "max_cost"]
    )]
    resume: Option<String>,
    /// Print what happens as JSON lines on standard output
    #[arg(long, conflicts_with = "json")]
    events: bool,
    #[command(flatten)]
    output: JsonOutput,
}

impl RunOptions {
    /// Whether a script continues the run.
    fn is_scripted(&self, run: &StoredRun) -> bool {
        self.model.as_deref().unwrap_or(run.agent()).starts_with(scripted::PREFIX)
    }
}

fn turns(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| "the number of answers is 1 or more".to_owned())
}

fn dollars(text: &str) -> Result<f64, String> {
    let amount = text.trim_start_matches('$').parse::<f64>().map_err(|error| error.to_string())?;
    Dollars::try_from(amount).map(f64::from).map_err(str::to_owned)
}

pub(in crate::command) fn run(options: &Options, own: &RunOptions) -> anyhow::Result<Exit> {
    // Read before the runtime exists: a blocking read of a terminal inside it could not be interrupted.
    let input = input(own)?;
    let started = startup::run(options)?;
    runtime::block_on(async {
        let exit = Box::pin(session(&started, options, own, input)).await;
        let grace = match exit {
            Ok(Exit::Interrupted) => Duration::ZERO,
            _ => stop::GRACE,
        };
        started.crib.shutdown(grace).await;
        exit
    })?
}

/// The prompt with the attached files.
fn input(own: &RunOptions) -> anyhow::Result<Option<Vec<Item>>> {
    let Some(prompt) = prompt(own)? else {
        ensure!(own.attach.is_empty(), "say what to do with the attached files");
        return Ok(None);
    };
    let mut content = vec![Content::Text(prompt)];
    content.extend(attachments::read(&own.attach)?);
    Ok(Some(vec![Item::Input(Input { role: Role::User, content })]))
}

fn prompt(own: &RunOptions) -> anyhow::Result<Option<String>> {
    match own.prompt.as_deref() {
        Some("-") => {
            let text = io::read_to_string(io::stdin()).context("reading standard input")?;
            Ok(Some(text.trim_end().to_owned()).filter(|text| !text.is_empty()))
        }
        Some(text) => Ok(Some(text.to_owned())),
        None => Ok(None),
    }
    .and_then(|prompt| match (&prompt, &own.resume) {
        (None, None) => bail!(
            "say what the agent is to do: `toolcrib run 'PROMPT'`, or `toolcrib run -` for standard input"
        ),
        _ => Ok(prompt),
    })
}

async fn session(
    started: &Started,
    options: &Options,
    own: &RunOptions,
    input: Option<Vec<Item>>,
) -> anyhow::Result<Exit> {
    let crib = &started.crib;
    let stored = match &own.resume {
        Some(named) if input.is_none() && journals::is_no_id(named) => bail!(
            "there is no run `{}`. To say this to the last run: toolcrib run --resume last {}",
            fully_visible(named),
            screen::quoted(named)
        ),
        Some(named) => Some(journals::find(crib, named).await?),
        None => None,
    };
    let progress = Arc::new(Progress::new(own.events, own.output.json, crib.executor().clone()));
    if let Some(stored) = &stored {
        progress.know_all(stored);
    }
    let answered = match &stored {
        Some(run) if own.is_scripted(run) => journals::answers(crib, run).await?,
        _ => 0,
    };
    let agent = agent(started, own, stored.as_ref(), answered, &progress)?;
    if own.max_cost.is_some() && !agent.has_prices() {
        screen::note(format!(
            "{WARNING}--max-cost counts nothing{WARNING:#}: the config has no `prices` of the model"
        ));
    }
    let mut interrupt = Interrupt::default();
    let control = interrupt.control().clone();
    let driven = async {
        upstream_wait::connect(started).await?;
        upstream_wait::absent(crib).iter().for_each(screen::note);
        for tool in ApprovedCalls::unknown(&own.yes, crib.executor()) {
            let tool = fully_visible(&tool);
            screen::note(format!("{WARNING}--yes {tool}{WARNING:#}: no tool has such a name"));
        }
        let report = match (&stored, input) {
            (None, input) => agent.run_with(input.unwrap_or_default(), &control).await?,
            (Some(run), Some(input)) => agent.send(&run.id, input, &control).await?,
            (Some(run), None) => agent.resume_with(&run.id, &control).await?,
        };
        anyhow::Ok(report)
    };
    let report = match Box::pin(interrupt.during(driven)).await {
        Ok(report) => {
            let approved = ApprovedCalls::new(&own.yes, crib.executor().clone())?;
            let tools = crib.executor();
            let decided = async {
                let report = report?;
                let (asks, shown) = (&mut interrupt, &*progress);
                decisions::decide_and_go_on(&agent, report, &approved, asks, shown, tools).await
            };
            Box::pin(decided).await
        }
        Err(interrupted) => Err(interrupted.into()),
    };
    let report = match report {
        Err(error) if error.is::<Interrupted>() => {
            progress.end_line();
            let id = progress.run().or_else(|| stored.map(|run| run.id.to_string()));
            if let Some(id) = id {
                screen::note(format!("interrupted; {}", go_on(started, options, own, &id)));
            }
            return Ok(Exit::Interrupted);
        }
        Err(error) => {
            progress.end_line();
            // A run that has begun can go on.
            let Some(id) = progress.run() else { return Err(error) };
            could_not_run::report(&error, own.events || own.output.json);
            screen::note(go_on(started, options, own, &id));
            return Ok(Exit::Failure);
        }
        Ok(report) => report,
    };
    let go_on = || go_on(started, options, own, report.id().as_str());
    finish(&report, own, &progress, interrupt.is_stopped(), go_on)
}

fn agent(
    started: &Started,
    own: &RunOptions,
    stored: Option<&StoredRun>,
    answered: usize,
    progress: &Arc<Progress>,
) -> anyhow::Result<Agent> {
    let crib = &started.crib;
    let turn = own.toolset.turn_options(crib)?.may_approve(true).client("command line");
    let turn = match stored {
        Some(run) => run.options(crib, turn),
        None => turn,
    };
    let recorded = stored.map(StoredRun::agent);
    let script =
        own.model.as_deref().or(recorded).and_then(|name| name.strip_prefix(scripted::PREFIX));
    // The agent whose models `--model` replaces.
    let entry = match (&own.agent, recorded.and_then(|name| name.parse().ok())) {
        (Some(agent), _) => Some(agent.clone()),
        (None, Some(AgentName::Entry(name))) if !name.starts_with(scripted::PREFIX) => Some(name),
        _ => None,
    };
    let builder = if let (Some(entry), Some(model)) = (entry, &own.model) {
        let model: Arc<dyn ModelClient> = match script {
            Some(path) => Arc::new(scripted::model(path, answered)?),
            None => crib.model_of_provider(&model.parse().map_err(anyhow::Error::msg)?)?,
        };
        crib.agent_with_model(&entry, turn, model).map_err(explained)?
    } else if let Some(path) = script {
        let model = scripted::model(path, answered)?;
        let builder = Agent::builder(crib.executor().clone(), Arc::new(model))
            .name(format!("{}{path}", scripted::PREFIX))
            .turn_options(turn);
        match crib.runs() {
            Some(journal) => builder.journal(Arc::clone(journal)),
            None => builder,
        }
    } else {
        let name = match (&own.agent, &own.model, recorded) {
            (_, Some(model), _) => AgentName::Model(model.parse().map_err(anyhow::Error::msg)?),
            (Some(agent), ..) => AgentName::Entry(agent.clone()),
            (None, None, Some(recorded)) => recorded.parse().map_err(anyhow::Error::msg)?,
            (None, None, None) => crib.default_agent().map_err(explained)?,
        };
        crib.agent(&name, turn).map_err(explained)?
    };
    let shown = Arc::clone(progress);
    let builder = builder.on_event(move |event| shown.show(event)).change_budget(|budget| {
        let budget = match own.max_turns {
            Some(turns) => budget.with_max_turns(turns.get()),
            None => budget,
        };
        match own.max_cost.and_then(|amount| Dollars::try_from(amount).ok()) {
            Some(amount) => budget.with_max_cost(amount.cost()),
            None => budget,
        }
    });
    Ok(builder.build())
}

/// The error with what to write, if the config has no provider.
fn explained(error: AgentSetupError) -> anyhow::Error {
    if error != AgentSetupError::NoProvider {
        return error.into();
    }
    anyhow::anyhow!(
        "{error}. Write one into config.yml, for example:\n\n{}\n\nTo try a run without a provider, use \
         `--model scripted:FILE`, where FILE is a JSON list of answers: [{{\"call\": \"calculator\", \"arguments\": \
         {{\"expression\": \"2 + 2\"}}}}, {{\"text\": \"4\"}}]",
        AgentSetupError::EXAMPLE
    )
}

/// Prints the answer, or why there is none.
fn finish(
    report: &RunReport,
    own: &RunOptions,
    progress: &Progress,
    was_interrupted: bool,
    go_on: impl Fn() -> String,
) -> anyhow::Result<Exit> {
    progress.end_line();
    if own.events {
        let mut value = report.to_value();
        value["type"] = "report".into();
        screen::out(value.to_string())?;
    } else if own.output.json {
        screen::json(&report.to_value())?;
    }
    let exit = match (report.state(), report.outcome()) {
        (RunState::Completed, _) => {
            if !own.events && !own.output.json && !progress.has_shown(report.text()) {
                screen::out(report.text())?;
            }
            Exit::Success
        }
        (_, Some(Outcome::Failed { reason, message, text })) => {
            if let Some(text) = text {
                screen::note(format!("{FAINT}{}{FAINT:#}", fully_visible_text(text)));
            }
            screen::note(format!(
                "{ERROR}failed{ERROR:#} ({reason}): {}",
                fully_visible_text(message)
            ));
            Exit::Failure
        }
        (RunState::RequiresAction, _) => {
            decisions::tell_waiting(report);
            screen::note(go_on());
            if was_interrupted { Exit::Interrupted } else { Exit::Waiting }
        }
        (RunState::WaitingForSubtask | RunState::InProgress, _) => {
            screen::note(format!("not finished; {}", go_on()));
            if was_interrupted { Exit::Interrupted } else { Exit::Waiting }
        }
        (RunState::Paused, _) if was_interrupted => {
            screen::note(format!("paused; {}", go_on()));
            Exit::Interrupted
        }
        (RunState::Paused, _) => {
            let reason = report.run().paused().unwrap_or_default();
            screen::note(format!(
                "{WARNING}paused{WARNING:#}: {}; {}",
                fully_visible_text(reason),
                go_on()
            ));
            Exit::Waiting
        }
        (_, Some(Outcome::Cancelled { reason })) => {
            screen::note(format!("the run was cancelled: {}", fully_visible_text(reason)));
            Exit::Failure
        }
        _ => {
            screen::note("the run has ended");
            Exit::Failure
        }
    };
    let (spent, in_all) = (report.spent(), report.run().spent_in_all());
    let in_all =
        if in_all == *spent { String::new() } else { format!("; in all {}", used(&in_all)) };
    screen::note(format!("{FAINT}run {}: {}{in_all}{FAINT:#}", report.id(), used(spent)));
    Ok(exit)
}

fn used(spent: &Spent) -> String {
    let cost = match spent.cost.nanodollars() {
        0 => String::new(),
        _ => format!(", {}", spent.cost),
    };
    format!(
        "{}, {}, {}{cost}",
        screen::count(spent.turns as usize, "turn"),
        screen::count(spent.calls as usize, "call"),
        screen::count(usize::try_from(spent.usage.total()).unwrap_or(usize::MAX), "token"),
    )
}

/// The command that continues a run with the same settings.
fn go_on(started: &Started, options: &Options, own: &RunOptions, id: &str) -> String {
    if started.config.state.dir.is_none() {
        return "the run ends here, because there is no state folder (`state.dir`)".to_owned();
    }
    let mut words = vec!["toolcrib".to_owned()];
    if let Some(config) = &options.config {
        words.extend(["--config".to_owned(), config.to_string_lossy().into_owned()]);
    }
    for (key, value) in &options.set {
        words.extend(["--set".to_owned(), format!("{key}={value}")]);
    }
    for dir in &options.tools_dir {
        words.extend(["--tools-dir".to_owned(), dir.to_string_lossy().into_owned()]);
    }
    for pair in &options.ctx {
        words.extend(["--ctx".to_owned(), pair.clone()]);
    }
    words.extend(["run".to_owned(), "--resume".to_owned(), id.to_owned()]);
    if let Some(model) = own.model.as_ref().filter(|_| own.agent.is_some() || own.resume.is_some())
    {
        words.extend(["--model".to_owned(), model.clone()]);
    }
    if let Some(toolset) = own.toolset.name() {
        words.extend(["--toolset".to_owned(), toolset.to_owned()]);
    }
    let words: Vec<_> = words.iter().map(|word| screen::quoted(word)).collect();
    format!("go on with: {STRONG}{}{STRONG:#}", words.join(" "))
}
