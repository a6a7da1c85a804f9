//! Declared requests as tools, tested with real servers on loopback.

mod answers;
mod failures;
mod requests;
mod secret_urls;
mod server;

use serde_json::Value;
use toolcrib_manifest::declaration::Declaration;
use toolcrib_manifest::load_str;
use toolcrib_runners::{HttpRequest, HttpRunner, RunnerHost, Secrets};
use toolcrib_tool::{Arguments, CallContext, Tool, ToolError, ToolOutcome, ToolOutput};

/// A tool with these lines inside `http` and these beside it. `HERE` stands for the address of a server, which is
/// allowed. Arguments: `id` (required), `q`, `n`, `flag`, `tags`, `any`, `raw` (with control characters).
pub(crate) fn tool(http: &str, beside: &str, address: &str) -> Declaration {
    let mut text = "toolcrib: 1
tools:
  - name: find
    description: Find a ticket.
    input:
      properties:
        id: {type: string}
        q: {type: string}
        n: {type: number}
        flag: {type: boolean}
        tags: {type: array, items: {type: string}}
        any: {}
        raw: {type: string, x-allow-control: true}
      required: [id]
"
    .to_owned();
    for line in beside.lines() {
        text.extend(["    ", line, "\n"]);
    }
    text.push_str("    http:\n      allow_private: [127.0.0.1/32]\n");
    for line in http.lines() {
        text.extend(["      ", line, "\n"]);
    }
    let text = text.replace("HERE", address);
    let loaded = load_str("find.yaml", &text);
    let found: Vec<_> =
        loaded.diagnostics.iter().map(|found| found.render("find.yaml", &text, false)).collect();
    loaded.declarations.into_iter().next().unwrap_or_else(|| panic!("{}", found.join("\n")))
}

/// A host with one secret, `token`.
pub(crate) fn host() -> RunnerHost {
    RunnerHost::new("/").with_secrets(Secrets::from_values([("token", "s3cr3t-t0ken")]))
}

/// What a call would send.
pub(crate) fn request(
    declaration: &Declaration,
    arguments: &Value,
) -> Result<HttpRequest, ToolError> {
    let cx = crate::declare::context(declaration, [("user", "ada".into())]);
    HttpRunner::new(declaration, &host()).request(&crate::declare::given(arguments), &cx)
}

/// Calls the tool.
pub(crate) async fn call(
    declaration: &Declaration,
    arguments: Value,
) -> Result<ToolOutput, ToolError> {
    call_in(declaration, arguments, &crate::declare::context(declaration, [])).await
}

/// Calls the tool in a context.
pub(crate) async fn call_in(
    declaration: &Declaration,
    arguments: Value,
    cx: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let arguments = Arguments::from_validated(arguments.to_string());
    match HttpRunner::new(declaration, &host()).call(arguments, cx).await? {
        ToolOutcome::Done(output) => Ok(output),
        other => panic!("not done: {other:?}"),
    }
}
