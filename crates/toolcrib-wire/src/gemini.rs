//! Gemini's subset of an `OpenAPI` schema: no references, no maps, enums of strings only.

use serde_json::{Map, Value, json};
use toolcrib_tool::canonical_json;

use crate::declaration::Declaration;
use crate::report::{Reason, Refused, Walk};
use crate::schema::kinds::{is_of, kinds};
use crate::schema::reference::resolve;
use crate::schema::shape::{Shape, shape};
use crate::schema::{Object, required, sorted, words};

/// Keywords that mean in Gemini's schema what they mean in JSON Schema.
const KEPT: [&str; 10] = [
    "description",
    "pattern",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
];
/// Keywords that are read elsewhere, or say nothing to a model.
const READ: [&str; 16] = [
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "items",
    "title",
    "$defs",
    "definitions",
    "$anchor",
    "$dynamicAnchor",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// One entry of `functionDeclarations`. A tool without parameters has no `parameters`: Gemini
/// refuses objects without properties.
pub(crate) fn function_declaration(
    declaration: &Declaration<'_>,
    name: &str,
    description: &str,
    schema: &Value,
    walk: &mut Walk,
) -> Result<Value, Refused> {
    let mut function = Map::new();
    function.insert("name".to_owned(), name.into());
    // The description is mandatory.
    let description = if description.is_empty() {
        walk.note("the name stands for the missing description");
        declaration.title.unwrap_or(declaration.name)
    } else {
        description
    };
    function.insert("description".to_owned(), description.into());
    let mut gemini = Gemini { root: schema, inside: Vec::new() };
    let parameters = gemini.schema(schema, walk)?;
    match parameters.get("properties").and_then(Value::as_object) {
        Some(properties) if !properties.is_empty() => {
            function.insert("parameters".to_owned(), Value::Object(parameters));
        }
        _ if parameters.contains_key("anyOf") => {
            return Err(walk.refuse(Reason::Keyword("anyOf")));
        }
        _ => {}
    }
    Ok(Value::Object(function))
}

/// Whether a schema is of an object without named properties, which Gemini is asked for as JSON
/// text.
pub(crate) fn is_sent_as_text(schema: &Object) -> bool {
    let only_object = kinds(schema).iter().all(|kind| kind == "object" || kind == "null");
    let named = schema.get("properties").and_then(Value::as_object);
    let unnamed = named.is_none_or(|named| named.values().all(|one| one == &Value::Bool(false)));
    only_object && unnamed && kinds(schema).iter().any(|kind| kind == "object")
}

struct Gemini<'a> {
    root: &'a Value,
    /// The references that are being written out.
    inside: Vec<String>,
}

