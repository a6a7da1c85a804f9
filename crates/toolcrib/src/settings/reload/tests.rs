//! Tests of what a config reload changes, and what needs a restart.

use std::time::Duration;

use toolcrib_runners::{ExposeSecret as _, Secrets};

use super::*;

fn config(text: &str) -> Config {
    toolcrib_manifest::decode("config.yml", text).unwrap()
}

#[test]
fn what_changes_is_in_effect_and_what_needs_a_restart_is_named_until_then() {
    let crib = Toolcrib::builder().build().unwrap();
    let texts = Arc::new(Mutex::new(String::new()));
    let read = Arc::clone(&texts);
    crib.follow_config(&config(""), move || Ok(config(&read.lock().unwrap())));
    let reload = |text: &str| {
        text.clone_into(&mut texts.lock().unwrap());
        let report = crib.reload_config().unwrap().unwrap();
        (report.changed.join(" "), report.needs_restart.join(" "))
    };
    assert_eq!(reload(""), (String::new(), String::new()));
    let text = "toolsets: {reader: {include: [{names: [read_*]}]}}\nworkspace: {root: other}\n";
    assert_eq!(reload(text), ("toolsets.reader.include".to_owned(), "workspace.root".to_owned()));
    assert!(crib.turn_in("reader").is_ok());
    assert_eq!(reload(text), (String::new(), "workspace.root".to_owned()));
    let (changed, rest) = reload("policy: {on_ask: allow}\n");
    assert_eq!((changed.as_str(), rest.as_str()), ("policy.on_ask toolsets.reader.include", ""));
    assert!(crib.turn_in("reader").is_err());
}

#[cfg(feature = "agent")]
#[test]
fn agents_of_a_reloaded_config_apply_to_runs_that_begin_afterwards() {
    use crate::agents::AgentName;

    let agents = |model: &str| {
        format!(
            "providers: {{p: {{kind: chat, base_url: 'http://127.0.0.1:9/v1', models: {{a: {{}}}}}}}}\n\
             agents: {{one: {{model: {model}}}}}\n"
        )
    };
    let (crib, texts) = followed("", &Secrets::default());
    let one = AgentName::Entry("one".to_owned());
    assert!(crib.agent(&one, crib.turn_options()).is_err());
    agents("p/a").clone_into(&mut texts.lock().unwrap());
    let report = crib.reload_config().unwrap().unwrap();
    assert_eq!(report.needs_restart, [""; 0]);
    assert!(report.changed.contains(&"agents.one.model".to_owned()), "{report:?}");
    assert_eq!(crib.default_agent().unwrap(), one);
    assert!(crib.agent(&one, crib.turn_options()).is_ok());
    agents("p/b").clone_into(&mut texts.lock().unwrap());
    crib.reload_config().unwrap();
    let error = crib.agent(&one, crib.turn_options()).err().unwrap().to_string();
    assert!(error.contains("`p/b`") && error.contains("`a`"), "{error}");
}

/// A crib that follows a config, with a handle to replace the config.
fn followed(text: &str, secrets: &Secrets) -> (Toolcrib, Arc<Mutex<String>>) {
    let first = config(text);
    let builder = Toolcrib::builder().settings(&first).native_tools();
    let crib = builder.secrets(secrets).unwrap().build().unwrap();
    let texts = Arc::new(Mutex::new(String::new()));
    let read = Arc::clone(&texts);
    crib.follow_config(&first, move || Ok(config(&read.lock().unwrap())));
    (crib, texts)
}

#[test]
fn limits_and_output_are_in_effect_after_a_reload_and_queues_after_a_restart() {
    let (crib, texts) = followed("", &Secrets::default());
    "executor: {tool_timeout: 5s, max_queue: 7}\noutput: {max_chars: 900}\napproval: {timeout: 1m}\n"
        .clone_into(&mut texts.lock().unwrap());
    let report = crib.reload_config().unwrap().unwrap();
    let live = ["approval.timeout", "executor.tool_timeout", "output.max_chars"];
    assert_eq!(
        (&*report.changed, &*report.needs_restart),
        (&live.map(str::to_owned)[..], &["executor.max_queue".to_owned()][..])
    );
    let now = crib.executor().config();
    assert_eq!(now.tool_timeout, Some(Duration::from_secs(5)));
    assert_eq!((now.output_chars, now.max_queue), (900, 1000));
    assert_eq!(now.approval_timeout, Some(Duration::from_secs(60)));
}

