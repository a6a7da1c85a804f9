//! The conversation of a run as its model sees it, and how much of the model's context it takes.

use std::collections::HashSet;
use std::time::Duration;

use toolcrib_tool::{CallId, Content, KEPT_OUTPUT, ToolError, ToolOutput, ToolResult};
use toolcrib_wire::model::{Input, Item, Usage, View};

use crate::entry::{ShortenedOutput, Summary};

/// Bytes of text for each token, as an estimate.
const BYTES_PER_TOKEN: u64 = 4;
/// What a picture, sound or file counts as, in tokens. Its bytes say nothing.
const MEDIA_TOKENS: u64 = 1_600;

/// The conversation of a run, in groups of what was said together.
#[derive(Debug, Clone, Default)]
pub(super) struct Context {
    groups: Vec<Vec<Item>>,
    /// The size of each group in bytes.
    sizes: Vec<u64>,
    /// The tokens up to a group, as the provider counted them or as a compaction has left them.
    counted: Option<Counted>,
    /// The group with the summary of what was left out.
    summary: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Counted {
    tokens: u64,
    groups: usize,
}

impl Context {
    pub(super) fn groups(&self) -> &[Vec<Item>] {
        &self.groups
    }

    pub(super) fn push(&mut self, group: Vec<Item>) {
        self.sizes.push(group.iter().map(bytes_of).sum());
        self.groups.push(group);
    }

    /// Takes over what the provider counted for everything so far.
    pub(super) fn count(&mut self, usage: &Usage) {
        self.counted = Some(Counted { tokens: usage.total(), groups: self.groups.len() });
    }

    /// Its size in tokens: what the provider counted last, and an estimate of what came after. `head` is the bytes of
    /// instructions and tools.
    pub(super) fn tokens(&self, head: u64) -> u64 {
        let (counted, from) = match self.counted {
            Some(counted) => (counted.tokens, counted.groups),
            None => (Self::tokens_in(head), 0),
        };
        let after: u64 = self.sizes.iter().skip(from).sum();
        counted + Self::tokens_in(after)
    }

    /// An estimate of the tokens of a text of this many bytes.
    pub(super) fn tokens_in(bytes: u64) -> u64 {
        bytes / BYTES_PER_TOKEN
    }

    /// An estimate of its size in bytes, whatever the provider has counted.
    pub(super) fn bytes(&self) -> u64 {
        self.sizes.iter().sum()
    }

    pub(super) fn group_bytes(&self, group: usize) -> u64 {
        self.sizes.get(group).copied().unwrap_or(0)
    }

    pub(super) fn summary(&self) -> Option<usize> {
        self.summary
    }

    /// The first group of the last `rounds` answers of the model; 0 if there are fewer.
    pub(super) fn start_of_rounds(&self, rounds: usize) -> usize {
        let is_answer = |group: &Vec<Item>| matches!(group.first(), Some(Item::Model(_)));
        let answers = self.groups.iter().enumerate().filter(|(_, group)| is_answer(group));
        let answers: Vec<usize> = answers.map(|(index, _)| index).collect();
        answers.len().checked_sub(rounds).and_then(|first| answers.get(first)).copied().unwrap_or(0)
    }

    /// Replaces outputs by shorter texts.
    pub(super) fn shorten(&mut self, outputs: Vec<ShortenedOutput>) -> Result<(), &'static str> {
        for ShortenedOutput { group, call, handle, text } in outputs {
            let items = self.groups.get_mut(group).ok_or("it shortens an unknown group")?;
            let is_it = |item: &&mut Item| matches!(item, Item::Result(result) if *result.call_id() == call);
            let item = items.iter_mut().find(is_it);
            let Some(Item::Result(result)) = item else {
                return Err("it shortens an unknown output");
            };
            **result = shortened(result, &handle, text);
            self.sizes[group] = items.iter().map(bytes_of).sum();
        }
        Ok(())
    }

