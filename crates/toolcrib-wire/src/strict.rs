//! OpenAI's strict mode: every object closed, every property required, optional ones nullable.

mod limits;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::report::{Reason, Refused, Walk};
use crate::schema::kinds::{is_of, kinds, type_value};
use crate::schema::merge::is_listed;
use crate::schema::reference::{definition, resolve};
use crate::schema::shape::{Shape, shape};
use crate::schema::{Object, required, sorted, words};

/// The formats strict mode knows.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
/// Keywords that are kept as they are.
const KEPT: [&str; 11] = [
    "title",
    "description",
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
    "const",
];
/// Keywords that are read elsewhere, or say nothing to a model. A closed object has no other
/// properties of which `unevaluatedProperties` could speak.
const READ: [&str; 13] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "items",
    "$defs",
    "definitions",
    "$anchor",
    "$dynamicAnchor",
    "deprecated",
    "readOnly",
    "writeOnly",
];
/// Keywords without which the schema would mean something that words cannot say.
const REFUSED: [&str; 10] = [
    "patternProperties",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "prefixItems",
    "unevaluatedItems",
    "$dynamicRef",
    "contentSchema",
];

/// A tidied schema in strict form.
pub(crate) fn strict(schema: &Value, walk: &mut Walk) -> Result<Value, Refused> {
    let inside = vec!["#".to_owned()];
    let mut strict =
        Strict { root: schema, definitions: Object::new(), names: BTreeMap::new(), inside };
    let mut root = match shape(schema, schema, walk)? {
        Shape::Plain(object) => strict.plain(&object, walk)?,
        Shape::Bool(_) => strict.plain(&Object::new(), walk)?,
        Shape::Reference { reference, annotations } => {
            strict.inlined(&reference, &annotations, walk)?
        }
        Shape::Union { .. } => return Err(walk.refuse(Reason::Keyword("anyOf"))),
    };
    if !strict.definitions.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(strict.definitions));
    }
    let root = Value::Object(root);
    limits::check(&root, walk)?;
    Ok(root)
}

struct Strict<'a> {
    root: &'a Value,
    /// The definitions that are referred to, converted.
    definitions: Object,
    /// What each reference's definition is called.
    names: BTreeMap<String, String>,
    /// The references that are being written out.
    inside: Vec<String>,
}

