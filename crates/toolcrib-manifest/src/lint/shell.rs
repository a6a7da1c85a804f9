//! Shell syntax where there is no shell: entries of `argv`, variables and working directories are
//! used as written.

use super::shown;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node, NodeValue};
use crate::fields::shell_line;
use crate::manifest::program::interpreters::runs_shell_text;
use crate::manifest::program::known::base_name;
use crate::template::{Piece, Template};
use crate::words::Words;

/// Programs that pass their arguments to a shell, or use shell operators as arguments.
const OWN_SIGNS: [&str; 12] =
    ["ssh", "watch", "parallel", "expr", "test", "[", "find", "jq", "ss", "tc", "bc", "dc"];

/// Programs, besides shells, whose arguments contain texts in which `$` and backquotes have a
/// meaning.
const OWN_TEXTS: [&str; 27] = [
    "python",
    "pypy",
    "perl",
    "ruby",
    "node",
    "bun",
    "php",
    "lua",
    "luajit",
    "osascript",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "jq",
    "ssh",
    "watch",
    "parallel",
    "psql",
    "mysql",
    "tmux",
    "make",
    "Rscript",
    "deno",
    "tclsh",
    "envsubst",
];

/// Programs that take file names, in which patterns are not expanded.
static TAKE_FILES: Words = Words::of(
    "ls cat rm cp mv du wc head tail stat chmod chown gzip zcat sha256sum md5sum touch file sort \
     tar grep ln",
);

pub(super) fn check(tool: &Node, findings: &mut Findings<'_>) {
    if let Some(cwd) = tool.entry("cwd") {
        check_cwd(cwd, findings);
    }
    let Some(run) = tool.entry("run") else { return };
    if let Some(argv) = run.node.entry("argv").or(run.node.entry("worker")) {
        check_argv(argv.node.items(), true, findings);
    }
    if let Some(args) = run.node.entry("args") {
        check_argv(args.node.items(), false, findings);
    }
    for key in ["env", "vars"] {
        for entry in run.node.entry(key).map(|env| env.node.entries()).unwrap_or_default() {
            check_variable(entry, key, findings);
        }
    }
    if let Some(text) = run.node.entry("text") {
        check_folded(text, findings);
    }
}

/// The same for an MCP server.
pub(super) fn check_upstream(server: &Node, findings: &mut Findings<'_>) {
    if let Some(command) = server.entry("command") {
        check_argv(command.node.items(), true, findings);
    }
    for entry in server.entry("env").map(|env| env.node.entries()).unwrap_or_default() {
        check_variable(entry, "env", findings);
    }
}

fn check_argv(items: &[Node], with_program: bool, findings: &mut Findings<'_>) {
    let words: Vec<&Node> = items
        .iter()
        .flat_map(|item| match &item.value {
            NodeValue::String(_) => std::slice::from_ref(item),
            _ => item.entry("then").map(|then| then.node.items()).unwrap_or_default(),
        })
        .collect();
    let names: Vec<&str> = words.iter().filter_map(|word| word.as_str()).map(base_name).collect();
    let has = |list: &[&str]| names.iter().any(|name| list.contains(name));
    let signs = has(&OWN_SIGNS);
    let texts = has(&OWN_TEXTS) || names.iter().any(|name| runs_shell_text(name));
    let program = names.first().copied().unwrap_or_default();
    let files = with_program && TAKE_FILES.contains(program);
    let is_inline = |word: &&&Node| word.as_str().is_some_and(|text| text == "-c");
    let after_text = (with_program && runs_shell_text(program))
        .then(|| words.iter().position(|word| is_inline(&word)))
        .flatten()
        .map_or(usize::MAX, |at| at + 2);
    for (at, word) in words.iter().enumerate() {
        let Some(text) = word.as_str() else { continue };
        let found = if at == 0 && with_program {
            whole_line(text).or_else(|| curly(text))
        } else if at == 1 && with_program && runs_shell_text(program) && is_line(text) {
            Some(line_for_shell(program))
        } else {
            let sign = (at >= after_text || !signs && !texts)
                .then(|| sign(text, &words[at + 1..]))
                .flatten();
            let expansion = || (!texts).then(|| expansion(text)).flatten();
            let glob = || (files && !texts).then(|| glob(text)).flatten();
            let percent = || text.contains("\\%").then(|| percent(text));
            let quoted = || {
                // In single quotes a whole argument means something to hardly any program; JSON has double ones.
                let quotes = if files { &['"', '\''][..] } else { &['\''] };
                (!texts && program != "grep").then(|| straight(text, quotes)).flatten()
            };
            sign.or_else(expansion)
                .or_else(|| curly(text))
                .or_else(quoted)
                .or_else(percent)
                .or_else(|| blank(text))
                .or_else(glob)
        };
        if let Some((message, help)) = found {
            findings.add(Diagnostic::warning("shell-syntax", &word.span, message).help(help));
        }
    }
}

