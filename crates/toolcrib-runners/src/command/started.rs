//! The programs that a declared program starts in turn, as far as its declaration names them: the interpreter after
//! `env`, and the programs of a shell's text. Each needs its own installation.

use std::path::Path;

use toolcrib_manifest::declaration::ArgvEntry;
use toolcrib_manifest::template::{Piece, Template};

/// Shells whose text after `-c` is read.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "fish"];

/// Words of a shell's grammar, and built-in commands, before the program of a command.
const BEFORE_PROGRAMS: [&str; 12] =
    ["!", "{", "command", "do", "elif", "else", "exec", "if", "then", "time", "until", "while"];

/// The programs that an argument vector starts besides its first. Values of a call never name one.
pub(crate) fn by_vector(argv: &[ArgvEntry]) -> Vec<String> {
    let mut words = Vec::new();
    for entry in argv {
        match entry {
            ArgvEntry::One(template) => words.push(literal(template)),
            ArgvEntry::If { then, .. } => words.extend(then.iter().map(literal)),
            ArgvEntry::Each { .. } => words.push(None),
        }
    }
    by_words(&words)
}

/// The same for a plain list of words.
pub(crate) fn by_texts<'t>(words: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    by_words(&words.into_iter().map(|word| Some(word.to_owned())).collect::<Vec<_>>())
}

fn literal(template: &Template) -> Option<String> {
    let pieces = template.pieces.iter().map(|piece| match piece {
        Piece::Literal(text) => Some(text.as_str()),
        Piece::Reference(_) => None,
    });
    pieces.collect()
}

/// `None` is a word that is known only in a call.
fn by_words(words: &[Option<String>]) -> Vec<String> {
    let Some((Some(program), arguments)) = words.split_first() else { return Vec::new() };
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name == "env" {
        return behind_env(arguments);
    }
    if !SHELLS.contains(&name) {
        return Vec::new();
    }
    // The text is the argument after `-c`, which may be one of several letters.
    let mut words = arguments.iter().map(Option::as_deref);
    let is_inline =
        |word: &str| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    match words.find(|word| word.is_none_or(|word| is_inline(word) || !word.starts_with('-'))) {
        Some(Some(option)) if is_inline(option) => words.next().flatten().map(by_shell_text),
        _ => None,
    }
    .unwrap_or_default()
}

/// The program after the options and variables of `env`, and what that one starts.
fn behind_env(arguments: &[Option<String>]) -> Vec<String> {
    let mut rest = arguments;
    while let Some((Some(word), after)) = rest.split_first() {
        rest = after;
        let split = word.strip_prefix("-S").or_else(|| word.strip_prefix("--split-string="));
        if let Some(text) = split {
            let (text, after) = match after.split_first() {
                Some((Some(next), after)) if text.is_empty() => (next.as_str(), after),
                _ => (text, after),
            };
            let words = text.split_whitespace().map(|word| Some(word.to_owned()));
            return behind_env(&words.chain(after.iter().cloned()).collect::<Vec<_>>());
        }
        if matches!(word.as_str(), "-u" | "-C" | "--unset" | "--chdir") {
            rest = after.get(1..).unwrap_or_default();
        } else if !word.starts_with('-') && !word.contains('=') {
            let own = std::iter::once(Some(word.clone())).chain(after.iter().cloned());
            let mut programs = by_words(&own.collect::<Vec<_>>());
            programs.insert(0, word.clone());
            return programs;
        }
    }
    Vec::new()
}

/// The first word of each command, where it is a plain name.
fn by_shell_text(text: &str) -> Vec<String> {
    let commands = text.split([';', '|', '&', '(', ')', '`', '\n']);
    let programs = commands.filter_map(|command| {
        let mut words = command.split_whitespace();
        words.find(|word| !BEFORE_PROGRAMS.contains(word) && !word.contains('='))
    });
    let is_name = |word: &&str| word.chars().all(|c| c.is_alphanumeric() || "/._+-".contains(c));
    let mut programs: Vec<_> = programs.filter(is_name).map(str::to_owned).collect();
    programs.sort_unstable();
    programs.dedup();
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_behind_env_and_in_shell_text_are_found() {
        for (words, programs) in [
            (&["env", "python3", "-c", "1"][..], &["python3"][..]),
            (&["/usr/bin/env", "A=b", "-u", "C", "-i", "python3"], &["python3"]),
            (&["/usr/bin/env", "-S python3 -u", "/x"], &["python3"]),
            (&["/usr/bin/env", "-S", "A=1 python3 -u"], &["python3"]),
            (&["env", "bash", "-c", "node x | jq ."], &["bash", "jq", "node"]),
            (
                &["bash", "-euc", "set -e; A=1 python3 -c 'x' && if ! grep y; then z; fi", "bash"],
                &["fi", "grep", "python3", "set", "z"],
            ),
            (&["sh", "-c", "\"$A\" x; $B"], &[]),
            (&["sh", "run.sh", "-c", "python3"], &[]),
            (&["python3", "-c", "node"], &[]),
            (&["env"], &[]),
        ] {
            assert_eq!(by_texts(words.iter().copied()), programs, "{words:?}");
        }
    }
}
