//! One part of a result as JSON, in events and where results are kept, and back again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use toolcrib_tool::{Content, Link};

/// The part as an object with a `type`; bytes are base64, absent members are left out.
pub fn to_value(part: &Content) -> Value {
    match part {
        Content::Image { data, mime_type } => {
            json!({ "type": "image", "data": BASE64.encode(data), "mime_type": mime_type })
        }
        Content::Audio { data, mime_type } => {
            json!({ "type": "audio", "data": BASE64.encode(data), "mime_type": mime_type })
        }
        Content::Link(link) => {
            let mut members = link.to_members();
            members.insert("type".to_owned(), "link".into());
            Value::Object(members)
        }
        Content::TextFile { uri, text, mime_type } => {
            let mut file = json!({ "type": "text_file", "uri": uri, "text": text });
            if let Some(mime_type) = mime_type {
                file["mime_type"] = mime_type.as_str().into();
            }
            file
        }
        Content::Blob { uri, data, mime_type } => json!({
            "type": "blob", "uri": uri, "data": BASE64.encode(data), "mime_type": mime_type,
        }),
        // A part this version does not know has a transcript at least.
        other => json!({ "type": "text", "text": other.as_text() }),
    }
}

/// What [`to_value`] was given. `None` for anything else.
pub(crate) fn from_value(value: &Value) -> Option<Content> {
    let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
    let bytes = || BASE64.decode(value.get("data")?.as_str()?).ok();
    Some(match value.get("type")?.as_str()? {
        "text" => Content::Text(text("text")?),
        "image" => Content::Image { data: bytes()?, mime_type: text("mime_type")? },
        "audio" => Content::Audio { data: bytes()?, mime_type: text("mime_type")? },
        "link" => {
            let mut link = Link::new(text("uri")?, text("name")?);
            link.title = text("title");
            link.description = text("description");
            link.mime_type = text("mime_type");
            link.size = value.get("size").and_then(Value::as_u64);
            link.into()
        }
        "text_file" => Content::TextFile {
            uri: text("uri")?,
            text: text("text")?,
            mime_type: text("mime_type"),
        },
        "blob" => {
            Content::Blob { uri: text("uri")?, data: bytes()?, mime_type: text("mime_type")? }
        }
        _ => return None,
    })
}
