//! Connections: servers that are slow, silent or absent; changes of the declared servers; shutdown.

use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_core::TurnOptions;
use toolcrib_mcp::upstream::{StdioServer, Upstream, UpstreamState};
use toolcrib_tool::{Approval, ErrorKind, Origin};

use super::{PATIENCE, Room, Scripted, tool, until};

fn down(state: &UpstreamState) -> (String, Option<String>) {
    match state {
        UpstreamState::Down { reason, detail, .. } => (reason.clone(), detail.clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_slow_or_silent_server_delays_nobody() {
    let (quick, slow, silent) = (Scripted::new(&["a"]), Scripted::new(&["b"]), Scripted::new(&[]));
    slow.says(&json!({"tools": [tool("b")], "waits": true}));
    silent.says(&json!({"tools": [], "silent": true}));
    let pins = std::sync::Arc::new(super::MemoryPins::default());
    let upstreams = [
        quick.upstream("quick"),
        slow.upstream("slow"),
        silent.upstream("silent").connect_timeout(Duration::from_secs(1)),
    ];
    let room = Room::pinned(upstreams, pins).await;
    assert!(room.upstreams.settled_for("quick_a", PATIENCE).await);
    assert!(room.call("quick_a").await.is_success());
    assert_eq!(room.state("slow"), UpstreamState::Connecting);
    assert!(!room.upstreams.settled(Duration::from_millis(10)).await);

    slow.says(&json!({"tools": [tool("b")]}));
    until("the slow one is there", || room.listed() == ["quick_a", "slow_b"]).await;
    until("the silent one was given up", || room.state("silent") != UpstreamState::Connecting)
        .await;
    let (reason, _) = down(&room.state("silent"));
    assert_eq!(reason, "it was not ready within 1s");
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn the_reason_for_a_failed_server_is_shown_to_people_but_not_to_models() {
    let broken = Scripted::new(&[]);
    broken.says(&json!({"exit_at_start": "token hunter22 is wrong"}));
    let stdio = broken.server().env("TOKEN", "hunter22");
    let room = Room::with([
        Upstream::stdio("absent", StdioServer::new("no-such-program-here")),
        Upstream::stdio("broken", stdio),
        broken.upstream("poor").missing("it needs the secret `token`, which is not configured"),
    ])
    .await;
    let (reason, detail) = down(&room.state("absent"));
    assert_eq!(reason, "it cannot be started");
    assert!(detail.unwrap().starts_with("the program `no-such-program-here` was not found"));
    let (reason, detail) = down(&room.state("broken"));
    assert_eq!(reason, "it ended with exit code 7");
    assert_eq!(detail.unwrap(), "cannot start: token [masked] is wrong");
    let (reason, _) = down(&room.state("poor"));
    assert_eq!(reason, "it needs the secret `token`, which is not configured");
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn the_output_of_a_crashed_server_is_not_shown_to_models() {
    let server = Scripted::new(&["crash"]);
    let stdio = server.server().env("TOKEN", "hunter22");
    let slow = Duration::from_secs(20);
    let room = Room::with([Upstream::stdio("my", stdio).reconnect(slow, slow)]).await;
    room.call("my_crash").await;
    until("it is down", || room.state("my") != UpstreamState::Connected).await;
    let (_, detail) = down(&room.state("my"));
    assert_eq!(detail.as_deref(), Some("fatal: token [masked] was refused"));
    let refused = room.call("my_crash").await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::Unavailable));
    assert!(!refused.text().contains("fatal"), "{}", refused.text());
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn only_changed_upstreams_reconnect() {
    let (one, two, three) = (Scripted::new(&["a"]), Scripted::new(&["b"]), Scripted::new(&["c"]));
    let room = Room::with([one.upstream("one"), two.upstream("two")]).await;
    assert_eq!(room.listed(), ["one_a", "two_b"]);
    let changed = Upstream::stdio("two", two.server().env("MODE", "other"));
    room.upstreams.set([one.upstream("one"), changed, three.upstream("three")]).await;
    assert!(room.upstreams.settled(PATIENCE).await);
    assert_eq!(room.listed(), ["one_a", "three_c", "two_b"]);
    assert_eq!(one.heard("initialize").len(), 1);
    assert_eq!(two.heard("initialize").len(), 2);

    room.upstreams.set([one.upstream("one")]).await;
    assert_eq!(room.listed(), ["one_a"]);
    assert_eq!(room.upstreams.status().len(), 1);
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn another_order_or_origin_causes_no_reconnect() {
    let (one, two) = (Scripted::new(&["a", "slow"]), Scripted::new(&["b"]));
    let at = |line| Origin { file: "servers.yaml".to_owned(), line, column: 5 };
    let place = |room: &Room| {
        let snapshot = room.executor.registry().snapshot();
        snapshot.get("one_a").unwrap().source.origin.clone()
    };
    let room = Room::with([one.upstream("one").origin(at(3)), two.upstream("two")]).await;
    assert_eq!(place(&room), Some(at(3)));
    let running = room.call("one_slow");
    let moving = async {
        until("the call is there", || !one.heard("tools/call").is_empty()).await;
        room.upstreams.set([two.upstream("two"), one.upstream("one").origin(at(7))]).await;
        until("its place is known", || place(&room) == Some(at(7))).await;
    };
    let (result, ()) = tokio::join!(running, moving);
    assert!(result.is_success(), "{}", result.text());
    assert_eq!((one.heard("initialize").len(), two.heard("initialize").len()), (1, 1));
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn changed_limits_labels_and_filters_apply_without_a_reconnect() {
    let server = Scripted::new(&["a", "b", "slow"]);
    let room = Room::with([server.upstream("my").exclude(["b"])]).await;
    assert_eq!(room.listed(), ["my_a", "my_slow"]);
    let running = room.call("my_slow");
    let changing = async {
        until("the call is there", || !server.heard("tools/call").is_empty()).await;
        let other = server.upstream("my").exclude(["slow"]).approval(Approval::Always);
        room.upstreams.set([other.tags(vec!["new".to_owned()])]).await;
        until("it is published", || room.listed() == ["my_a", "my_b"]).await;
    };
    let (result, ()) = tokio::join!(running, changing);
    assert!(result.is_success(), "{}", result.text());
    let turn = room.executor.turn(TurnOptions::default());
    let tool = turn.describe("my_b").unwrap();
    assert_eq!((tool.tags(), tool.approval()), (["new".to_owned()].as_slice(), Approval::Always));
    assert_eq!(room.call("my_a").await.error_kind(), Some(ErrorKind::Denied));
    assert_eq!((server.heard("initialize").len(), server.heard("tools/list").len()), (1, 1));
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn an_upstream_that_is_down_connects_at_its_new_address() {
    let server = Scripted::new(&["a", "crash"]);
    let at = |line| Origin { file: "servers.yaml".to_owned(), line, column: 5 };
    let slow = Duration::from_secs(20);
    let upstream = |line| server.upstream("my").reconnect(slow, slow).origin(at(line));
    let room = Room::with([upstream(3)]).await;
    room.call("my_crash").await;
    until("it is down", || room.unavailable("my_a").is_some()).await;
    room.upstreams.set([upstream(7)]).await;
    until("its place is known", || {
        let snapshot = room.executor.registry().snapshot();
        snapshot.get("my_a").unwrap().source.origin == Some(at(7))
    })
    .await;
    assert_eq!(
        room.unavailable("my_a").as_deref(),
        Some("the MCP server `my` is not connected: it ended with exit code 3")
    );
    assert_eq!(server.heard("initialize").len(), 1);
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn tools_of_a_changed_upstream_are_unavailable_until_it_is_connected() {
    let server = Scripted::new(&["a", "b"]);
    let room = Room::with([server.upstream("my")]).await;
    server.says(&json!({"tools": [tool("a"), tool("c")], "waits": true}));
    let other = Upstream::stdio("my", server.server().env("MODE", "other"));
    room.upstreams.set([other.exclude(["b"])]).await;
    until("it is said why", || room.unavailable("my_a").is_some()).await;
    assert_eq!(
        room.unavailable("my_a").as_deref(),
        Some("the MCP server `my` is not connected: it has not been connected to yet")
    );
    assert!(room.executor.registry().snapshot().get("my_b").is_none());
    server.says(&json!({"tools": [tool("a"), tool("c")]}));
    until("it is connected", || room.listed() == ["my_a", "my_c"]).await;
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn after_a_shutdown_nothing_is_started() {
    let server = Scripted::new(&["a"]);
    let room = Room::with([]).await;
    room.upstreams.shutdown().await;
    room.upstreams.set([server.upstream("my")]).await;
    assert!(room.upstreams.status().is_empty());
    assert!(!runs(&server));
}

#[tokio::test]
async fn the_first_of_two_upstreams_with_the_same_name_is_used() {
    let (one, two) = (Scripted::new(&["a"]), Scripted::new(&["b"]));
    let room = Room::with([one.upstream("my"), two.upstream("my")]).await;
    assert_eq!(room.listed(), ["my_a"]);
    assert!(two.heard("initialize").is_empty());
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_ends_every_server_within_a_second() {
    // One answers, one has a call that does not end, one has not sent anything.
    let (calm, busy, silent) =
        (Scripted::new(&["a"]), Scripted::new(&["stuck"]), Scripted::new(&[]));
    silent.says(&json!({"tools": [], "silent": true}));
    let pins = std::sync::Arc::new(super::MemoryPins::default());
    let upstreams = [calm.upstream("calm"), busy.upstream("busy"), silent.upstream("silent")];
    let room = Room::pinned(upstreams, pins).await;
    until("two are connected", || room.listed().len() == 2).await;
    until("the third is running", || !silent.heard("initialize").is_empty()).await;
    let endless = room.call("busy_stuck");
    let ending = async {
        until("the call is there", || !busy.heard("tools/call").is_empty()).await;
        let started = Instant::now();
        room.upstreams.shutdown().await;
        started.elapsed()
    };
    let (cut, took) = tokio::join!(endless, ending);
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(cut.error_kind(), Some(ErrorKind::OutcomeUnknown));
    for scripted in [&calm, &busy, &silent] {
        assert!(!runs(scripted), "one is still running");
    }
    assert_eq!(room.call("calm_a").await.error_kind(), Some(ErrorKind::Unavailable));
}

#[tokio::test]
async fn dropping_the_last_handle_ends_the_servers() {
    let server = Scripted::new(&["a"]);
    let room = Room::with([server.upstream("my")]).await;
    assert!(runs(&server));
    drop(room);
    until("it is gone", || !runs(&server)).await;
}

#[tokio::test]
async fn a_restart_ends_running_calls_and_checks_definitions_again_before_tools_can_be_called() {
    let (one, two) = (Scripted::new(&["a", "stuck"]), Scripted::new(&["a"]));
    let slow = Duration::from_secs(60);
    let first = one.upstream("one").prefix("").reconnect(slow, slow);
    let room = Room::with([first, two.upstream("two").prefix("")]).await;
    let stuck = room.call("stuck");
    let restarting = async {
        until("the call is there", || !one.heard("tools/call").is_empty()).await;
        let mut other = tool("a");
        other["description"] = json!("Something else.");
        one.says(&json!({"tools": [other, tool("stuck")]}));
        assert!(room.upstreams.restart("one"));
        let refused = room.call("a").await;
        assert_eq!(refused.error_kind(), Some(ErrorKind::Unavailable));
        assert!(refused.text().contains("is being restarted"), "{}", refused.text());
    };
    let (cut, ()) = tokio::join!(stuck, restarting);
    assert_eq!(cut.error_kind(), Some(ErrorKind::OutcomeUnknown));
    until("it was started again", || one.heard("initialize").len() == 2).await;
    until("it is connected", || room.listed() == ["stuck"]).await;
    // The name stays its own, and is disabled: the definition is not the pinned one.
    assert_eq!(room.call("a").await.error_kind(), Some(ErrorKind::Unavailable));
    assert!(two.heard("tools/call").is_empty());
    assert!(!room.upstreams.restart("three"));
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn only_servers_whose_program_was_changed_are_restarted() {
    let (one, two) = (Scripted::new(&["a"]), Scripted::new(&["b"]));
    let program = |scripted: &Scripted| {
        let script = scripted.path().with_file_name("program.py");
        std::fs::write(&script, "1").unwrap();
        let plane = toolcrib_sandbox::ControlPlane::default();
        scripted.server().control_plane(&plane, vec![script])
    };
    let all = [Upstream::stdio("one", program(&one)), Upstream::stdio("two", program(&two))];
    let room = Room::with(all).await;
    assert!(room.upstreams.restart_changed().is_empty());
    std::fs::write(one.path().with_file_name("program.py"), "print(2)").unwrap();
    assert_eq!(room.upstreams.restart_changed(), ["one"]);
    until("it was started again", || one.heard("initialize").len() == 2).await;
    until("it is connected", || room.listed() == ["one_a", "two_b"]).await;
    assert_eq!(two.heard("initialize").len(), 1);
    assert!(room.upstreams.restart_changed().is_empty());
    room.upstreams.shutdown().await;
}

/// Whether a process has the server's script in its arguments.
fn runs(scripted: &Scripted) -> bool {
    let script = scripted.path();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok()).any(|line| {
        line.split(|byte| *byte == 0).any(|arg| arg == script.as_os_str().as_encoded_bytes())
    })
}
