//! `bash`: how commands end, and what their results report.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::json;
use toolcrib_core::ExecutorConfig;
use toolcrib_tool::{Approval, ErrorKind, native_tools};

use crate::harness::{Crib, trial};

/// Enough time for a trivial command, even on a loaded machine.
const AMPLE: Duration = Duration::from_secs(20);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_command_runs_in_the_workspace", a_command_runs_in_the_workspace),
        trial("both_streams_are_one_in_order", both_streams_are_one_in_order),
        trial("a_command_that_exits_with_another_code_says_so", another_code_says_so),
        trial("an_operator_can_have_other_codes_fail", an_operator_can_have_other_codes_fail),
        trial("a_limit_ends_a_command_with_the_output_so_far", the_output_so_far),
        trial("whichever_limit_ends_a_command_it_is_no_failure", whichever_limit_ends_it),
        trial("a_call_can_shorten_its_limit_and_not_lengthen_it", shorten_not_lengthen),
        trial("what_a_command_leaves_running_ends_with_it", what_is_left_running_ends),
        trial("a_command_may_begin_with_a_dash_and_has_no_input", dash_and_no_input),
        trial("a_command_sees_nothing_of_the_server", nothing_of_the_server),
        trial("a_command_writes_in_its_workspace_and_nowhere_else", nowhere_else),
        trial(
            "what_an_operator_grants_can_be_read_and_run_and_not_written",
            what_an_operator_grants,
        ),
        trial("without_a_workspace_bash_is_unavailable", without_a_workspace),
        trial("bash_asks_before_it_runs", bash_asks_before_it_runs),
    ]
}

async fn a_command_runs_in_the_workspace() {
    let crib = Crib::new();
    let result = crib.call("bash", json!({"command": "echo here > file; pwd -P; ls"})).await;
    let root = crib.workspace().canonicalize().expect("the workspace is there");
    assert_eq!(result.text(), format!("{}\nfile\n", root.display()));
    assert_eq!(result.data(), Some(&json!({"exit_code": 0, "timed_out": false})));
    assert_eq!(std::fs::read_to_string(root.join("file")).ok().as_deref(), Some("here\n"));
    let silent = crib.call("bash", json!({"command": "true"})).await;
    assert_eq!(silent.text(), "[no output]");
    let sandbox = result.output().and_then(|output| output.meta().get("sandbox").cloned());
    assert!(sandbox.is_some_and(|said| said.to_string().starts_with("\"workspace")));
}

async fn both_streams_are_one_in_order() {
    let command = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    let result = Crib::new().call("bash", json!({"command": command})).await;
    assert_eq!(result.text(), "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
}

async fn another_code_says_so() {
    let crib = Crib::new();
    let command = "echo partly; echo because >&2; exit 3";
    let result = crib.call("bash", json!({"command": command})).await;
    assert!(result.is_success());
    assert_eq!(result.text(), "partly\nbecause\n[exit code 3]");
    assert_eq!(result.data().map(|data| &data["exit_code"]), Some(&json!(3)));
    let killed = crib.call("bash", json!({"command": "kill -9 $$"})).await;
    assert_eq!(killed.text(), "[ended by SIGKILL]");
    assert_eq!(killed.data().map(|data| &data["exit_code"]), Some(&json!(137)));
}

async fn an_operator_can_have_other_codes_fail() {
    let strict = |bash: toolcrib_builtins::shell::BashSettings| bash.with_nonzero_is_error(true);
    let crib = Crib::with(strict, |python| python, ExecutorConfig::default());
    let result = crib.call("bash", json!({"command": "echo partly; exit 3"})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Execution));
    assert!(result.text().contains("exit code 3") && result.text().contains("partly"));
    assert!(crib.call("bash", json!({"command": "true"})).await.is_success());
}

async fn the_output_so_far() {
    let crib = Crib::new();
    let command = "echo before; sleep 600; echo after";
    for _ in 0..4 {
        let result = crib.call("bash", json!({"command": command, "timeout": 1})).await;
        assert!(result.is_success(), "a timeout of bash neither fails nor pauses it: {result:?}");
        let text = result.text();
        assert!(text.starts_with("before\n[warning: ended after "), "{text}");
        assert!(!text.contains("after\n"), "{text}");
        assert_eq!(result.data(), Some(&json!({"timed_out": true})));
    }
    let counts = crib.executor.statistics().snapshot();
    let bash = counts.iter().find(|tool| tool.tool == "bash").expect("it was called");
    assert_eq!((bash.timeouts, bash.successes, bash.failures), (4, 4, 0));
}

async fn whichever_limit_ends_it() {
    let unless_said = toolcrib_builtins::shell::BashSettings::default().timeout;
    assert_eq!(unless_said, Duration::from_secs(30));
    let mut config = ExecutorConfig::default();
    config.max_timeout = Some(Duration::from_secs(1));
    let crib = Crib::with(|bash| bash, |python| python, config);
    let result = crib.call("bash", json!({"command": "echo before; sleep 600"})).await;
    assert!(result.is_success(), "{}", result.text());
    assert!(result.text().starts_with("before\n[warning: "), "{}", result.text());
}