type MessageAndHelp = (String, String);

/// An entry that is a shell operator.
fn sign(text: &str, after: &[&Node]) -> Option<MessageAndHelp> {
    let shell = "to use a shell, write its text: `run: {shell: sh, text: …, vars: {…}}`";
    let always = after.first().and_then(|next| next.as_str()).is_some_and(|next| next == "true");
    let message = || {
        format!(
            "`{text}` has no special meaning here: the program gets it as an \
     argument"
        )
    };
    match text {
        "||" if always => Some((
            message(),
            format!("list exit codes that are not failures: `ok_exit: [0, 1]`; {shell}"),
        )),
        "|" | "||" | "&&" | ";" | "&" | ";;" | "|&" => Some((message(), shell.to_owned())),
        _ if (text.starts_with("<(") || text.starts_with(">(")) && text.ends_with(')') => {
            Some((message(), shell.to_owned()))
        }
        _ if is_redirection(text) => Some((
            message(),
            format!(
                "remove it: standard output and standard error become the result, and `stdin` \
                 sets the input; {shell}"
            ),
        )),
        _ => None,
    }
}

fn is_redirection(text: &str) -> bool {
    let sign = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let sign = sign.strip_prefix('&').unwrap_or(sign);
    let Some(target) =
        [">>", ">|", "<<<", "<<", ">", "<"].iter().find_map(|s| sign.strip_prefix(s))
    else {
        return false;
    };
    // A file; `>=1.2` and `<name>` are something else.
    let name = target.strip_prefix(' ').unwrap_or(target);
    let is_file = name.contains(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    target.is_empty() || target.starts_with(['&', '/', '.', '~']) || is_file || sign != text
}

/// A text that a shell would replace.
fn expansion(text: &str) -> Option<MessageAndHelp> {
    let literal = literal(text);
    if literal.contains("$(") || literal.matches('`').count() >= 2 {
        let message = "no shell runs the text in `$(…)` or backquotes here";
        let help = "write a shell's text: `run: {shell: sh, text: …, vars: {…}}`";
        return Some((message.to_owned(), help.to_owned()));
    }
    home(&literal).or_else(|| variable(&literal))
}

/// A tilde that a shell would replace.
fn home(literal: &str) -> Option<MessageAndHelp> {
    let of_user = |text: &str| {
        let name = text.strip_prefix('~').and_then(|rest| rest.split_once('/'));
        name.is_some_and(|(name, _)| {
            name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        })
    };
    let tilde = literal == "~"
        || of_user(literal)
        || literal.split_once('=').is_some_and(|(_, value)| of_user(value));
    tilde.then(|| {
        let message = "`~` is not replaced: no shell inserts a home directory";
        let help = "write the whole path, or \"${env.HOME}/…\", and grant it: `sandbox: {read: \
                    [\"~/…\"]}`";
        (message.to_owned(), help.to_owned())
    })
}

/// `$NAME` where a shell would put a variable's value.
fn variable(literal: &str) -> Option<MessageAndHelp> {
    let (before, after) = literal.split_once('$')?;
    let braced = after.starts_with('{');
    let after = after.strip_prefix('{').unwrap_or(after);
    let name: String =
        after.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let rest = &after[name.len()..];
    if before.is_empty() && ["?", "$", "#", "!", "@", "*", "0"].contains(&after) {
        let message = format!("`{literal}` is not replaced: only a shell has a value for it");
        let help = "write a shell's text: `run: {shell: sh, text: …, vars: {…}}`";
        return Some((message, help.to_owned()));
    }
    let is_name = name.starts_with(|c: char| c.is_ascii_uppercase())
        && !name.contains(|c: char| c.is_ascii_lowercase());
    let placed = before.is_empty() || before.ends_with(['/', '=', ':']);
    let ends = rest.is_empty() || rest.starts_with(['/', ':', '.', '-']) || braced;
    (is_name && placed && ends).then(|| {
        let message = format!("`${name}` is not replaced: no shell inserts the variable's value");
        let help = format!("write \"${{env.{name}}}\" for the variable of the server");
        (message, help)
    })
}

/// Typographic quotes around a whole entry.
fn curly(text: &str) -> Option<MessageAndHelp> {
    let quotes = ['\u{201c}', '\u{201d}', '\u{201e}', '\u{2018}', '\u{2019}'];
    let inside = text.trim_matches(quotes);
    let both = text.starts_with(quotes) && text.ends_with(quotes) && inside.len() < text.len();
    both.then(|| {
        let message = "the curly quotes are part of the text";
        (message.to_owned(), format!("write straight quotes: \"{inside}\""))
    })
}

/// A percent sign as crontabs write it.
fn percent(text: &str) -> MessageAndHelp {
    let message = "the backslash is part of the argument: only a crontab needs it before `%`";
    (message.to_owned(), format!("write `{}`", text.replace("\\%", "%")))
}

/// Straight quotes around a whole entry, which a shell would remove.
fn straight(text: &str, quotes: &[char]) -> Option<MessageAndHelp> {
    let quote = text.chars().next().filter(|first| quotes.contains(first))?;
    let inside = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inside.is_empty() && !inside.contains(quote)).then(|| {
        let message = "the quotes are part of the argument: no shell takes them off";
        (message.to_owned(), format!("write the text alone: \"{inside}\""))
    })
}

