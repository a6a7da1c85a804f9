//! Calls that have to ask their client: for consent, for a result of its own tool, for an answer.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::approval::Decision;
use toolcrib_core::suspension::MemorySuspensions;
use toolcrib_core::{Executor, Registry, TurnOptions};
use toolcrib_mcp::{McpOptions, McpServer};
use toolcrib_tool::{
    Approval, CallContext, InputPart, InputRequest, Layer, Source, StatusUpdate, ToolDefinition,
    ToolEntry, ToolOutcome, tool_fn,
};

use crate::wire::Wire;

/// A server whose client has the right to approve.
fn server() -> McpServer {
    server_with(true)
}

fn server_with(may_approve: bool) -> McpServer {
    server_and_executor(may_approve).0
}

fn server_and_executor(may_approve: bool) -> (McpServer, Executor) {
    let define = |name: &str| ToolDefinition::builder(name).description(format!("Does {name}."));
    let source = || Source::new(Layer::Host, "asking");
    let path = json!({"properties": {"path": {"type": "string"}}});
    let remove = define("remove").approval(Approval::Always).input_schema(path).build().unwrap();
    let remove =
        ToolEntry::new(remove, Arc::new(tool_fn(|_: Value, _| async { "removed" })), source());
    let greet = tool_fn(|_: Value, cx: CallContext| async move {
        cx.status(StatusUpdate::doing().with_tip("greeting").with_progress(1, Some(2)));
        match (cx.answer(), cx.remembered()) {
            (None, _) => ToolOutcome::needs_input(InputRequest::of([
                InputPart::form("name", "Who are you?", form("name")),
                InputPart::sample("verse", "A verse", 20).optional(),
            ])),
            (Some(answer), None) => ToolOutcome::needs_input(
                InputRequest::new("Which town?", form("town"))
                    .remember(answer["name"]["name"].clone()),
            ),
            (Some(answer), Some(name)) => {
                format!("{} of {}", name.as_str().unwrap(), answer["town"]).into()
            }
        }
    });
    let greet = ToolEntry::new(define("greet").build().unwrap(), Arc::new(greet), source());
    let nested = json!({"type": "array", "items": {"type": "integer"}});
    let numbers = tool_fn(move |_: Value, cx: CallContext| {
        let nested = nested.clone();
        async move {
            match cx.answer() {
                Some(answer) => answer.to_string().into(),
                None => ToolOutcome::needs_input(InputRequest::new("Which numbers?", nested)),
            }
        }
    });
    let numbers = ToolEntry::new(define("numbers").build().unwrap(), Arc::new(numbers), source());
    let count = tool_fn(|_: Value, cx: CallContext| async move {
        match cx.answer() {
            Some(answer) => answer.to_string().into(),
            None => ToolOutcome::needs_input(InputRequest::new("How many?", number_form())),
        }
    });
    let count = ToolEntry::new(define("count").build().unwrap(), Arc::new(count), source());
    let measure = define("measure").output_schema(number_form()).build().unwrap();
    let pick = define("pick").output_schema(form("path")).build().unwrap();
    let registry: Registry = Registry::scratch().build().unwrap();
    let executor =
        Executor::builder(registry).suspensions(Arc::new(MemorySuspensions::new())).build();
    let client = [pick, measure].map(|definition| ToolEntry::client(definition, source()));
    for entry in [remove, greet, numbers, count].into_iter().chain(client) {
        let _ = executor.registry().register(entry).unwrap();
    }
    let turn = TurnOptions::default().may_approve(may_approve);
    (McpServer::new(executor.clone(), McpOptions::default().turn(turn)), executor)
}

fn number_form() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]})
}

fn form(property: &str) -> Value {
    json!({
        "type": "object",
        "properties": {property: {"type": "string"}},
        "required": [property],
    })
}

/// Uses revision 2026-07-28, as a client with `capabilities`.
struct Stateless {
    wire: Wire,
    capabilities: Value,
}

impl Stateless {
    fn new(capabilities: Value) -> Self {
        Self::of(server(), capabilities)
    }

    fn of(server: McpServer, capabilities: Value) -> Self {
        Self { wire: Wire::connect(server), capabilities }
    }

    async fn call(&mut self, name: &str, more: Value) -> Value {
        let params = self.params(name, &more);
        self.wire.request("tools/call", params).await
    }

