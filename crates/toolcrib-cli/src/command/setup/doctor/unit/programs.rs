//! The programs that a unit starts.

use super::environment::{assigned, variables};
use super::file::{Setting, in_effect};
use super::overrides::{Override, listening, shown_token, without_token};
use super::places::{Places, Writers};
use super::words::words;
use super::{Report, Shown};
use crate::command::setup::doctor::findings::FindingLevel;

/// The lines with programs.
const KEYS: [&str; 7] = [
    "ExecStart",
    "ExecStartPre",
    "ExecStartPost",
    "ExecCondition",
    "ExecReload",
    "ExecStop",
    "ExecStopPost",
];
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox"];

/// A line with a program, without what precedes it.
struct Line<'a> {
    setting: &'a Setting,
    prefixes: &'a str,
    words: Vec<String>,
}

impl<'a> Line<'a> {
    fn of(setting: &'a Setting) -> Self {
        let value = setting.value.as_str();
        let rest = value.trim_start_matches(['@', '-', ':', '+', '!', '|']);
        let prefixes = &value[..value.len() - rest.len()];
        Self { setting, prefixes, words: words(rest) }
    }

    fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    fn is_shell(&self) -> bool {
        let name = self.program().rsplit('/').next().unwrap_or_default();
        self.prefixes.contains('|') || SHELLS.contains(&name)
    }

    /// What the program may read as arguments: a shell reads a text of several.
    fn arguments(&self) -> Vec<String> {
        let own = self.words.iter().skip(1);
        if self.is_shell() {
            own.flat_map(|word| words(word)).collect()
        } else {
            own.cloned().collect()
        }
    }
}

/// Checks the lines in effect: an empty one takes those before it away.
pub(super) fn check(settings: &[Setting], places: &Places, report: &mut Report<'_>) {
    for key in KEYS {
        for setting in in_effect(settings, key) {
            let line = Line::of(setting);
            origin(&line, places, report);
            if key == "ExecStart" {
                prefixes(&line, report);
                arguments(&line, places, report);
            }
        }
    }
}

/// The folders that options and variables make the server's workspace.
pub(super) fn workspaces(settings: &[Setting]) -> Vec<String> {
    let mut found = Vec::new();
    for setting in in_effect(settings, "ExecStart") {
        let arguments = Line::of(setting).arguments();
        for (key, value) in pairs(&arguments) {
            found.extend(Override::Set(key, value).workspace());
        }
    }
    found.extend(
        variables(settings)
            .iter()
            .filter_map(|(_, variable)| variable.split_once('='))
            .filter_map(|(name, value)| Override::Variable(name, value).workspace()),
    );
    found
}

/// Who can change the program.
fn origin(line: &Line<'_>, places: &Places, report: &mut Report<'_>) {
    // A shell runs the files that its arguments name, too.
    let arguments = line.arguments();
    let named = arguments.iter().map(String::as_str).filter(|_| line.is_shell());
    let writers = [line.program()].into_iter().chain(named).find_map(|path| places.writers(path));
    let shown = Shown::hiding(line.setting, &format!("{} …", line.program()));
    match writers {
        Some(Writers::Tools) => {
            let says = "tools or other programs can change the program: promise 10 does not hold";
            let help = "start programs from folders that only root writes";
            report.add(FindingLevel::Failure, &shown, says, help);
        }
        Some(Writers::Service) => {
            let says = "trusted programs can change the program: promise 10 holds in part";
            let help = "start programs from folders that only root writes";
            report.add(FindingLevel::Warning, &shown, says, help);
        }
        None => {}
    }
}

/// What stands before the program.
fn prefixes(line: &Line<'_>, report: &mut Report<'_>) {
    let shown = |prefix: &str| Shown::hiding(line.setting, &format!("{prefix}{}", line.program()));
    let help = "remove the prefix";
    if line.prefixes.contains('+') {
        let says = "the server runs as root, and `User` and the lines that confine it do not apply: promise 9 holds in part";
        report.add(FindingLevel::Warning, &shown("+"), says, help);
    }
    if line.prefixes.contains("!!") {
        let says = "where the kernel has no ambient capabilities, the server runs as root: promise 9 holds in part there";
        report.add(FindingLevel::Warning, &shown("!!"), says, help);
    } else if line.prefixes.contains('!') {
        let says = "`User` is not applied, the server runs as root: promise 9 holds in part";
        report.add(FindingLevel::Warning, &shown("!"), says, help);
    }
    if line.is_shell() {
        let says = "a shell starts the server, and what it runs beside it and with which options cannot be judged: \
                    promises 7, 9 and 10 hold as far as its text lets them";
        let shown = Shown::hiding(line.setting, &format!("{} …", line.program()));
        report.add(
            FindingLevel::Warning,
            &shown,
            says,
            "start `/usr/bin/toolcrib serve` without a shell",
        );
    }
}

/// The options of the server.
fn arguments(line: &Line<'_>, places: &Places, report: &mut Report<'_>) {
    let arguments = line.arguments();
    let shown = |text: &str| Shown::hiding(line.setting, &format!("… {text} …"));
    for word in &arguments {
        if word == "--no-auth" {
            without_token(&shown(word), report);
        }
        if word == "--token" || word.starts_with("--token=") {
            shown_token(&shown("--token"), report);
        }
        // As `env` and shells take them.
        if let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_name(name)) {
            assigned(name, value, &shown(&format!("{name}=…")), places, report);
        }
        if word.starts_with('$') && !word.starts_with("$$") {
            let says = "what the variable stands for is not checked here";
            report.add(FindingLevel::Note, &shown("$"), says, "write the options themselves");
        }
    }
    for listen in values(&arguments, "--listen") {
        if let Ok(listen) = listen.parse() {
            listening(&listen, &shown("--listen"), report);
        }
    }
    for (key, value) in pairs(&arguments) {
        Override::Set(key, value).check(&shown(&format!("--set {key}=…")), report);
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The settings of `--set`.
fn pairs(arguments: &[String]) -> impl Iterator<Item = (&str, &str)> {
    values(arguments, "--set").filter_map(|pair| pair.split_once('='))
}

/// The values of an option, after a blank or an equals sign.
fn values<'a>(arguments: &'a [String], option: &'a str) -> impl Iterator<Item = &'a str> {
    arguments.iter().enumerate().filter_map(move |(at, word)| match word.strip_prefix(option)? {
        "" => arguments.get(at + 1).map(String::as_str),
        rest => rest.strip_prefix('='),
    })
}
