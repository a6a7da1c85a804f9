//! Tests of the effect of settings on the parts that they configure.

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::policy::{OnAsk, Policy};
use toolcrib_manifest::decode;
use toolcrib_runners::ExposeSecret;
use toolcrib_tool::units::{ByteSize, HumanDuration};
use toolcrib_tool::{Layer, Source, ToolCall, ToolDefinition, ToolEntry, tool_fn};

use super::Config;
use crate::Toolcrib;

fn config(text: &str) -> Config {
    decode("config.yml", text).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn problems(text: &str) -> String {
    let problems = decode::<Config>("config.yml", text).expect_err("it is wrong");
    problems.iter().map(|problem| problem.render("config.yml", text, false)).collect()
}

fn entry(name: &str, category: &str, read_only: bool) -> ToolEntry {
    let definition = ToolDefinition::builder(name)
        .description("A tool for a test.")
        .category(category)
        .read_only(read_only)
        .build()
        .expect("valid");
    let body = tool_fn(|_: serde_json::Value, _| async { "done" });
    ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "test"))
}

#[test]
fn settings_of_calls_reach_the_executor() {
    let core = config("output: {batch_chars: 500}\napproval: {timeout: none}").executor_config();
    assert_eq!((core.batch_output_chars, core.approval_timeout), (Some(500), None));
}

/// The keys in which zero has a meaning, which `config.yml` explains.
const ZERO_MEANS_SOMETHING: [&str; 4] =
    ["executor.max_queue", "images.partial_images", "mcp.tasks.after", "mcp.tasks.max"];

#[test]
fn a_limit_of_zero_is_refused_where_it_is_read_whatever_its_key() {
    let defaults = serde_json::to_value(Config::default()).expect("the defaults are JSON");
    let mut keys = 0;
    let mut leaves = vec![(String::new(), defaults)];
    while let Some((path, value)) = leaves.pop() {
        let zero = match &value {
            serde_json::Value::Object(members) => {
                for (name, member) in members {
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    leaves.push((path, member.clone()));
                }
                continue;
            }
            // A file may be named 0.
            serde_json::Value::String(_) if path == "audit.file" => continue,
            serde_json::Value::Number(_) => "0",
            serde_json::Value::String(text) if text == "none" => "0",
            serde_json::Value::String(text) if text.parse::<HumanDuration>().is_ok() => "0s",
            serde_json::Value::String(text) if text.parse::<ByteSize>().is_ok() => "0B",
            _ => continue,
        };
        let indented = |(depth, name)| format!("{}{name}:\n", "  ".repeat(depth));
        let text: String = path.split('.').enumerate().map(indented).collect();
        let text = format!("{} {zero}\n", text.trim_end());
        if ZERO_MEANS_SOMETHING.contains(&path.as_str()) {
            config(&text);
            continue;
        }
        keys += 1;
        let said = problems(&text);
        let last = format!("config.yml:{}", path.split('.').count());
        assert!(said.contains(&last), "{path}: {said}");
        assert!(
            said.contains("zero") || said.contains("at least 1") || zero == "0",
            "{path}: {said}"
        );
    }
    assert!(keys >= 16, "{keys}");
    problems("audit: {max_bytes: 0B}");
    config("executor: {tool_timeout: none, max_timeout: none}");
}

#[test]
fn none_switches_a_limit_off_and_nothing_else_does() {
    let core = config("executor: {max_concurrency: none}\nbreaker: {consecutive_timeouts: none}");
    let core = core.executor_config();
    assert_eq!((core.max_concurrency, core.breaker_timeouts), (0, 0));
    let off = config("audit: {file: none, max_bytes: none}\noutput: {batch_chars: none}");
    assert!(off.audit.file.is_none() && off.audit.max_bytes.is_none());
    assert_eq!(off.output.batch_chars, None);
    for (text, said) in [
        ("executor: {max_concurrency: off}", "expected a whole number from 1, or none"),
        ("executor: {max_concurrency: null}", "expected a whole number from 1, or none"),
        ("output: {batch_chars: 0}", "expected a whole number from 1, or none"),
        ("audit: {max_bytes: 64}", "such as 64KiB, or none"),
        #[cfg(feature = "mcp")]
        ("mcp: {page_size: many}", "expected a whole number from 1, or none"),
    ] {
        let problems = problems(text);
        assert!(problems.contains(said), "{text}: {problems}");
    }
}

