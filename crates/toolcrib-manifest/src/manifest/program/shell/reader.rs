//! The reader of a shell's text. It reads any text in one pass, and gives up on none: what no shell would
//! accept becomes some command or other.

use std::ops::Range;

use super::syntax::{
    Assignment, Command, Form, Kind, Part, Redirection, Variable, Way, Word, split_name,
};

/// Constructs within constructs that are read; what lies deeper is plain text.
pub(super) const DEPTH_MAX: usize = 24;

/// Words after which a command begins.
const BEFORE_COMMANDS: [&str; 11] =
    ["!", "coproc", "do", "elif", "else", "if", "then", "time", "until", "while", "{"];

/// Builtins whose arguments are assignments.
pub(super) const DECLARATIONS: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];

/// The commands of a text.
pub(super) fn read(text: &str) -> Vec<Command> {
    read_to_end(text).0
}

/// The commands of a text; and, if something in it has no end, where it begins and what is missing.
pub(super) fn read_to_end(text: &str) -> (Vec<Command>, Option<Unfinished>) {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
        end: End::Text,
        documents: Vec::new(),
        open: Vec::new(),
        unfinished: None,
    };
    let commands = reader.commands(End::Text);
    let open = reader.open.first().copied();
    (commands, reader.unfinished.or(open))
}

/// Where something begins, and what would end it.
pub(super) type Unfinished = (usize, &'static str);

/// What ends a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Text,
    Parenthesis,
    Backtick,
}

/// A here-document whose lines come later.
pub(super) struct Document {
    end: String,
    is_literal: bool,
}

pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) depth: usize,
    /// What ends the list of commands that is being read.
    pub(super) end: End,
    pub(super) documents: Vec<Document>,
    /// The compound commands around the position, with their ends.
    pub(super) open: Vec<Unfinished>,
    /// The first quote or substitution without an end.
    pub(super) unfinished: Option<Unfinished>,
}

/// The command that is being read, and what is around it.
#[derive(Default)]
struct Open {
    command: Command,
    commands: Vec<Command>,
    /// The `{` and `(` that are open around it, each with the function whose body it begins, if it begins one.
    blocks: Vec<(char, Option<String>)>,
    /// The function whose body begins next.
    header: Option<String>,
    /// For each `case` around it, whether a pattern comes next.
    cases: Vec<bool>,
}

impl Open {
    fn function(&self) -> Option<String> {
        self.blocks.iter().rev().find_map(|(_, name)| name.clone())
    }

    /// Ends the command. The next one reads its output if `is_piped`.
    fn end(&mut self, is_piped: bool) {
        let mut command = std::mem::take(&mut self.command);
        self.command.is_piped = is_piped;
        let is_empty = command.words.is_empty()
            && command.assignments.is_empty()
            && command.redirections.is_empty();
        if is_empty && command.kind != Kind::End {
            // A line break behind `|` keeps the pipe.
            self.command.is_piped |= command.is_piped;
            self.command.is_coproc = command.is_coproc;
            return;
        }
        command.function = self.function();
        self.commands.push(command);
    }

    fn close(&mut self, opening: char) {
        if self.blocks.last().is_some_and(|(open, _)| *open == opening) {
            self.blocks.pop();
        }
        self.command.kind = Kind::End;
    }

    fn is_start(&self) -> bool {
        self.command.words.is_empty() && self.command.kind == Kind::Simple
    }
}

