//! Addresses of resources, and address templates.

use std::collections::BTreeMap;

/// The address of a resource (`notes://today`), or a template (`notes://{day}`) whose variables
/// each match one path segment.
///
/// ```
/// use toolcrib_mcp::catalog::Address;
///
/// assert!(Address::new("notes://{day}").is_template());
/// assert!(!Address::new("notes://today").is_template());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// Creates an address. An unmatched brace is literal.
    pub fn new(uri: impl Into<String>) -> Self {
        Self(uri.into())
    }

    /// The address as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is a template.
    pub fn is_template(&self) -> bool {
        split(&self.0).1.is_some()
    }

    /// Whether it is a template whose variables are plain names: no operators such as `{+path}` and
    /// `{?query}`, which match more than one segment.
    pub(crate) fn has_only_plain_variables(&self) -> bool {
        let mut rest = self.0.as_str();
        let mut has_one = false;
        while let (_, Some((name, behind))) = split(rest) {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            if name.is_empty() || !name.chars().all(is_plain) {
                return false;
            }
            (has_one, rest) = (true, behind);
        }
        has_one
    }

    /// The percent-decoded text of an address; `None` if it is not valid.
    pub(crate) fn decoded(uri: &str) -> Option<String> {
        decoded(uri)
    }

    /// The percent-decoded values of its variables in `uri`; `None` if `uri` does not match.
    pub(crate) fn values(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        let mut values = BTreeMap::new();
        fits(&self.0, uri, &mut values).then_some(values)
    }
}

/// Matches the rest of a template against the rest of an address. A value ends at the first
/// occurrence of the literal that follows it.
fn fits(template: &str, uri: &str, values: &mut BTreeMap<String, String>) -> bool {
    let (literal, variable) = split(template);
    let Some(uri) = uri.strip_prefix(literal) else { return false };
    let Some((name, behind)) = variable else { return uri.is_empty() };
    let (next, more) = split(behind);
    let part = uri.find('/').unwrap_or(uri.len());
    let end = match (next.is_empty(), more) {
        // The last variable of the template takes the rest of the segment.
        (true, None) => Some(uri.len()),
        _ => uri.find(next),
    };
    let Some(end) = end.filter(|end| (1..=part).contains(end)) else { return false };
    let Some(value) = decoded(&uri[..end]) else { return false };
    values.insert(name.to_owned(), value);
    fits(behind, &uri[end..], values)
}

/// Splits at the first variable: the literal before it and, if there is one, its name and the rest.
fn split(template: &str) -> (&str, Option<(&str, &str)>) {
    let Some(open) = template.find('{') else { return (template, None) };
    match template[open + 1..].split_once('}') {
        Some(variable) => (&template[..open], Some(variable)),
        None => (template, None),
    }
}

/// A percent-decoded text; `None` if it is not UTF-8 or contains an invalid `%`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let code = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(code).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        Address::new(template).values(uri).map(|values| values.into_iter().collect())
    }

    #[test]
    fn a_variable_matches_one_nonempty_segment() {
        let one = |name: &str, value: &str| Some(vec![(name.to_owned(), value.to_owned())]);
        assert_eq!(values("t://{id}/data", "t://123/data"), one("id", "123"));
        assert_eq!(values("t://{id}", "t://a%20b%2Fc"), one("id", "a b/c"));
        assert_eq!(values("t://{id}.txt", "t://a.txt"), one("id", "a"));
        assert_eq!(values("t://fixed", "t://fixed"), Some(Vec::new()));
        for uri in [
            "t:///data",
            "t://1/2/data",
            "t://1/data/",
            "t://1",
            "u://1/data",
            "t://%zz/data",
            "t://%ff/data",
            "t://%2/data",
            "",
        ] {
            assert_eq!(values("t://{id}/data", uri), None, "{uri}");
        }
        let two = values("t://{a}/{b}", "t://1/2").unwrap();
        assert_eq!(two, [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]);
    }
}
