//! Modules of Python that are programs of their own, and values that `xargs` reads from a file.

use super::{base_name, find, tainted};
use crate::manifest::program::argv::Word;
use crate::manifest::program::known::program::Program;
use crate::manifest::schema::value_shape::Shape;
use crate::manifest::tool::references::Scope;
use crate::template::{Piece, Template};

/// The module among the arguments of an interpreter of Python that start at `start`, if it is known as
/// a program: where its name stands, what is known, and the name.
pub(super) fn module<'w>(
    words: &'w [Word<'_>],
    start: usize,
) -> Option<(usize, &'static Program, &'w str)> {
    let mut at = start;
    while let Some(option) = words.get(at).and_then(Word::literal) {
        let letters = option.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
        let (at_name, name) = match letters.split_once('m') {
            // `-W` and `-X` take a value, which may be the rest of the word.
            _ if letters.starts_with(['W', 'X']) => {
                at += if letters.len() == 1 { 2 } else { 1 };
                continue;
            }
            Some((_, "")) => (at + 1, words.get(at + 1).and_then(Word::literal)?),
            Some((_, name)) => (at, name),
            None => {
                at += 1;
                continue;
            }
        };
        // `pip.__main__` is the same program.
        let name = name.strip_suffix(".__main__").unwrap_or(name);
        return find(name).map(|known| (at_name, known, name));
    }
    None
}

/// The words as the program that `xargs` starts may get them, where a value names the file with its
/// arguments: these stand at the end, or where a sign stands for them.
pub(in crate::manifest) fn given_by_xargs<'n>(
    words: &[Word<'n>],
    scope: &Scope,
) -> Option<Vec<Word<'n>>> {
    let is_xargs = |word: &Word<'_>| word.literal().is_some_and(|name| base_name(name) == "xargs");
    let start = words.iter().position(is_xargs)?;
    let mut file = None;
    let mut sign = None;
    let mut rest = words[start + 1..].iter();
    while let Some(word) = rest.next() {
        let begins = super::begins(word);
        if !begins.starts_with('-') {
            break;
        }
        match (word.literal(), begins) {
            (Some("-a" | "--arg-file"), _) => file = rest.next(),
            (None, begins) if begins.starts_with("-a") || begins.starts_with("--arg-file=") => {
                file = Some(word);
            }
            (Some("-I"), _) => sign = rest.next().and_then(Word::literal),
            (Some(text), _) if text.starts_with("-I") => sign = Some(&text[2..]),
            (Some("-i" | "--replace"), _) => sign = Some("{}"),
            (Some(text), _) if text.starts_with("--replace=") => sign = Some(&text[10..]),
            (Some("-d" | "-E" | "-L" | "-n" | "-P" | "-s"), _) => {
                rest.next();
            }
            _ => {}
        }
    }
    let file = file.filter(|file| tainted(file, scope, Shape::Fixed))?;
    let reference =
        file.template.pieces.iter().filter(|piece| matches!(piece, Piece::Reference(_)));
    let template = Template { pieces: reference.take(1).cloned().collect() };
    let Some(sign) = sign.filter(|sign| !sign.is_empty()) else {
        let copy = |word: &Word<'n>| Word { template: word.template.clone(), node: word.node };
        let mut all: Vec<Word<'n>> = words.iter().map(copy).collect();
        all.push(Word { template, node: file.node });
        return Some(all);
    };
    // With a sign for their place, nothing is added at the end.
    let filled = |word: &Word<'n>| {
        let mut pieces = Vec::new();
        for (nth, part) in word.literal().unwrap_or_default().split(sign).enumerate() {
            if nth > 0 {
                pieces.extend(template.pieces.iter().cloned());
            }
            if !part.is_empty() {
                pieces.push(Piece::Literal(part.to_owned()));
            }
        }
        let holds = word.literal().is_some_and(|text| text.contains(sign) && text != sign);
        let is_sign = word.literal() == Some(sign);
        let template = if holds || is_sign { Template { pieces } } else { word.template.clone() };
        Word { template, node: word.node }
    };
    // The loop has also taken the name of the program.
    let options = words.len() - rest.len() - 1;
    let mut all: Vec<Word<'n>> = words[..options]
        .iter()
        .map(|word| Word { template: word.template.clone(), node: word.node })
        .collect();
    all.extend(words[options..].iter().map(filled));
    Some(all)
}
