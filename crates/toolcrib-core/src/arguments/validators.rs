//! Compiled JSON Schemas: built at the first call, shared by equal schemas, and bounded in number.

use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use toolcrib_json::{Cursor, Kind, Tape, parse_owned};
use toolcrib_tool::{Data, ToolDefinition, ToolError};

use crate::arguments::json_view::{Bounds, Reported, TapeJson, View, reported};
use crate::arguments::number_view::SchemaNumbers;
use crate::arguments::violation::Violations;
use crate::cache::lru::Lru;
use crate::output::excerpt::shorten;

/// How many compiled schemas are kept. One that was evicted is compiled again when it is next needed.
const CAPACITY: usize = 1_000;

/// How many problems a validator looks for. More are not worth correcting one by one, and each
/// costs far more than a valid value.
const MAX_PROBLEMS: u32 = 10_000;

/// How many bytes the paths of all problems may take together, but at least [`MIN_PROBLEMS`] are
/// reported: each problem holds its whole path, whose names may have any length.
const PATH_BYTES: usize = 4 * 1024 * 1024;

/// How many problems a validator looks for at least.
const MIN_PROBLEMS: u32 = 2;

/// A compiled schema. Regular expressions run in linear time and nothing is fetched.
#[derive(Debug)]
pub(crate) struct SchemaValidator {
    validator: Validator<TapeJson>,
    schema: Arc<Value>,
    numbers: SchemaNumbers,
}

/// The problems that a validator found in a tape.
#[derive(Debug)]
pub(crate) struct Problems<'a> {
    pub(crate) errors: Vec<ValidationError<'a>>,
    /// Whether the validator stopped before it found all problems.
    pub(crate) stopped: bool,
}

impl SchemaValidator {
    /// Compiles a schema; `format` annotates unless `assert_formats` says otherwise.
    ///
    /// # Errors
    ///
    /// If the schema cannot be compiled.
    pub(crate) fn compile(schema: &Arc<Value>, assert_formats: bool) -> Result<Self, ToolError> {
        let validator = jsonschema::options_for::<TapeJson>()
            .with_pattern_options(PatternOptions::regex())
            .should_validate_formats(assert_formats)
            .offline()
            .build(schema)
            .map_err(|error| unusable(&error))?;
        let numbers = SchemaNumbers::of(schema);
        Ok(Self { validator, schema: Arc::clone(schema), numbers })
    }

    /// The schema itself.
    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Whether the value is valid, without building messages.
    ///
    /// # Errors
    ///
    /// If the validator takes more steps than the value's size allows, or the value holds a number that
    /// cannot be compared exactly.
    pub(crate) fn is_valid(&self, tape: &Tape<'_>) -> Result<bool, ToolError> {
        let bounds = Bounds::of(tape, MAX_PROBLEMS, &self.numbers);
        let valid = self.validator.is_valid(View::At(tape.root(), &bounds));
        means_something(tape, &bounds).map(|()| valid)
    }

    /// The validator's own errors, up to the limit. `bounds` are those of the tape
    /// ([`bounds`](Self::bounds)).
    ///
    /// # Errors
    ///
    /// If the validator takes more steps than the value's size allows, or the value holds a number that
    /// cannot be compared exactly.
    pub(crate) fn problems<'a>(
        &'a self,
        tape: &'a Tape<'_>,
        bounds: &'a Bounds<'_>,
    ) -> Result<Problems<'a>, ToolError> {
        let mut errors: Vec<_> =
            self.validator.iter_errors(View::At(tape.root(), bounds)).collect();
        means_something(tape, bounds)?;
        if bounds.is_full() {
            // Problems found after the limit may be artifacts of the cut-off search, unless they
            // contain earlier ones.
            errors.retain(|error| match error.kind() {
                ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
                    true
                }
                _ => !matches!(reported(tape, error.instance()), Reported::Late(_)),
            });
        }
        Ok(Problems { errors, stopped: bounds.is_full() })
    }

    /// The budget of one search for problems in a tape.
    pub(crate) fn bounds(&self, tape: &Tape<'_>) -> Bounds<'_> {
        let fitting = PATH_BYTES / longest_path(tape.root()).max(1);
        let fitting = u32::try_from(fitting).unwrap_or(MAX_PROBLEMS);
        let problems = fitting.clamp(MIN_PROBLEMS, MAX_PROBLEMS);
        Bounds::of(tape, problems, &self.numbers)
    }

    /// All violations in a tool's data.
    pub(crate) fn violations_of(&self, data: &Data) -> Violations {
        if data.is_rounded() {
            return self.violations_in(data.to_json());
        }
        self.violations(data.value())
    }

    /// All violations in a value that is not an argument.
    pub(crate) fn violations(&self, data: &Value) -> Violations {
        self.violations_in(data.to_string())
    }

    fn violations_in(&self, text: String) -> Violations {
        let tape = match parse_owned(text) {
            Ok(tape) => tape,
            Err((error, _)) => return Violations::one("", &error.problem),
        };
        let bounds = self.bounds(&tape);
        let found = self.is_valid(&tape).and_then(|valid| {
            if valid {
                return Ok(Violations::default());
            }
            let Problems { errors, stopped } = self.problems(&tape, &bounds)?;
            Ok(Violations::of(&errors, &tape, &self.schema, stopped))
        });
        found.unwrap_or_else(|error| Violations::one("", error.message()))
    }
}

