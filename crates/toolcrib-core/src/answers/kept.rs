//! An answer that is kept, and what a hit reads of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use toolcrib_tool::{Content, ToolOutput};

use super::key::Key;
use super::size;
use super::spelling::{Question, Spelt};
use crate::prefetch::prefetch;

/// An answer with the call it answers. Copies of its own of text and output, made one after the
/// other: with thousands of answers a hit waits for the memory it reads, and what was allocated
/// together lies together.
#[derive(Debug)]
// In this order, because a hit reads from the top.
#[repr(C)]
pub(crate) struct Kept {
    said: Said,
    /// `None`: later than the clock can say.
    expires: Option<Instant>,
    /// Whether it was asked for since it was last to go.
    is_used: AtomicBool,
    output: ToolOutput,
    size: usize,
}

/// The call, and its text if that is to be known again.
#[derive(Debug)]
enum Said {
    Spelt(Spelt),
    Key(Key),
}

impl Kept {
    /// The answer to a question, with its text if it has one.
    pub(super) fn new(question: &Question, output: &ToolOutput, expires: Option<Instant>) -> Self {
        let (said, text) = match question.spelt() {
            Some(spelt) => (Said::Spelt(spelt.clone()), spelt.size()),
            None => (Said::Key(question.key().clone()), 0),
        };
        let size = question.key().size() + size::of(output) + text;
        Self { said, expires, is_used: AtomicBool::new(false), output: output.clone(), size }
    }

    /// The answer without its text.
    pub(super) fn without_text(mut self) -> Self {
        if let Said::Spelt(spelt) = &self.said {
            self.size -= spelt.size();
            self.said = Said::Key(spelt.key().clone());
        }
        self
    }

    /// Which call it answers.
    pub(crate) fn key(&self) -> &Key {
        match &self.said {
            Said::Spelt(spelt) => spelt.key(),
            Said::Key(key) => key,
        }
    }

    /// Its text, if it is known by that too.
    pub(crate) fn spelt(&self) -> Option<&Spelt> {
        match &self.said {
            Said::Spelt(spelt) => Some(spelt),
            Said::Key(_) => None,
        }
    }

    /// The answer.
    pub(crate) fn output(&self) -> &ToolOutput {
        &self.output
    }

    /// The bytes of key, output and text.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Whether its time is not over.
    pub(super) fn is_current(&self, now: Instant) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    /// It was asked for.
    pub(super) fn mark_used(&self) {
        // Looked at first: a line that need not change can stay with all processors.
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was asked for since this was last asked.
    pub(super) fn take_used(&self) -> bool {
        self.is_used.swap(false, Ordering::Relaxed)
    }

    /// Asks for what a copy of the output will read.
    #[inline]
    pub(super) fn prefetch(&self) {
        if let Some(Content::Text(text)) = self.output.content().first()
            && let Some(first) = text.as_bytes().first()
        {
            prefetch(first);
        }
    }
}
