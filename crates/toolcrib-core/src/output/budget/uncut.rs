//! An output's text before it is cut, and the cuts made from it.

use toolcrib_tool::{Content, ToolError, ToolOutput};

use super::SpillTarget;
use super::shares::fair_shares;
use super::text_of;
use crate::output::spill::{Handle, READ_OUTPUT, SpillFormat, Spilled, byte_index};

/// The note in which tools report how many bytes they did not capture, as command tools do.
const OMITTED_BYTES: &str = "truncated_bytes";

/// Characters that the message and the hints of an error may always have, however small the budget
/// is: without them, the model would not know what to do next.
pub(super) const OWN_CHARS: usize = 1_000;

/// All parts of an output, and where they are stored.
#[derive(Debug)]
pub(crate) struct UncutOutput {
    content: Vec<Content>,
    /// How many of the first parts are the message and the hints of an error.
    own: usize,
    /// Characters of text in each part.
    sizes: Vec<usize>,
    format: SpillFormat,
    omitted_bytes: u64,
    handle: Option<Handle>,
}

impl UncutOutput {
    /// The parts as the model would read them: data without parts reads as its JSON.
    pub(crate) fn of(output: &ToolOutput) -> Self {
        let (content, format) = match (output.content(), output.exact_data()) {
            ([], Some(data)) => (vec![Content::Text(data.to_json())], SpillFormat::Json),
            (parts, _) => (parts.to_vec(), SpillFormat::Text),
        };
        let sizes = content.iter().map(|part| text_of(part).chars().count()).collect();
        let omitted = output.meta().get(OMITTED_BYTES).and_then(serde_json::Value::as_u64);
        Self { content, sizes, format, own: 0, omitted_bytes: omitted.unwrap_or(0), handle: None }
    }

    /// An error's message and hints, and the parts of its partial output.
    pub(crate) fn of_error(error: &ToolError) -> Self {
        let mut whole = Self::of(error.partial().unwrap_or(&ToolOutput::new()));
        let hints = error.hints().iter().cloned();
        let own: Vec<_> =
            [error.message().to_owned()].into_iter().chain(hints).map(Content::Text).collect();
        whole.own = own.len();
        whole.sizes.splice(..0, own.iter().map(|part| text_of(part).chars().count()));
        whole.content.splice(..0, own);
        whole.format = SpillFormat::Text;
        whole
    }

    /// The error that this was created [from](Self::of_error), cut to at most `budget` characters
    /// of text.
    pub(crate) fn cut_error(&self, mut error: ToolError, budget: usize) -> ToolError {
        let mut content = self.cut(budget);
        let parts = content.split_off(self.own);
        let mut own = content.into_iter().map(|part| part.as_text().into_owned());
        // The operator's source comes last and is kept.
        error = error.map_texts(|text| own.next().unwrap_or(text));
        if !parts.is_empty() {
            let partial = error.take_partial().unwrap_or_default();
            error = error.with_partial(partial.replace_content(parts));
        }
        error
    }

    /// Characters of all text parts.
    pub(crate) fn chars(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// Its handle, if it is stored.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.handle
    }

    /// Stores the text, the parts joined by newlines, so that markers can name it. Without a store,
    /// or if it fails, markers only say what is missing.
    pub(crate) async fn spill(&mut self, place: Option<SpillTarget<'_>>) {
        let (Some(place), None) = (place, self.handle) else { return };
        let texts: Vec<&str> = self.texts().map(|(_, text)| text).collect();
        let mut spilled = Spilled::text(texts.join("\n")).with_omitted_bytes(self.omitted_bytes);
        spilled.format = self.format;
        match place.put(spilled).await {
            Ok(handle) => self.handle = Some(handle),
            Err(error) => tracing::warn!(%error, "an output that was cut was not kept"),
        }
    }

    /// The parts cut to `budget` characters of text in fair shares, not counting markers. The
    /// message and the hints of an error come first and may always have [`OWN_CHARS`].
    pub(crate) fn cut(&self, budget: usize) -> Vec<Content> {
        let (own, others) = self.sizes.split_at(self.own);
        let mut shares = fair_shares(own, budget.max(OWN_CHARS));
        let left = budget.saturating_sub(shares.iter().sum());
        shares.extend(fair_shares(others, left));
        let mut content = self.content.clone();
        let mut begins = 0;
        let mut omitted = self.omitted_bytes;
        for (index, text) in self.texts() {
            if shares[index] < self.sizes[index] {
                // Uncaptured bytes are missing in the output itself and are reported once.
                let omitted_bytes = if index < self.own { 0 } else { std::mem::take(&mut omitted) };
                let rest = MarkerDetails { handle: self.handle, begins, omitted_bytes };
                let shorter = cut(text, self.sizes[index], shares[index], rest);
                if let Content::Text(text) | Content::TextFile { text, .. } = &mut content[index] {
                    *text = shorter;
                }
            }
            begins += self.sizes[index] + 1;
        }
        content
    }

    fn texts(&self) -> impl Iterator<Item = (usize, &str)> {
        self.content.iter().enumerate().filter_map(|(index, part)| match part {
            Content::Text(text) | Content::TextFile { text, .. } => Some((index, text.as_str())),
            _ => None,
        })
    }
}

/// Details for a marker.
#[derive(Debug, Clone, Copy, Default)]
struct MarkerDetails {
    handle: Option<Handle>,
    /// Where the part begins in the stored text, in characters.
    begins: usize,
    omitted_bytes: u64,
}

/// Keeps the first 70 % and the last 30 % of `budget` characters, with a marker between them.
/// Characters are code points and are never split.
fn cut(text: &str, total: usize, budget: usize, rest: MarkerDetails) -> String {
    let head = budget * 7 / 10;
    let tail = budget - head;
    let head_text = &text[..byte_index(text, head)];
    let tail_text = &text[byte_index(text, total - tail)..];
    let shown = rest.handle.map_or(String::new(), |handle| {
        let offset = rest.begins + head;
        format!(": {READ_OUTPUT} {{\"handle\":\"{handle}\",\"offset\":{offset}}} shows them")
    });
    let omitted = match rest.omitted_bytes {
        0 => String::new(),
        bytes => format!("; {bytes} bytes more were not captured"),
    };
    format!(
        "{head_text}\n[… {} of {total} characters left out{shown}{omitted} …]\n{tail_text}",
        total - budget
    )
}
