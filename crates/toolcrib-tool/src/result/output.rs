//! The output of a successful tool.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Content, Data};

/// The note in an output that was cut to its budget: the handle under which the host stores the complete output.
pub const KEPT_OUTPUT: &str = "kept_output";

/// The note with the arguments with which a call ran after its approver had changed them. Secrets and sensitive values are
/// masked.
pub const CHANGED_ARGUMENTS: &str = "changed_arguments";

/// The note that marks an output as incomplete because the time was up.
const TIMED_OUT: &str = "timed_out";

/// The output of a tool: parts for the model, data for programs. Its JSON contains everything.
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
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "output_json::Read")]
pub struct ToolOutput {
    content: Vec<Content>,
    /// Boxed, because outputs are moved often.
    data: Option<Box<Data>>,
    /// Boxed as well; few outputs have notes. Never empty.
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
    pub fn with_data(self, data: impl Into<Value>) -> Self {
        self.with_exact_data(data.into().into())
    }

    /// Sets structured data parsed from JSON text, with its exact numbers.
    #[must_use]
    pub fn with_exact_data(mut self, data: Data) -> Self {
        self.data = Some(Box::new(data));
        self
    }

    /// Adds a note for programs that is neither content nor data, for example how the output was obtained.
    #[must_use]
    pub fn with_meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Marks the output as incomplete because the time limit of the tool or of the call was reached. The call succeeds,
    /// counts as a timeout, and does not pause the tool. This also holds if the output is returned after the deadline,
    /// within the tool's [`wind_down`](crate::Tool::wind_down).
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

    /// Whether the output is incomplete because the time was up.
    pub fn timed_out(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.get(TIMED_OUT) == Some(&Value::Bool(true)))
    }

    /// Replaces the parts, keeping data and notes. The executor uses this to fit a budget.
    #[must_use]
    pub fn replace_content(mut self, content: Vec<Content>) -> Self {
        self.content = content;
        self
    }

    /// Whether there is neither a part nor data. An empty text part counts as output.
    pub fn is_empty(&self) -> bool {
        self.content.is_empty() && self.data.is_none()
    }

    /// The parts, in order.
    pub fn content(&self) -> &[Content] {
        &self.content
    }

    /// The structured data, if there is any. Numbers that a [`Value`] cannot hold are rounded ([`Data::value`]);
    /// [`exact_data`](Self::exact_data) has them as written.
    pub fn data(&self) -> Option<&Value> {
        self.data.as_deref().map(Data::value)
    }

    /// The structured data with every number as written.
    pub fn exact_data(&self) -> Option<&Data> {
        self.data.as_deref()
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
            ([], Some(data)) => Cow::Owned(data.to_json()),
            ([part], _) => part.as_text(),
            (parts, _) => {
                Cow::Owned(parts.iter().map(Content::as_text).collect::<Vec<_>>().join("\n"))
            }
        }
    }
}

/// An output's JSON: `{content?, data? | data_text?, meta?}`. Data with numbers that a value cannot hold is stored as
/// text, so that it survives every format and every type on the way.
mod output_json {
    use serde::ser::{SerializeStruct as _, Serializer};
    use serde::{Deserialize, Deserializer, Serialize};
    use serde_json::{Map, Value};

    use super::ToolOutput;
    use crate::{Content, Data};

    impl Serialize for ToolOutput {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let Self { content, data, meta } = self;
            let members = usize::from(!content.is_empty())
                + usize::from(data.is_some())
                + usize::from(meta.is_some());
            let mut output = serializer.serialize_struct("ToolOutput", members)?;
            if !content.is_empty() {
                output.serialize_field("content", content)?;
            }
            match data.as_deref() {
                Some(data) if data.is_rounded() => {
                    output.serialize_field("data_text", &data.to_json())?;
                }
                Some(data) => output.serialize_field("data", data.value())?,
                None => {}
            }
            if let Some(meta) = meta {
                output.serialize_field("meta", meta)?;
            }
            output.end()
        }
    }

    #[derive(Deserialize)]
    #[serde(rename = "ToolOutput", deny_unknown_fields)]
    pub(super) struct Read {
        #[serde(default)]
        content: Vec<Content>,
        #[serde(default, deserialize_with = "present")]
        data: Option<Value>,
        data_text: Option<String>,
        meta: Option<Box<Map<String, Value>>>,
    }

    /// `null` is data, too.
    fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(from).map(Some)
    }

    impl TryFrom<Read> for ToolOutput {
        type Error = String;

        fn try_from(read: Read) -> Result<Self, String> {
            let Read { content, data, data_text, meta } = read;
            let data = match (data, data_text) {
                (Some(_), Some(_)) => return Err("`data` and `data_text` are both there".into()),
                (Some(value), None) => Some(Data::from(value)),
                (None, Some(text)) => {
                    Some(Data::from_json(&text).map_err(|error| format!("`data_text`: {error}"))?)
                }
                (None, None) => None,
            };
            Ok(Self { content, data: data.map(Box::new), meta })
        }
    }
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

impl From<Data> for ToolOutput {
    fn from(data: Data) -> Self {
        Self::new().with_exact_data(data)
    }
}

impl From<Content> for ToolOutput {
    fn from(part: Content) -> Self {
        Self::new().with_content(part)
    }
}