    /// The same, with a number in the place of the text `WIDE`.
    async fn call_with(&mut self, number: &str, name: &str, more: Value) -> Value {
        let params = self.params(name, &more);
        let call = json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params});
        self.wire.send_text(&call.to_string().replace("\"WIDE\"", number)).await;
        let answer = self.wire.receive().await;
        assert_eq!(answer["id"], 77, "{answer}");
        answer
    }

    fn params(&self, name: &str, more: &Value) -> Value {
        let mut params = json!({"name": name, "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        }});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    }
}

fn accept(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn a_call_continues_with_the_answers_of_each_round() {
    let mut client = Stateless::new(json!({"elicitation": {}}));
    let first = client.call("greet", json!({})).await["result"].clone();
    assert_eq!(first["resultType"], "input_required");
    // The client has no model, and its question was optional.
    let requests = first["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["name"]);
    assert_eq!(requests["name"]["params"]["message"], "Who are you?");
    assert_eq!(requests["name"]["params"]["requestedSchema"]["required"], json!(["name"]));

    let state = first["requestState"].as_str().unwrap();
    let answers = json!({"name": accept(&json!({"name": "Ada"}))});
    let more = json!({"requestState": state, "inputResponses": answers});
    let second = client.call("greet", more.clone()).await["result"].clone();
    assert_eq!(second["inputRequests"]["answer"]["params"]["message"], "Which town?");
    // The client can neither see nor change the tool's state.
    assert!(!second.to_string().contains("Ada"), "{second}");

    let answers = json!({"answer": accept(&json!({"town": "London"}))});
    let last = json!({"requestState": second["requestState"], "inputResponses": answers});
    assert_eq!(text(&client.call("greet", last.clone()).await), "Ada of \"London\"");
    // Each state can be used once.
    for spent in [more, last] {
        assert_eq!(client.call("greet", spent).await["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn missing_answers_are_asked_for_again_and_invalid_ones_are_refused() {
    let mut client = Stateless::new(json!({"elicitation": {}}));
    let first = client.call("greet", json!({})).await["result"].clone();
    let state = &first["requestState"];
    for useless in [json!({}), json!({"other": accept(&json!({}))}), json!({"name": 7})] {
        let more = json!({"requestState": state, "inputResponses": useless});
        let again = client.call("greet", more).await;
        assert_eq!(again["result"]["inputRequests"], first["inputRequests"], "{again}");
    }
    let wrong = json!({"name": accept(&json!({"name": 7}))});
    let refused =
        client.call("greet", json!({"requestState": state, "inputResponses": wrong})).await;
    assert_eq!(refused["error"]["code"], -32602);
    assert!(refused["error"]["message"].as_str().unwrap().contains("name"), "{refused}");
    let forged = json!({"requestState": "0123456789abcdef0123456789abcdef"});
    assert_eq!(client.call("greet", forged).await["error"]["code"], -32602);
    // The state of another tool's call.
    assert_eq!(
        client.call("remove", json!({"requestState": state})).await["error"]["code"],
        -32602
    );
}

#[tokio::test]
async fn an_approver_over_mcp_sees_long_arguments_in_full() {
    let mut client = Stateless::new(json!({"elicitation": {"form": {}}}));
    let path = format!("{}; rm -rf /srv", "a".repeat(20_000));
    let asked = client.call("remove", json!({"arguments": {"path": path}})).await;
    let message = asked["result"]["inputRequests"]["answer"]["params"]["message"].as_str();
    let message = message.unwrap_or_else(|| panic!("{asked}"));
    assert!(message.contains(&path), "{} characters", message.len());
}

#[tokio::test]
async fn consent_has_to_be_asked_for_and_cannot_be_sent_in_advance() {
    let mut client = Stateless::new(json!({"elicitation": {"form": {}}}));
    let yes = json!({"answer": accept(&json!({"approve": true}))});
    let asked = client.call("remove", json!({"inputResponses": yes})).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let message = asked["inputRequests"]["answer"]["params"]["message"].as_str().unwrap();
    assert!(message.contains("remove: the tool asks for approval"), "{message}");
    assert!(message.contains("arguments: {}"), "{message}");
    let more = json!({"requestState": asked["requestState"], "inputResponses": yes});
    assert_eq!(text(&client.call("remove", more).await), "removed");

    for no in [
        accept(&json!({"approve": false})),
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
    ] {
        let asked = client.call("remove", json!({})).await["result"].clone();
        let no = json!({"answer": no});
        let more = json!({"requestState": asked["requestState"], "inputResponses": no});
        let denied = client.call("remove", more).await;
        assert_eq!(denied["result"]["_meta"]["toolcrib/error_kind"], "denied", "{denied}");
    }
}

#[tokio::test]
async fn a_client_runs_its_own_tools_and_gets_a_text_question_where_a_form_is_impossible() {
    let mut client = Stateless::new(json!({"elicitation": {}}));
    let asked = client.call("pick", json!({})).await["result"].clone();
    assert_eq!(
        asked["inputRequests"]["answer"]["params"]["requestedSchema"]["required"],
        json!(["path"])
    );
    let answers = json!({"answer": accept(&json!({"path": "/a"}))});
    let more = json!({"requestState": asked["requestState"], "inputResponses": answers});
    let answer = client.call("pick", more).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"path": "/a"}));

    let asked = client.call("numbers", json!({})).await["result"].clone();
    let question = &asked["inputRequests"]["answer"]["params"];
    assert!(question["message"].as_str().unwrap().contains("integer"), "{question}");
    let answers = json!({"answer": accept(&json!({"answer": "[1, 2]"}))});
    let more = json!({"requestState": asked["requestState"], "inputResponses": answers});
    assert_eq!(text(&client.call("numbers", more).await), "[1,2]");
}

#[tokio::test]
async fn a_number_in_an_answer_that_would_be_rounded_is_refused() {
    for wide in ["18446744073709551617", "0.1000000000000000055", "-9223372036854775809"] {
        let mut client = Stateless::new(json!({"elicitation": {}}));
        let asked = client.call("count", json!({})).await["result"].clone();
        let answer = |content: Value| {
            let state = &asked["requestState"];
            json!({"requestState": state, "inputResponses": {"answer": accept(&content)}})
        };
        let refused = client.call_with(wide, "count", answer(json!({"n": "WIDE"}))).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.contains("as a string") && said.contains(wide), "{said}");
        // It still waits, and the number stays the same.
        let answer = client.call_with("1e2", "count", answer(json!({"n": "WIDE"}))).await;
        assert_eq!(text(&answer), r#"{"n":100.0}"#);

        // Written as JSON into a text.
        let asked = client.call("numbers", json!({})).await["result"].clone();
        let answers = json!({"answer": accept(&json!({"answer": format!("[1, {wide}]")}))});
        let more = json!({"requestState": asked["requestState"], "inputResponses": answers});
        let refused = client.call("numbers", more).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

#[tokio::test]
async fn numbers_from_a_client_tool_stay_exact() {
    let mut client = Stateless::new(json!({"elicitation": {}}));
    let asked = client.call("measure", json!({})).await["result"].clone();
    let answers = json!({"answer": accept(&json!({"n": "WIDE"}))});
    let more = json!({"requestState": asked["requestState"], "inputResponses": answers});
    let answer = client.call_with("123456789012345678901", "measure", more).await;
    assert_eq!(text(&answer), r#"{"n":123456789012345678901}"#, "{answer}");
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_learns_which_capability_it_lacks() {
    let mut client = Stateless::new(json!({}));
    let refused = client.call("greet", json!({})).await;
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], json!({"elicitation": {}}));
    let denied = client.call("pick", json!({})).await;
    assert_eq!(denied["result"]["_meta"]["toolcrib/error_kind"], "denied", "{denied}");
    // Somebody else may still approve.
    let waits = client.call("remove", json!({})).await;
    assert_eq!(waits["result"]["_meta"]["toolcrib/error_kind"], "requires_approval", "{waits}");
}

#[tokio::test]
async fn a_client_without_the_right_to_approve_is_never_asked_for_consent() {
    let capabilities = json!({"elicitation": {"form": {}}});
    let mut client = Stateless::of(server_with(false), capabilities.clone());
    let yes = json!({"answer": accept(&json!({"approve": true}))});
    let waits = client.call("remove", json!({"inputResponses": yes})).await["result"].clone();
    assert_eq!(waits["_meta"]["toolcrib/error_kind"], "requires_approval", "{waits}");
    // It cannot approve with the id that it got either.
    let id = waits["content"][0]["text"].as_str().unwrap();
    let id = id.split(|c: char| !c.is_ascii_hexdigit()).find(|word| word.len() == 32).unwrap();
    let more = json!({"requestState": id, "inputResponses": yes});
    let refused = client.call("remove", more).await;
    assert_eq!(refused["result"]["_meta"]["toolcrib/error_kind"], "requires_approval", "{refused}");

    let (mut wire, _) = Wire::initialized_with(server_with(false), &capabilities).await;
    let params = json!({"name": "remove", "arguments": {}});
    wire.send(&json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": params}))
        .await;
    let answer = wire.receive().await;
    assert_eq!(answer["id"], "call", "it was asked: {answer}");
    assert_eq!(answer["result"]["_meta"]["toolcrib/error_kind"], "requires_approval");
}

#[tokio::test]
async fn a_client_with_a_handshake_is_asked_while_its_call_waits() {
    let (mut wire, _) =
        Wire::initialized_with(server(), &json!({"elicitation": {}, "sampling": {}})).await;
    let params = json!({"name": "greet", "arguments": {}, "_meta": {"progressToken": "p"}});
    wire.send(&json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": params}))
        .await;

    let mut asked = Vec::new();
    let mut progress = Vec::new();
    let answer = loop {
        let message = wire.receive().await;
        let result = match message["method"].as_str() {
            Some("elicitation/create") => {
                let properties = &message["params"]["requestedSchema"]["properties"];
                let property = properties.as_object().unwrap().keys().next().unwrap().clone();
                accept(&json!({&*property: format!("my {property}")}))
            }
            Some("sampling/createMessage") => json!({
                "role": "assistant", "model": "m", "content": {"type": "text", "text": "roses"},
            }),
            Some("notifications/progress") => {
                progress.push(message["params"].clone());
                continue;
            }
            Some(other) => panic!("{other}"),
            None => break message,
        };
        asked.push(message["method"].as_str().unwrap().to_owned());
        wire.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).await;
    };
    assert_eq!(answer["id"], "call");
    assert_eq!(text(&answer), "my name of \"my town\"");
    let forms = asked.iter().filter(|method| *method == "elicitation/create").count();
    assert_eq!((forms, asked.len()), (2, 3));
    // It runs three times with the same messages: progress only increases.
    assert_eq!(
        progress,
        [json!({"progressToken": "p", "progress": 1.0, "total": 2.0, "message": "greeting"})]
    );
}

#[tokio::test]
async fn log_messages_are_for_clients_that_set_a_level() {
    let (mut wire, _) = Wire::initialized(server()).await;
    // Nothing comes before the answer.
    assert_eq!(wire.call("greet", json!({})).await["error"]["code"], -32021);
    wire.request("logging/setLevel", json!({"level": "info"})).await;
    wire.send(&json!({
        "jsonrpc": "2.0", "id": 9, "method": "tools/call",
        "params": {"name": "greet", "arguments": {}},
    }))
    .await;
    let message = wire.receive().await;
    assert_eq!(message["method"], "notifications/message");
    assert_eq!(message["params"], json!({"level": "info", "logger": "greet", "data": "greeting"}));
    assert_eq!(wire.receive().await["id"], 9);
    wire.request("logging/setLevel", json!({"level": "error"})).await;
    assert_eq!(wire.call("greet", json!({})).await["error"]["code"], -32021);
}

#[tokio::test]
async fn repeating_a_call_returns_its_answer_after_others_approve_it() {
    let (server, executor) = server_and_executor(false);
    let approvals = executor.approvals(TurnOptions::default());
    let mut client = Stateless::of(server, json!({}));
    let waits = client.call("remove", json!({})).await["result"].clone();
    assert_eq!(waits["_meta"]["toolcrib/error_kind"], "requires_approval");
    assert!(waits["content"][0]["text"].as_str().unwrap().contains("make the same call again"));
    let waiting = approvals.list().await.unwrap();
    let id = waiting[0].id.clone().unwrap();
    // Decided on while the repeated call waits.
    let decide = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        assert_eq!(approvals.list().await.unwrap().len(), 1, "the same question");
        approvals.decide(&id, Decision::approve()).await.unwrap();
    };
    let (answer, ()) = tokio::join!(client.call("remove", json!({})), decide);
    assert_eq!(text(&answer), "removed");
    // The approval applied to one run.
    let next = client.call("remove", json!({})).await["result"].clone();
    assert_eq!(next["_meta"]["toolcrib/error_kind"], "requires_approval");
    let other = approvals.list().await.unwrap().remove(0).id.unwrap();
    assert_ne!(other, id);
    approvals.decide(&other, Decision::deny("not again")).await.unwrap();
    let denied = client.call("remove", json!({})).await["result"].clone();
    assert_eq!(denied["_meta"]["toolcrib/error_kind"], "denied", "{denied}");
}

#[tokio::test]
async fn a_client_with_tasks_gets_an_approved_calls_answer_without_repeating_it() {
    let (server, executor) = server_and_executor(false);
    let approvals = executor.approvals(TurnOptions::default());
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut client = Stateless::of(server, tasks);
    let decide = async {
        let id = loop {
            if let Some(one) = approvals.list().await.unwrap().pop() {
                break one.id.unwrap();
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        };
        approvals.decide(&id, Decision::approve()).await.unwrap();
    };
    let (answer, ()) = tokio::join!(client.call("remove", json!({})), decide);
    assert_eq!(text(&answer), "removed");
}
