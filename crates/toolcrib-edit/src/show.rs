//! Changes and lines as text for people and models, shortened where they are long.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use memchr::{memchr2, memrchr2};

use super::change::LineRange;
use super::diff::{Hunk, hunks};
use super::lines::{Piece, eol_at, eol_before, line_end_within, line_start_within, pieces};
use super::merge::Splice;

/// The most lines of a diff.
const MOST_LINES: usize = 60;

/// How many unchanged lines are shown before and after.
const CONTEXT: usize = 2;

/// How many characters of a line are shown.
const WIDTH: usize = 160;

/// How many bytes of a line around a splice are examined.
const REACH: usize = 160;

/// How many characters of a long line are shown before the difference.
const LEAD: usize = 60;

/// If a splice has more bytes than this, old and new, its lines are counted instead of compared.
const LARGE: usize = 64 * 1024;

/// A change in the format of `diff -u`.
pub(super) fn change(file: &[u8], splices: &[Splice], lines: &[LineRange]) -> String {
    let mut out = DiffWriter { text: String::new(), left: MOST_LINES };
    let mut moved = 0_isize;
    let mut at = 0;
    while at < splices.len() {
        let group = group(file, &splices[at..]);
        if out.left == 0 {
            let _ = writeln!(out.text, "… and {} more places", splices.len() - at);
            break;
        }
        moved += out.group(file, &splices[at..at + group], lines[at].first, moved);
        at += group;
    }
    out.text
}

/// How many of the splices are shown together because they share lines.
fn group(file: &[u8], splices: &[Splice]) -> usize {
    let mut count = 1;
    while count < splices.len() {
        let (end, next) = (splices[count - 1].range.end, splices[count].range.start);
        if next - end > REACH || memchr2(b'\n', b'\r', &file[end..next]).is_some() {
            break;
        }
        count += 1;
    }
    count
}

struct DiffWriter {
    text: String,
    /// How many lines may still be written.
    left: usize,
}

impl DiffWriter {
    /// Writes splices that share lines; returns by how much the following lines have moved.
    fn group(&mut self, file: &[u8], splices: &[Splice], first: usize, moved: isize) -> isize {
        let range = splices[0].range.start..splices[splices.len() - 1].range.end;
        let come: usize = splices.iter().map(|splice| splice.text.len()).sum();
        let count = |text: &[u8]| pieces(text).count().cast_signed() - 1;
        if range.len() > LARGE || come > LARGE {
            let (gone, come) = (range.len(), come);
            let _ = writeln!(self.text, "@@ line {first} @@\n… {gone} bytes became {come}");
            self.left = self.left.saturating_sub(2);
            let after: isize = splices.iter().map(|splice| count(&splice.text)).sum();
            return after
                - splices.iter().map(|splice| count(&file[splice.range.clone()])).sum::<isize>();
        }
        let shown = shown(file, &range, splices);
        let mut new = file[shown.start..range.start].to_vec();
        for (at, splice) in splices.iter().enumerate() {
            new.extend_from_slice(&splice.text);
            let next = splices.get(at + 1).map_or(range.end, |next| next.range.start);
            new.extend_from_slice(&file[splice.range.end..next]);
        }
        new.extend_from_slice(&file[range.end..shown.end]);
        let old = &file[shown.clone()];
        let difference = count(&new) - count(old);
        let before = context_before(file, shown.start);
        let after = context_after(file, shown.end);
        let rest = &file[shown.end..];
        let (old, new) = (rows(old, rest), rows(&new, rest));
        // Lines that end with a lone CR are shown but not counted.
        let first_old = first.saturating_sub(before.len()).max(1);
        let first_new = first_old.cast_signed() + moved;
        let counts =
            (before.len() + old.len() + after.len(), before.len() + new.len() + after.len());
        let _ = writeln!(self.text, "@@ -{first_old},{} +{first_new},{} @@", counts.0, counts.1);
        self.rows(' ', &before, 0);
        for Hunk { old: gone, new: come, equal } in hunks(&old, &new) {
            if equal {
                self.equal(&old[gone]);
            } else {
                let differ = differ_at(&old[gone.clone()], &new[come.clone()]);
                self.rows('-', &old[gone], differ);
                self.rows('+', &new[come], differ);
            }
        }
        self.rows(' ', &after, 0);
        difference
    }

