//! Converts a value to the type that its schema requires if the meaning is unambiguous.
//!
//! Runs only on arguments that failed validation, and changes only the values that the validator
//! rejected: a string that is expected to be a string stays one, whatever it contains.

use std::borrow::Cow;
use std::fmt;

use jsonschema::JsonType;
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;
use toolcrib_json::{Cursor, Kind, Tape, exact, parse};

use super::json_view::{Reported, reported};

/// A value that was converted to another type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Coercion {
    /// Where: a JSON pointer.
    pub(crate) pointer: String,
    /// The new type's name, or `absent`.
    pub(crate) to: &'static str,
}

impl fmt::Display for Coercion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "the arguments" } else { &self.pointer };
        write!(f, "{place} became {}", self.to)
    }
}

/// Converts the values that the validator rejected, where that is unambiguous. `None` if nothing
/// could be converted. The result may still be invalid, elsewhere or one level deeper.
///
/// One pass over the errors and one over the tape, however many errors there are.
pub(crate) fn coerce(
    tape: &Tape<'_>,
    errors: &[ValidationError<'_>],
    schema: &Value,
) -> Option<(String, Vec<Coercion>)> {
    let mut complaints: Vec<_> = errors
        .iter()
        .filter_map(|error| match reported(tape, error.instance()) {
            Reported::At(place) => Some((place.index(), error)),
            Reported::Late(_) | Reported::Name => None,
        })
        .collect();
    complaints.sort_by_key(|(index, _)| *index);
    let demands: Vec<_> = complaints
        .chunk_by(|(one, _), (other, _)| one == other)
        .map(|complaints| Demand::of(tape, complaints, schema))
        .filter(|demand| !demand.wants.is_empty())
        .collect();
    if demands.is_empty() {
        return None;
    }
    let out = String::with_capacity(tape.text().len());
    let mut writer = CoercedWriter { demands: &demands, out, coercions: Vec::new() };
    writer.value(tape.root());
    (!writer.coercions.is_empty()).then_some((writer.out, writer.coercions))
}

/// The errors about one value.
struct Demand<'e> {
    index: u32,
    pointer: &'e str,
    wants: Vec<Want<'e>>,
    /// Whether the schema allows the property to be absent.
    optional: bool,
}

/// What would satisfy one error.
#[derive(Clone, Copy)]
enum Want<'e> {
    Type(JsonType),
    OneOf(&'e [Value]),
}

impl<'e> Demand<'e> {
    fn of(tape: &Tape<'_>, complaints: &[(u32, &'e ValidationError<'e>)], schema: &Value) -> Self {
        let mut demand = Self {
            index: complaints.first().map_or(0, |(index, _)| *index),
            pointer: complaints.first().map_or("", |(_, error)| error.instance_path().as_str()),
            wants: Vec::new(),
            optional: complaints.iter().all(|(_, error)| is_optional(error, schema)),
        };
        for (_, error) in complaints {
            demand.add(tape, error);
        }
        demand
    }

    fn add(&mut self, tape: &Tape<'_>, error: &'e ValidationError<'_>) {
        match error.kind() {
            ValidationErrorKind::Type { kind: TypeKind::Single(one) } => {
                self.wants.push(Want::Type(*one));
            }
            ValidationErrorKind::Type { kind: TypeKind::Multiple(several) } => {
                self.wants.extend(several.iter().map(Want::Type));
            }
            ValidationErrorKind::Enum { options } => {
                self.wants.push(Want::OneOf(options.as_array().map_or(&[], Vec::as_slice)));
            }
            ValidationErrorKind::Constant { expected_value } => {
                self.wants.push(Want::OneOf(std::slice::from_ref(expected_value)));
            }
            ValidationErrorKind::AnyOf { context }
            | ValidationErrorKind::OneOfNotValid { context } => {
                for inner in context.iter().flatten() {
                    if let Reported::At(place) = reported(tape, inner.instance())
                        && place.index() == self.index
                    {
                        self.add(tape, inner);
                    }
                }
            }
            _ => {}
        }
    }

    /// The text to write in place of the value, and what the value became.
    fn change(&self, place: Cursor<'_>) -> Option<(String, &'static str)> {
        let text = SpelledText::of(place);
        self.wants.iter().find_map(|want| change(place, &text, *want))
    }
}

/// Whether the property is optional in its object, according to the schema next to the error.
fn is_optional(error: &ValidationError<'_>, schema: &Value) -> bool {
    let mut steps = error.schema_path().as_str().rsplitn(4, '/');
    let name = error.instance_path().as_str().rsplit_once('/').map(|(_, name)| name);
    let (_keyword, property, keyword, object) =
        (steps.next(), steps.next(), steps.next(), steps.next());
    if keyword != Some("properties") || property.is_none() || name.is_none() {
        return true;
    }
    let required = schema.pointer(object.unwrap_or_default()).and_then(|it| it.get("required"));
    let name = name.unwrap_or_default().replace("~1", "/").replace("~0", "~");
    !required.and_then(Value::as_array).is_some_and(|names| names.iter().any(|it| *it == name))
}

/// A string value, and the JSON that its text contains, parsed once for all attempts.
struct SpelledText<'a> {
    text: Option<Cow<'a, str>>,
    spells: Option<Kind>,
}

