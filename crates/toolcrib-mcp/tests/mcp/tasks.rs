//! Calls that are answered with a task: polled, answered, cancelled, kept and removed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use toolcrib_core::approval::{Approvals, Decision};
use toolcrib_core::suspension::{MemorySuspensions, SuspensionId, SuspensionStore as _};
use toolcrib_core::{Executor, Registry, TurnOptions};
use toolcrib_mcp::{McpOptions, McpServer, TaskOptions};
use toolcrib_tool::{
    Approval, CallContext, Data, InputPart, InputRequest, Layer, Source, StatusUpdate, TaskMode,
    ToolDefinition, ToolEntry, ToolError, ToolOutcome, ToolOutput, tool_fn,
};

use crate::wire::Wire;

/// Calls that wait for nobody become tasks at once.
const AT_ONCE: TaskOptions =
    TaskOptions { after: Duration::ZERO, ttl: Duration::from_secs(3_600), max: 100 };

const PATIENCE: Duration = Duration::from_secs(30);

/// Data with numbers that no machine type holds.
const WIDE: &str = r#"{"a":123456789012345678901,"b":0.1000000000000000055}"#;

/// A server whose tools wait until they are released, and a client that supports tasks.
struct Fixture {
    server: McpServer,
    wire: Wire,
    /// Releases one call of one tool.
    gate: Arc<Semaphore>,
    dropped: UnboundedReceiver<()>,
    suspensions: Arc<MemorySuspensions>,
    /// Decides on calls that the client may not approve.
    approvals: Approvals,
}

/// Reports when the call that holds it was dropped.
struct Witness(UnboundedSender<()>);

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

impl Fixture {
    fn new(options: TaskOptions) -> Self {
        let gate = Arc::new(Semaphore::new(0));
        let (gone, dropped) = unbounded_channel();
        let suspensions = Arc::new(MemorySuspensions::new());
        let registry: Registry = Registry::scratch().build().unwrap();
        let executor = Executor::builder(registry).suspensions(suspensions.clone()).build();
        for entry in entries(&gate, &gone) {
            let _ = executor.registry().register(entry).unwrap();
        }
        let approvals = executor.approvals(TurnOptions::default());
        let server = McpServer::new(executor, McpOptions::default().tasks(options));
        let wire = Wire::connect(server.clone());
        Self { server, wire, gate, dropped, suspensions, approvals }
    }

    fn at_once() -> Self {
        Self::new(AT_ONCE)
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        request(&mut self.wire, method, params, true).await
    }

