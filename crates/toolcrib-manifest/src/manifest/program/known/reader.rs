//! The reading of an argument vector, program by program.

use super::given::Given;
use super::input_readers::{RUN_INPUT, START_SHELL};
use super::modules::module;
use super::program::{Program, Rest};
use super::tables::TABLES;
use super::{Read, base_name, begins, find, is_input, tainted};
use crate::diagnostic::Diagnostic;
use crate::environment::is_dangerous_env;
use crate::manifest::program::argv::Word;
use crate::manifest::schema::value_shape::{Beginning, Shape};
use crate::manifest::tool::references::Scope;
use crate::template::{Piece, Reference};
use crate::words::Words;

/// Reads an argument vector as its programs would.
pub(super) struct VectorReader<'w, 'n> {
    pub(super) words: &'w [Word<'n>],
    pub(super) scope: &'w Scope,
    pub(super) read: Read<'w>,
    /// Whether the program has options that run something beside those of its command.
    pub(super) has_code_before: bool,
}

impl VectorReader<'_, '_> {
    /// Reads the word at `at` as a program that `wrapper` starts, and what follows as its arguments.
    pub(super) fn program(&mut self, at: usize, wrapper: &str) {
        let Some(word) = self.words.get(at) else { return };
        let Some(name) = word.literal() else {
            // The program of the whole vector is checked where it is read.
            if let Some(reference) = chosen(word).filter(|_| at > 0) {
                let message = format!(
                    "{reference} would choose the program that `{wrapper}` starts: a model must \
                     not choose it"
                );
                self.found("model-chosen-program", word, message, wrapped(wrapper));
            }
            return;
        };
        self.read.started.push((at, name));
        self.has_code_before = false;
        let plain = base_name(name);
        let whole = name.rsplit('/').next().unwrap_or(name);
        let lists = || self.words[at + 1..].iter().any(|word| begins(word).starts_with(":::"));
        // The digit of `m4` is no version.
        // `uv run -`, `bun run -`
        let runs_input =
            name == "-" && at > 0 || RUN_INPUT.contains(plain) || RUN_INPUT.contains(whole);
        self.read.runs_stdin |= runs_input || plain == "parallel" && !lists();
        self.options_files(at, plain);
        if let Some(known) = find(name) {
            // Messages name the program as the manifest does.
            self.arguments(at + 1, name.rsplit('/').next().unwrap_or(name), known);
        } else if plain.starts_with("python") {
            // A module of Python may be a program with a grammar of its own: `python3 -m pip`.
            if let Some((at, known, module)) = module(self.words, at + 1) {
                self.arguments(at + 1, module, known);
            }
        }
    }

