//! Turns an HTTP response into a result, or into a failure that contains it.

use serde_json::Value;
use toolcrib_manifest::declaration::{HttpSpec, Keep, OutputFormat, OutputSpec, UrlOrigin};
use toolcrib_net::Response;
use toolcrib_sandbox::Captured;
use toolcrib_tool::{Annotations, ByteMasks, Content, Data, ToolError, ToolOutput, visible};

use super::failure::{self, answering, phrase};
use crate::output::masked_json::from_slice;
use crate::output::redact_patterns::Redaction;
use crate::output::streams;
use crate::output::streams::{lines, masked};

/// How many bytes of an unreadable response a failure shows.
const EXCERPT: usize = 2_000;

/// What is masked in a response.
pub(super) struct ResponseMasking<'a> {
    pub(super) redaction: &'a Redaction,
    pub(super) masks: Option<ByteMasks>,
}

impl ResponseMasking<'_> {
    /// The text without secrets.
    fn masked(&self, text: &str) -> String {
        String::from_utf8_lossy(&masked(text.as_bytes(), self.masks.as_ref())).into_owned()
    }

    /// The text without secrets and without matches of the declaration's patterns.
    fn text(&self, text: &[u8]) -> String {
        let text = masked(text, self.masks.as_ref());
        self.redaction.text(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Reads a response with the settings of its declaration.
struct ResponseReader<'a> {
    response: &'a Response,
    spec: &'a HttpSpec,
    output: &'a OutputSpec,
    hidden: &'a ResponseMasking<'a>,
    media_type: String,
}

/// Turns a response into the call's outcome.
pub(super) fn outcome(
    response: &Response,
    spec: &HttpSpec,
    output: &OutputSpec,
    hidden: &ResponseMasking<'_>,
    annotations: Annotations,
) -> Result<ToolOutput, ToolError> {
    let media_type = response.media_type().unwrap_or_default();
    let answer = ResponseReader { response, spec, output, hidden, media_type };
    let code = response.status.as_u16();
    let expected = match spec.ok_status.as_slice() {
        [] => response.status.is_success(),
        statuses => statuses.contains(&code),
    };
    if !expected {
        let failure = failure::status(response, spec, annotations);
        return Err(failure.with_partial(answer.excerpt(spec.output_bytes)));
    }
    let result = if spec.select.is_some() || output.format == OutputFormat::Json {
        answer.json()
    } else if output.format == OutputFormat::Auto {
        answer.by_content_type()
    } else {
        Ok(answer.text_or_lines(&answer.text()))
    };
    result.map(|output| answer.with_facts(output))
}

impl ResponseReader<'_> {
    /// Interprets the body by its content type.
    fn by_content_type(&self) -> Result<ToolOutput, ToolError> {
        let (family, kind) = self.media_type.split_once('/').unwrap_or_default();
        let body = &self.response.body;
        let json = self.media_type == "application/json" || kind.ends_with("+json");
        if json && !body.is_empty() {
            return self.json();
        }
        if ["image", "audio"].contains(&family) && kind != "svg+xml" && !body.is_empty() {
            self.check_size(body.len(), &self.media_type)?;
            let (data, mime_type) = (body.clone(), self.media_type.clone());
            let part = match family {
                "image" => Content::Image { data, mime_type },
                _ => Content::Audio { data, mime_type },
            };
            return Ok(part.into());
        }
        if self.is_binary() {
            let what = if self.media_type.is_empty() { "bytes" } else { &self.media_type };
            return Err(self
                .unreadable(&format!("answered {} bytes of {what}, which is not text", body.len()))
                .with_hint("This tool cannot show it: tell the user."));
        }
        Ok(self.text_or_lines(&self.text()))
    }

    /// Whether the body would be unreadable as text: its content type is not textual, and it is not UTF-8 or contains
    /// NUL.
    fn is_binary(&self) -> bool {
        let said = self.media_type.starts_with("text/");
        let body = &self.response.body;
        !said && (std::str::from_utf8(body).is_err() || body.contains(&0))
    }

    /// JSON, or the selected part of it.
    fn json(&self) -> Result<ToolOutput, ToolError> {
        let body = &self.response.body;
        if body.is_empty() {
            let status = phrase(self.response.status);
            return Err(self.unreadable(&format!("answered {status} without the expected JSON")));
        }
        let whole = from_slice(body)
            .map_err(|error| self.unreadable(&format!("answered with invalid JSON: {error}")))?;
        let selected = match &self.spec.select {
            None => whole,
            Some(pointer) => match whole.protected().pointer(pointer) {
                Some(part) => Data::from_protected(part.clone()),
                None => {
                    return Err(self
                        .unreadable(&format!("answered JSON with nothing at `{pointer}`"))
                        .with_hint("The service answers in another form than the tool expects: tell the user."));
                }
            },
        };
        let data = self.hidden.redaction.data(selected);
        let text = match data.value() {
            Value::String(text) => text.clone(),
            _ => data.to_json(),
        };
        if matches!(self.output.format, OutputFormat::Text | OutputFormat::Lines) {
            return Ok(self.text_or_lines(&text));
        }
        self.check_size(text.len(), "JSON")?;
        let masked_text = self.hidden.masked(&text);
        let shown = visible(&masked_text);
        let mut output = ToolOutput::new();
        // Shows data as its JSON, unless the tool has its own text for it.
        if data.value().is_string() || shown != masked_text {
            output = output.with_content(shown.into_owned());
        }
        Ok(output.with_exact_data(data))
    }

    /// Text, or its lines. If the text is empty, the status is shown.
    fn text_or_lines(&self, text: &str) -> ToolOutput {
        if text.is_empty() && self.output.format != OutputFormat::Lines {
            return phrase(self.response.status).into();
        }
        let none = Redaction::default();
        let text = masked(text.as_bytes(), self.hidden.masks.as_ref()).into_owned();
        let captured = cut(text, self.spec.output_bytes, self.output.keep);
        let mut output = ToolOutput::from(visible(&captured.text()).into_owned());
        if self.output.format == OutputFormat::Lines {
            output = output.with_data(lines(&captured, &none));
        }
        if captured.is_truncated() {
            output = output.with_meta("truncated_bytes", captured.omitted());
        }
        output
    }

    /// The body as masked text. It is masked before it is cut, so that no part of a secret remains.
    fn text(&self) -> String {
        let body = &self.response.body;
        let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        self.hidden.text(text)
    }

    /// A failure that names the host and shows the beginning of the response.
    fn unreadable(&self, problem: &str) -> ToolError {
        let server = answering(self.response, self.spec);
        ToolError::execution(format!("{server} {problem}")).with_partial(self.excerpt(EXCERPT))
    }

    /// The beginning of the response that may be shown, with metadata.
    fn excerpt(&self, bytes: usize) -> ToolOutput {
        let shown = if self.is_binary() { String::new() } else { self.text() };
        let captured = cut(shown.into_bytes(), bytes.min(self.spec.output_bytes), Keep::Head);
        let text = visible(&captured.text()).into_owned();
        let output = if text.is_empty() { ToolOutput::new() } else { text.into() };
        self.with_facts(output)
    }

    fn check_size(&self, bytes: usize, what: &str) -> Result<(), ToolError> {
        let limit = self.spec.output_bytes;
        if bytes <= limit {
            return Ok(());
        }
        Err(self
            .unreadable(&format!(
                "answered {bytes} bytes of {what}, more than the limit of {limit}"
            ))
            .with_hint("Ask for less."))
    }

    /// Adds metadata for programs and operators.
    fn with_facts(&self, output: ToolOutput) -> ToolOutput {
        let mut output = output
            .with_meta("status", self.response.status.as_u16())
            .with_meta("body_bytes", self.response.body.len());
        if !self.media_type.is_empty() {
            output = output.with_meta("content_type", self.media_type.as_str());
        }
        if self.response.redirects > 0 {
            output = output.with_meta("redirects", self.response.redirects);
            if matches!(self.spec.url.origin, UrlOrigin::Literal(_)) {
                output = output.with_meta("answered_by", self.response.target.origin());
            }
        }
        output
    }
}

/// Keeps the beginning and end of a text.
fn cut(mut text: Vec<u8>, bytes: usize, keep: Keep) -> Captured {
    let total = text.len() as u64;
    if text.len() <= bytes {
        return Captured { head: text, tail: Vec::new(), total };
    }
    let capture = streams::capture(bytes, keep);
    let tail = text.split_off(text.len() - capture.tail);
    text.truncate(capture.head);
    Captured { head: text, tail, total }
}
