//! Operations for operators.

use serde_json::json;

use crate::fixture::{config, start};
use crate::raw_client::Ask;

#[tokio::test]
async fn operators_see_status_statistics_and_the_end_of_the_audit_log() {
    let server = start(config()).await;
    let ask = |line: &str| Ask::api(server.address, line).send();
    for tool in ["echo", "whoami", "fail"] {
        ask(&format!("POST /v1/tools/{tool}/call")).await;
    }
    assert_eq!(ask("GET /v1/status").await.json()["reserved"], json!(["a"]));
    let stats = ask("GET /v1/stats").await.json();
    let failed = stats["tools"].as_array().unwrap().iter().find(|one| one["tool"] == "fail");
    assert_eq!(failed.unwrap()["errors_by_kind"], json!({"execution": 1}));
    let tail = ask("GET /v1/audit?limit=2").await.json();
    let tail = tail["records"].as_array().unwrap();
    let tools: Vec<_> = tail.iter().map(|record| record["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["whoami", "fail"]);
    let refused = ask("POST /v1/reload").await;
    assert_eq!(
        (refused.status, refused.problem().as_str()),
        (409, "nothing was changed: a.yaml is broken")
    );
    server.end().await;
}

#[tokio::test]
async fn metrics_count_calls_and_requests() {
    let server = start(config()).await;
    let ask = |line: &str| Ask::api(server.address, line).send();
    ask("POST /v1/tools/echo/call").await;
    ask("POST /v1/tools/fail/call").await;
    ask("POST /v1/tools/made_up/call").await;
    ask("GET /nowhere").await;
    let metrics = ask("GET /metrics").await;
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for line in [
        r#"toolcrib_calls_total{tool="echo",outcome="success"} 1"#,
        r#"toolcrib_calls_total{tool="fail",outcome="execution"} 1"#,
        r#"toolcrib_calls_total{tool="(unknown)",outcome="not_found"} 1"#,
        r#"toolcrib_call_seconds_count{tool="echo"} 1"#,
        r#"toolcrib_http_requests_total{method="POST",route="/v1/tools/{name}/call",status="200"} 1"#,
        r#"toolcrib_http_requests_total{method="GET",route="(other)",status="404"} 1"#,
        "toolcrib_tools{state=\"callable\"} 11",
        "toolcrib_ready 1",
    ] {
        assert!(metrics.body.lines().any(|own| own == line), "{line}\n{}", metrics.body);
    }
    // Every line is a comment or a sample, and every family is announced once.
    for line in metrics.body.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok() && name.starts_with("toolcrib_"), "{line}");
    }
    let mut families: Vec<_> =
        metrics.body.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let all = families.len();
    families.sort_unstable();
    families.dedup();
    assert_eq!(families.len(), all);
    server.end().await;
}

#[tokio::test]
async fn the_prompt_says_on_request_which_tools_fail_often() {
    let server = start(config()).await;
    for _ in 0..10 {
        let ask = Ask::api(server.address, "POST /v1/tools/fail/call").json(&json!({}));
        assert_eq!(ask.send().await.status, 424);
    }
    let ask = |query: &str| Ask::api(server.address, &format!("GET /v1/prompt{query}"));
    let plain = ask("").send().await;
    assert!(plain.body.starts_with("# Available Tools"), "{}", plain.body);
    assert!(!plain.body.contains("fails often"), "{}", plain.body);
    let noted = ask("?notes=true").send().await;
    assert!(noted.body.contains("Note: fails often: 10 of 10 runs"), "{}", noted.body);
    assert_eq!(ask("?notes=yes").send().await.status, 422);
    let stats = Ask::api(server.address, "GET /v1/stats").send().await.json();
    assert_eq!(stats["tools"][0]["often_fails"], "fails often: 10 of 10 runs");
    server.end().await;
}
