//! Options as they are read one after the other, and what they decide for the words behind them.

use super::program::Program;
use super::reader::{OptionMeaning, VectorReader, is_awk, option};
use super::{base_name, begins, find};
use crate::manifest::program::argv::Word;
use crate::manifest::schema::value_shape::Shape;

/// Programs that run what they find in the folder where they start.
const RUN_FOLDER: [&str; 26] = [
    "ant", "bazel", "bundle", "cargo", "cmake", "composer", "ctest", "git", "gmake", "go",
    "gradle", "hg", "just", "make", "meson", "mvn", "ninja", "node", "npm", "npx", "pnpm",
    "pytest", "rake", "task", "tox", "yarn",
];

/// What the options that were read so far decide.
#[derive(Default)]
pub(super) struct Given<'w, 'n> {
    /// Whether what makes the `settled` options harmless is there.
    pub(super) is_settled: bool,
    /// Whether an option said what is run.
    pub(super) has_code: bool,
    /// The folder in which the program that follows runs.
    pub(super) folder: Option<&'w Word<'n>>,
}

impl<'w, 'n> VectorReader<'w, 'n> {
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
                }
            }
            OptionMeaning::Flag => {}
        }
        at + 1
    }

    /// The folder in which the program at `at` starts, if that program runs what it finds there.
    pub(super) fn folder(&mut self, folder: Option<&Word<'_>>, at: usize, wrapper: &str) {
        let Some(folder) = folder.filter(|word| self.tainted(word, Shape::Fixed)) else { return };
        let Some(program) = self.words.get(at).and_then(Word::literal) else { return };
        let plain = base_name(program);
        let is_settled = find(program)
            .is_some_and(|known| !known.settled_by.is_empty() && known.is_settled(self.words));
        if RUN_FOLDER.contains(&plain) && !is_settled {
            let message = format!(
                "`{plain}` runs what it finds in the folder where `{wrapper}` starts it: a model \
                 must \
                 not choose that folder"
            );
            let help = "write the folder as a literal, or list what it may be in an `enum`";
            self.found("unsafe-argument", folder, message, help);
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