impl<'a> SpelledText<'a> {
    fn of(place: Cursor<'a>) -> Self {
        let text = place.as_str();
        let spells = text.as_ref().and_then(|text| Some(parse(text.trim()).ok()?.root().kind()));
        Self { text, spells }
    }

    /// The JSON, if it is of a wanted kind.
    fn json(&self, wanted: impl Fn(Kind) -> bool) -> Option<String> {
        let kind = self.spells.filter(|kind| wanted(*kind));
        kind.and(self.text.as_ref()).map(|text| text.trim().to_owned())
    }
}

/// The table of coercions.
fn change(
    place: Cursor<'_>,
    text: &SpelledText<'_>,
    want: Want<'_>,
) -> Option<(String, &'static str)> {
    let is_whole = |kind: Kind| kind.is_integer() || kind == Kind::IntegralFloat;
    match (want, place.kind()) {
        (Want::Type(JsonType::Boolean), Kind::String) => {
            Some((text.json(|kind| matches!(kind, Kind::True | Kind::False))?, "boolean"))
        }
        (Want::Type(JsonType::Integer), Kind::String) => Some((text.json(is_whole)?, "integer")),
        (Want::Type(JsonType::Number), Kind::String) => {
            Some((text.json(Kind::is_number)?, "number"))
        }
        (Want::Type(JsonType::String), kind) if kind.is_number() => {
            Some((format!("\"{}\"", place.source()), "string"))
        }
        (Want::Type(JsonType::Object), Kind::String | Kind::EscapedString) => {
            Some((text.json(|kind| kind == Kind::Object)?, "object"))
        }
        (Want::Type(JsonType::Array), Kind::String | Kind::EscapedString) => {
            Some((text.json(|kind| kind == Kind::Array).unwrap_or_else(|| wrapped(place)), "array"))
        }
        (Want::Type(JsonType::Array), kind) if !matches!(kind, Kind::Array | Kind::Object) => {
            Some((wrapped(place), "array"))
        }
        (Want::OneOf(options), Kind::String) => {
            let json = text.json(|_| true)?;
            // A number that a `Value` would round does not equal a listed one.
            let Cow::Borrowed(kept) = exact::protect(&json) else { return None };
            let value: Value = serde_json::from_str(kept).ok()?;
            let found = options.iter().find(|option| **option == value && !option.is_string())?;
            Some((found.to_string(), "the listed value"))
        }
        (Want::OneOf(options), kind) if kind.is_integer() || kind == Kind::Float => {
            let spelt = Value::from(place.source());
            options.contains(&spelt).then(|| (spelt.to_string(), "the listed value"))
        }
        _ => None,
    }
}

fn wrapped(place: Cursor<'_>) -> String {
    format!("[{}]", place.source())
}

/// Copies a value and replaces what has to be converted. Values without conversions inside are
/// copied as a whole.
struct CoercedWriter<'w> {
    /// The remaining demands, in order.
    demands: &'w [Demand<'w>],
    out: String,
    coercions: Vec<Coercion>,
}

impl<'w> CoercedWriter<'w> {
    fn value(&mut self, place: Cursor<'_>) {
        let places = place.places();
        if let Some(demand) = self.demand_at(place) {
            if let Some((text, to)) = demand.change(place) {
                self.out.push_str(&text);
                self.coerced(demand.pointer, to);
                self.skip_to(places.end);
                return;
            }
            self.skip_to(places.start + 1);
        }
        if self.demands.first().is_none_or(|demand| demand.index >= places.end) {
            self.out.push_str(place.source());
            return;
        }
        if place.kind() == Kind::Object {
            self.object(place);
        } else {
            self.array(place);
        }
    }

    fn object(&mut self, object: Cursor<'_>) {
        self.out.push('{');
        let mut first = true;
        for (name, value) in object.members() {
            if value.kind() == Kind::Null
                && let Some(demand) = self.demand_at(value)
                && demand.optional
            {
                self.coerced(demand.pointer, "absent");
                self.skip_to(value.index() + 1);
                continue;
            }
            if !std::mem::take(&mut first) {
                self.out.push(',');
            }
            self.out.push_str(name.source());
            self.out.push(':');
            self.value(value);
        }
        self.out.push('}');
    }

    fn array(&mut self, array: Cursor<'_>) {
        self.out.push('[');
        // The text between changed items is copied unchanged.
        let text = array.text();
        let (mut copied, end) = (array.span().start + 1, array.places().end);
        for item in array.items() {
            let Some(next) = self.demands.first().filter(|demand| demand.index < end) else {
                break;
            };
            if next.index >= item.places().end {
                continue;
            }
            let span = item.span();
            self.out.push_str(&text[copied..span.start]);
            self.value(item);
            copied = span.end;
        }
        self.out.push_str(&text[copied..array.span().end]);
    }

    fn demand_at(&mut self, place: Cursor<'_>) -> Option<&'w Demand<'w>> {
        // Skips keys, which are never converted.
        self.skip_to(place.index());
        self.demands.first().filter(|demand| demand.index == place.index())
    }

    fn skip_to(&mut self, index: u32) {
        let passed = self.demands.iter().take_while(|demand| demand.index < index).count();
        self.demands = &self.demands[passed..];
    }

    fn coerced(&mut self, pointer: &str, to: &'static str) {
        self.coercions.push(Coercion { pointer: pointer.to_owned(), to });
    }
}
