//! Settings from all layers: which value applies, where it comes from, and how mistakes are
//! reported.

use crate::harness::crib::{Crib, run};

const CONFIG: &str = "executor: {max_timeout: 5m, max_queue: 7}
server: {token: 0123456789abcdef}
state: {dir: state}
toolsets:
  reader: {include: [{names: ['log_*'], annotations: {read_only: true}}]}
policy: {rules: [{tool: db_*, arguments: {sql: {regex: '(?i)drop'}}, action: deny}]}
secrets: {hidden: {env: HIDDEN}}
";

#[test]
fn settings_are_shown_with_their_origins() {
    let crib = Crib::new(&[]);
    std::fs::create_dir(crib.path().join("etc")).expect("a folder");
    std::fs::write(crib.path().join("etc/config.yml"), CONFIG).expect("a config");
    let mut command = crib.command(&[
        "--config",
        "etc/config.yml",
        "--set",
        "executor.max_queue=9",
        "--set",
        "context.key=hush-hush",
        "--ctx",
        "user=ada",
        "--tools-dir",
        "tools.d",
        "config",
        "show",
        "--origins",
    ]);
    command.env_remove("TOOLCRIB__WORKSPACE__ROOT");
    command.env("TOOLCRIB__EXECUTOR__MAX_QUEUE", "8").env("TOOLCRIB__AUDIT__FILE", "audit.jsonl");
    command.env("TOOLCRIB__EXECUTOR__TOOL_TIMEOUT", "none").env("HIDDEN", "hush-hush");
    let shown = run(&mut command);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{shown:?}");
    // config.yml shows the defaults.
    let (default, said): (Vec<_>, Vec<_>) = shown
        .stdout
        .lines()
        .filter(|line| line.contains('#') || line.contains("- "))
        .partition(|line| line.ends_with("# default"));
    assert!(default.contains(&"  max_entries: 10000                     # default"), "{default:?}");
    screen!("config_show", said.join("\n"));

    let json = run(command.arg("--json")).json();
    assert_eq!(json["config"]["executor"]["max_queue"], 9);
    assert_eq!(json["config"]["server"]["token"], "[hidden]");
    assert_eq!(json["origins"]["executor.max_queue"]["name"], "--set");
    assert_eq!(json["origins"]["executor.max_timeout"]["line"], 1);
    assert_eq!(json["origins"]["audit.file"]["name"], "TOOLCRIB__AUDIT__FILE");
}

#[test]
fn the_shown_config_is_equivalent() {
    let crib = Crib::new(&[]);
    crib.config(&CONFIG.replace("server: {token: 0123456789abcdef}\n", ""));
    let first = crib.run(&["config", "show"]).stdout;
    crib.config(&first);
    let again = crib.run(&["config", "show", "--json"]).json();
    let first = first.lines().filter_map(|line| line.split('#').next()).map(str::trim_end);
    let second = crib.run(&["config", "show"]).stdout;
    let second = second.lines().filter_map(|line| line.split('#').next()).map(str::trim_end);
    assert_eq!(first.collect::<Vec<_>>(), second.collect::<Vec<_>>());
    assert_eq!(again["config"]["policy"]["rules"][0]["arguments"]["sql"]["regex"], "(?i)drop");
}

#[test]
fn serve_flags_are_a_config_layer() {
    let crib = Crib::new(&[]);
    crib.config("server: {listen: 127.0.0.1:7000, allowed_hosts: [a.example], body_limit: 9B}\n");
    let mut command = crib.command(&[
        "--set",
        "server.listen=127.0.0.1:8000",
        "config",
        "show",
        "--json",
        "--listen",
        "127.0.0.1:9000",
        "--allow-host",
        "b.example",
    ]);
    let json = run(command.env("TOOLCRIB_TOKEN", "0123456789abcdef")).json();
    let (server, origins) = (&json["config"]["server"], &json["origins"]);
    assert_eq!(server["listen"], "127.0.0.1:9000");
    assert_eq!(server["allowed_hosts"], serde_json::json!(["b.example"]));
    assert_eq!((&server["token"], &server["body_limit"]), (&"[hidden]".into(), &"9B".into()));
    let from = |key: &str| origins[key]["name"].as_str();
    assert_eq!(from("server.listen"), Some("--listen"));
    assert_eq!(from("server.allowed_hosts"), Some("--allow-host"));
    assert_eq!(from("server.token"), Some("TOOLCRIB_TOKEN"));
    assert_eq!(origins["server.body_limit"]["from"], "file");

    for flag in ["--listen", "--token"] {
        let wrong = crib.run(&["serve", flag, "nonsense"]);
        assert_eq!(wrong.code, Some(2));
        assert!(wrong.stderr.contains(&format!("--> {flag}")), "{wrong:?}");
        assert!(flag != "--token" || !wrong.stderr.contains("nonsense"), "{wrong:?}");
    }
}

