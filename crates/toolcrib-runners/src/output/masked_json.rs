//! Parses JSON in which secrets were masked.

use serde_json::Value;
use toolcrib_tool::{Data, MASKED};

/// The replacement for a secret.
const MARK: &[u8] = MASKED.as_bytes();

/// Parses JSON text in which a secret may have been masked. Inside a string the mark is ordinary text. A number that
/// contained a secret is no longer valid JSON and is read as a string.
pub(crate) fn from_masked_slice(bytes: &[u8]) -> serde_json::Result<Data> {
    from_slice(bytes).or_else(|error| match with_marks_quoted(bytes) {
        Some(quoted) => from_slice(&quoted).map_err(|_| error),
        None => Err(error),
    })
}

/// Parses JSON and keeps numbers as written.
pub(crate) fn from_slice(bytes: &[u8]) -> serde_json::Result<Data> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Data::from_json(text),
        // The error contains the position.
        Err(_) => serde_json::from_slice::<Value>(bytes).map(Data::from),
    }
}

/// The text with quotation marks around masked numbers; `None` if there are none.
fn with_marks_quoted(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut quoted = Vec::with_capacity(bytes.len() + 16);
    let (mut at, mut in_string, mut found) = (0, false, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let taken = match rest[0] {
            b'\\' if in_string => rest.len().min(2),
            b'"' => {
                in_string = !in_string;
                1
            }
            _ if in_string => 1,
            _ => match masked_number(rest) {
                Some(length) => {
                    found = true;
                    quoted.push(b'"');
                    quoted.extend_from_slice(&rest[..length]);
                    quoted.push(b'"');
                    at += length;
                    continue;
                }
                None => number(rest).max(1),
            },
        };
        quoted.extend_from_slice(&rest[..taken]);
        at += taken;
    }
    found.then_some(quoted)
}

/// The length of the number at the beginning, in bytes.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| b"0123456789+-.eE".contains(byte)).count()
}

/// The length of a masked number at the beginning; `None` if it has no mark.
fn masked_number(bytes: &[u8]) -> Option<usize> {
    let (mut length, mut marks) = (number(bytes), 0);
    while bytes[length..].starts_with(MARK) {
        marks += 1;
        length += MARK.len();
        length += number(&bytes[length..]);
    }
    (marks > 0).then_some(length)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_masked_number_is_a_string() {
        let text =
            br#"{"pin": [masked], "l": [1,-[masked].5,[masked][masked]], "s": "a \" [masked]"}"#;
        assert_eq!(
            *from_masked_slice(text).unwrap().value(),
            json!({"pin": "[masked]", "l": [1, "-[masked].5", "[masked][masked]"], "s": "a \" [masked]"})
        );
    }

    #[test]
    fn invalid_json_stays_an_error() {
        for text in ["", "[masked", "{[masked]: 1}x", "\"a", "\\", "[masked]]"] {
            let error = from_masked_slice(text.as_bytes()).unwrap_err().to_string();
            let own = serde_json::from_str::<Value>(text).unwrap_err().to_string();
            assert_eq!(error, own, "{text}");
        }
    }
}
