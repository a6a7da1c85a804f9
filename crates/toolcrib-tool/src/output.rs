//! What a successful tool hands back.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{Content, canonical_json};

/// The note in an output that was cut to its budget: the handle under which the host keeps the whole.
pub const KEPT_OUTPUT: &str = "kept_output";

/// The note by which an output says that the time was up.
const TIMED_OUT: &str = "timed_out";

/// The output of a tool: parts for the model, data for programs. Its JSON keeps all of it.
///
/// ```
/// use serde_json::json;
/// use toolcrib_tool::ToolOutput;
///
/// let plain = ToolOutput::from("done");
/// assert_eq!(plain.text(), "done");
///
/// // Data without text reads as its own JSON.
/// let data = ToolOutput::from(json!({"free": 12}));
/// assert_eq!(data.text(), r#"{"free":12}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolOutput {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    content: Vec<Content>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    data: Option<Value>,
    /// Behind a pointer, because few outputs have notes and each is handed from hand to hand. Never
    /// empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meta: Option<Box<Map<String, Value>>>,
}

impl ToolOutput {
    /// An output without parts and without data.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a part.
    #[must_use]
    pub fn with_content(mut self, part: impl Into<Content>) -> Self {
        if self.content.is_empty() {
            // Most outputs have one part.
            self.content.reserve_exact(1);
        }
        self.content.push(part.into());
        self
    }

    /// Sets the structured data.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Value>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Adds a note for programs that is neither content nor data, for example how the output
    /// was obtained.
    #[must_use]
    pub fn with_meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Says that the time was up, the tool's own or the call's, and that this is what there was by
    /// then: a success that is counted as a timeout and does not pause the tool. Handed over after
    /// the call's deadline, within the tool's [`wind_down`](crate::Tool::wind_down), it stays one.
    ///
    /// ```
    /// use toolcrib_tool::ToolOutput;
    ///
    /// let output = ToolOutput::from("the first 20 lines").with_timed_out();
    /// assert!(output.timed_out());
    /// ```
    #[must_use]
    pub fn with_timed_out(self) -> Self {
        self.with_meta(TIMED_OUT, true)
    }

    /// Whether it is what there was when the time was up.
    pub fn timed_out(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.get(TIMED_OUT) == Some(&Value::Bool(true)))
    }

    /// Replaces the parts, keeping data and notes. The executor uses this to fit a budget.
    #[must_use]
    pub fn replace_content(mut self, content: Vec<Content>) -> Self {
        self.content = content;
        self
    }

    /// Whether there is neither a part nor data: no output at all. A text part that is empty is
    /// output.
    pub fn is_empty(&self) -> bool {
        self.content.is_empty() && self.data.is_none()
    }

    /// The parts, in order.
    pub fn content(&self) -> &[Content] {
        &self.content
    }

    /// The structured data, absent when there is none.
    pub fn data(&self) -> Option<&Value> {
        self.data.as_ref()
    }

    /// The notes.
    pub fn meta(&self) -> &Map<String, Value> {
        static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

        self.meta.as_deref().unwrap_or_else(|| &NOTHING)
    }

    /// The output as one text: the parts joined by newlines, or, without parts, the data as JSON.
    pub fn text(&self) -> Cow<'_, str> {
        match (self.content.as_slice(), &self.data) {
            ([], None) => Cow::Borrowed(""),
            ([], Some(data)) => Cow::Owned(canonical_json(data)),
            ([part], _) => part.as_text(),
            (parts, _) => {
                Cow::Owned(parts.iter().map(Content::as_text).collect::<Vec<_>>().join("\n"))
            }
        }
    }
}

/// `null` is data too.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::new().with_content(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::new().with_content(text)
    }
}

impl From<Value> for ToolOutput {
    fn from(data: Value) -> Self {
        Self::new().with_data(data)
    }
}

impl From<Content> for ToolOutput {
    fn from(part: Content) -> Self {
        Self::new().with_content(part)
    }
}
