//! Modules of Python that are programs of their own, and values that `xargs` reads from a file.

use super::{base_name, find, tainted};
use crate::manifest::program::argv::Word;
use crate::manifest::program::known::program::Program;
use crate::manifest::schema::value_shape::Shape;
use crate::manifest::tool::references::Scope;

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
        return find(name).map(|known| (at_name, known, name));
    }
    None
}

/// The words as the program that `xargs` starts may get them, where a value names the file with its
/// arguments: these stand at the end.
pub(in crate::manifest) fn given_by_xargs<'n>(
    words: &[Word<'n>],
    scope: &Scope,
) -> Option<Vec<Word<'n>>> {
    let is_xargs = |word: &Word<'_>| word.literal().is_some_and(|name| base_name(name) == "xargs");
    let start = words.iter().position(is_xargs)?;
    let mut file = None;
    let mut rest = words[start + 1..].iter();
    while let Some(word) = rest.next() {
        let begins = super::begins(word);
        if !begins.starts_with('-') {
            break;
        }
        // With a place to put them, nothing is added at the end.
        if begins.starts_with("-I") || begins.starts_with("-i") || begins.starts_with("--replace") {
            return None;
        }
        match (word.literal(), begins) {
            (Some("-a" | "--arg-file"), _) => file = rest.next(),
            (None, begins) if begins.starts_with("-a") || begins.starts_with("--arg-file=") => {
                file = Some(word);
            }
            (Some("-d" | "-E" | "-L" | "-n" | "-P" | "-s"), _) => {
                rest.next();
            }
            _ => {}
        }
    }
    let file = file.filter(|file| tainted(file, scope, Shape::Fixed))?;
    let reference = file
        .template
        .pieces
        .iter()
        .filter(|piece| matches!(piece, crate::template::Piece::Reference(_)));
    let template = crate::template::Template { pieces: reference.take(1).cloned().collect() };
    let copy = |word: &Word<'n>| Word { template: word.template.clone(), node: word.node };
    let mut all: Vec<Word<'n>> = words.iter().map(copy).collect();
    all.push(Word { template, node: file.node });
    Some(all)
}
