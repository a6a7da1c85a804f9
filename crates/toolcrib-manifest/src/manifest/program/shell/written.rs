//! Files that a text writes values to, and then runs in another way than as the script of an interpreter.

use super::Taint;
use super::flow::{Flow, join};
use super::sinks::shown;
use super::syntax::Command;
use crate::programs::name_without_version;
use crate::words::Words;

/// Files that programs run which find them in their folder.
const FOUND: [(&str, &str); 22] = [
    ("ant", "build.xml"),
    ("bazel", "BUILD BUILD.bazel MODULE.bazel WORKSPACE"),
    ("bun", "bunfig.toml package.json"),
    ("bundle", "Gemfile"),
    ("cargo", "Cargo.toml build.rs"),
    ("cmake", "CMakeLists.txt"),
    ("composer", "composer.json"),
    ("docker-compose", "compose.yaml compose.yml docker-compose.yml"),
    ("gmake", "GNUmakefile Makefile makefile"),
    ("gradle", "build.gradle settings.gradle"),
    ("just", "justfile"),
    ("make", "GNUmakefile Makefile makefile"),
    ("mix", "mix.exs"),
    ("mvn", "pom.xml"),
    ("ninja", "build.ninja"),
    ("npm", ".npmrc package.json"),
    ("npx", ".npmrc package.json"),
    ("pnpm", ".npmrc package.json"),
    ("pytest", "conftest.py pytest.ini"),
    ("rake", "Rakefile"),
    ("tox", "tox.ini"),
    ("yarn", ".yarnrc .yarnrc.yml package.json"),
];

/// Files that programs run, or take programs from, whenever they start.
static AT_START: Words = Words::of(
    ".Rprofile .bash_aliases .bash_login .bash_logout .bash_profile .bashrc .curlrc .emacs .envrc \
     .exrc .gdbinit .git/config .gitconfig .inputrc .irbrc .kshrc .latexmkrc .lldbinit .npmrc \
     .pdbrc .profile .pryrc .psqlrc .pythonrc .screenrc .sqliterc .ssh/authorized_keys .ssh/config \
     .ssh/rc .tmux.conf .vimrc .wgetrc .yarnrc .yarnrc.yml .zlogin .zprofile .zshenv .zshrc \
     git/config latexmkrc sitecustomize.py usercustomize.py",
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
            let found = FOUND.iter().filter(|(known, _)| *known == name_without_version(&name));
            let files = found.flat_map(|(_, files)| files.split(' '));
            for file in files {
                let held = self.named_like(file).filter(|taint| !taint.is_fixed());
                let Some(taint) = held else { continue };
                let message = format!("`{name}` runs `{file}`, which holds a value");
                // A program may have put the value where it is data.
                let is_by_model = taint.is_by_model && self.has_moved;
                let taint = Taint { is_by_model, ..taint };
                self.report(&word.range, "evaluated-variable", message, HELP, taint);
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

    /// Warns of a value in a file that programs run whenever they start.
    pub(super) fn starts_programs(&mut self, range: &std::ops::Range<usize>, file: &str) {
        let mut parts = file.rsplit('/');
        let last = parts.next().unwrap_or_default();
        let with_folder = parts.next().map(|folder| format!("{folder}/{last}"));
        let is_hook = file.contains(".git/hooks/");
        let is_found = AT_START.contains(last)
            || with_folder.is_some_and(|with_folder| AT_START.contains(&with_folder));
        if is_hook || is_found {
            let message = format!(
                "`{file}` holds a value then, and programs run what it says when they start"
            );
            self.add_warning(range, "evaluated-variable", message, HELP, false);
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
