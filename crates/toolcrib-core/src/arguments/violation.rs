//! Validation errors that a model can act on: where, what was expected, what was given, and the
//! closest valid spelling.

use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Map, Value, json};
use toolcrib_json::{Cursor, Kind, Tape};
use toolcrib_search::near_names;
use toolcrib_tool::canonical_json;

use crate::arguments::json_view::{Reported, reported};
use crate::output::excerpt::{excerpt, shorten};

/// How many characters of a given value a message shows.
const SHOWN_VALUE: usize = 80;

/// How many characters of a JSON pointer a message shows. The model chose the names in it.
const SHOWN_POINTER: usize = 200;

/// How many characters of a property's description a message shows.
const SHOWN_DESCRIPTION: usize = 200;

/// How many violations are listed; the rest are only counted.
const KEPT_VIOLATIONS: usize = 20;

/// One violation of a schema.
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

    /// What was expected.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// The value that was given, as shortened JSON; `None` if there is none.
    pub fn given(&self) -> Option<&str> {
        self.given.as_deref()
    }

    /// The closest valid name or value.
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

    /// The violation for an error, with the value it is about.
    fn new(error: &ValidationError<'_>, tape: &Tape<'_>, expected: impl Into<String>) -> Self {
        let given = match reported(tape, error.instance()) {
            Reported::At(place) | Reported::Late(place) => excerpt(place, SHOWN_VALUE),
            Reported::Name => shorten(&canonical_json(error.instance()), SHOWN_VALUE).into_owned(),
        };
        Self {
            pointer: error.instance_path().as_str().to_owned(),
            expected: expected.into(),
            given: Some(given),
            suggestion: None,
        }
    }
}

/// The first violations of a value, and how many more there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Violations {
    /// At most [`KEPT_VIOLATIONS`], without duplicates, sorted by pointer.
    pub(crate) kept: Vec<Violation>,
    /// How many more there are.
    pub(crate) more: usize,
    /// Whether the validator stopped before it found all problems.
    pub(crate) stopped: bool,
}

impl Violations {
    /// Converts a validator's errors about a tape into violations. Errors beyond the limit are only
    /// counted.
    pub(crate) fn of<'e>(
        errors: impl IntoIterator<Item = &'e ValidationError<'e>>,
        tape: &Tape<'_>,
        schema: &Value,
        stopped: bool,
    ) -> Self {
        let mut found = Collector { tape, schema, violations: Self { stopped, ..Self::default() } };
        for error in errors {
            found.error(error);
        }
        let mut violations = found.violations;
        violations.kept.sort_by(|one, other| one.pointer.cmp(&other.pointer));
        violations
    }

    /// A single violation that does not come from a validator.
    pub(crate) fn one(pointer: &str, expected: &str) -> Self {
        let (pointer, expected) = (pointer.to_owned(), expected.to_owned());
        let violation = Violation { pointer, expected, given: None, suggestion: None };
        Self { kept: vec![violation], ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// How many violations were counted.
    pub(crate) fn count(&self) -> usize {
        self.kept.len() + self.more
    }

    /// Appends other violations.
    pub(crate) fn and(mut self, others: Self) -> Self {
        for violation in others.kept {
            self.add(|| violation);
        }
        self.more += others.more;
        self.stopped |= others.stopped;
        self.kept.sort_by(|one, other| one.pointer.cmp(&other.pointer));
        self
    }

    fn add(&mut self, violation: impl FnOnce() -> Violation) {
        if self.kept.len() == KEPT_VIOLATIONS {
            self.more += 1;
            return;
        }
        let violation = violation();
        if !self.kept.contains(&violation) {
            self.kept.push(violation);
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str("the arguments: ")?;
        } else {
            write!(f, "{}: ", shorten(&self.pointer, SHOWN_POINTER))?;
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

/// Converts errors into violations until there are enough.
struct Collector<'c> {
    tape: &'c Tape<'c>,
    schema: &'c Value,
    violations: Violations,
}

impl Collector<'_> {
    fn error(&mut self, error: &ValidationError<'_>) {
        let (tape, schema) = (self.tape, self.schema);
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                self.unknown_properties(error, unexpected);
            }
            ValidationErrorKind::Required { property } => self.violations.add(|| {
                let name = property.as_str().unwrap_or_default();
                Violation {
                    pointer: child(error.instance_path().as_str(), name),
                    expected: required(error, name, schema),
                    given: None,
                    suggestion: None,
                }
            }),
            ValidationErrorKind::AnyOf { context }
            | ValidationErrorKind::OneOfNotValid { context } => match telling_branch(context) {
                Some(branch) => branch.iter().for_each(|inner| self.error(inner)),
                None => {
                    self.violations.add(|| Violation::new(error, tape, alternatives(context)));
                }
            },
            ValidationErrorKind::PropertyNames { error: inner } => self.violations.add(|| {
                let expected = format!("expected property names to fit: {}", expectation(inner));
                let mut violation = Violation::new(inner, tape, expected);
                error.instance_path().as_str().clone_into(&mut violation.pointer);
                violation
            }),
            ValidationErrorKind::Enum { options } => self.violations.add(|| {
                let mut violation = Violation::new(error, tape, expectation(error));
                let place = match reported(tape, error.instance()) {
                    Reported::At(place) | Reported::Late(place) => place.as_str(),
                    Reported::Name => None,
                };
                if let (Some(given), Some(options)) = (place, options.as_array()) {
                    let known = options.iter().filter_map(Value::as_str);
                    violation.suggestion =
                        near_names(&given, known).first().map(|&near| near.to_owned());
                }
                violation
            }),
            ValidationErrorKind::Pattern { pattern } => self.violations.add(|| {
                // A description says more than most patterns.
                let described = holder(error, schema)
                    .and_then(|holder| holder.get("description")?.as_str())
                    .map(str::trim)
                    .filter(|text| !text.is_empty());
                let expected = match described {
                    Some(text) => format!(
                        "expected text as described (\"{}\") that matches the pattern {pattern}",
                        shorten(text, SHOWN_DESCRIPTION)
                    ),
                    None => expectation(error),
                };
                Violation::new(error, tape, expected)
            }),
            _ => self.violations.add(|| Violation::new(error, tape, expectation(error))),
        }
    }

    /// One violation per name, with its value.
    fn unknown_properties(&mut self, error: &ValidationError<'_>, names: &[String]) {
        let room = KEPT_VIOLATIONS - self.violations.kept.len();
        let (shown, counted) = names.split_at(room.min(names.len()));
        self.violations.more += counted.len();
        let object = match reported(self.tape, error.instance()) {
            Reported::At(place) | Reported::Late(place) if place.kind() == Kind::Object => place,
            _ => self.tape.root(),
        };
        // The names are in member order, so one pass finds all that are shown.
        let mut members = object.members();
        for name in shown {
            let value = members.find(|(key, _)| key.equals(name)).map(|(_, value)| value);
            self.violations.add(|| unknown_property(error, name, value, self.schema));
        }
    }
}

