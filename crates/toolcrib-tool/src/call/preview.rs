//! Arguments that a model is still writing.

use serde_json::Value;

use crate::CallId;

/// The arguments of a call that a model is still writing: what is there so far, with open texts and brackets closed.
///
/// They are for display only. They have not been checked against the tool's schema, the last text may be cut anywhere,
/// and the call may never be made.
///
/// ```
/// use serde_json::json;
/// use toolcrib_tool::{CallId, PartialArguments};
///
/// let (id, written) = (CallId::new("call_1"), json!({"path": "a.txt", "content": "one\ntw"}));
/// let partial = PartialArguments::new(&id, &written);
/// assert_eq!(partial.text("path"), Some("a.txt"));
/// assert_eq!(partial.lines("content"), 2);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PartialArguments<'a> {
    call_id: &'a CallId,
    written: &'a Value,
}

impl<'a> PartialArguments<'a> {
    /// The arguments of a call as far as they are written.
    pub fn new(call_id: &'a CallId, written: &'a Value) -> Self {
        Self { call_id, written }
    }

    /// The id of the call.
    pub fn call_id(&self) -> &'a CallId {
        self.call_id
    }

    /// Everything that is written.
    pub fn value(&self) -> &'a Value {
        self.written
    }

    /// An argument, if it has begun.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.written.get(name)
    }

    /// A text argument, if it has begun. The one that is being written ends anywhere.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str()
    }

    /// The number of lines of a text argument so far.
    pub fn lines(&self, name: &str) -> usize {
        self.text(name).map_or(0, |text| text.lines().count())
    }
}
