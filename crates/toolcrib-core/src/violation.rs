//! What is wrong with a value, said so that a model can mend it: where, what was expected, what
//! came, and the nearest right spelling.

use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Map, Value, json};
use toolcrib_fuzzy::near_names;
use toolcrib_tool::canonical_json;

/// How much of a given value a message shows, in characters.
const SHOWN_VALUE: usize = 80;

/// How many violations a message lists before it only counts them.
pub(crate) const SHOWN_VIOLATIONS: usize = 20;

/// One thing that is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pointer: String,
    expected: String,
    given: Option<String>,
    suggestion: Option<String>,
}

impl Violation {
    /// Where: a JSON pointer, empty for the whole value.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// What should stand there.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// What stands there, as shortened JSON; `None` if nothing does.
    pub fn given(&self) -> Option<&str> {
        self.given.as_deref()
    }

    /// The nearest name or value that would be right.
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }

    /// `{pointer, expected, given?, suggestion?}`.
    pub fn to_value(&self) -> Value {
        let mut object = Map::new();
        object.insert("pointer".to_owned(), json!(self.pointer));
        object.insert("expected".to_owned(), json!(self.expected));
        if let Some(given) = &self.given {
            object.insert("given".to_owned(), json!(given));
        }
        if let Some(suggestion) = &self.suggestion {
            object.insert("suggestion".to_owned(), json!(suggestion));
        }
        Value::Object(object)
    }

    /// Turns the validator's errors into violations, each said once, sorted by place.
    pub(crate) fn collect<'e>(
        errors: impl Iterator<Item = ValidationError<'e>>,
        schema: &Value,
    ) -> Vec<Self> {
        let mut found = Vec::new();
        for error in errors {
            push(&error, schema, &mut found);
        }
        let mut unique: Vec<Self> = Vec::with_capacity(found.len());
        found.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        for violation in found {
            if !unique.contains(&violation) {
                unique.push(violation);
            }
        }
        unique
    }

    fn new(error: &ValidationError<'_>, expected: impl Into<String>) -> Self {
        Self {
            pointer: error.instance_path().as_str().to_owned(),
            expected: expected.into(),
            given: Some(shorten(&canonical_json(error.instance()))),
            suggestion: None,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str("the arguments: ")?;
        } else {
            write!(f, "{}: ", self.pointer)?;
        }
        f.write_str(&self.expected)?;
        if let Some(given) = &self.given {
            write!(f, ", got {given}")?;
        }
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; did you mean `{suggestion}`?")?;
        }
        Ok(())
    }
}

fn push(error: &ValidationError<'_>, schema: &Value, out: &mut Vec<Violation>) {
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            for name in unexpected {
                out.push(unknown_property(error, name, schema));
            }
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let mut violation = Violation::new(error, required(error, name, schema));
            violation.pointer = child(&violation.pointer, name);
            violation.given = None;
            out.push(violation);
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            match telling_branch(context) {
                Some(branch) => branch.iter().for_each(|inner| push(inner, schema, out)),
                None => out.push(Violation::new(error, alternatives(context))),
            }
        }
        ValidationErrorKind::PropertyNames { error: inner } => {
            let mut violation = Violation::new(inner, expectation(inner));
            error.instance_path().as_str().clone_into(&mut violation.pointer);
            violation.expected = format!("expected property names to fit: {}", violation.expected);
            out.push(violation);
        }
        ValidationErrorKind::Enum { options } => {
            let mut violation = Violation::new(error, expectation(error));
            if let (Some(given), Some(options)) = (error.instance().as_str(), options.as_array()) {
                let known = options.iter().filter_map(Value::as_str);
                violation.suggestion =
                    near_names(given, known).first().map(|&near| near.to_owned());
            }
            out.push(violation);
        }
        _ => out.push(Violation::new(error, expectation(error))),
    }
}

fn unknown_property(error: &ValidationError<'_>, name: &str, schema: &Value) -> Violation {
    let known: Vec<&str> = properties_beside(error, schema).collect();
    let mut violation = Violation::new(error, "there is no such property");
    violation.pointer = child(&violation.pointer, name);
    violation.given = error.instance().get(name).map(|value| shorten(&canonical_json(value)));
    violation.suggestion =
        near_names(name, known.iter().copied()).first().map(|&near| near.to_owned());
    if violation.suggestion.is_none() {
        violation.expected = match known.as_slice() {
            [] => "there is no such property: none are allowed here".to_owned(),
            names if names.len() <= 12 => {
                format!("there is no such property (there are: {})", names.join(", "))
            }
            _ => violation.expected,
        };
    }
    violation
}

/// The names in `properties` of the schema object that holds the failing keyword.
fn properties_beside<'s>(
    error: &ValidationError<'_>,
    schema: &'s Value,
) -> impl Iterator<Item = &'s str> {
    let holder = holder(error, schema);
    let properties = holder.and_then(|holder| holder.get("properties")).and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys).map(String::as_str)
}

