//! Settings that change while a server runs: which tokens are valid, and what ends with them.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use toolcrib_core::{ToolFilter, Toolset};
use toolcrib_http::{ChangedSettings, ClientConfig, HttpError, Right, ServerConfig, Token};

use crate::fixture::{Running, TOKEN, client, config, start};
use crate::raw_client::{Ask, Reply};

fn with(tokens: impl IntoIterator<Item = (String, ClientConfig)>) -> ServerConfig {
    ServerConfig { tokens: tokens.into_iter().collect(), ..config() }
}

fn prepare(server: &Running, config: &ServerConfig) -> Result<ChangedSettings, HttpError> {
    server.settings.prepare(config, &|_| None)
}

async fn tools(server: &Running, who: &str) -> u16 {
    Ask::new(server.address, "GET /v1/tools").of(who).send().await.status
}

/// Begins a session of MCP.
async fn initialize(server: &Running, who: &str) -> Reply {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    }});
    Ask::mcp(server.address, hello).of(who).send().await
}

#[tokio::test]
async fn a_revoked_token_is_refused_and_its_requests_and_streams_end() {
    let server = start(with([client("ada", |_| {}), client("bob", |_| {})])).await;
    let session = initialize(&server, "ada").await.header("mcp-session-id").unwrap().to_owned();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let get = Ask::mcp(server.address, "").on("GET /mcp").of("ada").with("content-length", "0");
    get.with("mcp-session-id", &session).write(&mut stream).await;
    let mut head = [0; 15];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    let mut waiting = TcpStream::connect(server.address).await.unwrap();
    Ask::new(server.address, "POST /v1/tools/wait/call").of("ada").write(&mut waiting).await;
    server.waits.begun.notified().await;

    let changed = prepare(&server, &with([client("bob", |_| {})])).unwrap();
    assert_eq!(tools(&server, "ada").await, 200, "nothing changes before it is applied");
    assert_eq!(changed.apply(), ["ada".into()]);

    assert_eq!(tools(&server, "ada").await, 401);
    assert_eq!(initialize(&server, "ada").await.status, 401);
    let mut rest = Vec::new();
    // The system decides whether the connection ends cleanly or with a reset.
    let ended = timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
    ended.expect("the stream ends").ok();
    server.waits.dropped.notified().await;
    let ended = Reply::read(&mut waiting).await;
    assert_eq!(ended.status, 401);
    assert!(ended.body.contains("the token was revoked while"), "{}", ended.body);
    assert_eq!(tools(&server, "bob").await, 200);
    server.end().await;
}

#[tokio::test]
async fn unchanged_clients_keep_their_sessions_and_limits() {
    let hasty = || client("hasty", |hasty| hasty.rate = Some("2/h".parse().unwrap()));
    let server = start(with([hasty(), client("ada", |_| {})])).await;
    let session = initialize(&server, "hasty").await.header("mcp-session-id").unwrap().to_owned();
    let changed = prepare(&server, &with([hasty(), client("new", |_| {})])).unwrap();
    assert_eq!(changed.apply(), ["ada".into()]);
    assert_eq!(tools(&server, "new").await, 200);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ready = Ask::mcp(server.address, ready).of("hasty").with("mcp-session-id", &session);
    assert_eq!(ready.send().await.status, 202, "the session goes on");
    assert_eq!(tools(&server, "hasty").await, 429, "and so does the limit");
    server.end().await;
}

#[tokio::test]
async fn rights_and_the_operators_token_change_too() {
    let server = start(with([client("ada", |_| {})])).await;
    let metrics = || Ask::new(server.address, "GET /metrics").of("ada").send();
    assert_eq!(metrics().await.status, 403);
    let next = ServerConfig {
        token: Some(Token::new("another-token-for-tests").unwrap()),
        ..with([client("ada", |ada| ada.rights = vec![Right::Observe])])
    };
    let mut ended = prepare(&server, &next).unwrap().apply();
    ended.sort();
    assert_eq!(ended, ["ada".into(), "operator".into()]);
    assert_eq!(metrics().await.status, 200);
    let as_operator = |token: &str| {
        let bearer = format!("Bearer {token}");
        Ask::new(server.address, "GET /v1/status").with("authorization", &bearer).send()
    };
    assert_eq!(as_operator(TOKEN).await.status, 401);
    assert_eq!(as_operator("another-token-for-tests").await.status, 200);
    server.end().await;
}

