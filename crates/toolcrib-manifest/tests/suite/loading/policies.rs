//! What a manifest asks of the executor: in a tool, in a file's defaults, and on a client tool.

use std::num::NonZeroU32;
use std::time::Duration;

use toolcrib_manifest::declaration::{Declaration, DeclaredBody};
use toolcrib_manifest::load_str;
use toolcrib_tool::{
    Approval, CachePolicy, Dedupe, RateLimit, RetryPolicy, TaskMode, ToolDefinition,
};

/// The only tool of a manifest without a complaint.
#[track_caller]
fn only(text: &str) -> Declaration {
    let loaded = load_str("t.yaml", text);
    assert_eq!(loaded.diagnostics, []);
    let Ok([declaration]) = <[_; 1]>::try_from(loaded.declarations) else { panic!("one tool") };
    declaration
}

/// A tool with these lines, in a file with these defaults.
fn file(defaults: &str, lines: &str) -> String {
    format!(
        "toolcrib: 1\ndefaults: {{{defaults}}}\ntools:\n  - name: t\n    description: D.\n    {}\n",
        lines.replace('\n', "\n    ")
    )
}

const READER: &str = "annotations: {read_only: true, idempotent: true}\nrun: {argv: [ls]}";
const WRITER: &str = "run: {argv: [touch, x]}";
const EVERYTHING: &str = "cache: {ttl: 5s}, dedupe: session, retry: {max: 2, backoff: 50ms}, \
     resources: {reads: [a, b], writes: []}, approval: always, task: required, concurrent: 4, rate: 30/min";

fn rate(calls: u32) -> Option<RateLimit> {
    NonZeroU32::new(calls).map(RateLimit::per_minute)
}

fn assert_everything(definition: &ToolDefinition) {
    assert_eq!(definition.cache(), Some(CachePolicy::new().with_ttl(Duration::from_secs(5))));
    assert_eq!(definition.dedupe(), Dedupe::Session);
    let retry = RetryPolicy::new(2).with_backoff(Duration::from_millis(50));
    assert_eq!(definition.retry(), Some(retry));
    assert_eq!(definition.resources().read(), ["a", "b"]);
    assert_eq!(definition.resources().written(), [""; 0]);
    assert_eq!(definition.approval(), Approval::Always);
    assert_eq!(definition.task(), TaskMode::Required);
    assert_eq!(definition.max_concurrent(), Some(4));
    assert_eq!(definition.rate(), rate(30));
}

#[test]
fn every_policy_of_a_tool_reaches_its_definition() {
    let lines = "cache: {ttl: 5s}
dedupe: session
retry: {max: 2, backoff: 50ms}
resources: {reads: [a, b], writes: []}
approval: always
task: required
limits: {concurrent: 4, rate: 30/min}";
    assert_everything(&only(&file("", &format!("{READER}\n{lines}"))).definition);
}

#[test]
fn defaults_hold_for_every_tool_that_says_nothing_else() {
    assert_everything(&only(&file(EVERYTHING, READER)).definition);
    let own = format!(
        "{READER}\ncache: {{}}\ndedupe: none\nretry: {{max: 1}}\nresources: {{}}\napproval: never\n\
         task: never\nlimits: {{concurrent: 1, rate: 1/min}}"
    );
    let definition = only(&file(EVERYTHING, &own)).definition;
    assert_eq!(definition.cache(), Some(CachePolicy::new()));
    assert_eq!(definition.dedupe(), Dedupe::None);
    assert_eq!(definition.retry(), Some(RetryPolicy::new(1)));
    assert!(definition.resources().read().is_empty());
    assert_eq!(definition.approval(), Approval::Never);
    assert_eq!(definition.task(), TaskMode::Never);
    assert_eq!((definition.max_concurrent(), definition.rate()), (Some(1), rate(1)));
}

#[test]
fn a_default_never_lets_a_writer_be_cached_or_tried_again() {
    let definition = only(&file(EVERYTHING, WRITER)).definition;
    assert_eq!((definition.cache(), definition.retry()), (None, None));
    assert_eq!(definition.approval(), Approval::Always);
    assert_eq!(definition.max_concurrent(), Some(4));

    let idempotent = format!("annotations: {{idempotent: true}}\n{WRITER}");
    let definition = only(&file(EVERYTHING, &idempotent)).definition;
    assert_eq!(definition.cache(), None);
    assert!(definition.retry().is_some());
}

