//! Reads resources that an upstream's tools link to.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ErrorCode, ReadResourceRequest, ReadResourceRequestParams, ServerResult,
};
use rmcp::service::ServiceError;
use tokio::time::timeout;
use toolcrib_core::masking::LiveMask;
use toolcrib_tool::Content;

use super::result::file;
use crate::catalog::Resource;
use crate::upstream::connection::link::Link;
use crate::upstream::connection::pending::PendingRequest;
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

    /// The resources that upstreams offer, each with the name of its upstream, sorted by address.
    pub(crate) fn offered(&self) -> Vec<(String, Resource)> {
        self.0.upgrade().map(|upstreams| upstreams.resources()).unwrap_or_default()
    }

    /// Reads the contents at an upstream's address: texts, each marked as the upstream's, and
    /// bytes.
    pub(crate) async fn read(
        &self,
        upstream: &str,
        uri: &str,
    ) -> Result<Vec<Content>, UnreadResource> {
        let of = |upstreams: Arc<Inner>| Some((upstreams.link(upstream)?, upstreams.mask()));
        let Some((link, mask)) = self.0.upgrade().and_then(of) else {
            let gone = format!("the MCP server `{upstream}` is no longer used here");
            return Err(UnreadResource::Failed(gone));
        };
        match timeout(LIMIT, asked(&link, uri, &mask)).await {
            Ok(read) => read,
            Err(_) => Err(UnreadResource::Failed(format!(
                "the MCP server `{upstream}` did not answer within {} s",
                LIMIT.as_secs()
            ))),
        }
    }
}

async fn asked(
    link: &Arc<Link>,
    uri: &str,
    mask: &LiveMask,
) -> Result<Vec<Content>, UnreadResource> {
    let upstream = &link.upstream;
    let source = TextSource { upstream, mask: &|text| mask.text(text) };
    let live = link.live().map_err(|error| UnreadResource::Failed(error.to_string()))?;
    let params = ReadResourceRequestParams::new(uri);
    let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
    // A question during the read must not reach the client of another call.
    let mut questions = live.questions.begin_read();
    let mut pending =
        PendingRequest::ask(link, &live, request).await.map_err(|error| failed(&source, &error))?;
    questions.sent(pending.progress_token());
    let answer = pending.answer().await;
    questions.answered();
    match answer.map_err(|error| failed(&source, &error))? {
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