#[tokio::test]
async fn settings_that_cannot_be_used_change_nothing() {
    let server = start(with([client("ada", |_| {})])).await;
    let nowhere = with([client("ada", |ada| ada.toolset = Some("nowhere".into()))]);
    let refused = prepare(&server, &nowhere).unwrap_err();
    assert!(matches!(refused, HttpError::Toolset { .. }), "{refused}");
    let nobody = ServerConfig { token: None, ..config() };
    let refused = prepare(&server, &nobody).unwrap_err();
    assert!(matches!(refused, HttpError::NoTokenLeft), "{refused}");
    assert_eq!(tools(&server, "ada").await, 200);
    server.end().await;
}

#[tokio::test]
async fn a_call_that_waits_does_not_outlive_the_rights_of_its_client() {
    let of_ada = |client: &mut ClientConfig| {
        client.context = [("user".to_owned(), json!("ada"))].into();
    };
    let agent = |change: &dyn Fn(&mut ClientConfig)| {
        client("agent", |agent| {
            of_ada(agent);
            change(agent);
        })
    };
    let person = || {
        client("person", |person| {
            of_ada(person);
            person.rights = vec![Right::Call, Right::Approve];
        })
    };
    let deny = json!({"rules": [{"tool": "remove", "action": "deny"}]});
    for (changed, why) in [
        (None, "it was removed"),
        (Some(agent(&|agent| agent.toolset = Some("echoes".into()))), "not in its toolset"),
        (
            Some(agent(&|agent| agent.policy = serde_json::from_value(deny.clone()).unwrap())),
            "a rule for this client denies it",
        ),
        (Some(agent(&|agent| agent.rights = vec![Right::Observe])), "lost the right `call`"),
        (
            Some(agent(&|agent| {
                agent.hash = Token::new("renewed-token-for-tests").unwrap().hash();
            })),
            "its token was revoked",
        ),
        (
            Some(agent(&|agent| drop(agent.context.insert("tenant".to_owned(), json!("acme"))))),
            "its context values have changed",
        ),
    ] {
        let server = start(with([agent(&|_| {}), person()])).await;
        let ask = |who: &str, line: String, body: Value| {
            Ask::new(server.address, &line).of(who).json(&body).send()
        };
        let get = |line: String| Ask::new(server.address, &line).of("person").send();
        let run = ask("agent", "POST /v1/tools/remove/call".into(), json!({})).await.json();
        let id = run["waiting"][0]["id"].as_str().unwrap().to_owned();
        let run = format!("GET /v1/runs/{}", run["id"].as_str().unwrap());

        let next = with(changed.into_iter().chain([person()]));
        let echoes = Toolset::new().include(ToolFilter::new().name("echo*"));
        let toolsets = |name: &str| (name == "echoes").then(|| echoes.clone());
        assert_eq!(server.settings.prepare(&next, &toolsets).unwrap().apply(), ["agent".into()]);
        let yes = json!({"decision": "approve"});
        let approved = ask("person", format!("POST /v1/approvals/{id}"), yes).await;
        // The reload may have denied the call already.
        assert!([404, 409].contains(&approved.status), "{why}: {}", approved.body);
        let over = async {
            loop {
                let run = get(run.clone()).await.json();
                if run["status"] != "requires_action" {
                    break run;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let over = timeout(Duration::from_secs(10), over).await.expect("the call is answered");
        let error = &over["results"][0]["error"];
        assert_eq!(error["kind"], "denied", "{why}: {over}");
        assert!(error.to_string().contains(why), "{why}: {over}");
        let list = get("GET /v1/approvals".into()).await.json();
        assert_eq!(list["approvals"], json!([]), "{why}");
        server.end().await;
    }
}

#[tokio::test]
async fn a_call_that_its_client_may_still_make_waits_on_after_a_reload() {
    let agent = |change: &dyn Fn(&mut ClientConfig)| client("agent", |agent| change(agent));
    let server = start(with([agent(&|_| {})])).await;
    let call = Ask::new(server.address, "POST /v1/tools/remove/call").of("agent").json(&json!({}));
    let run = call.send().await.json();
    let id = run["waiting"][0]["id"].as_str().unwrap();
    let hasty = with([agent(&|agent| agent.rate = Some("9/s".parse().unwrap()))]);
    assert!(prepare(&server, &hasty).unwrap().apply().is_empty(), "nothing ends");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let approve = Ask::api(server.address, &format!("POST /v1/approvals/{id}"));
    let approved = approve.json(&json!({"decision": "approve"})).send().await;
    assert_eq!(approved.status, 200, "{}", approved.body);
    server.end().await;
}

/// Starts a call of the tool `wait` over HTTP, which never ends by itself.
async fn begin(server: &Running, who: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    Ask::new(server.address, "POST /v1/tools/wait/call").of(who).write(&mut stream).await;
    server.waits.begun.notified().await;
    stream
}

/// Whether a started call continues.
async fn goes_on(server: &Running) -> bool {
    timeout(Duration::from_millis(200), server.waits.dropped.notified()).await.is_err()
}

fn apply(server: &Running, config: &ServerConfig) -> Vec<String> {
    let echoes = Toolset::new().include(ToolFilter::new().name("echo*"));
    let waits = Toolset::new().include(ToolFilter::new().name("wait"));
    let toolsets = |name: &str| match name {
        "echoes" => Some(echoes.clone()),
        "waits" => Some(waits.clone()),
        _ => None,
    };
    let ended = server.settings.prepare(config, &toolsets).unwrap().apply();
    ended.into_iter().map(|name| name.to_string()).collect()
}

#[tokio::test]
async fn a_client_whose_limits_alone_change_keeps_its_running_calls_and_sessions() {
    let server = start(with([client("ada", |_| {})])).await;
    let session = initialize(&server, "ada").await.header("mcp-session-id").unwrap().to_owned();
    let _call = begin(&server, "ada").await;
    let slower = with([client("ada", |ada| {
        ada.rate = Some("9/s".parse().unwrap());
        ada.concurrent = Some(5);
    })]);
    assert!(apply(&server, &slower).is_empty());
    assert!(goes_on(&server).await);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ready = Ask::mcp(server.address, ready).of("ada").with("mcp-session-id", &session);
    assert_eq!(ready.send().await.status, 202, "the session goes on");
    // A request that was admitted before follows the next change too.
    assert_eq!(apply(&server, &with([client("bob", |_| {})])), ["ada"]);
    assert!(!goes_on(&server).await);
    server.end().await;
}

type Change<'a> = &'a dyn Fn(&mut ClientConfig);

#[tokio::test]
async fn narrowed_rights_end_only_the_calls_that_they_no_longer_allow_and_say_so() {
    let deny = json!({"rules": [{"tool": "remove", "action": "deny"}]});
    let rules = |ada: &mut ClientConfig| ada.policy = serde_json::from_value(deny.clone()).unwrap();
    let changes: [(Change<'_>, Option<&str>); 5] = [
        (&|ada| ada.rights = vec![Right::Call, Right::Observe], None),
        (&|ada| ada.toolset = Some("waits".into()), None),
        (&|ada| ada.toolset = Some("echoes".into()), Some("changed what this client may call")),
        (&|ada| ada.rights = vec![Right::Observe], Some("lost the right `call`")),
        (&rules, Some("changed what this client may call")),
    ];
    for (change, ended) in changes {
        let server = start(with([client("ada", |_| {})])).await;
        let mut call = begin(&server, "ada").await;
        apply(&server, &with([client("ada", change)]));
        if let Some(says) = ended {
            let reply = timeout(Duration::from_secs(5), Reply::read(&mut call)).await.unwrap();
            assert_eq!(reply.status, 403, "{}", reply.body);
            assert!(reply.body.contains(says), "{}", reply.body);
        } else {
            assert!(goes_on(&server).await);
        }
        server.end().await;
    }
}

#[tokio::test]
async fn an_approval_tells_the_decision_and_the_outcome_of_the_call_apart() {
    let server = start(with([client("ada", |_| {})])).await;
    let call = async |tool: &str, arguments: Value| {
        let line = format!("POST /v1/tools/{tool}/call");
        let body = json!({"arguments": arguments});
        let run = Ask::new(server.address, &line).of("ada").json(&body).send().await.json();
        run["waiting"][0]["id"].as_str().unwrap().to_owned()
    };
    let decide = async |id: &str, decision: Value| {
        let line = format!("POST /v1/approvals/{id}");
        Ask::api(server.address, &line).json(&decision).send().await.json()
    };
    let id = call("remove", json!({"path": "a"})).await;
    let approved = decide(&id, json!({"decision": "approve"})).await;
    assert_eq!(approved["decision"], "approve");
    assert_eq!(approved["outcome"], json!({"status": "succeeded"}));
    let id = call("remove", json!({"path": "b"})).await;
    let denied = decide(&id, json!({"decision": "deny", "message": "keep it"})).await;
    assert_eq!(denied["decision"], "deny");
    assert_eq!(denied["outcome"]["status"], "refused");
    assert_eq!(denied["outcome"]["kind"], "denied");
    assert!(denied["outcome"]["message"].as_str().unwrap().contains("keep it"), "{denied}");
    server.end().await;
}

#[tokio::test]
async fn the_audit_log_says_who_decided_and_what_was_shown_beside_who_asked() {
    let bob = client("bob", |bob| bob.rights = vec![Right::Call, Right::Approve]);
    let server = start(with([client("ada", |_| {}), bob])).await;
    for (decision, verdict) in [("approve", "approved"), ("deny", "denied")] {
        let call = Ask::new(server.address, "POST /v1/tools/remove/call").of("ada");
        let run = call.json(&json!({})).send().await.json();
        let id = run["waiting"][0]["id"].as_str().unwrap();
        let show = Ask::new(server.address, &format!("GET /v1/approvals/{id}")).of("bob");
        let shown = show.send().await.json();
        let line = format!("POST /v1/approvals/{id}");
        let decide = Ask::new(server.address, &line).of("bob");
        let decided = decide.json(&json!({"decision": decision})).send().await;
        assert_eq!(decided.status, 200, "{}", decided.body);
        let audit = Ask::api(server.address, "GET /v1/audit?limit=1").send().await.json();
        let text = audit.to_string();
        let record = &audit["records"][0];
        assert_eq!(record["user"], "ada", "{text}");
        assert_eq!(record["decision"]["verdict"], verdict, "{text}");
        assert_eq!(record["decision"]["by"], "bob", "{text}");
        assert!(shown["digest"].is_string());
        assert_eq!(record["decision"]["shown"], shown["digest"], "{text}");
    }
    server.end().await;
}

#[tokio::test]
async fn an_approver_over_http_is_shown_long_arguments_in_whole() {
    let server = start(with([client("ada", |_| {})])).await;
    let path = format!("{}; rm -rf /srv", "a".repeat(20_000));
    let call = Ask::new(server.address, "POST /v1/tools/remove/call").of("ada");
    call.json(&json!({"arguments": {"path": path}})).send().await;
    let list = Ask::api(server.address, "GET /v1/approvals").send().await.json();
    let one = &list["approvals"][0];
    assert_eq!(one["arguments"]["path"], json!(path));
    assert!(one["text"].as_str().unwrap().contains(&path));
    server.end().await;
}

#[tokio::test]
async fn the_work_of_a_revoked_client_ends_also_under_a_key_in_a_batch_and_in_a_run() {
    let deny = json!({"rules": [{"tool": "count", "action": "deny"}]});
    let narrowed: [(&str, Option<(String, ClientConfig)>); 4] = [
        ("removed", None),
        ("without `call`", Some(client("ada", |ada| ada.rights = vec![Right::Observe]))),
        ("another toolset", Some(client("ada", |ada| ada.toolset = Some("echoes".into())))),
        (
            "another rule",
            Some(client("ada", |ada| ada.policy = serde_json::from_value(deny).unwrap())),
        ),
    ];
    let two = json!({"calls": [{"tool": "wait"}, {"tool": "count"}], "max_concurrency": 1});
    for (what, next) in narrowed {
        for (line, body, key) in [
            ("POST /v1/tools/wait/call", json!({}), Some("k1")),
            ("POST /v1/batch", two.clone(), Some("k2")),
            ("POST /v1/batch", two.clone(), None),
            ("POST /v1/runs", two.clone(), None),
            ("POST /v1/runs", two.clone(), Some("k3")),
        ] {
            if what == "another rule" && line.contains("tools") {
                // The rule concerns another tool than the request.
                continue;
            }
            let server = start(with([client("ada", |_| {}), client("bob", |_| {})])).await;
            let mut ask = Ask::api(server.address, line).of("ada").json(&body);
            if let Some(key) = key {
                ask = ask.with("idempotency-key", key);
            }
            let mut waiting = TcpStream::connect(server.address).await.unwrap();
            ask.write(&mut waiting).await;
            server.waits.begun.notified().await;
            let after = next.clone().into_iter().chain([client("bob", |_| {})]);
            let echoes = |_: &str| Some(Toolset::new().include(ToolFilter::new().name("echo*")));
            let changed = server.settings.prepare(&with(after), &echoes).unwrap();
            assert_eq!(changed.apply(), ["ada".into()]);
            let dropped = timeout(Duration::from_secs(5), server.waits.dropped.notified()).await;
            dropped.unwrap_or_else(|_| panic!("{what}: the call of {line} {key:?} runs on"));
            assert!([401, 403].contains(&Reply::read(&mut waiting).await.status));
            // The key has its answer as soon as the rights are back, and nothing is done again.
            let back = [client("ada", |_| {}), client("bob", |_| {})];
            prepare(&server, &with(back)).unwrap().apply();
            if key.is_some() {
                let again = timeout(Duration::from_secs(5), ask.send()).await.expect("an answer");
                assert_eq!(again.header("idempotency-replayed"), Some("true"), "{}", again.body);
                assert!(again.body.contains("cancelled"), "{what}, {line}: {}", again.body);
            }
            let count = Ask::api(server.address, "POST /v1/tools/count/call").of("bob");
            assert_eq!(count.send().await.json()["output"], "1", "{what}: {line} went on");
            server.end().await;
        }
    }
}

#[tokio::test]
async fn an_approval_that_a_client_remembered_for_itself_ends_with_its_right_to_approve() {
    let ada = |rights: &[Right]| client("ada", |ada| ada.rights = rights.to_vec());
    let server = start(with([ada(&[Right::Call, Right::Approve])])).await;
    let body = json!({"arguments": {}, "session": "s1"});
    let call = Ask::api(server.address, "POST /v1/tools/remove/call").of("ada").json(&body);
    let run = call.clone().send().await.json();
    let decide = json!({"id": run["waiting"][0]["id"], "decision": "approve", "remember": "tool"});
    let path = format!("POST /v1/runs/{}/resolve", run["id"].as_str().unwrap());
    let resolved = Ask::api(server.address, &path).of("ada").json(&decide).send().await;
    assert_eq!(resolved.json()["status"], "completed", "{}", resolved.body);
    assert_eq!(call.clone().send().await.status, 200, "it is remembered");
    prepare(&server, &with([ada(&[Right::Call])])).unwrap().apply();
    assert_eq!(call.send().await.status, 202, "somebody is asked again");
    server.end().await;
}

/// The newest record of the audit log about a tool, once there is one with this text.
async fn audited(server: &Running, tool: &str, outcome: &str) -> Value {
    let mut last = Value::Null;
    for _ in 0..250 {
        let audit = Ask::api(server.address, "GET /v1/audit?limit=100").send().await.json();
        let mut records = audit["records"].as_array().unwrap().iter();
        last = records.rfind(|one| one["tool"] == tool).cloned().unwrap_or_default();
        if last["outcome"] == outcome {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(last["outcome"], outcome, "{last}");
    last
}

#[tokio::test]
async fn a_call_that_was_approved_and_runs_ends_when_its_caller_is_revoked() {
    let rules = json!({"rules": [{"tool": "wait", "action": "ask"}]});
    let ada = client("ada", |ada| ada.policy = serde_json::from_value(rules).unwrap());
    let bob = client("bob", |bob| bob.rights = vec![Right::Call, Right::Approve]);
    let server = start(with([ada, bob.clone()])).await;
    let call = Ask::new(server.address, "POST /v1/tools/wait/call").of("ada");
    let run = call.json(&json!({"arguments": {}})).send().await.json();
    let id = run["waiting"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(audited(&server, "wait", "waiting").await["decision"]["verdict"], "waiting");

    let line = format!("POST /v1/approvals/{id}");
    let approve = Ask::new(server.address, &line).of("bob").json(&json!({"decision": "approve"}));
    let approved = tokio::spawn(approve.send());
    server.waits.begun.notified().await;
    assert_eq!(apply(&server, &with([bob])), ["ada"]);
    timeout(Duration::from_secs(5), server.waits.dropped.notified()).await.expect("it is ended");
    let approved = approved.await.unwrap().json();
    assert_eq!(approved["outcome"]["kind"], "cancelled", "{approved}");
    let said = approved["outcome"]["message"].as_str().unwrap();
    assert!(said.contains("lost the right"), "{said}");
    let record = audited(&server, "wait", "revoked").await;
    assert_eq!(record["decision"]["verdict"], "approved");
    assert_eq!(record["decision"]["by"], "bob");
    server.end().await;
}

#[tokio::test]
async fn the_audit_log_says_that_a_call_was_allowed_and_ended_by_revocation() {
    for key in [None, Some("key")] {
        let server = start(with([client("ada", |_| {}), client("bob", |_| {})])).await;
        let mut call = Ask::api(server.address, "POST /v1/tools/wait/call").of("ada");
        if let Some(key) = key {
            call = call.with("idempotency-key", key);
        }
        let running = tokio::spawn(call.json(&json!({"arguments": {}})).send());
        server.waits.begun.notified().await;
        assert_eq!(apply(&server, &with([client("bob", |_| {})])), ["ada"]);
        assert_eq!(running.await.unwrap().status, 401);
        let record = audited(&server, "wait", "revoked").await;
        assert_eq!(record["decision"]["verdict"], "allowed", "{key:?}: {record}");
        server.end().await;
    }
}

#[tokio::test]
async fn the_audit_log_and_the_approval_itself_name_who_approved_a_call() {
    let server = start(with([client("ada", |_| {})])).await;
    let call = Ask::new(server.address, "POST /v1/tools/remove/call").of("ada");
    let run = call.json(&json!({"arguments": {"path": "a"}})).send().await.json();
    let id = run["waiting"][0]["id"].as_str().unwrap();
    let line = format!("POST /v1/approvals/{id}");
    let changed = json!({"decision": "approve", "arguments": {"path": "b"}});
    let approved = Ask::api(server.address, &line).json(&changed).send().await;
    assert_eq!(approved.status, 200, "{}", approved.body);
    let record = audited(&server, "remove", "success").await;
    assert_eq!(record["decision"]["by"], "operator");
    assert_eq!(record["decision"]["changed"], true);
    let shown = Ask::api(server.address, &format!("GET /v1/approvals/{id}")).send().await;
    assert_eq!(shown.status, 404);
    assert!(shown.body.contains("was approved by operator"), "{}", shown.body);
    server.end().await;
}