#[test]
fn a_key_that_has_another_name_now_is_refused_with_that_name() {
    for (text, now) in [
        ("policy: {mode: guarded}", "policy.on_ask"),
        #[cfg(feature = "builtins")]
        ("builtins: {bash: {read: [a]}}", "paths.bash_read"),
        #[cfg(feature = "http")]
        ("server: {read_seconds: 3}", "server.read_timeout"),
        #[cfg(feature = "http")]
        ("server: {stream_seconds: 3}", "server.stream_lifetime"),
        #[cfg(feature = "http")]
        ("server: {retry_seconds: 3}", "server.retry_after"),
        #[cfg(feature = "http")]
        ("server: {tokens: {a: {policy: {mode: guarded}}}}", "policy.on_ask"),
    ] {
        let said = problems(text);
        assert!(said.contains(now), "{text}: {said}");
    }
    let set = crate::settings::ConfigLayers::new().set("--set", "policy.mode", "yolo").load();
    let said = set.expect_err("the key is unknown").problems(false).concat();
    assert!(said.contains("policy.on_ask"), "{said}");
}

#[test]
fn a_limit_of_zero_and_a_pattern_without_its_kind_name_the_repair() {
    for text in ["approval: {timeout: 0}", "approval: {timeout: 0s}"] {
        let said = problems(text);
        assert!(said.contains("`none` for no limit") && said.contains("on_ask: deny"), "{said}");
    }
    for (text, repair) in [
        ("executor: {tool_timeout: 0}", "write `none` for no limit, or at least `1s`"),
        ("policy: {rules: [{action: ask, arguments: {sql: '^drop'}}]}", "`regex: '^a'`"),
    ] {
        let said = problems(text);
        assert!(said.contains(repair), "{said}");
    }
}

#[test]
fn a_rule_that_is_none_names_itself_and_an_unknown_key_its_place() {
    let text = "policy:\n  rules:\n    - {action: ask, arguments: {sql: {regex: '('}}}\n";
    let said = problems(text);
    assert!(
        said.contains("`policy.rules[0].arguments.sql.regex`: `(` is not a regular expression"),
        "{said}"
    );
    assert!(said.contains("config.yml:3:46"), "{said}");
    assert!(said.contains("help: close it with `)`"), "{said}");
    let said = problems("policy:\n  rules:\n    - {action: ask, tols: bash}\n");
    assert!(said.contains("config.yml:3:21"), "{said}");
    let said = problems("toolsets:\n  a:\n    include:\n      - name: [x]\n");
    assert!(said.contains("config.yml:4:9") && said.contains("did you mean `names`?"), "{said}");
    let said = problems("audit:\n  arguments: all\n");
    assert!(said.contains("config.yml:2:14"), "{said}");
    assert!(said.contains("expected one of hash, redacted, found the text `all`"), "{said}");
    let said = problems("policy: {on_ask: alow}\n");
    assert!(said.contains("did you mean `allow`?"), "{said}");
    let said = problems("executor: {timeout: 5s}\n");
    assert!(said.contains("`tool_timeout`") && said.contains("`max_timeout`"), "{said}");
    let said = problems("toolsets:\n  reader: [a, b]\n");
    assert!(said.contains("write `reader: {include: [{names: [a, b]}]}`"), "{said}");
}