    /// Reads the arguments of a program about which something is known.
    fn arguments(&mut self, start: usize, name: &str, known: &Program) {
        let words = self.words;
        let mut at = start;
        let mut ended = false;
        let mut position = 0;
        // Whether the variables of a program in awk may be run; one in a file is not known.
        let mut runs_variables = true;
        if matches!(known.rest, Rest::Expression) {
            return self.expression(start, name, known);
        }
        if known.undashed {
            at = self.undashed(start, name, known);
        }
        self.evoked(start, name, known);
        let mut given = Given { is_settled: known.is_settled(words), ..Given::default() };
        while let Some(word) = words.get(at) {
            let begins = begins(word);
            if !ended && word.literal() == Some("--") {
                ended = true;
                at += 1;
                continue;
            }
            // A lone `-` is an argument; with a value behind it, it begins an option.
            let more = begins.len() > 1 || word.literal().is_none();
            if !ended && more && begins.starts_with(['-', '+']) {
                at = self.option_at(at, name, known, &mut given);
                continue;
            }
            if !ended {
                self.may_be_option(at, known);
            }
            match known.rest {
                Rest::Program(nth) if nth == position => {
                    self.folder(given.folder, at, name);
                    return self.program(at, name);
                }
                Rest::Place if position == 0 && given.has_code => {
                    return self.entrypoint(at, start, name, known);
                }
                Rest::Place if position == 1 => return self.program(at, name),
                Rest::Place => self.code(word, name, known),
                // `env -` starts with no variables.
                Rest::Assignments if word.literal() == Some("-") => {}
                Rest::Assignments => {
                    let Some((variable, _)) = begins.split_once('=') else {
                        self.folder(given.folder, at, name);
                        return self.program(at, name);
                    };
                    self.assignment(word, variable, known);
                }
                Rest::Shell(nth) if position >= nth => {
                    if position == nth
                        && matches!(
                            base_name(name),
                            "autossh" | "dbclient" | "plink" | "rsh" | "ssh"
                        )
                    {
                        self.read.remote.push(at);
                    }
                    self.shell_line(word, position == nth, name, known);
                }
                Rest::Code(nth) if position == nth && !given.has_code => {
                    given.has_code = true;
                    self.code(word, name, known);
                }
                Rest::Settings => self.setting(word, begins, name, known),
                Rest::Operands if begins.is_empty() => self.operand(word, name, known),
                Rest::Script => {
                    if !given.has_code {
                        self.code(word, name, known);
                    }
                    return;
                }
                Rest::Bare if begins.is_empty() => self.bare_file(word, name),
                Rest::BareBeforeEnd if begins.is_empty() && !ended => self.bare_file(word, name),
                Rest::Each(nth) if position >= nth => {
                    given.has_code = true;
                    self.code(word, name, known);
                }
                Rest::Awk if !given.has_code => {
                    given.has_code = true;
                    runs_variables = word.literal().is_none_or(may_run_variables);
                    self.awk_text(at, &given, name);
                    self.code(word, name, known);
                }
                Rest::Awk if runs_variables && !begins.starts_with(['.', '/']) => {
                    self.awk_variable(word, name);
                }
                Rest::Commands if position == 0 => return self.command(at, name, known),
                _ => {}
            }
            position += 1;
            at += 1;
        }
        let starts_shell = START_SHELL.contains(base_name(name))
            && match known.rest {
                Rest::Shell(nth) | Rest::Each(nth) => position <= nth,
                _ => true,
            };
        let is_script = matches!(known.rest, Rest::Script) && position == 0;
        let runs_stdin = known.runs_stdin || starts_shell || is_script;
        self.read.runs_stdin |= runs_stdin && !given.has_code;
    }

    /// Reads `VARIABLE=…` before the program of `env`.
    fn assignment(&mut self, word: &Word<'_>, variable: &str, known: &Program) {
        if is_dangerous_env(variable) && self.tainted(word, Shape::Fixed) {
            let message =
                format!("`{variable}` decides what programs load or run; a model must not set it");
            self.found("dangerous-env", word, message, &known.instead);
        }
    }

    /// Reads a word of a program that takes settings among its arguments.
    fn setting(&mut self, word: &Word<'_>, begins: &str, name: &str, known: &Program) {
        let starts_free = begins.is_empty() || begins.ends_with('=');
        if starts_free && self.tainted(word, Shape::Word) {
            let message =
                format!("`{name}` reads `NAME=value` here as a setting, which can name a program");
            self.found("unsafe-argument", word, message, &known.instead);
        }
    }

    /// Reads a word that may name an operand, and so choose what its value is.
    fn operand(&mut self, word: &Word<'_>, name: &str, known: &Program) {
        if self.tainted(word, Shape::Word) {
            let message =
                format!("`{name}` reads `name=value` here: a model must not add an operand");
            self.found("unsafe-argument", word, message, &known.instead);
        }
    }

    /// Reads the name of a file whose first character can mean something else.
    pub(super) fn bare_file(&mut self, word: &Word<'_>, name: &str) {
        if self.tainted(word, Shape::Word) && !self.is_path(word) {
            let message = format!(
                "`{name}` takes a value such as `@file`, `|command`, `+command` or `engine:name` \
                 here as more than a file name"
            );
            let help = "write a folder before the value, `./${args.x}`, or give its strings a \
                        pattern such as `^/srv/.+$` or `^[a-z0-9][a-z0-9._-]*$`";
            self.found("unsafe-argument", word, message, help);
        }
    }

    /// Reads the word at `start` as a cluster of options without a dash, if it is one, and the
    /// values that these take from the words behind it, one after the other. Returns where to read
    /// on.
    fn undashed(&mut self, start: usize, name: &str, known: &Program) -> usize {
        let Some(word) = self.words.get(start) else { return start };
        if begins(word).starts_with('-') {
            return start;
        }
        let Some(letters) = word.literal() else {
            if self.tainted(word, Shape::Fixed) {
                let message = format!("`{name}` reads its first argument as options");
                let help = "write the options as a literal before the value";
                self.found("unsafe-argument", word, message, help);
            }
            return start + 1;
        };
        let mut at = start + 1;
        for letter in letters.chars() {
            if is_letter(&known.code, letter) {
                if let Some(word) = self.words.get(at) {
                    self.code(word, name, known);
                }
            } else if !is_letter(&known.valued, letter) {
                continue;
            }
            at += 1;
        }
        at
    }

