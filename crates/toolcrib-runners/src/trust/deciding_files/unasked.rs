//! Files that a program reads from its folder although no argument names them, such as a makefile.

use std::path::{Path, PathBuf};

use super::absent::folder_of_files;
use super::declaration_folders::DeclarationFolders;
use super::programs::{name_without_version, run_options};
use super::words::ArgumentText;
use super::{DecidingFiles, absolute};

/// Programs that run a file which no argument names.
struct UnaskedFiles {
    programs: &'static [&'static str],
    /// Commands, one of which has to be among the arguments; empty if every command runs the file.
    commands: &'static [&'static str],
    /// The names, in the order in which the program looks for them: the first that exists counts.
    names: &'static [&'static str],
}

const UNASKED: [UnaskedFiles; 4] = [
    UnaskedFiles {
        programs: &["make", "gmake"],
        commands: &[],
        names: &["GNUmakefile", "makefile", "Makefile"],
    },
    UnaskedFiles { programs: &["just"], commands: &[], names: &["justfile", ".justfile"] },
    UnaskedFiles { programs: &["ninja"], commands: &[], names: &["build.ninja"] },
    // `npm install` changes the file and runs nothing of it unless its own scripts say so.
    UnaskedFiles {
        programs: &["npm", "pnpm", "yarn"],
        commands: &["run", "run-script", "restart", "start", "stop", "test"],
        names: &["package.json"],
    },
];

/// Beginnings of arguments of git that name a folder with programs, which git starts by itself.
const GIT_FOLDERS: [&str; 2] = ["core.hookspath=", "--exec-path="];

/// Two files in the workspace of which a program runs the first. No tool can change the second, but a program that
/// ran before this server started may have put the first beside it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct RivalFiles {
    /// The one that runs.
    pub chosen: PathBuf,
    /// The one that would run without it.
    pub other: PathBuf,
}

/// Whether two paths lead to two files: a file system may take `makefile` and `Makefile` for one.
fn is_another(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let identity = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
    identity(one) != identity(other)
}

/// The names of such files.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    UNASKED.iter().flat_map(|files| files.names.iter().copied())
}

impl DecidingFiles {
    /// Adds the folders in which git finds its hooks and commands, if the vector names them.
    pub(super) fn folders_of_git(
        &mut self,
        words: &[ArgumentText],
        around: &DeclarationFolders<'_>,
    ) {
        let texts: Vec<_> = words.iter().map(|word| word.text().unwrap_or_default()).collect();
        let Some(git) = texts.iter().position(|text| name_without_version(text) == "git") else {
            return;
        };
        let cwd = folder_of_files(&words[..git], around);
        for text in &texts[git + 1..] {
            let text = text.strip_prefix("-c").unwrap_or(text);
            let lower = text.to_ascii_lowercase();
            let Some(start) = GIT_FOLDERS.iter().find(|start| lower.starts_with(**start)) else {
                continue;
            };
            let folder: PathBuf = cwd.join(&text[start.len()..]).components().collect();
            if around.holds_workspace(&folder) || text.len() == start.len() {
                continue;
            }
            if around.is_behind_a_link(&folder) {
                self.linked.push(folder);
            } else if folder.is_dir() {
                self.places.push(folder);
            } else {
                self.absent.push(folder);
            }
        }
    }

    /// Adds the file that the vector's program reads unasked, if it exists. Files that the program would
    /// prefer to it, or that it would run if they existed, are absent.
    pub(super) fn unasked(&mut self, words: &[ArgumentText], around: &DeclarationFolders<'_>) {
        let texts: Vec<_> = words.iter().map(|word| word.text().unwrap_or_default()).collect();
        let found = texts.iter().enumerate().find_map(|(at, text)| {
            let name = name_without_version(text);
            Some((at, UNASKED.iter().find(|files| files.programs.contains(&name))?))
        });
        let Some((at, files)) = found else { return };
        let arguments = &texts[at + 1..];
        let is_command = |text: &&str| files.commands.contains(text);
        let names_file = |text: &&str| {
            run_options(texts[at]).any(|option| match text.strip_prefix(option) {
                Some("") => true,
                Some(value) => !option.starts_with("--") || value.starts_with('='),
                None => false,
            })
        };
        let is_run = files.commands.is_empty() || arguments.iter().any(is_command);
        if !is_run || arguments.iter().any(names_file) {
            return;
        }
        let folder = folder_of_files(words, around);
        for (nth, name) in files.names.iter().enumerate() {
            let place: PathBuf = folder.join(name).components().collect();
            if around.is_written_or_data(&place) || around.is_data(&place) {
                continue;
            }
            if around.is_behind_a_link(&place) {
                return self.linked.push(place);
            }
            if place.is_file() {
                let workspace = absolute(around.workspace);
                let written = place.strip_prefix(&workspace).unwrap_or(&place);
                self.name(&written.to_string_lossy(), name, &place, around, true);
                let others = files.names[nth + 1..].iter().map(|name| folder.join(name));
                if let Some(other) = others
                    .filter(|other| is_another(other, &place))
                    .find(|other| place.starts_with(&workspace) && other.is_file())
                {
                    let other = other.components().collect();
                    self.rivals.push(RivalFiles { chosen: place.clone(), other });
                }
                return self.places.push(place);
            }
            self.absent.push(place);
        }
    }
}
