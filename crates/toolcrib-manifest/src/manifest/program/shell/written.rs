//! Files that a text writes values to, and then runs in another way than as the script of an interpreter.

use super::Taint;
use super::flow::{Flow, join};
use super::sinks::{LOAD_FROM_FOLDER, shown};
use super::syntax::Command;
use crate::programs::name_without_version;
use crate::words::Words;

/// Files that programs run which find them in their folder.
static FOUND: Words = Words::of(
    "BUILD CMakeLists.txt Cargo.toml GNUmakefile Gemfile Makefile Rakefile build.gradle \
     build.ninja build.rs justfile makefile package.json pom.xml",
);

const HELP: &str = "write what is run as a literal, and pass the value as an argument";

impl Flow<'_> {
    /// What a file holds that the text has written, by the name under which it is used.
    pub(super) fn held(&self, name: &str) -> Option<Taint> {
        let name = name.trim_start_matches("./");
        let exact = self.files.get(name).copied();
        // In another folder the same file has another name.
        exact.or_else(|| self.named_like(name).filter(|_| self.has_moved))
    }

    /// What the files hold whose names end as this one does.
    fn named_like(&self, name: &str) -> Option<Taint> {
        let last = last_part(name);
        let alike = self.files.iter().filter(|(file, _)| last_part(file) == last);
        alike.map(|(_, taint)| *taint).reduce(Taint::joined)
    }

    /// Reports files with values that a command runs: as programs at these places, and because words at others
    /// name what is run, or the folder in which it is found.
    pub(super) fn run_written(&mut self, command: &Command, programs: &[usize], named: &[usize]) {
        if self.files.is_empty() {
            return;
        }
        let sets_path = self.literals.contains_key("PATH");
        for at in programs {
            let word = &command.words[*at];
            let name = shown(word);
            let held = if name.contains('/') {
                self.held(&name)
            } else {
                self.named_like(&name).filter(|_| sets_path)
            };
            self.reported(&word.range, &name, held);
            let plain = name_without_version(&name);
            if self.has_moved && LOAD_FROM_FOLDER.contains(plain) {
                let found = FOUND.iter().filter_map(|file| self.named_like(file));
                let found = found.reduce(Taint::joined);
                self.reported(&word.range, &name, found);
            }
        }
        for at in named {
            let word = &command.words[*at];
            let name = shown(word);
            let file = match name.split_once('=') {
                Some((option, file)) if option.starts_with('-') => file,
                _ if name.starts_with('-') => name.get(2..).unwrap_or_default(),
                _ => &name,
            };
            let folder = format!("{}/", file.trim_start_matches("./").trim_end_matches('/'));
            let below = self.files.iter().filter(|(file, _)| file.starts_with(&folder));
            let below = below.map(|(_, taint)| *taint).reduce(Taint::joined);
            let held = join(self.held(file), below).filter(|_| !file.is_empty());
            self.reported(&word.range, file, held);
        }
    }

    fn reported(&mut self, range: &std::ops::Range<usize>, name: &str, held: Option<Taint>) {
        if let Some(taint) = held.filter(|taint| !taint.is_fixed()) {
            let message = format!("`{name}` leads to a file that holds a value, and is run here");
            self.report(range, "evaluated-variable", message, HELP, taint);
        }
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
