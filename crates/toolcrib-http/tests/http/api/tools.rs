//! The list of tools over HTTP.

use crate::fixture::{config, start};
use crate::raw_client::Ask;

#[tokio::test]
async fn tools_are_listed_in_complete_pages() {
    let server = start(config()).await;
    let all = Ask::api(server.address, "GET /v1/tools").send().await.json();
    let names = |list: &serde_json::Value| -> Vec<String> {
        let tools = list["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&all).len(), 11);
    assert!(names(&all).is_sorted() && all["next"].is_null());
    let mut paged = Vec::new();
    let mut line = "GET /v1/tools?limit=4".to_owned();
    loop {
        let page = Ask::api(server.address, &line).send().await.json();
        paged.extend(names(&page));
        let Some(next) = page["next"].as_str() else { break };
        line = format!("GET /v1/tools?limit=4&after={next}");
    }
    assert_eq!(paged, names(&all));
    server.end().await;
}

#[tokio::test]
async fn one_tool_is_described_and_an_unknown_one_is_a_problem() {
    let server = start(config()).await;
    let greet = Ask::api(server.address, "GET /v1/tools/greet").send().await.json();
    assert_eq!(greet["input_schema"]["required"][0], "name");
    assert_eq!(greet["annotations"]["read_only"], true);
    assert_eq!(greet["annotations"]["destructive"], false, "what only reads destroys nothing");
    let unknown = Ask::api(server.address, "GET /v1/tools/gret").send().await;
    assert_eq!((unknown.status, unknown.kind().as_str()), (404, "not_found"));
    assert!(unknown.problem().ends_with("did you mean `greet`?"), "{}", unknown.body);
    server.end().await;
}

#[tokio::test]
async fn a_search_finds_tools_and_explains_invalid_queries() {
    let server = start(config()).await;
    let found =
        Ask::api(server.address, "GET /v1/search?q=greet+somebody&limit=1").send().await.json();
    assert_eq!(found["tools"][0]["name"], "greet");
    assert_eq!(found["tools"].as_array().unwrap().len(), 1);
    for (line, says) in [
        ("GET /v1/search", "/v1/search?q="),
        ("GET /v1/search?q=a&limit=none", "a number from 1 to"),
        ("GET /v1/search?q=a&q=b", "twice"),
        ("GET /v1/tools?limt=1", "no query parameter `limt`"),
    ] {
        let refused = Ask::api(server.address, line).send().await;
        assert_eq!(refused.status, 422, "{line}");
        assert!(refused.problem().contains(says), "{line}: {refused:?}");
    }
    server.end().await;
}
