//! The conversation of an agent's run, as items.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolcrib_core::run::RunId;

use super::agents;
use crate::api::problem::Problem;
use crate::api::query::Query;
use crate::api::result::CallResult;
use crate::api::runs::unknown;
use crate::api::{Api, json};
use crate::auth::client::Client;
use crate::{AgentItem, AgentItemId, AgentRunItem};

/// The default number of items on a page.
const ITEMS: usize = 100;
/// The maximum number of items on a page.
const ITEMS_MAX: usize = 1_000;

/// A part of a run's conversation, oldest first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ItemList {
    /// The items. What a compaction left out for the model is among them.
    #[schemars(with = "Vec<RunItem>")]
    items: Vec<Value>,
    /// The id of the last item, to pass as `after`. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// An item of a conversation.
#[derive(Serialize, JsonSchema)]
struct RunItem {
    /// Its id.
    id: String,
    /// When it was stored, in milliseconds since 1970.
    at: u64,
    #[serde(flatten)]
    content: ItemContent,
}

/// What an item says. Secrets are masked.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ItemContent {
    /// Somebody said something.
    Message {
        /// `user`, `system`, or `assistant` for the model.
        role: &'static str,
        /// The text. Pictures, sounds and files are named in it.
        text: String,
    },
    /// The model's reasoning, as far as its provider shows it.
    Reasoning {
        /// The text.
        text: String,
    },
    /// The model calls a tool.
    Call {
        /// The model's id of the call.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// The arguments, as the model wrote them: JSON text, unless the model made a mistake.
        arguments: String,
    },
    /// The answer to a call.
    Result(Box<CallResult>),
    /// What the model reads in place of an older part of the conversation.
    Summary {
        /// The text.
        text: String,
    },
    /// Something that only the model's provider knows.
    Other {
        /// The provider's word for it.
        kind: String,
    },
}

impl From<AgentRunItem> for RunItem {
    fn from(item: AgentRunItem) -> Self {
        let content = match item.content {
            AgentItem::Message { role, text } => ItemContent::Message { role, text },
            AgentItem::Reasoning { text } => ItemContent::Reasoning { text },
            AgentItem::Call { call_id, tool, arguments } => {
                ItemContent::Call { call_id, tool, arguments }
            }
            AgentItem::Result(result) => ItemContent::Result(Box::new(CallResult::from(&*result))),
            AgentItem::Summary { text } => ItemContent::Summary { text },
            AgentItem::Other { kind } => ItemContent::Other { kind },
        };
        Self { id: item.id.to_string(), at: item.at, content }
    }
}

fn item_id(text: &str) -> Result<AgentItemId, Problem> {
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = text.split_once('-');
    let parts = parts.filter(|(row, index)| is_number(row) && is_number(index));
    let id = parts.and_then(|(row, index)| {
        Some(AgentItemId { row: row.parse().ok()?, index: index.parse().ok()? })
    });
    id.ok_or_else(|| {
        Problem::unprocessable("`after` in the query has to be the `next` of the previous page")
    })
}

pub(crate) async fn items(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let mut query = Query::of(&uri)?;
    let after = query.text("after").map(|after| item_id(&after)).transpose()?;
    let limit = query.count("limit", ITEMS, ITEMS_MAX)?;
    query.finish()?;
    let id: RunId = id.parse().map_err(|_| unknown())?;
    if api.backend().agents().is_none() {
        return Err(unknown());
    }
    let found = agents(&api)?.items(client.turn_options(), id, after, limit + 1).await?;
    let is_last = found.len() <= limit;
    let (mut items, mut next) = (Vec::with_capacity(limit), None);
    let mask = api.backend().executor().mask();
    for item in found.into_iter().take(limit) {
        next = (!is_last).then(|| item.id.to_string());
        let item = serde_json::to_value(RunItem::from(item));
        let item =
            item.map_err(|error| Problem::internal("an item could not be written", &error))?;
        // A value may have become a secret since it was stored.
        items.push(mask.value(item));
    }
    Ok(json(StatusCode::OK, &ItemList { items, next }))
}
