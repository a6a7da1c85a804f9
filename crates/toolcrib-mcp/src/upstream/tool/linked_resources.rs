//! Reads resources that an upstream's tools link to, and what an upstream offers besides tools.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ErrorCode, GetPromptRequest, GetPromptRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult,
};
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;
use toolcrib_core::masking::LiveMask;
use toolcrib_core::spill::Owner;
use toolcrib_tool::Content;

use super::result::file;
use crate::catalog::linked_resources::META_UNTRUSTED;
use crate::upstream::connection::link::Link;
use crate::upstream::connection::pending::PendingRequest;
use crate::upstream::offers::{OfferedPrompt, UpstreamOffers};
use crate::upstream::set::Inner;
use crate::upstream::tool::untrusted_text::TextSource;

/// How long a server may take to answer.
const LIMIT: Duration = Duration::from_secs(30);
/// How many bytes of text and data are handed on of one resource.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// Reads resources that results of upstream tools link to ([`Upstreams::linked`]). It does not keep
/// connections open.
///
/// [`Upstreams::linked`]: crate::upstream::Upstreams::linked
#[derive(Clone)]
pub struct LinkedResources(Weak<Inner>);

/// Why a resource was not read.
#[derive(Debug)]
pub(crate) enum UnreadResource {
    /// The server has no resource at that address.
    NotFound,
    /// Any other reason, in words for the client.
    Failed(String),
}

impl LinkedResources {
    pub(in crate::upstream) fn of(upstreams: &Arc<Inner>) -> Self {
        Self(Arc::downgrade(upstreams))
    }

    /// What upstreams offer besides tools.
    pub(crate) fn offers(&self) -> UpstreamOffers {
        self.0.upgrade().map(|upstreams| upstreams.offers()).unwrap_or_default()
    }

    /// A receiver that is notified when the result of [`offers`](Self::offers) may have changed.
    pub(crate) fn changes(&self) -> Option<watch::Receiver<()>> {
        Some(self.0.upgrade()?.offer_changes())
    }

    /// Asks an upstream on behalf of `reader` for the messages of a prompt: `description` and `messages`,
    /// with secrets masked.
    pub(crate) async fn prompt(
        &self,
        reader: &Owner,
        prompt: &OfferedPrompt,
        arguments: &BTreeMap<String, String>,
    ) -> Result<Value, UnreadResource> {
        let upstream = prompt.upstream.as_str();
        let (link, mask) = self.link_to(upstream)?;
        let asked = prompt_of(&link, reader, &prompt.original, arguments, &mask);
        timeout(LIMIT, asked).await.unwrap_or_else(|_| Err(unanswered(upstream)))
    }

    fn link_to(&self, upstream: &str) -> Result<(Arc<Link>, LiveMask), UnreadResource> {
        let of = |upstreams: Arc<Inner>| Some((upstreams.link(upstream)?, upstreams.mask()));
        self.0.upgrade().and_then(of).ok_or_else(|| {
            let gone = format!("the MCP server `{upstream}` is no longer used here");
            UnreadResource::Failed(gone)
        })
    }

    /// Reads the contents at an upstream's address on behalf of `reader`: texts, each marked as the upstream's, and
    /// bytes.
    pub(crate) async fn read(
        &self,
        reader: &Owner,
        upstream: &str,
        uri: &str,
    ) -> Result<Vec<Content>, UnreadResource> {
        let (link, mask) = self.link_to(upstream)?;
        let read = timeout(LIMIT, asked(&link, reader, uri, &mask)).await;
        read.unwrap_or_else(|_| Err(unanswered(upstream)))
    }
}

fn unanswered(upstream: &str) -> UnreadResource {
    UnreadResource::Failed(format!(
        "the MCP server `{upstream}` did not answer within {} s",
        LIMIT.as_secs()
    ))
}

/// Sends a request that belongs to no call of a tool.
async fn sent(
    link: &Arc<Link>,
    reader: &Owner,
    request: ClientRequest,
    source: &TextSource<'_>,
) -> Result<ServerResult, UnreadResource> {
    let live = link.live().map_err(|error| UnreadResource::Failed(error.to_string()))?;
    // A question during the request must not reach the client of another call.
    let questions = live.questions.begin_read(reader);
    let mut pending =
        PendingRequest::ask(link, &live, request).await.map_err(|error| failed(source, &error))?;
    questions.sent(pending.progress_token());
    pending.answer().await.map_err(|error| failed(source, &error))
}