#[test]
fn what_a_file_writes_is_not_what_its_readers_write() {
    let defaults = "resources: {reads: [a], writes: [b]}";
    let resources = |lines: &str| {
        let definition = only(&file(defaults, lines)).definition;
        let resources = definition.resources();
        (resources.read().to_vec(), resources.written().to_vec())
    };
    assert_eq!(resources(WRITER), (vec!["a".to_owned()], vec!["b".to_owned()]));
    assert_eq!(resources(READER), (vec!["a".to_owned()], vec![]));
}

#[test]
fn nothing_is_cached_repeated_limited_or_asked_about_unless_it_is_written() {
    let definition = only(&file("", READER)).definition;
    assert_eq!((definition.cache(), definition.retry()), (None, None));
    assert_eq!((definition.max_concurrent(), definition.rate()), (None, None));
    assert_eq!((definition.dedupe(), definition.approval()), (Dedupe::None, Approval::Never));
    assert_eq!(definition.task(), TaskMode::Auto);
}

#[test]
fn exit_codes_worth_another_try_are_75_unless_they_are_written() {
    let codes = |run: &str| {
        let declaration = only(&file("", &format!("run: {{argv: [ls]{run}}}")));
        declaration.command().unwrap().retry_exit.clone()
    };
    assert_eq!(codes(""), [75]);
    assert_eq!(codes(", retry_exit: [6, 7]"), [6, 7]);
    assert_eq!(codes(", retry_exit: []"), [0; 0]);
    assert_eq!(codes(", ok_exit: [0, 75]"), [0; 0]);
}

#[test]
fn a_client_tool_has_no_command_and_waits_for_its_client() {
    let client = "input: {properties: {filter: {type: string}}}
output_schema: {properties: {path: {type: string}}, required: [path]}
client: true
tests: [{name: wrong, args: {filter: 1}, expect: {error: invalid_args}}]";
    let declaration = only(&file("", client));
    assert_eq!(declaration.body, DeclaredBody::Client);
    assert!(declaration.needs.bins.is_empty());
    assert_eq!(declaration.definition.timeout(), Some(Duration::from_secs(600)));

    let timeout = |limits: &str| {
        only(&file("", &format!("{client}\nlimits: {{timeout: {limits}}}"))).definition.timeout()
    };
    assert_eq!(timeout("5m"), Some(Duration::from_secs(300)));
    assert_eq!(timeout("none"), None);
}

#[test]
fn a_client_tool_may_be_a_local_shell_or_take_one_text() {
    let input = |client: &str| {
        let declaration = only(&file("", &format!("client: {client}")));
        assert_eq!(declaration.body, DeclaredBody::Client);
        declaration.definition.input_schema().clone()
    };
    assert_eq!(input("{kind: local_shell}"), toolcrib_tool::local_shell_schema());
    let text = input("{kind: text}");
    assert_eq!(text["x-custom-format"]["type"], "text");
    let day = input(r"{kind: regex, pattern: '\d{4}-\d{2}-\d{2}'}");
    assert_eq!(day["properties"]["input_data"]["pattern"], r"^(?:\d{4}-\d{2}-\d{2})$");
    let query = input("{kind: lark, grammar: 'start: \"x\"'}");
    assert_eq!(query["x-custom-format"]["definition"], "start: \"x\"");
    let tested = "client: {kind: regex, pattern: a}
tests: [{name: wrong, args: {input_data: b}, expect: {error: invalid_args}}]";
    assert_eq!(only(&file("", tested)).tests.len(), 1);
}

#[test]
fn of_the_defaults_a_client_tool_takes_what_can_be_honoured() {
    let defaults = format!("timeout: 1m, output: 1KiB, {EVERYTHING}");
    let definition = only(&file(&defaults, "client: true")).definition;
    assert_eq!(definition.timeout(), Some(Duration::from_secs(60)));
    assert_eq!(definition.approval(), Approval::Always);
    assert_eq!(definition.task(), TaskMode::Required);
    assert_eq!((definition.cache(), definition.retry()), (None, None));
    assert_eq!((definition.max_concurrent(), definition.rate()), (None, None));
    assert_eq!(definition.dedupe(), Dedupe::None);
}

#[test]
fn toml_says_the_same() {
    let text = "toolcrib = 1
[defaults]
rate = \"30/min\"
approval = \"always\"
task = \"required\"
[[tools]]
name = \"t\"
description = \"D.\"
annotations = { read_only = true, idempotent = true }
run.argv = [\"ls\"]
cache.ttl = \"5s\"
dedupe = \"session\"
retry = { max = 2, backoff = \"50ms\" }
resources.reads = [\"a\", \"b\"]
limits.concurrent = 4
";
    let loaded = load_str("t.toml", text);
    assert_eq!(loaded.diagnostics, []);
    assert_everything(&loaded.declarations[0].definition);
}
