//! The images endpoint of an OpenAI-compatible API.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use toolcrib_net::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use toolcrib_net::{Method, NamedBy, Request, StatusCode, Target, TransportResponse};
use toolcrib_tool::{CallContext, Content, ErrorKind, ToolError};

use super::events::EventLines;
use crate::failure::described;
use crate::service::WebState;
use crate::settings::ImageSettings;
use crate::untrusted::one_line;

/// The most bytes of an answer with all its pictures in base64, and of a picture.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
const MAX_PICTURE: usize = 32 * 1024 * 1024;
const MAX_ERROR: usize = 64 * 1024;
const TELL_OPERATOR: &str =
    "No argument can change that: tell the user that the operator has to correct `images`.";
const LOOK_FIRST: &str =
    "A picture may have been made and charged: ask the user before you call again.";

/// A finished picture.
pub(super) struct Picture {
    pub(super) data: Vec<u8>,
    pub(super) mime_type: &'static str,
    /// The prompt that the model was given, if the endpoint changed it.
    pub(super) revised_prompt: Option<String>,
    pub(super) usage: Option<Value>,
}

/// Asks for one picture. Intermediate ones are streamed to whoever watches the call.
pub(super) async fn make(
    web: &WebState,
    settings: &ImageSettings,
    mut request: Value,
    cx: &CallContext,
) -> Result<Picture, ToolError> {
    let is_streamed = settings.partial_images > 0;
    if is_streamed {
        request["stream"] = true.into();
        request["partial_images"] = settings.partial_images.min(3).into();
    }
    let address = format!("{}/images/generations", settings.base_url.trim_end_matches('/'));
    let target = Target::parse(&address, NamedBy::Operator).map_err(|refusal| {
        ToolError::unavailable(format!("the images endpoint cannot be used: {refusal}"))
            .with_hint(TELL_OPERATOR)
    })?;
    let response = send(web, settings, &target, &request).await?;
    if !response.status().is_success() {
        return Err(refused(response, &target).await);
    }
    let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let last = if media_type.is_some_and(|value| value.starts_with("text/event-stream")) {
        streamed(response, cx).await?
    } else {
        let body = body(response, MAX_ANSWER).await?;
        serde_json::from_slice(&body).map_err(|error| broken("is not JSON").with_source(error))?
    };
    picture(web, &target, &last).await
}

async fn send(
    web: &WebState,
    settings: &ImageSettings,
    target: &Target,
    request: &Value,
) -> Result<TransportResponse, ToolError> {
    let unreachable = |error: toolcrib_net::Error| {
        ToolError::unavailable(error.to_string()).with_hint(TELL_OPERATOR).with_source(error)
    };
    let client = web.apis.of_server(target).await.map_err(unreachable)?;
    let mut sent = client
        .post(target.url().clone())
        .header(CONTENT_TYPE, "application/json")
        .body(request.to_string());
    if let Some(name) = &settings.api_key {
        let key = web.keys.get(name)?;
        let value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret()));
        let mut value = value.map_err(|_| {
            ToolError::unavailable(format!("the secret `{name}` cannot be sent in a header"))
                .with_hint(TELL_OPERATOR)
        })?;
        value.set_sensitive(true);
        sent = sent.header(AUTHORIZATION, value);
    }
    sent.send().await.map_err(|error| {
        let error = error.without_url();
        if error.is_connect() {
            let what = format!("{} cannot be reached", target.origin());
            return ToolError::unavailable(what)
                .with_retryable(true)
                .with_hint("Try again later, or tell the user.")
                .with_source(error);
        }
        lost().with_source(error)
    })
}

/// The connection broke after the request was sent.
fn lost() -> ToolError {
    ToolError::outcome_unknown("the images endpoint broke off its answer").with_hint(LOOK_FIRST)
}

fn broken(how: &str) -> ToolError {
    ToolError::execution(format!("the answer of the images endpoint {how}"))
        .with_hint(TELL_OPERATOR)
}