    async fn call(&mut self, name: &str) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": {}})).await
    }

    /// Makes a call that becomes a task; returns its id.
    async fn task(&mut self, name: &str) -> String {
        let answer = self.call(name).await;
        assert_eq!(answer["result"]["resultType"], "task", "{answer}");
        answer["result"]["taskId"].as_str().unwrap().to_owned()
    }

    async fn get(&mut self, id: &str) -> Value {
        self.request("tasks/get", json!({"taskId": id})).await
    }

    /// Polls a task until it has the expected state.
    async fn until(&mut self, id: &str, status: &str) -> Value {
        self.until_seen(id, |task| task["status"] == status).await
    }

    async fn until_seen(&mut self, id: &str, seen: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let answer = self.get(id).await;
            if seen(&answer["result"]) {
                return answer["result"].clone();
            }
            assert!(begin.elapsed() < PATIENCE, "{answer}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn is_dropped(&mut self) {
        let dropped = tokio::time::timeout(PATIENCE, self.dropped.recv()).await;
        assert_eq!(dropped, Ok(Some(())));
    }

    async fn waiting(&self) -> usize {
        self.suspensions.list("").await.unwrap().len()
    }

    /// The only call that waits for an approval, once there is one.
    async fn waiting_for_approval(&self) -> SuspensionId {
        let begin = Instant::now();
        loop {
            if let Some(waiting) = self.approvals.list().await.unwrap().pop() {
                return waiting.id.unwrap();
            }
            assert!(begin.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

async fn request(wire: &mut Wire, method: &str, params: Value, knows_tasks: bool) -> Value {
    wire.request(method, with_meta(params, knows_tasks)).await
}

fn with_meta(mut params: Value, knows_tasks: bool) -> Value {
    let extensions =
        if knows_tasks { json!({"io.modelcontextprotocol/tasks": {}}) } else { json!({}) };
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": extensions},
    });
    params
}

fn entries(gate: &Arc<Semaphore>, gone: &UnboundedSender<()>) -> Vec<ToolEntry> {
    let define = |name: &str| ToolDefinition::builder(name).description(format!("Does {name}."));
    let source = || Source::new(Layer::Host, "tasks");
    let works = |fails: bool| {
        let (gate, gone) = (Arc::clone(gate), gone.clone());
        tool_fn(move |_: Value, cx: CallContext| {
            let (gate, witness) = (Arc::clone(&gate), Witness(gone.clone()));
            async move {
                cx.status(StatusUpdate::doing().with_tip("half of it"));
                gate.acquire().await.unwrap().forget();
                drop(witness);
                if fails { Err(ToolError::execution("the disk is full")) } else { Ok("worked") }
            }
        })
    };
    let asking = {
        let gate = Arc::clone(gate);
        tool_fn(move |_: Value, cx: CallContext| {
            let gate = Arc::clone(&gate);
            async move {
                if let Some(answer) = cx.answer() {
                    return ToolOutcome::from(format!("told {answer}"));
                }
                gate.acquire().await.unwrap().forget();
                let form = json!({
                    "type": "object",
                    "properties": {"n": {"type": "integer", "minimum": 1}},
                    "required": ["n"],
                });
                ToolOutcome::needs_input(InputRequest::of([InputPart::form(
                    "n",
                    "How many?",
                    form,
                )]))
            }
        })
    };
    let entry = |builder: toolcrib_tool::ToolDefinitionBuilder, body| {
        ToolEntry::new(builder.build().unwrap(), body, source())
    };
    vec![
        entry(define("work"), Arc::new(works(false))),
        entry(define("fail"), Arc::new(works(true))),
        entry(define("never").task(TaskMode::Never), Arc::new(works(false))),
        entry(define("always").task(TaskMode::Required), Arc::new(works(false))),
        entry(
            define("quick").task(TaskMode::Required),
            Arc::new(tool_fn(|_: Value, _| async { "at once" })),
        ),
        entry(define("ask"), Arc::new(asking)),
        entry(define("remove").approval(Approval::Always), Arc::new(works(false))),
        entry(
            define("wide").task(TaskMode::Required),
            Arc::new(tool_fn(|_: Value, _| async {
                Data::from_json(WIDE).map(ToolOutput::from).map_err(ToolError::from)
            })),
        ),
    ]
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

#[tokio::test]
async fn a_long_call_becomes_a_task_whose_result_is_kept() {
    let mut fixture = Fixture::at_once();
    let answer = fixture.call("work").await["result"].clone();
    assert_eq!((&answer["status"], &answer["ttlMs"]), (&json!("working"), &json!(3_600_000)));
    let id = answer["taskId"].as_str().unwrap().to_owned();
    let working = fixture.until_seen(&id, |task| task["statusMessage"] == "half of it").await;
    assert_eq!(working["status"], "working");
    fixture.gate.add_permits(1);
    let done = fixture.until(&id, "completed").await;
    assert_eq!(text(&done["result"]), "worked");
    assert_eq!(fixture.get(&id).await["result"], done);
}

#[tokio::test]
async fn numbers_in_the_result_of_a_task_stay_exact() {
    let mut fixture = Fixture::at_once();
    let id = fixture.task("wide").await;
    fixture.until(&id, "completed").await;
    let params = with_meta(json!({"taskId": id}), true);
    let get = json!({"jsonrpc": "2.0", "id": 99, "method": "tasks/get", "params": params});
    fixture.wire.send(&get).await;
    let text = fixture.wire.receive_text().await;
    assert!(text.contains(&format!("\"structuredContent\":{WIDE}")), "{text}");
}

#[tokio::test]
async fn a_tool_that_fails_completes_its_task_with_the_failure() {
    let mut fixture = Fixture::at_once();
    let id = fixture.task("fail").await;
    fixture.gate.add_permits(1);
    let done = fixture.until(&id, "completed").await;
    assert_eq!(done["result"]["isError"], true);
    assert!(text(&done["result"]).contains("the disk is full"), "{done}");
}

#[tokio::test]
async fn short_calls_are_answered_and_task_only_tools_make_tasks() {
    let mut fixture = Fixture::new(TaskOptions::default());
    fixture.gate.add_permits(1);
    let answer = fixture.call("work").await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(text(&answer["result"]), "worked");
    let id = fixture.task("quick").await;
    assert_eq!(text(&fixture.until(&id, "completed").await["result"]), "at once");
}

#[tokio::test]
async fn clients_without_task_support_get_no_tasks() {
    let mut fixture = Fixture::at_once();
    fixture.gate.add_permits(1);
    let call = |name: &str| json!({"name": name, "arguments": {}});
    let answer = request(&mut fixture.wire, "tools/call", call("work"), false).await;
    assert_eq!(text(&answer["result"]), "worked");
    for (method, params) in [
        ("tools/call", call("always")),
        ("tasks/get", json!({"taskId": "x"})),
        ("tasks/update", json!({"taskId": "x", "inputResponses": {}})),
        ("tasks/cancel", json!({"taskId": "x"})),
    ] {
        let refused = request(&mut fixture.wire, method, params, false).await;
        assert_eq!(refused["error"]["code"], -32021, "{refused}");
        let needed = &refused["error"]["data"]["requiredCapabilities"]["extensions"];
        assert!(needed["io.modelcontextprotocol/tasks"].is_object(), "{refused}");
    }
}

#[tokio::test]
async fn a_tool_without_tasks_is_waited_for() {
    let mut fixture = Fixture::at_once();
    fixture.gate.add_permits(1);
    assert_eq!(text(&fixture.call("never").await["result"]), "worked");
}

#[tokio::test]
async fn a_cancelled_task_ends_its_work_and_stays_cancelled() {
    let mut fixture = Fixture::at_once();
    let id = fixture.task("work").await;
    for _ in 0..2 {
        let acknowledged = fixture.request("tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(acknowledged["result"]["resultType"], "complete", "{acknowledged}");
        assert_eq!(acknowledged["result"].get("taskId"), None);
    }
    fixture.is_dropped().await;
    fixture.gate.add_permits(1);
    assert_eq!(fixture.get(&id).await["result"]["status"], "cancelled");
}

#[tokio::test]
async fn a_task_asks_its_client_and_asks_again_where_the_answer_does_not_fit() {
    let mut fixture = Fixture::at_once();
    let id = fixture.task("ask").await;
    fixture.gate.add_permits(1);
    let asking = fixture.until(&id, "input_required").await;
    let key = |task: &Value| -> String {
        task["inputRequests"].as_object().unwrap().keys().next().unwrap().clone()
    };
    let first = key(&asking);
    assert_eq!(asking["inputRequests"][&first]["params"]["message"], "How many?");
    let answer = |key: &str, n: i64| {
        let response = json!({"action": "accept", "content": {"n": n}});
        json!({"taskId": id, "inputResponses": {key: response}})
    };
    let acknowledged = fixture.request("tasks/update", answer(&first, 0)).await;
    assert_eq!(acknowledged["result"]["resultType"], "complete", "{acknowledged}");
    let seen = |task: &Value| task["status"] == "input_required" && key(task) != first;
    let again = fixture.until_seen(&id, seen).await;
    assert!(again["statusMessage"].as_str().unwrap().contains("does not fit"), "{again}");
    fixture.request("tasks/update", answer(&key(&again), 3)).await;
    let done = fixture.until(&id, "completed").await;
    assert_eq!(text(&done["result"]), r#"told {"n":{"n":3}}"#);
    assert_eq!(fixture.waiting().await, 0);
}

#[tokio::test]
async fn cancelling_a_task_with_open_questions_ends_its_suspension() {
    let mut fixture = Fixture::at_once();
    let id = fixture.task("ask").await;
    fixture.gate.add_permits(1);
    fixture.until(&id, "input_required").await;
    assert_eq!(fixture.waiting().await, 1);
    fixture.request("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(fixture.get(&id).await["result"]["status"], "cancelled");
    let begin = Instant::now();
    while fixture.waiting().await > 0 {
        assert!(begin.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn nobody_can_approve_the_call_of_a_cancelled_task() {
    let mut fixture = Fixture::at_once();
    for _ in 0..20 {
        let id = fixture.task("remove").await;
        let call = fixture.waiting_for_approval().await;
        let cancelled = fixture.request("tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
        assert_eq!(fixture.approvals.list().await.unwrap().len(), 0);
        assert!(fixture.approvals.decide(&call, Decision::approve()).await.is_err());
        assert_eq!(fixture.get(&id).await["result"]["status"], "cancelled");
    }
    assert!(fixture.dropped.try_recv().is_err(), "a call has run");
}

#[tokio::test]
async fn a_call_that_was_approved_before_its_task_was_cancelled_goes_on_and_says_so() {
    let mut fixture = Fixture::at_once();
    let id = fixture.task("remove").await;
    let call = fixture.waiting_for_approval().await;
    let approvals = fixture.approvals.clone();
    let approved =
        tokio::spawn(async move { approvals.decide(&call, Decision::approve()).await.is_ok() });
    let begin = Instant::now();
    while !fixture.approvals.list().await.unwrap().is_empty() {
        assert!(begin.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    fixture.request("tasks/cancel", json!({"taskId": id})).await;
    let task = fixture.get(&id).await["result"].clone();
    assert_eq!(task["status"], "working", "{task}");
    assert!(task["statusMessage"].as_str().unwrap().contains("decided on"), "{task}");
    fixture.gate.add_permits(1);
    let done = fixture.until(&id, "completed").await;
    assert_eq!(text(&done["result"]), "worked");
    assert!(approved.await.unwrap());
}

#[tokio::test]
async fn cancelling_and_approving_at_once_never_both_succeed() {
    let mut fixture = Fixture::at_once();
    let mut runs = 0;
    for round in 0..60_u64 {
        let id = fixture.task("remove").await;
        let call = fixture.waiting_for_approval().await;
        fixture.gate.add_permits(1);
        let approvals = fixture.approvals.clone();
        let approved = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_micros(round % 10 * 20)).await;
            approvals.decide(&call, Decision::approve()).await.is_ok()
        });
        fixture.request("tasks/cancel", json!({"taskId": id})).await;
        if approved.await.unwrap() {
            runs += 1;
            fixture.until(&id, "completed").await;
            fixture.is_dropped().await;
        } else {
            assert_eq!(fixture.get(&id).await["result"]["status"], "cancelled");
            fixture.gate.try_acquire().unwrap().forget();
        }
    }
    assert!(fixture.dropped.try_recv().is_err(), "more calls ran than the {runs} approved ones");
}

#[tokio::test]
async fn nobody_can_approve_the_call_of_a_cancelled_request() {
    let later = TaskOptions { after: Duration::from_secs(3_600), ..AT_ONCE };
    let mut fixture = Fixture::new(later);
    let params = with_meta(json!({"name": "remove", "arguments": {}}), true);
    let message = json!({"jsonrpc": "2.0", "id": "r", "method": "tools/call", "params": params});
    fixture.wire.send(&message).await;
    let call = fixture.waiting_for_approval().await;
    let cancel = json!({"requestId": "r"});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel});
    fixture.wire.send(&cancel).await;
    let begin = Instant::now();
    while fixture.waiting().await > 0 {
        assert!(begin.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(fixture.approvals.decide(&call, Decision::approve()).await.is_err());
}

#[tokio::test]
async fn a_task_is_visible_only_to_the_client_that_made_the_call() {
    let mut fixture = Fixture::at_once();
    let id = fixture.task("work").await;
    let mut other = Wire::connect(fixture.server.for_client(TurnOptions::default()));
    for (method, params) in [
        ("tasks/get", json!({"taskId": id})),
        ("tasks/update", json!({"taskId": id, "inputResponses": {}})),
        ("tasks/cancel", json!({"taskId": id})),
    ] {
        let refused = request(&mut other, method, params, true).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    // It is, on a separate connection.
    let mut own = Wire::connect(fixture.server.clone());
    let answer = request(&mut own, "tasks/get", json!({"taskId": id}), true).await;
    assert_eq!(answer["result"]["status"], "working");
}

#[tokio::test]
async fn an_expired_task_is_ended_and_forgotten() {
    let mut fixture = Fixture::new(TaskOptions { ttl: Duration::from_millis(50), ..AT_ONCE });
    let id = fixture.task("work").await;
    fixture.is_dropped().await;
    let begin = Instant::now();
    loop {
        let answer = fixture.get(&id).await;
        if answer["error"]["code"] == -32602 {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{answer}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_client_at_its_task_limit_waits_for_answers() {
    let mut fixture = Fixture::new(TaskOptions { max: 1, ..AT_ONCE });
    let id = fixture.task("work").await;
    fixture.gate.add_permits(2);
    assert_eq!(text(&fixture.call("work").await["result"]), "worked");
    fixture.until(&id, "completed").await;
    let mut without = Fixture::new(TaskOptions { max: 0, ..AT_ONCE });
    let hello = without.request("server/discover", json!({})).await;
    assert_eq!(hello["result"]["capabilities"].get("extensions"), None, "{hello}");
    assert_eq!(without.get("x").await["error"]["code"], -32601);
}

#[tokio::test]
async fn methods_that_the_tasks_extension_does_not_have_are_unknown() {
    let mut fixture = Fixture::at_once();
    let id = fixture.task("work").await;
    for method in ["tasks/delete", "tasks/list", "tasks/result"] {
        let answer = fixture.request(method, json!({"taskId": id})).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    assert_eq!(fixture.get(&id).await["result"]["status"], "working");
    fixture.gate.add_permits(1);
    fixture.until(&id, "completed").await;
}