    /// Reads the word at `at` as what a program is to do.
    fn command(&mut self, at: usize, name: &str, known: &Program) {
        let word = &self.words[at];
        self.has_code_before |= !known.code.is_empty();
        match word.literal() {
            Some(command) => {
                let others = || TABLES.commands(known).find(|known| known.names.is_empty());
                if let Some(found) = command_of(known, command).or_else(others) {
                    return self.arguments(at + 1, &format!("{name} {command}"), found);
                } else if matches!(command, "netns" | "vrf" | "compose" | "alloc") {
                    self.command_below(at + 1, name, known);
                }
                self.options_behind(at + 1, name, known);
            }
            None if self.tainted(word, Shape::Fixed) => {
                let message = format!("a model must not choose what `{name}` does");
                self.found("model-chosen-program", word, message, &known.instead);
            }
            None => {}
        }
    }

    /// A command that begins one word later, as in `docker compose exec`.
    fn command_below(&mut self, at: usize, name: &str, known: &Program) {
        let Some(command) = self.words.get(at).and_then(Word::literal) else { return };
        if let Some(found) = command_of(known, command) {
            self.arguments(at + 1, &format!("{name} {command}"), found);
        }
    }

    /// The expression of `find`: tests with operands, and actions that run programs. A `--` ends
    /// nothing in it.
    fn expression(&mut self, start: usize, name: &str, known: &Program) {
        let mut at = start;
        while let Some(word) = self.words.get(at) {
            match word.literal() {
                Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                    let action = word.literal().unwrap_or_default();
                    self.program(at + 1, &format!("{name} {action}"));
                    let rest = &self.words[at + 1..];
                    let end =
                        rest.iter().position(|word| matches!(word.literal(), Some(";" | "+")));
                    at += end.unwrap_or(rest.len()) + 1;
                }
                Some(test) if known.valued.contains(test) => at += 1,
                None if begins(word).is_empty() && self.can_be_operator(word) => {
                    let message = format!(
                        "`{name}` takes a value such as `!`, `(` or `-delete` as a part of its \
                         expression here, also after `--`"
                    );
                    self.found("unsafe-argument", word, message, &known.instead);
                }
                Some(_) | None => {}
            }
            at += 1;
        }
    }

    /// A word that is run, or that names what is run.
    pub(super) fn code(&mut self, word: &Word<'_>, name: &str, known: &Program) {
        self.read.run.extend(self.words.iter().position(|other| std::ptr::eq(other, word)));
        // A plain word at the start names a program, or is a command; further back it is a part of
        // what the author wrote.
        if let Some(text) = word.literal() {
            let value = text.split_once('=').map_or(text, |(_, value)| value);
            let attached = text.find('/').map_or("", |at| &text[at..]);
            self.read.runs_stdin |=
                is_input(value) || text.starts_with('-') && is_input(attached) || value == "-";
        }
        if known.is_data(begins(word)) {
            return;
        }
        let tame = if follows_text(word, known) { Shape::Word } else { known.harmless() };
        if self.tainted(word, tame)
            && let Some(reference) = chosen(word)
        {
            let message = format!(
                "{reference} would be part of what `{name}` runs: a model must not write it"
            );
            let help = match self.scope.too_free(&reference) {
                Some(part) => format!("{part}. {}", known.instead),
                None => known.instead.clone(),
            };
            self.found("spliced-script", word, message, &help);
        }
    }

    /// A part of a line of text that a shell reads; the first names a program.
    fn shell_line(&mut self, word: &Word<'_>, first: bool, name: &str, known: &Program) {
        let leads = first && begins(word).is_empty();
        let tame = if leads { Shape::Fixed } else { Shape::Word };
        if self.tainted(word, tame)
            && let Some(reference) = chosen(word)
        {
            let message =
                format!("`{name}` hands {reference} to a shell, as part of one line of text");
            self.found("spliced-script", word, message, &known.instead);
        }
    }

    /// A file of a program in awk, which may be a setting of a variable.
    fn awk_variable(&mut self, word: &Word<'_>, name: &str) {
        if self.tainted(word, Shape::Word) {
            let message = format!(
                "`{name}` reads `name=value` here as a variable of a program that starts others"
            );
            let help = "write a folder before the name of the file: `./${args.x}`";
            self.found("unsafe-argument", word, message, help);
        }
    }

    /// Whether a value in a word can be more than `tame`.
    pub(super) fn tainted(&self, word: &Word<'_>, tame: Shape) -> bool {
        tainted(word, self.scope, tame)
    }

    /// Whether the value that a word begins with can only be a path: `/…` or `./…`.
    fn is_path(&self, word: &Word<'_>) -> bool {
        matches!(word.template.pieces.first(), Some(Piece::Reference(Reference::Arg(name)))
            if self.scope.arguments.get(name).is_some_and(|known| known.beginning == Beginning::Folder))
    }

    /// Whether a value in a word can be an operator of an expression, such as `!` or `-delete`.
    fn can_be_operator(&self, word: &Word<'_>) -> bool {
        self.tainted(word, Shape::Word)
            && word.template.references().any(|reference| match reference {
                Reference::Arg(name) => self.scope.arguments.get(name).is_none_or(|known| {
                    matches!(known.beginning, Beginning::Operator | Beginning::Dash)
                }),
                _ => false,
            })
    }

    pub(super) fn found(
        &mut self,
        code: &'static str,
        word: &Word<'_>,
        message: String,
        help: &str,
    ) {
        let found = Diagnostic::error(code, &word.node.span, message).help(help);
        self.read.unsafe_values.push(found);
    }
}

