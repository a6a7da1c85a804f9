//! Checked schemas and the validation of values. Patterns are compiled at their first use, because
//! most are never used during loading.

use std::sync::{LazyLock, OnceLock};

use jsonschema::paths::Location;
use jsonschema::{Keyword, PatternOptions, ValidationError, ValidationOptions, Validator};
use serde_json::{Map, Value, json};

use super::pattern::surely_compiles;
use crate::diagnostic::violation::ValidatedValue;
use crate::diagnostic::{Findings, Severity};
use crate::document::Node;

/// A valid schema.
#[derive(Debug)]
pub(in crate::manifest) struct Checked {
    pub(in crate::manifest) value: Value,
    /// Whether `format` is asserted.
    pub(in crate::manifest) assert_formats: bool,
    /// Validates quickly; its errors lack the details of patterns.
    quick: Validator,
    /// Produces detailed errors; created when needed.
    exact: OnceLock<Option<Validator>>,
}

impl Checked {
    /// Fails with the schema and the error.
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

    /// Reports where a value does not match.
    pub(in crate::manifest) fn report(
        &self,
        value: &Value,
        node: &Node,
        (code, severity, prefix): (&'static str, Severity, &str),
        findings: &mut Findings<'_>,
    ) {
        if !self.quick.is_valid(value) {
            let subject = ValidatedValue { node, schema: &self.value, code, severity, prefix };
            subject.report(self.exact().iter_errors(value), findings);
        }
    }

    /// Like [`report`](Self::report), only for problems inside the value.
    pub(in crate::manifest) fn report_inside(
        &self,
        value: &Value,
        node: &Node,
        (code, severity, prefix): (&'static str, Severity, &str),
        findings: &mut Findings<'_>,
    ) {
        let is_inside = |error: &ValidationError<'_>| !error.instance_path().is_empty();
        if self.quick.iter_errors(value).any(|error| is_inside(&error)) {
            let subject = ValidatedValue { node, schema: &self.value, code, severity, prefix };
            subject.report(self.exact().iter_errors(value).filter(is_inside), findings);
        }
    }

    fn exact(&self) -> &Validator {
        let compiled = || EXACT.of(self.assert_formats).build(&self.value).ok();
        let exact = self.exact.get_or_init(compiled);
        // This cannot fail, because the patterns are known to compile.
        exact.as_ref().unwrap_or(&self.quick)
    }
}

/// Options with linear-time patterns and without fetching.
fn options() -> ValidationOptions<'static> {
    jsonschema::options().with_pattern_options(PatternOptions::regex()).offline()
}

/// Compiles a schema completely, as for a call of the tool.
pub(in crate::manifest) fn compile(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    EXACT.of(false).build(schema)
}

/// Options without and with asserted formats.
struct FormatOptions {
    annotating: ValidationOptions<'static>,
    asserting: ValidationOptions<'static>,
}

impl FormatOptions {
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

static EXACT: LazyLock<FormatOptions> = LazyLock::new(|| FormatOptions::new(options));

static QUICK: LazyLock<FormatOptions> = LazyLock::new(|| {
    FormatOptions::new(|| options().with_keyword("pattern", LazyPattern::keyword))
});

/// `pattern`, known to compile, compiled at the first text.
struct LazyPattern {
    pattern: String,
    validator: OnceLock<Option<Validator>>,
}

impl LazyPattern {
    /// Fails if only the compiler can decide whether the pattern is valid.
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
