//! Programs that load code from the folder in which they run, although nothing names its file. In the
//! workspace other tools write, so they would decide what runs.

use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Node;
use crate::manifest::{Places, started, unknown_files};
use crate::programs::name_without_version;
use crate::shell_text;
use crate::words::Words;

/// Programs that run a file of their folder before anything else.
struct RunsAtStart {
    names: &'static [&'static str],
    file: &'static str,
    /// Options, each of which keeps the program from it.
    without: &'static [&'static str],
}

const RUN_AT_START: [RunsAtStart; 4] = [
    RunsAtStart {
        names: &["R", "Rscript"],
        file: ".Rprofile",
        without: &["--vanilla", "--no-init-file"],
    },
    RunsAtStart {
        names: &["octave", "octave-cli"],
        file: ".octaverc",
        without: &["--norc", "-f", "--no-init-file"],
    },
    RunsAtStart { names: &["ghci", "runghc"], file: ".ghci", without: &["-ignore-dot-ghci"] },
    RunsAtStart { names: &["erl"], file: ".erlang", without: &["no_dot_erlang"] },
];

/// Modules of Node.js itself, of which no folder can have another.
static OF_NODE: Words = Words::of(
    "assert buffer child_process crypto events fs http https net os path process stream util",
);

/// One program with its arguments.
struct Started {
    name: String,
    arguments: Vec<String>,
    /// Whether the variables are withheld from it that keep it from loading code.
    is_bare: bool,
}

/// Warns of programs that load code from the workspace.
pub(super) fn check(tool: &Node, findings: &mut Findings<'_>) {
    let Some(run) = tool.entry("run").map(|run| &run.node) else { return };
    let profile = tool.entry("sandbox").and_then(|sandbox| text(&sandbox.node, "profile"));
    let cwd = text(run, "cwd");
    // Elsewhere no tool writes. A trusted program starts beside its manifest.
    let is_elsewhere = |cwd: &str| cwd.starts_with(['/', '~']) || cwd.starts_with("..");
    if cwd.map_or(profile == Some("trusted"), is_elsewhere) {
        return;
    }
    let mut found: Vec<(Span, String, &'static str)> = Vec::new();
    if let Some(list) = run.entry("argv").map(|entry| &entry.node) {
        let programs = started(list, findings);
        let is_bare = programs.first().is_some_and(|first| clears(&first.name, &first.arguments));
        for program in programs {
            let Some(inner) = shell_of(&program.name, &program.arguments) else {
                let (name, arguments) = (program.name, program.arguments);
                let started = Started { name, arguments, is_bare };
                found.extend(loads(&started).map(|(said, help)| (program.span, said, help)));
                continue;
            };
            let all = in_text(inner).into_iter();
            found.extend(all.map(|(said, help)| (program.span.clone(), said, help)));
        }
    }
    if let Some(entry) = run.entry("text")
        && let Some(text) = entry.node.as_str()
    {
        let all = in_text(text).into_iter();
        found.extend(all.map(|(said, help)| (entry.node.span.clone(), said, help)));
    }
    if found.is_empty()
        && let Some(entry) = run.entry("text")
        && let Some(text) = entry.node.as_str()
    {
        for file in unknown_files(text) {
            let written = text.get(file.range.clone()).unwrap_or_default();
            let span = Places::nth(&entry.node, written, text, file.range.start, findings.text);
            findings.add(Diagnostic::warning("loaded-code", &span, file.message).help(file.help));
        }
    }
    if let Some((span, said, help)) = found.into_iter().next() {
        findings.add(Diagnostic::warning("loaded-code", &span, said).help(help));
    }
}

/// The text of a key.
fn text<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    node.entry(key).and_then(|entry| entry.node.as_str())
}

/// The text that a shell runs.
fn shell_of<'a>(name: &str, arguments: &'a [String]) -> Option<&'a str> {
    let is_text = |option: &String| option.starts_with('-') && option.ends_with('c');
    let at = arguments.iter().position(is_text).filter(|_| crate::programs::is_any_shell(name))?;
    arguments.get(at + 1).map(String::as_str)
}

fn in_text(text: &str) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    let mut is_unset = false;
    for command in shell_text::commands(text) {
        let words = &command.words;
        let first = words.first().map(|word| name_without_version(word)).unwrap_or_default();
        is_unset |= matches!(first, "unset" | "export")
            && words.iter().any(|word| {
                word.strip_prefix("PYTHONSAFEPATH").is_some_and(|rest| matches!(rest, "" | "="))
            });
        is_unset |= command.assignments.iter().any(|(name, _)| name == "PYTHONSAFEPATH");
        let is_bare = is_unset || clears(first, words);
        for (at, word) in words.iter().enumerate() {
            let started = Started {
                name: name_without_version(word).to_owned(),
                arguments: words[at + 1..].to_vec(),
                is_bare,
            };
            // What a program is given is no program unless that program starts others.
            if at == 0 || is_wrapper(first) {
                found.extend(loads(&started));
            }
        }
    }
    found
}