/// The largest total length of names on a path from the root to a value. Array positions count a
/// few bytes.
fn longest_path(value: Cursor<'_>) -> usize {
    const POSITION: usize = 4;

    let below = |value: Cursor<'_>| match value.kind() {
        Kind::Object | Kind::Array => longest_path(value),
        _ => 0,
    };
    let members = value.members().map(|(name, value)| name.raw_bytes().len() + below(value));
    let items = value.items().map(|item| POSITION + below(item));
    members.chain(items).max().unwrap_or(0)
}

/// Fails if the verdict of a validation is meaningless: it ran out of steps, or could not compare a
/// number exactly.
fn means_something(tape: &Tape<'_>, bounds: &Bounds<'_>) -> Result<(), ToolError> {
    if bounds.ran_out() {
        return Err(too_many_steps());
    }
    match bounds.inexact().and_then(|place| tape.at(place)) {
        Some(place) => Err(too_many_digits(place)),
        None => Ok(()),
    }
}

fn too_many_digits(number: Cursor<'_>) -> ToolError {
    const SHOWN: usize = 80;

    let pointer = number.pointer();
    ToolError::invalid_args(format!(
        "the number at `{}` ({}) has too many digits to be checked exactly against the tool's schema",
        shorten(&pointer, SHOWN),
        shorten(number.source(), SHOWN),
    ))
    .with_hint("Nothing was run. Send the number with at most 15 digits, and a whole number without a fraction.")
}

fn too_many_steps() -> ToolError {
    ToolError::invalid_args(
        "checking this value against the tool's schema takes too long for its size",
    )
    .with_hint("Nest it less deeply, or send less at a time.")
}

fn unusable(error: &jsonschema::ValidationError<'_>) -> ToolError {
    ToolError::internal(format!(
        "the tool's own schema cannot be used: {error} (at `{}` of the schema)",
        error.instance_path()
    ))
}

/// Recently used validators of a registry's tools.
#[derive(Debug)]
pub(crate) struct SchemaCache {
    /// By schema, and by whether formats assert.
    entries: Mutex<Lru<(usize, bool), Compiled>>,
    capacity: usize,
}

#[derive(Debug)]
struct Compiled {
    /// If the schema cannot be compiled, every call fails with this error.
    validator: Result<Arc<SchemaValidator>, ToolError>,
    /// Kept alive so that no other schema can be allocated at the same address.
    _schema: Arc<Value>,
}

impl Default for SchemaCache {
    fn default() -> Self {
        Self::with_capacity(CAPACITY)
    }
}

impl SchemaCache {
    fn with_capacity(capacity: usize) -> Self {
        Self { entries: Mutex::new(Lru::new()), capacity }
    }

    /// The validator of a definition's arguments.
    ///
    /// # Errors
    ///
    /// If the schema cannot be compiled.
    pub(crate) fn input(
        &self,
        definition: &ToolDefinition,
    ) -> Result<Arc<SchemaValidator>, ToolError> {
        self.get_or_compile(definition.shared_input_schema(), definition.assert_formats())
    }

    /// The validator of a definition's data, if it declares an output schema.
    ///
    /// # Errors
    ///
    /// If the schema cannot be compiled.
    pub(crate) fn output(
        &self,
        definition: &ToolDefinition,
    ) -> Result<Option<Arc<SchemaValidator>>, ToolError> {
        let schema = definition.shared_output_schema();
        schema.map(|schema| self.get_or_compile(schema, false)).transpose()
    }

    fn get_or_compile(
        &self,
        schema: &Arc<Value>,
        assert_formats: bool,
    ) -> Result<Arc<SchemaValidator>, ToolError> {
        let lock = || self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (address(schema), assert_formats);
        if let Some(known) = lock().get(&key) {
            return known.validator.clone();
        }
        // Compiled outside the lock: a slow schema must not block calls of other tools. Two
        // concurrent first calls may both compile it; the later result replaces the equal earlier
        // one.
        let validator = SchemaValidator::compile(schema, assert_formats).map(Arc::new);
        let mut entries = lock();
        let compiled = Compiled { validator: validator.clone(), _schema: Arc::clone(schema) };
        let mut evicted = vec![entries.insert(key, compiled)];
        while entries.len() > self.capacity {
            evicted.push(entries.pop_oldest().map(|(_, compiled)| compiled));
        }
        // Freed outside the lock.
        drop(entries);
        drop(evicted);
        validator
    }
}

