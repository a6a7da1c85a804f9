//! `toolcrib call --dry-run`: reports what a call would do, and does nothing.

use serde_json::json;

use crate::harness::crib::Crib;

const TOOLS: &str = r#"toolcrib: 1
tools:
  - name: login
    description: Log in to a host of the cluster.
    approval: always
    input:
      properties:
        user: {type: string}
        password: {type: string, writeOnly: true}
        port: {type: integer, default: 22}
      required: [user, password]
    context: {cluster: {from: ctx.cluster, enum: [dev, stage]}}
    run:
      argv: [sh, -c, 'touch ran', sh, "${args.user}@${ctx.cluster}:${args.port}", "pw=${args.password}"]
      stdin: "${args.password}"
      env: {LOGIN_TOKEN: "${secret.login}", MODE: batch}
      pass_env: [LANG]
  - name: days
    description: Show which day it is, now and then.
    annotations: {read_only: true, idempotent: true}
    run: {argv: [date, +%A]}
    cwd: /usr
    cache: {ttl: 5s}
    limits: {timeout: 5s, output: 1KiB}
  - name: pick
    description: Ask the user to pick a file.
    client: true
"#;

fn crib() -> Crib {
    let crib = Crib::new(&[("a.yaml", TOOLS)]);
    // A command that reads a secret would leave a trace too.
    crib.config(
        "secrets: {login: {command: [touch, asked]}}\n\
         policy: {rules: [{tool: pick, action: deny, message: Not today.}]}\n\
         state: {dir: state}\naudit: {file: audit.jsonl}\n",
    );
    crib
}

/// The output without the name of this run's folder.
fn placeless(crib: &Crib, text: &str) -> String {
    let here = crib.path().canonicalize().expect("a folder");
    text.replace(&*here.to_string_lossy(), "HERE").replace(&*crib.path().to_string_lossy(), "HERE")
}

