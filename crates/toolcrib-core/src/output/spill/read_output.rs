//! `read_output`: the tool that pages through stored outputs.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, Layer, Source, Tool, ToolDefinition, ToolEntry, ToolError,
    ToolOutcome, ToolOutput,
};

use super::{Handle, Owner, Page, SpillError, SpillStore};

/// The name of the tool, as markers in cut outputs give it.
pub const READ_OUTPUT: &str = "read_output";

/// The maximum and default page size in characters. It is also the tool's own output budget, so
/// that a page is not cut, unless it shares a batch's budget.
pub const READ_OUTPUT_CHARS: usize = 20_000;

/// The tool for a store. Register it wherever outputs are cut, because the markers refer to it.
///
/// It is native: manifests and upstream servers cannot take its name, but a host can.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use toolcrib_core::spill::{MemorySpill, Owner, SpillStore, Spilled, read_output_entry};
/// use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, TurnOptions};
/// use toolcrib_tool::{ContextValues, ToolCall};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolcrib_core::spill::SpillError> {
/// let store = Arc::new(MemorySpill::new(Default::default()));
/// let mut builder = RegistryBuilder::new();
/// let _ = builder.register(read_output_entry(store.clone()));
/// let executor = Executor::new(Registry::new(builder.build()), ExecutorConfig::default());
///
/// let values = ContextValues::new().with("user", "ada");
/// let handle = store.put(&Owner::of(&values, None), Spilled::text("one two three")).await?;
/// let turn = executor.turn(TurnOptions::default().values(values));
/// let arguments = json!({"handle": handle.to_string(), "offset": 4, "limit": 3});
/// let page = turn.call(ToolCall::new("1", "read_output", arguments)).await;
/// assert_eq!(page.text(), "two");
/// assert_eq!(page.data(), Some(&json!({"total_chars": 13, "offset": 4, "next_offset": 7})));
/// # Ok(())
/// # }
/// ```
pub fn read_output_entry(store: Arc<dyn SpillStore>) -> ToolEntry {
    ToolEntry::new(
        Arc::clone(&DEFINITION),
        Arc::new(ReadOutput { store }),
        Source::new(Layer::Native, "toolcrib-core"),
    )
}

static DEFINITION: LazyLock<Arc<ToolDefinition>> = LazyLock::new(|| {
    let definition = ToolDefinition::builder(READ_OUTPUT)
        .title("Read output")
        .description(
            "Read the part of an earlier tool output that was left out because it was too long. \
             The note in the shortened output names the handle and the offset to begin at. \
             Returns one page and, if there is more, next_offset. Read-only.",
        )
        .category("data")
        .input_schema(json!({
            "properties": {
                "handle": {
                    "type": "string",
                    "description": "The handle from the note, exactly as it stands there.",
                    "minLength": 1,
                },
                "offset": {
                    "type": "integer",
                    "description": "Where to begin, in characters from 0.",
                    "minimum": 0,
                    // Every such number fits into `usize`.
                    "maximum": u32::MAX,
                    "default": 0,
                },
                "limit": {
                    "type": "integer",
                    "description": "How many characters to read.",
                    "minimum": 1,
                    "maximum": READ_OUTPUT_CHARS,
                    "default": READ_OUTPUT_CHARS,
                },
            },
            "required": ["handle"],
            "additionalProperties": false,
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "total_chars": {"type": "integer"},
                "offset": {"type": "integer"},
                "next_offset": {"type": "integer"},
                "omitted_bytes": {"type": "integer"},
            },
            "required": ["total_chars", "offset"],
        }))
        .read_only(true)
        .idempotent(true)
        .open_world(false)
        .output_chars(READ_OUTPUT_CHARS)
        .build();
    #[expect(clippy::expect_used, reason = "a constant; every test of this tool builds it")]
    Arc::new(definition.expect("the definition of read_output is valid"))
});

#[derive(Deserialize)]
struct ReadOutputArguments {
    handle: String,
    offset: usize,
    limit: usize,
}

struct ReadOutput {
    store: Arc<dyn SpillStore>,
}

impl fmt::Debug for ReadOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOutput").finish_non_exhaustive()
    }
}

impl Tool for ReadOutput {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let asked: ReadOutputArguments = arguments.parse()?;
            let owner = Owner::of_call(cx);
            let handle = Handle::parse(&asked.handle).ok_or_else(|| unknown(&asked.handle))?;
            match self.store.read(&owner, &handle, asked.offset, asked.limit).await {
                Ok(page) => answer(page, asked.offset).map(ToolOutcome::Done),
                Err(SpillError::NotFound) => Err(unknown(&asked.handle)),
                Err(error @ SpillError::Expired) => Err(ToolError::execution(error.to_string())
                    .with_hint(
                        "Call the tool that gave the output again, asking for less at a time.",
                    )),
                Err(error) => Err(ToolError::unavailable("kept outputs cannot be read just now")
                    .with_hint("Call the tool that gave the output again, asking for less.")
                    .with_source(error)),
            }
        })
    }
}

