//! Compiled schemas: made at the first call, shared by equal schemas.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use toolcrib_json::Tape;
use toolcrib_tool::{ToolDefinition, ToolError};

use crate::arguments::json_view::{TapeJson, View};
use crate::arguments::prepare::Preparation;
use crate::arguments::shape::Shape;
use crate::violation::Violation;

/// A compiled input schema. Regular expressions run in linear time, nothing is fetched, and
/// `format` annotates unless the definition says that it asserts.
#[derive(Debug)]
pub(crate) struct InputValidator {
    /// The short way to "fits".
    shape: Shape,
    /// The whole schema, compiled when the short way first does not lead there.
    validator: OnceLock<Validator<TapeJson>>,
    schema: Arc<Value>,
    assert_formats: bool,
    /// What the schema alone says of what comes before validation.
    preparation: Arc<Preparation>,
}

impl InputValidator {
    fn compile(schema: &Arc<Value>, assert_formats: bool) -> Result<Self, ToolError> {
        let compiled = Self {
            shape: Shape::of(schema, assert_formats),
            validator: OnceLock::new(),
            schema: Arc::clone(schema),
            assert_formats,
            preparation: Preparation::of_schema(schema).shared(),
        };
        if !compiled.shape.is_whole() {
            // What was not understood may be no schema at all.
            compiled.validator()?;
        }
        Ok(compiled)
    }

    fn validator(&self) -> Result<&Validator<TapeJson>, ToolError> {
        if let Some(validator) = self.validator.get() {
            return Ok(validator);
        }
        let validator = jsonschema::options_for::<TapeJson>()
            .with_pattern_options(PatternOptions::regex())
            .should_validate_formats(self.assert_formats)
            .offline()
            .build(&self.schema)
            .map_err(|error| unusable(&error))?;
        Ok(self.validator.get_or_init(|| validator))
    }

    /// What happens to the arguments of a tool with this schema before they are validated. Tools
    /// that add nothing to what the schema says share it.
    pub(crate) fn preparation(&self, definition: &ToolDefinition) -> Arc<Preparation> {
        if definition.injections().is_empty() && definition.empty_as_absent().is_empty() {
            Arc::clone(&self.preparation)
        } else {
            Preparation::of(definition).shared()
        }
    }

    /// The short way to "fits", for whoever goes it often.
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Whether the arguments fit, as the whole schema says it.
    ///
    /// # Errors
    ///
    /// If the schema cannot be compiled.
    pub(crate) fn is_valid(&self, tape: &Tape<'_>) -> Result<bool, ToolError> {
        Ok(self.validator()?.is_valid(View::At(tape.root())))
    }

    /// Everything that is wrong, in the order of the arguments.
    ///
    /// # Errors
    ///
    /// If the schema cannot be compiled.
    pub(crate) fn violations(&self, tape: &Tape<'_>) -> Result<Vec<Violation>, ToolError> {
        Ok(Violation::collect(self.errors(tape)?, &self.schema))
    }

    /// The validator's own errors.
    ///
    /// # Errors
    ///
    /// If the schema cannot be compiled.
    pub(crate) fn errors<'a>(
        &'a self,
        tape: &'a Tape<'a>,
    ) -> Result<jsonschema::ErrorIterator<'a>, ToolError> {
        Ok(self.validator()?.iter_errors(View::At(tape.root())))
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

/// The validators in use, by where their schema is: equal schemas of definitions are one, and a
/// validator keeps its own, so that nothing else can come to stand there.
#[derive(Debug, Default)]
pub(crate) struct SchemaCache {
    /// With whether formats assert.
    inputs: Mutex<HashMap<(usize, bool), Weak<InputValidator>>>,
    outputs: Mutex<HashMap<usize, Weak<OutputValidator>>>,
}

impl SchemaCache {
    /// The validator of a definition's arguments.
    pub(crate) fn input(
        &self,
        definition: &ToolDefinition,
    ) -> Result<Arc<InputValidator>, ToolError> {
        let (schema, assert_formats) =
            (definition.shared_input_schema(), definition.assert_formats());
        let compile = || InputValidator::compile(schema, assert_formats);
        shared(&self.inputs, (address(schema), assert_formats), compile)
    }

    /// The validator of a definition's data, if it says what that is.
    pub(crate) fn output(
        &self,
        definition: &ToolDefinition,
    ) -> Result<Option<Arc<OutputValidator>>, ToolError> {
        let schema = definition.shared_output_schema();
        schema
            .map(|schema| {
                shared(&self.outputs, address(schema), || OutputValidator::compile(schema))
            })
            .transpose()
    }
}

fn address(schema: &Arc<Value>) -> usize {
    Arc::as_ptr(schema).addr()
}

fn shared<K: Eq + Hash, V>(
    known: &Mutex<HashMap<K, Weak<V>>>,
    key: K,
    compile: impl FnOnce() -> Result<V, ToolError>,
) -> Result<Arc<V>, ToolError> {
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(validator) = lock().get(&key).and_then(Weak::upgrade) {
        return Ok(validator);
    }
    // Compiled outside the lock: a slow schema must not hold up the first calls of others.
    let fresh = Arc::new(compile()?);
    let mut known = lock();
    if let Some(validator) = known.get(&key).and_then(Weak::upgrade) {
        return Ok(validator);
    }
    // Forgetting is paid for by growth: looked over only when the map is full, which it is again
    // only after as many insertions as entries were kept.
    if known.len() == known.capacity() {
        known.retain(|_, validator| validator.strong_count() > 0);
    }
    known.insert(key, Arc::downgrade(&fresh));
    Ok(fresh)
}
