//! Cache keys: when two calls are the same.

use std::cell::Cell;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use hashbrown::DefaultHashBuilder;
use toolcrib_json::{Cursor, Numbers, write_canonical};
use toolcrib_tool::{ContextValues, Layer, ToolDefinition, ToolEntry, canonical_json};

use crate::identity::fingerprint::Fingerprint;

/// The tool that a call is for, created once per registry entry; cloning it is cheap.
///
/// Compared by value, so that a reload without changes invalidates nothing. The whole definition
/// and its source count.
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
    /// `revision` distinguishes bodies with the same definition: it changes whenever the tool would
    /// do something else, for example a digest of a manifest's command. Empty for bodies that live
    /// as long as the process.
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

/// One hasher for the process, so that a key is hashed once for all maps.
static SEED: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// Everything an answer depends on: the tool, its arguments, the injected values, and the identity.
/// Cloning it is cheap.
///
/// Compared in full: the hash only selects the bucket, so a hash collision never yields the answer
/// to another call.
#[derive(Debug, Clone)]
pub(crate) struct CacheKey {
    hash: u64,
    /// Arguments, injected values and identity, concatenated. The text is unambiguous: a comma ends
    /// every value but the last, the definition determines how many there are, and in canonical
    /// JSON a comma occurs only inside brackets or quotes.
    text: Arc<str>,
    callee: Callee,
}

thread_local! {
    /// A buffer for building the text, so that a key is one allocation of exactly its size.
    static SCRATCH: Cell<String> = const { Cell::new(String::new()) };
}

/// Bytes that a thread keeps for the next text.
const SCRATCH_KEPT: usize = 16 * 1024;

impl CacheKey {
    /// The key of a call.
    ///
    /// `arguments` are those the tool gets: stripped, completed, valid. Of `values`, only those
    /// that the definition injects count. `identity` identifies the caller and has to include
    /// everything else that an answer may depend on.
    pub(crate) fn of(
        callee: &Callee,
        arguments: Cursor<'_>,
        values: &ContextValues,
        identity: &str,
    ) -> Self {
        // A thread that is ending has no buffer any more.
        let mut text = SCRATCH.try_with(Cell::take).unwrap_or_default();
        text.clear();
        text.reserve(arguments.source().len() + identity.len() + 64);
        write_canonical(arguments, Numbers::ByValue, &mut text);
        text.push(',');
        for injection in callee.definition().injections() {
            // In the definition's order and without names, because the definition is part of the
            // key. An absent value is empty, which is not a JSON text.
            if let Some(value) = values.get(injection.context_key()) {
                text.push_str(&canonical_json(value));
            }
            text.push(',');
        }
        text.push_str(identity);

        let hash = SEED.hash_one((callee.definition().name(), text.as_str()));
        let key = Self { hash, text: text.as_str().into(), callee: callee.clone() };
        if text.capacity() <= SCRATCH_KEPT {
            // If the thread is ending, the buffer is dropped here.
            let _ = SCRATCH.try_with(|scratch| scratch.set(text));
        }
        key
    }

    /// The definition of the tool that is called.
    pub(crate) fn definition(&self) -> &ToolDefinition {
        self.callee.definition()
    }

    /// The key's fingerprint for use outside this process; `callee` is the fingerprint of its tool.
    pub(crate) fn fingerprint(&self, callee: Fingerprint) -> Fingerprint {
        callee.with(self.text.as_bytes())
    }

    /// Its heap size in bytes.
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
            // Looks like an injected value, or like the end of the arguments.
            key(&callee, "{}", &values(&[]), ","),
            key(&callee, "{}", &values(&[]), "\"x\",,"),
        ];
        for (position, one) in keys.iter().enumerate() {
            for other in &keys[position + 1..] {
                assert_ne!(one, other);
            }
        }
        // Context values that the tool does not use do not count.
        let noise = values(&[("trace", json!("4bf9"))]);
        assert_eq!(keys[0], key(&callee, "{}", &noise, ""));
    }
}
