//! Schemas that can be used, and values held against them: patterns are compiled when a value first
//! asks for them, and most never are.

use std::sync::{LazyLock, OnceLock};

use jsonschema::paths::Location;
use jsonschema::{Keyword, PatternOptions, ValidationError, ValidationOptions, Validator};
use serde_json::{Map, Value, json};

use super::pattern::surely_compiles;
use crate::diagnostic::violation::Subject;
use crate::diagnostic::{Findings, Severity};
use crate::document::Node;

/// A schema that can be used.
#[derive(Debug)]
pub(in crate::manifest) struct Checked {
    pub(in crate::manifest) value: Value,
    /// Whether a text must be of the `format` that is named.
    pub(in crate::manifest) assert_formats: bool,
    /// Tells what fits. What it says of what does not fit lacks words for patterns.
    quick: Validator,
    /// Finds the words; made when there is something to say.
    exact: OnceLock<Option<Validator>>,
}

impl Checked {
    /// Fails with the schema and what keeps it from being used.
    pub(in crate::manifest) fn new(
        value: Value,
        assert_formats: bool,
    ) -> Result<Self, (Value, ValidationError<'static>)> {
        if let Ok(quick) = QUICK.of(assert_formats).build(&value) {
            return Ok(Self { value, assert_formats, quick, exact: OnceLock::new() });
        }
        match EXACT.of(assert_formats).build(&value) {
            Ok(validator) => {
                let exact = OnceLock::from(Some(validator.clone()));
                Ok(Self { value, assert_formats, quick: validator, exact })
            }
            Err(error) => Err((value, error)),
        }
    }

    /// Says where a value does not fit; nothing if it fits.
    pub(in crate::manifest) fn report(
        &self,
        value: &Value,
        node: &Node,
        (code, severity, prefix): (&'static str, Severity, &str),
        findings: &mut Findings<'_>,
    ) {
        if !self.quick.is_valid(value) {
            let subject = Subject { node, schema: &self.value, code, severity, prefix };
            subject.report(self.exact().iter_errors(value), findings);
        }
    }

    /// As [`report`](Self::report), for what is wrong inside the value and not with it as a whole.
    pub(in crate::manifest) fn report_inside(
        &self,
        value: &Value,
        node: &Node,
        (code, severity, prefix): (&'static str, Severity, &str),
        findings: &mut Findings<'_>,
    ) {
        let is_inside = |error: &ValidationError<'_>| !error.instance_path().is_empty();
        if self.quick.iter_errors(value).any(|error| is_inside(&error)) {
            let subject = Subject { node, schema: &self.value, code, severity, prefix };
            subject.report(self.exact().iter_errors(value).filter(is_inside), findings);
        }
    }

    fn exact(&self) -> &Validator {
        let compiled = || EXACT.of(self.assert_formats).build(&self.value).ok();
        let exact = self.exact.get_or_init(compiled);
        // There is one: what is surely a pattern compiles, and nothing else is different.
        exact.as_ref().unwrap_or(&self.quick)
    }
}

/// Patterns run in linear time, and nothing is fetched from anywhere.
fn options() -> ValidationOptions<'static> {
    jsonschema::options().with_pattern_options(PatternOptions::regex()).offline()
}

/// Compiles the whole of a schema, as whoever calls the tool will.
pub(in crate::manifest) fn compile(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    EXACT.of(false).build(schema)
}

/// The same options where formats annotate, and where they assert.
struct Options {
    annotating: ValidationOptions<'static>,
    asserting: ValidationOptions<'static>,
}

impl Options {
    fn new(made: impl Fn() -> ValidationOptions<'static>) -> Self {
        Self {
            annotating: made().should_validate_formats(false),
            asserting: made().should_validate_formats(true),
        }
    }

    fn of(&self, assert_formats: bool) -> &ValidationOptions<'static> {
        if assert_formats { &self.asserting } else { &self.annotating }
    }
}

static EXACT: LazyLock<Options> = LazyLock::new(|| Options::new(options));

static QUICK: LazyLock<Options> =
    LazyLock::new(|| Options::new(|| options().with_keyword("pattern", LazyPattern::keyword)));

/// `pattern`, known to compile, compiled at the first text.
struct LazyPattern {
    pattern: String,
    validator: OnceLock<Option<Validator>>,
}

impl LazyPattern {
    /// Fails where only the compiler can tell whether the pattern is one.
    fn keyword<'a>(
        _: &'a Map<String, Value>,
        pattern: &'a Value,
        _: Location,
    ) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
        match pattern.as_str().filter(|pattern| surely_compiles(pattern)) {
            Some(pattern) => {
                Ok(Box::new(Self { pattern: pattern.to_owned(), validator: OnceLock::new() }))
            }
            None => Err(ValidationError::custom("only the compiler can tell")),
        }
    }
}

impl<'i> Keyword<'i> for LazyPattern {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if Keyword::is_valid(self, instance) {
            Ok(())
        } else {
            Err(ValidationError::custom("the pattern does not match"))
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        if !instance.is_string() {
            return true;
        }
        let compiled = || compile(&json!({"pattern": self.pattern})).ok();
        let validator = self.validator.get_or_init(compiled).as_ref();
        validator.is_some_and(|validator| validator.is_valid(instance))
    }
}
