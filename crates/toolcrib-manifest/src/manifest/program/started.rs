//! The programs that an argument vector starts, and the files that they run.

use super::argv::{Word, entries};
use super::{interpreters, known};
use crate::diagnostic::Findings;
use crate::diagnostic::position::Span;
use crate::document::Node;
use crate::manifest::tool::references::Scope;
use crate::programs;

/// A program that a tool starts, with its literal arguments.
pub(crate) struct StartedProgram {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) arguments: Vec<String>,
    /// The files that run: those that its arguments name, and its own if that is a relative path.
    pub(crate) files: Vec<RunFile>,
}

/// A file that a program runs.
pub(crate) struct RunFile {
    pub(crate) written: String,
    pub(crate) span: Span,
    /// The folder to which the program changes before it opens the file.
    pub(crate) folder: Option<String>,
    /// Whether the word cannot mean anything but a file.
    pub(crate) is_certain: bool,
}

/// The programs that a tool or an MCP server starts, including wrappers.
pub(crate) fn started(list: &Node, findings: &Findings<'_>) -> Vec<StartedProgram> {
    let mut said = Findings::new(findings.text);
    let mut scope = Scope::default();
    let mut words = Vec::new();
    entries(list, &mut scope, &mut words, &mut said);
    let read = known::read(&words, &scope);
    let all = read.started.iter().map(|(at, name)| StartedProgram {
        name: known::base_name(name).to_owned(),
        span: words[*at].node.span.clone(),
        arguments: words[at + 1..].iter().filter_map(Word::literal).map(str::to_owned).collect(),
        files: own_file(*at, name, &words)
            .into_iter()
            .chain(files_run(name, &words[at + 1..]))
            .collect(),
    });
    all.collect()
}

/// The file of the tool's own program, if that is a relative path.
fn own_file(at: usize, name: &str, words: &[Word<'_>]) -> Option<RunFile> {
    let is_relative = at == 0 && name.contains('/') && !name.starts_with('/');
    is_relative.then(|| RunFile {
        written: name.to_owned(),
        span: words[at].node.span.clone(),
        folder: None,
        is_certain: true,
    })
}

/// The files that the program of this name runs: its script, a makefile, a playbook.
fn files_run(program: &str, words: &[Word<'_>]) -> Vec<RunFile> {
    let file = |word: &Word<'_>, written: &str, folder: Option<&str>, is_certain| RunFile {
        written: written.to_owned(),
        span: word.node.span.clone(),
        folder: folder.map(str::to_owned),
        is_certain,
    };
    if interpreters::is_interpreter(program) {
        let script = interpreters::file_run(program, words);
        let script = script.and_then(|word| Some(file(word, word.literal()?, None, false)));
        return script.into_iter().collect();
    }
    let mut found = Vec::new();
    let mut folder = None;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = word.literal().unwrap_or_default();
        let value = words.get(at + 1).and_then(|next| Some((next, next.literal()?)));
        at += 1;
        let option = [Some(program), word.literal(), value.map(|(_, text)| text)];
        if let Some(named) = programs::folder_in(option.into_iter().flatten()) {
            folder = Some(named);
            at += usize::from(!text.ends_with(named));
        } else if programs::is_run_option(program, text) {
            found.extend(value.map(|(word, text)| file(word, text, folder, true)));
            at += 1;
        } else if let Some((option, text)) = text.split_once('=')
            && programs::is_run_option(program, option)
        {
            found.push(file(word, text, folder, true));
        } else if known::takes_value(program, text) == Some(true) {
            at += 1;
        } else if programs::is_interpreter(program) && !text.starts_with('-') {
            found.extend(word.literal().map(|text| file(word, text, None, true)));
            break;
        } else if programs::is_interpreter(program) && text == "-e" {
            break;
        }
    }
    found.retain(|file| file.written != "-" && !file.written.is_empty());
    found
}
