//! `web_search` against servers shaped like the providers.

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use toolcrib_tool::{ErrorKind, ToolError};
use toolcrib_web::{SearchProvider, SearchProviderKind, WebSettings};

use crate::harness::{Crib, Noted, Server, html, json as json_answer, redirect, status};

const DUCKDUCKGO: &str = r#"<html><body><form action="/html/"></form><div class="result result--ad"><a class="result__a"
    href="https://ad.example/">Ad</a></div><div class="result results_links"><h2><a rel="nofollow" class="result__a"
    href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fsea.example%2Ftides%3Fx%3D1&amp;rut=1">Tides &amp; more</a></h2>
    <a class="result__snippet" href="x">The sea <b>rises</b>.</a></div></body></html>"#;

/// All four providers behind one server, by path.
fn answer(noted: &Noted) -> Response {
    let path = noted.path.split('?').next().unwrap_or_default();
    match path {
        "/searx/search" => json_answer(&json!({"query": "tides", "results": [
            {"title": "Tides", "url": "https://www.sea.example/tides/?utm_source=s", "content": "Twice a day.",
             "publishedDate": "2026-01-02T00:00:00", "engine": "x"},
            {"title": "Moon", "url": "https://moon.example/", "content": ""},
            {"title": "no address"},
        ]})),
        "/brave" => json_answer(&json!({"type": "search", "web": {"results": [
            {"title": "Moon &amp; <strong>tides</strong>", "url": "https://moon.example",
             "description": "The <strong>moon</strong> pulls.", "age": "3 days ago"},
        ]}})),
        "/tavily" => json_answer(&json!({"results": [
            {"title": "Sea", "url": "http://sea.example/tides", "content": "A longer extract about the sea.", "score": 0.9},
        ]})),
        "/ddg" => html(DUCKDUCKGO),
        "/none" => json_answer(&json!({"results": []})),
        "/challenge" => {
            (StatusCode::ACCEPTED, html("<div class=anomaly-modal__modal>")).into_response()
        }
        "/quota" => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "30")]).into_response(),
        "/moved" => redirect("http://127.0.0.1:9/"),
        "/broken" => json_answer(&json!({"oops": true})),
        "/denied" => status(403),
        _ => status(500),
    }
}

fn provider(server: &Server, kind: SearchProviderKind, path: &str) -> SearchProvider {
    let provider = SearchProvider::new(kind).url(server.url(path));
    if kind.needs_key() { provider.api_key("good") } else { provider }
}

fn crib(merged: usize, search: Vec<SearchProvider>) -> Crib {
    let mut settings = WebSettings::default();
    settings.merged = merged.try_into().expect("not zero");
    settings.search = search;
    Crib::new(settings)
}

fn urls(data: &Value) -> Vec<&str> {
    data["results"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["url"].as_str())
        .collect()
}

#[tokio::test]
async fn every_provider_is_asked_as_its_api_wants() {
    let server = Server::new(answer).await;
    for (kind, path, found) in [
        (SearchProviderKind::SearXng, "/searx", "https://www.sea.example/tides/"),
        (SearchProviderKind::Brave, "/brave", "https://moon.example/"),
        (SearchProviderKind::Tavily, "/tavily", "http://sea.example/tides"),
        (SearchProviderKind::DuckDuckGo, "/ddg", "https://sea.example/tides?x=1"),
    ] {
        let crib = crib(1, vec![provider(&server, kind, path)]);
        let data =
            crib.data("web_search", json!({"query": "tides & moon", "max_results": 3})).await;
        assert_eq!(urls(&data)[0], found, "{data}");
        let asked = server.noted().pop().expect("a request");
        let query = asked.path.contains("q=tides+%26+moon");
        match kind {
            SearchProviderKind::SearXng => assert!(query && asked.path.contains("format=json")),
            SearchProviderKind::Brave => {
                assert!(query && asked.path.contains("count=3"));
                assert_eq!(asked.header("x-subscription-token"), Some("key-of-the-test"));
            }
            SearchProviderKind::Tavily => {
                assert_eq!(asked.header("authorization"), Some("Bearer key-of-the-test"));
                let body: Value = serde_json::from_slice(&asked.body).expect("JSON");
                assert_eq!(
                    (&body["query"], &body["max_results"]),
                    (&json!("tides & moon"), &json!(3))
                );
            }
            _ => assert!(query),
        }
    }
}

