//! Limits of output: the schema of data, and the length of text.

use serde_json::{Value, json};
use toolcrib_core::{ExecutorConfig, TurnOptions};
use toolcrib_tool::{Content, ErrorKind, ToolOutput, tool_fn};

use crate::harness::{call, configured, define, entry, says, turn};

#[tokio::test]
async fn data_is_held_against_the_output_schema() {
    let schema = json!({"type": "object", "properties": {"free": {"type": "integer"}}, "required": ["free"]});
    let with = |name: &str, output: ToolOutput| {
        entry(
            define(name).output_schema(schema.clone()),
            tool_fn(move |_: Value, _| std::future::ready(output.clone())),
        )
    };
    let turn = turn([
        with("right", json!({"free": 1}).into()),
        with("wrong", json!({"free": "much"}).into()),
        with("none", "text".into()),
    ]);
    assert!(call(&turn, "right", json!({})).await.is_success());
    let wrong = call(&turn, "wrong", json!({})).await;
    assert_eq!(wrong.error_kind(), Some(ErrorKind::InvalidOutput));
    assert!(wrong.text().contains("/free: expected an integer, got \"much\""), "{}", wrong.text());
    assert_eq!(call(&turn, "none", json!({})).await.error_kind(), Some(ErrorKind::InvalidOutput));
}

#[tokio::test]
async fn too_much_text_loses_its_middle_and_too_much_data_fails() {
    let mut config = ExecutorConfig::default();
    config.data_bytes = 100;
    let text = format!("{}{}{}", "a".repeat(20_000), "b".repeat(20_000), "c".repeat(20_000));
    let turn = configured(
        [
            says("long", text.clone()),
            says("huge", json!({"blob": "x".repeat(200)})),
            entry(
                define("picture"),
                tool_fn(|_: Value, _| async {
                    Content::Image { data: vec![0; 99], mime_type: "image/png".into() }
                }),
            ),
        ],
        config,
    )
    .turn(TurnOptions::default());
    let long = call(&turn, "long", json!({})).await;
    assert!(long.truncated());
    assert!(long.text().starts_with("aaaa") && long.text().ends_with("cccc"));
    assert!(long.text().contains("36000 of 60000 characters left out"), "states the sizes");
    assert_eq!(call(&turn, "huge", json!({})).await.error_kind(), Some(ErrorKind::InvalidOutput));
    assert!(call(&turn, "picture", json!({})).await.is_success());
}
