//! What belongs to whom: runs of the command line, and the tools with which runs began.

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::{ModelServer, Reply};

use super::harness::served;
use super::resuming::id;
use crate::harness::http::Http;

/// The tools that a request offers.
fn offered(server: &ModelServer, request: usize) -> Vec<String> {
    let body: Value = serde_json::from_str(&server.requests()[request].text).expect("JSON");
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_run_has_no_more_tools_than_it_began_with() {
    let (server, crib) = served(Wire::Chat, [Reply::text("One."), Reply::text("Two.")]).await;
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
    crib.config(&format!("{config}toolsets: {{quiet: {{include: [{{names: [nap]}}]}}}}\n"));
    let run = crib.run(&["run", "--toolset", "quiet", "Hello."]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = crib.run(&["run", "--resume", "last", "And then?"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Two.\n"), "{run:?}");
    for request in [0, 1] {
        assert_eq!(offered(&server, request), ["nap", "read_output"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_for_a_run_leaves_it_the_toolset_and_instruction_of_its_agent() {
    let (server, crib) = served(Wire::Chat, [Reply::text("One."), Reply::text("Two.")]).await;
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
    let narrow = "  narrow: {model: script/scripted, toolset: quiet, instruction: Be quiet.}\n";
    crib.config(&format!("{config}{narrow}toolsets: {{quiet: {{include: [{{names: [nap]}}]}}}}\n"));
    let run = crib.run(&["run", "--agent", "narrow", "Hello."]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = crib.run(&["run", "--resume", "last", "--model", "script/scripted", "And then?"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Two.\n"), "{run:?}");
    for request in [0, 1] {
        assert_eq!(offered(&server, request), ["nap", "read_output"]);
        assert!(server.requests()[request].text.contains("Be quiet."));
    }
    // A script has the two answers of before first.
    let script = json!([{"text": ""}, {"text": ""}, {"call": "say", "arguments": {"text": "x"}}, {"text": "Three."}]);
    std::fs::write(crib.path().join("script.json"), script.to_string()).expect("a script");
    let other = ["run", "--resume", "last", "--model", "scripted:script.json", "Say x."];
    let run = crib.run(&other);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Three.\n"), "{run:?}");
    assert!(run.stderr.contains("say") && run.stderr.contains("not_found"), "{run:?}");
    assert_eq!(server.requests().len(), 2, "another model has answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_a_token_know_nothing_of_the_operators_runs() {
    let replies = [Reply::text("Operators."), Reply::text("Theirs.")];
    let (_model, crib) = served(Wire::Chat, replies).await;
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
    let server = Http::start(&crib, "");
    let begun = server.ask("POST /v1/runs", Some(&json!({"input": "Hello."})));
    let own = begun.json()["id"].as_str().expect("an id").to_owned();
    let calls = json!({"calls": [{"tool": "note", "arguments": {"text": "x"}}]});
    let waiting = server.ask("POST /v1/runs", Some(&calls));
    let waiting = waiting.json()["id"].as_str().expect("an id").to_owned();

    crib.config(&format!("{config}server: {{no_auth: true}}\n"));
    let open = Http::start(&crib, "");
    for run in [&own, &waiting] {
        for line in ["GET /v1/runs/{}", "GET /v1/runs/{}/items", "POST /v1/runs/{}/cancel"] {
            let line = line.replace("{}", run);
            let reply = open.ask(&line, None);
            assert_eq!(reply.status, 404, "{line}: {}", reply.body);
        }
    }
    assert_eq!(open.ask("GET /v1/runs", None).json()["runs"], json!([]));
    let theirs = open.ask("POST /v1/runs", Some(&json!({"input": "Hello."})));
    let theirs = theirs.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(server.ask(&format!("GET /v1/runs/{theirs}"), None).status, 404);
    assert_eq!(server.ask(&format!("GET /v1/runs/{waiting}"), None).status, 200);
    let listed = crib.run(&["runs", "list", "--json"]);
    assert!(listed.stdout.contains(&own) && listed.stdout.contains(&theirs), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_a_token_see_no_run_of_the_command_line() {
    let replies = [Reply::call("note", json!({"text": "x"})), Reply::text("Theirs.")];
    let (_model, crib) = served(Wire::Chat, replies).await;
    let own = id(&crib.run(&["run", "Note x."]));
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
    crib.config(&format!("{config}server: {{no_auth: true}}\n"));
    let server = Http::start(&crib, "");
    let path = format!("/v1/runs/{own}");
    for (line, body) in [
        (format!("GET {path}"), None),
        (format!("GET {path}/events"), None),
        (format!("POST {path}/resume"), Some(json!({"input": "Hello."}))),
        (format!("POST {path}/cancel"), None),
    ] {
        let reply = server.ask(&line, body.as_ref());
        assert_eq!(reply.status, 404, "{line}: {}", reply.body);
    }
    let theirs = server.ask("POST /v1/runs", Some(&json!({"input": "Hello."})));
    assert_eq!(theirs.status, 201, "{}", theirs.body);
    let theirs = theirs.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(server.ask(&format!("GET /v1/runs/{theirs}"), None).status, 200);
    let events = server.ask(&format!("GET /v1/runs/{theirs}/events"), None).json();
    assert_eq!(events["rows"][0]["entry"]["started"]["for_client"], true, "{events}");

    let shown = crib.run(&["runs", "show", "last", "--json"]);
    assert!(shown.stdout.contains(&own), "{shown:?}");
    assert_eq!(crib.run(&["runs", "show", &theirs]).code, Some(0), "the owner knows all");
}
