//! The body of `POST /v1/responses`, and of `response.create` on a WebSocket.

use serde_json::{Map, Value};
use toolcrib_json::{Cursor, Kind};
use toolcrib_tool::ToolFiles;

use super::choice::RequestToolChoice;
use super::echo::echo;
use super::include::Include;
use super::input::{Inputs, approvals, history, submissions, unanswered};
use super::input_item::{ApprovalAnswer, InputItem, Submission};
use super::options::ModelOptions;
use super::tools::RequestTool;
use crate::api::ApiError;
use crate::api::fields::{
    flag, id, list, member, members, missing, object, one_of, parsed, short_text, text, unknown,
    unsupported, whole, wrong_value,
};
use crate::model::Item;

/// A request for a response.
///
/// Nothing in it is dropped silently: what the server does not do is an error that names the parameter, except for what is
/// listed in [`unused`](Self::unused).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of the request")]
pub struct ResponseRequest {
    /// The model or agent. A request that goes on from a response may leave it out.
    pub model: Option<String>,
    /// What is said, oldest first. A text is one message of the user.
    pub input: Vec<InputItem>,
    /// The instructions at the start of the conversation. They are not kept for responses that go on from this one.
    pub instructions: Option<String>,
    /// The response to go on from.
    pub previous_response_id: Option<String>,
    /// The conversation to add to.
    pub conversation: Option<String>,
    /// The tools of the request.
    pub tools: Vec<RequestTool>,
    /// Which tools the model may or must call.
    pub tool_choice: RequestToolChoice,
    /// Whether the model may make several calls at once.
    pub parallel_tool_calls: Option<bool>,
    /// The most calls to tools that the server runs.
    pub max_tool_calls: Option<u64>,
    /// How the model is asked to answer.
    pub options: ModelOptions,
    /// What the client wants to see beyond the usual.
    pub include: Include,
    /// Whether the response is kept (default true).
    pub store: bool,
    /// Whether the client does not wait for the response (default false).
    pub background: bool,
    /// Whether the client wants events (default false).
    pub stream: bool,
    /// Whether input that is too long may be cut (`truncation: auto`) instead of being refused.
    pub may_truncate: bool,
    /// At how many tokens the conversation is compacted, if the client says so (`context_management`).
    pub compact_threshold: Option<u64>,
    /// Words of the client's own, given back with the response.
    pub metadata: Map<String, Value>,
    /// Files for the tools, by the type of the tool. OpenAI's API does not have them.
    pub tool_files: ToolFiles,
    /// On a WebSocket, whether the model is asked at all (default true); otherwise the request only prepares the next
    /// one.
    pub generate: bool,
    /// Members that were read and have no effect.
    pub unused: Vec<String>,
}

/// The members of a request whose tokens are counted.
const COUNTED: [&str; 12] = [
    "model",
    "input",
    "instructions",
    "previous_response_id",
    "conversation",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "truncation",
    "personality",
];

impl ResponseRequest {
    /// Reads the body of `POST /v1/responses`.
    ///
    /// ```
    /// use toolcrib_wire::responses::ResponseRequest;
    ///
    /// let request = ResponseRequest::read(r#"{"model": "coder", "input": "Hello.", "stream": true}"#)?;
    /// assert_eq!(request.model.as_deref(), Some("coder"));
    /// assert!(request.stream && request.store);
    /// assert_eq!(request.history("local/m").len(), 1);
    ///
    /// let error = ResponseRequest::read(r#"{"model": "m", "input": "", "tools": [{"type": "function"}]}"#).unwrap_err();
    /// assert_eq!(error.param.as_deref(), Some("tools[0].name"));
    /// # Ok::<(), toolcrib_wire::api::ApiError>(())
    /// ```
    pub fn read(body: &str) -> Result<Self, ApiError> {
        Self::of(parsed(body)?.root(), false)
    }

    /// Reads the message `response.create` of a WebSocket: the same members beside its `type`, or in `response`.
    pub fn read_socket(message: &str) -> Result<Self, ApiError> {
        let tape = parsed(message)?;
        let root = tape.root();
        let kind = member(root, "type").ok_or_else(|| missing(root, "type"))?;
        if !kind.equals("response.create") {
            return Err(wrong_value(
                kind,
                "must be `response.create`; there are no other messages",
            ));
        }
        let body = member(root, "response").filter(|body| body.kind() == Kind::Object);
        Self::of(body.unwrap_or(root), true)
    }

    /// Reads the body of `POST /v1/responses/input_tokens`.
    pub fn read_counted(body: &str) -> Result<Self, ApiError> {
        let tape = parsed(body)?;
        for (key, value) in members(tape.root())? {
            if !COUNTED.contains(&&*key) {
                return Err(unknown(value));
            }
        }
        Self::of(tape.root(), false)
    }

    fn of(body: Cursor<'_>, is_socket: bool) -> Result<Self, ApiError> {
        let mut request = Self {
            model: None,
            input: Vec::new(),
            instructions: None,
            previous_response_id: None,
            conversation: None,
            tools: Vec::new(),
            tool_choice: RequestToolChoice::default(),
            parallel_tool_calls: None,
            max_tool_calls: None,
            options: ModelOptions::default(),
            include: Include::default(),
            store: true,
            background: false,
            stream: is_socket,
            may_truncate: false,
            compact_threshold: None,
            metadata: Map::new(),
            tool_files: ToolFiles::default(),
            generate: true,
            unused: Vec::new(),
        };
        for (key, value) in members(body)? {
            request.take(&key, value, is_socket)?;
        }
        if request.background && !request.store {
            let message = "`background` needs `store`: nobody could fetch the response";
            return Err(ApiError::invalid(message)
                .with_code("invalid_value")
                .with_param("background"));
        }
        if request.previous_response_id.is_some() && request.conversation.is_some() {
            let message = "send either `previous_response_id` or `conversation`, not both";
            return Err(ApiError::invalid(message)
                .with_code("mutually_exclusive_parameters")
                .with_param("conversation"));
        }
        Ok(request)
    }

