//! Types of columns, found from samples of their values.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use serde_json::Value as Json;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ColumnType {
    /// No value was seen.
    #[default]
    Unknown,
    /// `true` and `false`, stored as 1 and 0.
    Boolean,
    Integer,
    Real,
    Text,
    /// Arrays and objects, stored as JSON text.
    Json,
    /// Values of several types, each stored as it is.
    Mixed,
}

impl ColumnType {
    /// The type in the table's declaration and in descriptions. Its affinity in SQLite fits.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::Integer => "INTEGER",
            Self::Real => "REAL",
            Self::Unknown | Self::Text => "TEXT",
            Self::Json => "JSON TEXT",
            Self::Mixed => "BLOB",
        }
    }

    /// The type, to people and models.
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN (1 or 0)",
            Self::Json => "JSON",
            Self::Mixed => "MIXED",
            other => other.as_str(),
        }
    }

    /// The type of a column that also has this field of a CSV file: text fits everything.
    pub(super) fn with_field(self, field: &str) -> Self {
        let one = match of_field(field) {
            Self::Unknown => return self,
            one => one,
        };
        match (self, one) {
            (Self::Unknown, one) => one,
            (own, one) if own == one => own,
            (Self::Integer, Self::Real) | (Self::Real, Self::Integer) => Self::Real,
            _ => Self::Text,
        }
    }

    /// The type of a column that also has this value of a JSON file.
    pub(super) fn with_json(self, value: &Json) -> Self {
        let one = match value {
            Json::Null => return self,
            Json::Bool(_) => Self::Boolean,
            Json::Number(number) if number.is_f64() => Self::Real,
            Json::Number(number) if number.is_i64() => Self::Integer,
            // It is larger than SQLite's integers.
            Json::Number(_) | Json::String(_) => Self::Text,
            Json::Array(_) | Json::Object(_) => Self::Json,
        };
        match (self, one) {
            (Self::Unknown, one) => one,
            (own, one) if own == one => own,
            (Self::Integer, Self::Real) | (Self::Real, Self::Integer) => Self::Real,
            _ => Self::Mixed,
        }
    }
}

/// The type of a field by itself. Numbers that would change when written again as numbers, such as `007`, are text.
fn of_field(field: &str) -> ColumnType {
    let field = field.trim_matches(' ');
    if field.is_empty() {
        return ColumnType::Unknown;
    }
    if boolean(field).is_some() {
        return ColumnType::Boolean;
    }
    if !is_numeric(field) {
        return ColumnType::Text;
    }
    if field.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return ColumnType::Real;
    }
    if field.parse::<i64>().is_ok() { ColumnType::Integer } else { ColumnType::Text }
}

/// Whether this is a decimal number without leading zeros: `-12`, `0.5`, `1e9`.
fn is_numeric(field: &str) -> bool {
    let digits = field.strip_prefix('-').unwrap_or(field).as_bytes();
    match digits {
        [b'0', next, ..] if next.is_ascii_digit() => false,
        [first, ..] if first.is_ascii_digit() || *first == b'.' => {
            let known = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
            digits.iter().all(known) && field.parse::<f64>().is_ok_and(f64::is_finite)
        }
        _ => false,
    }
}

fn boolean(field: &str) -> Option<bool> {
    if field.eq_ignore_ascii_case("true") {
        Some(true)
    } else if field.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// A value on its way into a table.
pub(super) enum Cell<'a> {
    Text(&'a str),
    Owned(Value),
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Owned(value) => ToSqlOutput::Borrowed(value.into()),
        })
    }
}

/// A field as a value of its column, and whether it is of the column's type.
pub(super) fn from_field(field: &str, column: ColumnType) -> (Cell<'_>, bool) {
    if field.is_empty() {
        return (Cell::Owned(Value::Null), true);
    }
    let trimmed = field.trim_matches(' ');
    let value = match column {
        ColumnType::Boolean => boolean(trimmed).map(|own| Value::Integer(own.into())),
        ColumnType::Integer => trimmed.parse().ok().map(Value::Integer),
        ColumnType::Real => trimmed.parse().ok().filter(|_| is_numeric(trimmed)).map(Value::Real),
        _ => return (Cell::Text(field), true),
    };
    match value {
        Some(value) => (Cell::Owned(value), true),
        None if trimmed.is_empty() => (Cell::Owned(Value::Null), true),
        None => (Cell::Text(field), false),
    }
}

/// A JSON value as a value of a table.
pub(super) fn from_json(value: Json) -> Cell<'static> {
    Cell::Owned(match value {
        Json::Null => Value::Null,
        Json::Bool(own) => Value::Integer(own.into()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Value::Integer(integer),
            (None, Some(real)) if number.is_f64() => Value::Real(real),
            _ => Value::Text(number.to_string()),
        },
        Json::String(text) => Value::Text(text),
        nested => Value::Text(nested.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[&str]) -> &'static str {
        fields.iter().fold(ColumnType::Unknown, |kind, field| kind.with_field(field)).as_str()
    }

    #[test]
    fn columns_have_the_narrowest_type_that_loses_nothing() {
        let cases: [(&[&str], &str); 14] = [
            (&["1", "-20", "", " 3 "], "INTEGER"),
            (&["1", "2.50"], "REAL"),
            (&["1e9", "-.5"], "REAL"),
            (&["007", "12"], "TEXT"),
            (&["+49 30", "1"], "TEXT"),
            (&["+49", "1"], "TEXT"),
            (&["true", "FALSE", ""], "BOOLEAN"),
            (&["true", "1"], "TEXT"),
            (&["nan"], "TEXT"),
            (&["inf", "1.5"], "TEXT"),
            (&["99999999999999999999"], "TEXT"),
            (&["2024-01-02"], "TEXT"),
            (&["1.2.3"], "TEXT"),
            (&["", ""], "TEXT"),
        ];
        for (fields, kind) in cases {
            assert_eq!(of(fields), kind, "{fields:?}");
        }
    }

    #[test]
    fn json_values_of_several_types_stay_as_they_are() {
        let kind = |values: &str| {
            let values: Vec<Json> = serde_json::from_str(values).unwrap();
            values.iter().fold(ColumnType::Unknown, ColumnType::with_json).shown()
        };
        assert_eq!(kind("[1, null, 2]"), "INTEGER");
        assert_eq!(kind("[1, 2.5]"), "REAL");
        assert_eq!(kind("[true]"), "BOOLEAN (1 or 0)");
        assert_eq!(kind("[[1], {}]"), "JSON");
        assert_eq!(kind(r#"[1, "a"]"#), "MIXED");
        assert_eq!(kind("[18446744073709551615]"), "TEXT");
    }
}