#[test]
fn the_policy_is_the_one_that_is_written() {
    let policy: Policy = config("policy: {on_ask: allow, rules: [{tool: a, action: deny}]}").policy;
    assert_eq!(policy.on_ask(), OnAsk::Allow);
    assert!(policy.needs_look(&entry("a", "x", true).definition));
    assert!(!Config::default().policy.needs_look(&entry("a", "x", true).definition));
}

#[test]
fn a_toolset_takes_what_it_says_and_what_was_cut_stays_readable() {
    let config = config(
        "toolsets:
  reader:
    include: [{categories: [log], annotations: {read_only: true}}, {names: [extra]}]
    exclude: [{names: ['*_secret']}]
  others:
    exclude: [{sources: ['host:test'], categories: [log]}]
  all: {}
",
    );
    let entries = [
        entry("tail", "log", true),
        entry("tail_secret", "log", true),
        entry("rotate", "log", false),
        entry("extra", "x", false),
    ];
    let crib = Toolcrib::builder().settings(&config).entries(entries).build().expect("a crib");
    let names = |toolset: &str| -> Vec<String> {
        let turn = crib.turn_in(toolset).expect("it is declared");
        turn.definitions().iter().map(|definition| definition.name().to_owned()).collect()
    };
    assert_eq!(names("reader"), ["extra", "read_output", "tail"]);
    assert_eq!(names("others"), ["extra", "read_output"]);
    assert_eq!(names("all"), ["extra", "read_output", "rotate", "tail", "tail_secret"]);
}

#[tokio::test]
async fn secrets_are_read_masked_and_read_again() {
    let home = tempfile::tempdir().expect("there is room");
    let file = home.path().join("token");
    std::fs::write(&file, "hunter2-first\n").expect("ours");
    std::fs::create_dir(home.path().join("folder")).expect("ours");
    std::fs::write(home.path().join("folder/mounted"), "mounted-secret").expect("ours");
    let config = config(
        "secrets:
  token: {file: token}
  short: {command: [printf, abc]}
  printed: {command: [sh, -c, 'printf %s-secret \"${PWD##*/}\"']}
secret_folders: [folder]",
    )
    .relative_to(home.path());
    let secrets = config.read_secrets();
    let here = home.path().file_name().expect("a name").to_string_lossy().into_owned();
    let body = {
        let secrets = secrets.clone();
        tool_fn(move |_: serde_json::Value, _| {
            let values = secrets.values();
            let values: Vec<_> =
                values.iter().map(|(_, value)| value.expose_secret().to_owned()).collect();
            async move { values.join(" ") }
        })
    };
    let definition = ToolDefinition::builder("tell").description("Tell all.").build();
    let source = Source::new(Layer::Host, "test");
    let entry = ToolEntry::new(definition.expect("valid"), Arc::new(body), source);
    let builder = Toolcrib::builder().entry(entry).secrets(&secrets).expect("few");
    let crib = builder.build().expect("a crib");
    let told =
        || async { crib.turn().call(ToolCall::new("1", "tell", "{}")).await.text().into_owned() };
    // mounted, printed, short, token
    assert_eq!(told().await, "[masked] [masked] abc [masked]");
    assert_eq!(secrets.get("printed").expect("it is").expose_secret(), format!("{here}-secret"));

    std::fs::write(&file, "hunter2-second\n").expect("ours");
    crib.refresh_secrets().expect("few");
    assert_eq!(secrets.get("token").expect("it is").expose_secret(), "hunter2-second");
    assert_eq!(told().await, "[masked] [masked] abc [masked]");
}