    fn take(&mut self, key: &str, value: Cursor<'_>, is_socket: bool) -> Result<(), ApiError> {
        match key {
            "model" => self.model = Some(id(value)?),
            "input" => self.input = Inputs::read(value)?,
            "instructions" => self.instructions = Some(text(value)?),
            "previous_response_id" => self.previous_response_id = Some(id(value)?),
            "conversation" => self.conversation = Some(conversation(value)?),
            "tools" => {
                self.tools = RequestTool::read_list(value)?;
                self.unused.extend(RequestTool::left_out(value)?);
            }
            "tool_choice" => self.tool_choice = RequestToolChoice::read(value)?,
            "parallel_tool_calls" => self.parallel_tool_calls = Some(flag(value)?),
            "max_tool_calls" => self.max_tool_calls = Some(whole(value, 1, u64::MAX)?),
            "max_output_tokens" => {
                self.options.max_output_tokens = Some(whole(value, 1, u64::MAX)?);
            }
            "reasoning" => self.options.take_reasoning(value)?,
            "text" => self.options.take_text(value)?,
            "include" => self.include = Include::read(value)?,
            "store" => self.store = flag(value)?,
            "background" if is_socket => {
                if flag(value)? {
                    return Err(unsupported(value, "use POST /v1/responses"));
                }
            }
            "background" => self.background = flag(value)?,
            // On a WebSocket there is nothing but events.
            "stream" if is_socket => {
                if !flag(value)? {
                    return Err(unsupported(value, "a WebSocket always streams; leave it out"));
                }
            }
            "stream" => self.stream = flag(value)?,
            "stream_options" => stream_options(value)?,
            "truncation" => self.may_truncate = one_of(value, &["auto", "disabled"])? == "auto",
            "context_management" => self.compact_threshold = compact_threshold(value)?,
            "metadata" => self.metadata = metadata(value)?,
            "tool_files" => self.tool_files = tool_files(value)?,
            "type" if is_socket => {}
            "generate" if is_socket => self.generate = flag(value)?,
            "prompt" => {
                return Err(unsupported(
                    value,
                    "there are no stored prompts; send `instructions` and `input`",
                ));
            }
            "moderation" | "access_programs" => return Err(unsupported(value, "leave it out")),
            // They steer the provider's own cache or its logs.
            "prompt_cache_retention"
            | "prompt_cache_options"
            | "client_metadata"
            | "personality" => {
                self.unused.push(key.to_owned());
            }
            _ if self.options.take(key, value)? => {
                if matches!(key, "service_tier" | "user" | "safety_identifier") {
                    self.unused.push(key.to_owned());
                }
            }
            _ => return Err(unknown(value)),
        }
        Ok(())
    }

    /// The outputs of calls that are not in `input`: they answer calls of the response before.
    pub fn submissions(&self) -> impl Iterator<Item = &Submission> {
        submissions(&self.input)
    }

    /// The decisions about calls that wait for approval.
    pub fn approvals(&self) -> impl Iterator<Item = &ApprovalAnswer> {
        approvals(&self.input)
    }

    /// The ids of the calls in `input` that have no output there.
    pub fn unanswered_calls(&self) -> Vec<&str> {
        unanswered(&self.input)
    }

    /// What `input` says, for a conversation with a model
    /// ([`InputItem::items`](super::InputItem::items)).
    pub fn history(&self, source: &str) -> Vec<Item> {
        history(&self.input, source)
    }

    /// The members of the response that repeat the request, none of them null that must not be.
    pub fn echo(&self) -> Map<String, Value> {
        echo(self)
    }
}

fn conversation(value: Cursor<'_>) -> Result<String, ApiError> {
    if value.kind().is_string() {
        return id(value);
    }
    let conversation = object(value)?;
    id(member(conversation, "id").ok_or_else(|| missing(conversation, "id"))?)
}

/// Files for tools, by the type of the tool.
pub(crate) fn tool_files(value: Cursor<'_>) -> Result<ToolFiles, ApiError> {
    serde_json::from_str(value.source())
        .map_err(|error| wrong_value(value, format!("must be lists of files by type: {error}")))
}

/// Padding against eavesdroppers is not made, whatever the client asks for.
fn stream_options(value: Cursor<'_>) -> Result<(), ApiError> {
    for (key, value) in members(value)? {
        match &*key {
            "include_obfuscation" => {
                flag(value)?;
            }
            _ => return Err(unknown(value)),
        }
    }
    Ok(())
}

fn compact_threshold(value: Cursor<'_>) -> Result<Option<u64>, ApiError> {
    let mut threshold = None;
    for entry in list(value)? {
        for (key, value) in members(entry)? {
            match &*key {
                "type" => {
                    one_of(value, &["compaction"])?;
                }
                "compact_threshold" => threshold = Some(whole(value, 1, u64::MAX)?),
                _ => return Err(unknown(value)),
            }
        }
    }
    Ok(threshold)
}

/// At most 16 texts with short names.
pub(crate) fn metadata(value: Cursor<'_>) -> Result<Map<String, Value>, ApiError> {
    let mut metadata = Map::new();
    for (key, text) in members(value)? {
        if key.chars().count() > 64 {
            return Err(wrong_value(text, "has a name of more than 64 characters"));
        }
        metadata.insert(key.into_owned(), short_text(text, 512)?.into());
    }
    if metadata.len() > 16 {
        return Err(wrong_value(value, "has more than 16 members"));
    }
    Ok(metadata)
}