fn answer(page: Page, asked: usize) -> Result<ToolOutput, ToolError> {
    if asked >= page.total_chars && asked > 0 {
        return Err(ToolError::invalid_args(format!(
            "offset {asked} is beyond the end: the output has {} characters",
            page.total_chars
        ))
        .with_hint(format!("Use an offset below {}.", page.total_chars)));
    }
    let mut data = Map::new();
    data.insert("total_chars".into(), page.total_chars.into());
    data.insert("offset".into(), page.offset.into());
    if let Some(next) = page.next_offset() {
        data.insert("next_offset".into(), next.into());
    }
    if page.omitted_bytes > 0 {
        data.insert("omitted_bytes".into(), page.omitted_bytes.into());
    }
    Ok(ToolOutput::from(page.text).with_data(Value::Object(data)))
}

/// One answer for every handle that is invalid or somebody else's, so that the reason is not revealed.
fn unknown(handle: &str) -> ToolError {
    let shown: String = handle.chars().take(64).collect();
    ToolError::execution(format!("no output is kept under the handle {shown:?}"))
        .with_hint("Copy the handle exactly from the note in the shortened output.")
        .with_hint(
            "If it is copied right, the output is no longer kept: call the tool that gave it \
             again, asking for less at a time.",
        )
}

#[cfg(test)]
mod tests {
    use toolcrib_tool::{ContextValues, ErrorKind, ToolCall, ToolResult};

    use super::*;
    use crate::output::spill::{MemorySpill, Spilled};
    use crate::{Executor, ExecutorConfig, Registry, RegistryBuilder, TurnOptions};

    struct TestHost {
        store: Arc<MemorySpill>,
        executor: Executor,
    }

    impl TestHost {
        fn new() -> Self {
            let store = Arc::new(MemorySpill::new(crate::output::spill::SpillLimits::default()));
            let mut builder = RegistryBuilder::new();
            let _ = builder.register(read_output_entry(Arc::clone(&store) as Arc<dyn SpillStore>));
            let registry = Registry::new(builder.build());
            Self { store, executor: Executor::new(registry, ExecutorConfig::default()) }
        }

        async fn keep(&self, spilled: Spilled) -> String {
            let owner = Owner::of(&user("ada"), None);
            self.store.put(&owner, spilled).await.unwrap().to_string()
        }

        async fn read(&self, who: &str, arguments: Value) -> ToolResult {
            let turn = self.executor.turn(TurnOptions::default().values(user(who)));
            turn.call(ToolCall::new("1", READ_OUTPUT, arguments)).await
        }
    }

    fn user(name: &str) -> ContextValues {
        ContextValues::new().with("user", name)
    }

    #[tokio::test]
    async fn pages_through_the_tool_are_the_whole_and_none_is_cut() {
        let host = TestHost::new();
        let text = "añ🦀\n".repeat(READ_OUTPUT_CHARS);
        let handle = host.keep(Spilled::text(text.clone())).await;
        let (mut read, mut offset, mut pages) = (String::new(), Some(0), 0);
        while let Some(from) = offset {
            let page = host.read("ada", json!({"handle": handle, "offset": from})).await;
            assert!(page.is_success() && !page.truncated(), "{}", page.text());
            read.push_str(&page.text());
            offset = page.data().unwrap().get("next_offset").and_then(Value::as_u64);
            pages += 1;
        }
        assert_eq!((read == text, pages), (true, 4));
    }

    #[tokio::test]
    async fn a_strange_handle_and_a_foreign_one_are_answered_alike() {
        let host = TestHost::new();
        let handle = host.keep(Spilled::text("hers")).await;
        let foreign = host.read("bob", json!({"handle": handle})).await;
        let none = "0".repeat(32);
        let missing = host.read("bob", json!({"handle": none})).await;
        assert_eq!(foreign.text().replace(&handle, &none), missing.text());
        assert!(foreign.text().contains("call the tool that gave it again"));
        let nonsense = host.read("ada", json!({"handle": "../secret"})).await;
        assert!(nonsense.text().contains("Copy the handle exactly"), "{}", nonsense.text());
        assert_eq!(host.read("ada", json!({"handle": handle})).await.text(), "hers");
    }

    #[tokio::test]
    async fn an_offset_beyond_the_end_says_where_the_end_is() {
        let host = TestHost::new();
        let handle = host.keep(Spilled::text("12345").with_omitted_bytes(9)).await;
        let beyond = host.read("ada", json!({"handle": handle, "offset": 5})).await;
        assert_eq!(beyond.error_kind(), Some(ErrorKind::InvalidArgs));
        assert!(beyond.text().contains("Use an offset below 5."), "{}", beyond.text());
        let last = host.read("ada", json!({"handle": handle, "offset": 4})).await;
        let data = json!({"total_chars": 5, "offset": 4, "omitted_bytes": 9});
        assert_eq!((last.text().as_ref(), last.data()), ("5", Some(&data)));
        let too_much = host.read("ada", json!({"handle": handle, "limit": 20_001})).await;
        assert_eq!(too_much.error_kind(), Some(ErrorKind::InvalidArgs));
    }
}