/// Definitions with equal schemas share one, so its address identifies it.
fn address(schema: &Arc<Value>) -> usize {
    Arc::as_ptr(schema).addr()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(name: &str, property: &str) -> ToolDefinition {
        ToolDefinition::builder(name)
            .description("A tool.")
            .input_schema(json!({"type": "object", "properties": {property: {"type": "string"}}}))
            .output_schema(json!({"type": "object", "required": [property]}))
            .build()
            .unwrap()
    }

    #[test]
    fn tools_with_equal_schemas_share_one_validator() {
        let schemas = SchemaCache::default();
        let (one, other) = (definition("one", "path"), definition("other", "path"));
        let inputs = [schemas.input(&one).unwrap(), schemas.input(&other).unwrap()];
        assert!(Arc::ptr_eq(&inputs[0], &inputs[1]));
        let outputs = [schemas.output(&one).unwrap(), schemas.output(&other).unwrap()];
        let [Some(one), Some(other)] = &outputs else { panic!("both declare an output schema") };
        assert!(Arc::ptr_eq(one, other));
    }

    #[test]
    fn only_the_most_recently_used_validators_are_kept() {
        let schemas = SchemaCache::with_capacity(3);
        let definitions: Vec<_> = (0..5).map(|n| definition("t", &format!("p{n}"))).collect();
        let first = schemas.input(&definitions[0]).unwrap();
        for definition in &definitions {
            schemas.input(definition).unwrap();
            schemas.output(definition).unwrap();
            assert!(Arc::ptr_eq(&schemas.input(&definitions[0]).unwrap(), &first));
        }
        assert_eq!(schemas.entries.lock().unwrap().len(), 3);
    }

    #[test]
    fn an_evicted_validator_is_compiled_again_when_it_is_needed() {
        let schemas = SchemaCache::with_capacity(1);
        let (one, other) = (definition("one", "path"), definition("other", "query"));
        let tape = toolcrib_json::parse(r#"{"path": 1}"#).unwrap();
        assert!(!schemas.input(&one).unwrap().is_valid(&tape).unwrap());
        assert!(schemas.input(&other).unwrap().is_valid(&tape).unwrap());
        assert!(!schemas.input(&one).unwrap().is_valid(&tape).unwrap());
    }

    #[test]
    fn alternatives_that_multiply_are_given_up() {
        // Each alternative of the level above visits each level twice.
        let either = json!({"anyOf": [
            {"properties": {"a": {"$ref": "#/$defs/either"}}, "required": ["b"]},
            {"properties": {"a": {"$ref": "#/$defs/either"}}, "required": ["c"]},
        ]});
        let schema = json!({"$defs": {"either": either}, "$ref": "#/$defs/either"});
        let validator = SchemaValidator::compile(&Arc::new(schema), false).unwrap();
        let nested = |depth| format!("{}{{}}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        let valid = nested(3).replace("{}", r#"{"b":1}"#);
        assert!(!validator.is_valid(&toolcrib_json::parse(&valid).unwrap()).unwrap());

        let text = nested(100);
        let tape = toolcrib_json::parse(&text).unwrap();
        let bounds = validator.bounds(&tape);
        let found = validator.problems(&tape, &bounds);
        assert!(found.is_err() || found.is_ok_and(|found| found.stopped));
    }

    #[test]
    fn a_validator_takes_no_more_steps_than_the_size_of_the_value_allows() {
        let each = json!({"items": {"type": "integer"}});
        let schema = json!({"allOf": vec![each; 300]});
        let validator = SchemaValidator::compile(&Arc::new(schema), false).unwrap();
        let items = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
        assert!(validator.is_valid(&toolcrib_json::parse(&items(100)).unwrap()).unwrap());
        let refused = validator.is_valid(&toolcrib_json::parse(&items(10_000)).unwrap());
        assert_eq!(refused.unwrap_err().kind(), toolcrib_tool::ErrorKind::InvalidArgs);
    }

    #[test]
    fn problems_are_looked_for_up_to_a_number() {
        let schema = json!({"items": {"type": "string"}});
        let validator = SchemaValidator::compile(&Arc::new(schema), false).unwrap();
        for (text, expected) in [
            (format!("[{}1]", "1,".repeat(99)), (100, false)),
            (format!("[{}1]", "1,".repeat(19_999)), (10_000, true)),
            // Each path holds the long name.
            (format!(r#"{{"{}":1}}"#, "x".repeat(1_000_000)), (0, false)),
        ] {
            let tape = toolcrib_json::parse(&text).unwrap();
            let bounds = validator.bounds(&tape);
            let Problems { errors, stopped } = validator.problems(&tape, &bounds).unwrap();
            assert_eq!((errors.len(), stopped), expected);
        }
    }

    #[test]
    fn fewer_problems_are_looked_for_under_long_names() {
        let schema = json!({"additionalProperties": {"items": {"type": "string"}}});
        let validator = SchemaValidator::compile(&Arc::new(schema), false).unwrap();
        let text = format!(r#"{{"{}":[{}1]}}"#, "x".repeat(1 << 20), "1,".repeat(9_999));
        let tape = toolcrib_json::parse(&text).unwrap();
        let bounds = validator.bounds(&tape);
        let Problems { errors, stopped } = validator.problems(&tape, &bounds).unwrap();
        assert_eq!((errors.len(), stopped), (3, true));
    }
}
