//! Diagnostics: what is wrong with a file, where, and how to fix it.

pub(crate) mod codes;
pub(crate) mod findings;
pub(crate) mod fix;
mod meant_value;
pub(crate) mod position;
pub(crate) mod violation;

use std::borrow::Cow;
use std::sync::Arc;

use annotate_snippets::{
    AnnotationKind, Level, Origin, Renderer, Snippet, normalize_untrusted_str,
};
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) use crate::diagnostic::findings::Findings;
use crate::diagnostic::fix::Fix;
use crate::diagnostic::position::{Lines, Span, clamp, first_line, line_column, without_bom};

/// A longer source excerpt is not shown, because a place in it would not be visible.
const EXCERPT_MAX_BYTES: usize = 16 * 1024;

/// The width of the prefix of a note or help text, without the gutter: ` = help: `.
const NOTE_INDENT: usize = 9;

/// The minimum width to which a text is folded.
const NARROWEST: usize = 30;

/// The text with its lines broken at spaces to fit into `width` characters. Long words are not
/// broken.
fn folded(text: &str, width: usize) -> String {
    let width = width.max(NARROWEST);
    let mut folded = String::with_capacity(text.len());
    let mut column = 0_usize;
    for (at, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        let is_first = at == 0;
        if !is_first && (column + 1).saturating_add(length) > width {
            folded.push('\n');
            column = 0;
        } else if !is_first {
            folded.push(' ');
            column += 1;
        }
        column += length;
        folded.push_str(word);
    }
    folded
}

/// The text with hidden places masked. Each character is replaced by one of the same length in
/// bytes, so that spans stay valid.
fn blanked<'t>(text: &'t str, hidden: &[Span]) -> Cow<'t, str> {
    if hidden.is_empty() {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    let mut done = 0;
    for span in hidden {
        let span = clamp(text, span);
        let start = span.start.max(done);
        if span.end <= start {
            continue;
        }
        shown.push_str(&text[done..start]);
        shown.extend(text[start..span.end].chars().map(|letter| match letter.len_utf8() {
            1 if letter.is_ascii_whitespace() => letter,
            1 => '*',
            2 => '\u{b7}',
            3 => '\u{2022}',
            _ => '\u{1f784}',
        }));
        done = span.end;
    }
    shown.push_str(&text[done..]);
    shown.into()
}

/// The end of a message about a value that could be a secret.
pub(crate) const NOT_SHOWN: &str = "the value is not shown";

/// The severity of a [`Diagnostic`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file is not loaded.
    Error,
    /// The file is loaded, but something in it is probably a mistake.
    Warning,
    /// The file is loaded; something could be improved.
    Hint,
}

impl Severity {
    /// The stable name: `error`, `warning` or `hint`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Hint => "hint",
        }
    }
}

/// A problem of a file.
///
/// Spans are byte ranges of the file's text without a byte order mark. If the file could not be
/// read, the span is `0..0`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// The stable code of the kind of problem, for example `unknown-key`.
    pub code: &'static str,
    /// The message, as one clause.
    pub message: String,
    /// The place of the problem.
    pub span: Span,
    /// The label of the underlined place; may be empty.
    pub label: String,
    /// How to fix it.
    pub help: Option<String>,
    /// Related places, with their labels.
    pub secondary: Vec<(Span, String)>,
    /// Related places in other files, with their labels.
    pub related: Vec<(toolcrib_tool::Origin, String)>,
    /// The fix, if it is unambiguous.
    pub fix: Option<Fix>,
    /// How to fix it, without any text from the file or the value.
    pub expected: Option<String>,
    /// The key of the place, if it is known, with `*` for names that are not in the schema.
    pub key: Option<String>,
    /// Places with secret text, which is masked in source excerpts.
    pub hidden: Arc<[Span]>,
    /// Whether the help text contains no text from the file.
    pub(crate) has_own_help: bool,
}