fn holder<'s>(error: &ValidationError<'_>, schema: &'s Value) -> Option<&'s Value> {
    let path = error.schema_path().as_str();
    schema.pointer(path.rsplit_once('/').map_or("", |(parent, _)| parent))
}

fn required(error: &ValidationError<'_>, name: &str, schema: &Value) -> String {
    let property = holder(error, schema).and_then(|holder| holder.get("properties")?.get(name));
    let kind = property.and_then(|property| property.get("type")).and_then(Value::as_str);
    match kind {
        Some(kind) => format!("required and missing (expected {})", article(kind)),
        None => "required and missing".to_owned(),
    }
}

/// Of several alternatives, the one the value was plainly meant for: the one whose errors lie
/// deepest, if it is the only one that deep and deeper than the value itself.
fn telling_branch<'c>(
    context: &'c [Vec<ValidationError<'static>>],
) -> Option<&'c [ValidationError<'static>]> {
    let depth = |branch: &[ValidationError<'_>]| {
        branch.iter().map(|error| error.instance_path().as_str().matches('/').count()).max()
    };
    let wrong_type = |branch: &[ValidationError<'_>]| {
        branch.iter().any(|error| matches!(error.kind(), ValidationErrorKind::Type { .. }))
            && branch.len() == 1
    };
    let right_type: Vec<_> = context.iter().filter(|branch| !wrong_type(branch)).collect();
    if let [only] = right_type.as_slice() {
        return Some(only);
    }
    let deepest = context.iter().map(|branch| depth(branch)).max()?;
    let mut deep = context.iter().filter(|branch| depth(branch) == deepest);
    match (deep.next(), deep.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

fn alternatives(context: &[Vec<ValidationError<'static>>]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for error in context.iter().filter_map(|branch| branch.first()) {
        let part = expectation(error);
        let part = part.strip_prefix("expected ").unwrap_or(&part).to_owned();
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    format!("expected {}", parts.join(", or "))
}

/// What a keyword asks for, as "expected …".
fn expectation(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(kind) } => {
            format!("expected {}", article(kind.as_str()))
        }
        Kind::Type { kind: TypeKind::Multiple(kinds) } => {
            let kinds: Vec<_> = kinds.iter().map(|kind: JsonType| article(kind.as_str())).collect();
            format!("expected {}", kinds.join(" or "))
        }
        Kind::Enum { options } => match options.as_array() {
            Some(options) => {
                let options: Vec<_> = options.iter().map(canonical_json).collect();
                format!("expected one of {}", shorten_list(&options))
            }
            None => "expected one of the listed values".to_owned(),
        },
        Kind::Constant { expected_value } => format!("expected {}", canonical_json(expected_value)),
        Kind::Minimum { limit } => format!("expected at least {limit}"),
        Kind::Maximum { limit } => format!("expected at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("expected more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("expected less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("expected a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("expected at least {limit} characters"),
        Kind::MaxLength { limit } => format!("expected at most {limit} characters"),
        Kind::MinItems { limit } => format!("expected at least {limit} items"),
        Kind::MaxItems { limit } => format!("expected at most {limit} items"),
        Kind::MinProperties { limit } => format!("expected at least {limit} properties"),
        Kind::MaxProperties { limit } => format!("expected at most {limit} properties"),
        Kind::UniqueItems => "expected items that all differ".to_owned(),
        Kind::Pattern { pattern } => format!("expected text that matches the pattern {pattern}"),
        Kind::Format { format } => format!("expected text in the format `{format}`"),
        Kind::OneOfMultipleValid { .. } => {
            "expected a value that fits exactly one alternative, and it fits several".to_owned()
        }
        Kind::FalseSchema => "nothing is allowed here".to_owned(),
        Kind::Not { .. } => "this value is ruled out".to_owned(),
        Kind::Contains => "expected at least one item of the required kind".to_owned(),
        _ => error.to_string(),
    }
}

fn article(kind: &str) -> String {
    match kind {
        "null" => "null".to_owned(),
        "integer" => "an integer".to_owned(),
        "array" => "an array".to_owned(),
        "object" => "an object".to_owned(),
        other => format!("a {other}"),
    }
}

/// One more step of a JSON pointer.
fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_VALUE) {
        Some((cut, _)) => format!("{}… ({} characters)", &text[..cut], text.chars().count()),
        None => text.to_owned(),
    }
}

fn shorten_list(options: &[String]) -> String {
    const SHOWN: usize = 20;
    if options.len() <= SHOWN {
        return options.join(", ");
    }
    format!("{}, … ({} in all)", options[..SHOWN].join(", "), options.len())
}
