//! Resolves `$ref` inside one schema.

use serde_json::Value;

use super::inside::DATA;
use super::sorted;

/// The target of a reference; only references into the schema itself have one.
pub(crate) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(root);
    }
    if !pointer.starts_with('/') {
        return anchored(root, pointer);
    }
    root.pointer(pointer).or_else(|| root.pointer(&percent_decoded(pointer)?))
}

/// The schema with this anchor name.
fn anchored<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    match schema {
        Value::Object(object) => {
            let own = ["$anchor", "$dynamicAnchor"]
                .iter()
                .any(|keyword| object.get(*keyword).is_some_and(|anchor| anchor == name));
            if own {
                return Some(schema);
            }
            sorted(object)
                .into_iter()
                .filter(|(keyword, _)| !DATA.contains(keyword))
                .find_map(|(_, inner)| anchored(inner, name))
        }
        Value::Array(several) => several.iter().find_map(|inner| anchored(inner, name)),
        _ => None,
    }
}

/// The name in a reference of the form `#/$defs/NAME` or `#/definitions/NAME`.
pub(crate) fn definition(reference: &str) -> Option<String> {
    ["$defs", "definitions"].into_iter().find_map(|keyword| {
        let name = reference.strip_prefix("#/")?.strip_prefix(keyword)?.strip_prefix('/')?;
        let name = percent_decoded(name)?;
        (!name.contains('/')).then(|| name.replace("~1", "/").replace("~0", "~"))
    })
}

/// A pointer in a URI fragment may encode its characters as `%41`.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_references_into_the_schema_resolve() {
        let root = json!({"$defs": {"a b": {"type": "string"}, "c/d": true}});
        assert_eq!(resolve(&root, "#"), Some(&root));
        assert_eq!(resolve(&root, "#/$defs/a b"), Some(&json!({"type": "string"})));
        assert_eq!(resolve(&root, "#/$defs/a%20b"), Some(&json!({"type": "string"})));
        assert_eq!(resolve(&root, "#/$defs/c~1d"), Some(&json!(true)));
        assert_eq!(definition("#/$defs/c~1d"), Some("c/d".to_owned()));
        assert_eq!(definition("#/$defs/a/items"), None);
        assert_eq!(resolve(&root, "#/$defs/missing"), None);
        assert_eq!(resolve(&root, "https://example.com/a.json"), None);
        assert_eq!(resolve(&root, "#anchor"), None);
        let root = json!({"default": {"$anchor": "a"}, "items": {"$anchor": "a", "type": "null"}});
        assert_eq!(resolve(&root, "#a"), Some(&root["items"]));
    }
}
