//! `toolcrib call`: successful and failed calls, and their exit codes.

use serde_json::json;

use crate::harness::crib::{Crib, run};

const ECHO: &str = r#"
toolcrib: 1
tools:
  - name: echo_words
    description: Print words, one a line. Read-only.
    annotations: {read_only: true, open_world: false}
    input:
      properties:
        words: {type: array, items: {type: string}, description: What to print.}
        mode: {enum: [plain, loud], default: plain}
        times: {type: integer, minimum: 1, maximum: 3}
      required: [words]
    run:
      argv: [printf, "--", "%s\\n", {each: words}, {if: times, then: ["${args.times}"]}, "${args.mode}"]
"#;

#[test]
fn a_call_prints_the_answer_and_succeeds() {
    let crib = Crib::new(&[]);
    let run = crib.run(&["call", "calculator", "expression=2 + 2"]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "4\n", ""));
}

#[test]
fn a_refused_call_names_every_problem_and_fails() {
    let crib = Crib::new(&[("echo.yaml", ECHO)]);
    let run = crib.run(&["call", "echo_words", "wrds=a", "mode=lod", "times=9"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.stdout, "");
    insta::assert_snapshot!(run.stderr, @r#"
    Error executing echo_words: the arguments do not fit the tool's schema in 4 places
    - /mode: expected one of "plain", "loud", got "lod"; did you mean `loud`?
    - /times: expected at most 3, got 9
    - /words: required and missing (expected an array)
    - /wrds: there is no such property, got "a"; did you mean `words`?
    Nothing was run. Correct the arguments and call again.
    "#);
}

#[test]
fn an_unknown_tool_is_answered_with_near_names_and_fails() {
    let crib = Crib::new(&[]);
    for arguments in [&["call", "calculater"][..], &["show", "calculater"][..]] {
        let run = crib.run(arguments);
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.stderr.contains("Did you mean `calculator`?"), "{run:?}");
    }
}

#[test]
fn arguments_come_as_pairs_from_a_file_and_from_standard_input() {
    let crib = Crib::new(&[("echo.yaml", ECHO)]);
    let expected = "a b\n$(id)\nplain\n";
    let pairs = crib.run(&["call", "echo_words", "words=a b", "words=$(id)"]);
    assert_eq!(pairs.stdout, expected, "{pairs:?}");

    let arguments = json!({"words": ["a b", "$(id)"]}).to_string();
    std::fs::write(crib.path().join("arguments.json"), &arguments).expect("writable");
    let file = crib.run(&["call", "echo_words", "--input", "arguments.json"]);
    assert_eq!((file.code, file.stdout.as_str()), (Some(0), expected), "{file:?}");

    let piped = crib.call("echo_words", arguments, &[]);
    assert_eq!(piped.json()["output"], expected);
    assert_eq!(piped.json()["success"], true);
}

#[test]
fn input_that_is_cut_off_is_refused_and_nothing_runs() {
    let crib = Crib::new(&[("echo.yaml", ECHO)]);
    std::fs::write(crib.path().join("cut.json"), r#"{"words": ["a", "b""#).expect("writable");
    for more in [&[][..], &["--dry-run"], &["--json"]] {
        let run = crib.run(&[&["call", "echo_words", "--input", "cut.json"], more].concat());
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains("the arguments from cut.json are not JSON"), "{run:?}");
    }
    for text in ["{'words': ['a']}", r#"{"words": ["a"],}"#, ""] {
        let run = crib.call("echo_words", text, &[]);
        assert_eq!(run.code, Some(2), "{text}: {run:?}");
        assert!(run.stderr.contains("standard input are not JSON"), "{text}: {run:?}");
    }
}

#[test]
fn json_chooses_the_output_only_and_arguments_behind_it_are_refused_with_a_hint() {
    let crib = Crib::new(&[]);
    for arguments in [
        &["--json", r#"{"expression": "1"}"#][..],
        &["--json", "-"],
        &[r#"--json={"expression": "1"}"#],
        &["--json=-"],
    ] {
        let run = crib.run(&[&["call", "calculator"][..], arguments].concat());
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains("--input FILE"), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains("--json` prints the result as JSON"), "{arguments:?}: {run:?}");
    }
}

#[test]
fn the_examples_that_show_prints_can_be_run() {
    let examples = r#"
toolcrib: 1
tools:
  - name: say
    description: Print a text. Read-only.
    annotations: {read_only: true}
    input: {properties: {text: {type: string}}, required: [text]}
    examples: [{text: "it's"}, {text: 'a\b'}]
    run: {argv: [printf, "%s", "${args.text}"]}
"#;
    let crib = Crib::new(&[("say.yaml", examples)]);
    let shown = crib.run(&["show", "say"]).stdout;
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains("| toolcrib call")).collect();
    assert_eq!(lines.len(), 2, "{shown}");
    for (line, expected) in lines.iter().zip(["it's", "a\\b"]) {
        let script = line.replace("toolcrib", env!("CARGO_BIN_EXE_toolcrib"));
        let ran = run(assert_cmd::Command::new("sh")
            .current_dir(crib.path())
            .args(["-c", &script])
            .env("XDG_STATE_HOME", crib.state_home()));
        assert_eq!(ran.stdout.trim_end(), expected, "{line}: {ran:?}");
    }
}

#[test]
fn a_failed_call_as_json_contains_the_error_kind() {
    let crib = Crib::new(&[]);
    let run = crib.run(&["call", "calculator", "expr=1", "--json"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.json()["error"]["kind"], "invalid_args");
}

#[test]
fn a_usage_error_is_not_a_failed_call() {
    let crib = Crib::new(&[]);
    for arguments in [
        &["call", "calculator", "expression"][..],
        &["call", "calculator", "--input", "absent.json"][..],
        &["call", "calculator", "--input", "-", "expression=1"][..],
        &["cal"][..],
        &["--config", "absent.yml", "list"][..],
    ] {
        let run = crib.run(arguments);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(!run.stderr.is_empty());
    }
}

#[test]
fn a_value_of_the_context_reaches_the_tool_and_an_argument_does_not_replace_it() {
    let crib = Crib::new(&[(
        "who.yaml",
        r#"
toolcrib: 1
tools:
  - name: who
    description: Print the user the host set.
    context:
      user: {from: ctx.user}
    run: {argv: [printf, "%s", "user=${ctx.user}"]}
"#,
    )]);
    let missing = crib.call("who", r#"{"user": "mallory"}"#, &[]);
    assert_eq!(missing.json()["error"]["kind"], "missing_context");
    let set = crib.call("who", r#"{"user": "mallory"}"#, &["--ctx", "user=ada"]);
    assert_eq!(set.json()["output"], "user=ada", "{set:?}");
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let crib = Crib::new(&[]);
    let script = format!("{} list --json | head -c 1", env!("CARGO_BIN_EXE_toolcrib"));
    let run = run(assert_cmd::Command::new("bash")
        .current_dir(crib.path())
        .args(["-o", "pipefail", "-c", &script])
        .env("XDG_STATE_HOME", crib.state_home()));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
}

#[test]
fn failures_of_programs_python_and_the_calculator_say_what_to_do_next() {
    let crib = Crib::new(&[(
        "fails.yaml",
        r#"toolcrib: 1
tools:
  - name: failing
    description: Fail with a code.
    annotations: {read_only: true}
    run: {argv: ["false"]}
  - name: killed
    description: Fail by a signal.
    annotations: {read_only: true}
    run: {argv: [sh, -c, "kill -9 $$"]}
  - name: unreadable
    description: Print something else than JSON.
    annotations: {read_only: true}
    run: {argv: [echo, "{"]}
    output: {format: json}
  - name: worker
    description: Answer with a failure.
    annotations: {read_only: true}
    run: {worker: [sh, -c, 'while read line; do echo "{\"id\":1,\"error\":{\"message\":\"no\"}}"; done']}
  - name: gone
    description: End without an answer.
    annotations: {read_only: true}
    run: {worker: [sh, -c, "read line; exit 1"]}
"#,
    )]);
    for call in [
        &["failing"][..],
        &["killed"],
        &["unreadable"],
        &["worker"],
        &["gone"],
        &["execute_python", "code=1/0"],
        &["calculator", "expression=1/0"],
    ] {
        let run = crib.run(&[&["call"], call, &["--json"]].concat());
        let error = &run.json()["error"];
        assert_eq!(error["kind"], "execution", "{call:?}: {run:?}");
        let hints = error["hints"].as_array().expect("a list");
        assert!(!hints.is_empty(), "{call:?}: {error}");
        let shown = crib.run(&[&["call"], call].concat());
        let hint = hints[0].as_str().expect("a text");
        assert!(shown.stderr.contains(hint), "{call:?}: {shown:?}");
    }
}

#[test]
fn a_tool_that_the_client_runs_is_refused_at_once_on_the_command_line() {
    let crib = Crib::new(&[]);
    crib.config("policy: {rules: [{tool: pick, action: ask}]}\nstate: {dir: state}\n");
    assert_eq!(crib.run(&["new", "pick", "--template", "client"]).code, Some(0));
    let run = crib.run(&["call", "pick"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(run.stderr, @"
    Error executing pick: it runs at the client of a server (`client: true`), and the command line has no client
    A program that is connected to the server, over MCP or the HTTP API, runs it. To check arguments, use `toolcrib call pick --dry-run`.
    ");
    let json = crib.run(&["call", "pick", "--json"]).json();
    assert_eq!(json["error"]["kind"], "unavailable");
    // This also applies if another tool makes the call; no call is left waiting for an answer that cannot come.
    crib.config("builtins: {meta: true}\nstate: {dir: state}\n");
    let nested = crib.call("tool_call", r#"{"name": "pick", "arguments": {}}"#, &[]);
    assert_eq!(nested.code, Some(1), "{nested:?}");
    assert!(!nested.stdout.contains("later"), "{nested:?}");
}

#[test]
fn a_failed_call_has_hints_for_the_person_at_the_terminal() {
    let crib = Crib::new(&[
        ("a.yaml", "toolcrib: 1\ntols: []\n"),
        ("b.yaml", "toolcrib: 1\ntools:\n  - name: broken_one\n    descripton: x\n"),
        (
            "who.yaml",
            "toolcrib: 1\ntools:\n  - name: who\n    description: Print the user the host set.\n    \
             context: {user: {from: ctx.user}}\n    run: {argv: [printf, \"%s\", \"${ctx.user}\"]}\n",
        ),
        (
            "gone.yaml",
            "toolcrib: 1\ntools:\n  - name: gone\n    description: Needs what is not there.\n    \
             run: {argv: [no-such-program-here]}\n",
        ),
    ]);
    let said = |name: &str| {
        let run = crib.run(&["call", name]);
        assert_eq!(run.code, Some(1), "{run:?}");
        let own = run.stderr.lines().filter(|line| !line.starts_with("left out"));
        own.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(said("broken_one"), @"
    Error executing broken_one: there is no tool of that name
    tools.d/b.yaml:3 names it, but that file cannot be used: see `toolcrib check`.
    `toolcrib list` shows the tools that can be called.
    ");
    insta::assert_snapshot!(said("calculatr"), @"
    Error executing calculatr: there is no tool of that name
    Did you mean `calculator`?
    `toolcrib list` shows the tools that can be called.
    ");
    insta::assert_snapshot!(said("who"), @"
    Error executing who: the host has not supplied `user`, which this tool takes from the context
    Give the value with `--ctx KEY=VALUE`, or under `context` in the config. No argument of the call can set it.
    ");
    insta::assert_snapshot!(said("gone"), @"
    Error executing gone: needs the program `no-such-program-here`, which is not on PATH
    `gone` is unavailable here: `toolcrib why gone` says more.
    ");
}