impl Reader<'_> {
    pub(super) fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn begins(&self, what: &str) -> bool {
        self.rest().starts_with(what)
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Skips this text if it is there.
    pub(super) fn skips(&mut self, what: &str) -> bool {
        let is_there = self.begins(what);
        self.at += if is_there { what.len() } else { 0 };
        is_there
    }

    pub(super) fn commands(&mut self, end: End) -> Vec<Command> {
        let mut open = Open::default();
        let outer = std::mem::replace(&mut self.end, end);
        let start = self.at.saturating_sub(1);
        self.depth += 1;
        while let Some(next) = self.peek() {
            match next {
                ')' if open.cases.last() == Some(&true) => {
                    self.at += 1;
                    open.command.kind = Kind::Pattern;
                    open.end(false);
                    if let Some(pattern) = open.cases.last_mut() {
                        *pattern = false;
                    }
                }
                ')' if open.blocks.iter().any(|(open, _)| *open == '(') => {
                    self.at += 1;
                    open.end(false);
                    while open.blocks.last().is_some_and(|(block, _)| *block != '(') {
                        open.blocks.pop();
                    }
                    open.close('(');
                }
                ')' if end == End::Parenthesis => {
                    self.at += 1;
                    break;
                }
                '`' if end == End::Backtick => {
                    self.at += 1;
                    break;
                }
                ')' => {
                    self.at += 1;
                    open.end(false);
                }
                '(' if open.cases.last() == Some(&true) => self.at += 1,
                '(' => self.parenthesis(&mut open),
                '\n' => {
                    self.at += 1;
                    let is_piped = open.is_start() && open.command.is_piped;
                    self.documents(&mut open);
                    open.end(is_piped);
                }
                ';' => {
                    self.at += 1;
                    open.end(false);
                    if self.skips(";") | self.skips("&") && !open.cases.is_empty() {
                        self.skips("&");
                        if let Some(pattern) = open.cases.last_mut() {
                            *pattern = true;
                        }
                    }
                }
                '|' if open.cases.last() == Some(&true) => {
                    self.at += 1;
                }
                '|' => {
                    self.at += 1;
                    let is_or = self.skips("|");
                    self.skips("&");
                    open.end(!is_or);
                }
                '&' if self.begins("&>") => self.redirection(&mut open),
                '&' => {
                    self.at += 1;
                    self.skips("&");
                    open.end(false);
                }
                '#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                '<' | '>' if !self.begins("<(") && !self.begins(">(") => {
                    self.redirection(&mut open);
                }
                _ if next.is_whitespace() => self.at += next.len_utf8(),
                _ => self.word_of(&mut open),
            }
        }
        let is_ended = end == End::Text || self.text[..self.at].ends_with([')', '`']);
        if !is_ended {
            self.unfinished.get_or_insert((start, "end of the substitution"));
        }
        self.documents(&mut open);
        open.end(false);
        self.depth -= 1;
        self.end = outer;
        open.commands
    }

    /// Reads `(` where no word has begun: a subshell, an expression, or the header of a function.
    fn parenthesis(&mut self, open: &mut Open) {
        if self.begins("((") && open.command.words.is_empty() {
            let start = self.at;
            self.at += 2;
            let parts = vec![Part::Expression(self.expression("))"))];
            open.command.kind = Kind::Expression;
            open.command.words.push(Word { range: start..self.at, parts });
            return;
        }
        self.at += 1;
        let is_header = open.command.words.len() == 1
            && self.rest().trim_start_matches([' ', '\t']).starts_with(')');
        if is_header && let Some(name) = open.command.words[0].literal() {
            self.at += self.rest().find(')').map_or(0, |at| at + 1);
            open.command = Command::default();
            open.header = Some(name);
            return;
        }
        open.end(open.command.is_piped);
        let function = open.header.take();
        open.blocks.push(('(', function));
    }

    /// Reads a word and puts it where it belongs.
    fn word_of(&mut self, open: &mut Open) {
        let word = self.word(open.command.words.is_empty());
        let literal = word.literal();
        let text = literal.as_deref().unwrap_or_default();
        // The number of a descriptor is no word.
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let raw = self.text.get(word.range.clone()).unwrap_or_default();
        // `{fd}<file` keeps the number in a variable.
        let is_kept = raw.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let is_kept = is_kept.is_some_and(|name| !name.is_empty() && split_name(name).1.is_empty());
        if (is_number || is_kept) && self.begins("<") | self.begins(">") {
            return;
        }
        if open.cases.last() == Some(&true) && open.is_start() {
            if raw == "esac" {
                self.compound(raw, word.range.start);
                open.cases.pop();
                open.command.kind = Kind::End;
            } else {
                open.command.words.push(word);
            }
            return;
        }
        match open.command.kind {
            Kind::Test if raw == "]]" => return open.end(false),
            Kind::Case if raw == "in" && !open.command.words.is_empty() => {
                open.end(false);
                return open.cases.push(true);
            }
            Kind::Loop if raw == "in" && open.command.words.len() == 1 => return,
            _ => {}
        }
        if open.is_start() && open.command.assignments.is_empty() {
            self.compound(raw, word.range.start);
            match raw {
                "{" => {
                    let function = open.header.take();
                    open.blocks.push(('{', function));
                    return;
                }
                "}" => return open.close('{'),
                "done" | "fi" => return open.command.kind = Kind::End,
                "esac" => {
                    open.cases.pop();
                    return open.command.kind = Kind::End;
                }
                "for" | "select" => return open.command.kind = Kind::Loop,
                "case" => return open.command.kind = Kind::Case,
                "[[" => {
                    open.command.kind = Kind::Test;
                    return self.test(open);
                }
                "function" => {
                    self.at +=
                        self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
                    let name = self.word(false);
                    open.header = name.literal();
                    return;
                }
                "coproc" => {
                    self.skip_name_of_coproc();
                    return open.command.is_coproc = true;
                }
                _ if BEFORE_COMMANDS.contains(&raw) => return,
                _ => {}
            }
        }
        let declares = open.command.words.first().and_then(Word::literal);
        let declares = declares.is_some_and(|name| DECLARATIONS.contains(&name.as_str()));
        if (open.is_start() || declares) && is_assignment(&word) {
            let assignment = self.assignment(word);
            open.command.assignments.push(assignment);
            return;
        }
        open.command.words.push(word);
    }

    /// Skips the name that a coprocess may have when it is a compound command.
    fn skip_name_of_coproc(&mut self) {
        let rest = self.rest().trim_start_matches([' ', '\t']);
        let (name, behind) = split_name(rest);
        if !name.is_empty() && behind.trim_start_matches([' ', '\t']).starts_with(['{', '(']) {
            self.at = self.text.len() - behind.len();
        }
    }

    /// Records the beginning or the end of a compound command.
    fn compound(&mut self, word: &str, at: usize) {
        let end = match word {
            "if" => "`fi`",
            "do" => "`done`",
            "case" => "`esac`",
            "{" => "`}`",
            _ => "",
        };
        if !end.is_empty() {
            return self.open.push((at, end));
        }
        let ends = |end: &str| end.trim_matches('`') == word;
        if self.open.last().is_some_and(|(_, end)| ends(end)) {
            self.open.pop();
        }
    }

    /// Reads the words up to `]]`, in which `<`, `&&` and parentheses are words of their own.
    fn test(&mut self, open: &mut Open) {
        while let Some(next) = self.peek() {
            if next.is_whitespace() || "<>&|()".contains(next) {
                self.at += next.len_utf8();
            } else if next == ';' {
                break;
            } else {
                let from = self.at;
                let word = self.word(false);
                if self.text.get(word.range.clone()) == Some("]]") {
                    break;
                }
                if self.at == from {
                    self.bump();
                }
                open.command.words.push(word);
            }
        }
        let is_piped = false;
        if open.command.words.is_empty() {
            open.command.kind = Kind::Simple;
        }
        open.end(is_piped);
    }

    /// The assignment that a word is; an array's values follow it.
    fn assignment(&mut self, mut word: Word) -> Assignment {
        let mut index = Vec::new();
        let begins = word.begins().to_owned();
        let (name, rest) = split_name(&begins);
        if rest.starts_with('[') {
            let skipped = name.len() + 1;
            index = take_index(&mut word, skipped);
        } else if let Some(Part::Text(text)) = word.parts.first_mut() {
            rest.trim_start_matches('+').trim_start_matches('=').clone_into(text);
        }
        word.parts.retain(|part| *part != Part::Text(String::new()));
        let name = name.to_owned();
        if self.begins("(") && word.parts.is_empty() {
            self.at += 1;
            let mut values = Vec::new();
            while let Some(next) = self.peek() {
                match next {
                    ')' => {
                        self.at += 1;
                        break;
                    }
                    '#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                    _ if next.is_whitespace() || ";&|<>(".contains(next) => {
                        self.at += next.len_utf8();
                    }
                    _ => {
                        let from = self.at;
                        let is_indexed = self.begins("[");
                        let mut value = self.word(false);
                        if is_indexed {
                            index.extend(take_index(&mut value, 1));
                        }
                        values.push(value);
                        if self.at == from {
                            self.bump();
                        }
                    }
                }
            }
            return Assignment { name, index, values };
        }
        Assignment { name, index, values: vec![word] }
    }

    /// Reads a redirection and its target.
    fn redirection(&mut self, open: &mut Open) {
        let way = if self.skips("<<<") {
            Way::Text
        } else if self.skips("<<-") || self.skips("<<") {
            return self.document(open);
        } else if self.skips("<&") {
            Way::Descriptor
        } else if self.skips("<>") || self.skips("&>>") || self.skips("&>") {
            Way::Output
        } else if self.skips("<") {
            Way::Input
        } else {
            self.at += 1;
            let _ = self.skips(">") || self.skips("|");
            if self.skips("&") && self.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-')
            {
                self.at += 1;
                return;
            }
            Way::Output
        };
        self.blanks();
        let target = self.word(false);
        open.command.redirections.push(Redirection { way, target });
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    /// Records a here-document: `<<END`, `<<-END`, `<<'END'`.
    fn document(&mut self, open: &mut Open) {
        self.blanks();
        let rest = self.rest();
        let length =
            rest.find(|c: char| c.is_whitespace() || ";&|<>()".contains(c)).unwrap_or(rest.len());
        let written = &rest[..length];
        let end: String = written.chars().filter(|c| !"'\"\\".contains(*c)).collect();
        let is_literal = end.len() != written.len();
        let at = self.at;
        self.at += length;
        if !end.is_empty() {
            self.documents.push(Document { end, is_literal });
            let target = Word { range: at..self.at, parts: vec![Part::Text(DOCUMENT.to_owned())] };
            open.command.redirections.push(Redirection { way: Way::Text, target });
        }
    }

    /// Reads the lines of the here-documents that the line before has begun.
    fn documents(&mut self, open: &mut Open) {
        for Document { end, is_literal } in std::mem::take(&mut self.documents) {
            let start = self.at;
            let mut stop = start;
            let mut after = start;
            for line in self.rest().split_inclusive('\n') {
                after += line.len();
                if line.trim() == end {
                    break;
                }
                stop = after;
            }
            let text = self.text.get(start..stop).unwrap_or_default();
            let parts = if is_literal {
                vec![Part::Text(text.to_owned())]
            } else {
                let mut inner = Reader {
                    text: self.text.get(..stop).unwrap_or_default(),
                    at: start,
                    depth: self.depth,
                    end: End::Text,
                    documents: Vec::new(),
                    open: Vec::new(),
                    unfinished: None,
                };
                inner.quoted(None)
            };
            let commands = open.commands.iter_mut().rev();
            let mut redirections: Vec<&mut Redirection> = std::iter::once(&mut open.command)
                .chain(commands)
                .flat_map(|command| command.redirections.iter_mut())
                .collect();
            // Several on one line have their texts in its order.
            redirections
                .retain(|one| one.target.parts.as_slice() == [Part::Text(DOCUMENT.to_owned())]);
            if let Some(waiting) = redirections.iter_mut().min_by_key(|one| one.target.range.start)
            {
                waiting.target.parts = parts;
            }
            self.at = after;
        }
    }
}

