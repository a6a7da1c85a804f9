//! The side of rmcp on the guide's page of five tasks compiles, and does what the page says.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::time::Duration;

use futures_util::StreamExt as _;
use rmcp::handler::server::common::{Extension, schema_for_empty_input, schema_for_type};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, NumberOrString, ProgressNotificationParam,
    RequestMetaObject, Tool, object,
};
use rmcp::service::{Peer, RequestContext, RoleServer, serve_directly};
use rmcp::{ErrorData, ServerHandler};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::error::Elapsed;

struct Host;

impl ServerHandler for Host {}

#[derive(Clone)]
struct User(String);

type Answer = Result<CallToolResponse, ErrorData>;
type Call = (CallToolRequestParams, RequestContext<RoleServer>);

include!("../../crates/toolcrib/src/docs/guide/five_tasks/rmcp/register.rs");
include!("../../crates/toolcrib/src/docs/guide/five_tasks/rmcp/identity.rs");
include!("../../crates/toolcrib/src/docs/guide/five_tasks/rmcp/batch.rs");
include!("../../crates/toolcrib/src/docs/guide/five_tasks/rmcp/stream.rs");

/// The context of a call, and what has to live as long as it does.
fn context() -> (RequestContext<RoleServer>, impl Sized) {
    let (server_end, client_end) = tokio::io::duplex(1024);
    let running = serve_directly(Host, server_end, None);
    let peer = running.peer().clone();
    (RequestContext::new(NumberOrString::Number(1), peer), (running, client_end))
}

fn text(answer: Answer) -> Value {
    let Ok(CallToolResponse::Complete(result)) = answer else { panic!("the call is answered") };
    let result = serde_json::to_value(result).expect("it is data");
    result["content"][0]["text"].clone()
}

#[tokio::test]
async fn the_examples_in_rmcp_do_what_those_beside_them_do() {
    let (plain, _alive) = context();
    let greet = || {
        let arguments = object(json!({"name": "Ada"}));
        CallToolRequestParams::new("greet").with_arguments(arguments)
    };
    let router = router();
    let greeted = router.call(ToolCallContext::new(&Host, greet(), plain.clone())).await;
    assert_eq!(text(greeted), "Hello, Ada!");

    assert_eq!(text(call_as(User("ada".to_owned()), plain.clone()).await), "orders of ada");

    let calls = (0..8).map(|_| (greet(), plain.clone())).collect();
    let answers = batch(&router, calls).await;
    assert_eq!(answers.len(), 8);
    for answer in answers {
        assert_eq!(text(answer.expect("it is in time")), "Hello, Ada!");
    }

    let params = CallToolRequestParams::new("copy");
    let copied = copies().call(ToolCallContext::new(&Host, params, plain)).await;
    assert_eq!(text(copied), "all of it");
}
