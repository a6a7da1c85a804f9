//! Reads a shell text: where variables are used, and whether their values stay values.
//!
//! It reads quotes, expansions, here-documents and comments, but does not parse commands. It
//! reports too much rather than too little, as warnings unless code is run.

use std::ops::Range;

/// One use of a variable.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::manifest) struct Use<'v> {
    /// Where it stands in the text: `$NAME`, or `${NAME` with what follows up to its `}`.
    pub(in crate::manifest) range: Range<usize>,
    pub(in crate::manifest) name: &'v str,
    /// The danger for the value there; `None` if it stays a value.
    pub(in crate::manifest) danger: Option<Danger>,
}

/// What a shell may turn a value into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::manifest) enum Danger {
    /// Several words, and names of files.
    Unquoted,
    /// An expression, in which `a[$(id)]` runs a program.
    Arithmetic,
    /// A program's text.
    Code,
}

/// A construct around the current position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nesting {
    /// Between parentheses: of `$(…)` or of a subshell.
    Parentheses,
    Backticks,
    DoubleQuotes,
    /// Between the braces of `${…}`.
    Braces,
    /// Between double parentheses.
    Arithmetic,
    /// Between parentheses of an expression.
    Group,
}

/// All uses of these variables, in the order of the text.
pub(in crate::manifest) fn uses<'v>(text: &str, names: &[&'v str]) -> Vec<Use<'v>> {
    let mut reader = ShellTextReader {
        text,
        at: 0,
        inside: Vec::new(),
        names,
        uses: Vec::new(),
        documents: Vec::new(),
    };
    while reader.at < text.len() {
        reader.step();
    }
    reader.uses
}

struct ShellTextReader<'t, 'v> {
    text: &'t str,
    at: usize,
    /// The constructs around the current position, with their starts.
    inside: Vec<(Nesting, usize)>,
    names: &'t [&'v str],
    uses: Vec<Use<'v>>,
    /// Here-documents that begin on the next line: their ends, and whether they are literal.
    documents: Vec<(String, bool)>,
}