/// An option and its value in one entry.
fn blank(text: &str) -> Option<MessageAndHelp> {
    let (option, value) = text.split_once(' ')?;
    let name = option.trim_start_matches('-');
    let dashes = option.len() - name.len();
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let alone = match dashes {
        1 => name.len() == 1 && name.starts_with(|c: char| c.is_ascii_alphabetic()),
        2 => name.len() > 1 && plain,
        _ => false,
    };
    (alone && !value.trim().is_empty()).then(|| {
        let message = "an entry is one argument, including the space";
        (message.to_owned(), format!("write two entries: \"{option}\", \"{}\"", value.trim()))
    })
}

/// A file name pattern, which the program reads as a name.
fn glob(text: &str) -> Option<MessageAndHelp> {
    let literal = literal(text);
    let option = literal.starts_with('-');
    (literal.contains('*') && !option && !literal.contains([' ', '(', '\\', '^', '$'])).then(|| {
        let message = "`*` is not expanded: no shell searches for files here";
        let help =
            "list the files with `find`, or write a shell's text: `run: {shell: sh, text: …}`";
        (message.to_owned(), help.to_owned())
    })
}

/// A program with its arguments in one entry.
fn whole_line(text: &str) -> Option<MessageAndHelp> {
    let line = is_line(text) && !text.contains("${");
    line.then(|| {
        let words: Vec<String> =
            text.split_whitespace().map(|word| format!("\"{word}\"")).collect();
        let message = "the whole line is read as the name of one program";
        if let Some(help) = shell_line(text) {
            return (message.to_owned(), help);
        }
        (message.to_owned(), format!("write an entry for each argument: [{}]", words.join(", ")))
    })
}

/// Whether a text is a command line: file names may contain spaces, but not options after a space.
fn is_line(text: &str) -> bool {
    let Some((_, rest)) = text.trim().split_once(' ') else { return false };
    if text.starts_with('-') {
        return false;
    }
    !text.starts_with(['/', '.']) || rest.split_whitespace().any(|word| word.starts_with('-'))
}

/// A command line in the place of a shell's file name.
fn line_for_shell(shell: &str) -> MessageAndHelp {
    let message = format!("`{shell}` reads this line as the name of a file to run");
    (message, format!("write the line as the text of a shell: `run: {{shell: {shell}, text: …}}`"))
}

/// The text without its references.
fn literal(text: &str) -> String {
    let Ok(template) = Template::parse(text) else { return String::new() };
    let pieces = template.pieces.iter();
    pieces.map(|piece| if let Piece::Literal(text) = piece { text } else { "\u{fffc}" }).collect()
}

fn check_variable(entry: &Entry, key: &str, findings: &mut Findings<'_>) {
    let Some(text) = entry.node.as_str() else { return };
    if let Some((message, help)) = expansion(text).or_else(|| curly(text)) {
        let what = format!("in `{key}`, {message}");
        findings.add(Diagnostic::warning("shell-syntax", &entry.node.span, what).help(help));
    }
}

fn check_cwd(cwd: &Entry, findings: &mut Findings<'_>) {
    let Some(text) = cwd.node.as_str() else { return };
    if text.starts_with('~') || text.contains('$') {
        let message = "`cwd` is used as written: nothing in it is replaced";
        findings.add(
            Diagnostic::warning("shell-syntax", &cwd.node.span, message)
                .help("write the path; one that does not begin with `/` is below the workspace"),
        );
    }
}

/// A shell text of several lines that YAML joins to one.
fn check_folded(text: &Entry, findings: &mut Findings<'_>) {
    let after = findings.text.get(text.key_span.end..).unwrap_or_default();
    let after = after.trim_start_matches(['"', '\'', ':', ' ']);
    let Some(block) = after.strip_prefix('>') else { return };
    let lines = block.lines().skip(1);
    let indented = lines.take_while(|line| line.is_empty() || line.starts_with(' '));
    let written = indented.filter(|line| !line.trim().is_empty()).count();
    let value = text.node.as_str().unwrap_or_default().trim_end();
    if written > 1 && !value.contains('\n') {
        let message = "`>` joins these lines to one, and a shell takes them for one command";
        findings.add(
            Diagnostic::warning("folded-script", &shown(text), message)
                .help("write `text: |`, which keeps the lines"),
        );
    }
}
