//! The conversation of a run, read from its journal.

use std::collections::BTreeMap;

use toolcrib_agent::{Agent, AgentError, ClientRequest, JournalEntry, JournalRow};
use toolcrib_core::run::RunId;
use toolcrib_http::{AgentItem, AgentItemId, AgentRunItem};
use toolcrib_wire::model::{Item, ModelItem, Role, View};

/// Rows that are read at a time.
const ROWS: usize = 200;

/// Up to `limit` items of a run after an item.
pub(super) async fn read(
    agent: &Agent,
    run: &RunId,
    after: Option<AgentItemId>,
    limit: usize,
) -> Result<Vec<AgentRunItem>, AgentError> {
    let mut items = Vec::new();
    // The row of that item may have more.
    let mut last = after.map_or(0, |after| after.row.saturating_sub(1));
    while items.len() < limit {
        let rows = agent.rows(run, last, ROWS).await?;
        let Some((seq, _)) = rows.last() else { break };
        last = *seq;
        for (row, JournalRow { at, entry, .. }) in rows {
            let at = at.unix_millis();
            let id = |index| AgentItemId { row, index };
            let said = items_of(entry).into_iter().enumerate();
            let said = said.map(|(index, content)| AgentRunItem { id: id(index), at, content });
            items.extend(said.filter(|item| after.is_none_or(|after| item.id > after)));
        }
    }
    items.truncate(limit);
    Ok(items)
}

/// What a row adds to the conversation.
fn items_of(entry: JournalEntry) -> Vec<AgentItem> {
    match entry {
        JournalEntry::Input { items } | JournalEntry::Steered { items } => {
            items.into_iter().map(item).collect()
        }
        JournalEntry::Requested(request) => {
            let ClientRequest { history, results, input, .. } = *request;
            let results = results.into_iter().map(|result| AgentItem::Result(Box::new(result)));
            results.chain(history.into_iter().chain(input).map(item)).collect()
        }
        JournalEntry::BudgetNotice { item: told, .. }
        | JournalEntry::AnswerRefused { item: told } => vec![item(told)],
        JournalEntry::ModelAnswered { items, names, .. } => {
            items.iter().map(|item| said(item, &names)).collect()
        }
        JournalEntry::CallFinished { result, .. } => vec![AgentItem::Result(result)],
        JournalEntry::Compacted(compacted) => {
            let summary = compacted.summary.map(|summary| match item(summary.item) {
                AgentItem::Message { text, .. } => AgentItem::Summary { text },
                other => other,
            });
            summary.into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn item(item: Item) -> AgentItem {
    match item {
        Item::Input(input) => {
            let parts: Vec<_> = input.content.iter().map(|part| part.as_text()).collect();
            let role = match input.role {
                Role::System => "system",
                _ => "user",
            };
            AgentItem::Message { role, text: parts.join("\n") }
        }
        Item::Model(item) => said(&item, &BTreeMap::new()),
        Item::Result(result) => AgentItem::Result(result),
        _ => AgentItem::Other { kind: "unknown".to_owned() },
    }
}

/// What the model said. `names` has the tools' own names by the provider's names for them.
fn said(item: &ModelItem, names: &BTreeMap<String, String>) -> AgentItem {
    match item.view() {
        View::Message { text, .. } => AgentItem::Message { role: "assistant", text: text.clone() },
        View::Reasoning { text } => AgentItem::Reasoning { text: text.clone() },
        View::Call(call) => AgentItem::Call {
            call_id: call.id.as_str().to_owned(),
            tool: names.get(&call.name).unwrap_or(&call.name).clone(),
            arguments: call.arguments.clone(),
        },
        View::Other { kind } => AgentItem::Other { kind: kind.clone() },
        _ => AgentItem::Other { kind: "unknown".to_owned() },
    }
}
