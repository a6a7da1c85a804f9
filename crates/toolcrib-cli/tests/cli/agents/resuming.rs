//! Runs that another process continues: after a wait, after Ctrl-C, and by input.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::Reply;

use super::harness::served;
use crate::harness::crib::{Crib, Run};
use crate::harness::server::{Server, command};

/// The id that a run has printed.
pub(super) fn id(run: &Run) -> String {
    let (_, rest) = run.stderr.split_once("--resume ").expect("the command to go on");
    rest.chars().take_while(char::is_ascii_hexdigit).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_is_decided_elsewhere_and_the_run_goes_on() {
    for &wire in Wire::ALL {
        let replies = [Reply::call("note", json!({"text": "x"})), Reply::text("It is noted.")];
        let (server, crib) = served(wire, replies).await;
        let run = crib.run(&["run", "Note x."]);
        assert_eq!(run.code, Some(3), "{run:?}");
        let again = crib.run(&["run", "--resume"]);
        assert_eq!(again.code, Some(3), "nobody has decided: {again:?}");
        assert_eq!(id(&again), id(&run));

        let serving = Server::start(&crib, &["serve", "--listen", "127.0.0.1:0"]);
        let waiting = crate::harness::crib::until(&crib, &["approvals", "--json"], |run| {
            run.code == Some(0)
                && run.json()["approvals"].as_array().is_some_and(|all| all.len() == 1)
        });
        let call = waiting.json()["approvals"][0]["id"].as_str().expect("an id").to_owned();
        let approved = crib.run(&["approvals", "approve", &call]);
        assert_eq!(approved.code, Some(0), "{approved:?}");
        drop(serving);
        let whole = id(&run);
        let run = crib.run(&["run", "--resume", &whole[..8]]);
        let first = format!("run {whole}, agent default\n");
        assert!(run.stderr.starts_with(&first), "it says first which run goes on: {run:?}");
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "It is noted.\n"), "{run:?}");
        let noted = std::fs::read_to_string(crib.path().join("notes.txt"));
        assert_eq!(noted.expect("the note"), "x\n", "it ran once");
        assert_eq!(server.violations(), [""; 0], "{wire}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_can_be_said_to_a_run_and_it_is_listed_shown_and_exported() {
    let replies = [
        Reply::call("say", json!({"text": "a"})),
        Reply::text("The first answer."),
        Reply::text("The second answer."),
    ];
    let (server, crib) = served(Wire::Responses, replies).await;
    assert_eq!(crib.run(&["run", "What is first?"]).code, Some(0));
    let run = crib.run(&["run", "--resume", "last", "And then?"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "The second answer.\n"), "{run:?}");
    assert!(server.requests()[2].text.contains("The first answer."));

    let listed = crib.run(&["runs", "list"]);
    assert!(listed.stdout.contains("completed") && listed.stdout.contains("What is first?"));
    let shown = crib.run(&["runs", "show", "last"]);
    for said in ["What is first?", "And then?", "3 turns, 1 call"] {
        assert!(shown.stdout.contains(said), "{said}: {shown:?}");
    }
    let shown = crib.run(&["runs", "show", "last", "--md"]);
    for said in ["## User", "And then?", "## Call of `say`", "The second answer."] {
        assert!(shown.stdout.contains(said), "{said}: {shown:?}");
    }
    let exported = crib.run(&["runs", "export", "last"]);
    let rows = exported.stdout.lines().map(serde_json::from_str::<serde_json::Value>);
    assert!(rows.collect::<Result<Vec<_>, _>>().expect("JSON lines").len() > 10);
    let unknown = crib.run(&["runs", "show", "ffff"]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("no run `ffff`"), "{unknown:?}");
    let other = crib.run(&["--ctx", "user=eve", "runs", "list", "--json"]);
    assert_eq!(other.json()["runs"], json!([]), "others' runs do not exist");
    let other = crib.run(&["--ctx", "user=eve", "run", "--resume", "last"]);
    assert_eq!(other.code, Some(2), "{other:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_leaves_no_waiting_call() {
    let (_server, crib) = served(Wire::Chat, [Reply::call("note", json!({"text": "x"}))]).await;
    assert_eq!(crib.run(&["run", "Note x."]).code, Some(3));
    let cancelled = crib.run(&["runs", "cancel", "last"]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    let shown = crib.run(&["runs", "show", "last", "--json"]).json();
    assert_eq!((&shown["status"], &shown["waiting"]), (&json!("cancelled"), &json!([])));
    assert_eq!(crib.run(&["runs", "cancel", "last"]).code, Some(1), "it has ended");
    let resumed = crib.run(&["run", "--resume"]);
    assert_eq!(resumed.code, Some(1), "{resumed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_at_work_in_another_process_is_cancelled_by_the_command_line() {
    let (_server, crib) = served(Wire::Chat, [Reply::call("nap", json!({}))]).await;
    let child = at_work(&crib);
    let cancelled = crib.run(&["runs", "cancel", "last", "--reason", "no longer needed"]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    let output = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("the run was cancelled: no longer needed"), "{told}");
}

/// Starts `toolcrib run`; returns when its call has begun.
fn at_work(crib: &Crib) -> Child {
    let program = crib.command(&["run", "Sleep."]);
    let mut command = command(program.get_program());
    command.args(program.get_args()).current_dir(crib.path());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = started.spawn().expect("the binary runs");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !crib.path().join("began").exists() {
        assert!(Instant::now() < deadline, "the call has not begun");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

/// Starts `toolcrib run`, and sends it a signal when its call has begun. Returns its exit code and what it said.
fn interrupted(crib: &Crib, signal: &str) -> (Option<i32>, String) {
    let child = at_work(crib);
    let deadline = Instant::now() + Duration::from_secs(20);
    let id = child.id().to_string();
    assert_cmd::Command::new("kill").args(["-s", signal, &id]).assert().success();
    let output = child.wait_with_output().expect("it ends");
    assert!(Instant::now() < deadline, "it waited for the call");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_pauses_the_run_ends_its_calls_and_the_run_goes_on_later() {
    let replies = [Reply::call("nap", json!({})), Reply::text("I was woken up.")];
    let (server, crib) = served(Wire::Chat, replies).await;
    let (code, told) = interrupted(&crib, "INT");
    assert_eq!(code, Some(130), "{told}");
    assert!(told.contains("nap") && told.contains("cancelled"), "{told}");
    assert!(told.contains("paused; go on with: toolcrib run --resume "), "{told}");
    let run = crib.run(&["run", "--resume"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "I was woken up.\n"), "{run:?}");
    assert_eq!(server.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_goes_on_and_a_read_only_call_runs_again() {
    let replies = [Reply::call("nap", json!({})), Reply::text("Awake.")];
    let (server, crib) = served(Wire::Anthropic, replies).await;
    let (code, told) = interrupted(&crib, "KILL");
    assert_eq!(code, None, "{told}");
    // The second time it does not sleep.
    std::fs::write(crib.path().join("awake"), "").expect("a file");
    let run = crib.run(&["run", "--resume"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Awake.\n"), "{run:?}");
    assert_eq!(server.violations(), [""; 0]);
}
