//! Options of an argument vector: none gets its name from a value, none is left without the value
//! that it takes, and a free text is not taken for one.

use super::argv::Word;
use crate::diagnostic::Diagnostic;
use crate::document::{Node, NodeValue};
use crate::manifest::program::known;
use crate::manifest::program::known::{Read, begins};
use crate::manifest::schema::value_shape::{Beginning, Shape};
use crate::manifest::tool::references::Scope;
use crate::template::{Piece, Reference, Template};

/// How sure it is that something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::manifest) enum Sure {
    /// A mistake whatever the program is.
    Yes,
    /// A mistake if the option takes a value, which nobody knows of this program.
    No,
}

/// Values that would become the name of an option.
pub(in crate::manifest) fn names_from_values(words: &[Word<'_>], scope: &Scope) -> Vec<Diagnostic> {
    let before = words.iter().take_while(|word| word.literal() != Some("--"));
    before.filter_map(|word| name_from_value(word, scope)).collect()
}

fn name_from_value(word: &Word<'_>, scope: &Scope) -> Option<Diagnostic> {
    let [Piece::Literal(start), Piece::Reference(Reference::Arg(name)), ..] =
        word.template.pieces.as_slice()
    else {
        return None;
    };
    let long = start.starts_with("--") && !start.contains('=');
    let fixed = scope.arguments.get(name).is_some_and(|known| known.shape == Shape::Fixed);
    if !(long || start == "-") || fixed {
        return None;
    }
    let message = format!("a value of `{name}` would decide which option this is");
    Some(Diagnostic::error("option-from-value", &word.node.span, message).help(format!(
        "list the options it may be: `{name}: {{enum: […]}}`; write the value of an option after \
         `=` or in a separate entry"
    )))
}

/// One entry of an argument vector with its words.
pub(in crate::manifest) struct Entry<'a, 'n> {
    pub(in crate::manifest) words: Vec<&'a Word<'n>>,
    /// The argument that `if` asks about, or that `each` lists.
    pub(in crate::manifest) condition: Option<&'a str>,
    /// Where its first word is in the vector.
    at: usize,
}

/// The entries of an argument vector.
pub(in crate::manifest) fn entries<'a, 'n>(
    list: &'a Node,
    words: &'a [Word<'n>],
) -> Vec<Entry<'a, 'n>> {
    let of = |node: &Node| words.iter().position(|word| std::ptr::eq(word.node, node));
    let mut all = Vec::new();
    for node in list.items() {
        let text = |key: &str| node.entry(key).and_then(|entry| entry.node.as_str());
        let items = match &node.value {
            NodeValue::Mapping(_) if node.entry("then").is_some() => {
                node.entry("then").map(|then| then.node.items()).unwrap_or_default()
            }
            _ => std::slice::from_ref(node),
        };
        let positions: Vec<usize> = items.iter().filter_map(of).collect();
        // An entry that could not be read has no words; it still stands between its neighbours.
        all.push(Entry {
            words: positions.iter().map(|at| &words[*at]).collect(),
            condition: text("if").or(text("each")),
            at: positions.first().copied().unwrap_or_default(),
        });
    }
    all
}

/// Options that would be left without their value where an optional argument is absent.
pub(in crate::manifest) fn dangling(
    list: &Node,
    words: &[Word<'_>],
    read: &Read<'_>,
    scope: &Scope,
) -> Vec<(Sure, Diagnostic)> {
    let all = entries(list, words);
    let mut found = Vec::new();
    for (place, entry) in all.iter().enumerate() {
        if entry.words.iter().any(|word| word.literal() == Some("--")) {
            break;
        }
        let program = program_of(read, entry.at);
        // Within `then`: an option before a value that the condition does not ask for.
        for pair in entry.words.windows(2) {
            let absent = optional(pair[1], scope).filter(|name| Some(*name) != entry.condition);
            found
                .extend(absent.and_then(|name| left_alone(pair[0], name, pair[1], program, false)));
        }
        let (Some(option), None) = (entry.words.last(), entry.condition) else { continue };
        let Some(next) = all.get(place + 1) else { continue };
        let Some(value) = next.words.first() else { continue };
        if begins(value).starts_with('-') {
            continue;
        }
        // A list may be empty, even if the call has to give it.
        let absent = next.condition.or_else(|| optional(value, scope));
        let left = absent
            .and_then(|name| left_alone(option, name, value, program, next.condition.is_some()));
        // An option takes one value: several words are something else, unless it is known to.
        found.extend(left.filter(|(sure, _)| *sure == Sure::Yes || next.words.len() == 1));
    }
    found
}

/// The argument by whose absence a word drops out, if it can be absent.
fn optional<'w>(word: &'w Word<'_>, scope: &Scope) -> Option<&'w str> {
    word.template.references().find_map(|reference| match reference {
        Reference::Arg(name) => {
            scope.arguments.get(name).is_some_and(|known| known.optional).then_some(name.as_str())
        }
        _ => None,
    })
}

fn left_alone(
    word: &Word<'_>,
    absent: &str,
    value: &Word<'_>,
    program: &str,
    conditional: bool,
) -> Option<(Sure, Diagnostic)> {
    let option = word.literal().filter(|text| is_option(text))?;
    let named = !conditional && names(option, absent);
    let sure = match known::takes_value(program, option) {
        Some(true) => Sure::Yes,
        Some(false) => return None,
        None if named => Sure::Yes,
        None => Sure::No,
    };
    let written = value.template.to_string();
    let each = value.node.entry("each").is_some();
    let repair = if each {
        format!("give `{absent}` a `minItems`, or hand the items over with `stdin`")
    } else {
        format!("write {{if: {absent}, then: [\"{option}\", \"{written}\"]}}")
    };
    let (message, help) = match sure {
        Sure::Yes => {
            (format!("without `{absent}`, the option `{option}` is left without its value"), repair)
        }
        Sure::No => (
            format!("if `{option}` takes a value, it has none if `{absent}` is absent"),
            format!("{repair}; if it takes none, put \"--\" between the two"),
        ),
    };
    let found = match sure {
        Sure::Yes => Diagnostic::error("dangling-option", &word.node.span, message),
        Sure::No => Diagnostic::warning("dangling-option", &word.node.span, message),
    };
    Some((sure, found.help(help)))
}

/// Whether a text is an option alone, without a value of its own.
fn is_option(text: &str) -> bool {
    let name = text.trim_start_matches('-');
    let dashes = text.len() - name.len();
    (1..=2).contains(&dashes)
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Whether an option is called as an argument is: `--since` and `since`, `-n` and `namespace`.
fn names(option: &str, argument: &str) -> bool {
    let plain = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
    let name = option.trim_start_matches('-');
    if option.starts_with("--") {
        let (option, argument) = (plain(name), plain(argument));
        option == argument || option.ends_with(&argument) || argument.ends_with(&option)
    } else {
        name.len() == 1 && argument.starts_with(name)
    }
}

/// The innermost program to which the word at a position belongs.
fn program_of<'r>(read: &Read<'r>, at: usize) -> &'r str {
    let before = read.started.iter().rev().find(|(start, _)| *start <= at);
    before.map_or("", |(_, name)| name)
}

