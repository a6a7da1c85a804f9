//! Checked HTTP tools: a request with templates for the values of a call.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;
use toolcrib_net::IpNet;

use crate::template::{Reference, Template};

/// A request, and how its response becomes a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HttpSpec {
    /// The method.
    pub method: HttpMethod,
    /// The URL.
    pub url: UrlSpec,
    /// Headers with their values. No two names differ only in case.
    pub headers: BTreeMap<String, Template>,
    /// The credentials, sent only to the host of the URL.
    pub auth: Option<HttpAuth>,
    /// The body.
    pub body: Option<HttpBody>,
    /// Statuses that mean success; if empty, every 2xx status.
    pub ok_status: Vec<u16>,
    /// A JSON pointer to the part of the response that becomes the result.
    pub select: Option<String>,
    /// Address ranges that are allowed although they are not public.
    #[serde(serialize_with = "as_texts")]
    pub allow_private: Vec<IpNet>,
    /// The maximum size of the result after `select`, in bytes. Default 64 KiB.
    pub output_bytes: usize,
    /// The maximum size of the response, in bytes. Default 5 MiB.
    pub transfer_bytes: usize,
}

/// The methods of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// Reads.
    Get,
    /// Reads the status and headers only.
    Head,
    /// Lets the server process the body.
    Post,
    /// Replaces.
    Put,
    /// Changes a part.
    Patch,
    /// Removes.
    Delete,
}

impl HttpMethod {
    /// All methods.
    pub const ALL: [Self; 6] =
        [Self::Get, Self::Head, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// The method's name in requests, for example `GET`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl fmt::Display for HttpMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A URL in parts. The author's text is already percent-encoded, so that a call only has to encode
/// values, each as one component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UrlSpec {
    /// The server.
    pub origin: UrlOrigin,
    /// The path, beginning with `/`; empty if the whole URL is a secret. Every argument to which it
    /// refers should be present in every call.
    pub path: Template,
    /// The query: first that of the URL, then `query`.
    pub query: Vec<QueryPair>,
}

/// Where a request goes. No value of a call chooses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlOrigin {
    /// Scheme, host and port: `https://tickets.example:8443`.
    Literal(String),
    /// The secret with this reference holds the whole URL. It is read and checked in each call, and
    /// no part of it is shown.
    Secret(Reference),
}

impl fmt::Display for UrlOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(origin) => f.write_str(origin),
            Self::Secret(reference) => reference.fmt(f),
        }
    }
}

impl Serialize for UrlOrigin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One `name=value` pair of a query. It is omitted if it refers to an absent optional value. A
/// value that is a single reference to a list becomes one pair for each item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueryPair {
    /// The name, percent-encoded.
    pub name: String,
    /// The value, with percent-encoded literals; `None` for a name without `=`.
    pub value: Option<Template>,
}

/// The credentials of a request. They do not depend on arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpAuth {
    /// `Authorization: Bearer …`.
    Bearer(Template),
    /// `Authorization: Basic …`, with a user name and a password.
    Basic {
        /// The user name.
        user: Template,
        /// The password.
        password: Template,
    },
    /// A header that the service defines.
    Header {
        /// Its name.
        name: String,
        /// Its value.
        value: Template,
    },
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpBody {
    /// JSON.
    Json(JsonTemplate),
    /// A form, `application/x-www-form-urlencoded`; fields are omitted and repeated like the pairs
    /// of a query.
    Form(Vec<(String, Template)>),
    /// Text.
    Text(Template),
}

/// JSON with references in strings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonTemplate {
    /// A number, a boolean or null.
    Scalar(Value),
    /// A string. If it is a single reference, it becomes the value itself, with its JSON type.
    Text(Template),
    /// A list; items that refer to an absent optional value are omitted.
    List(Vec<JsonTemplate>),
    /// An object; members that refer to an absent optional value are omitted.
    Object(BTreeMap<String, JsonTemplate>),
}

impl HttpSpec {
    /// All references of the request.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        let mut templates = vec![&self.url.path];
        templates.extend(self.url.query.iter().filter_map(|pair| pair.value.as_ref()));
        templates.extend(self.headers.values());
        match &self.auth {
            Some(HttpAuth::Bearer(value) | HttpAuth::Header { value, .. }) => templates.push(value),
            Some(HttpAuth::Basic { user, password }) => templates.extend([user, password]),
            None => {}
        }
        match &self.body {
            Some(HttpBody::Json(json)) => json.collect(&mut templates),
            Some(HttpBody::Form(fields)) => {
                templates.extend(fields.iter().map(|(_, value)| value));
            }
            Some(HttpBody::Text(text)) => templates.push(text),
            None => {}
        }
        let origin = match &self.url.origin {
            UrlOrigin::Literal(_) => None,
            UrlOrigin::Secret(reference) => Some(reference),
        };
        origin.into_iter().chain(templates.into_iter().flat_map(Template::references))
    }
}

impl JsonTemplate {
    fn collect<'t>(&'t self, templates: &mut Vec<&'t Template>) {
        match self {
            Self::Scalar(_) => {}
            Self::Text(text) => templates.push(text),
            Self::List(items) => items.iter().for_each(|item| item.collect(templates)),
            Self::Object(members) => {
                for member in members.values() {
                    member.collect(templates);
                }
            }
        }
    }
}

/// Serializes ranges as text.
fn as_texts<S: Serializer>(ranges: &[IpNet], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ranges.iter().map(ToString::to_string))
}
