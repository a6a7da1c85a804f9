//! Missing requirements make a tool unavailable, with the reason.

use serde_json::json;
use toolcrib_runners::{RunnerHost, entry};
use toolcrib_tool::{Body, ErrorKind, Layer};

use crate::declare::{call, command, context, one, parameter, runner, sh, spec, template};
use toolcrib_manifest::declaration::DeclaredBody;

fn reason(declaration: &toolcrib_manifest::declaration::Declaration) -> Option<String> {
    entry(declaration, &RunnerHost::new("/")).unavailable_reason().map(str::to_owned)
}

#[test]
fn a_complete_tool_is_available_and_names_its_declaration() {
    let mut declaration = sh("true");
    declaration.needs.bins = vec!["sh".into(), "/bin/sh".into()];
    declaration.needs.env = vec!["PATH".into()];
    let entry = entry(&declaration, &RunnerHost::new("/"));
    assert_eq!(entry.unavailable_reason(), None);
    assert_eq!(entry.name(), "demo");
    assert_eq!(entry.source.layer, Layer::Manifest);
    assert_eq!(entry.source.to_string(), "manifest tools.d/demo.yaml:3:11");
}

#[test]
fn every_missing_requirement_is_named() {
    let mut declaration = command([one("no-such-program"), one("x")]);
    declaration.needs.bins = vec!["no-such-tool".into()];
    declaration.needs.env = vec!["NO_SUCH_VARIABLE".into()];
    declaration.needs.secrets = vec!["kubeconfig".into()];
    assert_eq!(
        reason(&declaration).unwrap(),
        "needs the program `no-such-tool`, which is not on PATH; \
         needs the program `no-such-program`, which is not on PATH; \
         needs the environment variable `NO_SUCH_VARIABLE`, which the server does not have; \
         needs the secret `kubeconfig`: the config's `secrets` does not name it; \
         add `kubeconfig: {env: VARIABLE}`, `{file: PATH}` or `{command: [PROGRAM]}` there"
    );
}

#[test]
fn a_program_given_by_path_must_exist() {
    let absolute = command([one("/no/such/program")]);
    let expected = "needs the program `/no/such/program`, which is not an executable file here";
    assert_eq!(reason(&absolute).unwrap(), expected);
    // A file that appears later may come from a tool, so it is not run before the next reload.
    let relative = reason(&command([one("./tool")])).unwrap();
    assert!(relative.ends_with("/tool`, which does not exist"), "{relative}");
    // With a `PATH` of its own, only a call can tell.
    let mut own_path = command([one("my-tool")]);
    spec(&mut own_path).env.insert("PATH".into(), template("/opt/mine/bin"));
    assert_eq!(reason(&own_path), None);
}

#[test]
fn an_invalid_pattern_or_schema_makes_the_tool_unavailable() {
    let mut declaration = sh("true");
    declaration.output.redact = vec!["(".into()];
    assert!(reason(&declaration).unwrap().starts_with("the redaction pattern `(` is invalid"));
    let mut declaration = sh("true");
    declaration.context = vec![parameter("c", "c", Some(json!({"type": "nonsense"})))];
    let found = reason(&declaration).unwrap();
    assert!(found.starts_with("the check of the context value `c` is invalid"), "{found}");
}

#[tokio::test]
async fn a_program_that_vanished_is_unavailable_when_called() {
    let error = call(&command([one("no-such-program")]), json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().starts_with("the program `no-such-program` was not found"), "{error}");
}

#[tokio::test]
async fn a_client_tool_is_always_available_and_never_runs_here() {
    let mut declaration = sh("true");
    declaration.body = DeclaredBody::Client;
    let entry = entry(&declaration, &RunnerHost::new("/"));
    assert!(entry.definition.client());
    assert!(matches!(entry.body, Body::Client));
    assert_eq!(entry.unavailable_reason(), None);
    assert_eq!(entry.source.to_string(), "manifest tools.d/demo.yaml:3:11");

    let error = call(&declaration, json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let cx = context(&declaration, []);
    assert!(runner(&declaration).invocation(&crate::declare::given(&json!({})), &cx).is_err());
}
