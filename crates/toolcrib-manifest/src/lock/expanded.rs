//! What is pinned of a declaration: all that makes a difference to who calls it, and nothing else.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use toolcrib_tool::canonical_json;

use crate::declaration::{Declaration, DeclaredBody, Needs, SandboxProfile, SandboxSpec};

impl Declaration {
    /// The whole declaration as one value: namespace and defaults applied, with a digest of the bytes
    /// of its script, without tests, examples, keys of the author's own (`x-…`), and who keeps the file. Two declarations that mean the same
    /// have equal values, whatever the order of their keys and the form of their text.
    pub fn expanded(&self) -> Value {
        // All fields by name: whoever adds one decides here whether it is pinned.
        let Self {
            definition,
            body,
            sandbox,
            needs,
            output,
            context,
            constraints,
            tests: _,
            owner: _,
            origin: _,
        } = self;
        let mut expanded = definition.to_full_value();
        let context: Map<String, Value> =
            context.iter().map(|parameter| (parameter.name.clone(), json!(parameter))).collect();
        if let Value::Object(members) = &mut expanded {
            members.remove("input_examples");
            // They follow from `context`, which is a mapping: its order means nothing.
            members.remove("injections");
        }
        match body {
            DeclaredBody::Command(command) => expanded["run"] = json!(command),
            DeclaredBody::Http(http) => expanded["http"] = json!(http),
            DeclaredBody::Worker(worker) => expanded["run"] = json!(worker),
            // The definition says it.
            DeclaredBody::Client => {}
        }
        // What is left out is what holds without it: a lock of before says the same.
        if *sandbox != SandboxSpec::of(SandboxProfile::Workspace) {
            expanded["sandbox"] = json!(sandbox);
        }
        if *needs != Needs::default() {
            expanded["needs"] = json!(needs);
        }
        expanded["output"] = json!(output);
        if !context.is_empty() {
            expanded["context"] = context.into();
        }
        if !constraints.is_empty() {
            expanded["constraints"] = json!(constraints);
        }
        expanded
    }

    /// [`digest_of`] what it [expands](Self::expanded) to.
    pub fn digest(&self) -> String {
        digest_of(&self.expanded())
    }
}

/// The digest of an expanded declaration: `blake3:` and 64 hexadecimal digits, over its JSON with
/// sorted keys.
pub fn digest_of(expanded: &Value) -> String {
    format!("blake3:{}", blake3::hash(canonical_json(expanded).as_bytes()).to_hex())
}

/// An expanded declaration taken apart for people: JSON pointer → value, where a value is no mapping
/// and no list that holds one, unless it is empty.
pub fn fields_of(expanded: &Value) -> BTreeMap<String, Value> {
    let mut fields = BTreeMap::new();
    take_apart(expanded, String::new(), &mut fields);
    fields
}

fn take_apart(value: &Value, pointer: String, fields: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, member) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                take_apart(member, format!("{pointer}/{key}"), fields);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (position, item) in items.iter().enumerate() {
                take_apart(item, format!("{pointer}/{position}"), fields);
            }
        }
        leaf => {
            fields.insert(pointer, leaf.clone());
        }
    }
}
