//! The commands of a shell's text, as far as a reader of quotes, separators and redirections can tell
//! them apart.

use std::collections::BTreeMap;

use crate::template::{Piece, Reference, Template};

/// Nested substitutions that are read; what lies deeper is not.
const DEPTH_MAX: usize = 8;

/// Words of a shell's grammar after which a command begins.
const KEYWORDS: [&str; 11] =
    ["!", "{", "}", "do", "done", "elif", "else", "if", "then", "until", "while"];

/// One simple command.
#[derive(Debug, Default)]
pub(super) struct ShellCommand {
    /// The program and its arguments. What the shell puts in at run time is a reference.
    pub(super) words: Vec<Template>,
    /// The files that it writes through a redirection.
    pub(super) outputs: Vec<Template>,
    /// What it reads instead of the standard input of the text: a file, or nothing that has a name.
    pub(super) input: Option<Template>,
}

/// The commands of a text in its order, those of a substitution before the command that holds it.
pub(super) fn commands(text: &str) -> Vec<ShellCommand> {
    let mut reader = CommandReader::default();
    reader.read(text, 0);
    reader.commands
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Redirection {
    Output,
    Input,
    /// A here-document or a here-string.
    Text,
}

#[derive(Default)]
struct CommandReader {
    commands: Vec<ShellCommand>,
    /// The values that the text gives to variables, as far as they are known.
    variables: BTreeMap<String, String>,
}

/// The command and the word that are being read.
#[derive(Default)]
struct OpenCommand {
    command: ShellCommand,
    word: Template,
    begun: bool,
    redirection: Option<Redirection>,
    /// The ends of here-documents that begin on the next line.
    documents: Vec<String>,
}

impl OpenCommand {
    fn text(&mut self, text: &str) {
        self.begun = true;
        match self.word.pieces.last_mut() {
            Some(Piece::Literal(before)) => before.push_str(text),
            _ => self.word.pieces.push(Piece::Literal(text.to_owned())),
        }
    }

    fn reference(&mut self, name: &str) {
        self.begun = true;
        // No argument of a tool has such a name.
        self.word.pieces.push(Piece::Reference(Reference::Arg(format!("${name}"))));
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if !std::mem::take(&mut self.begun) {
            return;
        }
        match self.redirection.take() {
            Some(Redirection::Output) => self.command.outputs.push(word),
            Some(Redirection::Input) => self.command.input = Some(word),
            Some(Redirection::Text) => {
                self.documents.push(literal(&word).unwrap_or_default().to_owned());
                self.command.input = Some(Template { pieces: Vec::new() });
            }
            None => self.command.words.push(word),
        }
    }
}

impl CommandReader {
    fn read(&mut self, text: &str, depth: usize) {
        let mut open = OpenCommand::default();
        let mut quoted = false;
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at + c.len_utf8()..];
            at += c.len_utf8();
            match c {
                '\\' => {
                    let next = rest.chars().next();
                    at += next.map_or(0, char::len_utf8);
                    if let Some(next) = next.filter(|next| *next != '\n') {
                        open.text(next.encode_utf8(&mut [0; 4]));
                    }
                }
                '"' => {
                    open.text("");
                    quoted = !quoted;
                }
                '$' => at += self.expansion(rest, &mut open, depth),
                '`' => {
                    let inner = rest.split('`').next().unwrap_or_default();
                    self.substitution(inner, depth);
                    open.reference("(");
                    at += (inner.len() + 1).min(rest.len());
                }
                _ if quoted => open.text(c.encode_utf8(&mut [0; 4])),
                '\'' => {
                    let inner = rest.split('\'').next().unwrap_or_default();
                    open.text(inner);
                    at += (inner.len() + 1).min(rest.len());
                }
                '#' if !open.begun => at += rest.find('\n').unwrap_or(rest.len()),
                '<' | '>' => at += redirection(c, rest, &mut open),
                '\n' => {
                    let documents = self.end_command(&mut open);
                    at += documents.iter().fold(0, |skipped, end| {
                        skipped + document(rest.get(skipped..).unwrap_or_default(), end)
                    });
                }
                ';' | '&' | '|' | '(' | ')' => {
                    let documents = self.end_command(&mut open);
                    open.documents = documents;
                }
                _ if c.is_whitespace() => open.end_word(),
                _ => open.text(c.encode_utf8(&mut [0; 4])),
            }
        }
        self.end_command(&mut open);
    }

    /// Ends a command, and returns the here-documents that its line has begun.
    fn end_command(&mut self, open: &mut OpenCommand) -> Vec<String> {
        open.end_word();
        let OpenCommand { mut command, documents, .. } = std::mem::take(open);
        let keyword = |word: &Template| literal(word).is_some_and(|word| KEYWORDS.contains(&word));
        while let Some(first) = command.words.first() {
            if keyword(first) {
                command.words.remove(0);
                continue;
            }
            let Some((name, value)) = assignment(first) else { break };
            match value {
                Some(value) => self.variables.insert(name, value),
                None => self.variables.remove(&name),
            };
            command.words.remove(0);
        }
        let is_empty = command.words.is_empty() && command.outputs.is_empty();
        if !is_empty || command.input.is_some() {
            self.commands.push(command);
        }
        documents
    }

    fn substitution(&mut self, text: &str, depth: usize) {
        if depth < DEPTH_MAX {
            self.read(text, depth + 1);
        }
    }

    /// Reads what follows a `$`, and returns its length.
    fn expansion(&mut self, rest: &str, open: &mut OpenCommand, depth: usize) -> usize {
        if let Some(inner) = rest.strip_prefix('(') {
            let inner = &inner[..closing(inner)];
            if !inner.starts_with('(') {
                self.substitution(inner, depth);
            }
            open.reference("(");
            return (inner.len() + 2).min(rest.len());
        }
        if let Some(inner) = rest.strip_prefix('{') {
            let inner = inner.split('}').next().unwrap_or_default();
            self.variable(inner, open);
            return (inner.len() + 2).min(rest.len());
        }
        let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let length = match rest.chars().next() {
            Some(c) if is_name(c) && !c.is_ascii_digit() => {
                rest.find(|c: char| !is_name(c)).unwrap_or(rest.len())
            }
            Some(c) if c.is_ascii_digit() || "@*#?!$-".contains(c) => 1,
            _ => {
                open.text("$");
                return 0;
            }
        };
        self.variable(&rest[..length], open);
        length
    }

    fn variable(&self, name: &str, open: &mut OpenCommand) {
        match self.variables.get(name) {
            Some(value) => open.text(value),
            None => open.reference(name),
        }
    }
}

