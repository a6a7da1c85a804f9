//! Asking a server for its tools, within bounds.

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

/// More tools of one server are not taken; how many are left out is told ([`UpstreamStatus`]).
///
/// [`UpstreamStatus`]: crate::upstream::UpstreamStatus
pub const UPSTREAM_TOOLS_MAX: usize = 5_000;
/// Nor are more pages asked for: a server may say that there is always one more.
const PAGES_MAX: usize = 200;

/// What a server lists.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// Its tools, as it describes them.
    pub(crate) tools: Vec<Value>,
    /// How many more it named that are not taken. There may be further ones that nobody asked for.
    pub(crate) left_out: usize,
}

/// Why there is no list.
#[derive(Debug)]
pub(crate) enum NoList {
    /// The server answered, and not with a list.
    Refused(Failure),
    /// It does not answer.
    Silent(Failure),
}

/// The tools of a server, as it describes them.
pub(crate) async fn list(
    peer: &Peer<RoleClient>,
    limit: Duration,
    confidential: &Confidential,
) -> Result<Listed, NoList> {
    timeout(limit, pages(peer, confidential)).await.unwrap_or_else(|_| {
        let reason = format!("it did not list its tools within {limit:?}");
        Err(NoList::Silent(Failure::new(reason)))
    })
}

async fn pages(peer: &Peer<RoleClient>, confidential: &Confidential) -> Result<Listed, NoList> {
    let mut all = Listed::default();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let params = Some(PaginatedRequestParams::default().with_cursor(cursor));
        let request = ListToolsRequest { params, ..ListToolsRequest::default() };
        let answer = peer.send_request(ClientRequest::ListToolsRequest(request)).await;
        let page = match answer {
            Ok(ServerResult::ListToolsResult(page)) => serde_json::to_value(page).ok(),
            // One tool that is not as it should be makes the whole page another thing.
            Ok(ServerResult::CustomResult(page)) => Some(page.0),
            Ok(_) => None,
            // It has no tools at all.
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                return Ok(all);
            }
            Err(ServiceError::McpError(error)) => {
                let failure = Failure::new("it refused to list its tools");
                return Err(NoList::Refused(failure.detail(&error.message, confidential)));
            }
            Err(error) => {
                let failure = Failure::new("it closed the connection");
                return Err(NoList::Silent(failure.detail(&error.to_string(), confidential)));
            }
        };
        let Some(Value::Array(listed)) = page.as_ref().and_then(|page| page.get("tools")) else {
            return Err(NoList::Refused(Failure::new("its list of tools cannot be read")));
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
    // A page more was offered, and not asked for.
    all.left_out += 1;
    Ok(all)
}
