//! When two calls are the same call.

use std::cell::Cell;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use hashbrown::DefaultHashBuilder;
use toolcrib_json::{Cursor, Numbers, write_canonical};
use toolcrib_tool::{ContextValues, Layer, ToolDefinition, ToolEntry, canonical_json};

use crate::identity::fingerprint::Fingerprint;

/// The tool a call is for, made once per registry entry; cloning it is cheap.
///
/// Equal by value and not by place, so that a reload that changes nothing forgets nothing; all of
/// the definition counts, and who declares it.
#[derive(Debug, Clone)]
pub(crate) struct Callee(Arc<CalleeParts>);

#[derive(Debug, PartialEq)]
struct CalleeParts {
    definition: Arc<ToolDefinition>,
    layer: Layer,
    unit: String,
    revision: String,
}

impl Callee {
    /// `revision` tells apart bodies that the definition does not: whatever changes when the tool
    /// would do something else, for example a digest of a manifest's command. Empty for bodies
    /// that live as long as the process.
    pub(crate) fn of(entry: &ToolEntry, revision: impl Into<String>) -> Self {
        Self(Arc::new(CalleeParts {
            definition: Arc::clone(&entry.definition),
            layer: entry.source.layer,
            unit: entry.source.unit.clone(),
            revision: revision.into(),
        }))
    }

    pub(crate) fn definition(&self) -> &ToolDefinition {
        &self.0.definition
    }
}

impl PartialEq for Callee {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

/// One for the process, so that a key is hashed once and fits every map.
static SEED: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// Everything an answer depends on: the tool, its arguments, the values the host injects, and who
/// asks. Cloning it is cheap.
///
/// Compared in full: the hash only picks the bucket, so that no choice of arguments can make a
/// model see the answer to another call.
#[derive(Debug, Clone)]
pub(crate) struct CacheKey {
    hash: u64,
    /// Arguments, injected values and identity, one after another. It reads in one way only: a
    /// comma ends every value but the last, the definition says how many there are, and in JSON a
    /// comma stands between brackets or quotes.
    text: Arc<str>,
    callee: Callee,
}

thread_local! {
    /// Where texts are written before their length is known, so that a key is one allocation of
    /// just its size.
    static SCRATCH: Cell<String> = const { Cell::new(String::new()) };
}

/// Bytes a thread holds on to for the next text.
const SCRATCH_KEPT: usize = 16 * 1024;

impl CacheKey {
    /// The key of a call.
    ///
    /// `arguments` are those the tool would get: stripped, completed, valid. Of `values` those
    /// count that the definition injects. `identity` is whose answer it is, in one spelling per
    /// identity: everything else an answer may depend on belongs in it.
    pub(crate) fn of(
        callee: &Callee,
        arguments: Cursor<'_>,
        values: &ContextValues,
        identity: &str,
    ) -> Self {
        // A thread that ends has none any more.
        let mut text = SCRATCH.try_with(Cell::take).unwrap_or_default();
        text.clear();
        text.reserve(arguments.source().len() + identity.len() + 64);
        write_canonical(arguments, Numbers::ByValue, &mut text);
        text.push(',');
        for injection in callee.definition().injections() {
            // In the definition's order and without names: the definition is part of the key. An
            // absent value is empty, which no JSON text is.
            if let Some(value) = values.get(injection.context_key()) {
                text.push_str(&canonical_json(value));
            }
            text.push(',');
        }
        text.push_str(identity);

        let hash = SEED.hash_one((callee.definition().name(), text.as_str()));
        let key = Self { hash, text: text.as_str().into(), callee: callee.clone() };
        if text.capacity() <= SCRATCH_KEPT {
            // If the thread ends, the text is dropped here.
            let _ = SCRATCH.try_with(|scratch| scratch.set(text));
        }
        key
    }

    /// The definition of the tool that is called.
    pub(crate) fn definition(&self) -> &ToolDefinition {
        self.callee.definition()
    }

    /// Stands for the key outside of this process; `callee` is the fingerprint of its tool.
    pub(crate) fn fingerprint(&self, callee: Fingerprint) -> Fingerprint {
        callee.with(self.text.as_bytes())
    }

    /// The bytes it takes beyond a fixed size.
    pub(super) fn size(&self) -> usize {
        self.text.len()
    }
}

impl PartialEq for CacheKey {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
            && (Arc::ptr_eq(&self.text, &other.text) || self.text == other.text)
            && self.callee == other.callee
    }
}

impl Eq for CacheKey {}

impl Hash for CacheKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcrib_json::parse;
    use toolcrib_tool::{
        ContextValues, Injection, Layer, Source, ToolDefinition, ToolEntry, tool_fn,
    };

    use super::{CacheKey, Callee};

    fn entry(description: &str, unit: &str) -> ToolEntry {
        let definition = ToolDefinition::builder("look")
            .description(description)
            .input_schema(json!({"properties": {"a": {"type": "integer"}}}))
            .injections(vec![
                Injection::new("tenant", "tenant").optional(),
                Injection::new("project", "project").optional(),
            ])
            .build()
            .unwrap();
        let body = tool_fn(|_: serde_json::Value, _| async { "seen" });
        ToolEntry::new(definition, std::sync::Arc::new(body), Source::new(Layer::Manifest, unit))
    }

    fn key(callee: &Callee, arguments: &str, values: &ContextValues, identity: &str) -> CacheKey {
        CacheKey::of(callee, parse(arguments).unwrap().root(), values, identity)
    }

    #[test]
    fn the_same_definition_loaded_again_is_the_same_tool() {
        let none = ContextValues::new();
        let first = key(&Callee::of(&entry("Look.", "a.yml"), "1"), r#"{"a":1,"b":2}"#, &none, "u");
        let same =
            key(&Callee::of(&entry("Look.", "a.yml"), "1"), r#"{"b":2,"a":1.0}"#, &none, "u");
        assert_eq!(first, same);
        for other in [
            Callee::of(&entry("Look!", "a.yml"), "1"),
            Callee::of(&entry("Look.", "b.yml"), "1"),
            Callee::of(&entry("Look.", "a.yml"), "2"),
        ] {
            assert_ne!(first, key(&other, r#"{"a":1,"b":2}"#, &none, "u"));
        }
    }

    #[test]
    fn who_asks_and_what_the_host_injects_are_part_of_it() {
        let callee = Callee::of(&entry("Look.", "a.yml"), "");
        let values =
            |pairs: &[(&str, serde_json::Value)]| pairs.iter().cloned().collect::<ContextValues>();
        let keys = [
            key(&callee, "{}", &values(&[]), ""),
            key(&callee, "{}", &values(&[]), "ada"),
            key(&callee, "{}", &values(&[("tenant", json!("x"))]), ""),
            key(&callee, "{}", &values(&[("project", json!("x"))]), ""),
            key(&callee, "{}", &values(&[("tenant", json!(null))]), ""),
            key(&callee, "{}", &values(&[("tenant", json!("x,\"y"))]), ""),
            key(&callee, "{}", &values(&[("tenant", json!("x")), ("project", json!("y"))]), ""),
            // Spelt like an injected value, or like the end of the arguments.
            key(&callee, "{}", &values(&[]), ","),
            key(&callee, "{}", &values(&[]), "\"x\",,"),
        ];
        for (position, one) in keys.iter().enumerate() {
            for other in &keys[position + 1..] {
                assert_ne!(one, other);
            }
        }
        // Nothing the tool does not take from the context counts.
        let noise = values(&[("trace", json!("4bf9"))]);
        assert_eq!(keys[0], key(&callee, "{}", &noise, ""));
    }
}
