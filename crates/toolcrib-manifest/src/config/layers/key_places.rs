//! Where the sections of a settings schema declare a key, for a key that is written in the wrong section.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::place::SettingSchema;

/// How many sections are looked at. Types may contain themselves.
const SECTIONS_MAX: usize = 1000;

/// How many sections may be around a key.
const DEPTH_MAX: usize = 4;

/// The paths of all keys in named sections, with dots, by the key.
#[derive(Debug)]
pub(crate) struct KeyPlaces<'s>(BTreeMap<&'s str, Vec<String>>);

impl<'s> KeyPlaces<'s> {
    pub(crate) fn of(schema: &'s Value) -> Self {
        let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut sections = VecDeque::from([(String::new(), 0, SettingSchema::at(schema, schema))]);
        for _ in 0..SECTIONS_MAX {
            let Some((section, depth, schema)) = sections.pop_front() else { break };
            for key in schema.keys() {
                let path =
                    if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
                let known = places.entry(key).or_default();
                // Several forms of a section may have the same key.
                if known.contains(&path) {
                    continue;
                }
                known.push(path.clone());
                let below = schema.named(key).filter(|below| !below.keys().is_empty());
                if let Some(below) = below.filter(|_| depth < DEPTH_MAX) {
                    sections.push_back((path, depth + 1, below));
                }
            }
        }
        Self(places)
    }

    /// "did you mean …?", if one or two sections declare the key.
    pub(crate) fn did_you_mean(&self, key: &str) -> Option<String> {
        match self.0.get(key)?.as_slice() {
            [only] => Some(format!("did you mean `{only}`?")),
            [first, second] => Some(format!("did you mean `{first}` or `{second}`?")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_is_found_in_its_sections_also_if_a_type_contains_itself() {
        let schema = json!({
            "properties": {
                "executor": {"properties": {"tool_timeout": {}, "retry": {"properties": {"most": {}}}}},
                "a": {"properties": {"dir": {}}},
                "b": {"oneOf": [{"properties": {"dir": {}}}, {"properties": {"dir": {}}}]},
                "one": {"properties": {"keep": {}}},
                "two": {"properties": {"keep": {}}},
                "three": {"properties": {"keep": {}}},
                "node": {"$ref": "#/$defs/Node"},
            },
            "$defs": {"Node": {"properties": {
                "left": {"$ref": "#/$defs/Node"}, "right": {"$ref": "#/$defs/Node"},
                "same": {"$ref": "#/$defs/Node"}, "other": {"$ref": "#/$defs/Node"},
                "more": {"$ref": "#/$defs/Node"}, "most_of_all": {"$ref": "#/$defs/Node"},
                "inside": {"$ref": "#/$defs/Node"}, "outside": {"$ref": "#/$defs/Node"},
            }}},
        });
        let places = KeyPlaces::of(&schema);
        let meant = |key| places.did_you_mean(key);
        assert_eq!(meant("tool_timeout").as_deref(), Some("did you mean `executor.tool_timeout`?"));
        assert_eq!(meant("most").as_deref(), Some("did you mean `executor.retry.most`?"));
        assert_eq!(meant("dir").as_deref(), Some("did you mean `a.dir` or `b.dir`?"));
        assert_eq!(meant("keep"), None);
        assert_eq!(meant("nowhere"), None);
    }
}
