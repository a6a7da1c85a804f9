//! The matching lines of one file, as they are shown.

use std::fmt::Write as _;
use std::io;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};
use toolcrib_tool::ToolError;

/// How much of a line is shown, in characters.
const SHOWN: usize = 300;

/// The regular expression for lines.
pub(super) struct Pattern(RegexMatcher);

impl Pattern {
    pub(super) fn new(pattern: &str, literal: bool, ignore_case: bool) -> Result<Self, ToolError> {
        let matcher = RegexMatcherBuilder::new()
            .line_terminator(Some(b'\n'))
            .case_insensitive(ignore_case)
            .fixed_strings(literal)
            .size_limit(10 << 20)
            .dfa_size_limit(32 << 20)
            .build(pattern);
        matcher.map(Self).map_err(|error| {
            ToolError::invalid_args(format!("`pattern` is not a valid regular expression: {error}"))
                .with_hint("Correct it, or send `literal: true` to search for it as plain text.")
        })
    }

    pub(super) fn search(
        &self,
        searcher: &mut Searcher,
        text: impl io::Read,
        matches: &mut FileMatches<'_>,
    ) -> io::Result<()> {
        searcher.search_reader(&self.0, text, matches)
    }

    /// The byte offset of the first match in a line.
    fn start(&self, line: &[u8]) -> usize {
        self.0.find(line).ok().flatten().map_or(0, |found| found.start())
    }
}

/// A group of adjacent lines.
pub(super) struct Block {
    /// All of them, with their numbers.
    pub(super) text: String,
    /// The matching lines among them.
    pub(super) lines: Vec<(u64, String)>,
}

/// Collects the matches in one file.
pub(super) struct FileMatches<'p> {
    pattern: &'p Pattern,
    /// How many more matching lines may be shown.
    room: usize,
    total: usize,
    blocks: Vec<Block>,
    /// The next line is not adjacent to the last one.
    apart: bool,
    /// Lines before a match, kept until the match is shown.
    before: String,
    binary: bool,
}

impl<'p> FileMatches<'p> {
    pub(super) fn new(pattern: &'p Pattern, room: usize) -> Self {
        let before = String::new();
        Self { pattern, room, total: 0, blocks: Vec::new(), apart: true, before, binary: false }
    }

    /// The number of matching lines, and the blocks to show; `None` if nothing matches or the file is not text.
    pub(super) fn finish(self) -> Option<(usize, Vec<Block>)> {
        (self.total > 0 && !self.binary).then_some((self.total, self.blocks))
    }

    fn block(&mut self) -> &mut Block {
        if self.apart || self.blocks.is_empty() {
            self.apart = false;
            // Separates the blocks of one file.
            let text = if self.blocks.is_empty() { String::new() } else { "  --\n".to_owned() };
            self.blocks.push(Block { text, lines: Vec::new() });
        }
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }
}

impl Sink for FileMatches<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.total += 1;
        if self.room == 0 {
            self.before.clear();
            return Ok(true);
        }
        self.room -= 1;
        let number = found.line_number().unwrap_or(0);
        let text = shown(found.bytes(), self.pattern.start(found.bytes()));
        let before = std::mem::take(&mut self.before);
        let block = self.block();
        block.text.push_str(&before);
        let _ = writeln!(block.text, "  {number}: {text}");
        block.lines.push((number, text));
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        let number = line.line_number().unwrap_or(0);
        let text = format!("  {number}- {}\n", shown(line.bytes(), 0));
        match line.kind() {
            SinkContextKind::Before => self.before.push_str(&text),
            _ if self.blocks.is_empty() || self.apart => {}
            _ => self.block().text.push_str(&text),
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.apart = true;
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }
}

/// A line as it is shown: without its end; a long line is cut around the match.
fn shown(line: &[u8], start: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= SHOWN {
        return String::from_utf8_lossy(line).into_owned();
    }
    let from = start.min(line.len()).saturating_sub(SHOWN / 3);
    let window = &line[from..line.len().min(from + SHOWN * 4)];
    let text = String::from_utf8_lossy(window);
    // The cut may be inside a character.
    let text = text.trim_matches('\u{fffd}');
    let mut part: String = text.chars().take(SHOWN).collect();
    if part.len() < text.len() || from + window.len() < line.len() {
        part.push_str(" […]");
    }
    if from > 0 { format!("[…] {part}") } else { part }
}
