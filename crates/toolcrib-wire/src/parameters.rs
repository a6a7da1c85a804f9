//! Describes the parameters of a tool for people and models.

use serde_json::Value;
use toolcrib_tool::ToolDefinition;

use crate::report::Walk;
use crate::schema::kinds::kinds;
use crate::schema::reference::resolve;
use crate::schema::shape::{Shape, shape};
use crate::schema::tidy::input_schema;
use crate::schema::{Object, required, sorted};

/// How deeply nested unions are spelled out.
const MAX_DEPTH: usize = 4;

/// One parameter of a tool, with references resolved.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its types in words, for example `string`, `array of integer` or `string or null`.
    pub types: String,
    /// Whether a call must contain it.
    pub required: bool,
    /// Its description.
    pub description: Option<String>,
    /// Its value in calls that omit it.
    pub default: Option<Value>,
    /// The only allowed values; empty if its schema does not list them.
    pub allowed: Vec<Value>,
    /// The bounds of its values in words, for example `at least 1` or `at most 80 characters`.
    pub bounds: Vec<String>,
    /// Examples of values.
    pub examples: Vec<Value>,
}

/// The parameters of a tool as models see them, sorted by name.
///
/// ```
/// use serde_json::json;
/// use toolcrib_tool::ToolDefinition;
/// use toolcrib_wire::parameters;
///
/// let count = ToolDefinition::builder("count")
///     .description("Counts.")
///     .input_schema(json!({
///         "properties": {"what": {"$ref": "#/$defs/What"}},
///         "$defs": {"What": {"enum": ["lines", "words"]}},
///     }))
///     .build()?;
/// let what = &parameters(&count)[0];
/// assert_eq!((what.types.as_str(), what.allowed.len()), ("string", 2));
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
pub fn parameters(definition: &ToolDefinition) -> Vec<Parameter> {
    fields(definition.input_schema())
}

/// The same for the members of any object, for example of the answer to a tool's question.
pub fn fields(schema: &Value) -> Vec<Parameter> {
    let root = input_schema(schema, &mut Walk::default());
    let root = root.as_ref().unwrap_or(schema);
    let shape = object_shape(root).unwrap_or_default();
    let required = required(&shape);
    let mut walk = Walk::default();
    let properties = shape.get("properties").and_then(Value::as_object);
    let properties = properties.map(sorted).unwrap_or_default().into_iter();
    let parameter = |(name, property): (&str, &Value)| Parameter {
        name: name.to_owned(),
        types: type_words(property, root, 0, &mut walk),
        required: required.contains(&name),
        description: keyword(property, root, "description")
            .and_then(Value::as_str)
            .map(str::to_owned),
        default: property.get("default").cloned(),
        allowed: values(property, root, "enum")
            .or_else(|| keyword(property, root, "const").map(|only| vec![only.clone()]))
            .unwrap_or_default(),
        bounds: bounds(property, root),
        examples: values(property, root, "examples").unwrap_or_default(),
    };
    properties.map(parameter).collect()
}

/// The keywords of the root, with references and `allOf` resolved.
fn object_shape(root: &Value) -> Option<Object> {
    match shape(root, root, &mut Walk::default()) {
        Ok(Shape::Plain(object)) => Some(object),
        Ok(Shape::Reference { reference, .. }) => resolve(root, &reference)?.as_object().cloned(),
        // A root with a union still has its own properties.
        _ => root.as_object().cloned(),
    }
}

/// A property's types, for example `string`, `array of integer` or `string or null`.
fn type_words(schema: &Value, root: &Value, depth: usize, walk: &mut Walk) -> String {
    let any = || "any".to_owned();
    if depth > MAX_DEPTH {
        return any();
    }
    match shape(schema, root, walk) {
        Ok(Shape::Plain(object)) => {
            let words: Vec<String> = kinds(&object)
                .into_iter()
                .map(|kind| match object.get("items") {
                    Some(items) if kind == "array" => {
                        format!("array of {}", type_words(items, root, depth + 1, walk))
                    }
                    _ => kind,
                })
                .collect();
            if words.is_empty() { any() } else { words.join(" or ") }
        }
        Ok(Shape::Reference { reference, .. }) => resolve(root, &reference)
            .map_or_else(any, |target| type_words(target, root, depth + 1, walk)),
        Ok(Shape::Union { branches, .. }) => {
            let mut words: Vec<String> = Vec::new();
            for branch in &branches {
                let word = type_words(branch, root, depth + 1, walk);
                if !words.contains(&word) {
                    words.push(word);
                }
            }
            words.join(" or ")
        }
        Ok(Shape::Bool(_)) | Err(_) => any(),
    }
}

/// A keyword of the property, or of the schema that it refers to.
fn keyword<'a>(property: &'a Value, root: &'a Value, name: &str) -> Option<&'a Value> {
    property.get(name).or_else(|| {
        let reference = property.get("$ref").and_then(Value::as_str)?;
        resolve(root, reference)?.get(name)
    })
}

/// The wording of each keyword that limits a value; `{}` is the keyword's value.
const BOUNDS: [(&str, &str); 14] = [
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("pattern", "matches {}"),
    ("format", "has the format {}"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
    ("minProperties", "at least {} properties"),
    ("maxProperties", "at most {} properties"),
    ("uniqueItems", "no item twice"),
];

fn bounds(property: &Value, root: &Value) -> Vec<String> {
    let bound = |(name, words): (&str, &str)| {
        let value = keyword(property, root, name).filter(|value| **value != Value::Bool(false))?;
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let words = words.replace("{}", &value);
        let nouns = ["character", "item"];
        let is_one = value == "1" && nouns.iter().any(|noun| words.ends_with(&format!(" {noun}s")));
        Some(if is_one { words.trim_end_matches('s').to_owned() } else { words })
    };
    BOUNDS.into_iter().filter_map(bound).collect()
}

fn values(property: &Value, root: &Value, name: &str) -> Option<Vec<Value>> {
    keyword(property, root, name).and_then(Value::as_array).cloned()
}