impl Strict<'_> {
    fn schema(&mut self, schema: &Value, walk: &mut Walk) -> Result<Object, Refused> {
        match shape(schema, self.root, walk)? {
            Shape::Bool(true) => Err(walk.refuse(Reason::AnyValue)),
            Shape::Bool(false) => Err(walk.refuse(Reason::AdmitsNothing)),
            Shape::Plain(object) => self.plain(&object, walk),
            Shape::Reference { reference, annotations } => {
                self.reference(&reference, &annotations, walk)
            }
            Shape::Union { branches, annotations } => {
                let mut converted = Vec::with_capacity(branches.len());
                for (index, branch) in branches.iter().enumerate() {
                    let branch = walk
                        .within(&["anyOf", &index.to_string()], |walk| self.schema(branch, walk))?;
                    converted.push(Value::Object(branch));
                }
                let mut union = Object::new();
                union.insert("anyOf".to_owned(), Value::Array(converted));
                annotate(&mut union, &annotations, walk);
                Ok(union)
            }
        }
    }

    /// A reference to a definition stays one where nothing stands beside it: strict mode takes
    /// nothing beside `$ref`.
    fn reference(
        &mut self,
        reference: &str,
        annotations: &Object,
        walk: &mut Walk,
    ) -> Result<Object, Refused> {
        let around = self.inside.iter().any(|known| known == reference);
        if !annotations.is_empty() && !around {
            return self.inlined(reference, annotations, walk);
        }
        let stays = |target: String| Object::from_iter([("$ref".to_owned(), target.into())]);
        if reference == "#" {
            return Ok(stays("#".to_owned()));
        }
        let own = definition(reference);
        if own.is_none() && !around {
            return self.inlined(reference, annotations, walk);
        }
        if !annotations.is_empty() {
            walk.note("what stands beside a recursive `$ref` is left out");
        }
        let name = if let Some(name) = self.names.get(reference) {
            name.clone()
        } else {
            let name = self.free_name(
                own.unwrap_or_else(|| reference.trim_start_matches(['#', '/']).replace('/', "_")),
            );
            let Some(target) = resolve(self.root, reference) else {
                return Err(walk.refuse(Reason::Reference(reference.to_owned())));
            };
            // Named before it is converted, so that recursion ends.
            self.names.insert(reference.to_owned(), name.clone());
            self.definitions.insert(name.clone(), Value::Bool(true));
            let converted = walk.within(&["$defs", &name], |walk| self.schema(target, walk))?;
            self.definitions.insert(name.clone(), Value::Object(converted));
            name
        };
        Ok(stays(format!("#/$defs/{}", name.replace('~', "~0").replace('/', "~1"))))
    }

    /// `$defs`, `definitions` and places without a name may wish for the same one.
    fn free_name(&self, mut wish: String) -> String {
        while self.definitions.contains_key(&wish) {
            wish.push('_');
        }
        wish
    }

    /// What a reference leads to, in its place.
    fn inlined(
        &mut self,
        reference: &str,
        annotations: &Object,
        walk: &mut Walk,
    ) -> Result<Object, Refused> {
        let Some(target) = resolve(self.root, reference) else {
            return Err(walk.refuse(Reason::Reference(reference.to_owned())));
        };
        self.inside.push(reference.to_owned());
        let converted = walk.within(&[], |walk| self.schema(target, walk));
        self.inside.pop();
        let mut converted = converted?;
        if !annotations.is_empty() && !converted.contains_key("$ref") {
            annotate(&mut converted, annotations, walk);
        }
        Ok(converted)
    }

    /// A schema without references and combinators.
    fn plain(&mut self, schema: &Object, walk: &mut Walk) -> Result<Object, Refused> {
        if let Some(keyword) = REFUSED.into_iter().find(|keyword| schema.contains_key(*keyword)) {
            return Err(walk.refuse(Reason::Keyword(keyword)));
        }
        let kinds = kinds(schema);
        if kinds.is_empty() {
            return Err(walk.refuse(Reason::AnyValue));
        }
        let is = |kind: &str| kinds.iter().any(|known| known == kind);
        let mut converted = Object::new();
        converted.insert("type".to_owned(), type_value(&kinds));
        let mut dropped = Vec::new();
        for (keyword, value) in sorted(schema) {
            match keyword {
                "enum" => {
                    let options = value.as_array().into_iter().flatten();
                    let fitting: Vec<Value> =
                        options.filter(|option| is_of(option, &kinds)).cloned().collect();
                    if fitting.is_empty() {
                        return Err(walk.refuse(Reason::AdmitsNothing));
                    }
                    converted.insert("enum".to_owned(), Value::Array(fitting));
                }
                "format" if FORMATS.iter().any(|known| value == known) => {
                    converted.insert("format".to_owned(), value.clone());
                }
                keyword if KEPT.contains(&keyword) => {
                    converted.insert(keyword.to_owned(), value.clone());
                }
                "default" if value.is_null() => {}
                keyword if READ.contains(&keyword) || keyword.starts_with("x-") => {}
                keyword => dropped.push((keyword, value)),
            }
        }
        if is("object") {
            self.object(schema, &mut converted, walk)?;
        }
        if is("array") {
            let items = schema.get("items").unwrap_or(&Value::Bool(true));
            let items = walk.within(&["items"], |walk| self.schema(items, walk))?;
            converted.insert("items".to_owned(), Value::Object(items));
        }
        words::restate(&mut converted, &dropped, walk);
        Ok(converted)
    }

    fn object(
        &mut self,
        schema: &Object,
        converted: &mut Object,
        walk: &mut Walk,
    ) -> Result<(), Refused> {
        let empty = Object::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        match schema.get("additionalProperties") {
            Some(Value::Object(rest)) if !rest.is_empty() => {
                return Err(walk.refuse(Reason::OpenObject));
            }
            Some(Value::Bool(false)) => {}
            // The arguments of a tool that names none are none.
            rest if properties.is_empty() => {
                let closed = schema.get("unevaluatedProperties") == Some(&Value::Bool(false));
                if !closed && (rest.is_some() || !walk.at_root()) {
                    return Err(walk.refuse(Reason::OpenObject));
                }
            }
            Some(_) => walk.note("properties that the schema does not name cannot be sent"),
            None => {}
        }
        let required = required(schema);
        if let Some(name) = required.iter().find(|name| !properties.contains_key(**name)) {
            return Err(walk.refuse(Reason::UnknownRequired((*name).to_owned())));
        }
        let mut closed = Object::new();
        for (name, property) in sorted(properties) {
            let must = required.contains(&name);
            // A closed object forbids the property without saying so.
            if !must && property == &Value::Bool(false) {
                continue;
            }
            let property = walk.within(&["properties", name], |walk| {
                let property_schema = self.schema(property, walk)?;
                Ok(if must || admits_null(property, self.root) {
                    property_schema
                } else {
                    nullable(property_schema)
                })
            })?;
            closed.insert(name.to_owned(), Value::Object(property));
        }
        let names: Vec<&str> = sorted(&closed).into_iter().map(|(name, _)| name).collect();
        converted.insert("required".to_owned(), json!(names));
        converted.insert("properties".to_owned(), Value::Object(closed));
        converted.insert("additionalProperties".to_owned(), false.into());
        Ok(())
    }
}

