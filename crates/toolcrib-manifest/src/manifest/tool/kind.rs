//! The body of a tool: a program, a request or the client; and keys that apply to only one of
//! these.

use std::path::Path;
use std::time::Duration;

use super::client;
use crate::declaration::DeclaredBody;
use crate::diagnostic::position::first_line;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node};
use crate::fields::Fields;
use crate::manifest::http;
use crate::manifest::program::command;
use crate::manifest::tool::references::{Scope, variable_for};

/// The body of a tool, with its limits.
pub(in crate::manifest) struct Kind {
    /// `None` if it is invalid.
    pub(in crate::manifest) body: Option<DeclaredBody>,
    /// The time limit of a call; `None` means no limit.
    pub(in crate::manifest) timeout: Option<Duration>,
    /// Whether the client runs it.
    pub(in crate::manifest) is_client: bool,
}

/// Reads `run`, `http` or `client`.
pub(in crate::manifest) fn read(
    fields: &Fields<'_>,
    limit_fields: Option<&Fields<'_>>,
    around: &http::ToolParts<'_>,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Kind {
    let limits = around.limits;
    let is_client = client::is_client(fields, limit_fields, findings);
    let unclear = fields.has("client") && !is_client && fields.flag("client").is_none();
    // One that is indented too far is reported where it is.
    let is_misplaced = ["annotations", "limits", "needs", "output", "sandbox"].iter().any(|key| {
        let below = fields.node(key);
        below.is_some_and(|below| below.entry("run").or_else(|| below.entry("http")).is_some())
    });
    let has_way = ["run", "http"].iter().any(|key| fields.has(key)) || is_misplaced;
    if !is_client && !unclear && !has_way {
        let place = fields.node("name").map_or(&fields.span, |name| &name.span);
        let place = first_line(findings.text, place);
        findings.add(
            Diagnostic::error("missing-key", &place, "a tool needs the key `run` or `http`").help(
                "say what it runs, run: {argv: [program, argument]}, or the request it sends, \
                 http: \
                 {url: https://…}",
            ),
        );
    }
    let command = fields.entry("run").and_then(|run| {
        let beside = command::Beside {
            cwd: fields.entry("cwd"),
            capture_bytes: limits.capture_bytes(),
            folder: Path::new(around.file).parent().unwrap_or(Path::new("")),
        };
        command::read(run, &beside, scope, findings)
    });
    let request = fields.entry("http").and_then(|http| http::read(http, around, scope, findings));
    check(fields, limit_fields, findings);
    let listed = fields.node("run").and_then(|run| run.entry("argv"));
    let listed = listed.is_some_and(|argv| !argv.node.items().is_empty());
    // A misspelt reference is reported once, not also as an unused argument.
    if (command.is_some() || listed || request.is_some()) && !scope.unclear {
        scope.check_placeholders(findings);
        let shell = fields.node("run").filter(|run| run.entry("shell").is_some());
        if let Some(run) = shell {
            scope.check_placeholders_of_shell(run, findings);
        }
        let section = if request.is_some() { "http" } else { "run" };
        warn_of_unused(scope, section, shell.is_some(), findings);
    }
    let timeout = match &request {
        _ if is_client => limits.of_client(findings),
        Some(_) => Some(limits.of_request(findings)),
        None => Some(limits.of_command(findings)),
    };
    let body = match request {
        _ if is_client => Some(DeclaredBody::Client),
        Some(request) => Some(DeclaredBody::Http(request)),
        None => command,
    };
    Kind { body, timeout, is_client }
}

fn warn_of_unused(scope: &Scope, section: &str, is_shell: bool, findings: &mut Findings<'_>) {
    for (name, argument) in scope.unused() {
        let message = format!("the argument `{name}` is declared, but nothing uses it");
        let help = if is_shell {
            let variable = variable_for(name);
            format!(
                "pass it in `vars: {{{variable}: \"${{args.{name}}}\"}}` and write \
                 \"${variable}\" in \
                 the text, or remove it"
            )
        } else {
            format!("use \"${{args.{name}}}\" in `{section}`, or remove it")
        };
        findings.add(Diagnostic::warning("unused-argument", &argument.span, message).help(help));
    }
}

/// Keys that apply only to programs.
const OF_COMMANDS: [&str; 2] = ["cwd", "sandbox"];
/// Expectations that apply only to commands.
const SEEN_IN_ARGV: [&str; 2] = ["argv", "argv_contains"];
/// Expectations that apply only to requests.
const SEEN_IN_REQUESTS: [&str; 2] = ["url", "body"];

/// Reports keys that do not apply to a command or to a request. Client tools have their own checks.
fn check(fields: &Fields<'_>, limits: Option<&Fields<'_>>, findings: &mut Findings<'_>) {
    let (run, http) = (fields.entry("run"), fields.entry("http"));
    if let (Some(run), Some(http)) = (run, http) {
        let message = "a tool runs a program or sends a request, not both";
        let (first, second) =
            if run.key_span.start < http.key_span.start { (run, http) } else { (http, run) };
        findings.add(
            Diagnostic::error("run-and-http", &second.key_span, message)
                .help("remove one of them, or declare two tools")
                .also(&first.key_span, "the other one"),
        );
        return;
    }
    let tests = || fields.node("tests").map(Node::items).unwrap_or_default();
    let looked_at = |keys: &[&'static str]| -> Vec<&Entry> {
        let expects = tests().iter().filter_map(|test| test.entry("expect"));
        expects.flat_map(|expect| keys.iter().filter_map(|key| expect.node.entry(key))).collect()
    };
    if let Some(http) = http {
        let own = OF_COMMANDS.iter().filter_map(|key| fields.entry(key));
        let own = own.chain(limits.and_then(|limits| limits.entry("memory")));
        let own = own.map(|entry| (entry, "remove it"));
        let tested = looked_at(&SEEN_IN_ARGV).into_iter();
        let tested = tested.map(|entry| (entry, "a test of a request can check `url` and `body`"));
        for (entry, help) in own.chain(tested) {
            let message = format!("`{}` is for tools that run a program", entry.key);
            findings.add(
                Diagnostic::error("not-for-http", &entry.key_span, message)
                    .help(help)
                    .also(&http.key_span, "this one sends a request"),
            );
        }
    }
    if let Some(run) = run {
        let transfer = limits.and_then(|limits| limits.entry("transfer"));
        let bound = "`limits: {output: 64KiB}` bounds what a program prints";
        let transfer = transfer.into_iter().map(|entry| (entry, bound));
        let tested = looked_at(&SEEN_IN_REQUESTS).into_iter();
        let tested = tested.map(|entry| (entry, "a test of a command can check `argv`"));
        for (entry, help) in transfer.chain(tested) {
            let message = format!("`{}` is for tools that send a request", entry.key);
            findings.add(
                Diagnostic::error("not-for-run", &entry.key_span, message)
                    .help(help)
                    .also(&run.key_span, "this one runs a program"),
            );
        }
    }
}
