//! The commands of a shell's text in one list, as argument vectors.

use std::collections::BTreeMap;

use super::reader;
use super::syntax::{Command, Form, Kind, Part, Way, Word};
use crate::template::{Piece, Reference, Template};

/// The name of the reference that stands for `<(…)` or `>(…)`.
const PROCESS: &str = "<(";

/// How many words are made of one at most.
const WORDS_MAX: usize = 64;

/// One simple command.
#[derive(Debug, Default)]
pub(in crate::manifest::program) struct ShellCommand {
    /// The program and its arguments. What the shell puts in at run time is a reference.
    pub(in crate::manifest::program) words: Vec<Template>,
    /// The files that it writes through a redirection.
    pub(in crate::manifest::program) outputs: Vec<Template>,
    /// The variables that are set before it runs, with their values. An array's are joined.
    pub(in crate::manifest::program) assignments: Vec<(String, Template)>,
    /// The values over which it loops.
    pub(in crate::manifest::program) values: Vec<Template>,
    /// What it reads instead of the standard input of the text: a file, or a here-document, which has no name.
    pub(in crate::manifest::program) input: Option<Template>,
}

/// The commands of a text in its order, those of a substitution before the command that holds it.
pub(in crate::manifest::program) fn commands(text: &str) -> Vec<ShellCommand> {
    let mut list = CommandList::default();
    list.add_all(&reader::read(text));
    list.commands
}

/// The text of a word, if the shell puts nothing in.
pub(in crate::manifest::program) fn literal(word: &Template) -> Option<&str> {
    match word.pieces.as_slice() {
        [] => Some(""),
        [Piece::Literal(text)] => Some(text),
        _ => None,
    }
}

/// Whether a word is the file of a process substitution: `<(…)`.
pub(in crate::manifest::program) fn is_process(word: &Template) -> bool {
    let name = word.as_single_reference();
    matches!(name, Some(Reference::Arg(name)) if name.strip_prefix('$') == Some(PROCESS))
}

#[derive(Default)]
struct CommandList {
    commands: Vec<ShellCommand>,
    /// The values that the text gives to variables, as far as they are known.
    variables: BTreeMap<String, String>,
}

impl CommandList {
    fn add_all(&mut self, commands: &[Command]) {
        for command in commands {
            self.add(command);
        }
    }

    fn add(&mut self, command: &Command) {
        let mut added = ShellCommand::default();
        let words: Vec<Template> = command.words.iter().map(|word| self.template(word)).collect();
        match command.kind {
            Kind::Simple => added.words = words,
            // The first one is the variable.
            Kind::Loop => added.values = words.into_iter().skip(1).collect(),
            _ => {}
        }
        for redirection in &command.redirections {
            let target = self.template(&redirection.target);
            match redirection.way {
                Way::Output => added.outputs.push(target),
                Way::Input => added.input = Some(target),
                Way::Text => added.input = Some(Template { pieces: Vec::new() }),
                Way::Descriptor => {}
            }
        }
        for assignment in &command.assignments {
            let values: Vec<Template> =
                assignment.values.iter().map(|value| self.template(value)).collect();
            match values.as_slice() {
                [value] if assignment.index.is_empty() => match literal(value) {
                    Some(text) => self.variables.insert(assignment.name.clone(), text.to_owned()),
                    None => self.variables.remove(&assignment.name),
                },
                _ => self.variables.remove(&assignment.name),
            };
            let joined =
                Template { pieces: values.into_iter().flat_map(|one| one.pieces).collect() };
            added.assignments.push((assignment.name.clone(), joined));
        }
        let ShellCommand { words, outputs, input, assignments, values } = &added;
        let is_empty = [words, outputs, values].iter().all(|list| list.is_empty());
        if !is_empty || !assignments.is_empty() || input.is_some() {
            self.commands.push(added);
        }
    }

    /// A word, after the commands of its substitutions have been added.
    fn template(&mut self, word: &Word) -> Template {
        let mut template = Template { pieces: Vec::new() };
        for part in &word.parts {
            self.add_part(part, &mut template.pieces);
        }
        let names = literal(&template).map(expanded).unwrap_or_default();
        if names.len() > 1 {
            let values = names
                .into_iter()
                .map(|name| Template { pieces: vec![Piece::Literal(name)] })
                .collect();
            self.commands.push(ShellCommand { values, ..ShellCommand::default() });
        }
        template
    }

