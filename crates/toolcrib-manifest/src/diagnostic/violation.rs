//! Turns violations of a JSON Schema into diagnostics: the pointer becomes a place, the keyword a
//! message.

use std::cell::LazyCell;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use crate::config::layers::key_places::KeyPlaces;
use crate::config::layers::secret_filter::{is_hidden, known_path};
use crate::diagnostic::meant_value::{self, choice};
use crate::diagnostic::position::first_line;
use crate::diagnostic::{
    Diagnostic, Findings, NOT_SHOWN, Severity, did_you_mean, keys_meant, meant, several_meant,
};
use crate::document::{Node, NodeValue, shortened};

/// The maximum number of reported violations of one value.
const VIOLATIONS_MAX: usize = 100;

/// The replacement for a secret value in messages.
const HIDDEN: &str = "a value that is not shown";

/// A validated value, with the settings for messages about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValidatedValue<'a> {
    pub(crate) node: &'a Node,
    /// The schema of the value, which is used for help texts.
    pub(crate) schema: &'a Value,
    /// The code of the diagnostics; in file formats, unknown and missing keys have codes of their
    /// own.
    pub(crate) code: &'static str,
    pub(crate) severity: Severity,
    /// The prefix of each message, for example "the example does not fit the schema: ".
    pub(crate) prefix: &'a str,
}

