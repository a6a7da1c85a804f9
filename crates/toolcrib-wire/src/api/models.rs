//! The list of models.

use serde_json::{Value, json};

/// A model that clients can ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEntry {
    /// Its name in requests: that of an agent, or `provider/model`.
    pub id: String,
    /// When it was created, in Unix seconds; 0 if nobody knows.
    pub created: u64,
    /// Who provides it.
    pub owned_by: String,
}

impl ModelEntry {
    /// The entry as JSON.
    pub fn to_value(&self) -> Value {
        json!({
            "id": self.id,
            "object": "model",
            "created": self.created,
            "owned_by": self.owned_by,
        })
    }
}

/// The answer to `GET /v1/models`.
///
/// ```
/// use toolcrib_wire::api::{ModelEntry, model_list};
///
/// let entry = ModelEntry { id: "coder".to_owned(), created: 0, owned_by: "toolcrib".to_owned() };
/// let list = model_list([entry]);
/// assert_eq!(list["object"], "list");
/// assert_eq!(list["data"][0]["id"], "coder");
/// ```
pub fn model_list(entries: impl IntoIterator<Item = ModelEntry>) -> Value {
    let data: Vec<Value> = entries.into_iter().map(|entry| entry.to_value()).collect();
    json!({"object": "list", "data": data})
}
