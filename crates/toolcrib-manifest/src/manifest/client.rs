//! Tools that the client runs: nothing happens here but checking the call and handing it on.

use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node};
use crate::fields::Fields;

/// Keys of a tool that say how it runs here, or what the executor does when it runs it. On a client
/// tool nobody would honour them.
const OF_TOOLS_THAT_RUN_HERE: [&str; 9] =
    ["context", "cwd", "sandbox", "needs", "output", "cache", "dedupe", "retry", "resources"];

/// The same of `limits`: the client keeps what it prints, how often and how many at once.
const LIMITS_OF_TOOLS_THAT_RUN_HERE: [&str; 5] =
    ["output", "transfer", "memory", "concurrent", "rate"];

/// What a test looks for in something that ran.
const SEEN_IN_A_RUN: [&str; 7] =
    ["argv", "argv_contains", "url", "body", "text_contains", "text_matches", "data"];

/// Whether the client runs the tool; says what does not go with that.
pub(super) fn is_client(
    fields: &Fields<'_>,
    limits: Option<&Fields<'_>>,
    findings: &mut Findings<'_>,
) -> bool {
    let Some(client) = fields.entry("client").filter(|_| fields.flag("client") == Some(true))
    else {
        return false;
    };
    for run in ["run", "http"].iter().filter_map(|key| fields.entry(key)) {
        let message = format!(
            "`client: true` and `{}` do not go together: the client runs the tool, or this server \
             does",
            run.key
        );
        findings.add(
            Diagnostic::error("client-and-run", &client.key_span, message)
                .label("the client runs it")
                .help("remove one of them")
                .also(&run.key_span, "this server runs it"),
        );
    }
    let own = OF_TOOLS_THAT_RUN_HERE.iter().filter_map(|key| fields.entry(key));
    let limits = LIMITS_OF_TOOLS_THAT_RUN_HERE
        .iter()
        .filter_map(|key| limits.and_then(|limits| limits.entry(key)));
    for entry in own.chain(limits) {
        let message =
            format!("`{}` is for tools that run here; the client runs this one", entry.key);
        findings.add(
            Diagnostic::error("not-for-client", &entry.key_span, message)
                .help("remove it: nothing here would honour it")
                .also(&client.key_span, "the client runs it"),
        );
    }
    for test in fields.node("tests").map(Node::items).unwrap_or_default() {
        check_test(test, findings);
    }
    true
}

/// Nothing runs here, so that a test can only see calls refused.
fn check_test(test: &Node, findings: &mut Findings<'_>) {
    let Some(expect) = test.entry("expect") else { return };
    let mut refuse = |entry: &Entry| {
        let message = "a test of a client tool runs nothing, and can only expect a refusal";
        let place = entry.key_span.clone();
        findings.add(
            Diagnostic::error("test-of-client", &place, message)
                .help("write `expect: {error: invalid_args}` for arguments that must be refused"),
        );
    };
    if expect.node.entry("error").is_none() {
        refuse(expect);
        return;
    }
    SEEN_IN_A_RUN.iter().filter_map(|key| expect.node.entry(key)).for_each(refuse);
}
