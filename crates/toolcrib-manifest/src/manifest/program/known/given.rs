//! Options as they are read one after the other, and what they decide for the words behind them.

use super::program::Program;
use super::reader::{OptionMeaning, VectorReader, is_awk, option};
use super::{awk, base_name, begins, find, tainted};
use crate::manifest::program::argv::Word;
use crate::manifest::schema::value_shape::Shape;
use crate::words::Words;

/// Programs that run what they find in the folder where they start.
static RUN_FOLDER: Words = Words::of(
    "ant bazel bundle cargo cmake composer ctest git gmake go gradle hg just make meson mvn ninja \
     node npm npx pnpm pytest rake task tox yarn",
);

/// What the options that were read so far decide.
#[derive(Default)]
pub(super) struct Given<'w, 'n> {
    /// Whether what makes the `settled` options harmless is there.
    pub(super) is_settled: bool,
    /// Whether an option said what is run.
    pub(super) has_code: bool,
    /// The variables of a program in awk that options set.
    pub(super) variables: Vec<&'w Word<'n>>,
    /// The folder in which the program that follows runs.
    pub(super) folder: Option<&'w Word<'n>>,
}

impl<'w, 'n> VectorReader<'w, 'n> {
    /// Reads the arguments beside an option with which settings decide what is run for each file.
    pub(super) fn evoked(&mut self, start: usize, name: &str, known: &Program) {
        let words = self.words.get(start..).unwrap_or_default();
        let evokes = |word: &Word<'_>| known.evokes.iter().find(|it| word.literal() == Some(*it));
        let Some(option) = words.iter().find_map(evokes) else { return };
        for word in words.iter().filter(|word| tainted(word, self.scope, Shape::Fixed)) {
            let message = format!(
                "with `{option}`, `{name}` runs the program that attributes and settings name for the file: a model \
                 must not choose the file"
            );
            self.found("unsafe-argument", word, message, &known.instead);
        }
    }

    /// Reads the option at `at` and its value. Returns where to read on.
    pub(super) fn option_at(
        &mut self,
        mut at: usize,
        name: &str,
        known: &Program,
        given: &mut Given<'w, 'n>,
    ) -> usize {
        let words = self.words;
        let word = &words[at];
        let begins_with = begins(word);
        if let Some(next) = self.assigned(at, name, known) {
            return next;
        }
        let settled =
            given.is_settled && known.settled.iter().any(|one| begins_with.starts_with(one));
        let read = option(known, word, begins_with);
        let follows = matches!(
            read,
            OptionMeaning::CodeNext
                | OptionMeaning::FileNext
                | OptionMeaning::FolderNext
                | OptionMeaning::Value
        );
        at += usize::from(follows);
        let value = if follows { words.get(at) } else { Some(word) };
        match read {
            OptionMeaning::CodeHere | OptionMeaning::CodeNext if settled => {}
            OptionMeaning::CodeHere | OptionMeaning::CodeNext => {
                given.has_code = true;
                if let Some(value) = value {
                    self.code(value, name, known);
                }
            }
            OptionMeaning::FileHere => self.bare_file(word, name),
            OptionMeaning::FileNext => {
                if let Some(value) = value.filter(|value| begins(value).is_empty()) {
                    self.bare_file(value, name);
                }
            }
            OptionMeaning::FolderHere | OptionMeaning::FolderNext => given.folder = value,
            OptionMeaning::Value => {
                if let Some(value) = value.filter(|_| is_awk(known)) {
                    self.awk_assignment(value, name);
                    given.variables.push(value);
                }
            }
            OptionMeaning::Unknown => self.unlisted(at, name, known),
            OptionMeaning::Flag => {
                if is_awk(known) && begins_with.starts_with("-v") {
                    given.variables.push(word);
                }
            }
        }
        at + 1
    }

    /// Options of a program that stand behind its command: long ones are the program's own.
    pub(super) fn options_behind(&mut self, start: usize, name: &str, known: &Program) {
        let words = self.words;
        let mut at = start;
        while let Some(word) = words.get(at).filter(|word| word.literal() != Some("--")) {
            let begins = begins(word);
            let is_long = begins.starts_with("--");
            if begins.starts_with('-') {
                match option(known, word, begins) {
                    OptionMeaning::CodeHere if is_long => self.code(word, name, known),
                    OptionMeaning::CodeNext if is_long => {
                        at += 1;
                        if let Some(word) = words.get(at) {
                            self.code(word, name, known);
                        }
                    }
                    OptionMeaning::Value => at += 1,
                    _ => {}
                }
            } else {
                self.may_be_option(at, known);
            }
            at += 1;
        }
    }

    /// Records a word that is an option of a program if its value begins with `-`.
    pub(super) fn may_be_option(&mut self, at: usize, known: &Program) {
        let runs = self.has_code_before || !known.code.is_empty();
        if let Some((_, program)) = self.read.started.last().filter(|_| runs) {
            self.read.may_be_options.push((at, program));
        }
    }

