//! The body of `POST /v1/chat/completions`.

use serde_json::{Map, Value};
use toolcrib_json::{Cursor, Kind};
use toolcrib_tool::ToolFiles;

use super::messages::messages;
use crate::api::ApiError;
use crate::api::fields::{
    flag, id, list, member, members, missing, object, one_of, param_of, parsed, text, unknown,
    unsupported, whole, wrong_type, wrong_value,
};
use crate::model::Item;
use crate::responses::request::{history, metadata, no_probabilities, tool_files, unanswered};
use crate::responses::{
    InputItem, InputKind, ModelOptions, RequestTool, RequestToolChoice, Submission, TextFormat,
};

/// A request for a chat completion.
///
/// Nothing in it is dropped silently: what the server does not do is an error that names the parameter, except for what is
/// listed in [`unused`](Self::unused).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The model or agent.
    pub model: String,
    /// The messages, oldest first, as items of the Responses API. The calls of a message are items of their own.
    pub input: Vec<InputItem>,
    /// The tools of the request.
    pub tools: Vec<RequestTool>,
    /// Which tools the model may or must call.
    pub tool_choice: RequestToolChoice,
    /// Whether the model may make several calls at once.
    pub parallel_tool_calls: Option<bool>,
    /// How the model is asked to answer.
    pub options: ModelOptions,
    /// Whether the client wants chunks (default false).
    pub stream: bool,
    /// Whether the chunks end with the tokens (default false).
    pub include_usage: bool,
    /// Whether the client wants the completion to be kept (default false).
    pub store: bool,
    /// Words of the client's own.
    pub metadata: Map<String, Value>,
    /// Files for the tools, by the type of the tool. OpenAI's API does not have them.
    pub tool_files: ToolFiles,
    /// Members that were read and have no effect.
    pub unused: Vec<String>,
}

impl ChatRequest {
    /// Reads the body of a request.
    ///
    /// ```
    /// use toolcrib_wire::chat::ChatRequest;
    ///
    /// let request = ChatRequest::read(
    ///     r#"{"model": "coder", "messages": [{"role": "user", "content": "Hello."}]}"#,
    /// )?;
    /// assert_eq!(request.history("local/m").len(), 1);
    ///
    /// let error = ChatRequest::read(r#"{"model": "m", "messages": [{"role": "user"}]}"#).unwrap_err();
    /// assert_eq!(error.param.as_deref(), Some("messages[0].content"));
    /// # Ok::<(), toolcrib_wire::api::ApiError>(())
    /// ```
    pub fn read(body: &str) -> Result<Self, ApiError> {
        let tape = parsed(body)?;
        let body = tape.root();
        let mut request = Self {
            model: String::new(),
            input: Vec::new(),
            tools: Vec::new(),
            tool_choice: RequestToolChoice::default(),
            parallel_tool_calls: None,
            options: ModelOptions::default(),
            stream: false,
            include_usage: false,
            store: false,
            metadata: Map::new(),
            tool_files: ToolFiles::default(),
            unused: Vec::new(),
        };
        for (key, value) in members(body)? {
            request.take(&key, value)?;
        }
        for key in ["model", "messages"] {
            member(body, key).ok_or_else(|| missing(body, key))?;
        }
        Ok(request)
    }

    fn take(&mut self, key: &str, value: Cursor<'_>) -> Result<(), ApiError> {
        match key {
            "model" => self.model = id(value)?,
            "messages" => self.input = messages(value, &mut self.unused)?,
            "tools" => self.tools = RequestTool::read_each(value, tool)?,
            "tool_choice" => self.tool_choice = RequestToolChoice::read(value)?,
            "parallel_tool_calls" => self.parallel_tool_calls = Some(flag(value)?),
            "stream" => self.stream = flag(value)?,
            "stream_options" => self.take_stream_options(value)?,
            // The newer name wins, wherever it stands.
            "max_tokens" => {
                let limit = whole(value, 1, u64::MAX)?;
                self.options.max_output_tokens.get_or_insert(limit);
            }
            "max_completion_tokens" => {
                self.options.max_output_tokens = Some(whole(value, 1, u64::MAX)?);
            }
            "response_format" => self.options.format = TextFormat::read(value)?,
            "reasoning_effort" => self.options.take_effort(value)?,
            "verbosity" => self.options.take_verbosity(value)?,
            "stop" => self.options.stop = stop(value)?,
            "seed" => self.options.seed = Some(seed(value)?),
            "metadata" => self.metadata = metadata(value)?,
            "store" => {
                self.store = flag(value)?;
                if self.store {
                    self.unused.push(key.to_owned());
                }
            }
            "tool_files" => self.tool_files = tool_files(value)?,
            _ if self.options.take(key, value)? => {
                if matches!(key, "service_tier" | "user" | "safety_identifier") {
                    self.unused.push(key.to_owned());
                }
            }
            "prompt_cache_retention" | "prompt_cache_options" => self.unused.push(key.to_owned()),
            _ => return refused(key, value),
        }
        Ok(())
    }

