//! What tools take that every client of the field knows and runs itself: the local shell, and custom
//! tools with one text for input.

use serde_json::{Value, json};

/// The name of the parameter that holds a custom tool's input.
pub const CUSTOM_INPUT: &str = "input_data";

/// The key of an input schema that marks a local shell.
pub const LOCAL_SHELL: &str = "x-local-shell";

/// The input schema of a local shell.
///
/// `command` is a program and its arguments, one by one. One text is a line for the user's own shell.
/// `env`, `timeout_ms`, `user` and `working_directory` are the client's to honour.
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

/// What a custom tool's input looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputFormat {
    /// Any text.
    Text,
    /// Text that a regular expression matches from end to end. The input is checked against it.
    Regex {
        /// The expression.
        definition: String,
    },
    /// Text of a Lark grammar. The model is shown the grammar; only the client can check it.
    Lark {
        /// The grammar.
        definition: String,
    },
}

impl InputFormat {
    /// The input schema of a custom tool. The key `x-custom-format` has the format as providers that
    /// know custom tools take it.
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