    fn add_part(&mut self, part: &Part, pieces: &mut Vec<Piece>) {
        match part {
            Part::Text(text) => add_text(text, pieces),
            Part::Variable(variable) => {
                for inner in &variable.expressions {
                    self.add_part(inner, &mut Vec::new());
                }
                let mut default = Template { pieces: Vec::new() };
                for inner in &variable.operands {
                    self.add_part(inner, &mut default.pieces);
                }
                if !default.pieces.is_empty() {
                    // It may take the place of the value.
                    self.commands
                        .push(ShellCommand { values: vec![default], ..ShellCommand::default() });
                }
                match self.variables.get(&variable.name) {
                    None if variable.name == "PWD" && variable.form == Form::Plain => {
                        add_text(".", pieces);
                    }
                    Some(value) if variable.form == Form::Plain && variable.operands.is_empty() => {
                        add_text(value, pieces);
                    }
                    _ => add_reference(&variable.name, pieces),
                }
            }
            Part::Substitution { commands, .. } => {
                self.add_all(commands);
                if is_pwd(commands) {
                    return add_text(".", pieces);
                }
                add_reference("(", pieces);
            }
            Part::Process { commands, .. } => {
                self.add_all(commands);
                add_reference(PROCESS, pieces);
            }
            Part::Expression(inner) => {
                for part in inner {
                    self.add_part(part, &mut Vec::new());
                }
                add_reference("((", pieces);
            }
        }
    }
}

/// Whether commands write the name of the working directory.
fn is_pwd(commands: &[Command]) -> bool {
    let [command] = commands else { return false };
    matches!(command.words.as_slice(), [word] if word.literal().as_deref() == Some("pwd"))
}

/// The words that the shell makes of one with `{a,b}` in it; nothing is known of quotes, which would keep it whole.
fn expanded(word: &str) -> Vec<String> {
    let mut words = vec![word.to_owned()];
    while words.len() < WORDS_MAX {
        let next = words.iter().enumerate().find_map(|(at, word)| Some((at, alternatives(word)?)));
        let Some((at, found)) = next else { return words };
        words.splice(at..=at, found);
    }
    words
}

/// The words for the first innermost `{a,b}` in a word without blanks.
fn alternatives(word: &str) -> Option<Vec<String>> {
    let end = word.match_indices('}').find_map(|(end, _)| {
        let start = word[..end].rfind('{')?;
        word[start..end].contains(',').then_some((start, end))
    });
    let (start, end) = end.filter(|_| !word.contains(char::is_whitespace))?;
    let inner = &word[start + 1..end];
    Some(
        inner
            .split(',')
            .map(|one| format!("{}{one}{}", &word[..start], &word[end + 1..]))
            .collect(),
    )
}

fn add_text(text: &str, pieces: &mut Vec<Piece>) {
    match pieces.last_mut() {
        Some(Piece::Literal(before)) => before.push_str(text),
        _ => pieces.push(Piece::Literal(text.to_owned())),
    }
}

fn add_reference(name: &str, pieces: &mut Vec<Piece>) {
    // No argument of a tool has such a name.
    pieces.push(Piece::Reference(Reference::Arg(format!("${name}"))));
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
        let runs = |command: &&ShellCommand| {
            !command.words.is_empty() || !command.outputs.is_empty() || command.input.is_some()
        };
        let shown = commands.iter().filter(runs).map(|command| {
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
            ("if a; then b 'c d'; fi", &["a", "b c d"]),
            ("f=g.sh; sort -o \"$f\" in; sh \"$f\"", &["sort -o g.sh in", "sh g.sh"]),
            ("cat > x.sh 2>&1; sh < x.sh", &["cat >x.sh", "sh <x.sh"]),
            ("x=$(cat); $x", &["cat", "?"]),
            ("sh <<END\neval x\nEND\nls", &["sh <", "ls"]),
            ("bash <(cat)", &["cat", "bash ?"]),
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
