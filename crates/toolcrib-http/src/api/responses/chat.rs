//! Chat completions: responses that nobody keeps, as messages and chunks.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream;
use schemars::JsonSchema;
use serde_json::{Value, json as value};
use tokio::time::timeout;
use tokio_util::sync::DropGuard;
use toolcrib_tool::CallId;
use toolcrib_wire::api::{ApiError, ErrorType};
use toolcrib_wire::chat::{ChatRequest, ChatWriter, FinishReason};
use toolcrib_wire::model::Usage;
use toolcrib_wire::responses::{InputItem, InputKind, ResponseRequest, ResponseResource};

use super::create::{Making, read};
use super::error::Refused;
use super::stream::KEEP_ALIVE;
use crate::api::{Api, json};
use crate::auth::client::Client;
use crate::idempotency::Request;
use crate::{ResponseId, ResponseLog};

/// A request for a chat completion, with the members that matter most. All others of the protocol are read as well.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "for the schema")]
pub(crate) struct ChatBody {
    /// An agent of the server's config, or `PROVIDER/MODEL`.
    model: String,
    /// The conversation.
    messages: Vec<Value>,
    /// Tools that the client runs itself.
    tools: Option<Vec<Value>>,
    /// Whether to answer with chunks. Default: false.
    stream: Option<bool>,
}

