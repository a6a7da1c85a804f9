//! Content blocks of an answer, as MCP writes them: text, pictures, sounds, files and links.

use serde_json::{Map, Value};
use toolcrib_tool::Content;

use crate::output::redact_patterns::CallRedaction;

/// Reads a list of content blocks; fails with a clause about the line.
pub(super) fn read(blocks: Value) -> Result<Vec<Content>, String> {
    let Value::Array(blocks) = blocks else {
        return Err("its `content` is not a list of MCP content blocks".into());
    };
    let parts = blocks
        .into_iter()
        .enumerate()
        .map(|(at, block)| part(block).map_err(|problem| format!("`content[{at}]` {problem}")));
    parts.collect()
}

/// One block. [`Content`] reads its own members; only their names and the nesting of files differ.
fn part(block: Value) -> Result<Content, String> {
    let Value::Object(mut block) = block else { return Err("is not an object".into()) };
    let kind = block.remove("type");
    let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
    let (kind, mut members) = match kind {
        "text" | "image" | "audio" => (kind, block),
        "resource_link" => ("link", block),
        "resource" => {
            let Some(Value::Object(mut file)) = block.remove("resource") else {
                return Err("is a `resource` without a `resource` object".into());
            };
            match file.remove("blob") {
                None => ("text_file", file),
                Some(blob) => {
                    file.insert("data".into(), blob);
                    file.entry("mimeType").or_insert_with(|| "application/octet-stream".into());
                    ("blob", file)
                }
            }
        }
        _ => {
            return Err(
                "has a `type` other than text, image, audio, resource and resource_link".into()
            );
        }
    };
    if let Some(mime_type) = members.remove("mimeType") {
        members.insert("mime_type".into(), mime_type);
    }
    members.insert("type".into(), kind.into());
    read_part(kind, members)
}

fn read_part(kind: &str, members: Map<String, Value>) -> Result<Content, String> {
    serde_json::from_value(Value::Object(members)).map_err(|_| {
        let needs = match kind {
            "text" => "`text`",
            "link" => "`uri` and `name`",
            "text_file" => "`uri`, and `text` or `blob`",
            "blob" => "`uri` and base64 in `blob`",
            _ => "base64 in `data` and a `mimeType`",
        };
        format!("needs {needs}")
    })
}

/// A part as it may be shown. Bytes that are no text stay as they are.
pub(super) fn shown(part: Content, redaction: CallRedaction<'_>) -> Content {
    let text = |text: String| redaction.shown(text);
    let one_line = |name: String| text(name).replace(['\n', '\r', '\t'], " ");
    match part {
        Content::Text(content) => Content::Text(text(content)),
        Content::TextFile { uri, text: content, mime_type } => Content::TextFile {
            uri: one_line(uri),
            text: text(content),
            mime_type: mime_type.map(one_line),
        },
        Content::Blob { uri, data, mime_type } => {
            let data = match String::from_utf8(data) {
                Ok(content) => redaction.text(content).into_bytes(),
                Err(binary) => binary.into_bytes(),
            };
            Content::Blob { uri: one_line(uri), data, mime_type: one_line(mime_type) }
        }
        Content::Image { data, mime_type } => {
            Content::Image { data, mime_type: one_line(mime_type) }
        }
        Content::Audio { data, mime_type } => {
            Content::Audio { data, mime_type: one_line(mime_type) }
        }
        Content::Link(mut link) => {
            link.uri = one_line(link.uri);
            link.name = one_line(link.name);
            link.title = link.title.map(one_line);
            link.description = link.description.map(text);
            link.mime_type = link.mime_type.map(one_line);
            Content::Link(link)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcrib_tool::{CallContext, Link, ToolDefinition};

    use super::*;
    use crate::output::redact_patterns::Redaction;

    #[test]
    fn blocks_are_read_as_mcp_writes_them() {
        let parts = read(json!([
            {"type": "text", "text": "a", "annotations": {"audience": ["user"]}},
            {"type": "image", "data": "AAEC", "mimeType": "image/png"},
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a:b", "text": "hi", "mimeType": "text/plain"}},
            {"type": "resource", "resource": {"uri": "a:c", "blob": "AAEC"}},
            {"type": "resource_link", "uri": "a:d", "name": "d", "mimeType": "x/y", "size": 7},
        ]))
        .unwrap();
        let mut link = Link::new("a:d", "d").mime_type("x/y");
        link.size = Some(7);
        let bytes = vec![0, 1, 2];
        assert_eq!(
            parts,
            [
                Content::text("a"),
                Content::Image { data: bytes.clone(), mime_type: "image/png".into() },
                Content::Audio { data: vec![0], mime_type: "audio/wav".into() },
                Content::TextFile {
                    uri: "a:b".into(),
                    text: "hi".into(),
                    mime_type: Some("text/plain".into())
                },
                Content::Blob {
                    uri: "a:c".into(),
                    data: bytes,
                    mime_type: "application/octet-stream".into()
                },
                link.into(),
            ]
        );
    }

    #[test]
    fn a_wrong_block_is_named() {
        for (block, problem) in [
            (json!("text"), "`content[0]` is not an object"),
            (json!({"type": "video"}), "`content[0]` has a `type` other than text"),
            (json!({"type": "image", "data": "?", "mimeType": "image/png"}), "needs base64 in"),
            (json!({"type": "resource", "text": "x"}), "without a `resource` object"),
        ] {
            let said = read(json!([block])).unwrap_err();
            assert!(said.contains(problem), "{said}");
        }
    }

    #[test]
    fn patterns_redact_texts_and_names_and_no_name_leaves_its_line() {
        let patterns = Redaction::new(&["secret-[0-9]".into()]).unwrap();
        let definition = ToolDefinition::builder("t").description("d").build().unwrap();
        let cx = CallContext::builder("c", definition).build();
        let redaction = CallRedaction { patterns: &patterns, cx: &cx };
        let shown = |block| shown(read(json!([block])).unwrap().remove(0), redaction);
        let link = shown(json!({"type": "resource_link", "uri": "a:secret-1", "name": "x\ny"}));
        assert_eq!(link.as_text(), "[link x y: a:[redacted]]");
        let file = shown(json!({"type": "resource", "resource": {"uri": "a", "text": "secret-2"}}));
        assert_eq!(file.as_text(), "[file a]\n[redacted]");
        // `secret-3`
        let blob = json!({"type": "resource", "resource": {"uri": "a", "blob": "c2VjcmV0LTM="}});
        assert!(matches!(shown(blob), Content::Blob { data, .. } if data == b"[redacted]"));
    }
}