#[test]
fn everything_is_shown_secrets_are_not_and_nothing_happens() {
    let crib = crib();
    let run = crib.run(&[
        "--ctx",
        "cluster=dev",
        "call",
        "login",
        "user=ada",
        "password=hunter22",
        "--dry-run",
    ]);
    assert_eq!(run.code, Some(0), "{run:?}");
    insta::assert_snapshot!(placeless(&crib, &run.stdout), @r#"
    login
      arguments  {"password":"[redacted]","port":22,"user":"ada"}
      runs       sh -c 'touch ran' sh ada@dev:22 'pw=[redacted]'
      in         HERE
      under      workspace
      sets       LOGIN_TOKEN, MODE
      passes on  LANG
      stdin      8 bytes
      within     2 GiB of memory, 1024 open files, 1024 processes
      keeps      65536 bytes of each output
      limits     30s; 24000 characters for the model
      answer     from a run: the tool keeps no answers
      decision   asks for approval: the tool asks for approval of every call (the tool's own `approval`)
    "#);
    let left: Vec<String> = std::fs::read_dir(crib.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| !["tools.d", "config.yml"].contains(&name.as_str()))
        .collect();
    assert_eq!(left, Vec::<String>::new(), "no program, no secret's command, no file of state");
    assert!(!format!("{run:?}").contains("hunter22"));
}

#[test]
fn a_dry_run_shows_the_cache_key() {
    let crib = crib();
    let key = |arguments: &[&str]| {
        let run = crib.run(&[&["call", "days", "--dry-run", "--json"], arguments].concat());
        run.json()["answer"].clone()
    };
    let first = key(&[]);
    assert_eq!(first["is_there"], false);
    assert_eq!(first["key"].as_str().map(str::len), Some(64));
    assert_eq!(first, key(&[]));
    assert_ne!(first, key(&["--ctx", "user=ada"]), "another identity has other answers");
}

#[test]
fn the_json_form_contains_the_same() {
    let crib = crib();
    let run = crib.run(&["call", "days", "--dry-run", "--json"]);
    let json = run.json();
    assert_eq!(
        json["plan"],
        json!({
            "kind": "command", "argv": ["date", "+%A"], "cwd": "/usr", "env": [], "pass_env": [],
            "stdin_bytes": 0, "stdin_arguments": false, "output_bytes": 1024, "sandbox": "workspace",
            "limits": {"memory_bytes": 2_147_483_648_u64, "open_files": 1024, "processes": 1024},
            "worker": false,
        })
    );
    assert_eq!(json["timeout_seconds"], 5.0);
    assert_eq!(json["decision"]["decision"], "allow");
}

#[test]
fn a_dry_run_refuses_what_a_call_would_refuse() {
    let crib = crib();
    let run = crib.run(&["call", "login", "user=ada", "pasword=x", "--dry-run"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(run.stderr, @r#"
    refused (invalid_args): the arguments do not fit the tool's schema in 2 places
    - /password: required and missing (expected a string)
    - /pasword: there is no such property, got "x"; did you mean `password`?
    Nothing was run. Correct the arguments and call again.
    "#);
    let json = crib.run(&["call", "login", "user=-x", "password=y", "--dry-run", "--json"]);
    assert_eq!(json.json()["error"]["kind"], "missing_context");
    let smuggled = [
        "--ctx",
        "cluster=dev",
        "call",
        "login",
        "user=-x",
        "password=yyyy",
        "--dry-run",
        "--json",
    ];
    assert_eq!(crib.run(&smuggled).json()["error"]["kind"], "invalid_args");
    assert_eq!(
        crib.run(&["call", "logn", "--dry-run", "--json"]).json()["error"]["kind"],
        "not_found"
    );
}

#[test]
fn a_dry_run_shows_denied_calls_and_client_tools() {
    let crib = crib();
    let run = crib.run(&["call", "pick", "--dry-run"]);
    assert_eq!(run.code, Some(1));
    insta::assert_snapshot!(run.stdout, @"
    pick
      arguments  {}
      runs       at the client, which receives the call
      limits     600s; 24000 characters for the model
      answer     from a run: the tool keeps no answers
      decision   denied: Not today. (policy.rules[0])
    ");
}

#[test]
fn a_dry_run_of_bash_shows_the_command_and_runs_none() {
    let crib = Crib::new(&[]);
    crib.config("builtins: {bash: {timeout: 20s}}\n");
    let command = "command=touch ran && echo \"$HOME\"";
    let run = crib.run(&["call", "bash", command, "timeout=5", "--dry-run"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    insta::assert_snapshot!(placeless(&crib, &run.stdout), @r#"
    bash
      arguments  {"command":"touch ran && echo \"$HOME\"","timeout":5}
      runs       bash -c -- 'touch ran && echo "$HOME"'
      in         HERE
      under      workspace
      stdin      empty
      within     5s, 2 GiB of memory, 1024 open files, 1024 processes
      keeps      1048576 bytes of each output
      limits     600s; 24000 characters for the model
      answer     from a run: the tool keeps no answers
      decision   asks for approval: the tool asks for approval of every call (the tool's own `approval`)
    "#);
    let json = crib.run(&["call", "bash", command, "--dry-run", "--json"]).json();
    assert_eq!(json["plan"]["argv"], json!(["bash", "-c", "--", &command[8..]]));
    let limits = json!({
        "time_seconds": 20.0, "memory_bytes": 2_147_483_648_u64, "open_files": 1024, "processes": 1024
    });
    assert_eq!(json["plan"]["limits"], limits);
    assert!(!crib.path().join("ran").exists());
}

#[test]
fn a_dry_run_of_python_shows_its_jail_and_starts_no_interpreter() {
    let crib = Crib::new(&[]);
    let code = "code=print(6 * 7)";
    // Not even an interpreter is looked for: a `python3` would leave a trace.
    let shim = crib.path().join("python3");
    let trace = crib.path().join("ran");
    std::fs::write(&shim, format!("#!/bin/sh\ntouch '{}'\n", trace.display())).expect("a shim");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&shim, mode).expect("it is ours");
    let path = format!("{}:{}", crib.path().display(), std::env::var("PATH").expect("it is set"));
    let run = |more: &[&str]| {
        let arguments = [&["call", "execute_python", code, "--dry-run"], more].concat();
        crate::harness::crib::run(crib.command(&arguments).env("PATH", &path))
    };
    let shown = run(&[]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let start = shown.stdout.split_once(" -c '").and_then(|(_, rest)| rest.split_once("'\n"));
    let (start, _) = start.expect("what the interpreter runs first");
    // It reads the guard, the level, a line of modules and the code, in this order.
    let guard = include_str!("../../../../toolcrib-builtins/src/code/guard.py").len();
    let screen = shown.stdout.replace(&format!("'{start}'"), "START");
    let screen = screen.replace(&format!("{} bytes", guard + 22), "GUARD and 22 bytes");
    insta::assert_snapshot!(screen, @r#"
    execute_python
      arguments  {"code":"print(6 * 7)"}
      runs       python3 -I -B -X utf8 -S -c START
      in         a temporary directory, which is removed afterwards
      under      pure
      sets       PATH, LANG, TZ
      stdin      GUARD and 22 bytes
      within     10s, 11s on a processor, 1 GiB of memory, files of 64 MiB, 64 open files, 64 processes
      keeps      1048576 bytes of each output
      limits     600s; 24000 characters for the model
      answer     from a run: the tool keeps no answers
      decision   allowed by the tool's own `approval`
    "#);
    let json = run(&["strictness=strict", "--json"]).json();
    assert_eq!(json["plan"]["sandbox"], "pure");
    assert_eq!(json["plan"]["env"], json!(["PATH", "LANG", "TZ"]));
    let limits = json!({"time_seconds": 5.0, "cpu_seconds": 6.0, "memory_bytes": 1 << 30,
        "file_bytes": 64 << 20, "open_files": 64, "processes": 64});
    assert_eq!(json["plan"]["limits"], limits);
    let refused = run(&["strictness=lenient"]);
    assert!(refused.stderr.contains("does not allow code to be `lenient`"), "{refused:?}");
    assert!(!trace.exists());
}

#[test]
fn a_dry_run_of_a_kept_worker_shows_the_worker_and_starts_none() {
    let crib = Crib::new(&[(
        "w.yaml",
        r#"toolcrib: 1
tools:
  - name: ask
    description: Ask the worker.
    input: {properties: {word: {type: string}}, required: [word]}
    run: {worker: [sh, -c, "touch started; cat"], env: {MODE: batch}}
"#,
    )]);
    let run = crib.run(&["call", "ask", "word=hello", "--dry-run"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    insta::assert_snapshot!(placeless(&crib, &run.stdout), @r#"
    ask
      arguments  {"word":"hello"}
      runs       sh -c 'touch started; cat'
      in         HERE/tools.d
      under      workspace
      sets       MODE
      as         a worker that keeps running; it is started unless it already runs
      is sent    the call, a line of 64 bytes
      within     2 GiB of memory, 1024 open files, 1024 processes
      keeps      answers of up to 65536 bytes
      limits     30s; 24000 characters for the model
      answer     from a run: the tool keeps no answers
      decision   allowed by the tool's own `approval`
    "#);
    let json = crib.run(&["call", "ask", "word=hello", "--dry-run", "--json"]).json();
    assert_eq!((&json["plan"]["kind"], &json["plan"]["worker"]), (&json!("command"), &json!(true)));
    assert!(!crib.path().join("tools.d/started").exists());
}