pub(crate) async fn complete(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refused> {
    let (text, _) = read(&api, &headers, &body)?;
    let refused = |error: ApiError| Refused::new(&api, &error);
    let chat = ChatRequest::read(&text).map_err(refused)?;
    if chat.stream {
        Request::none(&headers)?;
        return chunks(&api, &client, chat).await;
    }
    let key = Request::of(&headers, &client.key_owner, &["chat"], &body)?;
    let own = api.clone();
    let work = async move { whole(&own, &client, chat).await.unwrap_or_else(Response::from) };
    Ok(api.idempotency().once_if(&api, key, Box::pin(work)).await?)
}

/// The request for the response that becomes the completion. The messages up to the last calls of a run that the server
/// has are left out: what the run says counts.
fn request_of(chat: ChatRequest) -> Result<ResponseRequest, ApiError> {
    let mut request = ResponseRequest::read("{}")?;
    request.model = Some(chat.model);
    request.input = chat.input;
    request.tools = chat.tools;
    request.tool_choice = chat.tool_choice;
    request.parallel_tool_calls = chat.parallel_tool_calls;
    request.options = chat.options;
    request.metadata = chat.metadata;
    request.tool_files = chat.tool_files;
    request.store = false;
    let known = |item: &InputItem| match &item.kind {
        InputKind::Call(call) => ResponseId::of_call(call.id.as_str()),
        _ => None,
    };
    let mut items = request.input.iter().enumerate().rev();
    let last = items.find_map(|(at, item)| Some((at, known(item)?.0)));
    if let Some((at, response)) = last {
        request.previous_response_id = Some(response.to_string());
        request.input.drain(..=at);
    }
    Ok(request)
}

/// Begins the response, and the completion that shows it.
async fn begun(
    api: &Api,
    client: &Client,
    chat: ChatRequest,
) -> Result<(Making, ChatView), Refused> {
    let (model, include_usage) = (chat.model.clone(), chat.include_usage);
    let request = request_of(chat).map_err(|error| Refused::new(api, &error))?;
    let asked = value!({"model": model, "store": false});
    let making = Making::begin_chat(api, client, (request, asked)).await;
    let making = making.map_err(|error| Refused::new(api, &in_chat(error)))?;
    let id = making.value["id"].as_str().unwrap_or_default().replace("resp_", "chatcmpl-");
    let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let writer = ChatWriter::new(id, created, model, include_usage);
    let is_kept = making.unstored.is_none();
    let response = making.value["id"].as_str().and_then(|id| id.parse().ok()).filter(|_| is_kept);
    let view = ChatView { writer, response, calls: HashMap::new() };
    Ok((making, view))
}

/// An error as it is told to the client of a chat completion, who names no responses.
fn in_chat(error: ApiError) -> ApiError {
    match error.code.as_deref() {
        Some("previous_response_not_found") => {
            let message = "the messages have calls of a run that is not there any more: leave them and their outputs out";
            ApiError::invalid(message).with_code("unknown_tool_call").with_param("messages")
        }
        _ if error.param.as_deref() == Some("previous_response_id") => error.with_param("messages"),
        _ => error,
    }
}

async fn whole(api: &Api, client: &Client, chat: ChatRequest) -> Result<Response, Refused> {
    let (making, mut view) = begun(api, client, chat).await?;
    let guard = making.cancel.clone().drop_guard();
    // Its end is in the log, whatever became of the work.
    let _ = making.work.await;
    guard.disarm();
    let response = making.log.response().unwrap_or_default();
    for item in response["output"].as_array().into_iter().flatten() {
        view.item(item);
    }
    match ended(&response) {
        Ok(reason) => {
            let reason = view.reason(reason);
            let usage = usage(response);
            Ok(json(StatusCode::OK, &view.writer.into_completion(reason, usage.as_ref())))
        }
        Err(error) => Err(Refused::new(api, &error)),
    }
}

async fn chunks(api: &Api, client: &Client, chat: ChatRequest) -> Result<Response, Refused> {
    let (making, view) = begun(api, client, chat).await?;
    // What is not stored ends with its connection.
    let guard = making.cancel.clone().drop_guard();
    let feed = ChunkFeed { log: making.log, after: None, view: Some(view), _guard: guard };
    let frames = stream::unfold(feed, async |mut feed| {
        let frame = feed.next().await?;
        Some((Ok::<_, Infallible>(frame), feed))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // A buffering proxy would delay the chunks.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// An open stream of chunks.
struct ChunkFeed {
    log: ResponseLog,
    after: Option<u64>,
    /// `None` at the end.
    view: Option<ChatView>,
    _guard: DropGuard,
}

impl ChunkFeed {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let view = self.view.as_mut()?;
            let frames = match timeout(KEEP_ALIVE, self.log.next(self.after)).await {
                Err(_) => return Some(Bytes::from_static(b": keep-alive\n\n")),
                Ok(Some(event)) => {
                    let expected = self.after.map_or(0, |after| after + 1);
                    self.after = Some(event.number);
                    if event.number == expected {
                        view.event(&event.json())
                    } else {
                        let error =
                            ApiError::new(ErrorType::Server, "the chunks were read too slowly");
                        let frames = view.writer.fail(&error);
                        self.view = None;
                        frames
                    }
                }
                Ok(None) => {
                    let response = self.log.response().unwrap_or_default();
                    let frames = match ended(&response) {
                        Ok(reason) => {
                            let reason = view.reason(reason);
                            view.writer.finish(reason, usage(response).as_ref())
                        }
                        Err(error) => view.writer.fail(&error),
                    };
                    self.view = None;
                    frames
                }
            };
            if !frames.is_empty() {
                return Some(frames.concat().into());
            }
        }
    }
}

/// A response as a completion.
struct ChatView {
    writer: ChatWriter,
    /// The response, if its client finds it again by its calls.
    response: Option<ResponseId>,
    /// The calls for the client, by their items.
    calls: HashMap<String, CallId>,
}

impl ChatView {
    /// The chunks for an event of the response.
    fn event(&mut self, event: &Value) -> Vec<String> {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        match text("type") {
            "response.output_text.delta" => self.writer.text(text("delta")),
            "response.refusal.delta" => self.writer.refusal(text("delta")),
            "response.reasoning_summary_text.delta" => self.writer.reasoning(text("delta")),
            "response.output_item.added" => self.call(&event["item"]),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                match self.calls.get(text("item_id")) {
                    Some(call) => self.writer.call_arguments(call, text("delta")),
                    None => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    /// A call of the client's has begun.
    fn call(&mut self, item: &Value) -> Vec<String> {
        let text = |key: &str| item[key].as_str().unwrap_or_default();
        let is_custom = match text("type") {
            "function_call" => false,
            "custom_tool_call" => true,
            _ => return Vec::new(),
        };
        let call = match &self.response {
            Some(response) => response.call(self.calls.len()).into(),
            None => CallId::new(text("call_id")),
        };
        self.calls.insert(text("id").to_owned(), call.clone());
        if is_custom {
            self.writer.custom_call(&call, text("name"))
        } else {
            self.writer.call(&call, text("name"))
        }
    }

    /// A whole item of the response.
    fn item(&mut self, item: &Value) {
        let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                for part in item["content"].as_array().into_iter().flatten() {
                    self.writer.text(&text(part, "text"));
                    self.writer.refusal(&text(part, "refusal"));
                }
            }
            "reasoning" => {
                for part in item["summary"].as_array().into_iter().flatten() {
                    self.writer.reasoning(&text(part, "text"));
                }
            }
            kind @ ("function_call" | "custom_tool_call") => {
                self.call(item);
                let key = if kind == "function_call" { "arguments" } else { "input" };
                if let Some(call) = self.calls.get(&text(item, "id")) {
                    self.writer.call_arguments(call, &text(item, key));
                }
            }
            _ => {}
        }
    }

    /// The reason of the end: calls for the client come first.
    fn reason(&self, reason: FinishReason) -> FinishReason {
        match reason {
            FinishReason::Stop if !self.calls.is_empty() => FinishReason::ToolCalls,
            reason => reason,
        }
    }
}

/// How a response has ended.
fn ended(response: &Value) -> Result<FinishReason, ApiError> {
    match response["status"].as_str() {
        Some("completed") => Ok(FinishReason::Stop),
        Some("incomplete") => match response["incomplete_details"]["reason"].as_str() {
            Some("content_filter") => Ok(FinishReason::ContentFilter),
            Some("approval_pending") => {
                let message = "a call waits for approval, for which chat completions have no form: use \
                               /v1/responses";
                Err(ApiError::new(ErrorType::Permission, message).with_code("approval_pending"))
            }
            _ => Ok(FinishReason::Length),
        },
        Some("failed") => {
            let error = &response["error"];
            let text = |key: &str| error[key].as_str().unwrap_or("the model failed").to_owned();
            let code = text("code");
            Err(ApiError::new(ErrorType::Model, text("message")).with_code(code))
        }
        _ => {
            Err(ApiError::new(ErrorType::Server, "the completion was interrupted").with_status(503))
        }
    }
}

fn usage(response: Value) -> Option<Usage> {
    ResponseResource::from_value(response)?.0.usage
}