#[test]
fn a_secret_has_one_source_and_mistakes_are_shown_at_their_place() {
    let said = problems("secrets:\n  a: {env: A, file: b}\n");
    assert!(said.contains("config.yml:2:6"), "{said}");
    assert!(
        said.contains("only one of the keys `env`, `file`, `command` is allowed here"),
        "{said}"
    );
    let said = problems("secrets:\n  a: {evn: A}\n");
    assert!(said.contains("did you mean `env`?"), "{said}");
    assert!(said.contains("one of the keys `env`, `file`, `command` is missing"), "{said}");
    let said = problems("secrets: [TOKEN]\n");
    assert!(said.contains("expected a mapping; the value is not shown"), "{said}");
    let said = problems("secrets: {a: TOKEN}\n");
    assert!(said.contains("expected a mapping") && !said.contains("TOKEN"), "{said}");
    let said = problems("secrets: {a: {command: []}}\n");
    assert!(said.contains("config.yml:1:24"), "{said}");
    let said = problems("secrets: {a: {env: A, pass_env: [B]}}\n");
    assert!(said.contains("`pass_env` of a secret is for those with a `command`"), "{said}");
}

#[test]
fn paths_are_relative_to_the_config_file() {
    let config = config("state: {dir: s}\naudit: {file: /var/log/a.jsonl}");
    let config = config.relative_to("etc".as_ref());
    assert_eq!(config.state.dir.as_deref(), Some("etc/s".as_ref()));
    assert_eq!(config.audit.file.as_deref(), Some("/var/log/a.jsonl".as_ref()));
}