impl Diagnostic {
    pub(crate) fn error(code: &'static str, span: &Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            span: span.clone(),
            label: String::new(),
            help: None,
            secondary: Vec::new(),
            related: Vec::new(),
            fix: None,
            expected: None,
            key: None,
            hidden: Arc::default(),
            has_own_help: false,
        }
    }

    pub(crate) fn warning(code: &'static str, span: &Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    pub(crate) fn hint(code: &'static str, span: &Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Hint, ..Self::error(code, span, message) }
    }

    /// A warning about a file or a place in it, for problems that involve several files.
    pub fn about(code: &'static str, place: Span, message: impl Into<String>) -> Self {
        Self::warning(code, &place, message)
    }

    /// Turns the warning into an error.
    #[must_use]
    pub fn as_error(self) -> Self {
        Self { severity: Severity::Error, ..self }
    }

    /// Turns the warning into a hint.
    #[must_use]
    pub fn as_hint(self) -> Self {
        Self { severity: Severity::Hint, ..self }
    }

    #[must_use]
    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a help text.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a help text without any text from the file, which is shown even if the value is secret.
    #[must_use]
    pub(crate) fn own_help(mut self, help: impl Into<String>) -> Self {
        self.has_own_help = true;
        self.help(help)
    }

    /// Adds a help text without any text from the file.
    #[must_use]
    pub(crate) fn expects(mut self, expected: impl Into<Option<String>>) -> Self {
        self.expected = expected.into();
        self
    }

    /// Adds the key of the place.
    #[must_use]
    pub(crate) fn at_key(mut self, key: String) -> Self {
        self.key = Some(key);
        self
    }

    /// Hides the text of the place.
    #[must_use]
    pub(crate) fn secret(mut self) -> Self {
        self.hidden = Arc::new([self.span.clone()]);
        self
    }

    /// Removes everything from the texts that may come from the file.
    pub(crate) fn conceal(&mut self) {
        let told = self.told();
        self.message = format!("{told}; {NOT_SHOWN}");
        self.help = self.help.take().filter(|_| self.has_own_help);
        self.label.clear();
        self.secondary.clear();
        self.fix = None;
    }

    /// The message without any text from the file.
    fn told(&self) -> String {
        let summary =
            || codes::Code::find(self.code).map(|code| code.summary.trim_end_matches('.'));
        let told = self.expected.as_deref().or_else(summary);
        told.unwrap_or("this cannot be used").to_owned()
    }

    /// The problem in one line for logs and for other people: file, line, column, code, key and
    /// help. It contains no text of the file except a misspelt key.
    pub fn report(&self, file: &str, text: &str) -> String {
        let place = if text.is_empty() {
            file.to_owned()
        } else {
            let (line, column) = self.position(text);
            format!("{file}:{line}:{column}")
        };
        let key = self.key.as_deref().filter(|key| !key.is_empty());
        let key = key.map(|key| format!(" at `{key}`")).unwrap_or_default();
        format!("{place}: {}{key}: {}", self.code, self.told())
    }

    /// Adds a help text if there is one.
    #[must_use]
    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Self {
        if help.is_some() {
            self.help = help;
        }
        self
    }

    #[must_use]
    pub(crate) fn also(mut self, span: &Span, label: impl Into<String>) -> Self {
        self.secondary.push((span.clone(), label.into()));
        self
    }

    /// Adds a related place in another file.
    #[must_use]
    pub fn elsewhere(mut self, place: toolcrib_tool::Origin, what: impl Into<String>) -> Self {
        self.related.push((place, what.into()));
        self
    }

    /// Adds a fix.
    #[must_use]
    pub(crate) fn fix(mut self, fix: impl Into<Option<Fix>>) -> Self {
        self.fix = fix.into();
        self
    }

    /// The line and the column of the place, from 1; columns count characters.
    pub fn position(&self, text: &str) -> (usize, usize) {
        line_column(without_bom(text), self.span.start)
    }

    /// The problem as text in the style of a compiler: message, file, line, column, the source line
    /// with the place underlined, and help. Control characters of the file are escaped.
    ///
    /// `text` is the checked text; `colour` adds terminal colors, which carry no meaning.
    pub fn render(&self, file: &str, text: &str, colour: bool) -> String {
        self.render_within(file, text, colour, usize::MAX)
    }

    /// Like [`render`](Self::render), with the message and the help text folded at spaces to
    /// `width` characters. Source lines are not folded.
    pub fn render_within(&self, file: &str, text: &str, colour: bool, width: usize) -> String {
        let original = without_bom(text);
        let text = &*blanked(original, &self.hidden);
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Hint => Level::INFO.with_name("hint"),
        };
        let file = normalize_untrusted_str(file);
        // The gutter is as wide as the number of the source line.
        let gutter = self.position(text).0.to_string().len();
        let title = format!("{}[{}]: ", self.severity.as_str(), self.code).len();
        let told = |text: &str, indent: usize| {
            folded(&normalize_untrusted_str(text), width.saturating_sub(indent))
        };
        let title = level.primary_title(told(&self.message, title)).id(self.code);
        let mut group = match self.excerpt(text) {
            Some(excerpt) => title.element(excerpt.path(file)),
            None if text.is_empty() => title.element(Origin::path(file)),
            None => {
                let (line, column) = self.position(text);
                title.element(Origin::path(file).line(line).char_column(column))
            }
        };
        for (place, what) in &self.related {
            let note = format!("{what}: {place}");
            group = group.element(Level::NOTE.message(told(&note, gutter + NOTE_INDENT)));
        }
        if self.is_masked(original, text) {
            let note =
                "stars stand for text that could be a secret, such as a value under an unknown key";
            group = group.element(Level::NOTE.message(told(note, gutter + NOTE_INDENT)));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(told(help, gutter + NOTE_INDENT)));
        }
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }

    /// Whether the first line of the place has stars that the message does not explain.
    fn is_masked(&self, original: &str, shown: &str) -> bool {
        let place = first_line(original, &self.span);
        let start = original[..place.start].rfind('\n').map_or(0, |newline| newline + 1);
        let end =
            original[place.end..].find('\n').map_or(original.len(), |newline| place.end + newline);
        original.get(start..end) != shown.get(start..end) && !self.message.ends_with(NOT_SHOWN)
    }

    /// The source around the places, unless it is too long.
    fn excerpt<'t>(
        &'t self,
        text: &'t str,
    ) -> Option<Snippet<'t, annotate_snippets::Annotation<'t>>> {
        if text.is_empty() {
            return None;
        }
        let window = |start: usize, end: usize| {
            let from = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
            let to = text[end..].find('\n').map_or(text.len(), |newline| end + newline);
            from..to
        };
        let place = first_line(text, &self.span);
        let others: Vec<(Span, &str)> = self
            .secondary
            .iter()
            .map(|(span, label)| (first_line(text, span), label.as_str()))
            .collect();
        let start = others.iter().map(|(span, _)| span.start).fold(place.start, usize::min);
        let end = others.iter().map(|(span, _)| span.end).fold(place.end, usize::max);
        let (shown, others) = match window(start, end) {
            all if all.len() <= EXCERPT_MAX_BYTES => (all, others),
            _ => (window(place.start, place.end), Vec::new()),
        };
        if shown.len() > EXCERPT_MAX_BYTES {
            return None;
        }
        // Replace line endings of two characters, because the renderer would draw the first one.
        let source = text[shown.clone()].replace("\r\n", "\n");
        let source = source.strip_suffix('\r').unwrap_or(&source).to_owned();
        let inside = |span: &Span| {
            let at = |place: usize| {
                let before = &text[shown.start..place];
                let before = match before.strip_suffix('\r') {
                    Some(line) if text[place..].starts_with('\n') => line,
                    _ => before,
                };
                let endings = before.matches("\r\n").count();
                (before.len() - endings).min(source.len())
            };
            at(span.start)..at(span.end)
        };
        let mut annotation = AnnotationKind::Primary.span(inside(&place));
        if !self.label.is_empty() {
            annotation = annotation.label(normalize_untrusted_str(&self.label));
        }
        let (first, _) = line_column(text, shown.start);
        let mut excerpt = Snippet::source(source.clone()).line_start(first).annotation(annotation);
        for (span, label) in &others {
            let label: Cow<'_, str> = normalize_untrusted_str(label).into();
            excerpt = excerpt.annotation(AnnotationKind::Context.span(inside(span)).label(label));
        }
        Some(excerpt)
    }

    /// The problem as a JSON object: `file`, `line`, `column`, `end_line`, `end_column`,
    /// `severity`, `code`, `message`, `help`, and if present `related`, a list of places with
    /// labels, and `fix`, a description of the edit. The end is the place after the last character.
    pub fn to_value(&self, file: &str, text: &str) -> Value {
        self.to_value_in(file, &Lines::new(text))
    }

    /// Like [`to_value`](Self::to_value), with the lines of the checked text, for many problems of
    /// one file.
    pub fn to_value_in(&self, file: &str, lines: &Lines<'_>) -> Value {
        let (line, column) = lines.line_column(self.span.start);
        let (end_line, end_column) = lines.line_column(self.span.end);
        let mut value = json!({
            "file": file,
            "line": line,
            "column": column,
            "end_line": end_line,
            "end_column": end_column,
            "severity": self.severity.as_str(),
            "code": self.code,
            "message": self.message,
            "help": self.help,
        });
        if let Some(fix) = &self.fix {
            value["fix"] = fix.what.as_str().into();
        }
        if !self.related.is_empty() {
            value["related"] = self
                .related
                .iter()
                .map(|(place, what)| {
                    let (line, column) = (place.line, place.column);
                    json!({"file": place.file, "line": line, "column": column, "message": what})
                })
                .collect();
        }
        value
    }
}