async fn prompt_of(
    link: &Arc<Link>,
    reader: &Owner,
    name: &str,
    arguments: &BTreeMap<String, String>,
    mask: &LiveMask,
) -> Result<Value, UnreadResource> {
    let upstream = &link.upstream;
    let source = TextSource { upstream, mask: &|text| mask.text(text) };
    let given = arguments.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let params = GetPromptRequestParams::new(name).with_arguments(given.collect());
    let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
    let failure = |what: &str| {
        UnreadResource::Failed(format!("the prompt of the MCP server `{upstream}` {what}"))
    };
    let ServerResult::GetPromptResult(prompt) = sent(link, reader, request, &source).await? else {
        return Err(failure("cannot be read"));
    };
    let shown = |value: &Value| serde_json::to_string(value).map_or(usize::MAX, |text| text.len());
    let messages = serde_json::to_value(prompt.messages).map_err(|_| failure("cannot be read"))?;
    if shown(&messages) > BYTES_MAX {
        return Err(failure(&format!("is longer than {BYTES_MAX} bytes")));
    }
    let mut messages = visible(&source, messages);
    for message in messages.as_array_mut().into_iter().flatten() {
        if let Some(Value::Object(content)) = message.get_mut("content") {
            content.insert("_meta".to_owned(), json!({META_UNTRUSTED: upstream}));
        }
    }
    let description = prompt.description.map(|text| source.line(&text));
    Ok(json!({"description": description.unwrap_or_default(), "messages": messages}))
}

/// A value without secrets and hidden characters.
fn visible(source: &TextSource<'_>, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(source.visible(&text)),
        Value::Array(items) => items.into_iter().map(|item| visible(source, item)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, member)| (key, visible(source, member))).collect()
        }
        other => other,
    }
}

async fn asked(
    link: &Arc<Link>,
    reader: &Owner,
    uri: &str,
    mask: &LiveMask,
) -> Result<Vec<Content>, UnreadResource> {
    let upstream = &link.upstream;
    let source = TextSource { upstream, mask: &|text| mask.text(text) };
    let params = ReadResourceRequestParams::new(uri);
    let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
    match sent(link, reader, request, &source).await? {
        ServerResult::ReadResourceResult(read) => {
            let parts: Vec<_> = read.contents.into_iter().map(|one| file(&source, one)).collect();
            if parts.iter().map(bytes).sum::<usize>() > BYTES_MAX {
                return Err(UnreadResource::Failed(format!(
                    "the resource of the MCP server `{upstream}` is longer than {BYTES_MAX} bytes"
                )));
            }
            Ok(parts.into_iter().map(|part| said(&source, part)).collect())
        }
        _ => Err(UnreadResource::Failed(format!(
            "the MCP server `{upstream}` answered with something that is not a resource"
        ))),
    }
}

fn failed(source: &TextSource<'_>, error: &ServiceError) -> UnreadResource {
    let upstream = source.upstream;
    match error {
        ServiceError::McpError(error) if error.code == ErrorCode::RESOURCE_NOT_FOUND => {
            UnreadResource::NotFound
        }
        ServiceError::McpError(error) => UnreadResource::Failed(format!(
            "the MCP server `{upstream}` refused to read it (code {})\n{}",
            error.code.0,
            source.marked(&error.message)
        )),
        _ => UnreadResource::Failed(format!(
            "the connection to the MCP server `{upstream}` was lost"
        )),
    }
}

fn bytes(part: &Content) -> usize {
    match part {
        Content::TextFile { text, .. } | Content::Text(text) => text.len(),
        Content::Blob { data, .. } => data.len(),
        _ => 0,
    }
}

/// Marks a text in the text itself, since models read it: resource contents have no other place for
/// it.
fn said(source: &TextSource<'_>, part: Content) -> Content {
    match part {
        Content::TextFile { uri, text, mime_type } => {
            Content::TextFile { uri, text: source.marked(&text), mime_type }
        }
        other => other,
    }
}

impl fmt::Debug for LinkedResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkedResources")
    }
}
