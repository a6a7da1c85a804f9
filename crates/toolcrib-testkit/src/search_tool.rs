//! One ordinary tool: five parameters (a string, an integer, a boolean, one of three words, and
//! an object that holds arrays), a schema of 790 bytes and arguments of 301.
//!
//! The sizes are those of an average real tool. All benches use this tool, for our code and for others', so that their
//! numbers are comparable.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_core::{Registration, RegistryBuilder, RegistrySnapshot};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, IntoOutcome, Layer, Source, Tool, ToolDefinition, ToolEntry,
    ToolError, ToolOutcome, tool_fn,
};

/// Arguments that fit [`schema`]: 301 bytes of compact JSON without an escape or a float.
pub const ARGUMENTS: &str = concat!(
    r#"{"path":"services/billing/src/main/resources/templates","max_results":50,"#,
    r#""recursive":true,"match":"content","filter":{"#,
    r#""include":["*.html","*.hbs","*.txt","invoice-*.mustache","reminder-*.mustache"],"#,
    r#""exclude":["**/node_modules/**","**/target/**","**/out/**","**/*.generated.html"],"#,
    r#""sizes":[1,1048576]}}"#,
);

/// The arguments as an owned type, as a tool author would write it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SearchArguments {
    /// Folder to search.
    pub path: String,
    /// Matches after which the search stops.
    pub max_results: u32,
    /// Whether folders below are searched.
    pub recursive: bool,
    /// What the patterns are matched against.
    pub r#match: MatchOn,
    /// Which files are searched.
    pub filter: SearchFilter,
}

/// What patterns are matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchOn {
    /// The file's name.
    Name,
    /// The file's content.
    Content,
    /// Either.
    Both,
}

/// Which files are searched.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SearchFilter {
    /// Patterns one of which must match.
    pub include: Vec<String>,
    /// Patterns none of which may match.
    pub exclude: Vec<String>,
    /// The smallest and the largest size, in bytes.
    pub sizes: [u64; 2],
}

/// The arguments as a type that borrows from the text: the lowest possible cost of parsing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BorrowedSearchArguments<'a> {
    /// Folder to search.
    pub path: &'a str,
    /// Matches after which the search stops.
    pub max_results: u32,
    /// Whether folders below are searched.
    pub recursive: bool,
    /// What the patterns are matched against.
    pub r#match: MatchOn,
    /// Which files are searched.
    #[serde(borrow)]
    pub filter: BorrowedSearchFilter<'a>,
}

/// Which files are searched, borrowed from the text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BorrowedSearchFilter<'a> {
    /// Patterns one of which must match.
    #[serde(borrow)]
    pub include: Vec<&'a str>,
    /// Patterns none of which may match.
    #[serde(borrow)]
    pub exclude: Vec<&'a str>,
    /// The smallest and the largest size, in bytes.
    pub sizes: [u64; 2],
}

/// Whether the tools of a registry share one schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schemas {
    /// All have the same schema: one validator serves all.
    Shared,
    /// Each has its own, which differs in one bound: one validator for each tool.
    Distinct,
}

impl Schemas {
    /// The word in the names of benches.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Distinct => "distinct",
        }
    }

    /// The schema of the tool with this number. [`ARGUMENTS`] fit it.
    pub fn schema(self, number: usize) -> Value {
        let mut schema = schema();
        if self == Self::Distinct {
            schema["properties"]["max_results"]["maximum"] = json!(1000 + number);
        }
        schema
    }
}

/// The tool's input schema: 790 bytes as compact JSON.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "The folder to search in.",
                "minLength": 1,
                "maxLength": 4096,
            },
            "max_results": {
                "type": "integer",
                "description": "Stop after this many matches.",
                "minimum": 1,
                "maximum": 1000,
            },
            "recursive": {"type": "boolean", "description": "Also search the folders below."},
            "match": {
                "enum": ["name", "content", "both"],
                "description": "What the patterns are held against.",
            },
            "filter": {
                "type": "object",
                "properties": {
                    "include": {"type": "array", "items": {"type": "string"}},
                    "exclude": {"type": "array", "items": {"type": "string"}},
                    "sizes": {
                        "type": "array",
                        "items": {"type": "integer", "minimum": 0},
                        "minItems": 2,
                        "maxItems": 2,
                    },
                },
                "required": ["include"],
                "additionalProperties": false,
            },
        },
        "required": ["path", "max_results", "recursive", "match", "filter"],
        "additionalProperties": false,
    })
}

/// The name of the tool with this number: unique, and of an ordinary length.
pub fn name(number: usize) -> String {
    format!("search_files_{number:06}")
}

/// The tool with this number. It returns the path from its arguments.
pub fn entry(number: usize, schemas: Schemas) -> ToolEntry {
    let body = tool_fn(|args: SearchArguments, _| std::future::ready(args.path));
    entry_of(number, schemas, Arc::new(body))
}

/// The same with a body that reads its arguments in place.
pub fn entry_in_place(number: usize, schemas: Schemas) -> ToolEntry {
    entry_of(number, schemas, Arc::new(BorrowedSearchTool))
}

/// The equivalent of a `#[tool]` function with borrowed arguments.
#[derive(Debug)]
struct BorrowedSearchTool;

impl Tool for BorrowedSearchTool {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        _cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let args: BorrowedSearchArguments<'_> = arguments.parse()?;
            args.path.to_owned().into_outcome()
        })
    }

    // As in a `#[tool]` without a check.
    fn validates(&self) -> bool {
        false
    }
}

fn entry_of(number: usize, schemas: Schemas, body: Arc<dyn Tool>) -> ToolEntry {
    let definition = ToolDefinition::builder(name(number))
        .description("Search the files of a folder for names or content. Read-only.")
        .input_schema(schemas.schema(number))
        .read_only(true)
        .idempotent(true)
        .build()
        .expect("a valid definition");
    ToolEntry::new(definition, body, Source::new(Layer::Host, "testkit"))
}

/// A snapshot of `count` tools, numbered from 0.
pub fn snapshot(count: usize, schemas: Schemas) -> RegistrySnapshot {
    snapshot_of(count, |number| entry(number, schemas))
}

/// A snapshot of `count` tools made by `entry`, numbered from 0.
pub fn snapshot_of(count: usize, entry: impl Fn(usize) -> ToolEntry) -> RegistrySnapshot {
    let mut builder = RegistryBuilder::new();
    for number in 0..count {
        let registered = builder.register(entry(number));
        assert_eq!(registered, Registration::Registered, "the names are unique");
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_match_the_benches() {
        assert_eq!(ARGUMENTS.len(), 301);
        assert_eq!(schema().to_string().len(), 790);
    }

    #[test]
    fn the_arguments_fit_every_schema_and_both_types() {
        let value: Value = serde_json::from_str(ARGUMENTS).expect("JSON");
        for schemas in [Schemas::Shared, Schemas::Distinct] {
            for number in [0, 1, 9_999] {
                assert!(jsonschema::is_valid(&schemas.schema(number), &value));
            }
        }
        let owned: SearchArguments = serde_json::from_str(ARGUMENTS).expect("owned");
        let borrowed: BorrowedSearchArguments<'_> =
            serde_json::from_str(ARGUMENTS).expect("borrowed");
        assert_eq!(owned.filter.include, borrowed.filter.include);
        assert_ne!(Schemas::Distinct.schema(1), Schemas::Distinct.schema(2));
    }
}
