//! A place in a schema to which a setting refers: whether it exists, and how a text is parsed for
//! it.

use serde_json::{Map, Value};

use super::key_places::KeyPlaces;
use crate::diagnostic::{Diagnostic, Findings, did_you_mean, keys_meant, several_meant};
use crate::document::{Format, parse, shortened};

/// The schema of a place.
#[derive(Debug)]
pub(crate) struct SettingSchema<'s> {
    root: &'s Value,
    own: &'s Value,
    /// Every form that the value may have, with references resolved.
    forms: Vec<&'s Map<String, Value>>,
}

impl<'s> SettingSchema<'s> {
    pub(super) fn at(root: &'s Value, own: &'s Value) -> Self {
        let mut forms = Vec::new();
        flatten(root, own, 0, &mut forms);
        Self { root, own, forms }
    }

    /// The place of a key's value, or of an item of a list.
    pub(super) fn below(&self, key: &str) -> Option<Self> {
        let own = self.child(key).map(|own| Self::at(self.root, own));
        own.or_else(|| self.item().filter(|_| key.bytes().all(|byte| byte.is_ascii_digit())))
    }

    /// The place of every item of a list.
    pub(super) fn item(&self) -> Option<Self> {
        let items = self.forms.iter().find_map(|form| form.get("items"))?;
        Some(Self::at(self.root, items))
    }

    /// The place of a key's value, if the schema declares the key.
    pub(super) fn named(&self, key: &str) -> Option<Self> {
        let named = self.forms.iter().find_map(|form| form.get("properties")?.get(key))?;
        Some(Self::at(self.root, named))
    }

    /// Whether the schema declares a key.
    pub(super) fn names(&self, key: &str) -> bool {
        self.named(key).is_some()
    }

    /// Whether the value is secret: the schema says `writeOnly`.
    pub(super) fn is_secret(&self) -> bool {
        finds_secret(self.root, self.own, false, &mut Vec::new())
    }

    /// Whether the value, or one below it, is secret.
    pub(super) fn has_secrets(&self) -> bool {
        finds_secret(self.root, self.own, true, &mut Vec::new())
    }

    /// Follows a path of keys. Fails with a diagnostic about the first unknown key, with a
    /// suggestion.
    pub(super) fn find(root: &'s Value, path: &[String]) -> Result<Self, Box<Diagnostic>> {
        let mut place = Self::at(root, root);
        for (depth, key) in path.iter().enumerate() {
            let Some(next) = place.child(key) else {
                return Err(Box::new(place.unknown(path, depth)));
            };
            place = Self::at(root, next);
        }
        Ok(place)
    }

