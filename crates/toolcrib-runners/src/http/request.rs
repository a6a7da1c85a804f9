//! Builds a request from templates and values; a value can never become anything else.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use toolcrib_manifest::declaration::{
    HttpAuth, HttpBody, HttpMethod, HttpSpec, JsonTemplate, OutputFormat, OutputSpec,
    RecordedAnswer,
};
use toolcrib_manifest::template::{Reference, Template};
use toolcrib_net::header::{HeaderMap, HeaderName, HeaderValue};
use toolcrib_net::{Method, Request, Response, StatusCode, Target, encode_component};
use toolcrib_tool::ToolError;

use super::url::{self, BuiltUrl};
use super::values::JsonPart;
use crate::expansion::text::Destination;
use crate::expansion::values::CallValues;

/// What a call would send. References in it are not expanded again.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpRequest {
    /// The method.
    pub method: HttpMethod,
    /// The URL, with `${secret.name}` in place of secrets.
    pub shown_url: String,
    /// Its headers, credentials included.
    pub headers: Vec<HttpHeader>,
    /// The body as data for comparison and display: JSON, form fields, or text.
    pub body: Option<Value>,
    /// The body as it is sent.
    pub body_bytes: Option<Vec<u8>>,
    target: Target,
}

/// A header of a request.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpHeader {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether it is a credential: never shown, and sent to the first URL only.
    pub secret: bool,
}

/// Does not show the value of a secret header.
impl fmt::Debug for HttpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.secret { "[secret]" } else { self.value.as_str() };
        write!(f, "{}: {value}", self.name)
    }
}

/// Shows only the length of the body, because it may contain secrets.
impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &self.shown_url)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body_bytes.as_ref().map(Vec::len))
            .finish_non_exhaustive()
    }
}

impl HttpRequest {
    /// The whole URL, including secrets.
    pub fn url(&self) -> &str {
        self.target.url().as_str()
    }

    /// The request for the HTTP client.
    pub(super) fn to_net(&self) -> Result<Request, ToolError> {
        let method = Method::from_bytes(self.method.as_str().as_bytes())
            .map_err(|error| ToolError::internal(error.to_string()))?;
        let mut request = Request::new(method, self.target.clone());
        for header in &self.headers {
            let name = HeaderName::from_bytes(header.name.as_bytes())
                .map_err(|_| ToolError::internal("the tool's declaration has an invalid header"))?;
            let mut value = HeaderValue::from_bytes(header.value.as_bytes())
                .map_err(|_| not_one_line(&header.name))?;
            value.set_sensitive(header.secret);
            request = request.header(name, value);
        }
        if let Some(body) = &self.body_bytes {
            request = request.body(body.clone());
        }
        Ok(request)
    }

    /// The recorded answer as a response.
    pub(super) fn answered(&self, recorded: &RecordedAnswer) -> Result<Response, ToolError> {
        let unusable =
            |what: &str| ToolError::internal(format!("the recorded answer has no {what}"));
        let status =
            StatusCode::from_u16(recorded.status).map_err(|_| unusable("usable status"))?;
        let media_type = HeaderValue::from_str(&recorded.media_type)
            .map_err(|_| unusable("usable media type"))?;
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("content-type"), media_type);
        Ok(Response::recorded(self.target.clone(), status, headers, recorded.body.clone()))
    }
}

/// Fills the values into every part.
pub(super) fn build(
    spec: &HttpSpec,
    output: &OutputSpec,
    values: CallValues<'_>,
) -> Result<HttpRequest, ToolError> {
    let BuiltUrl { target, shown } = url::build(&spec.url, !spec.allow_private.is_empty(), values)?;
    let mut headers = headers(spec, values)?;
    let mut set = |name: &str, value: &str| {
        if !headers.iter().any(|header| header.name.eq_ignore_ascii_case(name)) {
            let (name, value) = (name.to_owned(), value.to_owned());
            headers.push(HttpHeader { name, value, secret: false });
        }
    };
    if spec.select.is_some() || output.format == OutputFormat::Json {
        set("Accept", "application/json");
    }
    let built = match &spec.body {
        None => None,
        Some(HttpBody::Json(template)) => {
            json(template, values)?.map(|JsonPart { text, value }| {
                set("Content-Type", "application/json");
                (text.into_bytes(), value)
            })
        }
        Some(HttpBody::Form(fields)) => {
            set("Content-Type", "application/x-www-form-urlencoded");
            let (text, value) = form(fields, values)?;
            Some((text.into_bytes(), value))
        }
        Some(HttpBody::Text(template)) => values.fill(template, Destination::Stream)?.map(|text| {
            set("Content-Type", "text/plain; charset=utf-8");
            (text.clone().into_bytes(), Value::String(text))
        }),
    };
    let (body_bytes, body) = built.unzip();
    Ok(HttpRequest { method: spec.method, shown_url: shown, headers, body, body_bytes, target })
}