impl Program {
    /// Whether a word begins with a setting whose value is data: `opt-level=`, or `-Copt-level=`.
    fn is_data(&self, begins: &str) -> bool {
        self.data.iter().any(|setting| {
            let before = begins.strip_suffix(setting).map(|before| before.trim_end_matches('='));
            before.is_some_and(|before| before.is_empty() || self.code.contains(before))
        })
    }

    /// Whether the arguments hold all that makes its `settled` options harmless.
    pub(super) fn is_settled(&self, words: &[Word<'_>]) -> bool {
        let literals = || words.iter().filter_map(Word::literal);
        self.settled_by.iter().all(|one| literals().any(|literal| literal.starts_with(one)))
    }
}

/// What to do instead of letting a value choose the program behind a wrapper.
fn wrapped(wrapper: &str) -> &'static str {
    if wrapper.contains("-exec") {
        "write the program after `-exec` as a literal, and give it the value as an argument"
    } else {
        "write the program as a literal, and give it the value as an argument behind `--`; for a \
         choice \
         among several, declare one tool for each"
    }
}

pub(super) enum OptionMeaning {
    /// This word holds what is run.
    CodeHere,
    /// The next one does.
    CodeNext,
    /// This word holds a file, or what begins in another way and means more.
    FileHere,
    /// The next one does.
    FileNext,
    /// This word holds the folder of the program that follows.
    FolderHere,
    /// The next one does.
    FolderNext,
    /// The next one is a value.
    Value,
    Flag,
    /// It is in no list.
    Unknown,
}

