//! The approximate memory size of an output.

use serde_json::{Map, Value};
use toolcrib_tool::{Content, Link, ToolOutput};

/// Bytes of text, of binary parts and of structured data: the strings, plus the size of every value
/// itself, which dominates for small values.
pub(super) fn of(output: &ToolOutput) -> usize {
    let content: usize = output.content().iter().map(of_part).sum();
    content
        + output.exact_data().map_or(0, |data| of_value(data.protected()))
        + of_members(output.meta())
}

pub(crate) fn of_part(part: &Content) -> usize {
    size_of::<Content>()
        + match part {
            Content::Text(text) => text.len(),
            Content::Image { data, mime_type } | Content::Audio { data, mime_type } => {
                data.len() + mime_type.len()
            }
            Content::Link(link) => {
                let texts = [&link.title, &link.description, &link.mime_type];
                size_of::<Link>()
                    + link.uri.len()
                    + link.name.len()
                    + texts.into_iter().flatten().map(String::len).sum::<usize>()
            }
            Content::TextFile { uri, text, mime_type } => {
                uri.len() + text.len() + mime_type.as_ref().map_or(0, String::len)
            }
            Content::Blob { uri, data, mime_type } => uri.len() + data.len() + mime_type.len(),
            // A part of an unknown kind has at least a transcript.
            other => other.as_text().len(),
        }
}

pub(crate) fn of_value(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(of_value).sum(),
            Value::Object(members) => of_members(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

pub(crate) fn of_members(members: &Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| size_of::<String>() + name.len() + of_value(value)).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcrib_tool::{Content, Link, ToolOutput};

    #[test]
    fn every_part_counts() {
        let big = "x".repeat(1_000);
        let blob = |data: Vec<u8>| Content::Blob {
            uri: "file:a".to_owned(),
            data,
            mime_type: "text/plain".to_owned(),
        };
        for output in [
            ToolOutput::from(big.as_str()),
            ToolOutput::from(json!({"deep": [{"text": big}]})),
            ToolOutput::from(json!({ &big: 1 })),
            ToolOutput::from(json!(vec![1; 100])),
            ToolOutput::from(Content::from(Link::new("a:b", big.as_str()))),
            ToolOutput::from(Content::TextFile {
                uri: "file:a".to_owned(),
                text: big.clone(),
                mime_type: None,
            }),
            ToolOutput::from(blob(vec![0; 1_000])),
            ToolOutput::new().with_meta("note", big.as_str()),
        ] {
            assert!((1_000..6_000).contains(&super::of(&output)), "{}", super::of(&output));
        }
        assert!(super::of(&ToolOutput::new()) < 100);
    }
}
