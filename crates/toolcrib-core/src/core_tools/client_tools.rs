//! Tools that clients run themselves: the local shell, and custom tools with free text as input.

use toolcrib_tool::{DefinitionError, Layer, Source, ToolDefinition, ToolEntry};

pub use toolcrib_tool::{CUSTOM_INPUT, InputFormat};

/// `local_shell`: a command that the client runs on its own machine. Nothing is executed here.
///
/// `command` is a list of the program and its arguments, or a string for the user's shell. The
/// client handles `env`, `timeout_ms`, `user` and `working_directory`.
pub fn local_shell_entry() -> Result<ToolEntry, DefinitionError> {
    let definition = ToolDefinition::builder("local_shell")
        .title("Local shell")
        .description(
            "Run a command on the user's own machine. Give the program and its arguments as a \
             list; no shell takes them apart.",
        )
        .category("code")
        .input_schema(toolcrib_tool::local_shell_schema())
        .build()?;
    Ok(ToolEntry::client(definition, Source::new(Layer::Native, "toolcrib")))
}

/// A custom tool that the client runs, with one text in its own format as input.
///
/// ```
/// use toolcrib_core::client_tools::{InputFormat, custom_tool_entry};
///
/// let format = InputFormat::Regex { definition: r"\d{4}-\d{2}-\d{2}".to_owned() };
/// let entry = custom_tool_entry("day", "Open the calendar at a day.", format)?;
/// assert!(entry.definition.client());
/// let input = &entry.definition.input_schema()["properties"]["input_data"];
/// assert_eq!(input["pattern"], r"^(?:\d{4}-\d{2}-\d{2})$");
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
pub fn custom_tool_entry(
    name: &str,
    description: &str,
    format: InputFormat,
) -> Result<ToolEntry, DefinitionError> {
    let definition = ToolDefinition::builder(name)
        .description(description)
        .input_schema(format.schema())
        .build()?;
    Ok(ToolEntry::client(definition, Source::new(Layer::Host, "custom")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use toolcrib_tool::{Arguments, ErrorKind, ToolCall, ToolError, tool_fn};

    use super::*;
    use crate::{Executor, ExecutorConfig, Registry, RegistryBuilder, TurnOptions};

    fn checked(entry: ToolEntry, arguments: &str) -> Result<Arguments, ToolError> {
        let name = entry.name().to_owned();
        // Somebody who can run it: what is asked here is what its schema lets through.
        let body = Arc::new(tool_fn(|_: serde_json::Value, _| async { "done" }));
        let entry = ToolEntry::new(entry.definition, body, entry.source);
        let mut builder = RegistryBuilder::new();
        let _ = builder.register(entry);
        let executor = Executor::new(Registry::new(builder.build()), ExecutorConfig::default());
        let turn = executor.turn(TurnOptions::default());
        let call = turn.dry_run(ToolCall::new("1", name, arguments));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(call).map(|dry| dry.arguments)
    }

    #[test]
    fn a_command_given_as_one_text_stays_a_line_for_the_shell() {
        let shell = || local_shell_entry().expect("it is right");
        let arguments = checked(shell(), r#"{"command": "ls | wc -l", "timeout_ms": 100}"#);
        assert_eq!(arguments.expect("it is right").value()["command"], "ls | wc -l");
        let arguments = checked(shell(), r#"{"command": ["ls", "-l"], "env": {"A": "b"}}"#);
        assert_eq!(arguments.expect("it is right").value()["command"], json!(["ls", "-l"]));
        for wrong in [r#"{"command": []}"#, "{}", r#"{"command": ["ls"], "cwd": "/"}"#] {
            let error = checked(shell(), wrong).expect_err("it is wrong");
            assert_eq!(error.kind(), ErrorKind::InvalidArgs, "{wrong}");
        }
    }

    #[test]
    fn a_custom_tools_input_is_held_against_its_expression_only() {
        let tool = |format| custom_tool_entry("t", "A tool.", format).expect("it is right");
        let regex = || InputFormat::Regex { definition: "a|b".to_owned() };
        assert!(checked(tool(regex()), r#"{"input_data": "a"}"#).is_ok());
        assert!(checked(tool(regex()), r#"{"input_data": "ab"}"#).is_err());
        let lark = InputFormat::Lark { definition: "start: \"x\"".to_owned() };
        assert!(checked(tool(lark), r#"{"input_data": "anything"}"#).is_ok());
        assert!(checked(tool(InputFormat::Text), r#"{"input_data": ""}"#).is_ok());
        assert!(checked(tool(InputFormat::Text), "{}").is_err());
    }
}
