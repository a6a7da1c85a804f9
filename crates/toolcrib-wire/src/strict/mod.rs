//! OpenAI's strict mode: every object closed, every property required, optional ones nullable.

mod limits;
mod null;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub(crate) use self::null::admits_null;
use self::null::nullable;
use crate::report::{Reason, Refused, Walk};
use crate::schema::conversion::{Conversion, known_required};
use crate::schema::kinds::{is_of, kinds, type_value};
use crate::schema::reference::{definition, resolve};
use crate::schema::shape::{Shape, shape};
use crate::schema::{Object, sorted, words};

/// The formats that strict mode accepts.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
/// Keywords that stay unchanged.
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
/// Keywords that are handled elsewhere, or that a model does not need. A closed object has no other properties to which
/// `unevaluatedProperties` could apply.
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
/// Keywords whose meaning cannot be described in words.
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
    /// The converted definitions that are referenced.
    definitions: Object,
    /// The name of each reference's definition.
    names: BTreeMap<String, String>,
    /// The references that are being resolved.
    inside: Vec<String>,
}

impl<'a> Conversion<'a> for Strict<'a> {
    fn root(&self) -> &'a Value {
        self.root
    }

    fn inside(&mut self) -> &mut Vec<String> {
        &mut self.inside
    }

    fn any_value(&mut self, walk: &mut Walk) -> Result<Object, Refused> {
        Err(walk.refuse(Reason::AnyValue))
    }

    /// A reference to a definition is kept if nothing stands beside it: strict mode allows nothing beside `$ref`.
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
            walk.note("keywords beside a recursive `$ref` are left out");
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

    fn union(&mut self, branches: Vec<Object>, annotations: &Object, walk: &mut Walk) -> Object {
        let branches = branches.into_iter().map(Value::Object).collect();
        let mut union = Object::from_iter([("anyOf".to_owned(), Value::Array(branches))]);
        self.annotate(&mut union, annotations, walk);
        union
    }

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
            converted.insert("items".to_owned(), self.items(schema, walk)?);
        }
        words::restate(&mut converted, &dropped, walk);
        Ok(converted)
    }

    fn annotate(&self, converted: &mut Object, annotations: &Object, walk: &mut Walk) {
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
}

impl Strict<'_> {
    /// `$defs`, `definitions` and places without a name may have the same preferred name.
    fn free_name(&self, mut wish: String) -> String {
        while self.definitions.contains_key(&wish) {
            wish.push('_');
        }
        wish
    }

    fn object(
        &mut self,
        schema: &Object,
        converted: &mut Object,
        walk: &mut Walk,
    ) -> Result<(), Refused> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let names_none = properties.is_none_or(Object::is_empty);
        match schema.get("additionalProperties") {
            Some(Value::Object(rest)) if !rest.is_empty() => {
                return Err(walk.refuse(Reason::OpenObject));
            }
            Some(Value::Bool(false)) => {}
            // A tool without parameters has no arguments.
            rest if names_none => {
                let closed = schema.get("unevaluatedProperties") == Some(&Value::Bool(false));
                if !closed && (rest.is_some() || !walk.at_root()) {
                    return Err(walk.refuse(Reason::OpenObject));
                }
            }
            Some(_) => walk.note("properties that the schema does not name cannot be sent"),
            None => {}
        }
        let required = known_required(schema, walk)?;
        let mut closed = Object::new();
        for property in self.properties(schema, &required, walk)? {
            let own = property.converted;
            let sayable = property.is_required || admits_null(property.source, self.root);
            let own = if sayable { own } else { nullable(own) };
            closed.insert(property.name.to_owned(), Value::Object(own));
        }
        let names: Vec<&str> = sorted(&closed).into_iter().map(|(name, _)| name).collect();
        converted.insert("required".to_owned(), json!(names));
        converted.insert("properties".to_owned(), Value::Object(closed));
        converted.insert("additionalProperties".to_owned(), false.into());
        Ok(())
    }
}
