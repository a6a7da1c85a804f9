//! Gemini's subset of an `OpenAPI` schema: no references, no maps, enums of strings only.

mod keywords;

use serde_json::{Map, Value, json};

use self::keywords::{
    KEPT, READ, add_words, annotate, any_of, applies_to, format_fits, list_options, scalars,
};
use crate::declaration::Declaration;
use crate::report::{Reason, Refused, Walk};
use crate::schema::conversion::{Conversion, known_required};
use crate::schema::kinds::{is_of, kinds};
use crate::schema::{Object, sorted, words};

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
        walk.note("the name replaces the missing description");
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

/// Whether a schema describes an object without named properties, which Gemini sends as JSON text.
pub(crate) fn is_sent_as_text(schema: &Object) -> bool {
    let only_object = kinds(schema).iter().all(|kind| kind == "object" || kind == "null");
    let named = schema.get("properties").and_then(Value::as_object);
    let unnamed = named.is_none_or(|named| named.values().all(|one| one == &Value::Bool(false)));
    only_object && unnamed && kinds(schema).iter().any(|kind| kind == "object")
}

struct Gemini<'a> {
    root: &'a Value,
    /// The references that are being resolved.
    inside: Vec<String>,
}

impl<'a> Conversion<'a> for Gemini<'a> {
    fn root(&self) -> &'a Value {
        self.root
    }

    fn inside(&mut self) -> &mut Vec<String> {
        &mut self.inside
    }

    fn any_value(&mut self, walk: &mut Walk) -> Result<Object, Refused> {
        Ok(scalars(&Object::new(), walk))
    }

    /// Gemini has no references: the target is written in place of the reference.
    fn reference(
        &mut self,
        reference: &str,
        annotations: &Object,
        walk: &mut Walk,
    ) -> Result<Object, Refused> {
        if self.inside.iter().any(|known| known == reference) || reference == "#" {
            return Err(walk.refuse(Reason::Recursive));
        }
        self.inlined(reference, annotations, walk)
    }

    /// `anyOf` without its nulls. Nothing may stand beside it, so every branch repeats the words and the `nullable` of
    /// the whole.
    fn union(&mut self, branches: Vec<Object>, annotations: &Object, walk: &mut Walk) -> Object {
        let mut nullable = false;
        let mut converted: Vec<Object> = Vec::with_capacity(branches.len());
        for branch in branches {
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
        whole
    }

    fn annotate(&self, converted: &mut Object, annotations: &Object, walk: &mut Walk) {
        annotate(converted, annotations, walk);
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
}

impl Gemini<'_> {
    /// The part of the schema for one type; `None` if none of its `enum` values is of that type.
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
                    if applies_to(keyword, kind) {
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
                converted.insert("items".to_owned(), self.items(schema, walk)?);
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
        let mut required = known_required(schema, walk)?;
        if !walk.at_root() && is_sent_as_text(schema) {
            walk.restate("an object with arbitrary properties is requested as JSON text");
            converted.insert("type".to_owned(), "string".into());
            for keyword in ["minProperties", "maxProperties"] {
                converted.remove(keyword);
            }
            add_words(converted, "(A JSON object, written as text.)");
            return Ok(());
        }
        let properties = self.properties(schema, &required, walk)?;
        let named: Object = properties
            .into_iter()
            .map(|property| (property.name.to_owned(), Value::Object(property.converted)))
            .collect();
        // Gemini refuses objects without properties.
        if named.is_empty() && !walk.at_root() {
            return Err(walk.refuse(Reason::AdmitsNothing));
        }
        if !required.is_empty() {
            required.sort_unstable();
            converted.insert("required".to_owned(), json!(required));
        }
        converted.insert("properties".to_owned(), Value::Object(named));
        Ok(())
    }
}
