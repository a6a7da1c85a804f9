//! Output: data on standard output, everything else on standard error, colours only on a terminal.

pub(crate) mod columns;
pub(crate) mod parameter;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use toolcrib::manifest::directory::{DirectoryLoad, FileLoad};
use toolcrib::manifest::{Diagnostic, Severity};
use toolcrib::tool::{canonical_json, exact, fully_visible, fully_visible_text};
use tracing::Level;

/// Errors and refused calls.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Headings and names.
pub(crate) const STRONG: Style = Style::new().bold();
/// Less important text.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// Warnings.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Prints to standard output.
pub(crate) fn out(text: impl AsRef<str>) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_ref().as_bytes()).context("writing to standard output")?;
    if !text.as_ref().ends_with('\n') {
        stdout.write_all(b"\n")?;
    }
    stdout.flush().context("writing to standard output")
}

/// Prints text to standard output as it is: more of its last line may follow.
pub(crate) fn out_part(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes()).context("writing to standard output")?;
    stdout.flush().context("writing to standard output")
}

/// Prints a JSON document with stable key order, indented for people.
pub(crate) fn json(value: &serde_json::Value) -> anyhow::Result<()> {
    // Formatted from the canonical text: the key order must not depend on how serde_json was built.
    json_text(&canonical_json(value))
}

/// Prints JSON text in canonical form. Numbers stay exact.
pub(crate) fn json_text(canonical: &str) -> anyhow::Result<()> {
    let canonical: serde_json::Value = serde_json::from_str(&exact::protect(canonical))?;
    out(exact::restore(&serde_json::to_string_pretty(&canonical)?))
}

/// Prints to standard error; a closed standard error is ignored.
pub(crate) fn note(text: impl AsRef<str>) {
    print_at(Level::INFO, text.as_ref());
}

/// Prints a mistake or another reason for a refusal to standard error.
pub(crate) fn mistake(text: impl AsRef<str>) {
    print_at(Level::ERROR, text.as_ref());
}

fn print_at(level: Level, text: &str) {
    let text = text.trim_end();
    if !crate::logging::line(level, text) {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }
}

/// Prints a question to standard error; the answer follows on its last line.
pub(crate) fn ask(question: impl AsRef<str>) {
    let mut stderr = anstream::stderr().lock();
    // If the question cannot be shown, nobody will answer yes.
    let _ = stderr.write_all(question.as_ref().as_bytes()).and_then(|()| stderr.flush());
}

/// Prints why a command could not run.
pub(crate) fn failure(error: &anyhow::Error) {
    let text = format!("{error:#}");
    let lines = text.lines().enumerate();
    // "error: " stands before the first one.
    let lines: Vec<_> =
        lines.map(|(at, line)| fold(line, if at == 0 { 7 } else { 0 }, 2, error_width())).collect();
    mistake(format!("{ERROR}error{ERROR:#}: {}", lines.join("\n")));
}

/// Whether standard error shows colours.
pub(crate) fn colour() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// Prints problems of files to standard error.
pub(crate) fn diagnostics(files: &DirectoryLoad, wanted: impl Fn(&Diagnostic) -> bool) {
    for (file, problem) in files.problems().filter(|(_, problem)| wanted(problem)) {
        mistake(diagnostic(file, problem));
        note("");
    }
}

/// One problem as text, as wide as the terminal if standard error is one.
pub(crate) fn diagnostic(file: &FileLoad, problem: &Diagnostic) -> String {
    let (name, width) = (file.path.to_string_lossy(), error_width());
    problem.render_within(&name, &file.text, colour(), width)
}

/// Reports in one line which file is broken, or how many are.
pub(crate) fn broken_files(files: &DirectoryLoad) {
    let errors = |file: &FileLoad| {
        let all = file.loaded.diagnostics.iter();
        all.filter(|problem| problem.severity == Severity::Error).count()
    };
    let all = files.unreadable.iter().chain(&files.files);
    let broken: Vec<(&FileLoad, usize)> =
        all.map(|file| (file, errors(file))).filter(|(_, errors)| *errors > 0).collect();
    let Some((file, errors)) = broken.first() else { return };
    let first = file.loaded.diagnostics.iter().find(|problem| problem.severity == Severity::Error);
    let Some(first) = first else { return };
    let place = match first.position(&file.text) {
        // The file could not be read at all.
        _ if file.text.is_empty() => String::new(),
        (line, column) => format!(":{line}:{column}"),
    };
    let (path, message) = (file.path.display(), &first.message);
    note(match (broken.len(), errors - 1) {
        (1, 0) => {
            format!("{WARNING}left out{WARNING:#} {path}{place}: {message} (see `toolcrib check`)")
        }
        (1, more) => format!(
            "{WARNING}left out{WARNING:#} {path}{place}: {message}, and {} (see `toolcrib check`)",
            count(more, "more error")
        ),
        (files, _) => format!(
            "{WARNING}left out{WARNING:#} {files} files with errors, the first at {path}{place}: \
             {message} (see `toolcrib check`)"
        ),
    });
}

