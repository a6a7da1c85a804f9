//! Walks through a schema and rewrites it in a provider's subset.

use serde_json::Value;

use super::reference::resolve;
use super::shape::{Shape, shape};
use super::{Object, required, sorted};
use crate::report::{Reason, Refused, Walk};

/// A provider's subset of JSON Schema: implementors supply the rules, this trait the walk.
pub(crate) trait Conversion<'a> {
    /// The whole schema, into which references lead.
    fn root(&self) -> &'a Value;

    /// The references that are being resolved, outermost first.
    fn inside(&mut self) -> &mut Vec<String>;

    /// A place where any value fits.
    fn any_value(&mut self, walk: &mut Walk) -> Result<Object, Refused>;

    /// A schema without references and combinators.
    fn plain(&mut self, schema: &Object, walk: &mut Walk) -> Result<Object, Refused>;

    /// A `$ref` and the annotations beside it.
    fn reference(
        &mut self,
        reference: &str,
        annotations: &Object,
        walk: &mut Walk,
    ) -> Result<Object, Refused>;

    /// A union of converted schemas, with the annotations of the whole.
    fn union(&mut self, branches: Vec<Object>, annotations: &Object, walk: &mut Walk) -> Object;

    /// Puts the annotations of the place before those of the schema there.
    fn annotate(&self, converted: &mut Object, annotations: &Object, walk: &mut Walk);

    /// Any schema.
    fn schema(&mut self, schema: &Value, walk: &mut Walk) -> Result<Object, Refused> {
        match shape(schema, self.root(), walk)? {
            Shape::Bool(true) => self.any_value(walk),
            Shape::Bool(false) => Err(walk.refuse(Reason::AdmitsNothing)),
            Shape::Plain(object) => self.plain(&object, walk),
            Shape::Reference { reference, annotations } => {
                self.reference(&reference, &annotations, walk)
            }
            Shape::Union { branches, annotations } => {
                let mut converted = Vec::with_capacity(branches.len());
                for (index, branch) in branches.iter().enumerate() {
                    let place = ["anyOf", &index.to_string()];
                    converted.push(walk.within(&place, |walk| self.schema(branch, walk))?);
                }
                Ok(self.union(converted, &annotations, walk))
            }
        }
    }

    /// Resolves a reference in place.
    fn inlined(
        &mut self,
        reference: &str,
        annotations: &Object,
        walk: &mut Walk,
    ) -> Result<Object, Refused> {
        let Some(target) = resolve(self.root(), reference) else {
            return Err(walk.refuse(Reason::Reference(reference.to_owned())));
        };
        self.inside().push(reference.to_owned());
        let converted = walk.within(&[], |walk| self.schema(target, walk));
        self.inside().pop();
        let mut converted = converted?;
        // Nothing may stand beside a reference that is kept.
        if !annotations.is_empty() && !converted.contains_key("$ref") {
            self.annotate(&mut converted, annotations, walk);
        }
        Ok(converted)
    }

    /// The `items` of a list schema.
    fn items(&mut self, schema: &Object, walk: &mut Walk) -> Result<Value, Refused> {
        let items = schema.get("items").unwrap_or(&Value::Bool(true));
        walk.within(&["items"], |walk| self.schema(items, walk)).map(Value::Object)
    }

    /// The properties of an object schema sorted by name, without those that accept no value: a tool works without an
    /// optional one. `required` contains only properties of the schema: see [`known_required`].
    fn properties<'s>(
        &mut self,
        schema: &'s Object,
        required: &[&str],
        walk: &mut Walk,
    ) -> Result<Vec<Property<'s>>, Refused> {
        let mut properties = Vec::new();
        for (name, source) in named(schema) {
            let is_required = required.contains(&name);
            if !is_required && source == &Value::Bool(false) {
                continue;
            }
            let place = ["properties", name];
            match walk.attempt(&place, |walk| self.schema(source, walk)) {
                Ok(converted) => {
                    properties.push(Property { name, source, is_required, converted });
                }
                Err(refused) if !is_required && refused.reason == Reason::AdmitsNothing => {
                    walk.within(&place, |walk| {
                        walk.note("no value fits, so the parameter is left out");
                        Ok(())
                    })?;
                }
                Err(refused) => return Err(refused),
            }
        }
        Ok(properties)
    }
}

/// A property of an object schema.
pub(crate) struct Property<'s> {
    pub(crate) name: &'s str,
    /// Its schema in the tool's own schema.
    pub(crate) source: &'s Value,
    pub(crate) is_required: bool,
    pub(crate) converted: Object,
}

/// The required names of an object schema, all of which must have a schema.
pub(crate) fn known_required<'s>(schema: &'s Object, walk: &Walk) -> Result<Vec<&'s str>, Refused> {
    let required = required(schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    match required.iter().find(|name| !properties.is_some_and(|known| known.contains_key(**name))) {
        Some(name) => Err(walk.refuse(Reason::UnknownRequired((*name).to_owned()))),
        None => Ok(required),
    }
}

/// The named properties, in the order of their names.
fn named(schema: &Object) -> Vec<(&str, &Value)> {
    schema.get("properties").and_then(Value::as_object).map(sorted).unwrap_or_default()
}
