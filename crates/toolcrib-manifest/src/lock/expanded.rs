//! The pinned part of a declaration: everything that affects its callers, and nothing else.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use toolcrib_tool::canonical_json;

use crate::declaration::{Declaration, DeclaredBody, Needs, SandboxProfile, SandboxSpec};

impl Declaration {
    /// The whole declaration as one value: with namespace and defaults applied and a digest of its
    /// script, but without tests, examples, `x-…` keys and the owner of the file. Two declarations
    /// with the same meaning have equal values, whatever the order of their keys and the form of
    /// their text.
    pub fn expanded(&self) -> Value {
        // All fields are listed, so that adding a field requires a decision whether it is pinned.
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
            // Derived from `context`, which is a mapping without a meaningful order.
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

/// The digest of an expanded declaration, `blake3:` and 64 hexadecimal digits, of its JSON with
/// sorted keys.
pub fn digest_of(expanded: &Value) -> String {
    format!("blake3:{}", blake3::hash(canonical_json(expanded).as_bytes()).to_hex())
}

/// An expanded declaration flattened for people: JSON pointer → value, where values are scalars,
/// lists of scalars, or empty.
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
