//! Texts of a shell that do no more with their positional parameters than hand them to programs that
//! read or write files.

use crate::manifest::program::{interpreters, known};

/// Programs and builtins of a shell that run none of their arguments, and nothing that they read.
const HARMLESS: [&str; 38] = [
    ":",
    "[",
    "basename",
    "cat",
    "cd",
    "cp",
    "cut",
    "date",
    "dd",
    "df",
    "dirname",
    "du",
    "echo",
    "exit",
    "false",
    "grep",
    "head",
    "id",
    "ls",
    "md5sum",
    "mkdir",
    "mv",
    "nl",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "rm",
    "rmdir",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "tac",
    "tail",
    "tee",
    "touch",
    "wc",
];

/// Words after which a command begins.
const BEFORE_COMMANDS: [&str; 9] = ["!", "{", "do", "done", "else", "fi", "if", "then", "while"];

/// A word of a text.
#[derive(Default)]
struct TextWord {
    text: String,
    /// Whether a positional parameter is part of it.
    parameter: bool,
    begun: bool,
}

/// Whether a text hands its positional parameters, each between double quotes, to programs that are
/// known to run nothing, and does nothing else that would need a closer look.
pub(in crate::manifest) fn is_plain(text: &str) -> bool {
    read(text).is_some_and(|commands| commands.iter().all(|words| is_harmless(words)))
}

/// Whether a positional parameter in a text may stand where a program is named. A text that cannot
/// be read may hand it to one that is not seen.
pub(in crate::manifest) fn may_name_a_program(text: &str) -> bool {
    let starts_others = |name: &str| {
        STARTERS.contains(&name)
            || known::runs_arguments(name)
            || interpreters::is_interpreter(name)
    };
    read(text).is_none_or(|commands| {
        commands.iter().any(|words| match command(words) {
            Some((program, arguments)) => {
                program.parameter
                    || starts_others(&program.text) && arguments.iter().any(|word| word.parameter)
            }
            None => false,
        })
    })
}

/// Builtins of a shell that start what they are given.
const STARTERS: [&str; 7] = [".", "source", "eval", "exec", "command", "builtin", "trap"];

/// The program of a command, and its arguments.
fn command(words: &[TextWord]) -> Option<(&TextWord, &[TextWord])> {
    let begins = |word: &TextWord| !word.parameter && BEFORE_COMMANDS.contains(&word.text.as_str());
    words[words.iter().take_while(|word| begins(word)).count()..].split_first()
}

fn is_harmless(words: &[TextWord]) -> bool {
    let Some((program, arguments)) = command(words) else { return true };
    if program.parameter || !HARMLESS.contains(&program.text.as_str()) {
        return false;
    }
    // Of these, only `sort` has an option that starts a program.
    let mut ended = program.text != "sort";
    // An option of these may run its value, and `-v` of a builtin evaluates the name of a variable.
    let mut after_option = false;
    for word in arguments {
        let option = word.text.starts_with('-') && word.text != "--";
        let evaluates = match program.text.as_str() {
            "printf" => word.text.starts_with("-v"),
            "[" => option && !["-n", "-z", "-e", "-f", "-d"].contains(&word.text.as_str()),
            _ => false,
        };
        ended |= word.text == "--";
        if evaluates || word.parameter && (option || after_option || !ended) {
            return false;
        }
        after_option = word.text.starts_with("--") && word.text != "--";
    }
    true
}

/// The commands of a text; none if it has anything but plain words, quotes, redirections and
/// parameters.
fn read(text: &str) -> Option<Vec<Vec<TextWord>>> {
    let mut commands = vec![Vec::new()];
    let mut word = TextWord::default();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    let end = |commands: &mut Vec<Vec<TextWord>>, word: &mut TextWord| {
        let word = std::mem::take(word);
        if let Some(words) = commands.last_mut().filter(|_| word.begun) {
            words.push(word);
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '`' => return None,
            '\\' => {
                word.begun = true;
                word.text.push('\\');
                word.text.push(chars.next()?);
            }
            '"' => {
                word.begun = true;
                quoted = !quoted;
            }
            '$' => {
                word.begun = true;
                let braced = chars.next_if_eq(&'{').is_some();
                let mut name = String::new();
                let special = |c: &char| "@*#?!$-".contains(*c) || c.is_ascii_digit();
                if let Some(sign) = chars.next_if(special) {
                    name.push(sign);
                    // Without braces one digit is the whole name.
                    while let Some(digit) = chars.next_if(|c| braced && c.is_ascii_digit()) {
                        name.push(digit);
                    }
                } else {
                    while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                        name.push(c);
                    }
                }
                // `$_` is the last argument of the command before; `$(` and `$'` begin more.
                let more = braced && chars.next() != Some('}');
                if more || name.is_empty() || name == "_" || name.starts_with("BASH_") {
                    return None;
                }
                let parameter =
                    name.starts_with(|c: char| c == '@' || c == '*' || c.is_ascii_digit());
                if parameter && !quoted {
                    return None;
                }
                word.parameter |= parameter;
                word.text.push('\u{fffc}');
            }
            _ if quoted => word.text.push(c),
            '\'' => {
                word.begun = true;
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.text.push(c),
                    }
                }
            }
            '(' | ')' | '#' | '~' => return None,
            ';' | '&' | '|' | '\n' => {
                end(&mut commands, &mut word);
                commands.push(Vec::new());
            }
            '<' | '>' => {
                // The number of a file before it is no argument.
                if word.text.chars().all(|c| c.is_ascii_digit()) && !word.parameter {
                    word = TextWord::default();
                }
                end(&mut commands, &mut word);
                let again = chars.next_if_eq(&c).is_some();
                if again && c == '<' || chars.next_if_eq(&'(').is_some() {
                    return None;
                }
                if chars.next_if_eq(&'&').is_some() {
                    while chars.next_if(char::is_ascii_digit).is_some() {}
                }
            }
            c if c.is_whitespace() => end(&mut commands, &mut word),
            c => {
                word.begun = true;
                word.text.push(c);
            }
        }
    }
    end(&mut commands, &mut word);
    (!quoted).then_some(commands)
}
