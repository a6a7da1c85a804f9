//! Definitions as MCP tools, converted once for all clients that see the same tools.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use rmcp::model::{
    ErrorData, JsonObject, ListToolsResult, PaginatedRequestParams, Tool, ToolAnnotations,
};
use serde_json::Value;
use toolcrib_core::Turn;
use toolcrib_tool::{Icon, ToolDefinition};
use toolcrib_wire::{McpData, mcp_output_schema};

use crate::catalog::paging::page;
use crate::fast_path;

/// The tool list that clients see; the form of each revision is built on first use.
pub(crate) struct ToolList {
    /// The number of tools on a page; 0 for all.
    page_size: usize,
    // Holds definitions instead of a turn: a cached list must not keep retired tools alive.
    definitions: Vec<Arc<ToolDefinition>>,
    objects: ListForm,
    any_json: ListForm,
    repeating: OnceLock<BTreeSet<String>>,
}

/// The tools in the form of one revision.
#[derive(Default)]
struct ListForm {
    tools: OnceLock<Vec<Tool>>,
    /// The first page as JSON text, if it can be written.
    written: OnceLock<Option<Bytes>>,
}

impl ToolList {
    /// The tools in the order of the turn's definitions: by name.
    pub(crate) fn tools(&self, data_form: McpData) -> &[Tool] {
        self.shape(data_form).tools.get_or_init(|| {
            self.definitions.iter().map(|definition| tool(definition, data_form)).collect()
        })
    }

    /// The requested page as `rmcp` sends it.
    pub(crate) fn page(
        &self,
        data_form: McpData,
        request: Option<&PaginatedRequestParams>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools(data_form);
        let page = page(tools, |tool| &tool.name, request, self.page_size, "tools")?;
        let mut result = ListToolsResult::with_all_items(page.entries.to_vec());
        result.next_cursor = page.next;
        Ok(result)
    }

    /// The first page as JSON text, if it can be written.
    pub(crate) fn written(&self, data_form: McpData) -> Option<Bytes> {
        let write = || fast_path::page(self.page(data_form, None).ok()?, data_form);
        self.shape(data_form).written.get_or_init(write).clone()
    }

    /// Whether both look the same to clients.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        let is_same = |(one, two): (&Arc<ToolDefinition>, &Arc<ToolDefinition>)| {
            Arc::ptr_eq(one, two) || one == two || looks_the_same(one, two)
        };
        std::ptr::eq(self, other)
            || (self.definitions.len() == other.definitions.len()
                && self.definitions.iter().zip(&other.definitions).all(is_same))
    }

    /// Whether a tool wants some of its arguments repeated in HTTP headers.
    pub(crate) fn repeats_arguments(&self, name: &str) -> bool {
        let find = || {
            let repeating = self.definitions.iter().filter(|one| repeats(one.input_schema()));
            repeating.map(|one| one.name().to_owned()).collect()
        };
        self.repeating.get_or_init(find).contains(name)
    }

    fn shape(&self, data_form: McpData) -> &ListForm {
        match data_form {
            McpData::Objects => &self.objects,
            McpData::Any => &self.any_json,
        }
    }

    /// The tool with that name.
    pub(crate) fn find(&self, name: &str, data_form: McpData) -> Option<&Tool> {
        let tools = self.tools(data_form);
        let found = tools.binary_search_by(|tool| tool.name.as_ref().cmp(name)).ok()?;
        tools.get(found)
    }
}

/// The lists that a server's clients see, each stored once.
#[derive(Default)]
pub(crate) struct ToolLists(Mutex<Vec<Weak<ToolList>>>);

impl ToolLists {
    /// The list of these definitions.
    fn get(&self, definitions: &[Arc<ToolDefinition>], page_size: usize) -> Arc<ToolList> {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.retain(|list| list.strong_count() > 0);
        let known = lists.iter().filter_map(Weak::upgrade).find(|list| {
            let known = &list.definitions;
            known.len() == definitions.len()
                && known.iter().zip(definitions).all(|(known, one)| Arc::ptr_eq(known, one))
        });
        known.unwrap_or_else(|| {
            let list = Arc::new(ToolList {
                page_size,
                definitions: definitions.to_vec(),
                objects: ListForm::default(),
                any_json: ListForm::default(),
                repeating: OnceLock::new(),
            });
            lists.push(Arc::downgrade(&list));
            list
        })
    }
}

/// The list of the latest registry generation that one client has requested.
#[derive(Default)]
pub(crate) struct ToolListCache(ArcSwapOption<LatestList>);

struct LatestList {
    generation: u64,
    list: Arc<ToolList>,
}

impl ToolListCache {
    /// The list for a turn, shared with other clients where possible.
    pub(crate) fn get(&self, turn: &Turn, all: &ToolLists, page_size: usize) -> Arc<ToolList> {
        let generation = turn.generation();
        if let Some(seen) = &*self.0.load()
            && seen.generation == generation
        {
            return Arc::clone(&seen.list);
        }
        let list = all.get(turn.definitions(), page_size);
        self.0.store(Some(Arc::new(LatestList { generation, list: Arc::clone(&list) })));
        list
    }
}

/// Whether two definitions look the same to clients.
fn looks_the_same(one: &ToolDefinition, other: &ToolDefinition) -> bool {
    // The MCP tool contains everything that clients see.
    tool(one, McpData::Any) == tool(other, McpData::Any)
}

/// Converts one definition to an MCP tool.
fn tool(definition: &ToolDefinition, data_form: McpData) -> Tool {
    let hints = definition.annotations();
    let annotations = ToolAnnotations::from_raw(
        definition.title().map(str::to_owned),
        Some(hints.read_only),
        Some(hints.may_destroy()),
        Some(hints.idempotent),
        Some(hints.open_world),
    );
    let mut tool = Tool::new_with_raw(
        definition.name().to_owned(),
        Some(Cow::Owned(definition.description().to_owned())),
        object(definition.input_schema()),
    )
    .with_annotations(annotations);
    tool.title = definition.title().map(str::to_owned);
    // Both types write icons as the protocol does.
    tool.icons = (!definition.icons().is_empty())
        .then(|| definition.icons().iter().map(Icon::to_value).collect::<Value>())
        .and_then(|icons| serde_json::from_value(icons).ok());
    tool.output_schema =
        definition.output_schema().map(|schema| Arc::new(mcp_output_schema(schema, data_form)));
    tool
}

/// Whether the keyword that asks for it occurs anywhere, even with another meaning.
fn repeats(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => {
            object.contains_key("x-mcp-header") || object.values().any(repeats)
        }
        Value::Array(items) => items.iter().any(repeats),
        _ => false,
    }
}

/// The root of an input schema, which the definition's builder has checked to be an object.
fn object(schema: &Value) -> JsonObject {
    schema.as_object().cloned().unwrap_or_default()
}
