//! Habits from the command line that do not fit a tool: a terminal, output that never ends, commands that change
//! things in a tool that says that it only reads.

use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Node, NodeValue};
use crate::manifest::program::known::base_name;
use crate::manifest::{StartedProgram, started};
use crate::template::{Piece, Reference, Template};
use crate::words::Words;

/// Programs that show a file page by page or edit it at a terminal, with what is written instead.
const AT_TERMINAL: [(&[&str], &str); 2] = [
    (
        &["less", "more", "most", "pg"],
        "print the file: `cat`; what a call returns is limited anyway",
    ),
    (
        &["vi", "vim", "nvim", "nano", "emacs", "pico", "joe", "ed", "visudo", "vipw"],
        "change the file with a program that reads no keys, such as `sed`, or let the model use a file tool",
    ),
];

/// Programs with commands that allocate a terminal.
const IN_CONTAINERS: [&str; 6] = ["docker", "podman", "nerdctl", "kubectl", "oc", "crictl"];

/// Commands that change things: the program, and its commands; without commands, it always does.
const CHANGES: [(&[&str], &[&str]); 9] = [
    (
        &["kubectl", "oc"],
        &[
            "delete", "apply", "create", "patch", "replace", "edit", "scale", "drain", "cordon",
            "uncordon", "taint", "annotate", "label",
        ],
    ),
    (&["helm"], &["install", "upgrade", "uninstall", "rollback"]),
    (&["docker", "podman", "nerdctl"], &["rm", "rmi", "stop", "kill", "restart", "start", "prune"]),
    (
        &["systemctl", "service"],
        &["start", "stop", "restart", "reload", "enable", "disable", "mask", "kill"],
    ),
    (&["git"], &["push", "commit", "reset", "checkout", "merge", "rebase", "clean"]),
    (
        &["apt", "apt-get", "dnf", "yum", "apk"],
        &["install", "remove", "upgrade", "purge", "autoremove"],
    ),
    (&["terraform", "tofu"], &["apply", "destroy"]),
    (
        &[
            "rm", "rmdir", "mv", "kill", "pkill", "killall", "shutdown", "reboot", "mkfs",
            "truncate",
        ],
        &[],
    ),
    (&["ansible-playbook"], &[]),
];

/// Options with which such commands change nothing.
static CHANGES_NOTHING: Words = Words::of(
    "--dry-run --dry-run=client --dry-run=server -n -s --simulate --check --list-tasks \
     --list-hosts --syntax-check --help -0",
);

pub(super) fn check(tool: &Node, findings: &mut Findings<'_>) {
    if let Some(description) = tool.entry("description") {
        check_comment(&description.node, findings);
    }
    let Some(run) = tool.entry("run") else { return };
    let Some(argv) = run.node.entry("argv") else { return };
    findings.add_all(filter(argv.node.items(), run.node.entry("env").is_some()));
    let programs = started(&argv.node, findings);
    let has_input = run.node.entry("stdin").is_some();
    for program in &programs {
        findings.add_all(terminal(program, &argv.node));
        findings.add_all(pager_or_editor(program, has_input));
    }
    // An author who limits the time has thought of the end.
    let is_limited =
        tool.entry("limits").is_some_and(|limits| limits.node.entry("timeout").is_some())
            || programs.iter().any(|program| program.name == "timeout");
    if !is_limited {
        findings.add_all(programs.iter().find_map(endless));
    }
    let annotations = tool.entry("annotations");
    let read_only = annotations.and_then(|entry| entry.node.entry("read_only"));
    if let Some(said) = read_only.filter(|said| said.node.value == NodeValue::Bool(true))
        && let Some((program, command)) =
            programs.iter().find_map(|program| Some((program, changes(program)?)))
    {
        let what = format!("{} {command}", program.name);
        let message =
            format!("`{}` changes things, and the tool says that it only reads", what.trim());
        findings.add(
            Diagnostic::warning("contradicting-annotations", &program.span, message)
                .help(
                    "write `read_only: false`, and `destructive: false` if a call destroys nothing",
                )
                .also(&said.key_span, "this says that a call changes nothing"),
        );
    }
}

/// Reports a value inside the filter of jq, in which it could change what the filter does.
fn filter(argv: &[Node], has_variables: bool) -> Option<Diagnostic> {
    let mut words = argv.iter();
    if words.next()?.as_str().map(base_name) != Some("jq") {
        return None;
    }
    let filter = loop {
        let word = words.next()?;
        match word.as_str()? {
            "--arg" | "--argjson" | "--slurpfile" | "--rawfile" => drop(words.nth(1)),
            "--indent" | "-L" => drop(words.next()),
            "-f" | "--from-file" => return None,
            option if option.starts_with('-') => {}
            _ => break word,
        }
    };
    let template = Template::parse(filter.as_str()?).ok()?;
    if let ([Piece::Reference(reference @ Reference::Arg(_))], true) =
        (template.pieces.as_slice(), has_variables)
    {
        let message = format!(
            "{reference} is the whole filter of jq, which reads the tool's variables with `$ENV`"
        );
        return Some(Diagnostic::warning("spliced-filter", &filter.span, message).help(
            "remove `env`, or put the filters that are meant into an `enum` of the argument",
        ));
    }
    // The whole filter may be a value: jq runs nothing and writes no files.
    let reference = template.references().next().filter(|_| template.pieces.len() > 1)?;
    let message = format!(
        "{reference} is inside the filter of jq: a quote in the value changes what it does"
    );
    Some(Diagnostic::warning("spliced-filter", &filter.span, message).help(format!(
        "hand the value over as a variable: `--arg`, `value`, \"{reference}\" before the filter, and `$value` in it"
    )))
}