/// "did you mean …?", if one of the candidates is similar.
pub(crate) fn did_you_mean<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let near = toolcrib_search::near_names(written, candidates);
    near.first().map(|name| format!("did you mean `{name}`?"))
}

/// The suggestion for an unknown key of which several known ones are a part: `timeout` where there are
/// `tool_timeout` and `max_timeout`.
pub(crate) fn several_meant(written: &str, known: &[&str]) -> Option<String> {
    let with: Vec<String> = known
        .iter()
        .filter(|key| key.split('_').any(|word| word == written))
        .map(|key| format!("`{key}`"))
        .collect();
    match with.as_slice() {
        [first, second] => Some(format!("did you mean {first} or {second}?")),
        [first, second, third] => Some(format!("did you mean {first}, {second} or {third}?")),
        _ => None,
    }
}

/// A longer list of keys is shortened to the most similar ones.
const KEYS_SHOWN: usize = 12;

/// How many keys of a longer list are shown.
const NEAREST_SHOWN: usize = 6;

/// Suggestions for an unknown key: the keys that share a word with it, otherwise all, or the most
/// similar ones of a long list.
pub(crate) fn keys_meant(written: &str, known: &[&str]) -> String {
    let words = |key: &str| -> Vec<String> {
        let words = key.split(['_', '-', '.']).filter(|word| word.len() > 3);
        words.map(str::to_ascii_lowercase).collect()
    };
    let own = words(written);
    let short = written.to_ascii_lowercase();
    let begins = |key: &str| short.len() > 2 && key.starts_with(&short);
    let sharing: Vec<String> = known
        .iter()
        .filter(|key| begins(key) || words(key).iter().any(|word| own.contains(word)))
        .map(|key| format!("`{key}`"))
        .collect();
    match sharing.as_slice() {
        [only] => return format!("did you mean {only}?"),
        [first, second] => return format!("did you mean {first} or {second}?"),
        [first, second, third] => return format!("did you mean {first}, {second} or {third}?"),
        _ => {}
    }
    if known.len() <= KEYS_SHOWN {
        return format!("known keys: {}", known.join(", "));
    }
    let pairs = |key: &str| -> Vec<(char, char)> {
        let letters: Vec<char> = key.to_lowercase().chars().collect();
        letters.windows(2).map(|pair| (pair[0], pair[1])).collect()
    };
    let own = pairs(written);
    let distance = |key: &str| {
        let other = pairs(key);
        let common = other.iter().filter(|pair| own.contains(pair)).count();
        (own.len() + other.len()).saturating_sub(2 * common)
    };
    let mut nearest = known.to_vec();
    nearest.sort_by_cached_key(|key| distance(key));
    let rest = known.len() - NEAREST_SHOWN;
    format!("the nearest known keys: {}; {rest} more", nearest[..NEAREST_SHOWN].join(", "))
}

/// The candidate that was probably meant: a similar name, or the only one of which one name
/// abbreviates the other (`ns` and `namespace`, `user` and `username`).
pub(crate) fn meant<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    if let Some(same) = candidates.clone().into_iter().find(|name| *name == written) {
        return Some(same);
    }
    let near = toolcrib_search::near_names(written, candidates.clone());
    if let Some(name) = near.first() {
        return Some(name);
    }
    let mut short = candidates
        .into_iter()
        .filter(|name| abbreviates(name, written) || abbreviates(written, name));
    let only = short.next()?;
    short.next().is_none().then_some(only)
}

/// Whether a name abbreviates a longer one: all its letters occur there in order, and the first
/// letters are equal.
fn abbreviates(short: &str, long: &str) -> bool {
    let (short, long) = (short.to_ascii_lowercase(), long.to_ascii_lowercase());
    if short.len() < 2 || short.len() >= long.len() || short.as_bytes()[0] != long.as_bytes()[0] {
        return false;
    }
    let mut letters = long.chars();
    short.chars().all(|letter| letters.any(|other| other == letter))
}