fn unknown_property(
    error: &ValidationError<'_>,
    name: &str,
    value: Option<Cursor<'_>>,
    schema: &Value,
) -> Violation {
    let known: Vec<&str> = properties_beside(error, schema).collect();
    let suggestion = near_names(name, known.iter().copied()).first().map(|&near| near.to_owned());
    let expected = match known.as_slice() {
        [] => "there is no such property: none are allowed here".to_owned(),
        names if suggestion.is_none() && names.len() <= 12 => {
            format!("there is no such property (there are: {})", names.join(", "))
        }
        _ => "there is no such property".to_owned(),
    };
    Violation {
        pointer: child(error.instance_path().as_str(), name),
        expected,
        given: value.map(|value| excerpt(value, SHOWN_VALUE)),
        suggestion,
    }
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

/// The alternative that the value was probably meant for: the one with the deepest errors, if it is
/// unique and its errors are below the value itself.
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
    format!("expected {}", shorten_list(&parts, parts.len(), ", or "))
}

/// What a keyword requires, as "expected …".
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
                let shown: Vec<_> = options.iter().take(SHOWN_OPTIONS).map(constant).collect();
                format!("expected one of {}", shorten_list(&shown, options.len(), ", "))
            }
            None => "expected one of the listed values".to_owned(),
        },
        Kind::Constant { expected_value } => format!("expected {}", constant(expected_value)),
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
        Kind::AdditionalItems { limit } => format!("expected at most {limit} items"),
        Kind::UnevaluatedItems { .. } => "expected no items beyond those described".to_owned(),
        // The error holds only the index of the instance.
        _ => error.masked_with("the value").to_string(),
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

/// A JSON pointer extended by one step.
pub(crate) fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// A value from the schema, shortened if it is unusually long.
fn constant(value: &Value) -> String {
    shorten(&canonical_json(value), SHOWN_CONSTANT).into_owned()
}

/// How many of a schema's listed values a message shows.
const SHOWN_OPTIONS: usize = 20;

/// How many characters of each it shows.
const SHOWN_CONSTANT: usize = 200;

fn shorten_list(options: &[String], count: usize, separator: &str) -> String {
    let shown = options[..options.len().min(SHOWN_OPTIONS)].join(separator);
    if count <= SHOWN_OPTIONS { shown } else { format!("{shown}, … ({count} in all)") }
}
