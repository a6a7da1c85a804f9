//! What a call can see of its host.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::TurnOptions;
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, ErrorKind, Services, Tool, ToolError, ToolFile, ToolFiles,
    ToolOutcome, ToolOutput, tool_fn,
};

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

#[tokio::test]
async fn a_tool_sees_the_files_of_its_own_name_or_category_and_no_others() {
    let look = || {
        tool_fn(|_: Value, cx: CallContext| async move {
            json!(cx.files().iter().map(ToolFile::id).collect::<Vec<_>>())
        })
    };
    let executor = executor([
        entry(define("named").category("code"), look()),
        entry(define("of_category").category("code"), look()),
        entry(define("other"), look()),
    ]);
    let files = ToolFiles::new()
        .with("code", ToolFile::File("f1".into()))
        .with("named", ToolFile::File("f2".into()));
    let turn = executor.turn(TurnOptions::default().files(files));
    for (name, seen) in
        [("named", json!(["f2"])), ("of_category", json!(["f1"])), ("other", json!([]))]
    {
        assert_eq!(call(&turn, name, json!({})).await.data(), Some(&seen), "{name}");
    }
}

#[tokio::test]
async fn a_check_of_the_tools_own_that_fails_is_a_constraint_whatever_it_calls_itself() {
    struct Checked;
    impl Tool for Checked {
        fn call<'a>(
            &'a self,
            _: Arguments,
            _: &'a CallContext,
        ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
            Box::pin(async { Ok("ran".into()) })
        }

        fn validate<'a>(
            &'a self,
            _: &'a Arguments,
            _: &'a CallContext,
        ) -> BoxFuture<'a, Result<(), ToolError>> {
            Box::pin(async { Err(ToolError::invalid_args("odd days only").with_hint("wait")) })
        }
    }
    let turn = turn([entry(define("checked"), Checked)]);
    let refused = call(&turn, "checked", json!({})).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::Constraint));
    assert_eq!(refused.text(), "Error executing checked: odd days only\nwait");
}