#[test]
fn errors_of_all_config_layers_are_shown_together() {
    let crib = Crib::new(&[]);
    crib.config("executor:\n  tool_timout: 5s\n");
    let mut command = crib.command(&["--set", "cache.enabled=yes", "list"]);
    command.env("TOOLCRIB__EXECUTOR__MAX_QUEUE", "many").env("TOOLCRIB__SERVER__TOKEN", "hunter2");
    let refused = run(&mut command);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
    assert!(!refused.stderr.contains("hunter2"), "{refused:?}");
    screen!("config_mistakes", refused.stderr);
}

#[test]
fn a_malformed_setting_is_a_usage_error() {
    let refused = Crib::new(&[]).run(&["--set", "executor", "list"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("such as executor.tool_timeout=5s"), "{refused:?}");
}

#[test]
fn paths_are_relative_to_where_they_are_set() {
    let crib = Crib::new(&[]);
    std::fs::create_dir(crib.path().join("etc")).expect("a folder");
    std::fs::write(crib.path().join("etc/c.yml"), "state: {dir: s}\n").expect("a config");
    let mut command = crib.command(&["--config", "etc/c.yml", "config", "show", "--json"]);
    let json = run(command.env("TOOLCRIB__AUDIT__FILE", "a.jsonl")).json();
    assert_eq!(json["config"]["state"]["dir"], "etc/s");
    assert_eq!(json["config"]["audit"]["file"], "a.jsonl");
}

#[test]
fn a_toml_config_is_found_without_a_yaml_config() {
    let crib = Crib::new(&[]);
    let text = "[executor]\nmax_queue = 3\n";
    std::fs::write(crib.path().join("config.toml"), text).expect("a config");
    let json = crib.run(&["config", "show", "--json"]).json();
    assert_eq!(json["config"]["executor"]["max_queue"], 3);
    assert_eq!(json["origins"]["executor.max_queue"]["line"], 2);
    crib.config("executor: {max_queue: 4}\n");
    let two = crib.run(&["config", "show", "--json"]);
    assert_eq!(two.code, Some(2), "neither may take the other's place: {two:?}");
    assert!(two.stderr.contains("two config files here, config.yml and config.toml"), "{two:?}");
    let named = crib.run(&["config", "show", "--json", "--config", "config.yml"]).json();
    assert_eq!(named["config"]["executor"]["max_queue"], 4);
}

#[test]
fn a_missing_config_is_reported_once() {
    let run = Crib::new(&[]).run(&["list", "--config", "missing.yml"]);
    assert_eq!(run.code, Some(2));
    assert_eq!(
        run.stderr,
        "error: the config file missing.yml cannot be read: No such file or directory (os error 2)\n"
    );
}

#[test]
fn settings_before_and_after_the_subcommand_are_combined() {
    let crib = Crib::new(&[]);
    let shown = crib.run(&[
        "--set=executor.max_queue=9",
        "--ctx",
        "user=ada",
        "config",
        "--set",
        "executor.max_concurrency=3",
        "show",
        "--set",
        "executor.max_timeout=5m",
        "--ctx=tenant=acme",
    ]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for setting in ["max_queue: 9", "max_concurrency: 3", "max_timeout: 5m", "ada", "acme"] {
        assert!(shown.stdout.contains(setting), "{setting}: {}", shown.stdout);
    }
}

#[test]
fn why_names_the_rule_that_denies_every_call() {
    let crib = Crib::new(&[]);
    crib.config(
        "policy: {rules: [{name: no shell, tool: bash, action: deny, message: Bash is off.}]}\n",
    );
    let why = crib.run(&["why", "bash"]);
    assert!(
        why.stdout.contains("policy.rules[0] (no shell) of the config: Bash is off."),
        "{why:?}"
    );
    assert!(!why.stdout.contains("it can be called"), "{why:?}");
    let record = crib.run(&["why", "bash", "--json"]);
    assert!(record.stdout.contains("\"state\": \"denied\""), "{record:?}");
}
