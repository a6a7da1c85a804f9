//! Schemas for tools that clients run themselves: the local shell, and custom tools with one text as input.

use serde_json::{Value, json};

/// The name of the parameter that holds a custom tool's input.
pub const CUSTOM_INPUT: &str = "input_data";

/// The key of an input schema that marks a local shell.
pub const LOCAL_SHELL: &str = "x-local-shell";

/// The input schema of a local shell.
///
/// `command` is a list with a program and its arguments. A single text is a line for the user's own shell. The client
/// handles `env`, `timeout_ms`, `user` and `working_directory`.
pub fn local_shell_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": {
                "anyOf": [
                    {"type": "array", "items": {"type": "string"}, "minItems": 1},
                    {"type": "string"},
                ],
                "description": "The program and its arguments, for example [\"ls\", \"-l\"]. One \
                                text is a line for the user's shell.",
            },
            "env": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Environment variables to set.",
            },
            "timeout_ms": {
                "type": "integer",
                "minimum": 1,
                "description": "When to end the command, in milliseconds.",
            },
            "user": {"type": "string", "description": "The user to run it as."},
            "working_directory": {"type": "string", "description": "Where to run it."},
        },
        "required": ["command"],
        "additionalProperties": false,
        LOCAL_SHELL: true,
    })
}

/// The format of a custom tool's input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputFormat {
    /// Any text.
    Text,
    /// Text that matches a regular expression from end to end. The input is checked against it.
    Regex {
        /// The expression.
        definition: String,
    },
    /// Text that follows a Lark grammar. The model sees the grammar; only the client can check it.
    Lark {
        /// The grammar.
        definition: String,
    },
}

impl InputFormat {
    /// The input schema of a custom tool. The key `x-custom-format` contains the format for providers that support
    /// custom tools.
    ///
    /// ```
    /// use toolcrib_tool::InputFormat;
    ///
    /// let day = InputFormat::Regex { definition: r"\d{4}-\d{2}-\d{2}".to_owned() };
    /// assert_eq!(day.schema()["properties"]["input_data"]["pattern"], r"^(?:\d{4}-\d{2}-\d{2})$");
    /// ```
    pub fn schema(self) -> Value {
        let mut input = json!({"type": "string"});
        let (text, given) = match self {
            Self::Text => ("The input, as free text.".to_owned(), json!({"type": "text"})),
            Self::Regex { definition } => {
                input["pattern"] = format!("^(?:{definition})$").into();
                let text = format!("The input: a text that matches the expression {definition}");
                (text, json!({"type": "grammar", "syntax": "regex", "definition": definition}))
            }
            Self::Lark { definition } => {
                let text = format!("The input: a text of this Lark grammar:\n{definition}");
                (text, json!({"type": "grammar", "syntax": "lark", "definition": definition}))
            }
        };
        input["description"] = text.into();
        json!({
            "type": "object",
            "properties": {CUSTOM_INPUT: input},
            "required": [CUSTOM_INPUT],
            "additionalProperties": false,
            "x-custom-format": given,
        })
    }
}