    fn child(&self, key: &str) -> Option<&'s Value> {
        let named = |form: &&'s Map<String, Value>| form.get("properties")?.get(key);
        let any = |form: &&'s Map<String, Value>| {
            form.get("additionalProperties").filter(|schema| schema.as_bool() != Some(false))
        };
        self.forms.iter().find_map(named).or_else(|| self.forms.iter().find_map(any))
    }

    /// The keys that the schema declares.
    pub(super) fn keys(&self) -> Vec<&'s str> {
        let properties = self.forms.iter().filter_map(|form| form.get("properties")?.as_object());
        properties.flat_map(|keys| keys.keys().map(String::as_str)).collect()
    }

    fn unknown(&self, path: &[String], depth: usize) -> Diagnostic {
        let (above, key) = (path[..depth].join("."), &path[depth]);
        let keys = self.keys();
        let error = |message| Diagnostic::error("unknown-key", &(0..0), message);
        if keys.is_empty() {
            let what = if self.allows("array") { "a list" } else { "a single value" };
            let message = format!("`{above}` is {what} and has no key `{}`", shortened(key));
            return error(message).help(format!("set the whole of `{above}`"));
        }
        let message = match depth {
            0 => format!("there is no key `{}`", shortened(key)),
            _ => format!("`{above}` has no key `{}`", shortened(key)),
        };
        let mut sections = self.forms.iter().filter_map(|form| form.get("x-renamed"));
        if let Some(now) = sections.find_map(|renamed| renamed.get(key)?.as_str()) {
            return error(message).help(now);
        }
        // A single key often belongs to a section that was omitted.
        let elsewhere = (depth == 0).then(|| KeyPlaces::of(self.root).did_you_mean(key)).flatten();
        let near = elsewhere
            .or_else(|| several_meant(key, &keys))
            .or_else(|| did_you_mean(key, keys.iter().copied()));
        error(message).help(near.unwrap_or_else(|| keys_meant(key, &keys)))
    }

    fn allows(&self, kind: &str) -> bool {
        self.forms.iter().any(|form| match form.get("type") {
            Some(Value::String(own)) => own == kind,
            Some(Value::Array(kinds)) => kinds.iter().any(|own| own == kind),
            // An enumeration whose values have descriptions.
            _ => kind == "string" && form.get("const").is_some_and(Value::is_string),
        })
    }

    /// Whether the schema declares this key as a mapping or a list with a default. Entries of
    /// mappings with free keys, and lists that cannot be empty, have no default.
    pub(super) fn is_section(root: &'s Value, path: &[String]) -> bool {
        let Some((key, above)) = path.split_last() else { return false };
        let is_named =
            Self::find(root, above).is_ok_and(|above| above.keys().contains(&key.as_str()));
        let Ok(place) = Self::find(root, path) else { return false };
        let is_open = place.allows_anything() || place.allows("null");
        let cannot_be_empty = place.forms.iter().any(|form| form.contains_key("minItems"));
        let is_of_many = place.allows("object") || place.allows("array");
        is_named && !is_open && !cannot_be_empty && is_of_many
    }

    /// Whether the schema leaves the type open.
    fn allows_anything(&self) -> bool {
        let says = ["type", "const", "enum", "properties"];
        self.forms.is_empty()
            || self.forms.iter().any(|form| !says.iter().any(|word| form.contains_key(*word)))
    }

    /// Parses a text as a value of this place. A text that fits no type stays text, which the
    /// validator reports.
    pub(super) fn read(&self, text: &str) -> Result<Value, String> {
        if self.allows_anything() {
            return Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)));
        }
        let trimmed = text.trim();
        if self.allows("null") && trimmed == "null" {
            return Ok(Value::Null);
        }
        if let ("true" | "false", true) = (trimmed, self.allows("boolean")) {
            return Ok(Value::Bool(trimmed == "true"));
        }
        if (self.allows("integer") || self.allows("number"))
            && let Ok(Value::Number(number)) = serde_json::from_str(trimmed)
        {
            return Ok(Value::Number(number));
        }
        let opens = |bracket| trimmed.starts_with(bracket);
        if self.allows("array") && opens('[') || self.allows("object") && opens('{') {
            return flow(trimmed);
        }
        if self.allows("array") && !self.allows("string") {
            if ["", "null"].contains(&trimmed) {
                return Err("nothing is given for a list: write `[]` for an empty one".to_owned());
            }
            let items = self.forms.iter().find_map(|form| form.get("items"));
            let item = match items {
                Some(items) => Self::at(self.root, items).read(text)?,
                None => Value::from(text),
            };
            return Ok(Value::Array(vec![item]));
        }
        Ok(Value::from(text))
    }
}

/// Whether a schema, one of its forms or, if requested, one of its parts says `writeOnly`.
fn finds_secret<'s>(
    root: &'s Value,
    schema: &'s Value,
    below: bool,
    followed: &mut Vec<&'s str>,
) -> bool {
    let Some(object) = schema.as_object() else { return false };
    if object.get("writeOnly") == Some(&Value::Bool(true)) {
        return true;
    }
    if let Some(reference) = object.get("$ref").and_then(Value::as_str)
        && !followed.contains(&reference)
    {
        followed.push(reference);
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        if target.is_some_and(|target| finds_secret(root, target, below, followed)) {
            return true;
        }
    }
    let forms = ["anyOf", "oneOf", "allOf"].iter().filter_map(|word| object.get(*word)?.as_array());
    let mut forms = forms.flatten();
    if forms.any(|form| finds_secret(root, form, below, followed)) {
        return true;
    }
    if !below {
        return false;
    }
    let named = object.get("properties").and_then(Value::as_object);
    let named = named.into_iter().flat_map(Map::values);
    let mut parts = named.chain(object.get("additionalProperties")).chain(object.get("items"));
    parts.any(|part| finds_secret(root, part, below, followed))
}

/// Resolves references and alternatives. The depth is limited, because types may refer to
/// themselves.
fn flatten<'s>(
    root: &'s Value,
    schema: &'s Value,
    depth: usize,
    forms: &mut Vec<&'s Map<String, Value>>,
) {
    let Some(object) = schema.as_object() else { return };
    let reference = object.get("$ref").and_then(Value::as_str);
    let alternatives = ["anyOf", "oneOf", "allOf"].iter().filter_map(|word| object.get(*word));
    let alternatives: Vec<&Value> = alternatives.filter_map(Value::as_array).flatten().collect();
    if reference.is_none() && alternatives.is_empty() {
        forms.push(object);
    }
    if depth < 8 {
        let target = reference.and_then(|reference| root.pointer(reference.strip_prefix('#')?));
        for next in target.into_iter().chain(alternatives) {
            flatten(root, next, depth + 1, forms);
        }
    }
}

/// A list or mapping in brackets, as YAML.
fn flow(text: &str) -> Result<Value, String> {
    let mut findings = Findings::new(text);
    let node = parse(Format::Yaml, &mut findings);
    let problem = findings.finish().into_iter().next();
    match (node, problem) {
        (Some(node), None) => Ok(node.to_value()),
        (_, Some(problem)) => Err(problem.message),
        (None, None) => Err("the brackets hold nothing that can be read".to_owned()),
    }
}
