//! Searching tools by words, and the tools that find, describe and call others.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::meta::{TOOL_CALL, TOOL_DESCRIBE, TOOL_SEARCH, meta_entries};
use toolcrib_core::policy::{OnAsk, Policy, PolicyRule};
use toolcrib_core::{Change, Executor, Field, SourceUnit, ToolFilter, Toolset, Turn, TurnOptions};
use toolcrib_tool::{
    CallContext, ErrorKind, Layer, Source, ToolCall, ToolDefinition, ToolEntry, tool_fn,
};

use crate::harness::{call, define, entry, executor, registry, turn};

fn says(name: &str, description: &str, text: &'static str) -> ToolEntry {
    let definition = define(name).description(description);
    entry(definition, tool_fn(move |_: Value, _| async move { text }))
}

fn disks() -> Vec<ToolEntry> {
    vec![
        says("disk_usage", "Show used space.", "full"),
        says("disk_wipe", "Erase all space of a disk.", "gone"),
        says("tail_log", "Show the end of a log.", "end"),
    ]
}

fn with_meta() -> Vec<ToolEntry> {
    disks().into_iter().chain(meta_entries()).collect()
}

fn without_wiping() -> Toolset {
    Toolset::new().exclude(ToolFilter::new().name("*_wipe"))
}

fn found(turn: &Turn, question: &str) -> Vec<String> {
    turn.search(question, 10).iter().map(|tool| tool.definition.name().to_owned()).collect()
}

#[test]
fn a_search_finds_what_can_be_called_and_says_why() {
    let mut entries = disks();
    entries.push(says("disk_repair", "Mend a disk.", "").unavailable("no disk"));
    let executor = executor(entries);
    let all = executor.turn(TurnOptions::default());
    assert_eq!(found(&all, "used disk space"), ["disk_usage", "disk_wipe"]);
    let why = all.matches("used disk space", "disk_usage");
    let why: Vec<_> = why.iter().map(|found| (found.word.as_str(), found.field)).collect();
    let expected =
        [("used", Field::Description), ("disk", Field::Name), ("space", Field::Description)];
    assert_eq!(why, expected);

    let some = executor.turn(TurnOptions::default().toolset(without_wiping()));
    assert_eq!(found(&some, "used disk space"), ["disk_usage"]);
    assert!(some.matches("disk", "disk_wipe").is_empty());
    assert!(all.search("disk", 1).len() == 1 && all.search("disk", 0).is_empty());
}

#[test]
fn a_tool_that_arrives_is_found_and_one_that_goes_is_not() {
    let executor = executor(disks());
    let registry = executor.registry();
    let unit = SourceUnit::new(Layer::Manifest, "tools.d/a.yaml");
    let before = executor.turn(TurnOptions::default());
    assert!(found(&before, "weather").is_empty());
    let definition = ToolDefinition::builder("forecast").description("Tomorrow's weather.");
    let entry = ToolEntry::new(
        definition.build().expect("valid"),
        Arc::new(tool_fn(|_: Value, _| async { "rain" })),
        Source::new(Layer::Manifest, "tools.d/a.yaml"),
    );
    let arrives = Change::Replace { unit: unit.clone(), entries: vec![entry] };
    registry.apply([arrives]).expect("applied");
    assert_eq!(found(&executor.turn(TurnOptions::default()), "weather"), ["forecast"]);
    assert!(found(&before, "weather").is_empty(), "a turn keeps its snapshot");
    registry.apply([Change::Remove { unit }]).expect("applied");
    assert!(found(&executor.turn(TurnOptions::default()), "weather").is_empty());
}

#[tokio::test]
async fn tools_are_found_described_and_called_by_tools() {
    let turn = turn(with_meta());
    let search =
        call(&turn, TOOL_SEARCH, json!({"query": "used space of disks", "limit": 1})).await;
    let expected = json!({"tools": [{"name": "disk_usage", "description": "Show used space."}]});
    assert_eq!(search.data(), Some(&expected), "{}", search.text());
    let none = call(&turn, TOOL_SEARCH, json!({"query": "weather"})).await;
    assert_eq!(none.data(), Some(&json!({"tools": []})));
    assert!(none.is_success() && none.text().contains("Try other words"));

    let described = call(&turn, TOOL_DESCRIBE, json!({"name": "disk_usage"})).await;
    let data = described.data().expect("data");
    assert_eq!(
        (&data["name"], &data["input_schema"]["type"]),
        (&"disk_usage".into(), &"object".into())
    );
    let called = call(&turn, TOOL_CALL, json!({"name": "disk_usage", "arguments": {}})).await;
    assert_eq!(called.text(), "full");
}

