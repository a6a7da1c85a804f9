//! Addresses of resources, and templates of them.

use std::collections::BTreeMap;

/// An address (`notes://today`), or a template of addresses (`notes://{day}`), each variable of
/// which stands for one part without `/`.
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
    /// An address as it is written. A brace without a partner is a literal one.
    pub fn new(uri: impl Into<String>) -> Self {
        Self(uri.into())
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands for several.
    pub fn is_template(&self) -> bool {
        split(&self.0).1.is_some()
    }

    /// The values of its variables in `uri`, percent-decoded; `None` where it does not fit.
    pub(crate) fn values(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        let mut values = BTreeMap::new();
        fits(&self.0, uri, &mut values).then_some(values)
    }
}

/// Matches the template's rest against the address's rest. A value ends where the literal behind it
/// begins for the first time.
fn fits(template: &str, uri: &str, values: &mut BTreeMap<String, String>) -> bool {
    let (literal, variable) = split(template);
    let Some(uri) = uri.strip_prefix(literal) else { return false };
    let Some((name, behind)) = variable else { return uri.is_empty() };
    let (next, more) = split(behind);
    let part = uri.find('/').unwrap_or(uri.len());
    let end = match (next.is_empty(), more) {
        // The last thing of the template takes what is left of the part.
        (true, None) => Some(uri.len()),
        _ => uri.find(next),
    };
    let Some(end) = end.filter(|end| (1..=part).contains(end)) else { return false };
    let Some(value) = decoded(&uri[..end]) else { return false };
    values.insert(name.to_owned(), value);
    fits(behind, &uri[end..], values)
}

/// What comes before the first variable; and, if there is one, its name and what comes behind it.
fn split(template: &str) -> (&str, Option<(&str, &str)>) {
    let Some(open) = template.find('{') else { return (template, None) };
    match template[open + 1..].split_once('}') {
        Some(variable) => (&template[..open], Some(variable)),
        None => (template, None),
    }
}

/// A percent-encoded text; `None` where it is not UTF-8 or holds a `%` that encodes nothing.
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
    fn a_variable_is_one_part_and_never_empty() {
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
