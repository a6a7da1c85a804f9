//! What stands in another place than the arguments of a program: the program of a container behind an option, and
//! options in a file.

use super::program::Program;
use super::reader::VectorReader;
use super::{begins, read};
use crate::manifest::program::argv::Word;
use crate::manifest::program::interpreters;
use crate::manifest::schema::value_shape::Shape;
use crate::template::{Piece, Template};
use crate::words::Words;

/// Programs that read options from the file whose name follows `@`.
static READ_OPTIONS: Words = Words::of(
    "ar as c++ cc clang clang++ csc dotnet g++ gcc gfortran gold jar java javac javadoc kotlinc \
     ld nm objcopy objdump rustc scalac swiftc",
);

impl VectorReader<'_, '_> {
    /// Reads the words behind the image of a container as those of the program that an option names.
    pub(super) fn entrypoint(&mut self, image: usize, start: usize, name: &str, known: &Program) {
        self.code(&self.words[image], name, known);
        let options = self.words.get(start..image).unwrap_or_default();
        let attached = options
            .iter()
            .find_map(|word| Some((word, word.literal()?.strip_prefix("--entrypoint=")?)));
        let behind = options.windows(2).find(|pair| pair[0].literal() == Some("--entrypoint"));
        let behind = behind.and_then(|pair| Some((&pair[1], pair[1].literal()?)));
        let Some((word, program)) = attached.or(behind) else { return };
        let first = Template { pieces: vec![Piece::Literal(program.to_owned())] };
        let rest = self.words.get(image + 1..).unwrap_or_default().iter();
        let rest = rest.map(|word| Word { template: word.template.clone(), node: word.node });
        let words: Vec<Word<'_>> =
            std::iter::once(Word { template: first, node: word.node }).chain(rest).collect();
        let read_words = read(&words, self.scope);
        let mut found = Vec::new();
        let runs_stdin = interpreters::check_programs(&words, &read_words, self.scope, &mut found);
        self.read.runs_stdin |= read_words.runs_stdin || runs_stdin;
        self.read.unsafe_values.extend(found.into_iter().chain(read_words.unsafe_values));
    }

    /// Reads `@file` among the arguments of the program at `at`: its options may be any.
    pub(super) fn options_files(&mut self, at: usize, name: &str) {
        if !READ_OPTIONS.contains(name) {
            return;
        }
        let words = self.words;
        for word in words[at + 1..].iter().filter(|word| begins(word).starts_with('@')) {
            if !self.tainted(word, Shape::Fixed) {
                continue;
            }
            let message = format!(
                "`{name}` reads options from the file behind `@`, and some of its options run programs: a model must \
                 not choose it"
            );
            let help = "write the name of the file as a literal; a file that is compiled has no `@` before it";
            self.found("unsafe-argument", word, message, help);
        }
    }
}
