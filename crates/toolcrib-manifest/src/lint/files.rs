//! Files that a command names: the lock pins their names, and not what is in them.

use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Node;
use crate::manifest::{Word, files};
use crate::template::Template;

/// Tells of the files in a tool's argument vector that are programs themselves.
pub(super) fn check(tool: &Node, findings: &mut Findings<'_>) {
    let Some(argv) = tool.entry("run").and_then(|run| run.node.entry("argv")) else { return };
    let words: Vec<Word<'_>> = argv.node.items().iter().filter_map(word).collect();
    // Beside a program of the system a path of one's own.
    let own = words.first().filter(|word| {
        word.literal().is_some_and(|program| program.contains('/') && !program.starts_with('/'))
    });
    for word in own.into_iter().chain(files(&words)) {
        let file = word.literal().unwrap_or_default();
        findings.add(
            Diagnostic::hint(
                "unpinned-file",
                &word.node.span,
                format!("a lock pins that `{file}` runs here, and not what is in it"),
            )
            .help(format!(
                "as a script its bytes are pinned: `run: {{script: {file}, args: […]}}`, with the path \
                 from this manifest's folder"
            )),
        );
    }
}

fn word(node: &Node) -> Option<Word<'_>> {
    Some(Word { template: Template::parse(node.as_str()?).ok()?, node })
}
