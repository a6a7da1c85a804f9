//! Texts of shells in argument vectors, which get values as variables of `env`.

use std::collections::BTreeMap;

use super::argv::entries;
use super::script::{diagnostics, split_uses};
use super::shell::{self, Taint};
use super::{interpreters, known};
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Node;
use crate::manifest::tool::references::Scope;
use crate::template::Template;

/// What is wrong with the variables of `env` in the texts of a vector.
#[derive(Debug, Default)]
pub(in crate::manifest) struct TextFindings {
    /// Errors, which `unsafe_argv` allows.
    pub(in crate::manifest) errors: Vec<Diagnostic>,
    /// Warnings about values of which nobody knows what becomes, which a reason silences.
    pub(in crate::manifest) doubts: Vec<Diagnostic>,
    pub(in crate::manifest) warnings: Vec<Diagnostic>,
}

/// Looks for the variables of `env` in the texts that the shells of a vector run: in them they are the variables of
/// `run: {shell, text, vars}`. `source` is the text of the manifest.
pub(in crate::manifest) fn texts_with(
    list: &Node,
    env: &BTreeMap<String, Template>,
    scope: &mut Scope,
    source: &str,
) -> TextFindings {
    let mut found = TextFindings::default();
    // What the author writes there may well be meant to be split.
    let given = |(name, template): (&String, &Template)| {
        Some((name.clone(), Some(Taint::of(template, scope)?)))
    };
    let variables: BTreeMap<_, _> = env.iter().filter_map(given).collect();
    if !variables.values().flatten().any(|taint| taint.is_by_model) {
        return found;
    }
    let mut said = Findings::new("");
    let mut words = Vec::new();
    entries(list, scope, &mut words, &mut said);
    let read = known::read(&words, scope);
    for (at, text) in &read.awk {
        if known::awk_runs(text, &["ENVIRON"], false) {
            let message = "the program of awk may run a variable of `env` that a model sets";
            found.errors.push(
                Diagnostic::error("spliced-script", &words[*at].node.span, message)
                    .help("write what is run as a literal in the program"),
            );
        }
    }
    for (at, name) in &read.started {
        let Some((true, word)) = interpreters::text_run(name, &words[at + 1..]) else { continue };
        let Some(text) = word.literal() else { continue };
        let analysis = shell::analyse(name, text, &variables, &[]);
        let mut is_refused = false;
        for (shell_finding, diagnostic) in diagnostics(&analysis, text, word.node, source) {
            if shell_finding.is_certain {
                // One error says that the text is refused.
                if !is_refused {
                    found.errors.push(diagnostic);
                }
                is_refused = true;
            } else if shell_finding.is_doubt {
                found.doubts.push(diagnostic);
            } else {
                found.warnings.push(diagnostic);
            }
        }
        found.warnings.extend(split_uses(text, word.node, &analysis, source));
    }
    found
}
