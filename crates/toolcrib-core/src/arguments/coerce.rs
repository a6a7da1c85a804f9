//! Gives a value the type its schema asks for, where the value plainly says what is meant.
//!
//! Runs only on arguments that failed validation, and touches only the places the validator
//! complained about: a string where a string is wanted stays a string, whatever it spells.

use std::collections::BTreeMap;
use std::fmt;

use jsonschema::JsonType;
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;
use toolcrib_json::{Cursor, Kind, Tape, parse};

/// One value that was given another type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coercion {
    /// Where: a JSON pointer.
    pub pointer: String,
    /// What it became: a type's name, or `absent`.
    pub to: &'static str,
}

impl fmt::Display for Coercion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "the arguments" } else { &self.pointer };
        write!(f, "{place} became {}", self.to)
    }
}

/// What to write in place of a value.
enum Change {
    Text(String),
    Remove,
}

/// Rewrites what the validator complained about, as far as that is plainly possible. `None` if
/// nothing is. The result may still be invalid: in other places, or one level deeper.
pub fn coerce<'e>(
    tape: &Tape<'_>,
    errors: impl Iterator<Item = ValidationError<'e>>,
) -> Option<(String, Vec<Coercion>)> {
    let mut changes = BTreeMap::new();
    let mut coercions = Vec::new();
    for error in errors {
        let pointer = error.instance_path().as_str().to_owned();
        let mut wanted = Vec::new();
        wants(&error, &pointer, &mut wanted);
        if changes.contains_key(&pointer) {
            continue;
        }
        let Some(place) = find(tape.root(), &pointer) else { continue };
        let in_object = parent(&pointer)
            .and_then(|parent| find(tape.root(), parent))
            .is_some_and(|parent| parent.kind() == Kind::Object);
        let found = if place.kind() == Kind::Null {
            // Only a member can be left out; an item's place cannot.
            (in_object && !wanted.is_empty()).then_some((Change::Remove, "absent"))
        } else {
            wanted.iter().find_map(|want| change(place, want))
        };
        if let Some((change, to)) = found {
            coercions.push(Coercion { pointer: pointer.clone(), to });
            changes.insert(pointer, change);
        }
    }
    if changes.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(tape.text().len());
    write(tape.root(), &mut String::new(), &changes, &mut out);
    Some((out, coercions))
}

/// What would satisfy a complaint.
enum Want {
    Type(JsonType),
    Integer,
    OneOf(Vec<Value>),
}

fn wants(error: &ValidationError<'_>, pointer: &str, out: &mut Vec<Want>) {
    if error.instance_path().as_str() != pointer {
        return;
    }
    let mut kind = |kind: JsonType| {
        out.push(if kind == JsonType::Integer { Want::Integer } else { Want::Type(kind) });
    };
    match error.kind() {
        ValidationErrorKind::Type { kind: TypeKind::Single(one) } => kind(*one),
        ValidationErrorKind::Type { kind: TypeKind::Multiple(several) } => {
            several.iter().for_each(kind);
        }
        ValidationErrorKind::Enum { options } => {
            out.push(Want::OneOf(options.as_array().cloned().unwrap_or_default()));
        }
        ValidationErrorKind::Constant { expected_value } => {
            out.push(Want::OneOf(vec![expected_value.as_ref().clone()]));
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            for inner in context.iter().flatten() {
                wants(inner, pointer, out);
            }
        }
        _ => {}
    }
}

/// The one table of coercions.
fn change(place: Cursor<'_>, want: &Want) -> Option<(Change, &'static str)> {
    let text = || place.as_str();
    let parsed = |wanted: fn(Kind) -> bool| {
        let text = text()?;
        let text = text.trim();
        let tape = parse(text).ok()?;
        wanted(tape.root().kind()).then(|| Change::Text(text.to_owned()))
    };
    match (want, place.kind()) {
        (Want::Type(JsonType::Boolean), Kind::String) => {
            Some((parsed(|kind| matches!(kind, Kind::True | Kind::False))?, "boolean"))
        }
        (Want::Integer, Kind::String) => {
            Some((parsed(|kind| kind.is_integer() || kind == Kind::IntegralFloat)?, "integer"))
        }
        (Want::Type(JsonType::Number), Kind::String) => Some((parsed(Kind::is_number)?, "number")),
        (Want::Type(JsonType::String), kind) if kind.is_number() => {
            Some((Change::Text(format!("\"{}\"", place.source())), "string"))
        }
        (Want::Type(JsonType::Object), Kind::String | Kind::EscapedString) => {
            Some((parsed(|kind| kind == Kind::Object)?, "object"))
        }
        (Want::Type(JsonType::Array), Kind::String | Kind::EscapedString) => {
            let change = parsed(|kind| kind == Kind::Array).unwrap_or_else(|| wrapped(place));
            Some((change, "array"))
        }
        (Want::Type(JsonType::Array), kind) if !matches!(kind, Kind::Array | Kind::Object) => {
            Some((wrapped(place), "array"))
        }
        (Want::OneOf(options), Kind::String) => {
            let value: Value = serde_json::from_str(text()?.trim()).ok()?;
            let found = options.iter().find(|option| **option == value && !option.is_string())?;
            Some((Change::Text(found.to_string()), "the listed value"))
        }
        (Want::OneOf(options), kind) if kind.is_integer() || kind == Kind::Float => {
            let spelt = Value::from(place.source());
            options.contains(&spelt).then(|| (Change::Text(spelt.to_string()), "the listed value"))
        }
        _ => None,
    }
}

fn wrapped(place: Cursor<'_>) -> Change {
    Change::Text(format!("[{}]", place.source()))
}

fn parent(pointer: &str) -> Option<&str> {
    pointer.rsplit_once('/').map(|(parent, _)| parent)
}

fn find<'a>(root: Cursor<'a>, pointer: &str) -> Option<Cursor<'a>> {
    pointer.split('/').skip(1).try_fold(root, |place, step| match place.kind() {
        Kind::Object => place.get(&step.replace("~1", "/").replace("~0", "~")),
        Kind::Array => place.items().nth(step.parse().ok()?),
        _ => None,
    })
}

/// Copies a value with the changes applied; `pointer` is where it stands.
fn write(
    place: Cursor<'_>,
    pointer: &mut String,
    changes: &BTreeMap<String, Change>,
    out: &mut String,
) {
    if let Some(Change::Text(text)) = changes.get(pointer.as_str()) {
        out.push_str(text);
        return;
    }
    let depth = pointer.len();
    match place.kind() {
        Kind::Object => {
            out.push('{');
            let mut first = true;
            for (name, value) in place.members() {
                let step = name.as_str().unwrap_or_default();
                pointer.push('/');
                pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
                if !matches!(changes.get(pointer.as_str()), Some(Change::Remove)) {
                    if !std::mem::take(&mut first) {
                        out.push(',');
                    }
                    out.push_str(name.source());
                    out.push(':');
                    write(value, pointer, changes, out);
                }
                pointer.truncate(depth);
            }
            out.push('}');
        }
        Kind::Array => {
            out.push('[');
            for (index, item) in place.items().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                pointer.push('/');
                pointer.push_str(&index.to_string());
                write(item, pointer, changes, out);
                pointer.truncate(depth);
            }
            out.push(']');
        }
        _ => out.push_str(place.source()),
    }
}
