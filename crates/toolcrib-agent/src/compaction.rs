//! Settings of compaction.

use std::fmt;
use std::sync::Arc;

use crate::model::ModelClient;

/// When and how the conversation of a run becomes shorter, so that it fits into the model's context.
///
/// The size is checked before every request. First, outputs and pictures older than two rounds become short: outputs can
/// still be read with the tool `read_output`, if the executor has a store for them and the agent may use the tool. If
/// that is not enough, a model writes a summary of what is older than two rounds; instructions and the user's newest
/// messages stay. The journal keeps everything.
#[derive(Clone)]
#[non_exhaustive]
pub struct Compaction {
    /// The share of the model's [context](ModelClient::context_window) from which on a conversation becomes shorter.
    /// Default 0.8.
    pub at: f64,
    /// The newest messages of the user that a summary does not replace, in tokens. Default 20,000. The last one always
    /// stays.
    pub kept_input_tokens: u64,
    /// The model that writes summaries. Default: the one that the run uses.
    pub model: Option<Arc<dyn ModelClient>>,
}

impl Default for Compaction {
    fn default() -> Self {
        Self { at: 0.8, kept_input_tokens: 20_000, model: None }
    }
}

impl Compaction {
    /// Begins at another share of the context, between 0.1 and 1.
    #[must_use]
    pub fn at(mut self, share: f64) -> Self {
        self.at = share;
        self
    }

    /// Keeps more or less of what the user said.
    #[must_use]
    pub fn kept_input_tokens(mut self, tokens: u64) -> Self {
        self.kept_input_tokens = tokens;
        self
    }

    /// Lets another model write summaries.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn ModelClient>) -> Self {
        self.model = Some(model);
        self
    }

    /// The tokens from which on a conversation becomes shorter.
    pub(crate) fn limit(&self, window: u64) -> u64 {
        let share = if self.at.is_finite() { self.at.clamp(0.1, 1.0) } else { 0.8 };
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate, and the product is at least 0"
        )]
        let limit = (window as f64 * share) as u64;
        limit
    }
}

impl fmt::Debug for Compaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compaction")
            .field("at", &self.at)
            .field("kept_input_tokens", &self.kept_input_tokens)
            .field("model", &self.model.as_ref().map(|model| model.head().model))
            .finish()
    }
}