impl Gemini<'_> {
    fn schema(&mut self, schema: &Value, walk: &mut Walk) -> Result<Object, Refused> {
        match shape(schema, self.root, walk)? {
            Shape::Bool(true) => Ok(scalars(&Object::new(), walk)),
            Shape::Bool(false) => Err(walk.refuse(Reason::AdmitsNothing)),
            Shape::Plain(object) => self.plain(&object, walk),
            Shape::Reference { reference, annotations } => {
                self.inlined(&reference, &annotations, walk)
            }
            Shape::Union { branches, annotations } => self.union(&branches, &annotations, walk),
        }
    }

    fn inlined(
        &mut self,
        reference: &str,
        annotations: &Object,
        walk: &mut Walk,
    ) -> Result<Object, Refused> {
        if self.inside.iter().any(|known| known == reference) || reference == "#" {
            return Err(walk.refuse(Reason::Recursive));
        }
        let Some(target) = resolve(self.root, reference) else {
            return Err(walk.refuse(Reason::Reference(reference.to_owned())));
        };
        self.inside.push(reference.to_owned());
        let converted = walk.within(&[], |walk| self.schema(target, walk));
        self.inside.pop();
        let mut converted = converted?;
        annotate(&mut converted, annotations, walk);
        Ok(converted)
    }

    /// `anyOf` without its nulls; nothing may stand beside it, so that every branch carries the
    /// words and the `nullable` of the whole.
    fn union(
        &mut self,
        branches: &[Value],
        annotations: &Object,
        walk: &mut Walk,
    ) -> Result<Object, Refused> {
        let mut nullable = false;
        let mut converted: Vec<Object> = Vec::with_capacity(branches.len());
        for (index, branch) in branches.iter().enumerate() {
            let branch =
                walk.within(&["anyOf", &index.to_string()], |walk| self.schema(branch, walk))?;
            if branch.get("type") == Some(&Value::from("null")) {
                nullable = true;
            } else if let Some(Value::Array(nested)) = branch.get("anyOf") {
                converted.extend(nested.iter().filter_map(Value::as_object).cloned());
            } else {
                converted.push(branch);
            }
        }
        if nullable {
            for branch in &mut converted {
                branch.insert("nullable".to_owned(), true.into());
            }
        }
        let mut whole = match <[Object; 1]>::try_from(converted) {
            Ok([only]) => only,
            Err(none) if none.is_empty() => Object::from_iter([("type".to_owned(), "null".into())]),
            Err(several) => any_of(several),
        };
        annotate(&mut whole, annotations, walk);
        Ok(whole)
    }

    fn plain(&mut self, schema: &Object, walk: &mut Walk) -> Result<Object, Refused> {
        let mut kinds = kinds(schema);
        if kinds.is_empty() {
            return Ok(scalars(schema, walk));
        }
        if let [only] = kinds.as_slice()
            && only == "null"
        {
            return Ok(Object::from_iter([("type".to_owned(), "null".into())]));
        }
        let nullable = kinds.iter().any(|kind| kind == "null");
        kinds.retain(|kind| kind != "null");
        let mut converted = Vec::with_capacity(kinds.len());
        for kind in &kinds {
            if let Some(mut one) = self.of_kind(schema, kind, walk)? {
                if nullable {
                    one.insert("nullable".to_owned(), true.into());
                }
                converted.push(one);
            }
        }
        match <[Object; 1]>::try_from(converted) {
            Ok([only]) => Ok(only),
            Err(none) if none.is_empty() => Err(walk.refuse(Reason::AdmitsNothing)),
            Err(several) => Ok(any_of(several)),
        }
    }

    /// What the schema says of one type; `None` where none of its `enum` is of that type.
    fn of_kind(
        &mut self,
        schema: &Object,
        kind: &str,
        walk: &mut Walk,
    ) -> Result<Option<Object>, Refused> {
        let mut converted = Object::new();
        let mut dropped = Vec::new();
        converted.insert("type".to_owned(), kind.into());
        for (keyword, value) in sorted(schema) {
            match keyword {
                "additionalProperties" if kind == "object" && is_sent_as_text(schema) => {
                    if value.as_object().is_some_and(|rest| !rest.is_empty()) {
                        dropped.push((keyword, value));
                    }
                }
                "additionalProperties"
                | "unevaluatedProperties"
                | "patternProperties"
                | "propertyNames"
                    if value != &Value::Bool(false) =>
                {
                    walk.note(format!("`{keyword}` is left out"));
                }
                "prefixItems" => return Err(walk.refuse(Reason::Keyword("prefixItems"))),
                "$dynamicRef" => return Err(walk.refuse(Reason::Keyword("$dynamicRef"))),
                "not" | "if" | "then" | "else" | "dependentSchemas" | "contentSchema"
                | "unevaluatedItems" => walk.note(format!("`{keyword}` is left out")),
                "format" if format_fits(kind, value) => {
                    converted.insert(keyword.to_owned(), value.clone());
                }
                keyword if KEPT.contains(&keyword) => {
                    if speaks_of(keyword, kind) {
                        converted.insert(keyword.to_owned(), value.clone());
                    }
                }
                "default" if value.is_null() || !is_of(value, &[kind.to_owned()]) => {}
                keyword if READ.contains(&keyword) || keyword.starts_with("x-") => {}
                keyword => dropped.push((keyword, value)),
            }
        }
        if !converted.contains_key("description")
            && let Some(title) = schema.get("title")
        {
            converted.insert("description".to_owned(), title.clone());
        }
        let constant = schema.get("const").map(|only| vec![only.clone()]);
        let listed = constant.or_else(|| schema.get("enum").and_then(Value::as_array).cloned());
        if let Some(options) = listed
            && !list_options(&options, kind, &mut converted, walk)
        {
            return Ok(None);
        }
        match kind {
            "object" => self.object(schema, &mut converted, walk)?,
            "array" => {
                let items = schema.get("items").unwrap_or(&Value::Bool(true));
                let items = walk.within(&["items"], |walk| self.schema(items, walk))?;
                converted.insert("items".to_owned(), Value::Object(items));
            }
            _ => {}
        }
        words::restate(&mut converted, &dropped, walk);
        Ok(Some(converted))
    }

    fn object(
        &mut self,
        schema: &Object,
        converted: &mut Object,
        walk: &mut Walk,
    ) -> Result<(), Refused> {
        let empty = Object::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required = required(schema);
        if let Some(name) = required.iter().find(|name| !properties.contains_key(**name)) {
            return Err(walk.refuse(Reason::UnknownRequired((*name).to_owned())));
        }
        if !walk.at_root() && is_sent_as_text(schema) {
            walk.note("an object of any properties is asked for as JSON text");
            converted.insert("type".to_owned(), "string".into());
            for keyword in ["minProperties", "maxProperties"] {
                converted.remove(keyword);
            }
            let own = converted.get("description").and_then(Value::as_str).unwrap_or_default();
            let text = format!("{own} (A JSON object, written as text.)");
            converted.insert("description".to_owned(), text.trim_start().into());
            return Ok(());
        }
        let mut named = Object::new();
        for (name, property) in sorted(properties) {
            if property == &Value::Bool(false) && !required.contains(&name) {
                continue;
            }
            let property =
                walk.within(&["properties", name], |walk| self.schema(property, walk))?;
            named.insert(name.to_owned(), Value::Object(property));
        }
        if !required.is_empty() {
            let mut required = required;
            required.sort_unstable();
            converted.insert("required".to_owned(), json!(required));
        }
        converted.insert("properties".to_owned(), Value::Object(named));
        Ok(())
    }
}