async fn shorten_not_lengthen() {
    let short =
        |bash: toolcrib_builtins::shell::BashSettings| bash.with_timeout(Duration::from_secs(1));
    let crib = Crib::with(short, |python| python, ExecutorConfig::default());
    for timeout in [0.2, 500.0, 1e300] {
        let start = Instant::now();
        let result = crib.call("bash", json!({"command": "sleep 600", "timeout": timeout})).await;
        assert_eq!(result.data().map(|data| &data["timed_out"]), Some(&json!(true)));
        assert!(start.elapsed() < AMPLE, "{timeout}: {:?}", start.elapsed());
    }
    let none = crib.call("bash", json!({"command": "true", "timeout": 0})).await;
    assert_eq!(none.error_kind(), Some(ErrorKind::InvalidArgs));
}

async fn what_is_left_running_ends() {
    // Three grandchildren that write as long as they live: one in the background, one that has left the session, one
    // that has also closed its outputs.
    let crib = Crib::new();
    let beat = "while :; do date +%s%N > beat_$0; sleep 0.05; done";
    let command = format!(
        "sh -c '{beat}' a & setsid sh -c '{beat}' b & setsid sh -c '{beat}' c >/dev/null 2>&1 </dev/null &
         until [ -s beat_a ] && [ -s beat_b ] && [ -s beat_c ]; do sleep 0.02; done; {{}}"
    );
    for end in ["echo done", "sleep 600"] {
        let arguments = json!({"command": command.replace("{}", end), "timeout": 5});
        let result = crib.call("bash", arguments).await;
        assert!(result.is_success(), "{}", result.text());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let read = |name| std::fs::read(crib.workspace().join(name)).expect("it has beaten");
        let names = ["beat_a", "beat_b", "beat_c"];
        let before = names.map(read);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(before, names.map(read), "one of them lives: {end}");
        for name in names {
            std::fs::remove_file(crib.workspace().join(name)).expect("it is there");
        }
    }
}

async fn dash_and_no_input() {
    let crib = Crib::new();
    let result = crib.call("bash", json!({"command": "-n 2>/dev/null; cat; echo end"})).await;
    assert_eq!(result.text(), "end\n");
    let nul = crib.call("bash", json!({"command": "echo \u{0}"})).await;
    assert_eq!(nul.error_kind(), Some(ErrorKind::InvalidArgs), "{}", nul.text());
}

async fn nothing_of_the_server() {
    let result = Crib::new().call("bash", json!({"command": "env; ls /proc/self/fd"})).await;
    assert!(!result.text().contains("CARGO"), "{}", result.text());
    let server = std::process::id();
    let command = format!("cat /proc/{server}/environ | head -c 1 | wc -c");
    let result = Crib::new().call("bash", json!({"command": command})).await;
    assert!(result.text().trim_end().ends_with('0'), "{}", result.text());
}

async fn nowhere_else() {
    let crib = Crib::new();
    let elsewhere = tempfile::tempdir().expect("a directory that is not the workspace");
    let mark = elsewhere.path().join("mark");
    let command = format!("echo x > own; echo x > '{}'; ls", mark.display());
    let result = crib.call("bash", json!({"command": command})).await;
    assert!(result.text().ends_with("own\n"), "{}", result.text());
    assert!(!mark.exists(), "{}", result.text());
}

async fn without_a_workspace() {
    let tool = native_tools().into_iter().find(|tool| tool.name == "bash").expect("it is linked");
    let mut registry = toolcrib_core::RegistryBuilder::new();
    let _ = registry.register(tool.entry().expect("the definition is right"));
    let unasked = toolcrib_core::policy::Policy::new(toolcrib_core::policy::OnAsk::Allow, []);
    let executor = toolcrib_core::Executor::builder(toolcrib_core::Registry::new(registry.build()))
        .policy(unasked.expect("there are no rules"))
        .build();
    let turn = executor.turn(toolcrib_core::TurnOptions::default());
    let call = toolcrib_tool::ToolCall::new("1", "bash", r#"{"command": "true"}"#);
    assert_eq!(turn.call(call).await.error_kind(), Some(ErrorKind::Unavailable));
}

async fn bash_asks_before_it_runs() {
    let definition = |name| {
        let tool = native_tools().into_iter().find(|tool| tool.name == name);
        tool.and_then(|tool| (tool.definition)().ok()).expect("it is linked and right")
    };
    let bash = definition("bash");
    assert_eq!(bash.approval(), Approval::Always);
    for bash in [bash, definition("execute_python")] {
        let says = bash.annotations();
        assert!(says.destructive && says.open_world && !says.read_only && !says.idempotent);
        assert_eq!(bash.category(), "code");
    }
}

async fn what_an_operator_grants() {
    let elsewhere = tempfile::tempdir().expect("a directory that is not the workspace");
    let program = elsewhere.path().join("versions/1/bin/tool");
    std::fs::create_dir_all(program.parent().expect("it has one")).expect("a directory");
    std::fs::write(&program, "#!/bin/sh\necho \"ran $1\"\n").expect("a program");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("it is ours");
    let command = json!({"command": format!("'{0}' well; echo x > '{0}'", program.display())});
    let refused = Crib::new().call("bash", command.clone()).await;
    assert!(!refused.text().contains("ran well"), "{}", refused.text());

    let granted = |bash: toolcrib_builtins::shell::BashSettings| bash.with_read(elsewhere.path());
    let crib = Crib::with(granted, |python| python, ExecutorConfig::default());
    let result = crib.call("bash", command).await;
    assert!(result.text().starts_with("ran well\n"), "{}", result.text());
    let text = std::fs::read_to_string(&program).expect("it is there");
    assert!(text.starts_with("#!"), "it is for reading only: {text}");
}