impl ValidatedValue<'_> {
    /// Adds a diagnostic for every violation.
    pub(crate) fn report<'e>(
        &self,
        errors: impl IntoIterator<Item = ValidationError<'e>>,
        findings: &mut Findings<'_>,
    ) {
        for error in errors.into_iter().take(VIOLATIONS_MAX) {
            self.violation(&error, findings);
        }
    }

    fn violation(&self, error: &ValidationError<'_>, findings: &mut Findings<'_>) {
        let (node, entry) = self.node.at_pointer(error.instance_path().as_str());
        let place = node.visible_span(entry);
        let pointer = error.instance_path().as_str();
        let key = known_path(self.schema, pointer);
        let is_hidden = is_hidden(self.schema, pointer, node);
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                let known = self.siblings(error);
                let section = self.failed_schema(error);
                // Only settings have sections among which a key can be mistaken.
                let places = LazyCell::new(|| KeyPlaces::of(self.schema));
                let elsewhere =
                    |name: &str| self.code.is_empty().then(|| places.did_you_mean(name)).flatten();
                for name in unexpected {
                    let place = node.entry(name).map_or(&place, |entry| &entry.key_span);
                    let help = section.and_then(|section| renamed(section, name));
                    let texts: Vec<&str> = known.iter().map(String::as_str).collect();
                    let near = several_meant(name, &texts)
                        .or_else(|| did_you_mean(name, texts.iter().copied()));
                    // A misspelt key is no secret; another text may be a secret in the wrong place.
                    let misspelt = near.as_ref().filter(|_| {
                        help.is_none() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
                    });
                    let told = misspelt.map(|near| format!("`{name}` is not known: {near}"));
                    let help = help.or(near).or_else(|| elsewhere(name));
                    let help =
                        help.or_else(|| (!texts.is_empty()).then(|| keys_meant(name, &texts)));
                    let message = format!("unknown key `{}`", shortened(name));
                    let diagnostic = self.diagnostic("unknown-key", place, &message);
                    let diagnostic = diagnostic.expects(told.or(help.clone())).at_key(key.clone());
                    findings.add(diagnostic.maybe_help(help));
                }
            }
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                let place = entry.map_or_else(
                    || first_line(findings.text, &place),
                    |entry| entry.key_span.clone(),
                );
                let message = format!("the key `{name}` is missing");
                let diagnostic = self.diagnostic("missing-key", &place, &message);
                findings.add(diagnostic.expects(message).at_key(key));
            }
            ValidationErrorKind::AnyOf { context }
            | ValidationErrorKind::OneOfNotValid { context } => {
                self.alternatives(error, context, &place, findings);
            }
            // A value that is not a mapping has no keys. Its type is reported.
            ValidationErrorKind::OneOfMultipleValid { .. }
                if self.alternative_keys(error).is_some()
                    && !matches!(node.value, NodeValue::Mapping(_)) => {}
            ValidationErrorKind::OneOfMultipleValid { .. } => {
                let message = match self.alternative_keys(error) {
                    Some(keys) => {
                        format!("only one of the keys {} is allowed here", keys.join(", "))
                    }
                    None if is_hidden => format!(
                        "{HIDDEN} fits several forms, but must fit \
                     exactly one"
                    ),
                    None => {
                        format!("{} fits several forms, but must fit exactly one", node.describe())
                    }
                };
                findings.add(self.diagnostic("invalid-value", &place, &message).at_key(key));
            }
            kind => {
                let code = match kind {
                    ValidationErrorKind::Type { .. } => "wrong-type",
                    _ => "invalid-value",
                };
                let (untold, _) = self.phrase(kind, error, node, None);
                let is_single = !matches!(node.value, NodeValue::Sequence(_) | NodeValue::Null);
                if let Some(help) = self.help_for_single_value(error).filter(|_| is_single) {
                    let message = format!("{untold}, found a single value");
                    let diagnostic = self.diagnostic(code, &place, &message).at_key(key);
                    findings.add(diagnostic.expects(untold).own_help(help));
                    return;
                }
                if is_hidden {
                    let message = format!("{untold}; {NOT_SHOWN}");
                    let diagnostic = self.diagnostic(code, &place, &message).at_key(key);
                    findings.add(diagnostic.expects(untold).secret());
                    return;
                }
                let (message, help) = self.phrase(kind, error, node, Some(&node.describe()));
                let name = entry.map_or("", |entry| entry.key.as_str());
                // Schemas of arguments allow null explicitly; only settings have limits and
                // defaults.
                let of_settings = self.code.is_empty();
                let help = help.or_else(|| unquoted(kind, node)).or_else(|| {
                    let schema = self.failed_schema(error).filter(|_| of_settings)?;
                    meant_value::help(name, schema, node)
                });
                let diagnostic = self.diagnostic(code, &place, &message).maybe_help(help);
                findings.add(diagnostic.expects(untold).at_key(key));
            }
        }
    }

    /// Reports a value that fits none of several forms. If only one form can be meant, its problems
    /// are reported.
    fn alternatives(
        &self,
        error: &ValidationError<'_>,
        branches: &[Vec<ValidationError<'static>>],
        place: &crate::diagnostic::position::Span,
        findings: &mut Findings<'_>,
    ) {
        let here = error.instance_path().as_str();
        let other_type = |branch: &&Vec<ValidationError<'static>>| {
            branch.iter().any(|error| {
                let kind = matches!(error.kind(), ValidationErrorKind::Type { .. });
                kind && error.instance_path().as_str() == here
            })
        };
        let mut meant = branches.iter().filter(|branch| !other_type(branch));
        if let (Some(branch), None) = (meant.next(), meant.next()) {
            for error in branch {
                self.violation(error, findings);
            }
            return;
        }
        let (node, entry) = self.node.at_pointer(here);
        let key = known_path(self.schema, here);
        if let (NodeValue::Mapping(_), Some(keys)) = (&node.value, self.alternative_keys(error)) {
            let place = entry
                .map_or_else(|| first_line(findings.text, place), |entry| entry.key_span.clone());
            let message = format!("one of the keys {} is missing", keys.join(", "));
            let diagnostic = self.diagnostic("missing-key", &place, &message);
            findings.add(diagnostic.expects(message).at_key(key));
            return;
        }
        let is_hidden = is_hidden(self.schema, here, node);
        let found = if is_hidden { HIDDEN.to_owned() } else { node.describe() };
        if let Some(values) = values(branches, here) {
            let (message, help) = one_of(&values, node, Some(&found));
            let (expected, _) = one_of(&values, node, None);
            let diagnostic = self.diagnostic("invalid-value", place, &message).maybe_help(help);
            findings.add(diagnostic.expects(expected).at_key(key));
            return;
        }
        let mut types: Vec<String> = Vec::new();
        for error in branches.iter().flatten() {
            if let ValidationErrorKind::Type { kind } = error.kind()
                && error.instance_path().as_str() == here
                && self.expected(error).is_none()
            {
                types.push(type_names(kind));
            }
        }
        types.dedup();
        types.retain(|name| name != "null" || types_is_single(branches));
        if types.is_empty() {
            types.extend(branches.iter().flatten().find_map(|error| self.expected(error)));
        }
        let expected = (!types.is_empty()).then(|| format!("expected {}", types.join(" or ")));
        let message = match &expected {
            Some(expected) => format!("{expected}, found {found}"),
            None => format!("{found} fits none of the allowed forms"),
        };
        let mut diagnostic = self.diagnostic("wrong-type", place, &message).expects(expected);
        let is_single = !matches!(node.value, NodeValue::Sequence(_) | NodeValue::Mapping(_));
        let schema = self.failed_schema(error).filter(|_| is_single);
        if let Some(help) = schema.and_then(|schema| schema.get("x-scalar")?.as_str()) {
            diagnostic = diagnostic.own_help(help);
        }
        findings.add(diagnostic.at_key(key));
    }

    /// The message; `found` describes the value, unless it is secret.
    fn phrase(
        &self,
        kind: &ValidationErrorKind,
        error: &ValidationError<'_>,
        node: &Node,
        found: Option<&str>,
    ) -> (String, Option<String>) {
        let but = found.map(|found| format!(", found {found}")).unwrap_or_default();
        let it = found.unwrap_or("the value");
        let expected = || self.expected(error).map(|expected| format!("expected {expected}{but}"));
        let message = match kind {
            ValidationErrorKind::Type { kind } => {
                expected().unwrap_or_else(|| format!("expected {}{but}", type_names(kind)))
            }
            ValidationErrorKind::Enum { options } => {
                let values: Vec<_> = options.as_array().into_iter().flatten().collect();
                return one_of(&values, node, found);
            }
            ValidationErrorKind::Constant { expected_value } => {
                format!("expected {expected_value}{but}")
            }
            ValidationErrorKind::Pattern { pattern } => {
                expected().unwrap_or_else(|| format!("{it} does not match the pattern {pattern}"))
            }
            ValidationErrorKind::Minimum { limit } => {
                expected().unwrap_or_else(|| format!("{it} is below {limit}"))
            }
            ValidationErrorKind::Maximum { limit } => {
                expected().unwrap_or_else(|| format!("{it} is above {limit}"))
            }
            ValidationErrorKind::MinItems { .. } if self.expected(error).is_some() => {
                format!("expected {}", self.expected(error).unwrap_or_default())
            }
            // For a secret value, the schema's own description contains all bounds.
            ValidationErrorKind::MinLength { limit } => {
                match expected().filter(|_| found.is_none()) {
                    Some(expected) => expected,
                    None => format!("{it} is shorter than {limit} characters"),
                }
            }
            ValidationErrorKind::MaxLength { limit } => {
                match expected().filter(|_| found.is_none()) {
                    Some(expected) => expected,
                    None => format!("{it} is longer than {limit} characters"),
                }
            }
            ValidationErrorKind::FalseSchema => format!("no value is allowed here{but}"),
            _ if found.is_none() => "the value does not fit".to_owned(),
            _ => shortened(&error.to_string()),
        };
        (message, None)
    }

    /// The schema with the violated keyword.
    fn failed_schema(&self, error: &ValidationError<'_>) -> Option<&Value> {
        let path = error.schema_path().as_str();
        self.schema.pointer(path.rsplit_once('/')?.0)
    }

    /// The keys of which exactly one is needed, if the forms differ only in them.
    fn alternative_keys(&self, error: &ValidationError<'_>) -> Option<Vec<String>> {
        let forms = self.failed_schema(error)?.get("oneOf")?.as_array()?;
        let key = |form: &Value| match form.as_object()?.get("required")?.as_array()?.as_slice() {
            [Value::String(key)] if form.as_object()?.len() == 1 => Some(format!("`{key}`")),
            _ => None,
        };
        forms.iter().map(key).collect()
    }

    /// The description in the violated schema (see [`crate::units`]).
    fn expected(&self, error: &ValidationError<'_>) -> Option<String> {
        Some(self.failed_schema(error)?.get("x-expected")?.as_str()?.to_owned())
    }

    /// What a schema says about a single value in place of a mapping (`x-scalar`).
    fn help_for_single_value(&self, error: &ValidationError<'_>) -> Option<&str> {
        let is_type = matches!(error.kind(), ValidationErrorKind::Type { .. });
        self.failed_schema(error).filter(|_| is_type)?.get("x-scalar")?.as_str()
    }

    /// The known properties in the place of an unknown one.
    fn siblings(&self, error: &ValidationError<'_>) -> Vec<String> {
        let schema = self.failed_schema(error).and_then(|schema| schema.get("properties"));
        schema
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|known| known.keys().cloned())
            .collect()
    }

    /// In file formats, unknown and missing keys and wrong types have the same codes as in
    /// manifests.
    fn diagnostic(
        &self,
        kind: &'static str,
        place: &crate::diagnostic::position::Span,
        message: &str,
    ) -> Diagnostic {
        let code = if self.code.is_empty() { kind } else { self.code };
        let diagnostic = Diagnostic::error(code, place, format!("{}{message}", self.prefix));
        // A more specific help text replaces this one.
        let help = match self.code {
            "bad-default" => Some("correct the default, or its schema"),
            "bad-example" => Some("correct the example, or `input`"),
            "test-arguments" => Some(
                "correct them, or write `expect: {error: invalid_args}` if the call should be \
                 refused",
            ),
            _ => None,
        };
        let help = help.map(str::to_owned);
        Diagnostic { severity: self.severity, ..diagnostic }.maybe_help(help)
    }
}

