//! Rows of agents' runs as steps of journals.

use serde_json::Value;
use toolcrib_core::run::{Journal, JournalEntry as StoredEntry, RunId, RunStep, Seq};
use toolcrib_core::suspension::StoreError;

use crate::run::{AgentRun, InvalidRow};
use crate::{JournalEntry, JournalRow};

/// Rows that are read at a time.
const PAGE: usize = 256;

/// The entries of a journal that store these rows, which have to be a run from its beginning.
pub fn entries_of(rows: &[JournalRow]) -> Result<Vec<StoredEntry>, InvalidRow> {
    let mut run: Option<AgentRun> = None;
    let mut entries = Vec::with_capacity(rows.len());
    for (row, number) in rows.iter().zip(1..) {
        let unwritable = |error: serde_json::Error| InvalidRow::new(number, error.to_string());
        let body = serde_json::to_value(row).map_err(unwritable)?;
        entries.push(entry_of(run.as_ref(), row, body));
        match &mut run {
            None => run = Some(AgentRun::begin(row.clone())?),
            Some(run) => run.apply(row.clone())?,
        }
    }
    Ok(entries)
}

/// The entry that stores the next row of a run; `run` is what the rows before it add up to, and `body` its JSON.
pub(crate) fn entry_of(run: Option<&AgentRun>, row: &JournalRow, body: Value) -> StoredEntry {
    let step = RunStep::new(body);
    let number = |id: &str| run.and_then(|run| run.call_number(id));
    StoredEntry::Step(match &row.entry {
        JournalEntry::Started { identity, .. } => step.beginning(identity, row.at),
        JournalEntry::CallSuspended { suspension } => match number(suspension.call_id()) {
            Some(call) => step.waiting(call, suspension),
            None => step,
        },
        JournalEntry::CallFinished { result, .. } => match number(result.call_id().as_str()) {
            Some(call) => step.answering(call),
            None => step,
        },
        // A call that waited runs again.
        JournalEntry::CallsStarted { calls } => match calls.as_slice() {
            [only] if run.is_some_and(|run| run.repeatable_wait(only.id.as_str()).is_some()) => {
                number(only.id.as_str()).map_or(step.clone(), |call| step.answering(call))
            }
            _ => step,
        },
        // A client need not come back.
        JournalEntry::Finished { .. } | JournalEntry::CallsHandedOver { .. } => step.ending(),
        // A run at rest stays at rest.
        JournalEntry::RequestRemoved { .. } if run.is_some_and(AgentRun::is_at_rest) => {
            step.ending()
        }
        _ => step,
    })
}

/// Up to `limit` rows of a run after row number `after`, in order, at least one if there is any; `None` if there is no
/// such run, or if it is not an agent's. The caller must check the identity that the first row names.
pub async fn read(
    journal: &dyn Journal,
    run: &RunId,
    after: Seq,
    limit: usize,
) -> Result<Option<Vec<(Seq, JournalRow)>>, StoreError> {
    let Some(page) = journal.read(run, after, limit).await? else { return Ok(None) };
    let mut rows = Vec::with_capacity(page.entries.len());
    for (seq, entry) in page.entries {
        let StoredEntry::Step(step) = entry else { return Ok(None) };
        let row = serde_json::from_value(step.into_body());
        rows.push((seq, row.map_err(|error| corrupt(run, format!("row {seq}: {error}")))?));
    }
    if rows.is_empty() && after < page.last {
        return Err(corrupt(run, format!("row {} is missing", after + 1)));
    }
    Ok(Some(rows))
}

/// All rows of a run, with the same conditions.
pub(crate) async fn read_all(
    journal: &dyn Journal,
    run: &RunId,
) -> Result<Option<Vec<JournalRow>>, StoreError> {
    let mut rows = Vec::new();
    loop {
        let Some(page) = read(journal, run, rows.len() as Seq, PAGE).await? else {
            return Ok(None);
        };
        if page.is_empty() {
            return Ok(Some(rows));
        }
        rows.extend(page.into_iter().map(|(_, row)| row));
    }
}

fn corrupt(run: &RunId, problem: String) -> StoreError {
    StoreError::Corrupt { place: format!("the journal of the run {run}"), problem }
}
