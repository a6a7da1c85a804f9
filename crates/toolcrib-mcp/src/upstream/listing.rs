//! Asking a server for its tools, within bounds.

use std::time::Duration;

use rmcp::model::{
    ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams, ServerResult,
};
use rmcp::service::ServiceError;
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use tokio::time::timeout;

use super::confidential::Confidential;
use super::failure::Failure;

/// More tools of one server are not taken.
pub(crate) const TOOLS_MAX: usize = 5_000;
/// Nor are more pages asked for: a server may say that there is always one more.
const PAGES_MAX: usize = 200;

/// Why there is no list.
#[derive(Debug)]
pub(crate) enum NoList {
    /// The server answered, and not with a list.
    Refused(Failure),
    /// It does not answer.
    Silent(Failure),
}

/// All tools of a server, as it describes them.
pub(crate) async fn list(
    peer: &Peer<RoleClient>,
    limit: Duration,
    confidential: &Confidential,
) -> Result<Vec<Value>, NoList> {
    timeout(limit, pages(peer, confidential)).await.unwrap_or_else(|_| {
        let reason = format!("it did not list its tools within {limit:?}");
        Err(NoList::Silent(Failure::new(reason)))
    })
}

async fn pages(peer: &Peer<RoleClient>, confidential: &Confidential) -> Result<Vec<Value>, NoList> {
    let mut tools = Vec::new();
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
                return Ok(tools);
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
        let room = TOOLS_MAX.saturating_sub(tools.len());
        tools.extend(listed.iter().take(room).cloned());
        cursor = page
            .as_ref()
            .and_then(|page| page.get("nextCursor"))
            .and_then(Value::as_str)
            .map(str::to_owned);
        if cursor.is_none() || listed.len() > room {
            break;
        }
    }
    Ok(tools)
}