/// The hint of a section about a key of an earlier version.
pub(crate) fn renamed(section: &Value, key: &str) -> Option<String> {
    Some(section.get("x-renamed")?.get(key)?.as_str()?.to_owned())
}

/// A suggestion for a quoted text that has the right type without quotes.
fn unquoted(kind: &ValidationErrorKind, node: &Node) -> Option<String> {
    let ValidationErrorKind::Type { kind } = kind else { return None };
    let written = node.as_str()?;
    let value: Value = serde_json::from_str(written).ok()?;
    let fits = |name: &str| match name {
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => false,
    };
    let fits = match kind {
        TypeKind::Single(name) => fits(name.as_str()),
        TypeKind::Multiple(names) => names.iter().any(|name| fits(name.as_str())),
    };
    fits.then(|| format!("write {written}, without quotes"))
}

fn types_is_single(branches: &[Vec<ValidationError<'static>>]) -> bool {
    branches.len() == 1
}

/// The allowed values, if every form is a single value: an enumeration whose values have
/// descriptions.
fn values<'e>(branches: &'e [Vec<ValidationError<'static>>], here: &str) -> Option<Vec<&'e Value>> {
    let value = |branch: &'e Vec<ValidationError<'static>>| {
        branch.iter().find_map(|error| match error.kind() {
            ValidationErrorKind::Constant { expected_value } => {
                (error.instance_path().as_str() == here).then_some(&**expected_value)
            }
            _ => None,
        })
    };
    branches.iter().map(value).collect()
}

/// Lists the allowed values, and suggests one.
fn one_of(values: &[&Value], node: &Node, found: Option<&str>) -> (String, Option<String>) {
    let allowed: Vec<String> = values
        .iter()
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .collect();
    let near = node.as_str().and_then(|written| {
        let plain = written.trim_matches(['“', '”', '„', '‘', '’', '«', '»']);
        if plain != written && allowed.iter().any(|value| value == plain) {
            return Some(format!("write \"{plain}\": typographic quotes are a part of the text"));
        }
        meant(written, allowed.iter().map(String::as_str))
            .map(|name| format!("did you mean `{name}`?"))
    });
    let help = choice(node, &allowed).or(near);
    let but = found.map(|found| format!(", found {found}")).unwrap_or_default();
    (format!("expected one of {}{but}", allowed.join(", ")), help)
}

/// The types of a schema in plain words.
fn type_names(kind: &TypeKind) -> String {
    let word = |name: &str| match name {
        "object" => "a mapping".to_owned(),
        "array" => "a list".to_owned(),
        "string" => "text".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" => "a whole number".to_owned(),
        "number" => "a number".to_owned(),
        other => other.to_owned(),
    };
    match kind {
        TypeKind::Single(name) => word(name.as_str()),
        TypeKind::Multiple(names) => {
            let names: Vec<String> = names
                .iter()
                .filter(|name| name.as_str() != "null")
                .map(|name| word(name.as_str()))
                .collect();
            names.join(" or ")
        }
    }
}
