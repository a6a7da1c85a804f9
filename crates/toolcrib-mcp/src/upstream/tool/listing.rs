//! Lists the tools of a server, within bounds.

use std::time::Duration;

use rmcp::model::{
    ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams, ServerResult,
};
use rmcp::service::ServiceError;
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use tokio::time::timeout;

use crate::upstream::connection::failure::Failure;
use crate::upstream::review::confidential::Confidential;

/// The number of tools of one server that are used; [`UpstreamStatus`] says how many are left out.
///
/// [`UpstreamStatus`]: crate::upstream::UpstreamStatus
pub const UPSTREAM_TOOLS_MAX: usize = 5_000;
/// The number of pages that are requested: a server may always announce one more.
const PAGES_MAX: usize = 200;

/// The tools that a server lists.
#[derive(Debug, Default)]
pub(crate) struct ToolListing {
    /// The tools as the server describes them.
    pub(crate) tools: Vec<Value>,
    /// A lower bound of how many more tools it has: the pages that were not requested are not
    /// counted.
    pub(crate) left_out: usize,
}

/// Why there is no list.
#[derive(Debug)]
pub(crate) enum ListingError {
    /// The server answered, but not with a list.
    Refused(Failure),
    /// The server does not answer.
    Silent(Failure),
}

/// Lists the tools of a server as it describes them.
pub(crate) async fn list(
    peer: &Peer<RoleClient>,
    limit: Duration,
    confidential: &Confidential,
) -> Result<ToolListing, ListingError> {
    timeout(limit, pages(peer, confidential)).await.unwrap_or_else(|_| {
        let reason = format!("it did not list its tools within {limit:?}");
        Err(ListingError::Silent(Failure::new(reason)))
    })
}

async fn pages(
    peer: &Peer<RoleClient>,
    confidential: &Confidential,
) -> Result<ToolListing, ListingError> {
    let mut all = ToolListing::default();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let params = Some(PaginatedRequestParams::default().with_cursor(cursor));
        let request = ListToolsRequest { params, ..ListToolsRequest::default() };
        let answer = peer.send_request(ClientRequest::ListToolsRequest(request)).await;
        let page = match answer {
            Ok(ServerResult::ListToolsResult(page)) => serde_json::to_value(page).ok(),
            // One malformed tool makes the library read the whole page as a custom result.
            Ok(ServerResult::CustomResult(page)) => Some(page.0),
            Ok(_) => None,
            // The server has no tools at all.
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                return Ok(all);
            }
            Err(ServiceError::McpError(error)) => {
                let failure = Failure::new("it refused to list its tools");
                return Err(ListingError::Refused(failure.detail(&error.message, confidential)));
            }
            Err(error) => {
                let failure = Failure::new("it closed the connection");
                return Err(ListingError::Silent(failure.detail(&error.to_string(), confidential)));
            }
        };
        let Some(Value::Array(listed)) = page.as_ref().and_then(|page| page.get("tools")) else {
            return Err(ListingError::Refused(Failure::new("its list of tools cannot be read")));
        };
        let room = UPSTREAM_TOOLS_MAX.saturating_sub(all.tools.len());
        all.tools.extend(listed.iter().take(room).cloned());
        all.left_out += listed.len().saturating_sub(room);
        cursor = page
            .as_ref()
            .and_then(|page| page.get("nextCursor"))
            .and_then(Value::as_str)
            .map(str::to_owned);
        if cursor.is_none() || all.left_out > 0 {
            return Ok(all);
        }
    }
    // One more page was offered and not requested.
    all.left_out += 1;
    Ok(all)
}
