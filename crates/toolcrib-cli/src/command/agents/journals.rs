//! Finds runs in the journal.

use std::sync::Arc;

use anyhow::{Context, bail};
use toolcrib::agent::model::ScriptedModel;
use toolcrib::agent::run::AgentRun;
use toolcrib::agent::{Agent, AgentError, JournalEntry, JournalRow};
use toolcrib::core::run::{RunCursor, RunId};
use toolcrib::core::suspension::StoreError;
use toolcrib::tool::fully_visible;
use toolcrib::wire::model::{Item, Role};
use toolcrib::{Toolcrib, TurnOptions};

/// The runs or rows that are read at a time.
const PAGE: usize = 256;

/// A run with its journal.
pub(super) struct StoredRun {
    pub(super) id: RunId,
    pub(super) rows: Vec<JournalRow>,
    /// Whose it is.
    owner: RunOwner,
}

/// Whose runs the command line knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunOwner {
    /// Its own, and the operator's.
    Own,
    /// Those of a server's clients without a token.
    Anyone,
}

impl RunOwner {
    const ALL: [Self; 2] = [Self::Own, Self::Anyone];

    /// Turn options on whose behalf these runs are.
    fn options(self, crib: &Toolcrib, options: TurnOptions) -> TurnOptions {
        match self {
            Self::Own => options,
            Self::Anyone => toolcrib::http::of_anyone(options, crib.executor()),
        }
    }

    /// An agent that asks no model, to read and cancel runs.
    fn reader(self, crib: &Toolcrib) -> Agent {
        let options = self.options(crib, crib.turn_options().client("command line"));
        let builder = Agent::builder(crib.executor().clone(), Arc::new(ScriptedModel::new([])))
            .turn_options(options);
        match crib.runs() {
            Some(journal) => builder.journal(Arc::clone(journal)).build(),
            None => builder.build(),
        }
    }
}

impl StoredRun {
    /// An agent that asks no model, to cancel it.
    pub(super) fn reader(&self, crib: &Toolcrib) -> Agent {
        self.owner.reader(crib)
    }

    /// Turn options on whose behalf it goes on.
    pub(super) fn options(&self, crib: &Toolcrib, options: TurnOptions) -> TurnOptions {
        self.owner.options(crib, options)
    }

    /// The state at its end.
    pub(super) fn state(&self) -> anyhow::Result<AgentRun> {
        let folded = AgentRun::fold(self.rows.iter().cloned());
        folded.with_context(|| format!("the journal of the run {} cannot be read", self.id))
    }

    /// The name of its agent, as the journal records it.
    pub(super) fn agent(&self) -> &str {
        match self.rows.first().map(|row| &row.entry) {
            Some(JournalEntry::Started { agent, .. }) => agent,
            _ => "",
        }
    }

    /// The run that started it.
    fn parent(&self) -> Option<&RunId> {
        match self.rows.first().map(|row| &row.entry) {
            Some(JournalEntry::Started { parent: Some(parent), .. }) => Some(&parent.run),
            _ => None,
        }
    }

    /// What it was told by its user, from the first input on.
    pub(super) fn inputs(&self) -> Vec<String> {
        let inputs = self.rows.iter().filter_map(|row| match &row.entry {
            JournalEntry::Input { items } | JournalEntry::Steered { items } => Some(items),
            JournalEntry::Requested(request) => Some(&request.input),
            _ => None,
        });
        let texts = inputs.flatten().filter_map(|item| match item {
            Item::Input(input) if input.role == Role::User => {
                Some(input.content.iter().map(|part| part.as_text()).collect::<String>())
            }
            _ => None,
        });
        texts.collect()
    }

    /// How many times its models have answered.
    fn answers(&self) -> usize {
        let is_answer = |row: &&JournalRow| matches!(row.entry, JournalEntry::ModelAnswered { .. });
        self.rows.iter().filter(is_answer).count()
    }
}

/// The runs that the command line knows, oldest first, without those of sub-agents.
pub(super) async fn all(crib: &Toolcrib) -> anyhow::Result<Vec<RunCursor>> {
    listed(crib, false).await
}

/// The same with the runs of sub-agents.
pub(super) async fn all_with_sub_agents(crib: &Toolcrib) -> anyhow::Result<Vec<RunCursor>> {
    listed(crib, true).await
}

