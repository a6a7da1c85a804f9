//! Other answers of the Responses API: lists of items, compactions, counts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolcrib_tool::Content;

use super::resource::usage_value;
use crate::api::ApiError;
use crate::model::{Input, Role, Usage};

/// Which part of a list of items a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemPage {
    /// The id of the item before the first one.
    pub after: Option<String>,
    /// The most items (1 to 100, default 20).
    pub limit: usize,
    /// Whether the oldest come first (default false).
    pub is_ascending: bool,
}

impl Default for ItemPage {
    fn default() -> Self {
        Self { after: None, limit: 20, is_ascending: false }
    }
}

impl ItemPage {
    /// Reads the query of `GET /v1/responses/{id}/input_items`, without `include`.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolcrib_wire::responses::ItemPage;
    ///
    /// let page = ItemPage::read([("limit", "2"), ("order", "asc")])?;
    /// let items = [json!({"id": "msg_1"}), json!({"id": "msg_2"}), json!({"id": "msg_3"})];
    /// let list = page.list(&items)?;
    /// assert_eq!(list["last_id"], "msg_2");
    /// assert_eq!(list["has_more"], true);
    /// # Ok::<(), toolcrib_wire::api::ApiError>(())
    /// ```
    pub fn read<'a>(query: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, ApiError> {
        let mut page = Self::default();
        for (key, value) in query {
            match key {
                "after" if value.is_empty() => page.after = None,
                "after" => page.after = Some(value.to_owned()),
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=100).contains(limit));
                    page.limit = limit.ok_or_else(|| {
                        wrong(key, "`limit` must be a whole number from 1 to 100")
                    })?;
                }
                "order" => {
                    page.is_ascending = match value {
                        "asc" => true,
                        "desc" => false,
                        _ => return Err(wrong(key, "`order` must be `asc` or `desc`")),
                    };
                }
                _ => {
                    let problem = format!("there is no parameter `{key}`; remove it");
                    return Err(wrong(key, &problem).with_code("unknown_parameter"));
                }
            }
        }
        Ok(page)
    }

    /// This part of the items, which are given oldest first.
    pub fn list(&self, items: &[Value]) -> Result<Value, ApiError> {
        let ordered: Vec<&Value> =
            if self.is_ascending { items.iter().collect() } else { items.iter().rev().collect() };
        let start = match &self.after {
            None => 0,
            Some(after) => {
                let found = ordered.iter().position(|item| item["id"] == after.as_str());
                found.ok_or_else(|| wrong("after", &format!("there is no item {after:?}")))? + 1
            }
        };
        let rest = &ordered[start..];
        let shown = &rest[..rest.len().min(self.limit)];
        Ok(json!({
            "object": "list",
            "data": shown,
            "first_id": shown.first().map(|item| &item["id"]),
            "last_id": shown.last().map(|item| &item["id"]),
            "has_more": rest.len() > shown.len(),
        }))
    }
}

fn wrong(param: &str, message: &str) -> ApiError {
    ApiError::invalid(message).with_code("invalid_value").with_param(param)
}

/// The answer to `POST /v1/responses/compact`.
pub fn compaction(id: &str, created_at: u64, output: &[Value], usage: &Usage) -> Value {
    json!({
        "id": id,
        "object": "response.compaction",
        "created_at": created_at,
        "output": output,
        "usage": usage_value(usage),
    })
}

/// The item of a conversation that was made shorter.
pub fn compaction_item(id: &str, encrypted_content: &str) -> Value {
    json!({"id": id, "type": "compaction", "encrypted_content": encrypted_content})
}

/// A message to the model, as an item of an input.
pub fn input_message(id: &str, input: &Input) -> Value {
    let part = |part: &Content| match part {
        Content::Image { data, mime_type } => {
            let url = format!("data:{mime_type};base64,{}", STANDARD.encode(data));
            json!({"type": "input_image", "image_url": url, "detail": "auto"})
        }
        part => json!({"type": "input_text", "text": part.as_text()}),
    };
    let role = match input.role {
        Role::System => "system",
        _ => "user",
    };
    let content: Vec<Value> = input.content.iter().map(part).collect();
    json!({"id": id, "type": "message", "role": role, "status": "completed", "content": content})
}

/// The answer to `POST /v1/responses/input_tokens`.
pub fn input_tokens(count: u64) -> Value {
    json!({"object": "response.input_tokens", "input_tokens": count})
}

/// The answer to `DELETE /v1/responses/{id}`.
pub fn deleted(id: &str) -> Value {
    json!({"id": id, "object": "response", "deleted": true})
}
