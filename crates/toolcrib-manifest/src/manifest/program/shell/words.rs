//! The words of a shell's text: quotes, expansions, substitutions and expressions.

use std::ops::Range;

use super::reader::{DEPTH_MAX, End, Reader};
use super::syntax::{Command, Form, Part, Variable, Word, split_name};

impl Reader<'_> {
    /// Reads one word. An assignment of an array ends behind its `=`.
    pub(super) fn word(&mut self, may_assign: bool) -> Word {
        let start = self.at;
        let mut parts = Vec::new();
        while let Some(next) = self.peek() {
            match next {
                '\\' => {
                    self.at += 1;
                    if let Some(escaped) = self.bump().filter(|escaped| *escaped != '\n') {
                        text(&mut parts, escaped.encode_utf8(&mut [0; 4]));
                    } else if parts.is_empty() && self.at - start == 2 {
                        // A joined line alone is no word, but it moves on.
                        text(&mut parts, "");
                    }
                }
                '\'' => {
                    let start = self.at;
                    self.at += 1;
                    if !self.rest().contains('\'') {
                        self.unfinished.get_or_insert((start, "closing quote"));
                    }
                    let rest = self.rest();
                    let inner = rest.split('\'').next().unwrap_or_default().to_owned();
                    self.at += (inner.len() + 1).min(rest.len());
                    text(&mut parts, &inner);
                }
                '"' => {
                    self.at += 1;
                    text(&mut parts, "");
                    parts.extend(self.quoted(Some('"')));
                }
                '$' | '`' if next != '`' || self.end != End::Backtick => {
                    let part = self.expansion(false);
                    push(&mut parts, part);
                }
                '<' | '>' if parts.is_empty() && (self.begins("<(") || self.begins(">(")) => {
                    self.at += 2;
                    let commands = self.below(End::Parenthesis);
                    let is_written = next == '>';
                    parts.push(Part::Process { range: start..self.at, commands, is_written });
                }
                '(' if may_assign && ends_with_assignment(&parts) => break,
                // A pattern such as `@(a|b)`.
                '(' if self.text[..self.at].ends_with(['@', '?', '*', '+']) && self.at > start => {
                    let rest = self.rest();
                    let inner = rest.find(')').map_or(rest.len(), |at| at + 1);
                    let piece = rest[..inner].to_owned();
                    self.at += inner;
                    text(&mut parts, &piece);
                }
                '`' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                _ if next.is_whitespace() => break,
                _ => {
                    self.at += next.len_utf8();
                    text(&mut parts, next.encode_utf8(&mut [0; 4]));
                }
            }
        }
        Word { range: start..self.at, parts }
    }

    /// Reads to a closing sign, or to the end, as within double quotes.
    pub(super) fn quoted(&mut self, close: Option<char>) -> Vec<Part> {
        let mut parts = Vec::new();
        let start = self.at.saturating_sub(1);
        let mut is_closed = close.is_none();
        while let Some(next) = self.peek() {
            match next {
                _ if Some(next) == close => {
                    self.at += 1;
                    is_closed = true;
                    break;
                }
                '\\' => {
                    self.at += 1;
                    match self.bump() {
                        Some(escaped) if "$`\"\\".contains(escaped) => {
                            text(&mut parts, escaped.encode_utf8(&mut [0; 4]));
                        }
                        Some('\n') | None => {}
                        Some(other) => {
                            text(&mut parts, "\\");
                            text(&mut parts, other.encode_utf8(&mut [0; 4]));
                        }
                    }
                }
                '$' | '`' => {
                    let part = self.expansion(true);
                    push(&mut parts, part);
                }
                _ => {
                    self.at += next.len_utf8();
                    text(&mut parts, next.encode_utf8(&mut [0; 4]));
                }
            }
        }
        if !is_closed {
            self.unfinished.get_or_insert((start, "closing quote"));
        }
        parts
    }

    /// Reads commands within a construct.
    pub(super) fn below(&mut self, end: End) -> Vec<Command> {
        if self.depth < DEPTH_MAX {
            let documents = std::mem::take(&mut self.documents);
            let commands = self.commands(end);
            self.documents = documents;
            return commands;
        }
        self.at = self.text.len();
        Vec::new()
    }

    /// Reads what begins with `$` or a backtick.
    pub(super) fn expansion(&mut self, is_quoted: bool) -> Part {
        let start = self.at;
        if self.skips("`") {
            let commands = self.below(End::Backtick);
            return Part::Substitution { range: start..self.at, commands };
        }
        if self.skips("$((") {
            return Part::Expression(self.expression("))"));
        }
        if self.skips("$(") {
            let commands = self.below(End::Parenthesis);
            return Part::Substitution { range: start..self.at, commands };
        }
        if self.skips("$[") {
            return Part::Expression(self.expression("]"));
        }
        if !is_quoted && self.skips("$'") {
            let mut inner = String::new();
            while let Some(next) = self.bump().filter(|next| *next != '\'') {
                if next == '\\' {
                    inner.extend(self.bump());
                } else {
                    inner.push(next);
                }
            }
            return Part::Text(inner);
        }
        if self.skips("${") {
            return self.braces(start, is_quoted);
        }
        self.at += 1;
        let name = self.name();
        if name.is_empty() {
            return Part::Text("$".to_owned());
        }
        Part::Variable(Variable::new(name, start..self.at, is_quoted, Form::Plain))
    }

    /// Reads the name of a variable or the sign of a parameter.
    fn name(&mut self) -> String {
        let name = split_name(self.rest()).0;
        let length = match self.peek() {
            Some(sign)
                if name.is_empty() && (sign.is_ascii_digit() || "@*#?$!-".contains(sign)) =>
            {
                1
            }
            _ => name.len(),
        };
        self.at += length;
        self.text[self.at - length..self.at].to_owned()
    }

    /// Reads `${…}` from behind its brace.
    fn braces(&mut self, start: usize, is_quoted: bool) -> Part {
        let mut form = Form::Plain;
        if self.begins("#") && !self.begins("#}") {
            self.at += 1;
            form = Form::Length;
        } else if self.skips("!") {
            form = Form::Indirect;
        }
        let mut name = self.name();
        // Positional parameters may have several digits here.
        while self.peek().is_some_and(|c| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_digit())
        {
            name.extend(self.bump());
        }
        let mut expressions = Vec::new();
        let mut operands = Vec::new();
        if self.skips("[") {
            if self.begins("@]") || self.begins("*]") {
                self.at += 2;
                // `${!NAME[@]}` lists the indexes.
                form = if form == Form::Indirect { Form::Keys } else { form };
            } else {
                expressions.extend(self.expression("]"));
            }
        } else if form == Form::Indirect && (self.begins("@}") || self.begins("*}")) {
            self.at += 1;
            form = Form::Names;
        }
        if self.begins("@P") || self.begins("@p") {
            form = Form::Expanded;
        } else if name.is_empty() && form == Form::Plain || !self.begins_operator(&name) {
            form = Form::Unknown;
        }
        let is_offset = self.begins(":") && !self.rest()[1..].starts_with(['-', '=', '?', '+']);
        let is_assigned = self.begins(":=") || self.begins("=");
        if is_offset {
            self.at += 1;
            expressions.extend(self.expression("}"));
        } else {
            operands = self.operands(is_quoted);
        }
        let mut variable = Variable::new(name, start..self.at, is_quoted, form);
        variable.expressions = expressions;
        variable.operands = operands;
        variable.is_assigned = is_assigned;
        Part::Variable(variable)
    }

    /// Whether what follows the name in `${…}` is known: its end, or an operator.
    fn begins_operator(&self, name: &str) -> bool {
        // References, which have no place in a text, are reported elsewhere.
        let is_reference = matches!(name, "args" | "ctx" | "env" | "secret") && self.begins(".");
        is_reference || self.peek().is_none_or(|next| "}:-=?+#%/^,@~".contains(next))
    }

    /// Reads what stands behind the name in `${…}`, up to its brace. Only the text of a word that may take the place
    /// of the value is kept, not that of a pattern.
    fn operands(&mut self, is_quoted: bool) -> Vec<Part> {
        let mut parts = Vec::new();
        let behind_colon = usize::from(self.begins(":"));
        let is_word = self.rest()[behind_colon..].starts_with(['-', '=', '+']);
        self.at += if is_word { behind_colon + 1 } else { 0 };
        while let Some(next) = self.peek() {
            match next {
                '}' => {
                    self.at += 1;
                    break;
                }
                '"' => {
                    self.at += 1;
                    parts.extend(self.quoted(Some('"')));
                }
                '\'' if !is_quoted => {
                    self.at += 1;
                    let inner = self.rest().split('\'').next().unwrap_or_default().to_owned();
                    self.at += (inner.len() + 1).min(self.rest().len());
                    if is_word {
                        text(&mut parts, &inner);
                    }
                }
                '\\' => {
                    self.at += 1;
                    if let Some(escaped) = self.bump().filter(|_| is_word) {
                        text(&mut parts, escaped.encode_utf8(&mut [0; 4]));
                    }
                }
                '$' | '`' if next != '`' || self.end != End::Backtick => {
                    self.depth += 1;
                    let part = if self.depth < DEPTH_MAX {
                        self.expansion(is_quoted)
                    } else {
                        self.at += 1;
                        Part::Text(next.to_string())
                    };
                    self.depth -= 1;
                    push(&mut parts, part);
                }
                _ => {
                    self.at += next.len_utf8();
                    if is_word {
                        text(&mut parts, next.encode_utf8(&mut [0; 4]));
                    }
                }
            }
        }
        parts
    }

    /// Reads an expression up to its end: numbers, operators, names of variables and expansions.
    pub(super) fn expression(&mut self, end: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut inside = 0_usize;
        self.depth += 1;
        while let Some(next) = self.peek() {
            if inside == 0 && self.begins(end) {
                self.at += end.len();
                break;
            }
            match next {
                '(' | '[' => {
                    inside += 1;
                    self.at += 1;
                }
                ')' | ']' => {
                    inside = inside.saturating_sub(1);
                    self.at += 1;
                }
                '$' | '`' if self.depth < DEPTH_MAX => {
                    let part = self.expansion(true);
                    push(&mut parts, part);
                }
                '\\' => {
                    self.at += 1;
                    self.bump();
                }
                _ if next.is_ascii_digit() => {
                    let rest = self.rest();
                    let length = rest
                        .find(|c: char| !c.is_ascii_alphanumeric() && c != '#' && c != '_')
                        .unwrap_or(rest.len());
                    self.at += length;
                }
                _ if next == '_' || next.is_ascii_alphabetic() => {
                    let start = self.at;
                    let name = self.name();
                    let range = start..self.at;
                    parts.push(Part::Variable(Variable::new(name, range, true, Form::Plain)));
                }
                _ => self.at += next.len_utf8(),
            }
        }
        self.depth -= 1;
        parts
    }
}

impl Variable {
    pub(super) fn new(name: String, range: Range<usize>, is_quoted: bool, form: Form) -> Self {
        let (expressions, operands) = (Vec::new(), Vec::new());
        Self { name, range, is_quoted, form, expressions, operands, is_assigned: false }
    }
}

/// Adds text to the last part, if it is text.
fn text(parts: &mut Vec<Part>, piece: &str) {
    match parts.last_mut() {
        Some(Part::Text(before)) => before.push_str(piece),
        _ => parts.push(Part::Text(piece.to_owned())),
    }
}

fn push(parts: &mut Vec<Part>, part: Part) {
    match part {
        Part::Text(piece) => text(parts, &piece),
        other => parts.push(other),
    }
}

fn ends_with_assignment(parts: &[Part]) -> bool {
    match parts {
        [Part::Text(text)] => {
            let (name, rest) = split_name(text);
            !name.is_empty() && matches!(rest, "=" | "+=")
        }
        _ => false,
    }
}
