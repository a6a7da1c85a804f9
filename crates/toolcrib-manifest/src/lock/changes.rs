//! The differences between two locks: what was accepted, and what is declared now.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::text::shown;
use super::{Kind, Lock, Locked, Owner};

/// A name that differs in two locks.
#[derive(Debug, Clone, PartialEq)]
pub struct LockChange {
    /// The kind of declaration.
    pub kind: Kind,
    /// The name.
    pub name: String,
    /// The change.
    pub change: Change,
    /// The current owner, or the previous one if there is none now.
    pub owner: Owner,
    /// The differences of its declaration, by pointer.
    pub fields: Vec<FieldChange>,
}

/// The change of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The name is new.
    Added,
    /// The name is no longer declared.
    Removed,
    /// The owner is the same, but the declaration has changed.
    Changed,
    /// The same declaration was moved within its layer.
    Moved {
        /// Who had the name.
        from: Owner,
    },
    /// The name has another owner and another declaration.
    TakenOver {
        /// Who had it.
        from: Owner,
    },
}

impl Change {
    /// The stable name for listings.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
            Self::Moved { .. } => "moved",
            Self::TakenOver { .. } => "taken over",
        }
    }

    /// The previous owner, if it was another one.
    pub fn from(&self) -> Option<&Owner> {
        match self {
            Self::Moved { from } | Self::TakenOver { from } => Some(from),
            _ => None,
        }
    }
}

/// A changed value in a declaration.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldChange {
    /// The JSON pointer, for example `/input_schema/properties/path/type`.
    pub pointer: String,
    /// The accepted value; `None` if there was none.
    pub before: Option<Value>,
    /// The declared value; `None` if there is none.
    pub after: Option<Value>,
}

impl FieldChange {
    /// The accepted value as one line without invisible characters.
    pub fn shown_before(&self) -> Option<String> {
        self.before.as_ref().map(shown)
    }

    /// The declared value, in the same form.
    pub fn shown_after(&self) -> Option<String> {
        self.after.as_ref().map(shown)
    }
}

impl LockChange {
    /// The change as a JSON object: `{kind, name, change, owner, from?, fields: [{pointer,
    /// before?, after?}]}`.
    pub fn to_value(&self) -> Value {
        let fields = self.fields.iter().map(|field| {
            let mut value = json!({ "pointer": field.pointer });
            for (key, side) in [("before", &field.before), ("after", &field.after)] {
                if let Some(side) = side {
                    value[key] = side.clone();
                }
            }
            value
        });
        let mut value = json!({
            "kind": self.kind.as_str(),
            "name": self.name,
            "change": self.change.as_str(),
            "owner": self.owner.to_string(),
            "fields": fields.collect::<Vec<_>>(),
        });
        if let Some(from) = self.change.from() {
            value["from"] = from.to_string().into();
        }
        value
    }
}

/// The changes from one lock to another, by kind and name.
pub fn changes(accepted: &Lock, declared: &Lock) -> Vec<LockChange> {
    let keys: BTreeSet<_> = accepted.entries.keys().chain(declared.entries.keys()).collect();
    let between = keys.into_iter().filter_map(|key| {
        let (before, after) = (accepted.entries.get(key), declared.entries.get(key));
        let change = change(before, after)?;
        let owner = after.or(before)?.owner.clone();
        let (kind, name) = key.clone();
        Some(LockChange { kind, name, change, owner, fields: fields(before, after) })
    });
    between.collect()
}

fn change(before: Option<&Locked>, after: Option<&Locked>) -> Option<Change> {
    let (before, after) = match (before, after) {
        (None, None) => return None,
        (None, Some(_)) => return Some(Change::Added),
        (Some(_), None) => return Some(Change::Removed),
        (Some(before), Some(after)) => (before, after),
    };
    let from = || before.owner.clone();
    if before.owner == after.owner {
        (before.digest != after.digest).then_some(Change::Changed)
    } else if before.owner.layer == after.owner.layer
        && before.digest == after.digest
        && before.digest.is_some()
    {
        Some(Change::Moved { from: from() })
    } else {
        Some(Change::TakenOver { from: from() })
    }
}

fn fields(before: Option<&Locked>, after: Option<&Locked>) -> Vec<FieldChange> {
    let side = |tool: Option<&Locked>, pointer: &str| {
        tool.and_then(|tool| tool.fields.get(pointer)).cloned()
    };
    let pointers: BTreeSet<&String> =
        before.into_iter().chain(after).flat_map(|tool| tool.fields.keys()).collect();
    let both = pointers.into_iter().map(|pointer| FieldChange {
        pointer: pointer.clone(),
        before: side(before, pointer),
        after: side(after, pointer),
    });
    both.filter(|field| field.before != field.after).collect()
}