    /// Replaces the pictures, sounds and files of messages by lines that name them.
    pub(super) fn remove_media(&mut self, groups: &[usize]) -> Result<(), &'static str> {
        for &group in groups {
            let items =
                self.groups.get_mut(group).ok_or("it removes media from an unknown group")?;
            for item in items.iter_mut() {
                if let Item::Input(input) = item {
                    *item = Item::Input(without_media(input));
                }
            }
            self.sizes[group] = items.iter().map(bytes_of).sum();
        }
        Ok(())
    }

    /// Replaces groups by a summary, which takes the place of the last one.
    pub(super) fn summarize(&mut self, summary: Summary) -> Result<(), &'static str> {
        let Summary { left_out, item } = summary;
        if !matches!(item, Item::Input(_)) {
            return Err("the summary has to be a message");
        }
        let last = *left_out.last().ok_or("the summary replaces nothing")?;
        let is_ascending = left_out.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_ascending || last >= self.groups.len() {
            return Err("the summary replaces unknown groups");
        }
        let gone: HashSet<usize> = left_out.into_iter().collect();
        let groups = std::mem::take(&mut self.groups);
        self.sizes.clear();
        self.summary = None;
        let mut item = Some(item);
        for (index, group) in groups.into_iter().enumerate() {
            if !gone.contains(&index) {
                self.push(group);
            } else if index == last {
                self.summary = Some(self.groups.len());
                self.push(item.take().into_iter().collect());
            }
        }
        if self.is_in_pairs() { Ok(()) } else { Err("it separates a call from its result") }
    }

    /// Notes its size after it was shortened.
    pub(super) fn recount(&mut self, tokens: u64) {
        self.counted = Some(Counted { tokens, groups: self.groups.len() });
    }

    /// Whether every call has its result and every result its call.
    pub(super) fn is_in_pairs(&self) -> bool {
        let mut open: HashSet<&CallId> = HashSet::new();
        for item in self.groups.iter().flatten() {
            let fits = match item {
                Item::Result(result) => open.remove(result.call_id()),
                Item::Model(item) => match item.view() {
                    View::Call(call) => open.insert(&call.id),
                    _ => true,
                },
                _ => open.is_empty(),
            };
            if !fits {
                return false;
            }
        }
        open.is_empty()
    }
}

/// The size of an item in bytes, with a fixed one for media.
fn bytes_of(item: &Item) -> u64 {
    let media = |parts: &[Content]| {
        parts.iter().filter(|part| is_media(part)).count() as u64 * MEDIA_TOKENS * BYTES_PER_TOKEN
    };
    match item {
        Item::Input(input) => {
            let texts = input.content.iter().map(|part| part.as_text().len() as u64);
            texts.sum::<u64>() + media(&input.content)
        }
        Item::Model(item) => item.raw().len() as u64,
        Item::Result(result) => {
            let parts = result.output().map(ToolOutput::content).unwrap_or_default();
            result.text().len() as u64 + media(parts)
        }
        _ => 0,
    }
}

pub(super) fn is_media(part: &Content) -> bool {
    matches!(part, Content::Image { .. } | Content::Audio { .. } | Content::Blob { .. })
}

fn without_media(input: &Input) -> Input {
    let line = |part: &Content| {
        if is_media(part) { Content::Text(part.as_text().into_owned()) } else { part.clone() }
    };
    Input { role: input.role, content: input.content.iter().map(line).collect() }
}

/// A result with a shorter text, which names the handle of the whole one.
fn shortened(result: &ToolResult, handle: &str, text: String) -> ToolResult {
    let (id, tool, duration) = (result.call_id().clone(), result.tool(), result.duration());
    let shorter = match result.error() {
        None => {
            let output = ToolOutput::from(text).with_meta(KEPT_OUTPUT, handle);
            ToolResult::success(id, tool, output, duration)
        }
        Some(error) => {
            let error = ToolError::new(error.kind(), text).with_note(KEPT_OUTPUT, handle);
            ToolResult::failure(id, tool, error, duration)
        }
    };
    shorter.with_truncated(true)
}

/// The text of a result without the line that says that it is a failure, which every text of a failure begins with.
pub(super) fn whole_text(result: &ToolResult) -> String {
    let text = result.text();
    let Some(error) = result.error() else { return text.into_owned() };
    let failure = ToolError::new(error.kind(), "");
    let prefix =
        ToolResult::failure(result.call_id().clone(), result.tool(), failure, Duration::ZERO);
    text.strip_prefix(&*prefix.text()).unwrap_or(&text).to_owned()
}