#[cfg(feature = "builtins")]
#[test]
fn built_in_tools_come_and_go_with_a_reload_and_open_turns_keep_theirs() {
    let (crib, texts) = followed("builtins: {enabled: ['file_*']}\n", &Secrets::default());
    let has = |name: &str| crib.turn().describe(name).is_some();
    let listed = |name: &str| crib.executor().registry().snapshot().get(name).is_some();
    assert!(listed("file_read") && !listed("calculator") && has("read_output"));
    let open = crib.turn();
    for (text, calculator, files) in [
        ("builtins: {enabled: [calculator]}\n", true, false),
        ("builtins: {enabled: []}\n", false, false),
        ("", true, true),
    ] {
        text.clone_into(&mut texts.lock().unwrap());
        let report = crib.reload_config().unwrap().unwrap();
        assert_eq!(report.changed, ["builtins.enabled"], "{text}");
        assert_eq!((listed("calculator"), listed("file_read")), (calculator, files), "{text}");
    }
    assert!(open.describe("calculator").is_none(), "a turn keeps its list");
    "builtins: {enabled: [calculater]}\n".clone_into(&mut texts.lock().unwrap());
    crib.reload_config().unwrap();
    let named = crib.unmatched_names(&config("builtins: {enabled: [calculater]}\n"));
    assert!(
        named[0].message.contains("`calculater`, but there is no such built-in tool"),
        "{named:?}"
    );
}

#[test]
fn sources_of_secrets_follow_a_reload_but_for_variables() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, value: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, value).unwrap();
        path.display().to_string()
    };
    let (one, other) = (file("one", "first-secret"), file("other", "second-secret"));
    let text = format!("secrets: {{key: {{file: {one}}}, path: {{env: PATH}}}}\n");
    let secrets = Secrets::read(config(&text).secret_sources());
    let (crib, texts) = followed(&text, &secrets);
    let path = secrets.get("path").unwrap().expose_secret().to_owned();
    format!(
        "secrets: {{key: {{file: {other}}}, path: {{file: {one}}}, more: {{command: [printf, from-a-command]}}}}\n"
    )
    .clone_into(&mut texts.lock().unwrap());
    let report = crib.reload_config().unwrap().unwrap();
    assert_eq!(report.changed, ["secrets.key.file", "secrets.more.command"]);
    assert_eq!(report.needs_restart, ["secrets.path.env", "secrets.path.file"]);
    let value = |name: &str| secrets.get(name).unwrap().expose_secret().to_owned();
    assert_eq!((value("key"), value("more")), ("second-secret".into(), "from-a-command".into()));
    assert_eq!(value("path"), path, "a variable is read once");
    let shown = crib
        .executor()
        .masked(toolcrib_tool::Content::text("first-secret second-secret from-a-command"));
    assert_eq!(shown.as_text(), "[masked] [masked] [masked]", "old values stay masked");

    String::new().clone_into(&mut texts.lock().unwrap());
    crib.reload_config().unwrap();
    assert!(secrets.get("key").is_err() && secrets.get("path").is_ok());
}

#[test]
fn a_config_that_cannot_be_read_changes_nothing() {
    let crib = Toolcrib::builder().settings(&config("toolsets: {a: {}}\n")).build().unwrap();
    crib.follow_config(&config(""), || Err("line 3: no".to_owned()));
    assert_eq!(crib.reload_config().unwrap_err(), "line 3: no");
    assert!(crib.toolset("a").is_ok());
}

#[test]
fn every_live_key_is_a_key_of_the_config() {
    let schema = Config::json_schema().to_string();
    let is_here = |key: &&str| {
        (cfg!(feature = "http") || !key.starts_with("server."))
            && (cfg!(feature = "builtins") || !key.starts_with("builtins."))
            && (cfg!(feature = "crawler") || !matches!(*key, "images" | "web"))
            && (cfg!(feature = "agent")
                || !matches!(*key, "agent" | "agents" | "providers" | "sub_agent"))
    };
    for key in LIVE_KEYS.into_iter().filter(is_here) {
        let last = key.rsplit('.').next().unwrap();
        assert!(schema.contains(&format!("\"{last}\"")), "{key}");
    }
    assert!(is_live("server.tokens.ada.rights") && !is_live("server.tokens_extra"));
}