async fn body(mut response: TransportResponse, limit: usize) -> Result<Vec<u8>, ToolError> {
    let mut body = Vec::new();
    while let Some(piece) =
        response.chunk().await.map_err(|error| lost().with_source(error.without_url()))?
    {
        if body.len() + piece.len() > limit {
            return Err(broken(&format!("is larger than {limit} bytes")));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The error for an answer that is no picture. The endpoint's own words are for the model, since they often say what to
/// change in the prompt.
async fn refused(response: TransportResponse, target: &Target) -> ToolError {
    let status = response.status();
    let body = body(response, MAX_ERROR).await.unwrap_or_default();
    let said = serde_json::from_slice::<Value>(&body).ok().and_then(|body| message(&body));
    let said = said.map(|said| format!(": {said}")).unwrap_or_default();
    let text = format!("{} answered {}{said}", target.origin(), described(status));
    match status {
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => ToolError::execution(text)
            .with_hint("Change what the answer complains about, such as the prompt or the size."),
        StatusCode::TOO_MANY_REQUESTS => ToolError::new(ErrorKind::RateLimited, text)
            .with_hint("Wait before you ask for the next picture."),
        _ if status.is_server_error() => {
            ToolError::execution(text).with_retryable(true).with_hint("Try again later.")
        }
        _ => ToolError::unavailable(text).with_hint(TELL_OPERATOR),
    }
}

fn message(value: &Value) -> Option<String> {
    let error = value.get("error")?;
    let text = error.get("message").and_then(Value::as_str).or(error.as_str())?;
    Some(one_line(text, 500))
}

/// Reads events until the picture is complete.
async fn streamed(mut response: TransportResponse, cx: &CallContext) -> Result<Value, ToolError> {
    let (mut lines, mut read) = (EventLines::default(), 0);
    let mut last = None;
    loop {
        let piece =
            response.chunk().await.map_err(|error| lost().with_source(error.without_url()))?;
        let mut events = Vec::new();
        let parse = |data: &[u8]| events.extend(serde_json::from_slice::<Value>(data).ok());
        match &piece {
            Some(piece) => {
                read += piece.len();
                lines.push(piece, parse);
            }
            None => lines.end(parse),
        }
        if read > MAX_ANSWER {
            return Err(broken(&format!("is larger than {MAX_ANSWER} bytes")));
        }
        for event in events {
            let kind = event["type"].as_str().unwrap_or_default();
            if kind == "error" || event.get("error").is_some_and(|error| !error.is_null()) {
                let said = message(&event).or_else(|| Some(event["message"].as_str()?.to_owned()));
                let said = said.unwrap_or_else(|| "it gave no reason".to_owned());
                return Err(ToolError::execution(format!("the picture was not made: {said}"))
                    .with_hint("Change the prompt, or tell the user."));
            }
            if kind.ends_with("partial_image") {
                if let Some(data) = event["b64_json"].as_str().and_then(decoded) {
                    let mime_type = mime_type(&data).to_owned();
                    cx.stream(Content::Image { data, mime_type }).await;
                }
            } else if kind.ends_with("completed") {
                last = Some(event);
            }
        }
        match (last.take(), piece) {
            (Some(event), _) => return Ok(event),
            (None, None) => return Err(lost()),
            (None, Some(_)) => {}
        }
    }
}

/// The picture of an answer: inside it, or at an address.
async fn picture(web: &WebState, endpoint: &Target, answer: &Value) -> Result<Picture, ToolError> {
    let first = answer.pointer("/data/0").unwrap_or(answer);
    let inside = first["b64_json"].as_str();
    let data = match (inside, first["url"].as_str()) {
        (Some(text), _) => {
            decoded(text).ok_or_else(|| broken("has a picture that is not base64"))?
        }
        (None, Some(url)) => downloaded(web, endpoint, url).await?,
        (None, None) => return Err(broken("has no picture")),
    };
    let text = |key: &str| first[key].as_str().map(|text| one_line(text, 2_000));
    let usage = answer.get("usage").filter(|usage| usage.is_object()).cloned();
    Ok(Picture { mime_type: mime_type(&data), data, revised_prompt: text("revised_prompt"), usage })
}

/// A picture at an address: of the endpoint's own server, or public.
async fn downloaded(web: &WebState, endpoint: &Target, url: &str) -> Result<Vec<u8>, ToolError> {
    let failed = |reason: String| {
        ToolError::execution(format!("the finished picture could not be fetched: {reason}"))
            .with_hint(LOOK_FIRST)
    };
    let own = Target::parse(url, NamedBy::Operator).ok().filter(|own| own.same_origin(endpoint));
    let (client, target) = if let Some(own) = own {
        (&web.apis, own)
    } else {
        let public = Target::parse(url, NamedBy::Anybody);
        (&web.pages, public.map_err(|refusal| failed(refusal.to_string()))?)
    };
    let request = Request::new(Method::GET, target).max_bytes(MAX_PICTURE);
    let response = client.send(request).await.map_err(|error| failed(error.to_string()))?;
    if !response.status.is_success() {
        return Err(failed(described(response.status)));
    }
    Ok(response.body)
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok().filter(|data| data.len() <= MAX_PICTURE)
}

/// The type of a picture by its first bytes.
fn mime_type(data: &[u8]) -> &'static str {
    match data {
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        _ => "image/png",
    }
}
