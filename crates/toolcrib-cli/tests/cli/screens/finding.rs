//! Searching tools, asking about names, exporting, and generated texts.

use serde_json::Value;

use crate::harness::crib::Crib;

const HELLO: &str = "toolcrib: 1
owner: greeters
tools:
  - name: say_hello
    description: Say hello to somebody. Politely.
    tags: [greeting]
    annotations: {read_only: true}
    input: {properties: {name: {type: string}}, required: [name]}
    run: {argv: [printf, '--', 'Hello, %s', '${args.name}']}
";

const OTHER: &str = "toolcrib: 1
tools:
  - name: say_hello
    description: Say hello differently.
    run: {argv: [printf, hi]}
  - name: gone
    description: Needs what is not there.
    run: {argv: [no-such-program-here]}
  - name: open
    description: Takes anything.
    input: {properties: {x: {}}, required: [x]}
    run: {argv: [printf, '--', '${args.x}']}
";

const BROKEN: &str = "toolcrib: 1
tools:
  - name: unborn
    descripton: It has a misspelt key.
    run: {argv: [printf]}
";

fn crib() -> Crib {
    let crib = Crib::new(&[("a.yaml", HELLO), ("b.yaml", OTHER), ("c.yaml", BROKEN)]);
    crib.config("toolsets:\n  polite: {include: [{tags: [greeting]}]}\n  rest: {exclude: [{tags: [greeting]}]}\n");
    crib
}

#[test]
fn why_shows_all_facts_about_a_name() {
    let crib = crib();
    let mut screens = String::new();
    for (name, code) in
        [("say_hello", 0), ("gone", 0), ("unborn", 1), ("say_helo", 1), ("calculator", 0)]
    {
        let run = crib.run(&["why", name]);
        assert_eq!(run.code, Some(code), "{run:?}");
        screens.push_str(&run.stdout.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    }
    // The line numbers of our own source change.
    let screens: Vec<_> = screens.lines().filter(|line| !line.contains(".rs:")).collect();
    screen!("why", screens.join("\n"));

    let json = crib.run(&["why", "say_hello", "--json"]).json();
    assert_eq!((&json["state"], &json["owner"]["team"]), (&"available".into(), &"greeters".into()));
    assert_eq!(json["waiting"][0]["file"], "tools.d/b.yaml");
    assert_eq!(json["toolsets"], serde_json::json!(["polite"]));
    let json = crib.run(&["why", "gone", "--json"]).json();
    assert_eq!(json["state"], "unavailable");
    assert!(json["reason"].as_str().is_some_and(|reason| reason.contains("no-such-program-here")));
}

#[test]
fn search_finds_by_what_tools_say_and_respects_the_toolset() {
    let crib = crib();
    let found = crib.run(&["search", "greeting", "somebody"]);
    assert_eq!(found.code, Some(0));
    screen!("search", found.stdout);
    let json = crib.run(&["search", "hello", "--json"]).json();
    assert_eq!((&json["found"], &json["tools"][0]["name"]), (&1.into(), &"say_hello".into()));
    assert_eq!(json["tools"][0]["matched"], serde_json::json!({"hello": "name"}));
    let none = crib.run(&["search", "hello", "--toolset", "rest"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(1), ""));
    assert!(none.stderr.contains("no tool matches \"hello\""), "{none:?}");
}

#[test]
fn an_export_reports_tools_that_the_format_cannot_express() {
    let crib = crib();
    let all = crib.run(&["export", "--format", "openai"]);
    assert_eq!(all.code, Some(0), "{all:?}");
    assert!(all.json().as_array().is_some_and(|tools| tools.len() > 3));

    let strict = crib.run(&["export", "--format", "openai-strict", "say_hello", "open", "gone"]);
    assert_eq!(strict.code, Some(1));
    let said: Vec<_> = strict.stderr.lines().filter(|line| !line.contains("c.yaml")).collect();
    screen!("export_refusals", said.join("\n"));
    let tools = strict.json();
    assert_eq!(tools[0]["function"]["name"], "say_hello");
    assert_eq!(tools.as_array().map(Vec::len), Some(1));

    for format in ["responses", "anthropic", "gemini", "mcp"] {
        let run = crib.run(&["export", "--format", format, "say_hello"]);
        assert_eq!((run.code, run.json()[0]["name"].as_str()), (Some(0), Some("say_hello")));
    }
    let prompt = crib.run(&["export", "--format", "prompt", "--toolset", "polite"]);
    assert!(prompt.stdout.starts_with("# Available Tools\n\nYou have access to the following 2"));
}

#[test]
fn schemas_are_printed_and_accept_what_is_shipped() {
    let crib = Crib::new(&[]);
    let manifest = crib.run(&["schema", "manifest"]).json();
    assert_eq!(manifest["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let config = crib.run(&["schema", "config"]).json();
    assert_eq!(config["$defs"]["Executor"]["properties"]["tool_timeout"]["default"], "1m");
    let text = config.to_string();
    assert!(!text.contains("```") && !text.contains("[`"), "documentation of code is in it");
    assert_eq!(config["additionalProperties"], Value::Bool(false));
    assert_eq!(crib.run(&["schema", "tools"]).code, Some(2));
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let crib = Crib::new(&[]);
    for shell in ["bash", "zsh", "fish"] {
        let script = crib.run(&["completions", shell]);
        assert_eq!(script.code, Some(0));
        assert!(["search", "export", "why"].iter().all(|name| script.stdout.contains(name)));
    }
    assert!(crib.run(&["man"]).stdout.contains("toolcrib\\-export(1)"));
    assert_eq!(crib.run(&["man", "."]).code, Some(0));
    let page = std::fs::read_to_string(crib.path().join("toolcrib-why.1")).expect("a page");
    assert!(page.contains("who owns a name"), "{page}");
    let nowhere = crib.run(&["man", "nowhere"]);
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.stderr.contains("nowhere"), "{nowhere:?}");
}
