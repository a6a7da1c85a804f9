//! `crawl_batch`: every URL is answered by itself.

use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::response::IntoResponse as _;
use serde_json::{Value, json};
use toolcrib_tool::ErrorKind;

use crate::harness::{Crib, Noted, Server, html, on_loopback, status};

fn answer(noted: &Noted) -> axum::response::Response {
    match noted.path.as_str() {
        "/robots.txt" => {
            ([("content-type", "text/plain")], "User-agent: *\nDisallow: /closed\n").into_response()
        }
        "/gone" => status(404),
        path => html(format!("<title>Page {path}</title><main><p>Words of {path}.</p></main>")),
    }
}

#[tokio::test]
async fn each_url_is_answered_in_order_by_itself() {
    let server = Server::new(answer).await;
    let crib = Crib::new(on_loopback());
    let urls = ["/a", "/gone", "/closed/b", "/a", "/c"].map(|path| server.url(path));
    let urls = [&urls[..], &["http://169.254.169.254/".to_owned(), "nonsense".to_owned()]].concat();
    let result = crib.call("crawl_batch", json!({"urls": urls})).await;
    assert!(result.is_success(), "{}", result.text());
    let data = result.data().expect("data");
    let results = data["results"].as_array().expect("results");
    let kinds: Vec<&Value> = results.iter().map(|one| &one["error"]["kind"]).collect();
    let (ok, execution, denied, invalid) =
        (&Value::Null, &json!("execution"), &json!("denied"), &json!("invalid_args"));
    assert_eq!(kinds, [ok, execution, denied, ok, ok, denied, invalid]);
    assert_eq!(results[3]["same_as"], 0);
    assert_eq!(
        (&data["total"], &data["successful"], &data["untrusted"]),
        (&json!(7), &json!(3), &json!(true))
    );
    let text = result.text();
    for part in [
        "## 1 of 7: ",
        "Words of /a.",
        "404 Not Found",
        "robots.txt of",
        "The same address as number 1.",
        "connections to it are not allowed",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let robots = server.paths().iter().filter(|path| *path == "/robots.txt").count();
    assert!(robots <= 4, "{robots}: those that ask at the same time, once each");
    let before = server.paths().len();
    crib.text("crawl_batch", json!({"urls": [server.url("/new")]})).await;
    assert_eq!(server.paths()[before..], ["/new"], "the rules are remembered");
}

#[tokio::test]
async fn one_host_gets_few_requests_at_a_time() {
    let server = Server::slow(Duration::from_millis(30), answer).await;
    let mut settings = on_loopback();
    settings.pages.per_host = NonZeroUsize::MIN;
    let crib = Crib::new(settings);
    let urls: Vec<String> = (0..8).map(|page| server.url(&format!("/{page}"))).collect();
    let data = crib.data("crawl_batch", json!({"urls": urls})).await;
    assert_eq!(data["successful"], 8, "{data}");
    assert_eq!(server.most_at_once.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_server_whose_rules_cannot_be_read_is_left_alone_and_one_without_rules_is_not() {
    let server = Server::new(|noted| match noted.path.as_str() {
        "/robots.txt" => status(503),
        _ => answer(noted),
    })
    .await;
    let other = Server::new(|noted| match noted.path.as_str() {
        "/robots.txt" => status(404),
        _ => answer(noted),
    })
    .await;
    let urls = json!({"urls": [server.url("/x"), other.url("/x")]});
    let crib = Crib::new(on_loopback());
    let data = crib.data("crawl_batch", urls.clone()).await;
    let success = |data: &Value| {
        [&data["results"][0]["success"], &data["results"][1]["success"]].map(|v| v == true)
    };
    assert_eq!(success(&data), [false, true]);
    let mut settings = on_loopback();
    settings.pages.robots = false;
    let data = Crib::new(settings).data("crawl_batch", urls).await;
    assert_eq!(success(&data), [true, true]);
}

#[tokio::test]
async fn a_page_that_never_comes_does_not_hold_up_the_others() {
    let server = Server::new(answer).await;
    let silent = Server::slow(Duration::from_secs(60), answer).await;
    let mut settings = on_loopback();
    settings.pages.timeout = Duration::from_millis(700);
    settings.pages.robots = false;
    let crib = Crib::new(settings);
    let data = crib.data("crawl_batch", json!({"urls": [silent.url("/"), server.url("/a")]})).await;
    assert_eq!(data["results"][0]["error"]["kind"], "execution", "{data}");
    assert_eq!(data["results"][1]["success"], true, "{data}");
}

#[tokio::test]
async fn more_urls_than_the_operator_allows_are_refused() {
    let mut settings = on_loopback();
    settings.max_batch = NonZeroUsize::MIN;
    let crib = Crib::new(settings);
    let urls = json!({"urls": ["http://127.0.0.1:1/", "http://127.0.0.1:1/b"]});
    let text = crib.fails("crawl_batch", urls, ErrorKind::InvalidArgs).await;
    assert!(text.contains("at most 1 URLs"), "{text}");
}