/// `enum` for strings; bounds for one number; words for anything else. Whether any option is of
/// the type.
fn list_options(options: &[Value], kind: &str, converted: &mut Object, walk: &mut Walk) -> bool {
    let kinds = [kind.to_owned()];
    let fitting: Vec<&Value> = options.iter().filter(|option| is_of(option, &kinds)).collect();
    match (kind, fitting.as_slice()) {
        (_, []) => return false,
        ("string", fitting) => {
            converted.insert("enum".to_owned(), json!(fitting));
        }
        ("integer" | "number", [only]) => {
            converted.insert("minimum".to_owned(), (*only).clone());
            converted.insert("maximum".to_owned(), (*only).clone());
        }
        // Both values of a boolean say nothing.
        ("boolean", [_, _]) => {}
        (_, fitting) => {
            walk.note(format!("the values of an enum of {kind}s are said in the description"));
            let list: Vec<String> = fitting.iter().map(|option| canonical_json(option)).collect();
            let own = converted.get("description").and_then(Value::as_str).unwrap_or_default();
            let text = format!("{own} One of: {}.", list.join(", "));
            converted.insert("description".to_owned(), text.trim_start().into());
        }
    }
    true
}

/// A schema for any value: Gemini must be told a type, and lists and objects need more than that.
fn scalars(schema: &Object, walk: &mut Walk) -> Object {
    walk.note("any value fits; lists and objects cannot be sent");
    let branch = |kind: &str| {
        let mut branch = Object::from_iter([("type".to_owned(), kind.into())]);
        if let Some(text) = schema.get("description").or_else(|| schema.get("title")) {
            branch.insert("description".to_owned(), text.clone());
        }
        branch
    };
    any_of(["string", "number", "boolean"].into_iter().map(branch).collect())
}

fn any_of(branches: Vec<Object>) -> Object {
    let branches = branches.into_iter().map(Value::Object).collect();
    Object::from_iter([("anyOf".to_owned(), Value::Array(branches))])
}

/// Puts the place's own words before those of what stands there.
fn annotate(converted: &mut Object, annotations: &Object, walk: &mut Walk) {
    if let Some(Value::Array(branches)) = converted.get_mut("anyOf") {
        for branch in branches.iter_mut().filter_map(Value::as_object_mut) {
            annotate(branch, annotations, walk);
        }
        return;
    }
    let said = annotations.get("description").or_else(|| annotations.get("title"));
    if let Some(said) = said.and_then(Value::as_str) {
        let text = match converted.get("description").and_then(Value::as_str) {
            Some(own) if own != said && !own.is_empty() => format!("{said} {own}"),
            _ => said.to_owned(),
        };
        converted.insert("description".to_owned(), text.into());
    }
    let kind = converted.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let dropped: Vec<(&str, &Value)> = sorted(annotations)
        .into_iter()
        .filter(|(keyword, value)| match *keyword {
            "default" => !value.is_null() && is_of(value, std::slice::from_ref(&kind)),
            "example" | "examples" => true,
            _ => false,
        })
        .collect();
    words::restate(converted, &dropped, walk);
}

/// The formats Gemini knows; it refuses others.
fn format_fits(kind: &str, format: &Value) -> bool {
    let known: &[&str] = match kind {
        "string" => &["date-time"],
        "integer" => &["int32", "int64"],
        "number" => &["float", "double"],
        _ => &[],
    };
    known.iter().any(|known| format == known)
}

/// Whether a keyword says something of values of a type; Gemini refuses it elsewhere.
fn speaks_of(keyword: &str, kind: &str) -> bool {
    match keyword {
        "pattern" | "minLength" | "maxLength" => kind == "string",
        "minItems" | "maxItems" => kind == "array",
        "minProperties" | "maxProperties" => kind == "object",
        "minimum" | "maximum" => matches!(kind, "integer" | "number"),
        _ => true,
    }
}