/// The number of other files in manifest directories that are named.
const NAMED_ASIDE: usize = 5;

/// A line for each manifest directory that contains files which are not manifests and are not used
/// by one.
pub(crate) fn left_aside(files: &DirectoryLoad) -> Vec<String> {
    let line = |(directory, names): (&Path, Vec<String>)| {
        let shown: Vec<_> =
            names.iter().take(NAMED_ASIDE).map(|name| fully_visible(name)).collect();
        let rest = if names.len() > NAMED_ASIDE { ", \u{2026}" } else { "" };
        let entries = if names.len() == 1 { "entry" } else { "entries" };
        format!(
            "{FAINT}{} {entries} of {} left aside: {}{rest}; manifests end in .yaml, .yml or .toml, and \
             folders are not looked into{FAINT:#}",
            names.len(),
            directory.display(),
            shown.join(", ")
        )
    };
    files.left_aside().into_iter().map(line).collect()
}

/// Reports default manifest directories that do not exist.
pub(crate) fn absent(directories: &[&PathBuf]) {
    for dir in directories {
        note(format!(
            "{FAINT}there is no {} here: `toolcrib new NAME` creates it with a first manifest, and a config \
             (`manifests.dirs`) or `--tools-dir` names another place{FAINT:#}",
            dir.display()
        ));
    }
}

/// The width of the terminal, if standard output is one.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    size.map(|(terminal_size::Width(columns), _)| columns.into())
}

/// The width of the terminal, if standard error is one; otherwise lines are not folded.
pub(crate) fn error_width() -> usize {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.map_or(usize::MAX, |(terminal_size::Width(columns), _)| columns.into())
}

/// The maximum line width: the terminal's, else `COLUMNS`, else [`PLAIN_WIDTH`].
pub(crate) fn width() -> usize {
    let said = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    terminal_width().or_else(said).unwrap_or(PLAIN_WIDTH)
}

/// The width of a listing in a file or a pipe.
const PLAIN_WIDTH: usize = 120;

/// The text folded at spaces to fit a terminal, if standard output is one. Further lines start with
/// `indent` spaces; the first is assumed to follow `before` characters.
pub(crate) fn folded(text: &str, before: usize, indent: usize) -> String {
    fold(text, before, indent, terminal_width().unwrap_or(usize::MAX))
}

/// The same for lines on standard error.
pub(crate) fn folded_note(text: &str, indent: usize) -> String {
    fold(text, 0, indent, error_width())
}

fn fold(text: &str, before: usize, indent: usize, width: usize) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut column = before;
    for (at, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if at > 0 && column + 1 + length > width {
            folded.push('\n');
            folded.extend(std::iter::repeat_n(' ', indent));
            column = indent + length;
        } else {
            if at > 0 {
                folded.push(' ');
            }
            column = column.saturating_add(usize::from(at > 0) + length);
        }
        folded.push_str(word);
    }
    folded
}

/// Whether the reader of our output has closed the pipe.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// A number of bytes, rounded: `12 KiB`, `3.4 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let tenths = bytes / (unit / 10).max(1);
            match tenths % 10 {
                0 => format!("{} {name}", tenths / 10),
                part => format!("{}.{part} {name}", tenths / 10),
            }
        }
        None => format!("{bytes} B"),
    }
}

/// `1 tool`, `2 tools`.
pub(crate) fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// The beginning of a text, with at most so many characters.
pub(crate) fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.chars().count() <= most {
        return text.into();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// An argument quoted for a shell, so that it is visibly one argument.
pub(crate) fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    let shown = fully_visible_text(argument).replace('\n', "\\n");
    format!("'{}'", shown.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::{fold, quoted};

    #[test]
    fn lines_are_folded_at_blanks_and_long_words_stay_whole() {
        assert_eq!(fold("a bb ccc", 2, 4, 8), "a bb\n    ccc");
        assert_eq!(fold("aaaaaaaaaaaa b", 2, 1, 8), "aaaaaaaaaaaa\n b");
        assert_eq!(fold("a bb ccc", 2, 4, usize::MAX), "a bb ccc");
        assert_eq!(fold("", 2, 4, 8), "");
    }

    #[test]
    fn an_argument_is_quoted_where_a_shell_would_need_it() {
        for (argument, shown) in [
            ("--tail=5", "--tail=5"),
            ("a b", "'a b'"),
            ("", "''"),
            ("it's", "'it'\\''s'"),
            ("$(id)", "'$(id)'"),
            ("a\nb\u{1b}[2J", "'a\\nb\\u{1b}[2J'"),
        ] {
            assert_eq!(quoted(argument), shown);
        }
    }
}
