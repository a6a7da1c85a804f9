//! What links of an upstream's tools lead to, read from it.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ErrorCode, ReadResourceRequest, ReadResourceRequestParams, ServerResult,
};
use rmcp::service::ServiceError;
use tokio::time::timeout;
use toolcrib_tool::Content;

use super::result::file;
use crate::upstream::connection::link::Link;
use crate::upstream::connection::pending::Pending;
use crate::upstream::set::Inner;
use crate::upstream::tool::untrusted_text::marked;

/// How long a server may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The most that is handed on of one resource, in bytes of text and data.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// Reads what links in results of upstreams' tools lead to ([`Upstreams::linked`]). It keeps no
/// connection open.
///
/// [`Upstreams::linked`]: crate::upstream::Upstreams::linked
#[derive(Clone)]
pub struct LinkedResources(Weak<Inner>);

/// Why a resource was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The server knows of none at that address.
    NotFound,
    /// Anything else, in words for whoever asked.
    Failed(String),
}

impl LinkedResources {
    pub(in crate::upstream) fn of(upstreams: &Arc<Inner>) -> Self {
        Self(Arc::downgrade(upstreams))
    }

    /// What an upstream has at an address: texts, each marked as the upstream's, and bytes.
    pub(crate) async fn read(&self, upstream: &str, uri: &str) -> Result<Vec<Content>, Unread> {
        let link = self.0.upgrade().and_then(|upstreams| upstreams.link(upstream));
        let Some(link) = link else {
            let gone = format!("the MCP server `{upstream}` is not used here any more");
            return Err(Unread::Failed(gone));
        };
        match timeout(LIMIT, asked(&link, uri)).await {
            Ok(read) => read,
            Err(_) => Err(Unread::Failed(format!(
                "the MCP server `{upstream}` did not answer within {} s",
                LIMIT.as_secs()
            ))),
        }
    }
}

async fn asked(link: &Link, uri: &str) -> Result<Vec<Content>, Unread> {
    let upstream = &link.upstream;
    let live = link.live().map_err(|error| Unread::Failed(error.to_string()))?;
    let params = ReadResourceRequestParams::new(uri);
    let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
    let mut pending =
        Pending::ask(link, &live, request).await.map_err(|error| failed(upstream, &error))?;
    match pending.answer().await.map_err(|error| failed(upstream, &error))? {
        ServerResult::ReadResourceResult(read) => {
            let parts: Vec<_> = read.contents.into_iter().map(|one| file(upstream, one)).collect();
            if parts.iter().map(bytes).sum::<usize>() > BYTES_MAX {
                return Err(Unread::Failed(format!(
                    "what the MCP server `{upstream}` has there is longer than {BYTES_MAX} bytes"
                )));
            }
            Ok(parts.into_iter().map(|part| said(upstream, part)).collect())
        }
        _ => Err(Unread::Failed(format!(
            "the MCP server `{upstream}` answered with something that is no resource"
        ))),
    }
}

fn failed(upstream: &str, error: &ServiceError) -> Unread {
    match error {
        ServiceError::McpError(error) if error.code == ErrorCode::RESOURCE_NOT_FOUND => {
            Unread::NotFound
        }
        ServiceError::McpError(error) => Unread::Failed(format!(
            "the MCP server `{upstream}` refused to read it (code {})\n{}",
            error.code.0,
            marked(upstream, &error.message)
        )),
        _ => Unread::Failed(format!("the connection to the MCP server `{upstream}` broke off")),
    }
}

fn bytes(part: &Content) -> usize {
    match part {
        Content::TextFile { text, .. } | Content::Text(text) => text.len(),
        Content::Blob { data, .. } => data.len(),
        _ => 0,
    }
}

/// A text, which models read, marked in itself: nothing stands beside a resource's contents.
fn said(upstream: &str, part: Content) -> Content {
    match part {
        Content::TextFile { uri, text, mime_type } => {
            Content::TextFile { uri, text: marked(upstream, &text), mime_type }
        }
        other => other,
    }
}

impl fmt::Debug for LinkedResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkedResources")
    }
}