fn is_wrapper(name: &str) -> bool {
    crate::programs::runs_its_arguments(name) && !loads_anything(name)
}

fn loads_anything(name: &str) -> bool {
    name.starts_with("python") || matches!(name, "node" | "perl" | "ruby" | "lua" | "luajit")
}

/// Whether a program starts others without the variables that toolcrib sets.
fn clears(name: &str, arguments: &[String]) -> bool {
    name == "env"
        && arguments.iter().enumerate().any(|(at, word)| {
            matches!(word.as_str(), "-" | "-i" | "--ignore-environment" | "-uPYTHONSAFEPATH")
                || word == "--unset=PYTHONSAFEPATH"
                || word == "PYTHONSAFEPATH="
                || word == "PYTHONSAFEPATH" && at > 0
        })
}

/// What a program loads from its folder, with what to do.
fn loads(program: &Started) -> Option<(String, &'static str)> {
    let Started { name, arguments, is_bare } = program;
    let options: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .take_while(|word| word.starts_with('-') && *word != "--")
        .collect();
    let has = |letter: char| {
        options.iter().any(|option| {
            // `-c` and `-m` end the letters: the rest is code or a name.
            let letters = option.split(['c', 'm', 'W', 'X']).next().unwrap_or_default();
            !option.starts_with("--") && letters.contains(letter)
        })
    };
    if name.starts_with("python") && (*is_bare || has('E')) && !has('I') && !has('P') {
        let why = if has('E') { "`-E` ignores" } else { "the text takes away" };
        return Some((
            format!(
                "`{name}` loads modules from the workspace here: {why} the variable `PYTHONSAFEPATH`, \
                 which keeps it from that"
            ),
            "write `-I`, or `-P` (Python 3.11 or newer) beside it",
        ));
    }
    let is_relative = |folder: &str| !folder.starts_with('/') && !folder.starts_with('$');
    let folders = || {
        let after =
            arguments.windows(2).filter(|pair| pair[0] == "-I").map(|pair| pair[1].as_str());
        let attached = options.iter().filter_map(|option| option.strip_prefix("-I"));
        after.chain(attached.filter(|folder| !folder.is_empty()))
    };
    if matches!(name.as_str(), "perl" | "ruby")
        && folders().any(|folder| is_relative(folder) && matches!(folder, "." | "./"))
    {
        return Some((
            format!(
                "`{name}` loads modules from the workspace itself, in which other tools may write"
            ),
            "keep the modules in a folder of their own, `-Ilib`: it is then read-only for other tools",
        ));
    }
    let code = arguments.windows(2).find(|pair| matches!(pair[0].as_str(), "-e" | "-p" | "--eval"));
    let code = code.map(|pair| pair[1].as_str()).unwrap_or_default();
    if matches!(name.as_str(), "node" | "nodejs")
        && required(code).any(|module| !is_of_node(module))
    {
        return Some((
            format!("`{name}` looks for this module in `node_modules` of the workspace first"),
            "write a script beside the manifest, with its `node_modules`: `run: {script: ./run.js}`",
        ));
    }
    if matches!(name.as_str(), "lua" | "luajit") && required(code).next().is_some() {
        return Some((
            format!("`{name}` looks for this module as `./?.lua` in the workspace"),
            "set `package.path` before, or write a script beside the manifest with `cwd: ../tools.d`",
        ));
    }
    let known = RUN_AT_START.iter().find(|known| known.names.contains(&name.as_str()))?;
    let is_kept = arguments.iter().any(|option| known.without.contains(&option.as_str()));
    (!is_kept).then(|| {
        (
            format!(
                "`{name}` runs `{}` of the workspace at its start, which other tools may write",
                known.file
            ),
            "write the option that keeps it from that (`--vanilla` of R, `--norc` of octave, \
             `-ignore-dot-ghci`, `-boot no_dot_erlang`)",
        )
    })
}

/// The modules that code names in `require`.
fn required(code: &str) -> impl Iterator<Item = &str> {
    code.split("require").skip(1).filter_map(|rest| {
        let rest = rest.trim_start_matches(['(', ' ']);
        let quote = rest.chars().next().filter(|sign| matches!(sign, '"' | '\'' | '`'))?;
        rest[1..].split(quote).next()
    })
}

fn is_of_node(module: &str) -> bool {
    module.starts_with("node:")
        || module.starts_with('/')
        || OF_NODE.contains(module.split('/').next().unwrap_or_default())
}
