//! Checked HTTP tools: a request as far as it is known before a call.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;
use toolcrib_net::IpNet;

use crate::template::{Reference, Template};

/// A request, and what of its answer counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HttpSpec {
    /// The method.
    pub method: HttpMethod,
    /// Where it goes.
    pub url: UrlSpec,
    /// Headers with their values; names differ in more than case.
    pub headers: BTreeMap<String, Template>,
    /// The credentials, for the host of the URL and nobody else.
    pub auth: Option<HttpAuth>,
    /// The body.
    pub body: Option<HttpBody>,
    /// Statuses that mean success; empty for every 2xx.
    pub ok_status: Vec<u16>,
    /// A JSON pointer to the part of the answer that is the result.
    pub select: Option<String>,
    /// Ranges of addresses that may be connected to although they are not public.
    #[serde(serialize_with = "as_texts")]
    pub allow_private: Vec<IpNet>,
    /// Bytes of the result that are kept, after `select`. Default 64 KiB.
    pub output_bytes: usize,
    /// Bytes of the answer that are read. Default 5 MiB.
    pub transfer_bytes: usize,
}

/// Methods of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// Read.
    Get,
    /// Read the status only.
    Head,
    /// Whatever the server makes of it.
    Post,
    /// Replace.
    Put,
    /// Change a part.
    Patch,
    /// Remove.
    Delete,
}

impl HttpMethod {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Get, Self::Head, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// The word in the request, for example `GET`.
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

/// A URL in parts. Everything an author wrote is percent-encoded already, so that only values are
/// left to be encoded in a call, each as one component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UrlSpec {
    /// Scheme, host and port, always as written: `https://tickets.example:8443`.
    pub origin: String,
    /// The path, from `/` on. Every argument it refers to should be there in every call.
    pub path: Template,
    /// The query: that of the URL, then that of `query`.
    pub query: Vec<QueryPair>,
}

/// One `name=value` of a query. It drops out as a whole if it refers to an absent optional; a value
/// that is one reference to a list makes a pair per item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueryPair {
    /// The name, percent-encoded.
    pub name: String,
    /// The value, its literals percent-encoded; none for a name without `=`.
    pub value: Option<Template>,
}

/// Who the request says it is from. No argument is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpAuth {
    /// `Authorization: Bearer …`.
    Bearer(Template),
    /// `Authorization: Basic …`, of a user name and a password.
    Basic {
        /// The user name.
        user: Template,
        /// The password.
        password: Template,
    },
    /// A header of the service's own.
    Header {
        /// Its name.
        name: String,
        /// Its value.
        value: Template,
    },
}

/// What is sent along.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpBody {
    /// JSON.
    Json(JsonTemplate),
    /// A form, `application/x-www-form-urlencoded`; fields drop out and repeat like those of a query.
    Form(Vec<(String, Template)>),
    /// Text.
    Text(Template),
}

/// JSON with references in its strings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonTemplate {
    /// Anything but a string, a list or an object.
    Scalar(Value),
    /// A string. One that is exactly one reference is the value itself, with its JSON type.
    Text(Template),
    /// A list; items that refer to an absent optional drop out.
    List(Vec<JsonTemplate>),
    /// An object; members that refer to an absent optional drop out.
    Object(BTreeMap<String, JsonTemplate>),
}

impl HttpSpec {
    /// Every reference, wherever it stands.
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
        templates.into_iter().flat_map(Template::references)
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

/// Ranges as they are written.
fn as_texts<S: Serializer>(ranges: &[IpNet], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ranges.iter().map(ToString::to_string))
}
