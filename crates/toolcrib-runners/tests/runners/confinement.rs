//! The confinement of declared programs.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolcrib_manifest::declaration::Declaration;
use toolcrib_manifest::load_str;
use toolcrib_runners::{CommandRunner, RunnerHost};
use toolcrib_tool::{Arguments, CallContext, Plan, Tool, ToolOutcome, ToolOutput};

/// A tool that runs this shell text; `sandbox` is its declared confinement.
fn declared(text: &str, sandbox: &str) -> Declaration {
    let manifest = format!(
        "toolcrib: 1\ntools:\n  - name: t\n    description: Run it.\n    run:\n      shell: sh\n      \
         text: {}\n{sandbox}",
        json!(text)
    );
    let loaded = load_str("t.yaml", &manifest);
    loaded.declarations.into_iter().next().unwrap_or_else(|| panic!("{:?}", loaded.diagnostics))
}

async fn call(declaration: &Declaration, workspace: &Path) -> ToolOutput {
    let runner = CommandRunner::new(declaration, &RunnerHost::new(workspace));
    let cx = CallContext::builder("call_1", declaration.definition.clone()).build();
    match runner.call(Arguments::from_validated("{}".to_owned()), &cx).await.unwrap() {
        ToolOutcome::Done(output) => output,
        other => panic!("not done: {other:?}"),
    }
}

#[tokio::test]
async fn the_workspace_is_what_a_tool_may_change() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    fs::create_dir(&workspace).unwrap();
    fs::write(folder.path().join("beside"), "beside\n").unwrap();
    let text =
        "echo in > inside; cat ../beside || echo unread; echo x >> ../beside || echo unwritten";
    for (sandbox, shown) in [
        ("", "unread\nunwritten\n"),
        ("    sandbox: {read: [../beside]}\n", "beside\nunwritten\n"),
        ("    sandbox: {write: [../beside]}\n", "beside\n"),
        ("    sandbox: {profile: trusted}\n", "beside\nx\n"),
    ] {
        let output = call(&declared(text, sandbox), &workspace).await;
        assert!(output.text().starts_with(shown), "{sandbox}: {}", output.text());
        assert_eq!(fs::read_to_string(workspace.join("inside")).unwrap(), "in\n");
    }
}

#[tokio::test]
async fn a_result_reports_the_confinement_of_its_program() {
    let folder = tempfile::tempdir().unwrap();
    for (sandbox, profile) in [
        ("", "workspace"),
        ("    sandbox: {profile: workspace+net}\n", "workspace+net"),
        ("    sandbox: {profile: pure}\n", "pure"),
        ("    sandbox: {profile: trusted}\n", "trusted"),
    ] {
        let output = call(&declared("echo a", sandbox), folder.path()).await;
        let told: &Value = &output.meta()["sandbox"];
        assert_eq!(told["profile"], profile);
        let held = told["enforced"].as_array().unwrap();
        assert_eq!(held.contains(&json!("files")), profile != "trusted", "{told}");
    }
}

#[test]
fn a_plan_names_the_profile() {
    let declaration = declared("echo a", "    sandbox: {profile: workspace+net}\n");
    let runner = CommandRunner::new(&declaration, &RunnerHost::new("/"));
    let cx = CallContext::builder("call_1", declaration.definition.clone()).build();
    let arguments = Arguments::from_validated("{}".to_owned());
    let Some(Plan::Command(plan)) = runner.plan(&arguments, &cx).unwrap() else { panic!("none") };
    assert_eq!(plan.sandbox, "workspace+net");
}
