//! The status that people see while a call runs. The result is for the model.

use serde_json::{Map, Value};

/// The phase of a call, as people see it: `WAIT → DOING → SUCCESS | ERROR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Not started.
    Wait,
    /// Running.
    Doing,
    /// Ended successfully.
    Success,
    /// Failed.
    Error,
}

impl Phase {
    /// The stable name of the phase.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "WAIT",
            Self::Doing => "DOING",
            Self::Success => "SUCCESS",
            Self::Error => "ERROR",
        }
    }

    /// Whether no other phase can follow.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Success | Self::Error)
    }
}

/// One status update. During a call, `params` and `metadata` of all updates are merged, objects recursively; arrays,
/// scalars and `result` are replaced.
///
/// ```
/// use toolcrib_tool::{Phase, StatusUpdate};
///
/// let update = StatusUpdate::doing().with_tip("reading 3 files").with_param("done", 1);
/// assert_eq!(update.phase, Phase::Doing);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StatusUpdate {
    /// The phase.
    pub phase: Phase,
    /// One line for a person.
    pub tip: Option<String>,
    /// What the call works on.
    pub params: Map<String, Value>,
    /// The result for display. The model's result is what the tool returns.
    pub result: Option<Value>,
    /// What went wrong.
    pub error: Option<String>,
    /// Anything else a host wants to show.
    pub metadata: Map<String, Value>,
}

impl StatusUpdate {
    /// An update with only a phase.
    pub fn new(phase: Phase) -> Self {
        Self {
            phase,
            tip: None,
            params: Map::new(),
            result: None,
            error: None,
            metadata: Map::new(),
        }
    }

    /// `WAIT`.
    pub fn wait() -> Self {
        Self::new(Phase::Wait)
    }

    /// `DOING`.
    pub fn doing() -> Self {
        Self::new(Phase::Doing)
    }

    /// `SUCCESS`.
    pub fn success() -> Self {
        Self::new(Phase::Success)
    }

    /// `ERROR`, with the problem.
    pub fn error(error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::new(Phase::Error) }
    }

    /// Sets the line for a person.
    #[must_use]
    pub fn with_tip(mut self, tip: impl Into<String>) -> Self {
        self.tip = Some(tip.into());
        self
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with_param(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.params.insert(key.into(), value.into());
        self
    }

    /// Sets how much is done, and of how much if that is known: the parameters `progress` and `total`, which MCP
    /// clients get as progress. It should increase from one update to the next.
    ///
    /// ```
    /// use toolcrib_tool::StatusUpdate;
    ///
    /// let update = StatusUpdate::doing().with_progress(3, Some(10));
    /// assert_eq!(update.params["total"], 10);
    /// ```
    #[must_use]
    pub fn with_progress(self, done: u32, total: Option<u32>) -> Self {
        let update = self.with_param("progress", done);
        match total {
            Some(total) => update.with_param("total", total),
            None => update,
        }
    }

    /// Sets the result for display.
    #[must_use]
    pub fn with_result(mut self, result: impl Into<Value>) -> Self {
        self.result = Some(result.into());
        self
    }

    /// Adds a metadata entry.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }
}
