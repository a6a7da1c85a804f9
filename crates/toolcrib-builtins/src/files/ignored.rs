//! Reads `.gitignore` files by descriptor and decides which files a search skips.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use toolcrib_sandbox::{Visit, Workspace};

/// The largest `.gitignore` file, in bytes; a longer one is ignored.
const MAX_BYTES: u64 = 1 << 20;

const NAME: &str = ".gitignore";

/// The rules that apply at the current position of a walk, outermost first.
#[derive(Debug, Default)]
pub(super) struct IgnoreRules {
    /// The rules of the folders above the walk, with the start of their paths.
    above: Vec<(PathBuf, Gitignore)>,
    /// The rules of the folders inside the walk, with their depth and path.
    within: Vec<(usize, PathBuf, Gitignore)>,
}

impl IgnoreRules {
    /// The rules of a folder and of all folders above it, up to the project's. `path` is relative to the project and
    /// has no links that matter: rules above a link do not apply below it.
    pub(super) fn above(workspace: &Workspace, path: &str) -> Self {
        let mut ignored = Self::default();
        let names: Vec<_> = path.split('/').filter(|name| *name != ".").collect();
        if names.contains(&"..") {
            return ignored;
        }
        for count in 0..=names.len() {
            let folder = names[..count].join("/");
            let file = if folder.is_empty() { NAME.to_owned() } else { format!("{folder}/{NAME}") };
            if let Some(rules) = workspace.read(&file, MAX_BYTES).ok().and_then(|text| rules(&text))
            {
                // Rules of this folder see paths that begin with the way down from it.
                ignored.above.push((names[count..].iter().collect(), rules));
            }
        }
        ignored
    }

    /// Whether a visited entry is ignored. Folders that are not ignored add their own rules.
    pub(super) fn covers(&mut self, visit: &Visit<'_>, is_folder: bool) -> bool {
        while self.within.last().is_some_and(|(depth, ..)| *depth > visit.depth()) {
            self.within.pop();
        }
        let path = visit.path();
        let inner = self.within.iter().rev().map(|(_, from, rules)| {
            let path = path.strip_prefix(from).unwrap_or(path);
            rules.matched(path, is_folder)
        });
        let outer =
            self.above.iter().rev().map(|(way, rules)| rules.matched(way.join(path), is_folder));
        // The innermost rule that matches decides.
        let verdict = inner.chain(outer).find(|verdict| !verdict.is_none());
        if verdict.is_some_and(|verdict| verdict.is_ignore()) {
            return true;
        }
        if is_folder
            && let Ok(mut file) = visit.open_inside(NAME)
            && let Some(rules) = file.read_all(MAX_BYTES).ok().and_then(|text| rules(&text))
        {
            self.within.push((visit.depth() + 1, path.to_owned(), rules));
        }
        false
    }
}

fn rules(text: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(Path::new(""));
    for line in String::from_utf8_lossy(text).lines() {
        // Invalid lines are skipped; the others apply.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
