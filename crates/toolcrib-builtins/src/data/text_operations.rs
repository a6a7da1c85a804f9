//! The operations of `text_process`.

use std::collections::HashSet;
use std::time::Duration;

use regex::{Regex, RegexBuilder};
use serde_json::json;
use toolcrib_tool::{CallContext, ToolError, ToolOutput};
use unicode_segmentation::UnicodeSegmentation;

use super::bounded::StopCheck;
use super::text_process::{Operation, TextArgs};

/// The number of lines for `head` and `tail` if `n` is not given.
const DEFAULT_LINES: usize = 10;
/// The most matches that `find` lists; the rest are only counted.
const MAX_MATCHES: usize = 1_000;
/// The longest text `replace` may produce, in bytes: a replacement can multiply its input.
const MAX_OUTPUT_BYTES: usize = 4 << 20;
/// The largest compiled regular expression, in bytes. Together with the limit on the text it bounds a single search,
/// which cannot be interrupted, to tens of milliseconds.
const REGEX_BYTES: usize = 256 << 10;
/// The time limit of `find` and `replace`.
const TIME_LIMIT: Duration = Duration::from_secs(5);

pub(super) fn run(args: &TextArgs, cx: &CallContext) -> Result<ToolOutput, ToolError> {
    let text = args.text.as_str();
    let ignore_case = args.ignore_case.unwrap_or(false);
    let n = args.n.unwrap_or(DEFAULT_LINES);
    Ok(match args.operation {
        Operation::Count => count(text),
        Operation::Lines => list("lines", text.lines()),
        Operation::Words => list("words", words(text)),
        Operation::Upper => text.to_uppercase().into(),
        Operation::Lower => text.to_lowercase().into(),
        Operation::Title => title(text).into(),
        Operation::Reverse => text.graphemes(true).rev().collect::<String>().into(),
        Operation::Trim => text.trim().into(),
        Operation::Sort => sort(text, ignore_case).into(),
        Operation::Unique => unique(text, ignore_case).into(),
        Operation::Number => number(text).into(),
        Operation::Find => find(text, &pattern(args)?, &StopCheck::new(cx, TIME_LIMIT))?,
        Operation::Replace => replace(args, &StopCheck::new(cx, TIME_LIMIT))?,
        Operation::Head => join(text.lines().take(n)).into(),
        Operation::Tail => {
            let skipped = text.lines().count().saturating_sub(n);
            join(text.lines().skip(skipped)).into()
        }
    })
}

/// Words are separated by white space, as `wc` counts them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

fn join<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

fn count(text: &str) -> ToolOutput {
    let characters = text.chars().count();
    let graphemes = text.graphemes(true).count();
    let (words, lines, bytes) = (words(text).count(), text.lines().count(), text.len());
    let visible = if graphemes == characters {
        String::new()
    } else {
        format!(" ({graphemes} visible characters)")
    };
    ToolOutput::from(format!(
        "characters: {characters}{visible}\nwords: {words}\nlines: {lines}\nbytes: {bytes}"
    ))
    .with_data(json!({
        "characters": characters,
        "graphemes": graphemes,
        "words": words,
        "lines": lines,
        "bytes": bytes,
    }))
}

fn list<'a>(key: &str, parts: impl Iterator<Item = &'a str>) -> ToolOutput {
    let parts: Vec<_> = parts.collect();
    ToolOutput::from(parts.join("\n")).with_data(json!({key: parts, "count": parts.len()}))
}

/// Puts the first letter of each word in upper case and the others in lower case; an apostrophe does not start a word.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in text.split_word_bounds() {
        let mut letters = part.chars();
        if let Some(first) = letters.next() {
            out.extend(first.to_uppercase());
            out.push_str(&letters.as_str().to_lowercase());
        }
    }
    out
}

fn sort(text: &str, ignore_case: bool) -> String {
    let mut lines: Vec<_> = text.lines().collect();
    if ignore_case {
        lines.sort_by_cached_key(|line| line.to_lowercase());
    } else {
        lines.sort_unstable();
    }
    lines.join("\n")
}

/// Keeps the first of equal lines, in the order of the text.
fn unique(text: &str, ignore_case: bool) -> String {
    let mut seen = HashSet::new();
    let key = |line: &str| if ignore_case { line.to_lowercase() } else { line.to_owned() };
    join(text.lines().filter(|line| seen.insert(key(line))))
}

fn number(text: &str) -> String {
    let width = text.lines().count().to_string().len();
    let lines = text.lines().enumerate();
    let lines: Vec<_> = lines.map(|(at, line)| format!("{:>width$}: {line}", at + 1)).collect();
    lines.join("\n")
}

/// The pattern; the caller has checked that there is one.
fn pattern(args: &TextArgs) -> Result<Regex, ToolError> {
    let pattern = args.pattern.as_deref().unwrap_or_default();
    let literal = !args.regex.unwrap_or(false);
    let escaped = literal.then(|| regex::escape(pattern));
    RegexBuilder::new(escaped.as_deref().unwrap_or(pattern))
        .case_insensitive(args.ignore_case.unwrap_or(false))
        .multi_line(true)
        .size_limit(REGEX_BYTES)
        .build()
        .map_err(|error| {
            ToolError::invalid_args(format!("`pattern` is not a regular expression: {error}"))
                .with_hint(
                    "Look-around and back-references are not supported; for plain text \
                            omit `regex`.",
                )
        })
}

fn find(text: &str, pattern: &Regex, watch: &StopCheck) -> Result<ToolOutput, ToolError> {
    let mut places = Vec::new();
    let mut shown = Vec::new();
    let mut total = 0_usize;
    for (at, line) in text.lines().enumerate() {
        let mut matched = false;
        for found in pattern.find_iter(line) {
            // Each match is a separate search, which may read the rest of the line.
            watch.check()?;
            total += 1;
            if places.len() < MAX_MATCHES {
                matched = true;
                let column = line[..found.start()].chars().count() + 1;
                places.push(json!({"line": at + 1, "column": column, "match": found.as_str()}));
            }
        }
        if matched {
            shown.push(format!("{}: {line}", at + 1));
        }
    }
    let note = match total {
        0 => "no match".to_owned(),
        1 => "1 match".to_owned(),
        total if total > MAX_MATCHES => format!("{total} matches, the first {MAX_MATCHES} shown"),
        total => format!("{total} matches"),
    };
    shown.insert(0, note);
    Ok(ToolOutput::from(shown.join("\n")).with_data(json!({"count": total, "matches": places})))
}

fn replace(args: &TextArgs, watch: &StopCheck) -> Result<ToolOutput, ToolError> {
    let pattern = pattern(args)?;
    let replacement = args.replacement.as_deref().unwrap_or_default();
    let expands = args.regex.unwrap_or(false);
    let mut out = String::with_capacity(args.text.len());
    let (mut last, mut total) = (0, 0_usize);
    for captures in pattern.captures_iter(&args.text) {
        watch.check()?;
        total += 1;
        let whole = captures.get_match();
        out.push_str(&args.text[last..whole.start()]);
        if expands {
            captures.expand(replacement, &mut out);
        } else {
            out.push_str(replacement);
        }
        last = whole.end();
        if out.len() > MAX_OUTPUT_BYTES {
            return Err(ToolError::execution(format!(
                "the new text would have more than {MAX_OUTPUT_BYTES} bytes"
            )));
        }
    }
    out.push_str(&args.text[last..]);
    Ok(ToolOutput::from(out).with_meta("replacements", total))
}
