//! Parses HTML, unless parsing it would take much more time or memory than its size warrants.
//!
//! The parser looks through all open elements for each tag, compares each attribute of a tag with all others, and opens
//! unclosed formatting again in each block. A scan of the text finds pages that make use of this.

use std::collections::HashMap;

use dom_query::Document;

/// How many elements may be open at the same time.
pub(super) const MAX_DEPTH: usize = 200;
/// Nodes that the parser may make.
const MAX_NODES: usize = 1_000_000;
/// Attributes of one tag.
const MAX_ATTRIBUTES: usize = 500;
/// Names of elements longer than this are cut: they are not those of HTML.
const MAX_NAME: usize = 16;

/// Elements without content, and those whose end is usually not written.
const ENDLESS: [&str; 30] = [
    "area", "base", "br", "col", "colgroup", "dd", "dt", "embed", "frame", "hr", "html", "body",
    "head", "img", "input", "li", "link", "meta", "optgroup", "option", "p", "param", "source",
    "tbody", "td", "tfoot", "th", "thead", "tr", "wbr",
];
/// Elements that are opened again in the next block if they are not closed.
const FORMATTING: [&str; 14] = [
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];
/// Elements whose content has no tags.
const RAW: [&str; 6] = ["script", "style", "textarea", "title", "xmp", "iframe"];
/// Inline elements: the text goes on in the same line.
const INLINE: [&str; 22] = [
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "em", "font", "i", "kbd", "mark", "q",
    "s", "small", "span", "strong", "sub", "sup", "tt", "u",
];

/// The tree of a page, or `None` if the page is built to be expensive.
pub(crate) fn parsed(html: &str) -> Option<Document> {
    is_reasonable(html).then(|| Document::from(html))
}

fn is_reasonable(html: &str) -> bool {
    let mut open: HashMap<&str, usize> = HashMap::new();
    let (mut depth, mut formatting, mut nodes) = (0_usize, 0_usize, 0_usize);
    for piece in Pieces::of(html) {
        let Piece::Tag(tag) = piece else {
            nodes += 1;
            continue;
        };
        if tag.attributes > MAX_ATTRIBUTES {
            return false;
        }
        let is_formatting = is_one_of(tag.name, &FORMATTING);
        if tag.is_end {
            if let Some(count) = open.get_mut(tag.name).filter(|count| **count > 0) {
                *count -= 1;
                depth -= 1;
                formatting -= usize::from(is_formatting);
            }
        } else if !is_one_of(tag.name, &ENDLESS) {
            *open.entry(tag.name).or_default() += 1;
            depth += 1;
            formatting += usize::from(is_formatting);
        }
        nodes += 1 + if is_formatting { 0 } else { formatting };
        if depth > MAX_DEPTH || nodes > MAX_NODES {
            return false;
        }
    }
    true
}

/// The words of a page that is not parsed, in time proportional to its length.
pub(super) fn stripped(html: &str) -> String {
    let mut text = String::new();
    for piece in Pieces::of(html) {
        match piece {
            Piece::Text(words) => push_words(&mut text, words),
            Piece::Tag(tag) if !is_one_of(tag.name, &INLINE) && !text.ends_with('\n') => {
                text.push('\n');
            }
            Piece::Tag(_) => {}
        }
    }
    text.trim().to_owned()
}

fn push_words(text: &mut String, words: &str) {
    let decoded = words.replace("&nbsp;", " ").replace("&lt;", "<").replace("&gt;", ">");
    let decoded = decoded.replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&");
    let is_apart = decoded.starts_with(char::is_whitespace);
    for (at, word) in decoded.split_whitespace().enumerate() {
        if (at > 0 || is_apart) && !text.ends_with([' ', '\n']) {
            text.push(' ');
        }
        text.push_str(word);
    }
    if decoded.ends_with(char::is_whitespace) && !text.ends_with([' ', '\n']) {
        text.push(' ');
    }
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

struct Tag<'a> {
    name: &'a str,
    is_end: bool,
    attributes: usize,
}

enum Piece<'a> {
    Text(&'a str),
    Tag(Tag<'a>),
}

/// Splits HTML into tags and texts. Comments and the content of scripts and styles are left out.
struct Pieces<'a> {
    rest: &'a str,
    /// The element whose raw content is next.
    raw: Option<&'a str>,
}

