//! Masking what a call hands out: its output or failure, its status, the parts it streams, and its questions.

use toolcrib_tool::{Ask, Content, Data, StatusUpdate, ToolError, ToolOutput};

use super::Mask;
use crate::suspension::Waiting;

impl Mask {
    /// Masks a call's outcome.
    pub fn outcome(&self, outcome: Result<ToolOutput, ToolError>) -> Result<ToolOutput, ToolError> {
        if self.is_empty() {
            return outcome;
        }
        outcome.map(|output| self.output(output)).map_err(|error| self.error(error))
    }

    /// Masks text parts, the names, addresses and types of other parts, text files, data, and
    /// notes.
    pub fn output(&self, output: ToolOutput) -> ToolOutput {
        if !self.finds_in_output(&output) {
            return output;
        }
        let parts = output.content().iter().map(|part| self.content(part.clone())).collect();
        let mut masked = ToolOutput::new().replace_content(parts);
        if let Some(data) = output.exact_data() {
            let protected = self.value(data.protected().clone());
            masked = masked.with_exact_data(Data::from_protected(protected));
        }
        for (key, note) in self.object(output.meta().clone()) {
            masked = masked.with_meta(key, note);
        }
        masked
    }

    /// Masks one part. Images and audio are not changed. Text is masked as a whole, so a stream of
    /// text parts needs [`stream`](Self::stream).
    pub fn content(&self, part: Content) -> Content {
        if self.is_empty() {
            return part;
        }
        match part {
            Content::Text(text) => Content::Text(self.owned(text)),
            Content::Link(mut link) => {
                link.uri = self.owned(link.uri);
                link.name = self.owned(link.name);
                link.title = link.title.map(|title| self.owned(title));
                link.description = link.description.map(|description| self.owned(description));
                link.mime_type = link.mime_type.map(|mime_type| self.owned(mime_type));
                Content::Link(link)
            }
            Content::TextFile { uri, text, mime_type } => Content::TextFile {
                uri: self.owned(uri),
                text: self.owned(text),
                mime_type: mime_type.map(|mime_type| self.owned(mime_type)),
            },
            Content::Blob { uri, data, mime_type } => {
                let data = match String::from_utf8(data) {
                    Ok(text) => self.owned(text).into_bytes(),
                    Err(binary) => binary.into_bytes(),
                };
                Content::Blob { uri: self.owned(uri), data, mime_type: self.owned(mime_type) }
            }
            Content::Image { data, mime_type } => {
                Content::Image { data, mime_type: self.owned(mime_type) }
            }
            Content::Audio { data, mime_type } => {
                Content::Audio { data, mime_type: self.owned(mime_type) }
            }
            other => other,
        }
    }

    /// Masks an error: message, hints, partial output, and the operator's source.
    pub fn error(&self, error: ToolError) -> ToolError {
        if !self.finds_in_error(&error) {
            return error;
        }
        error.map_texts(|text| self.owned(text)).map_partial(|partial| self.output(partial))
    }

    /// Masks a status update.
    pub fn status(&self, mut update: StatusUpdate) -> StatusUpdate {
        if self.is_empty() {
            return update;
        }
        update.tip = update.tip.map(|tip| self.owned(tip));
        update.error = update.error.map(|error| self.owned(error));
        update.result = update.result.map(|result| self.value(result));
        update.params = self.object(update.params);
        update.metadata = self.object(update.metadata);
        update
    }

    /// Masks a question: everything that whoever answers is shown. What the tool remembers is shown to nobody.
    pub(crate) fn waiting(&self, mut waiting: Waiting) -> Waiting {
        if self.is_empty() {
            return waiting;
        }
        if let Waiting::Input { message, schema, parts, .. } = &mut waiting {
            let text = |text: &mut String| *text = self.owned(std::mem::take(text));
            let value = |value: &mut serde_json::Value| *value = self.value(value.take());
            text(message);
            value(schema);
            for part in parts {
                match &mut part.ask {
                    Ask::Form { message, schema } => {
                        text(message);
                        value(schema);
                    }
                    Ask::Sample { prompt, .. } => text(prompt),
                    _ => {}
                }
            }
        }
        waiting
    }

    fn finds_in_output(&self, output: &ToolOutput) -> bool {
        !self.is_empty()
            && (output.content().iter().any(|part| self.finds_in_content(part))
                || output.exact_data().is_some_and(|data| self.finds_in(data.protected()))
                || output.meta().iter().any(|(key, note)| self.finds(key) || self.finds_in(note)))
    }

    fn finds_in_content(&self, part: &Content) -> bool {
        match part {
            Content::Text(text) => self.finds(text),
            Content::Link(link) => {
                let optional = [&link.title, &link.description, &link.mime_type];
                self.finds(&link.uri)
                    || self.finds(&link.name)
                    || optional.into_iter().flatten().any(|text| self.finds(text))
            }
            Content::TextFile { uri, text, mime_type } => {
                self.finds(uri)
                    || self.finds(text)
                    || mime_type.as_ref().is_some_and(|mime_type| self.finds(mime_type))
            }
            Content::Blob { uri, data, mime_type } => {
                self.finds(uri)
                    || self.finds(mime_type)
                    || std::str::from_utf8(data).is_ok_and(|text| self.finds(text))
            }
            Content::Image { mime_type, .. } | Content::Audio { mime_type, .. } => {
                self.finds(mime_type)
            }
            _ => false,
        }
    }

    fn finds_in_error(&self, error: &ToolError) -> bool {
        !self.is_empty()
            && (self.finds(error.message())
                || error.hints().iter().any(|hint| self.finds(hint))
                || error.partial().is_some_and(|partial| self.finds_in_output(partial))
                || error.source_text().is_some_and(|source| self.finds(&source)))
    }
}