impl ShellTextReader<'_, '_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn begins(&self, what: &str) -> bool {
        self.rest().starts_with(what)
    }

    /// Skips past the next `end`, or to the end of the text.
    fn skip_past(&mut self, end: char) {
        self.at = self.rest().find(end).map_or(self.text.len(), |found| self.at + found + 1);
    }

    /// Whether a word could begin here.
    fn at_word_start(&self) -> bool {
        let before = self.text[..self.at].chars().next_back();
        before.is_none_or(|before| before.is_whitespace() || ";&|(".contains(before))
    }

    fn step(&mut self) {
        let Some(next) = self.rest().chars().next() else { return };
        let top = self.inside.last().map(|(inside, _)| *inside);
        let quoted = top == Some(Nesting::DoubleQuotes);
        let expression = matches!(top, Some(Nesting::Arithmetic | Nesting::Group));
        match next {
            '\\' => {
                self.at += 1;
                self.at += self.rest().chars().next().map_or(0, char::len_utf8);
            }
            '$' => self.dollar(),
            '`' if top == Some(Nesting::Backticks) => self.leave(1),
            '`' => self.enter(Nesting::Backticks, 1),
            '"' if quoted => self.leave(1),
            '"' => self.enter(Nesting::DoubleQuotes, 1),
            _ if quoted => self.at += next.len_utf8(),
            '\'' if !self.is_quoted() => {
                self.at += 1;
                self.skip_past('\'');
            }
            '}' if top == Some(Nesting::Braces) => self.leave(1),
            ')' if top == Some(Nesting::Arithmetic) && self.begins("))") => self.leave(2),
            ')' if matches!(top, Some(Nesting::Parentheses | Nesting::Group)) => self.leave(1),
            '(' if self.begins("((") && !expression && self.at_word_start() => {
                self.enter(Nesting::Arithmetic, 2);
            }
            '(' => self.enter(if expression { Nesting::Group } else { Nesting::Parentheses }, 1),
            '#' if self.at_word_start() && !expression => {
                self.at = self.rest().find('\n').map_or(self.text.len(), |found| self.at + found);
            }
            '<' if self.begins("<<<") => self.at += 3,
            '<' if self.begins("<<") && !expression => self.document(),
            '\n' => {
                self.at += 1;
                for (end, literal) in std::mem::take(&mut self.documents) {
                    self.document_body(&end, literal);
                }
            }
            _ if expression && (next == '_' || next.is_ascii_alphabetic()) => {
                let start = self.at;
                let name = self.name();
                self.found(start, name);
            }
            _ => self.at += next.len_utf8(),
        }
    }

    fn enter(&mut self, inside: Nesting, length: usize) {
        self.inside.push((inside, self.at));
        self.at += length;
    }

    fn leave(&mut self, length: usize) {
        self.inside.pop();
        self.at += length;
    }

    /// Whether the position is inside double quotes.
    fn is_quoted(&self) -> bool {
        self.around() == Some(Nesting::DoubleQuotes)
    }

    /// The innermost construct other than braces.
    fn around(&self) -> Option<Nesting> {
        let mut around = self.inside.iter().rev().map(|(inside, _)| *inside);
        around.find(|inside| *inside != Nesting::Braces)
    }

    fn dollar(&mut self) {
        let start = self.at;
        if self.begins("$((") {
            return self.enter(Nesting::Arithmetic, 3);
        }
        if self.begins("$(") {
            return self.enter(Nesting::Parentheses, 2);
        }
        if self.begins("$'") && !self.is_quoted() {
            self.at += 2;
            while let Some(next) = self.rest().chars().next() {
                self.at += next.len_utf8();
                match next {
                    '\\' => self.at += self.rest().chars().next().map_or(0, char::len_utf8),
                    '\'' => return,
                    _ => {}
                }
            }
            return;
        }
        let braces = self.begins("${");
        self.at += if braces { 2 } else { 1 };
        let indirect = braces && self.begins("!");
        let length = braces && self.begins("#");
        if indirect || length {
            self.at += 1;
        }
        let name = self.name();
        if braces {
            self.inside.push((Nesting::Braces, start));
        }
        // The length of a value is a number.
        if length {
            return;
        }
        let known = self.uses.len();
        self.found(start, name);
        if let Some(found) = self.uses.get_mut(known)
            && braces
        {
            let end = self.text[start..].find('}').map_or(self.text.len(), |end| start + end + 1);
            found.range.end = end;
            if indirect {
                found.danger = Some(Danger::Code);
            }
        }
    }

    /// Reads a variable's name.
    fn name(&mut self) -> Range<usize> {
        let start = self.at;
        let rest = self.rest();
        let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        self.at += end;
        start..self.at
    }

    fn found(&mut self, start: usize, name: Range<usize>) {
        let name = &self.text[name];
        let Some(name) = self.names.iter().find(|known| **known == name) else { return };
        let danger = self.danger(start);
        self.uses.push(Use { range: start..self.at, name, danger });
    }

    fn danger(&self, start: usize) -> Option<Danger> {
        // The value itself, or the quoted text that contains it, may be run.
        let quotes = self.inside.iter().filter(|(inside, _)| *inside == Nesting::DoubleQuotes);
        let mut pieces = quotes.map(|(_, at)| *at).chain([start]);
        if pieces.any(|at| is_run(self.command_before(at))) {
            return Some(Danger::Code);
        }
        let command = self.command_before(start);
        let first = command.split_whitespace().next();
        if matches!(self.around(), Some(Nesting::Arithmetic | Nesting::Group)) {
            return Some(Danger::Arithmetic);
        }
        let case = first == Some("case") && command.split_whitespace().count() == 1;
        let safe = self.is_quoted() || case || is_assignment(command);
        (!safe).then_some(Danger::Unquoted)
    }

    /// The text before a position in its simple command, as far as separators show.
    fn command_before(&self, at: usize) -> &str {
        let before = &self.text[..at];
        let start = before.rfind([';', '\n', '&', '|', '(', '`', '{']).map_or(0, |found| found + 1);
        let mut command = before[start..].trim_start();
        for keyword in ["if ", "then ", "else ", "elif ", "do ", "while ", "until ", "! "] {
            command = command.strip_prefix(keyword).unwrap_or(command).trim_start();
        }
        command
    }

    /// Records a here-document: `<<END`, `<<-END`, `<<'END'`.
    fn document(&mut self) {
        self.at += 2;
        if self.begins("-") {
            self.at += 1;
        }
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
        let rest = self.rest();
        let length =
            rest.find(|c: char| c.is_whitespace() || ";&|<>()".contains(c)).unwrap_or(rest.len());
        let written = &rest[..length];
        let end: String = written.chars().filter(|c| !"'\"\\".contains(*c)).collect();
        let literal = end.len() != written.len();
        self.at += length;
        if !end.is_empty() {
            self.documents.push((end, literal));
        }
    }

    /// Reads a here-document's lines; values stay values in them, as in double quotes.
    fn document_body(&mut self, end: &str, literal: bool) {
        let mut stop = self.at;
        for line in self.rest().split_inclusive('\n') {
            if line.trim() == end {
                break;
            }
            stop += line.len();
        }
        if !literal {
            let depth = self.inside.len();
            self.inside.push((Nesting::DoubleQuotes, self.at));
            while self.at < stop {
                // Quotes have no special meaning here.
                if self.inside.len() == depth + 1 && self.begins("\"") {
                    self.at += 1;
                } else {
                    self.step();
                }
            }
            self.inside.truncate(depth);
        }
        self.at = self.at.max(stop);
    }
}