/// Free text on the input of `xargs`, whose words the program that it starts may take for options. Nothing refuses
/// words that begin with `-` there, because only `xargs` divides the text.
pub(in crate::manifest) fn unended_input(
    run: &Node,
    words: &[Word<'_>],
    read: &Read<'_>,
    scope: &Scope,
) -> Option<Diagnostic> {
    let is_free = |word: &Template| {
        word.references().any(|reference| match reference {
            Reference::Arg(name) => {
                scope.arguments.get(name).is_none_or(|known| known.shape == Shape::Free)
            }
            _ => false,
        })
    };
    let xargs = read.started.iter().position(|(_, name)| known::base_name(name) == "xargs")?;
    let (start, _) = read.started[xargs];
    let (program, name) = read.started.get(xargs + 1)?;
    let is_ended = words[*program..].iter().any(|word| word.literal() == Some("--"));
    if is_ended || !known::ends_options(name) {
        return None;
    }
    // With `-a FILE` the words are those of the file.
    let own = words.get(start + 1..*program)?;
    let is_file = |word: &&Word<'_>| {
        let option = begins(word);
        option.starts_with("-a") || option.starts_with("--arg-file")
    };
    let stdin = run.entry("stdin").map(|stdin| &stdin.node);
    let place = if own.iter().any(|word| is_file(&word)) {
        own.iter().find(|word| is_free(&word.template))?.node
    } else {
        stdin.filter(|stdin| {
            let template = stdin.as_str().and_then(|text| Template::parse(text).ok());
            stdin.as_str() == Some("${args}") || template.is_some_and(|it| is_free(&it))
        })?
    };
    let name = known::base_name(name);
    let message = format!(
        "`xargs` passes words of this text to `{name}`, which takes those that begin with `-` for options"
    );
    Some(
        Diagnostic::warning("option-from-input", &place.span, message).help(
            "put \"--\" at the end of the program's arguments: then every word is an argument",
        ),
    )
}

/// Free texts that a program may take for an option, where nothing says that options have ended. A
/// call refuses values that begin with `-` there.
pub(in crate::manifest) fn unended(
    list: &Node,
    words: &[Word<'_>],
    read: &Read<'_>,
    scope: &Scope,
) -> Option<Diagnostic> {
    let all = entries(list, words);
    for (place, entry) in all.iter().enumerate() {
        if entry.words.iter().any(|word| matches!(word.literal(), Some("--" | "--end-of-options")))
        {
            return None;
        }
        let before = place.checked_sub(1).and_then(|before| all[before].words.last());
        let program = program_of(read, entry.at);
        let option = before.and_then(|word| word.literal()).filter(|text| is_option(text));
        let is_value = option.is_some_and(|text| known::takes_value(program, text) != Some(false));
        let [word] = entry.words.as_slice() else { continue };
        let [Piece::Reference(Reference::Arg(name)), ..] = word.template.pieces.as_slice() else {
            continue;
        };
        let free =
            scope.arguments.get(name).is_some_and(|known| known.beginning == Beginning::Dash);
        if entry.at > 0 && free && !is_value && known::ends_options(program) {
            let message = format!(
                "there is no `--` before `{name}`, so calls refuse values that begin \
                 with `-`"
            );
            return Some(
                Diagnostic::hint("no-end-of-options", &word.node.span, message)
                    .help("put \"--\" before it: then any value is an argument, not an option"),
            );
        }
    }
    None
}
