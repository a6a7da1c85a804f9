//! The body of `POST /v1/responses/compact`.

use super::input::{Inputs, submissions, unanswered};
use super::input_item::{InputItem, Submission};
use super::options::ModelOptions;
use super::tools::RequestTool;
use crate::api::ApiError;
use crate::api::fields::{flag, id, members, missing, parsed, text, unknown};

/// A request to make a conversation shorter.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CompactRequest {
    /// The model or agent.
    pub model: String,
    /// The conversation, oldest first.
    pub input: Vec<InputItem>,
    /// The instructions for the summary.
    pub instructions: Option<String>,
    /// The response whose conversation comes first.
    pub previous_response_id: Option<String>,
    /// A key that is the same for requests with the same beginning.
    pub prompt_cache_key: Option<String>,
}

impl CompactRequest {
    /// Reads the body of `POST /v1/responses/compact`.
    pub fn read(body: &str) -> Result<Self, ApiError> {
        let tape = parsed(body)?;
        let body = tape.root();
        let mut model = None;
        let mut input = Vec::new();
        let (mut instructions, mut previous_response_id) = (None, None);
        let mut options = ModelOptions::default();
        for (key, value) in members(body)? {
            match &*key {
                "model" => model = Some(id(value)?),
                "input" => input = Inputs::read(value)?,
                "instructions" => instructions = Some(text(value)?),
                "previous_response_id" => previous_response_id = Some(id(value)?),
                // What a request for a response has beside the conversation changes nothing of it.
                "tools" => {
                    RequestTool::read_list(value)?;
                }
                "parallel_tool_calls" => {
                    flag(value)?;
                }
                "reasoning" => options.take_reasoning(value)?,
                "text" => options.take_text(value)?,
                "prompt_cache_retention" | "prompt_cache_options" | "client_metadata" => {}
                _ if options.take(&key, value)? => {}
                _ => return Err(unknown(value)),
            }
        }
        Ok(Self {
            model: model.ok_or_else(|| missing(body, "model"))?,
            input,
            instructions,
            previous_response_id,
            prompt_cache_key: options.prompt_cache_key,
        })
    }

    /// The outputs of calls that are not in `input`: they answer calls of the response before.
    pub fn submissions(&self) -> impl Iterator<Item = &Submission> {
        submissions(&self.input)
    }

    /// The ids of the calls in `input` that have no output there.
    pub fn unanswered_calls(&self) -> Vec<&str> {
        unanswered(&self.input)
    }
}
