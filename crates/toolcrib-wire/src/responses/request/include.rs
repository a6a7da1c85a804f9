//! What a client wants to see beyond the usual.

use toolcrib_json::Cursor;

use super::options::no_probabilities;
use crate::api::ApiError;
use crate::api::fields::{list, one_of, parsed};

/// What a response contains only if the client asks for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is one entry of the list in the request")]
pub struct Include {
    /// `reasoning.encrypted_content`: reasoning that the client can send back.
    pub encrypted_reasoning: bool,
    /// `file_search_call.results`: what file searches found.
    pub file_search_results: bool,
    /// `web_search_call.action.sources` or `web_search_call.results`: the pages that web searches found.
    pub web_search_sources: bool,
    /// `code_interpreter_call.outputs`: what code printed.
    pub code_outputs: bool,
}

const NAMES: [&str; 8] = [
    "reasoning.encrypted_content",
    "file_search_call.results",
    "web_search_call.action.sources",
    "web_search_call.results",
    "code_interpreter_call.outputs",
    // Of what the client has sent: the input items are listed whole.
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "message.output_text.logprobs",
];

impl Include {
    /// Everything.
    pub const ALL: Self = Self {
        encrypted_reasoning: true,
        file_search_results: true,
        web_search_sources: true,
        code_outputs: true,
    };

    /// This and that.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            encrypted_reasoning: self.encrypted_reasoning || other.encrypted_reasoning,
            file_search_results: self.file_search_results || other.file_search_results,
            web_search_sources: self.web_search_sources || other.web_search_sources,
            code_outputs: self.code_outputs || other.code_outputs,
        }
    }

    pub(super) fn read(value: Cursor<'_>) -> Result<Self, ApiError> {
        let mut include = Self::default();
        for entry in list(value)? {
            match one_of(entry, &NAMES)? {
                "reasoning.encrypted_content" => include.encrypted_reasoning = true,
                "file_search_call.results" => include.file_search_results = true,
                "web_search_call.action.sources" | "web_search_call.results" => {
                    include.web_search_sources = true;
                }
                "code_interpreter_call.outputs" => include.code_outputs = true,
                "message.output_text.logprobs" => {
                    return Err(no_probabilities(entry));
                }
                _ => {}
            }
        }
        Ok(include)
    }

    /// Reads the names of a query, for example of `GET /v1/responses/{id}?include[]=…`.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, ApiError> {
        let names: Vec<&str> = names.into_iter().collect();
        let body = serde_json::json!({ "include": names }).to_string();
        let tape = parsed(&body)?;
        tape.root().get("include").map_or_else(|| Ok(Self::default()), Self::read)
    }
}
