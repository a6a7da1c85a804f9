//! Reads the members of a request, with errors that name them.

use std::borrow::Cow;

use serde_json::Value;
use toolcrib_json::{Cursor, Kind, Number, Tape, parse};

use super::ApiError;

/// Parses the body of a request, which is an object.
pub(crate) fn parsed(body: &str) -> Result<Tape<'_>, ApiError> {
    let tape = parse(body).map_err(|error| {
        ApiError::invalid(format!("the body is not valid JSON: {error}")).with_code("invalid_json")
    })?;
    if tape.root().kind() == Kind::Object {
        return Ok(tape);
    }
    Err(ApiError::invalid("the body must be a JSON object").with_code("invalid_json"))
}

/// The place of a value in the words of the API, for example `tools[0].name`.
pub(crate) fn param(value: Cursor<'_>) -> String {
    let mut param = String::new();
    for part in value.pointer().split('/').skip(1) {
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            param.push('[');
            param.push_str(part);
            param.push(']');
        } else {
            if !param.is_empty() {
                param.push('.');
            }
            param.push_str(&part.replace("~1", "/").replace("~0", "~"));
        }
    }
    param
}

/// The member `key` of a value in the words of the API.
pub(crate) fn param_of(value: Cursor<'_>, key: &str) -> String {
    let at = param(value);
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::True | Kind::False => "a boolean",
        Kind::Array => "a list",
        Kind::Object => "an object",
        kind if kind.is_string() => "a string",
        _ => "a number",
    }
}

/// A value has another type than `expected`.
pub(crate) fn wrong_type(value: Cursor<'_>, expected: &str) -> ApiError {
    let param = param(value);
    ApiError::invalid(format!("`{param}` must be {expected}, not {}", name(value.kind())))
        .with_code("invalid_type")
        .with_param(param)
}

/// A value has the right type but is not allowed; `problem` continues its name.
pub(crate) fn wrong_value(value: Cursor<'_>, problem: impl AsRef<str>) -> ApiError {
    let param = param(value);
    ApiError::invalid(format!("`{param}` {}", problem.as_ref()))
        .with_code("invalid_value")
        .with_param(param)
}

/// A member exists in the API but not here; `advice` says what to do.
pub(crate) fn unsupported(value: Cursor<'_>, advice: &str) -> ApiError {
    let param = param(value);
    ApiError::invalid(format!("`{param}` is not supported here: {advice}"))
        .with_code("unsupported_parameter")
        .with_param(param)
}

/// Nobody knows this member.
pub(crate) fn unknown(value: Cursor<'_>) -> ApiError {
    let param = param(value);
    ApiError::invalid(format!("there is no parameter `{param}`; remove it"))
        .with_code("unknown_parameter")
        .with_param(param)
}

/// The member `key` is missing in `value`.
pub(crate) fn missing(value: Cursor<'_>, key: &str) -> ApiError {
    ApiError::missing(param_of(value, key))
}

pub(crate) fn is_null(value: Cursor<'_>) -> bool {
    value.kind() == Kind::Null
}

/// The members of an object that are not null.
pub(crate) fn members(
    value: Cursor<'_>,
) -> Result<impl Iterator<Item = (Cow<'_, str>, Cursor<'_>)>, ApiError> {
    let object = object(value)?;
    Ok(object
        .members()
        .filter(|(_, value)| !is_null(*value))
        .map(|(key, value)| (key.key_text(), value)))
}

/// A member that is present and not null.
pub(crate) fn member<'a>(value: Cursor<'a>, key: &str) -> Option<Cursor<'a>> {
    value.get(key).filter(|member| !is_null(*member))
}

pub(crate) fn object(value: Cursor<'_>) -> Result<Cursor<'_>, ApiError> {
    if value.kind() == Kind::Object { Ok(value) } else { Err(wrong_type(value, "an object")) }
}

pub(crate) fn list(value: Cursor<'_>) -> Result<impl Iterator<Item = Cursor<'_>>, ApiError> {
    if value.kind() == Kind::Array { Ok(value.items()) } else { Err(wrong_type(value, "a list")) }
}

pub(crate) fn text(value: Cursor<'_>) -> Result<String, ApiError> {
    match value.as_str() {
        Some(text) => Ok(text.into_owned()),
        None => Err(wrong_type(value, "a string")),
    }
}

/// A text that is not empty.
pub(crate) fn id(value: Cursor<'_>) -> Result<String, ApiError> {
    let text = text(value)?;
    if text.is_empty() { Err(wrong_value(value, "must not be empty")) } else { Ok(text) }
}

/// A text of at most so many characters.
pub(crate) fn short_text(value: Cursor<'_>, limit: usize) -> Result<String, ApiError> {
    let text = text(value)?;
    if text.chars().count() > limit {
        return Err(wrong_value(value, format!("has more than {limit} characters")));
    }
    Ok(text)
}

/// A required text member that is not empty.
pub(crate) fn required_id(value: Cursor<'_>, key: &str) -> Result<String, ApiError> {
    id(member(value, key).ok_or_else(|| missing(value, key))?)
}

pub(crate) fn flag(value: Cursor<'_>) -> Result<bool, ApiError> {
    match value.kind() {
        Kind::True => Ok(true),
        Kind::False => Ok(false),
        _ => Err(wrong_type(value, "a boolean")),
    }
}

/// A whole number in a range.
pub(crate) fn whole(value: Cursor<'_>, least: u64, most: u64) -> Result<u64, ApiError> {
    let number = match value.number() {
        Some(Number::Unsigned(number)) => number,
        Some(_) => return Err(wrong_value(value, "must be a whole number of at least 0")),
        None => return Err(wrong_type(value, "a whole number")),
    };
    if number < least {
        return Err(wrong_value(value, format!("must be at least {least}")));
    }
    if number > most {
        return Err(wrong_value(value, format!("must be at most {most}")));
    }
    Ok(number)
}

/// A number in a range.
pub(crate) fn number(value: Cursor<'_>, least: f64, most: f64) -> Result<f64, ApiError> {
    #[expect(clippy::cast_precision_loss, reason = "the range is small")]
    let number = match value.number() {
        Some(Number::Unsigned(number)) => number as f64,
        Some(Number::Negative(number)) => number as f64,
        Some(Number::Float(number)) => number,
        None => return Err(wrong_type(value, "a number")),
    };
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(wrong_value(value, format!("must be between {least} and {most}")))
}

/// One of several texts.
pub(crate) fn one_of(value: Cursor<'_>, names: &[&'static str]) -> Result<&'static str, ApiError> {
    let text = text(value)?;
    names.iter().find(|name| **name == text).copied().ok_or_else(|| {
        let names = names.join("`, `");
        wrong_value(value, format!("must be one of `{names}`"))
    })
}

/// The value as data.
pub(crate) fn data(value: Cursor<'_>) -> Result<Value, ApiError> {
    serde_json::from_str(value.source())
        .map_err(|error| wrong_value(value, format!("cannot be read: {error}")))
}