#[tokio::test]
async fn results_of_several_providers_are_merged_and_each_page_comes_once() {
    let server = Server::new(answer).await;
    let crib = crib(
        4,
        vec![
            provider(&server, SearchProviderKind::SearXng, "/searx"),
            provider(&server, SearchProviderKind::Brave, "/brave"),
            provider(&server, SearchProviderKind::Tavily, "/tavily"),
            provider(&server, SearchProviderKind::DuckDuckGo, "/ddg"),
        ],
    );
    let result = crib.call("web_search", json!({"query": "tides"})).await;
    let data = result.data().expect("data");
    assert_eq!(
        urls(data),
        [
            "https://www.sea.example/tides/",
            "https://moon.example/",
            "https://sea.example/tides?x=1"
        ]
    );
    let first = &data["results"][0];
    assert_eq!(first["providers"], json!(["searxng", "tavily"]));
    assert_eq!(first["snippet"], "A longer extract about the sea.");
    assert_eq!(data["results"][1]["title"], "Moon");
    assert_eq!((&data["untrusted"], &data["failed"]), (&json!(true), &json!([])));
    let text = result.text();
    assert!(
        text.starts_with("[Untrusted content from a web search for \"tides\", mark "),
        "{text}"
    );
    assert!(text.contains("1. Tides\n   https://www.sea.example/tides/\n"), "{text}");
}

#[tokio::test]
async fn a_provider_that_fails_or_finds_nothing_is_replaced_by_the_next() {
    let server = Server::new(answer).await;
    let crib = crib(
        1,
        vec![
            provider(&server, SearchProviderKind::Brave, "/quota"),
            provider(&server, SearchProviderKind::Tavily, "/none"),
            provider(&server, SearchProviderKind::SearXng, "/searx"),
            provider(&server, SearchProviderKind::DuckDuckGo, "/ddg"),
        ],
    );
    let result = crib.call("web_search", json!({"query": "tides", "max_results": 1})).await;
    let data = result.data().expect("data");
    assert_eq!(data["providers"], json!(["tavily", "searxng"]));
    assert_eq!(data["failed"][0]["provider"], "brave");
    assert_eq!(urls(data).len(), 1);
    assert!(result.text().contains("brave did not answer: it answered 429"), "{}", result.text());
    assert_eq!(server.paths().len(), 3, "the last one is not needed");
}

#[tokio::test]
async fn failures_say_what_to_do_next() {
    use SearchProviderKind::{Brave, DuckDuckGo, SearXng, Tavily};

    let server = Server::new(answer).await;
    for (search, kind, parts) in [
        (
            provider(&server, Brave, "/denied"),
            ErrorKind::Unavailable,
            ["API key is not accepted", "web.search"],
        ),
        (provider(&server, SearXng, "/denied/search"), ErrorKind::Execution, ["500", "later"]),
        (provider(&server, Brave, "/quota"), ErrorKind::RateLimited, ["429", "less often"]),
        (
            provider(&server, DuckDuckGo, "/challenge"),
            ErrorKind::RateLimited,
            ["a person", "less often"],
        ),
        (provider(&server, Tavily, "/moved"), ErrorKind::Unavailable, ["redirects", "web.search"]),
        (provider(&server, Tavily, "/broken"), ErrorKind::Execution, ["no list", "web.search"]),
        (provider(&server, Tavily, "/ddg"), ErrorKind::Execution, ["not the JSON", "web.search"]),
        (
            SearchProvider::new(Brave).url(server.url("/brave")).api_key("absent"),
            ErrorKind::Unavailable,
            ["needs the secret `absent`", "tell the user"],
        ),
        (
            SearchProvider::new(SearXng).url("http://169.254.169.254/"),
            ErrorKind::Unavailable,
            ["link-local", "web.search"],
        ),
    ] {
        let name = search.address().to_owned();
        let text = crib(1, vec![search]).fails("web_search", json!({"query": "x"}), kind).await;
        for part in parts {
            assert!(text.contains(part), "{name}: {text}");
        }
        assert!(!text.contains("key-of-the-test"));
    }
    let quota = crib(1, vec![provider(&server, Brave, "/quota")]);
    let result = quota.call("web_search", json!({"query": "x"})).await;
    assert_eq!(result.error().and_then(ToolError::retry_after_seconds), Some(30));
}

#[tokio::test]
async fn nothing_found_is_an_answer() {
    let server = Server::new(answer).await;
    let crib = crib(2, vec![provider(&server, SearchProviderKind::Tavily, "/none")]);
    let text = crib.text("web_search", json!({"query": "x"})).await;
    assert!(text.contains("Nothing was found. Try other or fewer words."), "{text}");
    let text = crib.fails("web_search", json!({"query": "  "}), ErrorKind::InvalidArgs).await;
    assert!(text.contains("the query is empty"), "{text}");
}
