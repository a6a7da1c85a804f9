//! The resources that servers list, for clients of this one.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ListResourcesRequest, PaginatedRequestParams, Resource as Listed, ServerResult,
};
use rmcp::{Peer, RoleClient};
use tokio::time::timeout;
use toolcrib_core::masking::LiveMask;
use toolcrib_tool::visible;

use crate::catalog::{Address, CatalogText, Resource, ResourceContent};

/// More resources of one server are not listed.
const RESOURCES_MAX: usize = 1_000;
/// Nor are more pages asked for.
const PAGES_MAX: usize = 50;
/// Longer addresses are left out, in bytes.
const ADDRESS_MAX: usize = 2_048;
/// The longest description, in characters.
const DESCRIPTION_MAX: usize = 1_000;

/// The resources of a server; none if it has none, or does not list them in time.
pub(crate) async fn list(peer: &Peer<RoleClient>, limit: Duration) -> Vec<Listed> {
    let has_some = peer.peer_info().is_some_and(|server| server.capabilities.resources.is_some());
    if !has_some {
        return Vec::new();
    }
    timeout(limit, pages(peer)).await.unwrap_or_default()
}

async fn pages(peer: &Peer<RoleClient>) -> Vec<Listed> {
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let params = Some(PaginatedRequestParams::default().with_cursor(cursor));
        let request = ListResourcesRequest { params, ..ListResourcesRequest::default() };
        let answer = peer.send_request(ClientRequest::ListResourcesRequest(request)).await;
        let Ok(ServerResult::ListResourcesResult(page)) = answer else { break };
        let room = RESOURCES_MAX.saturating_sub(all.len());
        all.extend(page.resources.into_iter().take(room));
        cursor = page.next_cursor;
        if cursor.is_none() || all.len() == RESOURCES_MAX {
            break;
        }
    }
    all
}

/// A listed resource, as clients here are shown it: without secrets and hidden characters.
pub(crate) fn shown(upstream: &str, listed: &Listed, mask: &LiveMask) -> Option<Resource> {
    let text = |text: &str| {
        let text = mask.text(text.to_owned());
        visible(&text).replace(['\n', '\r', '\t'], " ")
    };
    let is_usable = listed.uri.len() <= ADDRESS_MAX
        && text(&listed.uri) == listed.uri
        // A template would match further addresses.
        && !Address::new(listed.uri.as_str()).is_template();
    if !is_usable {
        return None;
    }
    let described = listed.description.as_deref().map(text).unwrap_or_default();
    let described: String = described.chars().take(DESCRIPTION_MAX).collect();
    Some(Resource {
        address: Address::new(listed.uri.as_str()),
        name: text(&listed.name),
        title: listed.title.as_deref().map(text),
        icons: Vec::new(),
        description: Some(format!("From the MCP server `{upstream}`: {described}")),
        mime_type: listed.mime_type.as_deref().map_or_else(|| "text/plain".to_owned(), text),
        content: ResourceContent::Text(CatalogText::default()),
        suggest: BTreeMap::new(),
    })
}