async fn listed(crib: &Toolcrib, with_sub_agents: bool) -> anyhow::Result<Vec<RunCursor>> {
    let mut all: Vec<RunCursor> = Vec::new();
    for owner in RunOwner::ALL {
        let reader = owner.reader(crib);
        let mut runs: Vec<RunCursor> = Vec::new();
        loop {
            let page = if with_sub_agents {
                reader.all_runs(runs.last(), PAGE).await?
            } else {
                reader.runs(runs.last(), PAGE).await?
            };
            let is_last = page.len() < PAGE;
            runs.extend(page);
            if is_last {
                break;
            }
        }
        all.extend(runs);
    }
    all.sort();
    // If the host states a user, that is whose runs all of them are.
    all.dedup();
    Ok(all)
}

/// Whether a text cannot be the id of a run, or a beginning of one.
pub(super) fn is_no_id(named: &str) -> bool {
    named != "last" && !named.chars().all(|c| c.is_ascii_hexdigit())
}

/// The run with this id, a unique beginning of it, or `last`.
pub(super) async fn find(crib: &Toolcrib, named: &str) -> anyhow::Result<StoredRun> {
    let shown = fully_visible(named);
    let id = if let Ok(id) = named.parse() {
        id
    } else {
        let runs = listed(crib, named != "last").await?;
        let mut fits = runs.iter().filter(|run| run.id().as_str().starts_with(named));
        match (named, fits.next(), fits.next()) {
            ("last", ..) => match last(crib, &runs).await? {
                Some(last) => last,
                None => bail!("there is no run yet"),
            },
            (_, Some(only), None) => only.id().clone(),
            (_, None, _) => bail!("there is no run `{shown}`: `toolcrib runs list` shows the runs"),
            (_, Some(_), Some(_)) => {
                bail!("several runs begin with `{shown}`: give more of the id")
            }
        }
    };
    match read(crib, &id).await? {
        Some(run) => Ok(run),
        None => bail!("there is no run `{shown}`: `toolcrib runs list` shows the runs"),
    }
}

/// The last run that the command line itself began, rather than a client of a server.
async fn last(crib: &Toolcrib, runs: &[RunCursor]) -> anyhow::Result<Option<RunId>> {
    let reader = RunOwner::Own.reader(crib);
    for run in runs.iter().rev() {
        let first = match reader.rows(run.id(), 0, 1).await {
            Err(AgentError::Unknown) => continue,
            first => first?,
        };
        let begun = first.first().map(|(_, row)| &row.entry);
        if matches!(begun, Some(JournalEntry::Started { for_client: false, .. })) {
            return Ok(Some(run.id().clone()));
        }
    }
    Ok(None)
}

/// How many times the models of a run and of its sub-agents have answered.
pub(super) async fn answers(crib: &Toolcrib, run: &StoredRun) -> anyhow::Result<usize> {
    let (mut count, mut family) = (run.answers(), vec![run.id.clone()]);
    // Each begins after the run that started it.
    for cursor in all_with_sub_agents(crib).await? {
        let Some(other) = read(crib, cursor.id()).await? else { continue };
        if other.parent().is_some_and(|parent| family.contains(parent)) {
            count += other.answers();
            family.push(other.id);
        }
    }
    Ok(count)
}

/// A run that the command line knows; those of others do not exist for it.
pub(super) async fn read(crib: &Toolcrib, id: &RunId) -> anyhow::Result<Option<StoredRun>> {
    for owner in RunOwner::ALL {
        if let Some(rows) = read_rows(&owner.reader(crib), id).await? {
            return Ok(Some(StoredRun { id: id.clone(), rows, owner }));
        }
    }
    Ok(None)
}

async fn read_rows(reader: &Agent, id: &RunId) -> anyhow::Result<Option<Vec<JournalRow>>> {
    let mut rows: Vec<JournalRow> = Vec::new();
    loop {
        match reader.rows(id, rows.len() as u64, PAGE).await {
            Ok(page) if page.is_empty() => return Ok(Some(rows)),
            Ok(page) => rows.extend(page.into_iter().map(|(_, row)| row)),
            Err(AgentError::Unknown | AgentError::Store(StoreError::Expired)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}
