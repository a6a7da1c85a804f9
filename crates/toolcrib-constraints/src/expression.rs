//! A parsed expression with the positions of its parts.

use std::ops::Range;

use cel::common::ast::{IdedExpr, SourceInfo};
use cel::parser::Parser;

/// The longest rule, in bytes.
pub const RULE_MAX_BYTES: usize = 2_000;

/// The deepest nesting of an expression: parsing and evaluation are recursive.
pub(crate) const DEPTH_MAX: usize = 40;

/// An error in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// The position, in bytes of the rule's text.
    pub range: Range<usize>,
    /// The problem, as one clause.
    pub message: String,
    /// The correction, if it is known.
    pub help: Option<String>,
}

impl std::fmt::Display for RuleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        self.help.iter().try_for_each(|help| write!(f, ": {help}"))
    }
}

impl std::error::Error for RuleError {}

/// The parsed text of a rule.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    pub(crate) root: IdedExpr,
    source: SourceInfo,
}

impl Expression {
    /// Parses a text, or returns all its errors in order.
    pub(crate) fn parse(text: &str) -> Result<Self, Vec<RuleError>> {
        let whole = 0..text.len();
        let one = |message: String, help: &str| {
            let help = (!help.is_empty()).then(|| help.to_owned());
            vec![RuleError { range: whole.clone(), message, help }]
        };
        if text.trim().is_empty() {
            return Err(one(
                "the rule is empty".to_owned(),
                "write one such as `args.lines <= 500`",
            ));
        }
        if text.len() > RULE_MAX_BYTES {
            let message = format!("the rule has more than {RULE_MAX_BYTES} bytes");
            return Err(one(message, "split it into several rules"));
        }
        if let Some(at) = too_deep(text) {
            let message = format!("brackets nest more than {DEPTH_MAX} deep here");
            let help = Some("split it into several rules".to_owned());
            return Err(vec![RuleError { range: at..at + 1, message, help }]);
        }
        let parsed = Parser::new().max_recursion_depth(96).parse_with_source_info(text);
        let (root, source) = parsed.map_err(|errors| {
            errors
                .errors
                .iter()
                .map(|error| syntax(text, error.pos, &error.msg))
                .collect::<Vec<_>>()
        })?;
        Ok(Self { text: text.to_owned(), root, source })
    }

    /// The position of a piece of a node: the first occurrence from the node's own position on. For an empty piece it
    /// is the node's own character; if the position is unknown, the whole rule.
    pub(crate) fn range(&self, id: u64, piece: &str) -> Range<usize> {
        let place = self.source.offset_for(id).and_then(|(start, _)| usize::try_from(start).ok());
        // Positions are in characters.
        let Some((start, character)) = place.and_then(|place| self.text.char_indices().nth(place))
        else {
            return 0..self.text.len();
        };
        match self.text[start..].find(piece).map(|found| start + found) {
            Some(at) if !piece.is_empty() => at..at + piece.len(),
            _ => start..start + character.len_utf8(),
        }
    }
}

/// The first bracket that nests too deeply: found before a recursive parser sees the text. Brackets in strings count,
/// too.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.bytes().position(|byte| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEPTH_MAX
    })
}

/// A parser's error, without its list of all alternatives.
fn syntax(text: &str, (line, column): (isize, isize), said: &str) -> RuleError {
    let said = said.split(" expecting ").next().unwrap_or(said);
    let said = said.trim_start_matches("Syntax error: ");
    let message = if said.contains("<EOF>") {
        "the rule ends too early".to_owned()
    } else if let Some(input) = said.strip_prefix("extraneous input ") {
        format!("unexpected {input} here")
    } else {
        format!("the rule is not a CEL expression: {}", said.trim())
    };
    let number = |place: isize| usize::try_from(place - 1).unwrap_or(0);
    let before: usize = text.split_inclusive('\n').take(number(line)).map(str::len).sum();
    let within = text.get(before..).unwrap_or_default();
    let at = within.char_indices().nth(number(column)).map_or(within.len(), |(at, _)| at);
    let start = before + at;
    let end = text
        .get(start..)
        .and_then(|rest| rest.chars().next())
        .map_or(start, |first| start + first.len_utf8());
    RuleError { range: start..end, message, help: None }
}