pub(super) fn option(known: &Program, word: &Word<'_>, begins: &str) -> OptionMeaning {
    let whole = word.literal().is_some();
    // Where options are whole words, two dashes mean the same as one.
    let begins = begins
        .strip_prefix('-')
        .filter(|rest| known.whole_words && rest.starts_with('-'))
        .unwrap_or(begins);
    let name = begins.split_once('=').map_or(begins, |(name, _)| name);
    if known.code.contains(name) {
        return if begins.contains('=') || !whole {
            OptionMeaning::CodeHere
        } else {
            OptionMeaning::CodeNext
        };
    }
    if known.files.contains(name) {
        // With text between the option and the value, the author has written how the file begins.
        return match begins.split_once('=') {
            Some((_, "")) => OptionMeaning::FileHere,
            Some(_) => OptionMeaning::Flag,
            None if whole => OptionMeaning::FileNext,
            None => OptionMeaning::FileHere,
        };
    }
    if known.folder.contains(name) {
        return if begins.contains('=') || !whole {
            OptionMeaning::FolderHere
        } else {
            OptionMeaning::FolderNext
        };
    }
    if known.code.iter().any(|option| is_begun(option, begins, whole)) {
        return OptionMeaning::CodeHere;
    }
    if known.valued.contains(name) {
        return if begins.contains('=') || !whole {
            OptionMeaning::Flag
        } else {
            OptionMeaning::Value
        };
    }
    // An editor's `+command`.
    if begins.starts_with('+') && known.code.contains("+") {
        return OptionMeaning::CodeHere;
    }
    // Long options may be abbreviated to any beginning that no other option has.
    if name.len() > 2 && name.starts_with("--") {
        let begun = |options: &Words| options.iter().any(|option| option.starts_with(name));
        if begun(&known.code) {
            return if begins.contains('=') || !whole {
                OptionMeaning::CodeHere
            } else {
                OptionMeaning::CodeNext
            };
        } else if begun(&known.valued) && !begins.contains('=') && whole {
            return OptionMeaning::Value;
        }
    }
    let letters = begins.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let Some(letters) = letters.filter(|_| !known.whole_words) else {
        return OptionMeaning::Unknown;
    };
    // A cluster ends with the first letter that takes a value: the rest of the word is that value.
    for (at, letter) in letters.char_indices() {
        let last = at + letter.len_utf8() == letters.len() && whole;
        if is_letter(&known.code, letter) {
            return if last { OptionMeaning::CodeNext } else { OptionMeaning::CodeHere };
        } else if is_letter(&known.valued, letter) {
            return if last { OptionMeaning::Value } else { OptionMeaning::Flag };
        } else if !letter.is_ascii_alphanumeric() {
            break;
        }
    }
    OptionMeaning::Unknown
}

/// Whether a word is an option that `,`, `:` or `=` ends, with more behind it, or may become a long
/// option behind one dash by the value that it ends with: `-f${args.x}` for `-fplugin=…`.
fn is_begun(option: &str, begins: &str, whole: bool) -> bool {
    let single = option.starts_with('-') && !option.starts_with("--") && option.len() > 2;
    option.ends_with([',', ':', '=']) && begins.starts_with(option)
        || single && !whole && begins.len() > 1 && option.starts_with(begins)
}

/// The command of a program with a name.
fn command_of(known: &Program, name: &str) -> Option<&'static Program> {
    TABLES.commands(known).find(|command| command.names.contains(name))
}

/// Whether a program is an awk, whose options with a value set variables.
pub(super) fn is_awk(known: &Program) -> bool {
    matches!(known.rest, Rest::Awk)
}

/// Whether each value in a word stands behind text of which it becomes a part, so that a plain word
/// there is neither a program nor a command.
fn follows_text(word: &Word<'_>, known: &Program) -> bool {
    let mut text = String::new();
    let pieces = word.template.pieces.iter();
    pieces.into_iter().all(|piece| match piece {
        Piece::Literal(literal) => {
            text.push_str(literal);
            true
        }
        Piece::Reference(_) => {
            let within = if known.names.contains("sed") {
                within_slashes(&text)
            } else {
                let name = text.split_once(['=', ' ']).map_or("", |(_, value)| value);
                !name.is_empty() && !name.ends_with('=')
                    || !text.starts_with('-') && !text.is_empty() && !text.ends_with('=')
            };
            text.push('\u{fffc}');
            within
        }
    })
}

/// Whether what follows a text belongs to the pattern or the replacement of a command of sed.
fn within_slashes(text: &str) -> bool {
    let text = text.rsplit('=').next().unwrap_or(text);
    let command = text.trim_start_matches(|c: char| c.is_ascii_digit() || ",$ ".contains(c));
    let count = |sign: char| command.matches(sign).count();
    match command.strip_prefix('s').and_then(|rest| rest.chars().next()) {
        Some(sign) if !sign.is_ascii_alphanumeric() => matches!(count(sign), 1 | 2),
        _ => command.starts_with('/') && count('/') == 1,
    }
}

/// Whether a letter is one of the options.
fn is_letter(options: &Words, letter: char) -> bool {
    options.iter().any(|option| {
        let mut known = option.chars();
        known.next() == Some('-') && known.next() == Some(letter) && known.next().is_none()
    })
}

/// Whether a program in awk has a door to other programs, through which a variable might go.
fn may_run_variables(text: &str) -> bool {
    ["system", "|", "getline", "@"].iter().any(|door| text.contains(door))
}

/// The first argument of the call in a word, if there is one.
fn chosen(word: &Word<'_>) -> Option<Reference> {
    let mut references = word.template.references();
    references.find(|reference| matches!(reference, Reference::Arg(_))).cloned()
}
