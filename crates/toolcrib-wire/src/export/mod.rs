//! Exports many tools for one provider.

mod anthropic;
pub(crate) mod gemini;
mod openai;

use std::collections::BTreeSet;

use serde_json::Value;
use toolcrib_tool::canonical_json;

use crate::report::{Note, Reason, Refusal, Refused, Walk};
use crate::schema::tidy::input_schema;
use crate::{Declaration, NameMap, Target, description, mcp};

/// Tools in a provider's format, and what the provider does not see.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Export {
    /// One value per exported tool, sorted by the tool's own name.
    pub tools: Vec<Value>,
    /// The exported tools' names: their own and the provider's.
    pub names: NameMap,
    /// The tools that cannot be exported to the provider, sorted by name.
    pub refused: Vec<Refusal>,
    /// What the provider sees differently, sorted by name.
    pub notes: Vec<Note>,
}

impl Export {
    /// The tools as a JSON array with sorted keys: equal definitions give equal bytes.
    pub fn to_json(&self) -> String {
        let tools: Vec<String> = self.tools.iter().map(canonical_json).collect();
        format!("[{}]", tools.join(","))
    }
}

/// Exports tools for `target`.
///
/// The order of the tools and repeated equal declarations make no difference. If several different declarations have
/// one name, the smallest (by description, then by schema) is exported and the others are refused.
///
/// ```
/// use serde_json::json;
/// use toolcrib_tool::ToolDefinition;
/// use toolcrib_wire::{Target, export};
///
/// let definition = ToolDefinition::builder("add")
///     .description("Adds two numbers.")
///     .input_schema(json!({"properties": {"a": {"type": "number"}, "b": {"type": "number"}}}))
///     .build()?;
/// let export = export([&definition], Target::Anthropic);
/// assert_eq!(export.tools[0]["input_schema"]["properties"]["a"]["type"], "number");
/// assert!(export.refused.is_empty());
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
pub fn export<'a, D>(declarations: impl IntoIterator<Item = D>, target: Target) -> Export
where
    D: Into<Declaration<'a>>,
{
    let mut sorted: Vec<(Declaration<'a>, String)> = declarations
        .into_iter()
        .map(Into::into)
        .map(|declaration| (declaration, declaration.rest()))
        .collect();
    sorted.sort_by(|(left, left_rest), (right, right_rest)| {
        (left.name, left.description, left_rest).cmp(&(right.name, right.description, right_rest))
    });
    sorted.dedup_by(|(left, left_rest), (right, right_rest)| {
        (left.name, left.description, left_rest) == (right.name, right.description, right_rest)
    });

    let all = sorted.iter().map(|(declaration, _)| declaration.name);
    let mut names = NameMap::new(all, target.name_rule());
    let mut tools = Vec::with_capacity(sorted.len());
    let mut refused = Vec::new();
    let mut notes = Vec::new();
    let mut exported = BTreeSet::new();
    let mut last = None;
    for (declaration, _) in &sorted {
        let name = declaration.name;
        if last == Some(name) {
            refused.push(Refusal {
                tool: name.to_owned(),
                at: String::new(),
                reason: Reason::Duplicate,
            });
            continue;
        }
        last = Some(name);
        let mut walk = Walk::default();
        match one(declaration, names.to_provider(name).unwrap_or(name), target, &mut walk) {
            Ok(tool) => {
                tools.push(tool);
                notes.extend(walk.into_notes(name));
                exported.insert(name);
            }
            Err(Refused { at, reason }) => {
                refused.push(Refusal { tool: name.to_owned(), at, reason });
            }
        }
    }
    names.retain(|name| exported.contains(name));
    Export { tools, names, refused, notes }
}

/// One tool under the provider's name for it.
fn one(
    declaration: &Declaration<'_>,
    name: &str,
    target: Target,
    walk: &mut Walk,
) -> Result<Value, Refused> {
    let cut = target
        .description_limit()
        .and_then(|limit| Some((description::cut(declaration.description, limit)?, limit)));
    if let Some((_, limit)) = &cut {
        walk.note(format!("the description is cut to {limit} characters"));
    }
    let text = cut.as_ref().map_or(declaration.description, |(text, _)| text);
    let schema = input_schema(declaration.input_schema, walk)?;
    let strict = target.is_strict();
    match target {
        Target::OpenAiChat | Target::OpenAiStrict => {
            let parameters = openai::parameters(&schema, strict, walk)?;
            Ok(openai::chat_tool(name, text, parameters, strict))
        }
        Target::Responses | Target::ResponsesStrict => {
            let parameters = openai::parameters(&schema, strict, walk)?;
            Ok(openai::responses_tool(name, text, parameters, strict))
        }
        Target::Anthropic => anthropic::tool(declaration, name, text, &schema, walk),
        Target::Gemini => gemini::function_declaration(declaration, name, text, &schema, walk),
        Target::Mcp => mcp::tool(declaration, name, text, &schema, walk),
    }
}
