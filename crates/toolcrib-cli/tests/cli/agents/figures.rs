//! What `/metrics` says about the requests of agents.

use serde_json::json;
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::Reply;

use super::harness::served;
use crate::harness::http::Http;

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_agents_and_their_tokens_are_in_the_metrics() {
    let (_model, crib) = served(Wire::Chat, [Reply::text("Hello.")]).await;
    let server = Http::start(&crib, "");
    let before = server.ask("GET /metrics", None).body;
    assert!(!before.contains("gen_ai"), "{before}");
    let run = server.ask("POST /v1/runs", Some(&json!({"input": "Hello."})));
    let usage = &run.json()["usage"];
    let metrics = server.ask("GET /metrics", None).body;
    let labels = r#"{gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="scripted""#;
    let mut expected = vec![
        "# TYPE gen_ai_client_operation_duration_seconds histogram".to_owned(),
        format!("gen_ai_client_operation_duration_seconds_bucket{labels},le=\"+Inf\"}} 1"),
        format!("gen_ai_client_operation_duration_seconds_count{labels}}} 1"),
    ];
    for kind in ["input", "output"] {
        let tokens = usage[format!("{kind}_tokens")].as_u64().expect("the provider counts them");
        let labels = format!("{labels},gen_ai_token_type=\"{kind}\"");
        expected.push(format!("gen_ai_client_token_usage_sum{labels}}} {tokens}"));
        expected.push(format!("gen_ai_client_token_usage_bucket{labels},le=\"67108864\"}} 1"));
    }
    for line in expected {
        assert!(metrics.lines().any(|own| own == line), "{line}: {metrics}");
    }
}