/// Puts the place's own words before those of what stands there.
fn annotate(converted: &mut Object, annotations: &Object, walk: &mut Walk) {
    for keyword in ["title", "description"] {
        if let Some(text) = annotations.get(keyword) {
            converted.insert(keyword.to_owned(), text.clone());
        }
    }
    let dropped: Vec<(&str, &Value)> = sorted(annotations)
        .into_iter()
        .filter(|(keyword, value)| {
            matches!(*keyword, "default" | "example" | "examples") && !value.is_null()
        })
        .collect();
    words::restate(converted, &dropped, walk);
}

/// Whether the tool's own schema admits `null`, so that strict mode has nothing to add. A schema
/// that says no type and only speaks of, say, lengths is read as that type.
pub(crate) fn admits_null(schema: &Value, root: &Value) -> bool {
    admits_null_within(schema, root, &mut 1000)
}

/// Reads at most `fuel` schemas; without fuel the answer is `false`.
fn admits_null_within(schema: &Value, root: &Value, fuel: &mut usize) -> bool {
    if *fuel == 0 {
        return false;
    }
    *fuel -= 1;
    let object = match schema {
        Value::Bool(all) => return *all,
        Value::Object(object) => object,
        _ => return false,
    };
    let kinds = kinds(object);
    let combined =
        ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|keyword| object.contains_key(*keyword));
    let unsaid = kinds.is_empty() || (combined && !object.contains_key("type"));
    if !(unsaid || kinds.iter().any(|kind| kind == "null")) || !is_listed(&Value::Null, object) {
        return false;
    }
    if let Some(reference) = object.get("$ref").and_then(Value::as_str)
        && !resolve(root, reference).is_some_and(|target| admits_null_within(target, root, fuel))
    {
        return false;
    }
    let mut parts = |keyword: &str| -> Option<(bool, bool)> {
        let parts = object.get(keyword)?.as_array()?;
        let admitting = parts.iter().filter(|part| admits_null_within(part, root, fuel)).count();
        Some((admitting > 0, admitting == parts.len()))
    };
    parts("allOf").is_none_or(|(_, all)| all)
        && parts("anyOf").is_none_or(|(any, _)| any)
        && parts("oneOf").is_none_or(|(any, _)| any)
}

/// The strict schema, or `null`.
fn nullable(mut schema: Object) -> Object {
    let kinds = kinds(&schema);
    let structural = ["$ref", "const", "anyOf"].iter().any(|key| schema.contains_key(*key));
    if !structural && !kinds.is_empty() {
        if let Some(Value::Array(options)) = schema.get_mut("enum")
            && !options.contains(&Value::Null)
        {
            options.push(Value::Null);
        }
        let mut kinds = kinds;
        if !kinds.iter().any(|kind| kind == "null") {
            kinds.push("null".to_owned());
        }
        schema.insert("type".to_owned(), type_value(&kinds));
        return schema;
    }
    let null = json!({"type": "null"});
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        branches.push(null);
        return schema;
    }
    let mut union = Object::new();
    for keyword in ["title", "description"] {
        if let Some(text) = schema.remove(keyword) {
            union.insert(keyword.to_owned(), text);
        }
    }
    union.insert("anyOf".to_owned(), Value::Array(vec![Value::Object(schema), null]));
    union
}