/// Stands in a here-document's redirection until its lines are read.
const DOCUMENT: &str = "\u{0}document";

/// Takes the index out of a word, `[` … `]=`, whose inside begins at a byte of the first text: the parts
/// between are an expression.
fn take_index(word: &mut Word, start: usize) -> Vec<Part> {
    let mut index = Vec::new();
    let mut parts = std::mem::take(&mut word.parts).into_iter();
    let mut inner = match parts.next() {
        Some(Part::Text(text)) => text.get(start..).map(str::to_owned),
        _ => None,
    };
    loop {
        if let Some(text) = inner.take() {
            if let Some((before, after)) = text.split_once(']') {
                index.extend(names_in(before, &word.range));
                let value = after.trim_start_matches('+').trim_start_matches('=');
                word.parts = std::iter::once(Part::Text(value.to_owned())).chain(parts).collect();
                return index;
            }
            index.extend(names_in(&text, &word.range));
        }
        match parts.next() {
            Some(Part::Text(text)) => inner = Some(text),
            Some(other) => index.push(other),
            None => return index,
        }
    }
}

/// The variables that the text of an index names.
fn names_in(text: &str, range: &Range<usize>) -> Vec<Part> {
    let words = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    let names = words.filter(|word| !split_name(word).0.is_empty());
    let variable = |name: &str| Variable::new(name.to_owned(), range.clone(), true, Form::Plain);
    names.map(|name| Part::Variable(variable(name))).collect()
}

/// Whether a word is `name=…`, `name+=…` or `name[…]=…`.
fn is_assignment(word: &Word) -> bool {
    let (name, rest) = split_name(word.begins());
    if name.is_empty() {
        return false;
    }
    let closes = |part: &Part| matches!(part, Part::Text(text) if text.contains("]=") || text.contains("]+="));
    rest.starts_with('=')
        || rest.starts_with("+=")
        || rest.starts_with('[') && word.parts.iter().any(closes)
}
