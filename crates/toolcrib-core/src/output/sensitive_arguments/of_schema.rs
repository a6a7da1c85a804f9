//! Finding the sensitive values of a schema.

use std::collections::HashSet;

use serde_json::Value;

/// Keywords whose value is a schema for the same value.
const SAME_ONE: [&str; 4] = ["if", "then", "else", "not"];

/// Keywords whose value is a list of schemas for the same value.
const SAME_MANY: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Keywords whose value is an object of schemas for members.
const MEMBER_MANY: [&str; 2] = ["properties", "patternProperties"];
const DEPENDENT: &str = "dependentSchemas";

/// Keywords whose value is a schema for other members.
const MEMBER_OTHERS: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];

/// Keywords whose value is a schema, or a list of them, for items.
const ITEMS: [&str; 5] =
    ["items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"];

/// All schemas that may apply to one value.
///
/// Branches are not evaluated: a value is sensitive if any of the schemas marks it.
pub(super) struct SchemaPosition<'s> {
    root: &'s Value,
    schemas: Vec<&'s Value>,
    /// Whether anything within is sensitive.
    holds_sensitive: bool,
}

impl<'s> SchemaPosition<'s> {
    /// The arguments themselves.
    pub(super) fn root(schema: &'s Value) -> Self {
        Self::new(schema, vec![schema])
    }

    fn new(root: &'s Value, schemas: Vec<&'s Value>) -> Self {
        let schemas = with_all_that_apply(root, schemas);
        let holds_sensitive = any_sensitive(root, &schemas);
        Self { root, schemas, holds_sensitive }
    }

    /// Whether it or anything within is sensitive.
    pub(super) fn holds_sensitive(&self) -> bool {
        self.holds_sensitive
    }

    /// Whether to redact a value: it is sensitive, or it has an unexpected shape and a part of the
    /// expected one is sensitive.
    pub(super) fn hides(&self, value: &Value) -> bool {
        let has_any = |keywords: &[&str]| {
            keywords.iter().any(|word| self.schemas.iter().any(|schema| schema.get(word).is_some()))
        };
        self.schemas.iter().any(|schema| is_sensitive(schema))
            || self.holds_sensitive
                && match value {
                    Value::Object(_) => !has_any(&MEMBER_MANY) && !has_any(&MEMBER_OTHERS),
                    Value::Array(_) => !has_any(&ITEMS),
                    _ => true,
                }
    }

    /// The schemas of a member.
    pub(super) fn member(&self, key: &str) -> Self {
        let mut schemas = Vec::new();
        for schema in &self.schemas {
            let own = schema.get("properties").and_then(|properties| properties.get(key));
            schemas.extend(own);
            if own.is_none() {
                // Patterns are not evaluated: any may match.
                let patterns = schema.get("patternProperties").and_then(Value::as_object);
                schemas.extend(patterns.into_iter().flat_map(|patterns| patterns.values()));
                schemas.extend(MEMBER_OTHERS.iter().filter_map(|word| schema.get(word)));
            }
        }
        self.within(schemas)
    }

    /// The schemas of an item.
    pub(super) fn item(&self, index: usize) -> Self {
        let mut schemas = Vec::new();
        for keyword in ITEMS {
            for schema in self.schemas.iter().filter_map(|schema| schema.get(keyword)) {
                match schema {
                    Value::Array(positions) => schemas.extend(positions.get(index)),
                    schema => schemas.push(schema),
                }
            }
        }
        self.within(schemas)
    }

    fn within(&self, schemas: Vec<&'s Value>) -> Self {
        if !self.holds_sensitive {
            return Self { root: self.root, schemas: Vec::new(), holds_sensitive: false };
        }
        let unknown = schemas.iter().all(|schema| !schema.is_object());
        let mut place = Self::new(self.root, schemas);
        // No schema describes it: it may be a sensitive sibling under another name.
        place.holds_sensitive |= unknown;
        place
    }
}

fn is_sensitive(schema: &Value) -> bool {
    ["writeOnly", "x-sensitive"].iter().any(|word| schema.get(word) == Some(&Value::Bool(true)))
}

/// The schemas and all that apply to the same value through them.
fn with_all_that_apply<'s>(root: &'s Value, schemas: Vec<&'s Value>) -> Vec<&'s Value> {
    all_reached(schemas, |schema| {
        let one = SAME_ONE.iter().filter_map(|word| schema.get(word));
        let many = SAME_MANY.iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
        let dependent = schema.get(DEPENDENT).and_then(Value::as_object);
        let dependent = dependent.into_iter().flat_map(|schemas| schemas.values());
        one.chain(many).chain(dependent).chain(referred(root, schema)).collect()
    })
}

/// Whether these schemas, or any reachable ones, mark anything as sensitive.
fn any_sensitive<'s>(root: &'s Value, schemas: &[&'s Value]) -> bool {
    let reached = all_reached(schemas.to_vec(), |schema| {
        let one = MEMBER_OTHERS.iter().chain(&ITEMS).chain(&SAME_ONE);
        let one = one.filter_map(|word| schema.get(word)).filter(|found| found.is_object());
        let many = ITEMS.iter().chain(&SAME_MANY);
        let many = many.filter_map(|word| schema.get(word)?.as_array()).flatten();
        let named = MEMBER_MANY.iter().chain([&DEPENDENT]);
        let named = named.filter_map(|word| schema.get(word)?.as_object());
        let named = named.flat_map(|members| members.values());
        one.chain(many).chain(named).chain(referred(root, schema)).collect()
    });
    reached.into_iter().any(is_sensitive)
}

/// The schemas and all reachable ones, each once, so that cycles end.
fn all_reached<'s>(
    mut schemas: Vec<&'s Value>,
    next_of: impl Fn(&'s Value) -> Vec<&'s Value>,
) -> Vec<&'s Value> {
    let mut seen: HashSet<*const Value> =
        schemas.iter().map(|schema| std::ptr::from_ref(*schema)).collect();
    let mut next = 0;
    while let Some(&schema) = schemas.get(next) {
        next += 1;
        let found = next_of(schema).into_iter();
        schemas.extend(found.filter(|schema| seen.insert(std::ptr::from_ref(*schema))));
    }
    schemas
}

/// The target of `$ref` within the same document.
fn referred<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s Value> {
    let reference = schema.get("$ref").or_else(|| schema.get("$dynamicRef"))?.as_str()?;
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return root.pointer(&percent_decoded(fragment));
    }
    anchored(root, fragment)
}

/// The schema with that anchor.
fn anchored<'s>(schema: &'s Value, anchor: &str) -> Option<&'s Value> {
    let named = |word| schema.get(word).and_then(Value::as_str) == Some(anchor);
    if named("$anchor") || named("$dynamicAnchor") {
        return Some(schema);
    }
    match schema {
        Value::Object(members) => members.values().find_map(|member| anchored(member, anchor)),
        Value::Array(items) => items.iter().find_map(|item| anchored(item, anchor)),
        _ => None,
    }
}

fn percent_decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