impl<'a> Pieces<'a> {
    fn of(html: &'a str) -> Self {
        Self { rest: html, raw: None }
    }

    fn tag(&mut self, text: &'a str, is_end: bool) -> Tag<'a> {
        let is_name = |c: char| !c.is_ascii_whitespace() && !matches!(c, '/' | '>');
        let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let cut = (0..=name.len().min(MAX_NAME)).rev().find(|at| name.is_char_boundary(*at));
        let name = &name[..cut.unwrap_or(0)];
        let (mut quote, mut attributes, mut is_apart, mut length) = (None, 0, false, rest.len());
        for (at, byte) in rest.bytes().enumerate() {
            match (quote, byte) {
                (None, b'>') => {
                    length = at + 1;
                    break;
                }
                (None, b'"' | b'\'') => quote = Some(byte),
                (Some(open), _) if open == byte => quote = None,
                (Some(_), _) => {}
                (None, byte) => {
                    let is_space = byte.is_ascii_whitespace() || byte == b'/';
                    attributes += usize::from(is_apart && !is_space);
                    is_apart = is_space;
                }
            }
        }
        self.rest = &rest[length..];
        if !is_end && is_one_of(name, &RAW) {
            self.raw = Some(name);
        }
        Tag { name, is_end, attributes }
    }

    /// Skips the content of an element without tags.
    fn skip_raw(&mut self, name: &str) {
        let mut from = 0;
        while let Some(at) = self.rest[from..].find("</").map(|at| from + at) {
            let after = self.rest.get(at + 2..at + 2 + name.len());
            if after.is_some_and(|after| after.eq_ignore_ascii_case(name)) {
                self.rest = &self.rest[at..];
                return;
            }
            from = at + 2;
        }
        self.rest = "";
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            if let Some(name) = self.raw.take() {
                self.skip_raw(name);
            }
            if self.rest.is_empty() {
                return None;
            }
            let Some(inside) = self.rest.strip_prefix('<') else {
                let end = self.rest.find('<').unwrap_or(self.rest.len());
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                return Some(Piece::Text(text));
            };
            if let Some(comment) = inside.strip_prefix("!--") {
                self.rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
            } else if inside.starts_with(['!', '?']) {
                self.rest = inside.split_once('>').map_or("", |(_, rest)| rest);
            } else if let Some(end) = inside.strip_prefix('/') {
                return Some(Piece::Tag(self.tag(end, true)));
            } else if inside.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Some(Piece::Tag(self.tag(inside, false)));
            } else {
                let (text, rest) = self.rest.split_at(1);
                self.rest = rest;
                return Some(Piece::Text(text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_built_to_be_expensive_are_told_from_ordinary_ones() {
        let fonts = (0..150).map(|n| format!("<font size={n}>")).collect::<Vec<_>>().concat();
        let attributes = (0..600).map(|n| format!(" a{n}='>'")).collect::<Vec<_>>().concat();
        for (page, expected) in [
            ("<div>".repeat(150) + "x", true),
            ("<div>".repeat(300) + "x", false),
            ("<div></x>".repeat(300), false),
            ("<div><p></div>".repeat(5_000), true),
            ("<p>one<li>two<td>three".repeat(20_000), true),
            (format!("<script>{}</SCRIPT >x", "'<div>'".repeat(5_000)), true),
            (format!("<!-- {} -->x", "<div>".repeat(5_000)), true),
            (fonts.clone() + &"<p>x".repeat(100), true),
            (fonts + &"<p>x".repeat(100_000), false),
            (format!("<p{attributes}>x"), false),
            (format!("<p title=\"{}\">x", "a b ".repeat(5_000)), true),
            ("<".repeat(10_000) + "</" + &"<a ".repeat(100), true),
        ] {
            assert_eq!(is_reasonable(&page), expected, "{}", &page[..60]);
        }
    }

    #[test]
    fn a_page_that_is_not_parsed_gives_its_words() {
        let html = "<title>T</title><p class='a>b'>One <b>two</b>three &amp;amp; 4 &lt; 5<div>six</div><style>p{}</style><!-- no --> é<";
        assert_eq!(stripped(html), "One twothree &amp; 4 < 5\nsix\né<");
    }
}
