//! Tools that find, describe and call other tools, for clients that cannot handle thousands of
//! tools or do not reload a changed list.
//!
//! They reach the same tools as the turn they are called in: a tool outside its toolset cannot be
//! found, described or called through them.

mod call;
mod describe;
mod search;

use std::sync::Arc;

use toolcrib_tool::{Layer, Source, Tool, ToolDefinition, ToolEntry};

/// The name of the tool that finds tools by words.
pub const TOOL_SEARCH: &str = "tool_search";

/// The name of the tool that describes a tool.
pub const TOOL_DESCRIBE: &str = "tool_describe";

/// The name of the tool that calls a tool by its name.
pub const TOOL_CALL: &str = "tool_call";

/// The category of all three.
const CATEGORY: &str = "agent";

/// The three tools. They are native: manifests and upstream servers cannot take their names, but a
/// host can.
///
/// `tool_call` makes a separate nested call with its own checks, policy, approval, limits and audit
/// record. Calls can be nested up to 16 levels.
///
/// ```
/// use serde_json::json;
/// use toolcrib_core::meta::meta_entries;
/// use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, TurnOptions};
/// use toolcrib_tool::{Layer, Source, ToolCall, ToolDefinition, ToolEntry, tool_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolcrib_tool::DefinitionError> {
/// let definition = ToolDefinition::builder("disk_usage").description("Show used space.").build()?;
/// let body = tool_fn(|_: serde_json::Value, _| async { "full" });
/// let source = Source::new(Layer::Host, "doc");
/// let mut builder = RegistryBuilder::new();
/// let _ = builder.register(ToolEntry::new(definition, std::sync::Arc::new(body), source));
/// for entry in meta_entries() {
///     let _ = builder.register(entry);
/// }
/// let executor = Executor::new(Registry::new(builder.build()), ExecutorConfig::default());
///
/// let turn = executor.turn(TurnOptions::default());
/// let found = turn.call(ToolCall::new("1", "tool_search", json!({"query": "disks"}))).await;
/// assert!(found.text().starts_with("disk_usage: Show used space."));
/// let called = turn.call(ToolCall::new("2", "tool_call", json!({"name": "disk_usage"}))).await;
/// assert_eq!(called.text(), "full");
/// # Ok(())
/// # }
/// ```
pub fn meta_entries() -> [ToolEntry; 3] {
    let entry = |definition: &Arc<ToolDefinition>, tool: Arc<dyn Tool>| {
        ToolEntry::new(Arc::clone(definition), tool, Source::new(Layer::Native, "toolcrib-core"))
    };
    [
        entry(&search::DEFINITION, Arc::new(search::ToolSearch)),
        entry(&describe::DEFINITION, Arc::new(describe::ToolDescribe)),
        entry(&call::DEFINITION, Arc::new(call::ToolCaller)),
    ]
}

/// Whether a name is one of theirs, whoever owns it.
fn is_meta(name: &str) -> bool {
    [TOOL_SEARCH, TOOL_DESCRIBE, TOOL_CALL].contains(&name)
}
