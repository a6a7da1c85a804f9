//! Where the web tools meet deadlines, cancellation, approval and the output's budget.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_core::ExecutorConfig;
use toolcrib_tool::{ErrorKind, ToolCall};

use crate::harness::{Crib, Server, html, on_loopback};

fn settings_of_one_request_at_a_time() -> toolcrib_web::WebSettings {
    let mut settings = on_loopback();
    settings.pages.per_host = NonZeroUsize::MIN;
    settings
}

#[tokio::test]
async fn a_fetch_that_is_cancelled_in_the_middle_leaves_its_place_to_the_next() {
    let server = Server::slow(Duration::from_millis(300), |_| html("<p>slow words")).await;
    let crib = Crib::new(settings_of_one_request_at_a_time());
    let arguments = json!({"url": server.url("/first")});
    {
        let turn = crib.executor.turn(crib.options("ada"));
        let call = turn.call(ToolCall::new("1", "fetch_page", arguments));
        // Dropped while the server has not answered.
        assert!(tokio::time::timeout(Duration::from_millis(100), call).await.is_err());
    }
    let text = crib.text("fetch_page", json!({"url": server.url("/second")})).await;
    assert!(text.contains("slow words"));
    assert_eq!(server.paths(), ["/first", "/second"]);
}

#[tokio::test]
async fn the_deadline_of_the_caller_ends_a_fetch_and_a_batch_answers_before_it() {
    let server = Server::slow(Duration::from_secs(30), |_| html("<p>never")).await;
    let crib = Crib::new(on_loopback());
    let options = || crib.options("ada").deadline(Instant::now() + Duration::from_millis(900));
    let fetch = ToolCall::new("1", "fetch_page", json!({"url": server.url("/")}));
    let result = crib.executor.turn(options()).call(fetch).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout), "{}", result.text());
    let batch = ToolCall::new("2", "crawl_batch", json!({"urls": [server.url("/"), "nonsense"]}));
    let result = crib.executor.turn(options()).call(batch).await;
    assert!(result.is_success(), "{}", result.text());
    let data = result.data().expect("data");
    assert!(
        data["results"][0]["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("in the time of this call"))
    );
    assert_eq!(data["results"][1]["error"]["kind"], "invalid_args");
}

#[tokio::test]
async fn a_slow_site_does_not_pause_the_tool() {
    let server = Server::slow(Duration::from_secs(30), |_| html("<p>never")).await;
    let mut settings = on_loopback();
    settings.pages.timeout = Duration::from_millis(50);
    let crib = Crib::new(settings);
    for page in 0..5 {
        let url = server.url(&format!("/{page}"));
        let text = crib.fails("fetch_page", json!({"url": url}), ErrorKind::Execution).await;
        assert!(text.contains("within 50ms"), "{text}");
    }
}

#[tokio::test]
async fn a_long_page_is_cut_to_the_budget_and_ten_pages_share_it() {
    let words =
        "<p>Some words of a long page that says the same again and again.</p>".repeat(4_000);
    let server = Server::new(move |_| html(format!("<main>{words}</main>"))).await;
    let mut config = ExecutorConfig::default();
    config.output_chars = 10_000;
    let crib = Crib::with(on_loopback(), config);
    let alone = crib.text("fetch_page", json!({"url": server.url("/")})).await;
    assert!(alone.chars().count() <= 11_000, "{}", alone.len());
    let urls: Vec<String> = (0..5).map(|page| server.url(&format!("/{page}"))).collect();
    let text = crib.text("crawl_batch", json!({"urls": urls})).await;
    for url in urls {
        assert!(text.contains(&url), "{url} has no part of the answer");
    }
}