#[tokio::test]
async fn a_long_question_is_cut_and_not_refused() {
    let turn = turn(with_meta());
    let long = format!("used space of disks {}", "é, and so on, ".repeat(1_000));
    let search = call(&turn, TOOL_SEARCH, json!({"query": long, "limit": 1})).await;
    assert!(search.is_success(), "{}", search.text());
    assert!(search.text().starts_with("disk_usage: Show used space."), "{}", search.text());
    assert!(
        search.text().ends_with(
            "[Only the first 4096 bytes of the query were read. A few words are enough.]"
        )
    );
    let fits = call(&turn, TOOL_SEARCH, json!({"query": "disks ".repeat(600)})).await;
    assert!(fits.is_success() && !fits.text().contains("Only the first"), "{}", fits.text());
}

#[tokio::test]
async fn the_tools_that_find_others_do_not_find_themselves() {
    let turn = turn(with_meta());
    let query = json!({"query": "search, describe and call a tool by its name", "limit": 20});
    let search = call(&turn, TOOL_SEARCH, query).await;
    assert!(!search.text().contains("tool_"), "{}", search.text());
}

#[tokio::test]
async fn what_a_toolset_hides_is_hidden_from_them_too() {
    let turn = executor(with_meta()).turn(TurnOptions::default().toolset(without_wiping()));
    let search = call(&turn, TOOL_SEARCH, json!({"query": "disk", "limit": 20})).await;
    assert!(search.text().contains("disk_usage") && !search.text().contains("wipe"));
    for (tool, arguments) in
        [(TOOL_DESCRIBE, json!({"name": "disk_wipe"})), (TOOL_CALL, json!({"name": "disk_wipe"}))]
    {
        let result = call(&turn, tool, arguments).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::NotFound), "{tool}");
    }
}

#[tokio::test]
async fn a_call_by_name_is_refused_for_what_the_call_itself_is() {
    let strict = define("strict").input_schema(json!({
        "properties": {"lines": {"type": "integer"}},
        "required": ["lines"],
    }));
    let strict = entry(strict, tool_fn(|_: Value, _| async { "ran" }));
    let turn = turn(with_meta().into_iter().chain([strict]));
    let by_name = async |name: &str, arguments: Value| {
        call(&turn, TOOL_CALL, json!({"name": name, "arguments": arguments})).await
    };
    let wrong = by_name("strict", json!({"line": 3})).await;
    assert_eq!(wrong.error_kind(), Some(ErrorKind::InvalidArgs));
    assert!(wrong.text().contains("/lines: required and missing"), "{}", wrong.text());
    assert_eq!(by_name("strict", json!({"lines": 3})).await.text(), "ran");
    let unknown = by_name("disk_usge", json!({})).await;
    assert_eq!(unknown.error_kind(), Some(ErrorKind::NotFound));
    assert!(unknown.text().contains("Did you mean `disk_usage`?"), "{}", unknown.text());
}

#[tokio::test]
async fn policy_holds_for_the_tool_that_is_called_by_name() {
    let rule = PolicyRule::deny().tool("disk_wipe");
    let policy = Policy::new(OnAsk::Wait, [rule]).expect("a policy");
    let executor = Executor::builder(registry(with_meta())).policy(policy).build();
    let turn = executor.turn(TurnOptions::default());
    let denied = call(&turn, TOOL_CALL, json!({"name": "disk_wipe"})).await;
    assert_eq!(denied.error_kind(), Some(ErrorKind::Denied), "{}", denied.text());
    assert_eq!(call(&turn, TOOL_CALL, json!({"name": "disk_usage"})).await.text(), "full");
}

#[tokio::test]
async fn calls_by_name_do_not_lead_to_one_another_without_end() {
    // Calls itself through `tool_call`.
    let body = |_: Value, cx: CallContext| async move {
        let arguments = json!({"name": "again"});
        cx.call(ToolCall::new("inner", TOOL_CALL, arguments)).await.into_result()
    };
    let again = entry(define("again"), tool_fn(body));
    let turn = turn(meta_entries().into_iter().chain([again]));
    let endless = call(&turn, "again", json!({})).await;
    assert_eq!(endless.error_kind(), Some(ErrorKind::Denied), "{}", endless.text());
    let itself = json!({"name": TOOL_CALL, "arguments": {"name": TOOL_SEARCH}});
    let refused = call(&turn, TOOL_CALL, itself).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::InvalidArgs));
}
