//! Values that choose freely what a program of the network reaches, or what a program that controls others
//! does.

use super::argv::Word;
use crate::diagnostic::Diagnostic;
use crate::manifest::program::known::{Read, base_name, takes_value};
use crate::manifest::schema::value_shape::Shape;
use crate::manifest::tool::references::Scope;
use crate::template::{Piece, Reference};

/// Programs whose first argument says what is done.
const VERBS: [&str; 8] =
    ["docker", "helm", "kubectl", "loginctl", "nmcli", "podman", "service", "systemctl"];

/// Warnings about values that choose an address, a machine or a command.
pub(in crate::manifest) fn chosen(
    words: &[Word<'_>],
    read: &Read<'_>,
    scope: &Scope,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (nth, (at, program)) in read.started.iter().enumerate() {
        let end = read.started.get(nth + 1).map_or(words.len(), |(next, _)| *next);
        let own = words.get(at + 1..end).unwrap_or_default();
        match base_name(program) {
            name @ ("curl" | "wget") => found.extend(own.iter().enumerate().filter_map(|(at, word)| {
                let before = at.checked_sub(1).and_then(|before| own[before].literal());
                let is_value = before.is_some_and(|option| is_valued(name, option));
                let name_of = free_address(word, scope).filter(|_| !is_value)?;
                let also = if name == "curl" { ", and `file:///etc/passwd` reads a file" } else { "" };
                let message = format!(
                    "`{name_of}` chooses any address: `{name}` asks whatever host it names, those of the private \
                     network included{also}"
                );
                let help = format!(
                    "write scheme and host as literals: \"https://api.example.com/${{args.{name_of}}}\"; or give \
                     the argument a pattern such as `^https://api\\.example\\.com/`; if any host is meant, say so: \
                     `unsafe_argv: it only tells whether a page answers`"
                );
                Some(Diagnostic::warning("chosen-target", &word.node.span, message).help(help))
            })),
            name @ ("ssh" | "telnet" | "nc" | "ncat") => {
                let value = first_operand(name, own).filter(|word| is_free(word, scope));
                found.extend(value.and_then(|word| {
                    let argument = whole(word).or_else(|| behind_user(word))?;
                    let message = format!("`{argument}` chooses any machine that `{name}` connects to");
                    Some(Diagnostic::warning("chosen-target", &word.node.span, message).help(
                        "list the machines in an `enum` of the argument, or give it a pattern such as \
                         `^web-[0-9]+$`",
                    ))
                }));
            }
            "git" => {
                let is_asked = |word: &Word<'_>| matches!(word.literal(), Some("clone" | "ls-remote"));
                let free = own.iter().filter_map(|word| Some((word, free_address(word, scope)?)));
                // The first one behind the command; a folder may follow.
                let remote = free.take(1).filter(|_| own.iter().any(is_asked));
                found.extend(remote.map(|(word, argument)| {
                    let message = format!("`{argument}` chooses any repository: `git` asks whatever host it names");
                    Diagnostic::warning("chosen-target", &word.node.span, message).help(format!(
                        "write scheme and host as literals: \"https://git.example.com/${{args.{argument}}}\"; or give \
                         the argument a pattern such as `^https://git\\.example\\.com/`"
                    ))
                }));
            }
            name if VERBS.contains(&name) => {
                found.extend((0..own.len()).filter_map(|at| {
                    let argument = mounted(own, at)?;
                    let known = scope.arguments.get(argument)?;
                    let message = format!("`{argument}` chooses any folder of the machine that the container gets");
                    (known.shape == Shape::Free).then(|| {
                        Diagnostic::warning("chosen-target", &own[at].node.span, message).help(
                            "write the folder as a literal, or the one in which it lies: \"/srv/data/${args.name}\" with \
                             a pattern such as `^[a-z0-9-]+$`",
                        )
                    })
                }));
                let place = usize::from(name == "service");
                let value = own.iter().filter(|word| !is_option(word)).nth(place);
                let value = value.filter(|word| is_at_least(word, scope, Shape::Word));
                let before = value.and_then(|word| own.iter().position(|other| std::ptr::eq(word, other)));
                let is_value = before.is_some_and(|at| {
                    at > 0 && own[at - 1].literal().is_some_and(|text| text.starts_with('-'))
                });
                found.extend(value.filter(|_| !is_value).and_then(|word| {
                    let argument = whole(word)?;
                    let message = format!(
                        "`{argument}` chooses what `{name}` does, whatever the description of the tool says"
                    );
                    Some(Diagnostic::warning("chosen-target", &word.node.span, message).help(
                        "write the command, or list those that are meant: `enum: [status, restart]`",
                    ))
                }));
            }
            _ => {}
        }
    }
    found
}

/// The argument behind the name of a user: `ops@${args.host}`.
fn behind_user<'w>(word: &'w Word<'_>) -> Option<&'w str> {
    match word.template.pieces.as_slice() {
        [Piece::Literal(user), Piece::Reference(Reference::Arg(name))] if user.ends_with('@') => {
            Some(name)
        }
        _ => None,
    }
}

/// Whether the machine that a word names is any text.
fn is_free(word: &Word<'_>, scope: &Scope) -> bool {
    let name = whole(word).or_else(|| behind_user(word));
    let known = name.and_then(|name| scope.arguments.get(name));
    known.is_some_and(|known| known.shape == Shape::Free)
}

/// The argument with which a word begins that names what a container mounts: `${args.folder}:/data`, also behind
/// `source=`.
fn mounted<'w>(own: &'w [Word<'_>], at: usize) -> Option<&'w str> {
    let before = at.checked_sub(1).and_then(|before| own[before].literal()).unwrap_or_default();
    let pieces = own[at].template.pieces.as_slice();
    let is_mount = |option: &str| matches!(option, "-v" | "--volume" | "--mount");
    match pieces {
        [Piece::Reference(Reference::Arg(name)), ..] if is_mount(before) => Some(name),
        [Piece::Literal(start), Piece::Reference(Reference::Arg(name)), ..] => {
            let option = start.split_once('=').map_or(before, |(option, _)| option);
            let is_source = start.ends_with("source=") || start.ends_with("src=");
            let is_attached = matches!(start.as_str(), "-v" | "--volume=");
            (is_attached || is_source && (is_mount(option) || is_mount(before))).then_some(name)
        }
        _ => None,
    }
}

/// The argument that a word consists of.
fn whole<'w>(word: &'w Word<'_>) -> Option<&'w str> {
    match word.template.pieces.as_slice() {
        [Piece::Reference(Reference::Arg(name))] => Some(name),
        _ => None,
    }
}

/// The argument whose value is an address from its host on.
fn free_address<'w>(word: &'w Word<'_>, scope: &Scope) -> Option<&'w str> {
    let rest = match word.template.pieces.as_slice() {
        [Piece::Literal(scheme), rest @ ..] if scheme.ends_with("://") => rest,
        [Piece::Literal(option), rest @ ..] if option == "--url=" => rest,
        all => all,
    };
    let Some(Piece::Reference(Reference::Arg(name))) = rest.first() else { return None };
    let known = scope.arguments.get(name)?;
    (known.shape == Shape::Free && !known.has_host).then_some(name)
}

fn is_at_least(word: &Word<'_>, scope: &Scope, shape: Shape) -> bool {
    let known = whole(word).and_then(|name| scope.arguments.get(name));
    known.is_some_and(|known| known.shape >= shape)
}

fn is_option(word: &Word<'_>) -> bool {
    word.literal().is_some_and(|text| text.starts_with('-'))
}

/// The first argument that is neither an option nor the value of one.
fn first_operand<'w, 'n>(program: &str, words: &'w [Word<'n>]) -> Option<&'w Word<'n>> {
    words.iter().enumerate().find_map(|(at, word)| {
        let before = at.checked_sub(1).and_then(|before| words[before].literal());
        let is_value = before.is_some_and(|option| {
            option.starts_with('-') && option != "--" && takes_value(program, option) != Some(false)
        });
        (!is_option(word) && !is_value).then_some(word)
    })
}

/// Whether a word is an option of `curl` or `wget` that a value follows, which is not the address.
fn is_valued(program: &str, option: &str) -> bool {
    match option.strip_prefix('-') {
        Some(letters) if !letters.starts_with('-') => letters
            .chars()
            .next_back()
            .is_some_and(|last| takes_value(program, &format!("-{last}")) == Some(true)),
        _ => option != "--url" && takes_value(program, option) == Some(true),
    }
}
