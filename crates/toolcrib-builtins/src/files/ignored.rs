//! What `.gitignore` files say is not worth searching, read by descriptor as everything else.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use toolcrib_sandbox::{Visit, Workspace};

/// The longest file of rules, in bytes; a longer one is no rule.
const MAX_BYTES: u64 = 1 << 20;

const NAME: &str = ".gitignore";

/// The rules that hold where a walk is, the outermost first.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    /// Those of the folders above the walk, whose paths begin there.
    above: Vec<(PathBuf, Gitignore)>,
    /// Those of the folders the walk is in, with how deep they are and where they begin.
    within: Vec<(usize, PathBuf, Gitignore)>,
}

impl Ignored {
    /// The rules of a folder and of all above it, up to the project's. `path` is relative to it and
    /// has no links in it that matter: what is above a link does not count for what is below.
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
                // What a rule of this folder is held against begins with the way down from it.
                ignored.above.push((names[count..].iter().collect(), rules));
            }
        }
        ignored
    }

    /// Whether what a walk visits is ignored. Folders that are not become part of it.
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
        // The innermost rule that has a say has it.
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
        // A line that is no rule is none; the others hold.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