    /// Reads an option that sets a variable, whose name is the author's to say. Returns where to read on.
    fn assigned(&mut self, at: usize, name: &str, known: &Program) -> Option<usize> {
        let word = &self.words[at];
        let begins_with = begins(word);
        let option = known.assigns.iter().find(|option| {
            let rest = begins_with.strip_prefix(*option);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('=') || option.len() == 2)
        })?;
        let attached = begins_with[option.len()..].trim_start_matches('=');
        let is_alone = word.literal() == Some(option);
        let (value, text) = if is_alone {
            let value = self.words.get(at + 1)?;
            (value, begins(value))
        } else {
            (word, attached)
        };
        if self.tainted(value, Shape::Fixed) {
            if let Some((variable, _)) = text.split_once('=') {
                self.read.assigned.push(variable.to_owned());
            } else {
                let message =
                    format!("`{name}` takes `name=value` here: a model must not set any variable");
                let help =
                    "write the name of the variable before the value: `--set=name=${args.x}`";
                self.found("unsafe-argument", value, message, help);
            }
        }
        Some(at + 1 + usize::from(is_alone))
    }

    /// The value of an option of which nobody knows what it does.
    fn unlisted(&mut self, at: usize, name: &str, known: &Program) {
        let Some(flags) = &known.flags else { return };
        let word = &self.words[at];
        let option = begins(word).split('=').next().unwrap_or_default();
        let letters = option.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let is_letter = |letter: char| flags.contains(&format!("-{letter}"));
        let is_flag = flags.contains(option)
            || letters.is_some_and(|letters| !letters.is_empty() && letters.chars().all(is_letter));
        let is_alone = word.literal().is_some_and(|text| !text.contains('='));
        // `-DNAME=…`: the value of an option of one letter.
        let is_known = |known: &str| {
            known.len() == 2
                && known.ends_with(['D', 'I', 'L', 'O', 'U', 'W', 'l', 'o'])
                && option.starts_with(known)
        };
        if !is_alone && known.whole_words && known.valued.iter().any(is_known) {
            return;
        }
        let value = if !is_alone {
            Some(word)
        } else if is_flag || flags.contains("*") {
            None
        } else {
            self.words.get(at + 1).filter(|next| !begins(next).starts_with('-'))
        };
        let Some(value) = value.filter(|value| self.tainted(value, Shape::Fixed)) else { return };
        let message = format!(
            "`{name}` has options that run or load what they are given, and `{option}` is not known to \
             be harmless: a model must not write its value"
        );
        let help = "write the value as a literal, or list what it may be in an `enum`; if the option is \
                    harmless, say why: `unsafe_argv: reason`";
        self.found("unsafe-argument", value, message, help);
    }

    /// The folder in which the program at `at` starts, if that program runs what it finds there.
    pub(super) fn folder(&mut self, folder: Option<&Word<'_>>, at: usize, wrapper: &str) {
        let Some(folder) = folder.filter(|word| self.tainted(word, Shape::Fixed)) else { return };
        let Some(program) = self.words.get(at).and_then(Word::literal) else { return };
        let plain = base_name(program);
        let is_settled = find(program)
            .is_some_and(|known| !known.settled_by.is_empty() && known.is_settled(self.words));
        let is_below = program.contains('/') && !program.starts_with('/');
        if is_below || RUN_FOLDER.contains(plain) && !is_settled {
            let message = format!(
                "`{plain}` runs what it finds in the folder where `{wrapper}` starts it: a model \
                 must \
                 not choose that folder"
            );
            let help = "write the folder as a literal, or list what it may be in an `enum`";
            self.found("unsafe-argument", folder, message, help);
        }
    }

    /// What a program in awk does with its variables, and with what it reads.
    pub(super) fn awk_text(&mut self, at: usize, given: &Given<'w, 'n>, name: &str) {
        let Some(text) = self.words[at].literal() else { return };
        self.read.awk.push((at, text));
        self.read.runs_stdin |= awk::runs(text, &[], true);
        for word in &given.variables {
            let begins = begins(word);
            let variable = begins.trim_start_matches("-v").split('=').next().unwrap_or_default();
            if self.tainted(word, Shape::Fixed) && awk::runs(text, &[variable], false) {
                let message = format!("the program of `{name}` may run the value of `{variable}`");
                let help = "write what is run as a literal in the program";
                self.found("spliced-script", word, message, help);
            }
        }
    }

    /// The value of an option of awk, which must not choose the variable that it sets.
    fn awk_assignment(&mut self, word: &Word<'_>, name: &str) {
        if begins(word).is_empty() && self.tainted(word, Shape::Word) {
            let message =
                format!("`{name}` takes `name=value` here: a model must not set any variable");
            let help = "write the name of the variable before the value: `-v`, `name=${args.x}`";
            self.found("unsafe-argument", word, message, help);
        }
    }
}
