//! The schema of a type, which is published and against which its files are checked.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The JSON Schema (2020-12) of a type for checking files: unknown keys are errors everywhere.
///
/// ```
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Config { timeout: toolcrib_manifest::units::HumanDuration }
/// let schema = toolcrib_manifest::layers::schema_of::<Config>();
/// assert_eq!(schema["additionalProperties"], false);
/// ```
pub fn schema_of<T: JsonSchema>() -> Value {
    // Not `toolcrib_tool::schema_for`, which omits null, because it is for arguments.
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = Value::from(generator.into_root_schema_for::<T>());
    tidy(&mut schema);
    schema
}

/// Makes every object schema with properties refuse unknown ones, and adapts descriptions for
/// people who write files.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(object) => {
            object.values_mut().for_each(tidy);
            if let Some(Value::String(description)) = object.get_mut("description") {
                *description = for_writers(description);
            }
            let open = [
                "additionalProperties",
                "unevaluatedProperties",
                "$ref",
                "oneOf",
                "anyOf",
                "allOf",
            ];
            let has_properties = object.get("properties").is_some_and(Value::is_object);
            if has_properties && !open.iter().any(|keyword| object.contains_key(*keyword)) {
                object.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
        }
        _ => {}
    }
}

/// A type's documentation without code examples and links.
fn for_writers(documentation: &str) -> String {
    let text = documentation.split("```").next().unwrap_or_default();
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        without_links(&words.join(" "))
    });
    let paragraphs: Vec<String> = paragraphs.filter(|text| !text.is_empty()).collect();
    paragraphs.join("\n\n")
}

/// ``[`Name`](target)`` and ``[`Name`]`` as `` `Name` ``.
fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        plain.push_str(before);
        let Some((name, behind)) = link.split_once("`]") else {
            plain.push_str("[`");
            rest = link;
            continue;
        };
        plain.extend(["`", name, "`"]);
        let target = behind.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(behind, |(_, behind)| behind);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::for_writers;

    #[test]
    fn documentation_is_adapted_for_people_who_write_files() {
        let text = "What it is, as\n[`Thing`] says.\n\nSee [`other`](crate::other).\n\n```\nlet a \
         = 1;\n```\n\nMore.";
        assert_eq!(for_writers(text), "What it is, as `Thing` says.\n\nSee `other`.");
        assert_eq!(for_writers("a list [`x] and [y](z)"), "a list [`x] and [y](z)");
    }
}
