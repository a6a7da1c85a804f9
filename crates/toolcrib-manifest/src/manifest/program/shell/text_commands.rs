//! The commands of a shell's text and the folders in which they run, for those who look for the files that a
//! program runs.

use std::path::Path;

use super::commands::{self, literal};
use crate::programs;
use crate::template::{Piece, Reference, Template};

/// How many folders of a text are followed.
const FOLDERS_MAX: usize = 8;

/// One command of a shell's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextCommand {
    /// The program and its arguments. A value that only the shell knows is `$` with its name.
    pub words: Vec<String>,
    /// The variables that are set, with their values.
    pub assignments: Vec<(String, String)>,
    /// The values over which it loops.
    pub values: Vec<String>,
    /// The files that it writes through redirections.
    pub outputs: Vec<String>,
    /// The file that it reads as standard input.
    pub input: Option<String>,
    /// The folders in which it may run: the one in which the text begins, which is empty, and those to which the
    /// text has changed before, relative to it.
    pub folders: Vec<String>,
}

/// The commands of a text in its order, those of a substitution before the command that holds it. At most eight
/// folders are followed.
pub fn commands(text: &str) -> Vec<TextCommand> {
    let mut folders = vec![String::new()];
    let mut all = Vec::new();
    for command in commands::commands(text) {
        let words: Vec<String> = command.words.iter().map(shown).collect();
        if let Some(target) = change(&words)
            && folders.len() < FOLDERS_MAX
        {
            let last = folders.last().map(String::as_str).unwrap_or_default();
            let next = Path::new(last).join(target).to_string_lossy().into_owned();
            if !folders.contains(&next) {
                folders.push(next);
            }
        }
        let mut folders = folders.clone();
        if let Some(own) = own_folder(&words) {
            let last = folders.last().map(String::as_str).unwrap_or_default();
            folders.push(Path::new(last).join(own).to_string_lossy().into_owned());
        }
        all.push(TextCommand {
            words,
            assignments: command
                .assignments
                .iter()
                .map(|(name, value)| (name.clone(), shown(value)))
                .collect(),
            values: command.values.iter().map(shown).collect(),
            outputs: command.outputs.iter().map(shown).collect(),
            input: command.input.as_ref().map(shown).filter(|file| !file.is_empty()),
            folders,
        });
    }
    all
}

/// The folder in which a command alone runs: `env -C`, `--chdir=`.
fn own_folder(words: &[String]) -> Option<&str> {
    let at = words.iter().position(|word| programs::changes_folder(word))?;
    let folder = programs::folder_in(words[at..].iter().map(String::as_str))?;
    (!folder.contains('$')).then_some(folder)
}

/// The folder to which a command changes.
fn change(words: &[String]) -> Option<&str> {
    let (program, arguments) = words.split_first()?;
    if !matches!(program.as_str(), "cd" | "pushd") {
        return None;
    }
    let target = arguments.iter().find(|word| !word.starts_with('-'))?;
    (!target.is_empty() && !target.contains('$')).then_some(target)
}

fn shown(word: &Template) -> String {
    if let Some(text) = literal(word) {
        return text.to_owned();
    }
    let pieces = word.pieces.iter().map(|piece| match piece {
        Piece::Literal(text) => text.clone(),
        Piece::Reference(Reference::Arg(name)) => name.clone(),
        Piece::Reference(_) => "$".to_owned(),
    });
    pieces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_given_with_the_folders_to_which_the_text_has_changed() {
        let found = commands("make; cd lib && . ./h.sh; (cd ../b; sh run.sh)");
        let shown: Vec<_> =
            found.iter().map(|one| (one.words.join(" "), one.folders.join(","))).collect();
        let shown: Vec<_> = shown.iter().map(|(words, folders)| (&**words, &**folders)).collect();
        assert_eq!(
            shown,
            [
                ("make", ""),
                ("cd lib", ",lib"),
                (". ./h.sh", ",lib"),
                ("cd ../b", ",lib,lib/../b"),
                ("sh run.sh", ",lib,lib/../b"),
            ]
        );
    }

    #[test]
    fn values_that_the_text_itself_knows_are_put_in() {
        let found = commands("d=h; . $d/a.sh; sh \"$PWD/b.sh\"; . \"$(pwd)/c.sh\"; sh \"$1/d.sh\"");
        let words: Vec<_> = found.iter().map(|one| one.words.join(" ")).collect();
        assert!(words.contains(&". h/a.sh".to_owned()), "{words:?}");
        assert!(words.contains(&"sh ./b.sh".to_owned()), "{words:?}");
        assert!(words.contains(&". ./c.sh".to_owned()), "{words:?}");
        assert!(words.contains(&"sh $1/d.sh".to_owned()), "{words:?}");
        let found = commands("PATH=./h:$PATH tool; for f in run; do $f; done < in.txt");
        assert_eq!(found[0].assignments, [("PATH".to_owned(), "./h:$PATH".to_owned())]);
        assert!(found.iter().any(|one| one.values == ["run"]), "{found:?}");
        assert!(found.iter().any(|one| one.input.as_deref() == Some("in.txt")), "{found:?}");
    }
}
