//! The text of a lock: TOML with one value per line, and always the same text for the same lock.
//!
//! It is not written by a library, because a reviewed text must not hide anything: invisible
//! characters and those that reverse text are written as escapes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolcrib_tool::{canonical_json, is_unseen};

use super::file::LockProblem;
use super::{Kind, Lock, Locked, Owner};

/// The version of the format.
const VERSION: u64 = 1;

const HEAD: &str = "\
# What is accepted here, and as what. `toolcrib lock` writes this file: review it, commit
# it, and change it with that command only.
";

/// A lock of any version.
#[derive(Deserialize)]
struct VersionOnly {
    version: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LockFile {
    version: u64,
    #[serde(default)]
    tools: BTreeMap<String, LockFileEntry>,
    #[serde(default)]
    upstreams: BTreeMap<String, LockFileEntry>,
    #[serde(default)]
    prompts: BTreeMap<String, LockFileEntry>,
    #[serde(default)]
    resources: BTreeMap<String, LockFileEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LockFileEntry {
    owner: String,
    digest: Option<String>,
    #[serde(default)]
    declares: BTreeMap<String, Value>,
}

impl Lock {
    /// The text of the file.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}version = {VERSION}\n");
        for ((kind, name), Locked { owner, digest, fields }) in &self.entries {
            // Only URIs are not bare keys of TOML.
            let name = if *kind == Kind::Resource { quoted(name) } else { name.clone() };
            let table = format!("{}.{name}", kind.table());
            // Writing to a string cannot fail.
            let _ = write!(text, "\n[{table}]\nowner = {}\n", quoted(&owner.to_string()));
            if let Some(digest) = digest {
                let _ = writeln!(text, "digest = {}", quoted(digest));
            }
            if !fields.is_empty() {
                let _ = writeln!(text, "[{table}.declares]");
            }
            for (pointer, value) in fields {
                let _ = writeln!(text, "{} = {}", quoted(pointer), written(value));
            }
        }
        text
    }

    /// Adds the entries of a text to this lock.
    pub(super) fn filled(mut self, text: &str) -> Result<Self, LockProblem> {
        let file = toml::from_str(text).map_err(|error| match toml::from_str(text) {
            // Checked first, because a newer version may have unknown keys.
            Ok(VersionOnly { version }) if version > VERSION => newer(version),
            _ => LockProblem::Text(error.to_string()),
        })?;
        let LockFile { version, tools, upstreams, prompts, resources } = file;
        if version > VERSION {
            return Err(newer(version));
        }
        if version < VERSION {
            return Err(LockProblem::Text(format!("there is no version {version} of it")));
        }
        let tables = [tools, upstreams, prompts, resources];
        for (kind, table) in Kind::ALL.into_iter().zip(tables) {
            for (name, LockFileEntry { owner, digest, declares }) in table {
                let owner = Owner::parse(&owner).ok_or_else(|| {
                    LockProblem::Text(format!("the owner of `{name}` is no layer:unit: {owner:?}"))
                })?;
                let fields = declares.into_iter().map(|(key, value)| (key, read(value))).collect();
                self.entries.insert((kind, name), Locked { owner, digest, fields });
            }
        }
        Ok(self)
    }
}

fn newer(found: u64) -> LockProblem {
    LockProblem::Newer { found, known: VERSION }
}

/// A value in TOML; values that TOML cannot express are written as `{ json = "…" }`.
fn written(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Number(number) if number.is_i64() => number.to_string(),
        Value::Number(number) if number.is_f64() => {
            let text = number.to_string();
            // A TOML float needs a point or an exponent, with only digits before it.
            if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
        }
        Value::Array(items) if items.iter().all(|item| !item.is_array() && !item.is_object()) => {
            let items: Vec<String> = items.iter().map(written).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        other => format!("{{ json = {} }}", quoted(&canonical_json(other))),
    }
}

/// What [`written`] wrote, read as TOML.
fn read(value: Value) -> Value {
    match value {
        Value::Object(members) => from_json(&members).unwrap_or(Value::Object(members)),
        Value::Array(items) => items.into_iter().map(read).collect(),
        plain => plain,
    }
}

fn from_json(members: &Map<String, Value>) -> Option<Value> {
    serde_json::from_str(members.get("json")?.as_str()?).ok()
}

/// A value for a list of changes: one line of JSON without invisible characters.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(", "))
        }
        other if *other == json!({}) => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            unseen if is_unseen(unseen) => {
                let code = u32::from(unseen);
                let _ = match u16::try_from(code) {
                    Ok(short) => write!(out, "\\u{short:04X}"),
                    Err(_) => write!(out, "\\U{code:08X}"),
                };
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
    out
}