#[cfg(unix)]
#[tokio::test]
async fn what_a_config_names_is_opened_and_written() {
    use toolcrib_tool::ContextValues;

    let home = tempfile::tempdir().expect("there is room");
    let config = config(
        "state: {dir: state}\naudit: {file: audit.jsonl, arguments: redacted}\noutput: {max_chars: 10}",
    )
    .relative_to(home.path());
    let build = || {
        let builder = Toolcrib::builder().settings(&config).resources(&config).expect("it is ours");
        let definition = ToolDefinition::builder("story")
            .description("Tell one.")
            .input_schema(json!({"properties": {"a": {"type": "integer"}}}))
            .build();
        let body = tool_fn(|_: serde_json::Value, _| async { "a story longer than ten" });
        let source = Source::new(Layer::Host, "test");
        let entry = ToolEntry::new(definition.expect("valid"), Arc::new(body), source);
        builder.entry(entry).context(ContextValues::new().with("user", "ada")).build()
    };
    let crib = build().expect("a crib");
    assert!(crib.runs().is_some() && crib.executor().suspensions().is_some());
    let cut = crib.turn().call(ToolCall::new("1", "story", r#"{"a": 1}"#)).await;
    let (_, handle) = cut
        .text()
        .split_once(r#""handle":""#)
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .expect("a handle");
    let handle = &handle[..32];
    crib.shutdown(std::time::Duration::ZERO).await;

    let lines = std::fs::read_to_string(home.path().join("audit.jsonl")).expect("it is written");
    let line: serde_json::Value = serde_json::from_str(lines.trim()).expect("one line of JSON");
    assert_eq!((&line["tool"], &line["arguments"]), (&json!("story"), &json!({"a": 1})));

    // After a restart the other stored data still exists.
    let read = ToolCall::new("2", "read_output", json!({"handle": handle}));
    let page = build().expect("a crib").turn().call(read).await;
    assert!(page.text().starts_with("a story"), "{}", page.text());
}

#[cfg(unix)]
#[test]
fn a_state_directory_that_others_may_look_into_is_refused_with_its_key() {
    use std::os::unix::fs::PermissionsExt;

    let home = tempfile::tempdir().expect("there is room");
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    let mut config = Config::default();
    config.state.dir = Some(home.path().to_owned());
    let error = Toolcrib::builder().resources(&config).expect_err("others may look into it");
    let said = error.to_string();
    assert!(said.starts_with("state.dir: the directory") && said.contains("mode 755"), "{said}");
}

#[cfg(feature = "builtins")]
#[tokio::test]
async fn what_a_config_keeps_to_itself_is_refused_to_file_tools() {
    use toolcrib_builtins as _;
    use toolcrib_tool::ErrorKind;

    let home = tempfile::tempdir().expect("there is room");
    for (path, text) in [
        ("config.yml", "policy: {on_ask: wait}"),
        ("token.txt", "hunter2"),
        ("private/notes.txt", "mine"),
        ("state/outputs", "theirs"),
        ("audit.jsonl", "{}"),
        ("more.d/own.yaml", "toolcrib: 1"),
        ("free.txt", "free"),
    ] {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(path, text).expect("ours");
    }
    let mut config = config(
        "secrets: {token: {file: token.txt}}
paths: {sensitive_extra: [private]}
state: {dir: state}
audit: {file: audit.jsonl}
manifests: {dirs: [more.d]}
workspace: {root: .}",
    )
    .relative_to(home.path());
    config.own_files.push(home.path().join("config.yml"));
    let crib = Toolcrib::builder().settings(&config).native_tools().build().expect("a crib");
    let call = async |tool: &str, arguments: serde_json::Value| {
        crib.turn().call(ToolCall::new("1", tool, arguments)).await.error_kind()
    };
    let hidden = [
        "config.yml",
        "config.toml",
        "token.txt",
        "private/notes.txt",
        "state/outputs",
        "audit.jsonl",
    ];
    for sensitive in hidden {
        let read = call("file_read", json!({"path": sensitive})).await;
        assert_eq!(read, Some(ErrorKind::Denied), "{sensitive}");
    }
    for own in ["config.yml", "more.d/own.yaml", "more.d/new.yaml", "toolcrib.lock"] {
        let write = call("file_write", json!({"path": own, "content": "x"})).await;
        assert_eq!(write, Some(ErrorKind::Denied), "{own}");
    }
    assert_eq!(call("file_write", json!({"path": "free.txt", "content": "x"})).await, None);
    let listed = crib.turn().call(ToolCall::new("1", "file_list", json!({"pattern": "**"}))).await;
    assert_eq!(listed.text(), "free.txt  1\nmore.d/\nmore.d/own.yaml  11\n[.: 3 entries]");
}

#[cfg(feature = "builtins")]
#[tokio::test]
async fn projects_and_names_of_file_tools_are_as_configured() {
    use toolcrib_builtins as _;
    use toolcrib_tool::{ContextValues, ErrorKind};

    let home = tempfile::tempdir().expect("there is room");
    std::fs::create_dir(home.path().join("docs")).expect("ours");
    std::fs::write(home.path().join("docs/a.txt"), "alpha").expect("ours");
    let config = config("projects: {docs: docs}\nbuiltins: {profile: harness}");
    let config = config.relative_to(home.path());
    let crib = |values: ContextValues| {
        let builder = Toolcrib::builder().settings(&config).context(values).native_tools();
        builder.build().expect("a crib")
    };
    let read = || ToolCall::new("1", "read_file", json!({"path": "a.txt"}));
    let docs = crib(ContextValues::new().with("project_id", "docs"));
    assert_eq!(docs.turn().call(read()).await.text(), "alpha");
    let nobody = crib(ContextValues::new()).turn().call(read()).await;
    assert_eq!(nobody.error_kind(), Some(ErrorKind::MissingContext));
    let other = docs.turn().call(ToolCall::new("1", "file_read", r#"{"path": "a.txt"}"#)).await;
    assert_eq!(other.error_kind(), Some(ErrorKind::NotFound));
}

#[cfg(feature = "builtins")]
#[test]
fn a_path_may_begin_in_the_home_folder() {
    let home = std::env::home_dir().expect("somebody runs this");
    let config = config("state: {dir: ~/state}\npaths: {sensitive_extra: ['~/.docker', ~x]}");
    let config = config.relative_to("etc".as_ref());
    assert_eq!(config.state.dir, Some(home.join("state")));
    assert_eq!(config.paths.sensitive_extra, [home.join(".docker"), "etc/~x".into()]);
}

#[tokio::test]
async fn a_toolset_has_values_for_the_context_of_its_calls() {
    use toolcrib_tool::{ContextValues, Layer, Source, ToolDefinition, ToolEntry, tool_fn};

    let definition =
        ToolDefinition::builder("where").description("Say it.").build().expect("valid");
    let body = tool_fn(|_: serde_json::Value, cx: toolcrib_tool::CallContext| async move {
        let value =
            |key| cx.value(key).and_then(serde_json::Value::as_str).unwrap_or("-").to_owned();
        format!("{} {} {}", value("cluster"), value("region"), value("user"))
    });
    let text =
        "context: {cluster: dev, region: eu}\ntoolsets: {s: {context: {cluster: stage, user: x}}}";
    let crib = crate::Toolcrib::builder()
        .settings(&config(text))
        .entry(ToolEntry::new(definition, std::sync::Arc::new(body), Source::new(Layer::Host, "t")))
        .build()
        .expect("a crib");
    let call = || toolcrib_tool::ToolCall::new("1", "where", "{}");
    assert_eq!(crib.turn().call(call()).await.text(), "dev eu -");
    assert_eq!(crib.turn_in("s").expect("it is declared").call(call()).await.text(), "stage eu x");
    // A toolset does not change a client's own settings.
    let toolset = crib.toolset("s").expect("it is declared");
    let own = ContextValues::new().with("user", "ada").with("cluster", "prod");
    let turn = crib.executor().turn(crib.turn_options().values(own).toolset(toolset));
    assert_eq!(turn.call(call()).await.text(), "prod eu ada");
}

#[test]
fn the_cap_of_data_is_a_setting() {
    let core = config("output: {max_data_bytes: 10KiB}").executor_config();
    assert_eq!(core.data_bytes, 10 * 1024);
}

#[test]
fn a_config_of_a_newer_format_is_refused() {
    let problems = problems("toolcrib: 2");
    for said in ["expected 1, the version of the config format", "needs a newer toolcrib"] {
        assert!(problems.contains(said), "{problems}");
    }
}

#[test]
fn a_refused_value_is_told_as_it_was_probably_meant() {
    for (text, help) in [
        #[cfg(feature = "http")]
        ("server: {listen: 7777}", "`127.0.0.1:7777`"),
        ("executor: {tool_timeout: 600}", "`600s`"),
        ("executor: {tool_timeout: 10min}", "`10m`"),
        ("executor: {tool_timeout: 1h30m}", "`90m`"),
        (
            "executor: {tool_timeout: null}",
            "write a value, `none` for no limit, or delete the line",
        ),
        ("executor: {timeout_seconds: 5}", "`tool_timeout`"),
        ("cache: {max_bytes: 64Mi}", "`64MiB`"),
        ("cache: {max_bytes: 16K}", "`16KiB`"),
        ("cache: {max_bytes: 1000000}", "`1000000B`"),
        ("cache: {max_bytes: null}", "write a value, or delete the line"),
        ("manifests: {dirs: tools.d}", "`[tools.d]`"),
        ("cache: {enabled: yes}", "`true`"),
        ("registry: {lock: true}", "`enforce`"),
        ("registry: {lock: strict}", "`enforce`"),
        ("policy: {rules: [{tool: a, action: block}]}", "`deny`"),
        ("policy: {on_ask: ask}", "`wait`"),
        ("policy: {rules: [{tool: *, action: deny}]}", "quote it: \"*\""),
        ("secrets: {}\n  token: {file: /run/token}", "delete the `{}` behind `secrets:`"),
        ("policy:\n  rules: []\n  - {tool: a, action: deny}", "delete the `[]` behind `rules:`"),
        ("toolsets: {}\n  reader:\n    include: []", "delete the `{}` behind `toolsets:`"),
    ] {
        let said = problems(text);
        assert!(said.contains(help), "{text}: {said}");
    }
}