fn headers(spec: &HttpSpec, values: CallValues<'_>) -> Result<Vec<HttpHeader>, ToolError> {
    let mut headers = Vec::new();
    for (name, template) in &spec.headers {
        // A header without a value is left out.
        headers.extend(header(name, "", template, holds_secret(template), values)?);
    }
    let needed = |header: Option<HttpHeader>| {
        header.ok_or_else(|| {
            ToolError::unavailable("a value for the tool's credentials is missing")
                .with_hint("No argument can change that: tell the user.")
        })
    };
    match &spec.auth {
        None => {}
        Some(HttpAuth::Bearer(token)) => {
            headers.push(needed(header("Authorization", "Bearer ", token, true, values)?)?);
        }
        Some(HttpAuth::Header { name, value }) => {
            headers.push(needed(header(name, "", value, true, values)?)?);
        }
        Some(HttpAuth::Basic { user, password }) => {
            let user = needed(header("Authorization", "", user, true, values)?)?.value;
            let password = needed(header("Authorization", "", password, true, values)?)?.value;
            if user.contains(':') {
                return Err(ToolError::unavailable(
                    "the user name of the tool's credentials contains a `:`, which is not allowed",
                ));
            }
            headers.push(HttpHeader {
                name: "Authorization".to_owned(),
                value: format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))),
                secret: true,
            });
        }
    }
    Ok(headers)
}

/// Whether a template contains a secret or a variable of the server.
fn holds_secret(template: &Template) -> bool {
    let of_server = |found: &Reference| matches!(found, Reference::Secret(_) | Reference::Env(_));
    template.references().any(of_server)
}

/// One header, always a single line; `None` if an optional value is absent.
fn header(
    name: &str,
    scheme: &str,
    template: &Template,
    secret: bool,
    values: CallValues<'_>,
) -> Result<Option<HttpHeader>, ToolError> {
    let Some(value) = values.fill(template, Destination::Line)? else { return Ok(None) };
    if value.chars().any(|character| character.is_control() && character != '\t') {
        return Err(match template.references().next() {
            Some(Reference::Arg(_)) => not_one_line(name)
                .with_hint("Send the value without line ends and other control characters."),
            _ => not_one_line(name).with_kind(toolcrib_tool::ErrorKind::Unavailable),
        });
    }
    Ok(Some(HttpHeader { name: name.to_owned(), value: format!("{scheme}{value}"), secret }))
}

fn not_one_line(name: &str) -> ToolError {
    ToolError::invalid_args(format!(
        "the value of the header `{name}` contains a line end or another control character"
    ))
}

/// The JSON of a body. `None` if an optional value that it refers to is absent.
fn json(template: &JsonTemplate, values: CallValues<'_>) -> Result<Option<JsonPart>, ToolError> {
    Ok(match template {
        JsonTemplate::Scalar(value) => Some(value.clone().into()),
        JsonTemplate::Text(text) => match text.as_single_reference() {
            Some(reference) => values.json(reference, Destination::Stream)?,
            None => values.fill(text, Destination::Stream)?.map(|text| Value::String(text).into()),
        },
        JsonTemplate::List(items) => {
            let (mut texts, mut list) = (Vec::new(), Vec::new());
            for item in items {
                if let Some(JsonPart { text, value }) = json(item, values)? {
                    texts.push(text);
                    list.push(value);
                }
            }
            Some(JsonPart { text: format!("[{}]", texts.join(",")), value: Value::Array(list) })
        }
        JsonTemplate::Object(members) => {
            let (mut texts, mut object) = (BTreeMap::new(), Map::new());
            for (key, member) in members {
                if let Some(JsonPart { text, value }) = json(member, values)? {
                    texts.insert(key, format!("{}:{text}", Value::from(key.as_str())));
                    object.insert(key.clone(), value);
                }
            }
            let texts: Vec<_> = texts.into_values().collect();
            Some(JsonPart {
                text: format!("{{{}}}", texts.join(",")),
                value: Value::Object(object),
            })
        }
    })
}

/// A form as it is sent, and as a map in which a repeated field becomes a list.
fn form(
    fields: &[(String, Template)],
    values: CallValues<'_>,
) -> Result<(String, Value), ToolError> {
    let mut pairs = Vec::new();
    let mut object = Map::new();
    for (name, template) in fields {
        let texts = url::each(template, values, Destination::Stream, &|_, text| text.to_owned())?;
        for text in &texts {
            pairs.push(format!("{}={}", encode_component(name), encode_component(text)));
        }
        let mut texts: Vec<Value> = texts.into_iter().map(Value::String).collect();
        match texts.len() {
            0 => {}
            1 => drop(object.insert(name.clone(), texts.remove(0))),
            _ => drop(object.insert(name.clone(), Value::Array(texts))),
        }
    }
    Ok((pairs.join("&"), Value::Object(object)))
}
