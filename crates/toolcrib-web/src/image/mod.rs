//! `image_generate`: a picture from a description, made by the operator's images endpoint.

mod endpoint;
mod events;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolcrib_macros::tool;
use toolcrib_tool::{CallContext, Content, StatusUpdate, ToolError, ToolOutput};

use crate::service::{Web, lent};

/// The shape of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
enum ImageSize {
    #[serde(rename = "auto")]
    Auto,
    #[serde(rename = "1024x1024")]
    Square,
    #[serde(rename = "1536x1024")]
    Landscape,
    #[serde(rename = "1024x1536")]
    Portrait,
}

/// How carefully a picture is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ImageQuality {
    Auto,
    Low,
    Medium,
    High,
}

#[derive(Deserialize, JsonSchema)]
struct ImageGenerateArgs {
    /// What the picture shows: subject, style, colours, and any words in it, in quotes.
    #[schemars(length(min = 1, max = 32_000))]
    prompt: String,
    /// The shape in pixels: square, landscape or portrait. Default: the model's choice.
    size: Option<ImageSize>,
    /// Better pictures take longer and cost more. Default: the model's choice.
    quality: Option<ImageQuality>,
    /// What is behind the subject.
    background: Option<ImageBackground>,
}

/// What is behind the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ImageBackground {
    Auto,
    Transparent,
    Opaque,
}

/// Make one picture from a description. The user sees it; do not describe it again or invent a link to it. It takes up to two minutes
/// and costs money, so call it once for each picture that the user wants.
#[tool(
    category = "image",
    tags("image", "picture", "draw", "paint", "illustration", "photo"),
    destructive = false,
    timeout = "5m",
    examples(
        r#"{"prompt": "A watercolour of a lighthouse in a storm"}"#,
        r#"{"prompt": "A flat icon of a folder", "size": "1024x1024", "background": "transparent"}"#,
        r#"{"prompt": "A wide photo of the Alps at dawn", "size": "1536x1024", "quality": "high"}"#
    )
)]
async fn image_generate(
    args: ImageGenerateArgs,
    #[service] web: Option<Arc<Web>>,
    cx: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let web = lent(web)?;
    let settings = web.settings.images.as_ref().ok_or_else(|| {
        ToolError::unavailable("no model for pictures is configured")
            .with_hint("Tell the user that the operator has to set `images`.")
    })?;
    if args.prompt.trim().is_empty() {
        return Err(ToolError::invalid_args("the prompt is empty")
            .with_hint("Describe what the picture shows."));
    }
    let mut request = json!({"model": settings.model, "prompt": args.prompt, "n": 1});
    let mut option = |name: &str, value: Value| {
        if !value.is_null() {
            request[name] = value;
        }
    };
    option("size", json!(args.size));
    option("quality", json!(args.quality));
    option("background", json!(args.background));
    cx.status(StatusUpdate::doing().with_tip(format!("making a picture with {}", settings.model)));
    let made = endpoint::make(&web, settings, request, cx).await?;
    let mut data = json!({
        "model": settings.model,
        "mime_type": made.mime_type,
        "bytes": made.data.len(),
    });
    let mut text = format!("A picture ({}, {} bytes) was made.", made.mime_type, made.data.len());
    if let Some(prompt) = made.revised_prompt {
        text.push_str(" The model was asked for: ");
        text.push_str(&prompt);
        data["revised_prompt"] = prompt.into();
    }
    if let Some(usage) = made.usage {
        data["usage"] = usage;
    }
    let picture = Content::Image { data: made.data, mime_type: made.mime_type.to_owned() };
    Ok(ToolOutput::new().with_content(text).with_content(picture).with_data(data))
}
