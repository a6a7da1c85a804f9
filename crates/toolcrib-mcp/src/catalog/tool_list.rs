//! Definitions as MCP tools, converted once for all clients that see the same ones.

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

/// What clients see of the tools, each revision's shape made at its first use.
pub(crate) struct ToolList {
    /// How many tools a page has; 0: all.
    page_size: usize,
    // Definitions and no turn: a list in the cache must not keep retired tools alive.
    definitions: Vec<Arc<ToolDefinition>>,
    objects: Shape,
    any_json: Shape,
    repeating: OnceLock<BTreeSet<String>>,
}

/// The tools as a revision takes them.
#[derive(Default)]
struct Shape {
    tools: OnceLock<Vec<Tool>>,
    /// The first page as text, if it can be written.
    written: OnceLock<Option<Bytes>>,
}

impl ToolList {
    /// The tools in the order of the turn's definitions: by name.
    pub(crate) fn tools(&self, takes: McpData) -> &[Tool] {
        self.shape(takes).tools.get_or_init(|| {
            self.definitions.iter().map(|definition| tool(definition, takes)).collect()
        })
    }

    /// The page that is asked for, as `rmcp` sends it.
    pub(crate) fn page(
        &self,
        takes: McpData,
        request: Option<&PaginatedRequestParams>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools(takes);
        let page = page(tools, |tool| &tool.name, request, self.page_size, "tools")?;
        let mut result = ListToolsResult::with_all_items(page.entries.to_vec());
        result.next_cursor = page.next;
        Ok(result)
    }

    /// The first page as it is written, if it can be.
    pub(crate) fn written(&self, takes: McpData) -> Option<Bytes> {
        let write = || fast_path::page(self.page(takes, None).ok()?, takes);
        self.shape(takes).written.get_or_init(write).clone()
    }

    /// Whether clients are shown the same of both.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        let is_same = |(one, two): (&Arc<ToolDefinition>, &Arc<ToolDefinition>)| {
            Arc::ptr_eq(one, two) || one == two || looks_the_same(one, two)
        };
        std::ptr::eq(self, other)
            || (self.definitions.len() == other.definitions.len()
                && self.definitions.iter().zip(&other.definitions).all(is_same))
    }

    /// Whether a tool wants some of its arguments repeated in headers over HTTP.
    pub(crate) fn repeats_arguments(&self, name: &str) -> bool {
        let find = || {
            let repeating = self.definitions.iter().filter(|one| repeats(one.input_schema()));
            repeating.map(|one| one.name().to_owned()).collect()
        };
        self.repeating.get_or_init(find).contains(name)
    }

    fn shape(&self, takes: McpData) -> &Shape {
        match takes {
            McpData::Objects => &self.objects,
            McpData::Any => &self.any_json,
        }
    }

    /// One tool.
    pub(crate) fn find(&self, name: &str, takes: McpData) -> Option<&Tool> {
        let tools = self.tools(takes);
        let found = tools.binary_search_by(|tool| tool.name.as_ref().cmp(name)).ok()?;
        tools.get(found)
    }
}

/// The lists that the clients of a server see, each kept once.
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
                objects: Shape::default(),
                any_json: Shape::default(),
                repeating: OnceLock::new(),
            });
            lists.push(Arc::downgrade(&list));
            list
        })
    }
}

/// The list of the newest generation that one client has asked for.
#[derive(Default)]
pub(crate) struct ToolListCache(ArcSwapOption<Seen>);

struct Seen {
    generation: u64,
    list: Arc<ToolList>,
}

impl ToolListCache {
    /// The turn's list, of those that are kept for all clients.
    pub(crate) fn get(&self, turn: &Turn, all: &ToolLists, page_size: usize) -> Arc<ToolList> {
        let generation = turn.generation();
        if let Some(seen) = &*self.0.load()
            && seen.generation == generation
        {
            return Arc::clone(&seen.list);
        }
        let list = all.get(turn.definitions(), page_size);
        self.0.store(Some(Arc::new(Seen { generation, list: Arc::clone(&list) })));
        list
    }
}

/// Whether clients are shown the same of two definitions.
fn looks_the_same(one: &ToolDefinition, other: &ToolDefinition) -> bool {
    // Whatever is shown is in here.
    tool(one, McpData::Any) == tool(other, McpData::Any)
}

/// One definition as an MCP tool.
fn tool(definition: &ToolDefinition, takes: McpData) -> Tool {
    let hints = definition.annotations();
    let annotations = ToolAnnotations::from_raw(
        definition.title().map(str::to_owned),
        Some(hints.read_only),
        Some(hints.destructive),
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
    // Both write icons as the protocol does.
    tool.icons = (!definition.icons().is_empty())
        .then(|| definition.icons().iter().map(Icon::to_value).collect::<Value>())
        .and_then(|icons| serde_json::from_value(icons).ok());
    tool.output_schema =
        definition.output_schema().map(|schema| Arc::new(mcp_output_schema(schema, takes)));
    tool
}

/// Whether the word that asks for it stands anywhere, be it in another meaning.
fn repeats(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => {
            object.contains_key("x-mcp-header") || object.values().any(repeats)
        }
        Value::Array(items) => items.iter().any(repeats),
        _ => false,
    }
}

/// An input schema's root, which the definition's builder has made sure is an object.
fn object(schema: &Value) -> JsonObject {
    schema.as_object().cloned().unwrap_or_default()
}