/// Whether the text after this command is run as code: by `eval`, or by a shell's `-c`.
fn is_run(command: &str) -> bool {
    const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "su"];
    let mut words = command.split_whitespace();
    let first = words.next().unwrap_or_default();
    let name = first.rsplit('/').next().unwrap_or(first);
    let option = words.next_back().unwrap_or_default();
    let text_follows = option.starts_with('-') && option.ends_with('c');
    first == "eval" || SHELLS.contains(&name) && text_follows && command.ends_with([' ', '\t'])
}

/// Whether the position after this text is the value of an assignment, which the shell does not
/// split.
fn is_assignment(command: &str) -> bool {
    let Some((name, value)) = command.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
        && !value.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dangers(text: &str) -> Vec<(&str, Option<Danger>)> {
        let names = ["POD", "N"];
        uses(text, &names).iter().map(|found| (&text[found.range.clone()], found.danger)).collect()
    }

    #[test]
    fn values_that_stay_values_are_told_from_those_that_do_not() {
        use Danger::{Arithmetic, Code, Unquoted};
        for (text, expected) in [
            (r#"kubectl logs "$POD""#, &[("$POD", None)] as &[_]),
            (r#"kubectl logs "pod/${POD}-0" "${N:-20}""#, &[("${POD}", None), ("${N:-20}", None)]),
            ("kubectl logs $POD", &[("$POD", Some(Unquoted))]),
            ("kubectl logs pod/${POD}-0", &[("${POD}", Some(Unquoted))]),
            (r#"echo "a"$POD"b""#, &[("$POD", Some(Unquoted))]),
            (r#"echo "$(tail $POD)""#, &[("$POD", Some(Unquoted))]),
            (r#"echo "$(tail "$POD")""#, &[("$POD", None)]),
            (r#"echo "`tail $POD`""#, &[("$POD", Some(Unquoted))]),
            ("echo '$POD' \\$POD # $POD\n", &[]),
            ("echo a#$POD", &[("$POD", Some(Unquoted))]),
            ("echo $'it\\'s $POD' $PODS ${#POD} $1", &[]),
            ("x=$POD\nexport y=$POD", &[("$POD", None), ("$POD", Some(Unquoted))]),
            ("if x=$POD; then y+=$N; fi", &[("$POD", None), ("$N", None)]),
            ("x=$POD cmd $N", &[("$POD", None), ("$N", Some(Unquoted))]),
            ("case $POD in a) echo $N;; esac", &[("$POD", None), ("$N", Some(Unquoted))]),
            ("cat <<END\n\"$POD\" it's\nEND\necho $N", &[("$POD", None), ("$N", Some(Unquoted))]),
            ("cat <<'END'\n$POD\nEND\necho \"$N\"", &[("$N", None)]),
            ("cat <<-END\n\t$(tail $POD)\n\tEND\n", &[("$POD", Some(Unquoted))]),
            (
                "echo $((N + 1)) $((${N} * (POD)))",
                &[("N", Some(Arithmetic)), ("${N}", Some(Arithmetic)), ("POD", Some(Arithmetic))],
            ),
            ("(( N > 3 )) && echo \"$N\"", &[("N", Some(Arithmetic)), ("$N", None)]),
            (r#"eval "$POD""#, &[("$POD", Some(Code))]),
            (r#"true; eval echo "$POD""#, &[("$POD", Some(Code))]),
            (r#"bash -c "$POD""#, &[("$POD", Some(Code))]),
            (r#"echo "$(/bin/sh -ec "cd /; tail $POD")""#, &[("$POD", Some(Code))]),
            (r#"bash -c 'tail "$1"' bash "$POD""#, &[("$POD", None)]),
            (r#"echo "${!POD}""#, &[("${!POD}", Some(Code))]),
            (r#"echo "${X:-$POD}" ${X:-"$N"}"#, &[("$POD", None), ("$N", None)]),
        ] {
            assert_eq!(dangers(text), expected, "{text}");
        }
    }

    #[test]
    fn the_reader_accepts_any_text() {
        for text in
            ["$", "${", "\"", "'", "`", "$((", "$(", "<<", "<<E", "\\", "${POD", "é$POD€", ")}))"]
        {
            let _ = dangers(text);
        }
    }
}
