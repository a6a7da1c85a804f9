//! A server's answer as an outcome: text marked, everything else as it came.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use toolcrib_tool::{Content, ToolError, ToolOutcome, ToolOutput, canonical_json, visible};

use super::marking::marked;

/// The mime type of bytes of which the server says nothing.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// What a call came to.
pub(crate) fn outcome(upstream: &str, answer: CallToolResult) -> Result<ToolOutcome, ToolError> {
    let failed = answer.is_error == Some(true);
    let mut content: Vec<Content> =
        answer.content.into_iter().map(|block| part(upstream, block)).collect();
    // Data alone is read by models too.
    if content.is_empty()
        && let Some(data) = &answer.structured_content
    {
        content.push(Content::text(marked(upstream, &canonical_json(data))));
    }
    if failed {
        return Err(failure(upstream, content));
    }
    let output = ToolOutput::new().replace_content(content);
    Ok(ToolOutcome::Done(match answer.structured_content {
        Some(data) => output.with_data(data),
        None => output,
    }))
}

/// The failure that a server reports.
fn failure(upstream: &str, content: Vec<Content>) -> ToolError {
    let (texts, others): (Vec<_>, Vec<_>) =
        content.into_iter().partition(|part| matches!(part, Content::Text(_)));
    let mut message = format!("the MCP server `{upstream}` reports a failure");
    for text in &texts {
        message.push('\n');
        message.push_str(&text.as_text());
    }
    let error = ToolError::execution(message);
    if others.is_empty() {
        return error;
    }
    error.with_partial(ToolOutput::new().replace_content(others))
}

fn part(upstream: &str, block: ContentBlock) -> Content {
    match block {
        ContentBlock::Text(text) => Content::text(marked(upstream, &text.text)),
        ContentBlock::Image(image) => match STANDARD.decode(&image.data) {
            Ok(data) => Content::Image { data, mime_type: image.mime_type },
            Err(_) => unreadable(upstream, "an image"),
        },
        ContentBlock::Audio(audio) => match STANDARD.decode(&audio.data) {
            Ok(data) => Content::Audio { data, mime_type: audio.mime_type },
            Err(_) => unreadable(upstream, "a sound"),
        },
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                let kind = mime_type.map(|kind| format!(" ({kind})")).unwrap_or_default();
                Content::text(marked(upstream, &format!("{uri}{kind}\n{text}")))
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                match STANDARD.decode(&blob) {
                    Ok(data) => Content::Blob {
                        uri: visible(&uri).into_owned(),
                        data,
                        mime_type: mime_type.unwrap_or_else(|| UNKNOWN_TYPE.to_owned()),
                    },
                    Err(_) => unreadable(upstream, "a file"),
                }
            }
            _ => unknown(upstream),
        },
        ContentBlock::ResourceLink(link) => Content::Link {
            uri: visible(&link.uri).into_owned(),
            name: visible(link.title.as_deref().unwrap_or(&link.name)).into_owned(),
            mime_type: link.mime_type,
        },
        _ => unknown(upstream),
    }
}

fn unknown(upstream: &str) -> Content {
    Content::text(format!("[the MCP server `{upstream}` sent a part of a kind not known here]"))
}

fn unreadable(upstream: &str, what: &str) -> Content {
    Content::text(format!("[the MCP server `{upstream}` sent {what} that is not base64]"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answer(value: Value) -> Result<ToolOutcome, ToolError> {
        outcome("git", serde_json::from_value(value).expect("it is an answer"))
    }

    fn done(value: Value) -> ToolOutput {
        match answer(value) {
            Ok(ToolOutcome::Done(output)) => output,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn bytes_keep_their_mime_types_and_text_is_marked() {
        let output = done(json!({"content": [
            {"type": "text", "text": "hello"},
            {"type": "image", "data": "AAEC", "mimeType": "image/png"},
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a:b", "mimeType": "x/y", "blob": "AAEC"}},
            {"type": "resource", "resource": {"uri": "a:c", "mimeType": "text/plain", "text": "hi"}},
            {"type": "resource_link", "uri": "https://a.example", "name": "page"},
            {"type": "image", "data": "?", "mimeType": "image/png"},
        ]}));
        let [text, rest @ ..] = output.content() else { panic!("{output:?}") };
        assert_eq!(*text, Content::text(marked("git", "hello")));
        assert_eq!(
            rest,
            [
                Content::Image { data: vec![0, 1, 2], mime_type: "image/png".into() },
                Content::Audio { data: vec![0], mime_type: "audio/wav".into() },
                Content::Blob { uri: "a:b".into(), data: vec![0, 1, 2], mime_type: "x/y".into() },
                Content::text(marked("git", "a:c (text/plain)\nhi")),
                Content::Link {
                    uri: "https://a.example".into(),
                    name: "page".into(),
                    mime_type: None
                },
                Content::text("[the MCP server `git` sent an image that is not base64]"),
            ]
        );
    }

    #[test]
    fn structured_content_is_data_and_alone_is_text_too() {
        let both = done(json!({
            "content": [{"type": "text", "text": "3"}],
            "structuredContent": {"sum": 3},
        }));
        assert_eq!(both.data(), Some(&json!({"sum": 3})));
        assert_eq!(both.text(), marked("git", "3"));
        let alone = done(json!({"content": [], "structuredContent": {"sum": 3}}));
        assert_eq!(alone.text(), marked("git", r#"{"sum":3}"#));
    }

    #[test]
    fn a_reported_failure_is_a_failed_execution_with_what_came_with_it() {
        let error = answer(json!({"isError": true, "content": [
            {"type": "text", "text": "no such issue"},
            {"type": "image", "data": "AAEC", "mimeType": "image/png"},
        ]}))
        .expect_err("it failed");
        assert_eq!(error.kind(), toolcrib_tool::ErrorKind::Execution);
        let expected =
            format!("the MCP server `git` reports a failure\n{}", marked("git", "no such issue"));
        assert_eq!(error.message(), expected);
        let partial = error.partial().map(ToolOutput::content).unwrap_or_default();
        assert!(matches!(partial, [Content::Image { .. }]), "{partial:?}");
    }
}