    fn take_stream_options(&mut self, value: Cursor<'_>) -> Result<(), ApiError> {
        for (key, value) in members(value)? {
            match &*key {
                "include_usage" => self.include_usage = flag(value)?,
                // Padding against eavesdroppers is not made, whatever the client asks for.
                "include_obfuscation" => {
                    flag(value)?;
                }
                _ => return Err(unknown(value)),
            }
        }
        Ok(())
    }

    /// The outputs after the last message of the model: they answer its calls.
    pub fn submissions(&self) -> impl Iterator<Item = &Submission> {
        let said = self.input.iter().rposition(|item| {
            matches!(item.kind, InputKind::Assistant { .. } | InputKind::Call(_))
        });
        let after = said.map_or(0, |last| last + 1);
        self.input.iter().skip(after).filter_map(|item| match &item.kind {
            InputKind::Output(submission) => Some(submission),
            _ => None,
        })
    }

    /// The ids of the calls that have no output.
    pub fn unanswered_calls(&self) -> Vec<&str> {
        unanswered(&self.input)
    }

    /// The messages, for a conversation with a model
    /// ([`InputItem::items`](crate::responses::InputItem::items)).
    pub fn history(&self, source: &str) -> Vec<Item> {
        history(&self.input, source)
    }
}

/// Members that are allowed if they ask for nothing.
fn refused(key: &str, value: Cursor<'_>) -> Result<(), ApiError> {
    match key {
        "n" => {
            if whole(value, 1, 128)? > 1 {
                return Err(unsupported(value, "there is one answer; ask again for another"));
            }
        }
        "logprobs" => {
            if flag(value)? {
                return Err(no_probabilities(value));
            }
        }
        "logit_bias" => {
            if !object(value)?.is_empty() {
                return Err(unsupported(value, "leave it out"));
            }
        }
        "modalities" => {
            for entry in list(value)? {
                one_of(entry, &["text"])?;
            }
        }
        "audio" => return Err(unsupported(value, "answers are text; leave it out")),
        "prediction" | "moderation" => return Err(unsupported(value, "leave it out")),
        "web_search_options" => {
            return Err(unsupported(value, "ask an agent that has a tool for searching"));
        }
        "functions" => return Err(unsupported(value, "send them as `tools`")),
        "function_call" => return Err(unsupported(value, "send it as `tool_choice`")),
        _ => return Err(unknown(value)),
    }
    Ok(())
}

fn tool(tool: Cursor<'_>) -> Result<RequestTool, ApiError> {
    let tool = object(tool)?;
    let kind = member(tool, "type").ok_or_else(|| missing(tool, "type"))?;
    let kind = one_of(kind, &["function", "custom"])?;
    for (key, value) in members(tool)? {
        if key != "type" && key != kind {
            return Err(unknown(value));
        }
    }
    let of = object(member(tool, kind).ok_or_else(|| missing(tool, kind))?)?;
    match kind {
        "function" => RequestTool::read_function(tool, of),
        _ => RequestTool::read_custom(tool, of),
    }
}

/// One text, or up to four.
fn stop(value: Cursor<'_>) -> Result<Vec<String>, ApiError> {
    if value.kind().is_string() {
        return Ok(vec![text(value)?]);
    }
    if value.kind() != Kind::Array {
        return Err(wrong_type(value, "a string or a list of strings"));
    }
    if value.len() > 4 {
        return Err(wrong_value(value, "has more than 4 texts"));
    }
    list(value)?.map(text).collect()
}

fn seed(value: Cursor<'_>) -> Result<i64, ApiError> {
    serde_json::from_str(value.source()).map_err(|_| wrong_type(value, "a whole number"))
}

/// A member of a message that older clients have.
pub(super) fn old_call(message: Cursor<'_>, value: Cursor<'_>) -> ApiError {
    let place = param_of(message, "tool_calls");
    unsupported(value, &format!("send the call in `{place}`"))
}
