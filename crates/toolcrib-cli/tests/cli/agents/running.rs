//! `toolcrib run`: answers, waits, failures and Ctrl-C.

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::Reply;

use super::harness::{KEY, crib, served};
use crate::harness::crib::{Crib, until};
use crate::harness::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_alone_on_standard_output_in_every_protocol() {
    for &wire in Wire::ALL {
        let replies = [
            Reply::call("say", json!({"text": "one"})).with_text("Let me look."),
            Reply::text("It says one."),
        ];
        let (server, crib) = served(wire, replies).await;
        let run = crib.run(&["run", "What does it say?"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "It says one.\n"), "{wire}: {run:?}");
        assert_eq!(server.violations(), [""; 0], "{wire}");
        assert!(run.stderr.contains(r#"say {"text":"one"}"#), "{run:?}");
        assert!(run.stderr.contains("Let me look."), "{run:?}");
        assert!(run.stderr.contains("2 turns, 1 call"), "{run:?}");
        let header = if wire == Wire::Anthropic { "x-api-key" } else { "authorization" };
        let sent = server.requests()[0].header(header).map(str::to_owned);
        assert!(sent.is_some_and(|sent| sent.ends_with(KEY)), "{wire}");
        assert!(server.requests()[0].text.contains("Use the tools."), "{wire}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_line_shows_a_call_of_a_hidden_tool_whose_result_reaches_the_model() {
    let replies = [
        Reply::call("whisper", json!({})).and_call("say", json!({"text": "one"})),
        Reply::text("Heard."),
    ];
    let (server, crib) = served(Wire::Chat, replies).await;
    let tool = "toolcrib: 1\ntools:\n  - name: whisper\n    description: Whisper. Read-only.\n    hidden: true\n    \
                annotations: {read_only: true}\n    run: {argv: [echo, psst]}\n";
    crib.write("whisper.yaml", tool);
    let run = crib.run(&["run", "Listen."]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Heard.\n"), "{run:?}");
    assert!(run.stderr.contains("✓ say") && !run.stderr.contains("whisper"), "{run:?}");
    assert!(!run.stderr.contains("psst"), "{run:?}");
    assert!(server.requests()[1].text.contains("psst"), "{}", server.requests()[1].text);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_tools_only_answers() {
    let replies = [Reply::call("say", json!({"text": "one"})), Reply::text("I cannot.")];
    let (server, crib) = served(Wire::Chat, replies).await;
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
    crib.config(&config.replace("instruction:", "tools_enabled: false, instruction:"));
    let run = crib.run(&["run", "Say one."]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "I cannot.\n"), "{run:?}");
    assert!(run.stderr.contains("✗ say"), "{run:?}");
    let first: Value = serde_json::from_str(&server.requests()[0].text).expect("JSON");
    assert!(first.get("tools").is_none() && first.get("tool_choice").is_none(), "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_line_says_what_the_input_and_what_the_whole_run_has_used() {
    let replies =
        [Reply::call("say", json!({"text": "one"})), Reply::text("One."), Reply::text("Only one.")];
    let (_server, crib) = served(Wire::Chat, replies).await;
    let run = crib.run(&["run", "Say one."]);
    assert!(run.stderr.contains(": 2 turns, 1 call,") && !run.stderr.contains("in all"), "{run:?}");
    let run = crib.run(&["run", "--resume", "last", "How many?"]);
    assert!(run.stderr.contains(": 1 turn, 0 calls,"), "{run:?}");
    assert!(run.stderr.contains("; in all 3 turns, 1 call,"), "{run:?}");
    let run = crib.run(&["run", "--resume", "last", "--json"]).json();
    let turns = |key: &str| run[key]["turns"].as_u64();
    assert_eq!((turns("spent"), turns("spent_in_all")), (Some(1), Some(3)), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_a_call_that_needs_approval_waits_and_nothing_runs() {
    let replies = [Reply::call("note", json!({"text": "x"}))];
    let (server, crib) = served(Wire::Chat, replies).await;
    let run = crib.run(&["run", "Note x."]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""), "{run:?}");
    assert!(run.stderr.contains("waits for approval"), "{run:?}");
    assert!(run.stderr.contains("toolcrib run --resume "), "{run:?}");
    assert!(!crib.path().join("notes.txt").exists());
    assert_eq!(server.requests().len(), 1, "the model is not asked while a call waits");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn an_imitated_question_approves_nothing_and_changed_arguments_that_do_not_fit_are_asked_for_again()
 {
    let imitated = "approval needed say {}\nRun it? [y/n/e/a/t/?] ";
    let replies = [
        Reply::call("note", json!({"text": "x"})).with_text(imitated),
        Reply::text("It is noted."),
    ];
    let (_server, crib) = served(Wire::Chat, replies).await;
    let question = "Run it? [y/n/e/a/t/?] ";
    let run = crib.dialogue(
        "run 'Note x.'",
        &[
            (question, "y\n"),
            (question, "e\n"),
            ("New arguments", "{\"txt\": 1}\n"),
            (question, "e\n"),
            ("New arguments", "{\"text\": \"y\"}\n"),
        ],
    );
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("did you mean `text`?"), "{run:?}");
    assert!(run.stdout.contains("The call still waits."), "{run:?}");
    let noted = std::fs::read_to_string(crib.path().join("notes.txt"));
    assert_eq!(noted.expect("a note"), "y\n", "{run:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_in_time_is_denied_and_the_run_goes_on() {
    let replies = [Reply::call("note", json!({"text": "x"})), Reply::text("I did not note it.")];
    let (server, crib) = served(Wire::Chat, replies).await;
    let command = "--set approval.timeout=2s run 'Note x.'";
    let run = crib.dialogue(command, &[("Run it? [y/n/e/a/t/?] ", "")]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("the time to decide is over"), "{run:?}");
    assert!(run.stdout.contains("I did not note it."), "{run:?}");
    assert!(server.requests()[1].text.contains("nobody"), "{}", server.requests()[1].text);
    assert!(!crib.path().join("notes.txt").exists());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_a_call_that_is_denied_elsewhere_ends_by_itself() {
    let replies = [Reply::call("note", json!({"text": "x"})), Reply::text("I did not note it.")];
    let (_server, crib) = served(Wire::Chat, replies).await;
    let _serving = Server::start(&crib, &["serve", "--listen", "127.0.0.1:0"]);
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            let waiting = until(&crib, &["approvals", "--json"], |run| {
                run.code == Some(0) && run.json()["approvals"][0]["id"].is_string()
            });
            let id = waiting.json()["approvals"][0]["id"].as_str().expect("an id").to_owned();
            // Only the command at whose terminal it waits can run it.
            let listed = crib.run(&["approvals"]);
            assert!(listed.stderr.contains("ask on their own terminal"), "{listed:?}");
            let approved = crib.run(&["approvals", "approve", &id]);
            assert_eq!(approved.code, Some(1), "{approved:?}");
            assert!(approved.stderr.contains("or deny it here"), "{approved:?}");
            let misspelt = crib.run(&["approvals", "deny", &id, "--reason", "no"]);
            assert_eq!(misspelt.code, Some(2), "{misspelt:?}");
            assert!(misspelt.stderr.contains("'--message'"), "{misspelt:?}");
            let denied = crib.run(&["approvals", "deny", &id]);
            assert_eq!(denied.code, Some(0), "{denied:?}");
        });
        crib.dialogue("run 'Note x.'", &[("Run it? [y/n/e/a/t/?] ", "")])
    });
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("somebody else has decided on this call"), "{run:?}");
    assert!(!crib.path().join("notes.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_json_lines_and_the_last_one_reports_the_run() {
    let said = format!("The key is {KEY}.");
    let replies = [Reply::call("say", json!({"text": "a"})), Reply::text(said)];
    let (_server, crib) = served(Wire::Responses, replies).await;
    let run = crib.run(&["run", "--events", "Go."]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let lines = run.stdout.lines().map(serde_json::from_str);
    let events: Vec<Value> = lines.collect::<Result<_, _>>().expect("JSON lines");
    let kinds: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!((kinds[0], kinds.last()), ("run.started", Some(&"report")), "{kinds:?}");
    for kind in ["run.call_finished", "model.text", "run.finished"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    assert_eq!(events.last().map(|last| &last["text"]), Some(&json!("The key is [masked].")));
    assert!(!run.stdout.contains(KEY), "secrets are masked: {}", run.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_exits_with_1_and_says_why() {
    let refused = json!({"error": {"message": "no such key", "type": "invalid_request_error"}});
    let (_server, crib) = served(Wire::Chat, [Reply::status(401, refused.to_string())]).await;
    let run = crib.run(&["run", "Hello."]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.stderr.contains("no such key"), "{run:?}");
    let (_server, crib) = served(
        Wire::Chat,
        [Reply::call("say", json!({"text": "a"})), Reply::call("say", json!({"text": "b"}))],
    )
    .await;
    let run = crib.run(&["run", "--max-turns", "2", "Hello."]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("max_turns"), "{run:?}");
}

#[test]
fn a_run_that_cannot_begin_says_what_to_write() {
    let crib = Crib::new(&[]);
    let run = crib.run(&["run", "Hello."]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    for said in ["providers:", "api_key: ${secret.model_key}", "--model scripted:"] {
        assert!(run.stderr.contains(said), "{said}: {run:?}");
    }
    crib.config("agents: {a: {model: p/m}, b: {model: p/m}}\n");
    let run = crib.run(&["run", "Hello."]);
    assert!(run.code == Some(2) && run.stderr.contains("--agent: `a`, `b`"), "{run:?}");
    let run = crib.run(&["run", "--agent", "c", "Hello."]);
    assert!(run.code == Some(2) && run.stderr.contains("no agent `c`"), "{run:?}");
    let run = crib.run(&["run"]);
    assert!(run.code == Some(2) && run.stderr.contains("toolcrib run 'PROMPT'"), "{run:?}");
}

#[test]
fn a_scripted_model_needs_no_provider() {
    let crib = Crib::new(&[]);
    let script = r#"[{"call": "calculator", "arguments": {"expression": "6*7"}}, {"text": "42"}]"#;
    std::fs::write(crib.path().join("script.json"), script).expect("a script");
    let run = crib.run(&["run", "--model", "scripted:script.json", "--json", "What is it?"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let report = run.json();
    assert_eq!((&report["state"], &report["text"]), (&json!("completed"), &json!("42")));
    assert_eq!(report["spent"]["calls"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_asks_a_provider_for_its_models_and_names_one_that_does_not_answer() {
    let (server, crib) = served(Wire::Anthropic, []).await;
    let run = crib.run(&["doctor"]);
    assert!(run.stdout.contains("`script` answers and has 1 model"), "{run:?}");
    assert_eq!(server.requests().len(), 0, "no model is asked anything");
    drop(server);
    let run = crib.run(&["doctor"]);
    assert!(run.stdout.contains("the provider `script` cannot be used"), "{run:?}");
    assert!(!run.stdout.contains(KEY), "{run:?}");
}

#[test]
fn a_metadata_service_is_no_provider() {
    let crib = crib(Wire::Chat, "http://169.254.169.254/v1");
    let run = crib.run(&["run", "Hello."]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("link-local"), "{run:?}");
}
