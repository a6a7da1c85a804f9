//! Parameters that the host fills in.

/// A parameter whose value comes from the host's context and never from a model.
///
/// The parameter is not in the schema that models see; a value that a model sends for it is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    parameter: String,
    context_key: String,
    required: bool,
}

impl Injection {
    /// Fills `parameter` from the context value `context_key`. Required unless made [`optional`](Self::optional).
    pub fn new(parameter: impl Into<String>, context_key: impl Into<String>) -> Self {
        Self { parameter: parameter.into(), context_key: context_key.into(), required: true }
    }

    /// Lets the call continue if the context has no such value.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    /// The parameter's name.
    pub fn parameter(&self) -> &str {
        &self.parameter
    }

    /// The key in the host's context.
    pub fn context_key(&self) -> &str {
        &self.context_key
    }

    /// The opposite of [`optional`](Self::optional).
    pub(crate) fn require(&mut self) {
        self.required = true;
    }

    /// Whether a missing value fails the call (`missing_context`).
    pub fn required(&self) -> bool {
        self.required
    }
}