/// Where the parenthesis closes in which a text stands.
fn closing(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return at,
            ')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Reads what follows a `<` or a `>`, and returns its length.
fn redirection(sign: char, rest: &str, open: &mut OpenCommand) -> usize {
    // The number of a descriptor before it is no word.
    let number = literal(&open.word).is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit()));
    if number {
        open.word = Template { pieces: Vec::new() };
        open.begun = false;
    }
    open.end_word();
    let signs = rest.len() - rest.trim_start_matches(['<', '>', '|', '-']).len();
    if let Some(copied) = rest[signs..].strip_prefix('&') {
        // `>&2` names no file, `>&file` does.
        if copied.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return signs + 2;
        }
        open.redirection = Some(Redirection::Output);
        return signs + 1;
    }
    open.redirection = Some(match sign {
        '<' if rest.starts_with('<') => Redirection::Text,
        '<' if !rest.starts_with('>') => Redirection::Input,
        _ => Redirection::Output,
    });
    // The commands of `<(…)` are read as any others.
    if rest[signs..].starts_with('(') {
        open.redirection = None;
    }
    signs
}

/// The length of a here-document with that end.
fn document(text: &str, end: &str) -> usize {
    let lines = text.split_inclusive('\n');
    let mut length = 0;
    for line in lines {
        length += line.len();
        if line.trim() == end {
            return length;
        }
    }
    // The end of a here-string is no line.
    0
}

/// The text of a word, if the shell puts nothing in.
pub(super) fn literal(word: &Template) -> Option<&str> {
    match word.pieces.as_slice() {
        [] => Some(""),
        [Piece::Literal(text)] => Some(text),
        _ => None,
    }
}

/// The name of a variable that a word sets, with the value if that is known.
fn assignment(word: &Template) -> Option<(String, Option<String>)> {
    let Some(Piece::Literal(begins)) = word.pieces.first() else { return None };
    let (name, _) = begins.split_once('=')?;
    let fits = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric());
    let value = || literal(word)?.split_once('=').map(|(_, value)| value.to_owned());
    fits.then(|| (name.to_owned(), value()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let words = |words: &[Template]| {
            let shown = words.iter().map(|word| literal(word).unwrap_or("?").to_owned());
            shown.collect::<Vec<_>>().join(" ")
        };
        let commands = commands(text);
        let shown = commands.iter().map(|command| {
            let input = command.input.as_ref().map(|input| words(std::slice::from_ref(input)));
            format!(
                "{}{}{}",
                words(&command.words),
                command.outputs.iter().fold(String::new(), |all, file| {
                    all + " >" + &words(std::slice::from_ref(file))
                }),
                input.map_or(String::new(), |input| format!(" <{input}")),
            )
        });
        shown.collect()
    }

    #[test]
    fn commands_are_told_apart() {
        for (text, expected) in [
            ("cat | sh", &["cat", "sh"][..]),
            ("read x; eval \"$x\"", &["read x", "eval ?"]),
            ("if a; then b 'c d'; fi", &["a", "b c d", "fi"]),
            ("f=g.sh; sort -o \"$f\" in; sh \"$f\"", &["sort -o g.sh in", "sh g.sh"]),
            ("cat > x.sh 2>&1; sh < x.sh", &["cat >x.sh", "sh <x.sh"]),
            ("x=$(cat); $x", &["cat", "?"]),
            ("sh <<END\neval x\nEND\nls", &["sh <", "ls"]),
            ("bash <(cat)", &["bash", "cat"]),
            ("echo `id` # eval", &["id", "echo ?"]),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn the_reader_accepts_any_text() {
        for text in
            ["$", "${", "$(", "`", "\\", "<<", "<<E\n", ">", "'", "\"", "é$é(", "2>", ">&", "<<<é"]
        {
            let _ = commands(text);
        }
    }
}
