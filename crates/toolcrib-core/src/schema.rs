//! Compiled JSON Schemas: built at the first call, shared by equal schemas, and bounded in number.

use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use toolcrib_json::Tape;
use toolcrib_tool::{ToolDefinition, ToolError};

use crate::answers::lru::Lru;
use crate::arguments::json_view::{TapeJson, View};
use crate::violation::Violation;

/// How many compiled schemas of each direction (arguments, data) are kept. A schema that was
/// evicted is compiled again when it is next needed.
const CAPACITY: usize = 1_000;

/// A compiled input schema. Regular expressions run in linear time, nothing is fetched, and
/// `format` annotates unless the definition says that it asserts.
#[derive(Debug)]
pub(crate) struct InputValidator {
    validator: Validator<TapeJson>,
    schema: Arc<Value>,
}

impl InputValidator {
    fn compile(schema: &Arc<Value>, assert_formats: bool) -> Result<Self, ToolError> {
        let validator = jsonschema::options_for::<TapeJson>()
            .with_pattern_options(PatternOptions::regex())
            .should_validate_formats(assert_formats)
            .offline()
            .build(schema)
            .map_err(|error| unusable(&error))?;
        Ok(Self { validator, schema: Arc::clone(schema) })
    }

    /// Whether the arguments fit; builds no message.
    pub(crate) fn is_valid(&self, tape: &Tape<'_>) -> bool {
        self.validator.is_valid(View::At(tape.root()))
    }

    /// Everything that is wrong, in the order of the arguments.
    pub(crate) fn violations(&self, tape: &Tape<'_>) -> Vec<Violation> {
        Violation::collect(self.errors(tape), &self.schema)
    }

    /// The validator's own errors.
    pub(crate) fn errors<'a>(&'a self, tape: &'a Tape<'a>) -> jsonschema::ErrorIterator<'a> {
        self.validator.iter_errors(View::At(tape.root()))
    }
}

/// Checks a tool's `data` against its output schema.
#[derive(Debug)]
pub(crate) struct OutputValidator {
    validator: Validator,
    schema: Arc<Value>,
}

impl OutputValidator {
    pub(crate) fn compile(schema: &Arc<Value>) -> Result<Self, ToolError> {
        let validator = jsonschema::options()
            .with_pattern_options(PatternOptions::regex())
            .should_validate_formats(false)
            .offline()
            .build(schema)
            .map_err(|error| unusable(&error))?;
        Ok(Self { validator, schema: Arc::clone(schema) })
    }

    /// Everything that is wrong with the data.
    pub(crate) fn violations(&self, data: &Value) -> Vec<Violation> {
        if self.validator.is_valid(data) {
            return Vec::new();
        }
        Violation::collect(self.validator.iter_errors(data), &self.schema)
    }
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
    inputs: ValidatorLru<(usize, bool), InputValidator>,
    outputs: ValidatorLru<usize, OutputValidator>,
}

impl Default for SchemaCache {
    fn default() -> Self {
        Self::with_capacity(CAPACITY)
    }
}

impl SchemaCache {
    fn with_capacity(capacity: usize) -> Self {
        Self { inputs: ValidatorLru::new(capacity), outputs: ValidatorLru::new(capacity) }
    }

    /// The validator of a definition's arguments.
    ///
    /// # Errors
    ///
    /// If the schema cannot be compiled.
    pub(crate) fn input(
        &self,
        definition: &ToolDefinition,
    ) -> Result<Arc<InputValidator>, ToolError> {
        let (schema, assert_formats) =
            (definition.shared_input_schema(), definition.assert_formats());
        let compile = || InputValidator::compile(schema, assert_formats);
        self.inputs.get_or_compile((address(schema), assert_formats), schema, compile)
    }

    /// The validator of a definition's data, if it declares an output schema.
    ///
    /// # Errors
    ///
    /// If the schema cannot be compiled.
    pub(crate) fn output(
        &self,
        definition: &ToolDefinition,
    ) -> Result<Option<Arc<OutputValidator>>, ToolError> {
        let schema = definition.shared_output_schema();
        schema
            .map(|schema| {
                let compile = || OutputValidator::compile(schema);
                self.outputs.get_or_compile(address(schema), schema, compile)
            })
            .transpose()
    }
}

/// Definitions with equal schemas share one, so its address identifies it.
fn address(schema: &Arc<Value>) -> usize {
    Arc::as_ptr(schema).addr()
}

/// The most recently used validators. Each entry holds its schema, so that no other schema can be
/// allocated at the same address.
#[derive(Debug)]
struct ValidatorLru<K, V> {
    entries: Mutex<Lru<K, Compiled<V>>>,
    capacity: usize,
}

#[derive(Debug)]
struct Compiled<V> {
    /// A schema that cannot be compiled fails every call alike.
    validator: Result<Arc<V>, ToolError>,
    _schema: Arc<Value>,
}

impl<K: Copy + Eq + Hash, V> ValidatorLru<K, V> {
    fn new(capacity: usize) -> Self {
        Self { entries: Mutex::new(Lru::new()), capacity }
    }

    fn get_or_compile(
        &self,
        key: K,
        schema: &Arc<Value>,
        compile: impl FnOnce() -> Result<V, ToolError>,
    ) -> Result<Arc<V>, ToolError> {
        let lock = || self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&key) {
            return known.validator.clone();
        }
        // Compiled outside the lock: a slow schema must not hold up the calls of other tools. Two
        // first calls at once may both compile it; the later result replaces the equal earlier one.
        let validator = compile().map(Arc::new);
        let mut entries = lock();
        let compiled = Compiled { validator: validator.clone(), _schema: Arc::clone(schema) };
        let mut evicted = vec![entries.insert(key, compiled)];
        while entries.len() > self.capacity {
            evicted.push(entries.pop_oldest().map(|(_, compiled)| compiled));
        }
        // Freed outside the lock, too.
        drop(entries);
        drop(evicted);
        validator
    }
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
        assert_eq!(schemas.inputs.entries.lock().unwrap().len(), 3);
        assert_eq!(schemas.outputs.entries.lock().unwrap().len(), 3);
    }

    #[test]
    fn an_evicted_validator_is_compiled_again_when_it_is_needed() {
        let schemas = SchemaCache::with_capacity(1);
        let (one, other) = (definition("one", "path"), definition("other", "query"));
        let tape = toolcrib_json::parse(r#"{"path": 1}"#).unwrap();
        assert!(!schemas.input(&one).unwrap().is_valid(&tape));
        assert!(schemas.input(&other).unwrap().is_valid(&tape));
        assert!(!schemas.input(&one).unwrap().is_valid(&tape));
    }
}
