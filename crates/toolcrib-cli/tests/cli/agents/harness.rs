//! A folder with tools and an agent whose model is a scripted server.

use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::{ModelServer, Reply};

use crate::harness::crib::Crib;

/// The API key of the agent's provider.
pub(super) const KEY: &str = "sk-a-key-of-a-test";

const TOOLS: &str = r#"
toolcrib: 1
tools:
  - name: say
    description: Say a text. Read-only.
    annotations: {read_only: true}
    input: {properties: {text: {type: string}}, required: [text]}
    run: {argv: [echo, "${args.text}"]}
  - name: note
    description: Append a line to notes.txt.
    approval: always
    input: {properties: {text: {type: string}}, required: [text]}
    run: {argv: [bash, -c, 'echo "$TEXT" >> notes.txt; echo noted'], env: {TEXT: "${args.text}"}}
  - name: nap
    description: Sleep. Read-only.
    annotations: {read_only: true}
    run: {argv: [bash, -c, 'touch began; for i in {1..500}; do test -e awake && exit; sleep 0.1; done']}
    sandbox: {write: [.]}
"#;

/// The folder, with a config of one agent.
pub(super) fn crib(wire: Wire, base_url: &str) -> Crib {
    let crib = Crib::new(&[("tools.yaml", TOOLS)]);
    crib.config(&format!(
        "secrets: {{key: {{file: key.txt}}}}\n\
         providers:\n  script:\n    kind: {wire}\n    base_url: {base_url}\n    api_key: ${{secret.key}}\n\
         \x20   models: {{scripted: {{prices: {{input: 3, output: 15}}}}}}\n\
         agents:\n  default: {{model: script/scripted, instruction: Use the tools.}}\n"
    ));
    std::fs::write(crib.path().join("key.txt"), KEY).expect("a key");
    crib
}

/// A scripted server and a folder whose agent uses it.
pub(super) async fn served(
    wire: Wire,
    replies: impl IntoIterator<Item = Reply>,
) -> (ModelServer, Crib) {
    let server = ModelServer::start(wire, replies).await;
    let crib = crib(wire, &server.base_url());
    (server, crib)
}
