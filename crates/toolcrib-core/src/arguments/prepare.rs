//! Prepares arguments between parsing and validation: removes what a model may not set, drops empty
//! strings that mean "not given", fills in defaults, and rewrites whole numbers that are written as
//! floats.
//!
//! A text that needs none of this is used unchanged; any other is rewritten and parsed again, so
//! that the validated text is always the one that the tool gets.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use toolcrib_json::{Cursor, Kind, Number, Tape, parse};
use toolcrib_tool::{ToolDefinition, canonical_json};

/// How to prepare the arguments of one tool; computed once per tool.
#[derive(Debug, Clone, Default)]
pub struct Preparation {
    injected: Vec<String>,
    declared_private: Vec<String>,
    empty_as_absent: Vec<String>,
    defaults: Defaults,
}

/// Defaults of an object schema and of the objects among its properties.
#[derive(Debug, Clone, Default)]
struct Defaults {
    /// Property → JSON text of its default.
    own: Vec<(String, String)>,
    /// Property → defaults inside it, if it is present.
    nested: Vec<(String, Defaults)>,
}

impl Defaults {
    fn of(schema: &Value) -> Self {
        let mut defaults = Self::default();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flat_map(Map::iter) {
            let nested = Self::of(property);
            // Generators write `default: null` for "no default", even if the property cannot be
            // null: it stays absent.
            if let Some(value) = property.get("default").filter(|value| !value.is_null()) {
                defaults.own.push((name.clone(), nested.complete(&canonical_json(value))));
            }
            if !nested.is_empty() {
                defaults.nested.push((name.clone(), nested));
            }
        }
        defaults
    }

    /// A default's text with the defaults inside it filled in, normalized like any argument.
    fn complete(&self, text: &str) -> String {
        let Ok(tape) = parse(text) else { return text.to_owned() };
        let mut out = String::with_capacity(text.len());
        write_value(tape.root(), Some(self), &mut out);
        out
    }

    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.nested.is_empty()
    }

    fn nested(&self, name: &Cursor<'_>) -> Option<&Self> {
        self.nested.iter().find(|(known, _)| name.equals(known)).map(|(_, nested)| nested)
    }

    fn missing_in(&self, object: Cursor<'_>) -> bool {
        self.own.iter().any(|(name, _)| object.get(name).is_none())
            || self.nested.iter().any(|(name, nested)| {
                object
                    .get(name)
                    .is_some_and(|inner| inner.kind() == Kind::Object && nested.missing_in(inner))
            })
    }
}

impl Preparation {
    /// Reads a definition.
    pub fn of(definition: &ToolDefinition) -> Self {
        let schema = definition.input_schema();
        let properties = schema.get("properties").and_then(Value::as_object);
        Self {
            injected: definition
                .injections()
                .iter()
                .map(|injection| injection.parameter().to_owned())
                .collect(),
            declared_private: properties
                .into_iter()
                .flat_map(Map::keys)
                .filter(|name| name.starts_with('_'))
                .cloned()
                .collect(),
            empty_as_absent: definition.empty_as_absent().to_vec(),
            defaults: Defaults::of(schema),
        }
    }

    /// The text to validate; `None` if the tape's own text needs no change.
    pub fn rewrite(&self, tape: &Tape<'_>) -> Option<String> {
        let root = tape.root();
        if root.kind() != Kind::Object {
            // Not an object: the validator will report that.
            return None;
        }
        let changes = tape.has_integral_float()
            || self.may_drop(root) && root.members().any(|(name, value)| self.drops(name, value))
            || self.defaults.missing_in(root);
        if !changes {
            return None;
        }
        let mut out = String::with_capacity(tape.text().len() + 64);
        write_object(root, Some(&self.defaults), |name, value| !self.drops(name, value), &mut out);
        Some(out)
    }

    /// The names of the members that a model may not set and that [`rewrite`](Self::rewrite)
    /// removes.
    pub(crate) fn stripped(&self, tape: &Tape<'_>) -> Vec<String> {
        let root = tape.root();
        if root.kind() != Kind::Object || !self.may_drop(root) {
            return Vec::new();
        }
        let names = root.members().map(|(name, _)| name).filter(|name| self.strips(*name));
        names.map(|name| name.key_text().into_owned()).collect()
    }

    /// Whether members have to be checked one by one. Usually no name is stripped and none looks
    /// private.
    fn may_drop(&self, root: Cursor<'_>) -> bool {
        let may_be_private =
            |name: Cursor<'_>| matches!(name.raw_bytes().first(), Some(b'_' | b'\\'));
        !self.injected.is_empty()
            || !self.empty_as_absent.is_empty()
            || root.members().any(|(name, _)| may_be_private(name))
    }

    /// Whether a member is removed because of its name.
    fn strips(&self, name: Cursor<'_>) -> bool {
        // An escape may stand for an underscore; otherwise the first byte decides.
        let is_private = match name.raw_bytes().first() {
            Some(b'_') => true,
            Some(b'\\') => name.key_text().starts_with('_'),
            _ => false,
        };
        is_private && !is_among(name, &self.declared_private) || is_among(name, &self.injected)
    }

    /// Whether a member is removed.
    fn drops(&self, name: Cursor<'_>, value: Cursor<'_>) -> bool {
        self.strips(name)
            || !self.empty_as_absent.is_empty()
                && value.kind() == Kind::String
                && value.raw_bytes().is_empty()
                && is_among(name, &self.empty_as_absent)
    }
}

fn is_among(name: Cursor<'_>, known: &[String]) -> bool {
    known.iter().any(|known| name.equals(known))
}

/// Writes an object with its defaults filled in, keeping the members `keep` accepts.
fn write_object(
    object: Cursor<'_>,
    defaults: Option<&Defaults>,
    keep: impl Fn(Cursor<'_>, Cursor<'_>) -> bool,
    out: &mut String,
) {
    out.push('{');
    let mut separate = separator();
    for (name, value) in object.members().filter(|(name, value)| keep(*name, *value)) {
        separate(out);
        out.push_str(name.source());
        out.push(':');
        write_value(value, defaults.and_then(|defaults| defaults.nested(&name)), out);
    }
    for (name, json) in defaults.map(|defaults| defaults.own.as_slice()).unwrap_or_default() {
        let given =
            object.members().any(|(member, value)| member.equals(name) && keep(member, value));
        if !given {
            separate(out);
            out.push_str(&Value::from(name.as_str()).to_string());
            out.push(':');
            out.push_str(json);
        }
    }
    out.push('}');
}

fn write_value(value: Cursor<'_>, defaults: Option<&Defaults>, out: &mut String) {
    match value.kind() {
        Kind::Object => write_object(value, defaults, |_, _| true, out),
        Kind::Array => {
            out.push('[');
            let mut separate = separator();
            for item in value.items() {
                separate(out);
                write_value(item, None, out);
            }
            out.push(']');
        }
        Kind::IntegralFloat => {
            if let Some(Number::Float(whole)) = value.number() {
                // Writing to a String cannot fail. Adding 0 turns -0 into 0.
                let _ = write!(out, "{:.0}", whole + 0.0);
            }
        }
        _ => out.push_str(value.source()),
    }
}

/// Writes a comma before every call but the first.
fn separator() -> impl FnMut(&mut String) {
    let mut first = true;
    move |out| {
        if !std::mem::take(&mut first) {
            out.push(',');
        }
    }
}
