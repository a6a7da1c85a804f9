//! Outputs that were too long for a model, as resources: whole, or from an offset on.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rmcp::model::ErrorData;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolcrib_core::Turn;
use toolcrib_core::spill::{Handle, Page, READ_OUTPUT_CHARS, SpillError, SpillFormat};
use toolcrib_wire::MCP_OUTPUT_URI;

use crate::catalog::requests::{complete, not_found};
use crate::catalog::{Address, CatalogText, Resource, ResourceContent};

/// The templates of their addresses. The outputs themselves are not listed: a truncated result
/// names its own.
pub(crate) static TEMPLATES: LazyLock<[Resource; 2]> = LazyLock::new(|| {
    let template = |rest: &str, name: &str, description: String| Resource {
        address: Address::new(format!("{MCP_OUTPUT_URI}{{handle}}{rest}")),
        name: name.to_owned(),
        title: None,
        icons: Vec::new(),
        description: Some(description),
        mime_type: "text/plain".to_owned(),
        content: ResourceContent::Text(CatalogText::default()),
        suggest: BTreeMap::new(),
    };
    let page = format!("{READ_OUTPUT_CHARS} characters of such an output, starting at `offset`");
    [
        template("", "output", "The whole of an output that was too long".to_owned()),
        template("/{offset}", "output_page", page),
    ]
});

/// Reads an address, as `resources/read` answers; `None` if it is not the address of an output.
pub(crate) async fn read<T: DeserializeOwned>(
    turn: &Turn,
    uri: &str,
) -> Option<Result<T, ErrorData>> {
    let rest = uri.strip_prefix(MCP_OUTPUT_URI)?;
    let (handle, offset) = match rest.split_once('/') {
        None => (rest, None),
        Some((handle, offset)) => (handle, Some(offset.parse::<u32>())),
    };
    let page = match (Handle::parse(handle), offset) {
        (Some(handle), None) => turn.kept_output(&handle, 0, usize::MAX).await,
        (Some(handle), Some(Ok(offset))) => {
            turn.kept_output(&handle, offset as usize, READ_OUTPUT_CHARS).await
        }
        _ => Err(SpillError::NotFound),
    };
    Some(match page {
        Ok(page) => complete(json!({"contents": [contents(uri, &page)]})),
        Err(SpillError::NotFound) => Err(not_found(uri)),
        Err(error @ SpillError::Expired) => {
            let data = json!({"uri": uri});
            Err(ErrorData::resource_not_found(error.to_string(), Some(data)))
        }
        Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
    })
}

fn contents(uri: &str, page: &Page) -> Value {
    let mime_type = match page.format {
        SpillFormat::Json if page.offset == 0 && page.next_offset().is_none() => "application/json",
        // A part of a JSON text is not valid JSON.
        _ => "text/plain",
    };
    let mut meta = json!({"toolcrib/total_chars": page.total_chars});
    if let Some(next) = page.next_offset() {
        meta["toolcrib/next_offset"] = next.into();
    }
    if page.omitted_bytes > 0 {
        meta["toolcrib/omitted_bytes"] = page.omitted_bytes.into();
    }
    json!({"uri": uri, "mimeType": mime_type, "text": page.text, "_meta": meta})
}
