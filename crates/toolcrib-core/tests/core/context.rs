//! What a call can see of its host.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::TurnOptions;
use toolcrib_tool::{CallContext, ErrorKind, Services, ToolError, ToolOutput, tool_fn};

use crate::harness::{call, define, entry, executor, turn};

struct Database(&'static str);

#[tokio::test]
async fn services_are_found_by_type_and_by_name_and_their_absence_is_no_panic() {
    let tool = tool_fn(|_: Value, cx: CallContext| async move {
        let by_type = cx.service::<Database>().map(|database| database.0);
        let by_name = cx.named_service::<Database>("archive").map(|database| database.0);
        json!([by_type, by_name, cx.service::<String>().is_some(), cx.session()])
    });
    let executor = executor([entry(define("look"), tool)]);
    let services = Services::new()
        .with(Arc::new(Database("orders")))
        .with_named("archive", Arc::new(Database("old")));
    let turn = executor.turn(TurnOptions::default().services(services).session("s1"));
    let result = call(&turn, "look", json!({})).await;
    assert_eq!(result.data(), Some(&json!(["orders", "old", false, "s1"])));

    let bare = executor.turn(TurnOptions::default());
    let result = call(&bare, "look", json!({})).await;
    assert_eq!(result.data(), Some(&json!([null, null, false, null])));
}

#[tokio::test]
async fn a_result_can_be_set_before_the_tool_returns_and_what_it_returns_counts_more() {
    let set = |returned: ToolOutput| {
        tool_fn(move |_: Value, cx: CallContext| {
            cx.set_result("first");
            cx.set_result("second");
            std::future::ready(returned.clone())
        })
    };
    let failing = tool_fn(|_: Value, cx: CallContext| async move {
        cx.set_result("set");
        Err::<String, _>(ToolError::execution("broken"))
    });
    let turn = turn([
        entry(define("silent"), set(ToolOutput::new())),
        entry(define("speaking"), set(ToolOutput::from("returned"))),
        entry(define("failing"), failing),
    ]);
    assert_eq!(call(&turn, "silent", json!({})).await.text(), "second");
    assert_eq!(call(&turn, "speaking", json!({})).await.text(), "returned");
    assert!(!call(&turn, "failing", json!({})).await.is_success());
}

#[tokio::test]
async fn a_tool_that_ends_without_output_has_failed() {
    let turn = turn([
        entry(define("nothing"), tool_fn(|_: Value, _| async { ToolOutput::new() })),
        entry(define("empty"), tool_fn(|_: Value, _| async { String::new() })),
    ]);
    let nothing = call(&turn, "nothing", json!({})).await;
    assert_eq!(nothing.error_kind(), Some(ErrorKind::Execution));
    assert!(nothing.text().contains("no output"), "{}", nothing.text());
    assert!(call(&turn, "empty", json!({})).await.is_success(), "an empty text is output");
}
