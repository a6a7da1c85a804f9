//! Requests whose whole URL is a secret: where they go, and that no part of the URL is shown.

use serde_json::json;
use toolcrib_manifest::load_str;
use toolcrib_runners::{HttpRunner, RunnerHost, Secrets};
use toolcrib_tool::{ErrorKind, Plan, Tool, ToolError, ToolOutcome};

use super::server::Server;
use super::tool;
use crate::declare::{context, given};

const POST: &str = "url: \"${secret.hook}\"\nmethod: POST\nform: {text: \"${args.id}\"}";

fn host(url: &str) -> RunnerHost {
    RunnerHost::new("/").with_secrets(Secrets::from_values([("hook", url)]))
}

async fn called(http: &str, url: &str) -> Result<ToolOutcome, ToolError> {
    let declaration = tool(http, "", "unused");
    let runner = HttpRunner::new(&declaration, &host(url));
    let arguments = given(&json!({"id": "x"}));
    runner.call(arguments, &context(&declaration, [])).await
}

#[tokio::test]
async fn the_request_goes_to_the_url_in_the_secret() {
    let server = Server::always(200, &[], "ok").await;
    let url = format!("http://{}/services/T0/B0/x?a=1", server.host());
    assert!(called(POST, &url).await.is_ok());
}

#[test]
fn parameters_are_added_and_the_url_is_not_shown() {
    let http = "url: \"${secret.hook}\"\nquery: {q: \"${args.id}\"}";
    let declaration = tool(http, "", "unused");
    let cx = context(&declaration, []);
    for (secret, sent) in [
        ("https://hooks.example/a", "https://hooks.example/a?q=x%26"),
        ("https://hooks.example/a?b=1", "https://hooks.example/a?b=1&q=x%26"),
    ] {
        let runner = HttpRunner::new(&declaration, &host(secret));
        let request = runner.request(&given(&json!({"id": "x&"})), &cx).unwrap();
        assert_eq!(request.url(), sent);
        assert_eq!(request.shown_url, "${secret.hook}?q=x%26");
        assert!(!format!("{request:?}").contains("hooks"), "{request:?}");
        let plan = runner.plan(&given(&json!({"id": "x"})), &cx).unwrap();
        let Some(Plan::Request(plan)) = plan else { panic!("{plan:?}") };
        assert_eq!(plan.url, "${secret.hook}?q=x");
    }
}

#[tokio::test]
async fn a_value_that_is_no_usable_url_is_refused_without_being_shown() {
    for url in [
        "hunter2",
        "hooks.example/hunter2",
        "ftp://hunter2.example/",
        "file:///etc/hunter2",
        "https://me:hunter2@hooks.example/",
        "https://hooks.example/hunter2 x",
        "https://hooks.example/hunter2#x",
    ] {
        let error = called(POST, url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{url}");
        assert!(error.message().starts_with("the value of `${secret.hook}` "), "{error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("hooks.example"), "{shown}");
    }
}

#[tokio::test]
async fn a_secret_url_is_not_sent_in_clear_unless_private_addresses_are_declared() {
    let text = "toolcrib: 1
tools:
  - name: tell
    description: Send a note.
    http: {url: \"${secret.hook}\", method: POST}
";
    let declaration = load_str("tell.yaml", text).declarations.remove(0);
    let runner = HttpRunner::new(&declaration, &host("http://hooks.example/hunter2"));
    let error = runner.call(given(&json!({})), &context(&declaration, [])).await.unwrap_err();
    assert!(error.message().contains("begins with `http://`"), "{error}");
    assert!(!error.message().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_redirect_is_not_named_and_a_private_address_behind_it_is_not_reached() {
    let inner = Server::always(200, &[], "inner").await;
    let location =
        format!("http://{}/inner-hunter2", inner.host().replace("127.0.0.1", "127.0.0.2"));
    let location: &'static str = Box::leak(location.into_boxed_str());
    let headers: &'static _ = Box::leak(Box::new([("location", location)]));
    let outer = Server::always(307, headers, "moved").await;
    let url = format!("http://{}/hunter2", outer.host());
    let error = called(POST, &url).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("127.0.0"), "{shown}");
    let get = "url: \"${secret.hook}\"";
    let error = called(get, &url).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("127.0.0"), "{shown}");
}

#[tokio::test]
async fn failures_do_not_show_the_host() {
    let server = Server::always(404, &[], "no such hook").await;
    let url = format!("http://{}/hunter2", server.host());
    let error = called(POST, &url).await.unwrap_err();
    assert_eq!(error.message(), "the server of `${secret.hook}` answered 404 Not Found");
    for (url, kind) in [
        ("http://127.0.0.1:9/hunter2", ErrorKind::Unavailable),
        ("http://10.1.2.3/hunter2", ErrorKind::Denied),
        ("http://169.254.169.254/latest/hunter2", ErrorKind::Denied),
    ] {
        let error = called(POST, url).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hunter2") && !shown.contains(".1"), "{shown}");
        assert!(shown.contains("`${secret.hook}`"), "{shown}");
    }
}