/// Reports `-it`, which asks for a terminal.
fn terminal(program: &StartedProgram, argv: &Node) -> Option<Diagnostic> {
    let asks = |word: &str| {
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        word == "--tty"
            || letters.is_some_and(|letters| matches!(letters, "t" | "it" | "ti" | "tt"))
    };
    let words = program.arguments.as_slice();
    // What follows the first word that is no option belongs to another program.
    let own = if program.name == "ssh" {
        words
    } else if IN_CONTAINERS.contains(&program.name.as_str()) {
        let at = words.iter().position(|word| word == "exec" || word == "run")?;
        &words[at + 1..]
    } else {
        return None;
    };
    let word = own.iter().take_while(|word| word.starts_with('-')).find(|word| asks(word))?;
    let place = argv.items().iter().find(|item| item.as_str() == Some(word))?;
    let message = format!("`{word}` asks for a terminal, and there is no terminal for a call");
    let help = "remove it; `-i` alone passes `stdin` on";
    Some(Diagnostic::warning("no-terminal", &place.span, message).help(help))
}

/// Reports a program that reads keys. Editors with a script, or with commands on standard input, need no terminal.
fn pager_or_editor(program: &StartedProgram, has_input: bool) -> Option<Diagnostic> {
    const SCRIPTED: [&str; 6] = ["-s", "-S", "-es", "--batch", "-batch", "-c"];
    let (names, help) =
        AT_TERMINAL.iter().find(|(names, _)| names.contains(&program.name.as_str()))?;
    let is_pager = names.contains(&"less");
    let is_other = program.arguments.iter().any(|word| {
        SCRIPTED.contains(&word.as_str()) || matches!(word.as_str(), "--version" | "--help" | "-V")
    });
    if is_other || has_input && !is_pager {
        return None;
    }
    let message =
        format!("`{}` is made for a terminal, and there is no terminal for a call", program.name);
    Some(Diagnostic::warning("no-terminal", &program.span, message).help(*help))
}

/// Reports a program that does not end by itself.
fn endless(program: &StartedProgram) -> Option<Diagnostic> {
    let has = |options: &[&str]| {
        program.arguments.iter().any(|word| options.iter().any(|option| is_option(word, option)))
    };
    let follows = has(&["-f", "--follow"]);
    let help = match program.name.as_str() {
        "ping" | "ping6" if !has(&["-c", "-w"]) => "send a number of packets: `-c`, \"4\"",
        "tail" if follows || has(&["-F"]) => {
            "read the end of the file: `-n`, \"100\", without `-f`"
        }
        "journalctl" if follows => "read the last entries: `-n`, \"100\", without `-f`",
        "kubectl" | "docker" | "podman" | "oc"
            if follows && program.arguments.iter().any(|word| word == "logs") =>
        {
            "read the last lines: `--tail=100`, without `-f`"
        }
        "top" | "htop" | "atop" if !has(&["-b", "-n"]) => "print once: `top`, `-b`, `-n`, \"1\"",
        "watch" => {
            "run the program itself: a tool is called again by whoever wants to see it again"
        }
        _ => return None,
    };
    let message = format!(
        "`{}` does not end by itself, so each call lasts until its time limit",
        program.name
    );
    Some(
        Diagnostic::hint("endless-program", &program.span, message)
            .help(format!("{help}; if clients are to watch it, set `limits: {{timeout: 1m}}`")),
    )
}

/// Whether a word is an option, alone, with its value, or in a cluster of letters.
fn is_option(word: &str, option: &str) -> bool {
    let Some(letter) = option.strip_prefix('-').filter(|rest| rest.len() == 1) else {
        return word == option
            || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
    };
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    letters.is_some_and(|letters| letters.contains(letter))
}

/// The command of a program that changes things.
fn changes(program: &StartedProgram) -> Option<&str> {
    let (_, commands) = CHANGES.iter().find(|(names, _)| names.contains(&program.name.as_str()))?;
    if program.arguments.iter().any(|word| CHANGES_NOTHING.contains(word.as_str())) {
        return None;
    }
    if commands.is_empty() {
        return Some("");
    }
    // Options before the command may take values, which are not commands, as a rule.
    let command = program.arguments.iter().find(|word| commands.contains(&word.as_str()))?;
    Some(command)
}

/// Reports a comment in which an unquoted text goes on: `hosts of #prod`.
fn check_comment(text: &Node, findings: &mut Findings<'_>) {
    let Some(rest) = findings.text.get(text.span.end..) else { return };
    let line = rest.lines().next().unwrap_or_default();
    let comment = line.trim_start();
    let is_word =
        comment.strip_prefix('#').is_some_and(|word| word.starts_with(char::is_alphanumeric));
    let is_plain = findings
        .text
        .get(text.span.clone())
        .is_some_and(|text| !text.starts_with(['"', '\'', '|', '>']));
    if !is_word || !is_plain || comment.len() == line.len() {
        return;
    }
    let start = text.span.end + line.len() - comment.len();
    let word = comment.split_whitespace().next().unwrap_or_default();
    let message = format!("the text ends before `{word}`, which begins a comment");
    findings.add(
        Diagnostic::warning("cut-text", &(start..start + comment.len()), message)
            .help("put the whole text in quotes; for a comment, write a space after `#`"),
    );
}
