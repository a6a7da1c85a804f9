//! Reads outputs with several parts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use toolcrib_tool::{Content, Link, ToolOutput};

use super::answer::AnswerError;

/// Reads a list of `input_text`, `input_image` and `input_file` parts.
pub(super) fn parts(list: &[Value], at: &str) -> Result<ToolOutput, AnswerError> {
    let mut output = ToolOutput::new();
    for (index, given) in list.iter().enumerate() {
        output = output.with_content(part(given, &format!("{at}/{index}"))?);
    }
    Ok(output)
}

pub(super) fn part(given: &Value, at: &str) -> Result<Content, AnswerError> {
    let text = |key: &str| given.get(key).and_then(Value::as_str);
    let wrong = |message: &str| AnswerError::new(at, message);
    if text("file_id").is_some() {
        return Err(wrong(
            "files of OpenAI's store cannot be fetched; send the bytes as a data URL instead of \
             `file_id`",
        ));
    }
    match text("type") {
        // Some clients send back the parts that they received.
        Some("input_text" | "output_text") => {
            let text = text("text").ok_or_else(|| wrong("`text` must be a string"))?;
            Ok(Content::text(text))
        }
        Some("input_image") => {
            let url = text("image_url").ok_or_else(|| wrong("`image_url` must be a URL"))?;
            match data(url, at)? {
                Some((data, mime_type)) => Ok(Content::Image { data, mime_type }),
                None => Ok(link(url, "image")),
            }
        }
        Some("input_file") => {
            let name = text("filename").unwrap_or("file");
            let url = text("file_data").or_else(|| text("file_url"));
            let url = url.ok_or_else(|| wrong("`file_data` or `file_url` must be a URL"))?;
            match data(url, at)? {
                Some((data, mime_type)) => {
                    Ok(Content::Blob { uri: name.to_owned(), data, mime_type })
                }
                None => Ok(link(url, name)),
            }
        }
        _ => Err(wrong("`type` must be \"input_text\", \"input_image\" or \"input_file\"")),
    }
}

fn link(uri: &str, name: &str) -> Content {
    Link::new(uri, name).into()
}

/// The bytes and type of a data URL; `None` for a URL that has to be fetched.
fn data(url: &str, at: &str) -> Result<Option<(Vec<u8>, String)>, AnswerError> {
    let Some(rest) = url.strip_prefix("data:") else { return Ok(None) };
    let decoded = rest
        .split_once(";base64,")
        .and_then(|(mime_type, text)| Some((STANDARD.decode(text).ok()?, mime_type.to_owned())));
    match decoded {
        Some(decoded) => Ok(Some(decoded)),
        None => Err(AnswerError::new(at, "the data URL must be `data:TYPE;base64,BYTES`")),
    }
}