    /// Writes rows; long ones are cut around `differ`.
    fn rows(&mut self, sign: char, rows: &[Row<'_>], differ: usize) {
        for (at, row) in rows.iter().enumerate() {
            if self.left == 0 {
                let _ = writeln!(self.text, "… {} more lines", rows.len() - at);
                return;
            }
            let from = if row.text.len() > WIDTH { differ.saturating_sub(LEAD) } else { 0 };
            let (cut, text) =
                (if from > 0 { "…" } else { "" }, clip(&row.text[from.min(row.text.len())..]));
            let _ = writeln!(self.text, "{sign}{cut}{text}{}", row.end);
            self.left -= 1;
        }
    }

    /// Writes unchanged lines; the middle of many is omitted.
    fn equal(&mut self, rows: &[Row<'_>]) {
        if rows.len() <= 2 * CONTEXT + 1 {
            return self.rows(' ', rows, 0);
        }
        self.rows(' ', &rows[..CONTEXT], 0);
        let _ = writeln!(self.text, "… {} unchanged lines", rows.len() - 2 * CONTEXT);
        self.rows(' ', &rows[rows.len() - CONTEXT..], 0);
    }
}

/// A line, and a note on its end.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Row<'a> {
    text: &'a [u8],
    end: &'static str,
}

/// Where the first lines of both begin to differ.
fn differ_at(old: &[Row<'_>], new: &[Row<'_>]) -> usize {
    match (old.first(), new.first()) {
        (Some(old), Some(new)) => {
            old.text.iter().zip(new.text).take_while(|(old, new)| old == new).count()
        }
        _ => 0,
    }
}

/// The part of the file that is shown as changed: whole lines, unless they are long.
fn shown(file: &[u8], range: &Range<usize>, splices: &[Splice]) -> Range<usize> {
    let from = range.start.saturating_sub(REACH);
    let start = if range.start == 0 || eol_before(file, range.start) > 0 {
        range.start
    } else {
        memrchr2(b'\n', b'\r', &file[from..range.start]).map_or(from, |eol| from + eol + 1)
    };
    let last = &splices[splices.len() - 1].text;
    let whole_lines = start == range.start
        && eol_before(file, range.end) > 0
        && (last.is_empty() || last.ends_with(b"\n") || last.ends_with(b"\r"));
    if whole_lines && range.end > range.start {
        return start..range.end;
    }
    let to = file.len().min(range.end + REACH);
    start..memchr2(b'\n', b'\r', &file[range.end..to]).map_or(to, |eol| range.end + eol)
}

/// The lines of a text as rows; `rest` is the text after it in the file. A row says if its line ends with CR, or if the
/// file's last line has no end. The end of the last line may be in `rest`.
fn rows<'t>(text: &'t [u8], rest: &[u8]) -> Vec<Row<'t>> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut lines: Vec<Piece<'_>> = pieces(text).collect();
    if lines.len() > 1 && lines[lines.len() - 1].text.is_empty() {
        lines.pop();
    }
    let end = |eol: &[u8]| match eol {
        b"" if rest.is_empty() => "\n\\ No newline at end of file",
        b"" => mark(&rest[..eol_at(rest, 0)]),
        eol => mark(eol),
    };
    lines.iter().map(|line| Row { text: line.text, end: end(line.eol) }).collect()
}

fn mark(eol: &[u8]) -> &'static str {
    if eol.starts_with(b"\r") { "␍" } else { "" }
}

fn context_before(file: &[u8], start: usize) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let mut at = start;
    while rows.len() < CONTEXT {
        let eol = eol_before(file, at);
        let end = at - eol;
        let Some(from) = line_start_within(file, end, 4 * WIDTH).filter(|_| eol > 0) else { break };
        rows.insert(0, Row { text: &file[from..end], end: mark(&file[end..at]) });
        at = from;
    }
    rows
}

fn context_after(file: &[u8], end: usize) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let mut at = if eol_before(file, end) > 0 { end } else { end + eol_at(file, end) };
    while rows.len() < CONTEXT && at < file.len() && eol_before(file, at) > 0 {
        let Some(line) = line_end_within(file, at, 4 * WIDTH) else { break };
        let next = line + eol_at(file, line);
        rows.push(Row { text: &file[at..line], end: mark(&file[line..next]) });
        at = next;
    }
    rows
}

/// A line, shortened if it is long.
pub(super) fn clip(line: &[u8]) -> Cow<'_, str> {
    // A character has at most four bytes.
    let head = &line[..line.len().min(4 * WIDTH)];
    let text = String::from_utf8_lossy(head);
    match text.char_indices().nth(WIDTH) {
        None if head.len() == line.len() => text,
        cut => {
            let end = cut.map_or(text.len(), |(at, _)| at);
            Cow::Owned(format!("{}…", &text[..end]))
        }
    }
}

/// A line with visible blanks: `·` for a space, `→` for a tab, `␣` for other spaces.
pub(super) fn visible(line: &str) -> String {
    line.chars()
        .map(|char| match char {
            ' ' => '·',
            '\t' => '→',
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{3000}' => '␣',
            _ => char,
        })
        .collect()
}
