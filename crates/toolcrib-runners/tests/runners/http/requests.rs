//! Requests built from arguments, as planned and as sent.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_runners::HttpHeader;
use toolcrib_tool::ErrorKind;

use super::server::Server;
use super::{call, host, request, tool};

fn url(http: &str, arguments: &Value) -> String {
    let declaration = tool(http, "", "unused");
    request(&declaration, arguments).unwrap().url().to_owned()
}

#[test]
fn each_value_is_encoded_as_one_component() {
    let both = "url: \"https://a.example:8443/x/${args.id}-2/y?q=${args.q}${args.n}&fixed=a+b'c\"";
    assert_eq!(
        url(both, &json!({"id": "a/b?c#d%2fe", "n": 2.0, "q": "1&2=3+4 ä"})),
        "https://a.example:8443/x/a%2Fb%3Fc%23d%252fe-2/y?q=1%262%3D3%2B4%20%C3%A42&fixed=a+b%27c"
    );
    // The author's own characters stay as written.
    let own = "url: \"https://a.example/!$&'()*+,;=:@/%7e/ä^|{}?a=!$()*+,;:@/?&b=\\\"<>`\"";
    assert_eq!(
        url(own, &json!({"id": "x"})),
        "https://a.example/!$&'()*+,;=:@/%7e/%C3%A4%5E%7C%7B%7D?a=!$()*+,;:@/?&b=%22%3C%3E%60"
    );
}

#[test]
fn absent_parameters_are_omitted_and_lists_repeat() {
    let http = "url: \"https://a.example/?first=1&q=${args.q}&flag\"
query: {\"a b\": \"<${args.q}>\", tag: \"${args.tags}\", n: \"${args.n}\", flag: \"${args.flag}\"}";
    assert_eq!(url(http, &json!({"id": "x"})), "https://a.example/?first=1&flag");
    assert_eq!(
        url(http, &json!({"id": "x", "q": null, "tags": []})),
        "https://a.example/?first=1&flag"
    );
    assert_eq!(
        url(http, &json!({"id": "x", "q": "", "tags": ["a&b", "c"], "n": -1.5, "flag": false})),
        "https://a.example/?first=1&q=&flag&a%20b=%3C%3E&tag=a%26b&tag=c&n=-1.5&flag=false"
    );
    let only = "url: https://a.example/p\nquery: {q: \"${args.q}\"}";
    assert_eq!(url(only, &json!({"id": "x"})), "https://a.example/p");
}

#[test]
fn a_value_never_leaves_its_segment() {
    let declaration = tool("url: \"https://a.example/teams/${args.id}/tickets\"", "", "unused");
    for id in ["..", ".", ""] {
        let error = request(&declaration, &json!({"id": id})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgs, "{id:?}");
        assert!(error.message().starts_with("the argument `id` "), "{error}");
    }
    for id in ["../admin", "..%2fadmin", "%2e%2e", "...", "a/../..", "?x", "#x", "\\..", "//b", ";"]
    {
        let request = request(&declaration, &json!({"id": id})).unwrap();
        let url = request.url();
        let middle = url.strip_prefix("https://a.example/teams/").unwrap();
        let middle = middle.strip_suffix("/tickets").unwrap();
        assert!(!middle.contains(['/', '?', '#', '\\']), "{id:?}: {url}");
    }
    // Two adjacent values, or a value beside the author's dot, can also form `..`.
    let beside = tool("url: \"https://a.example/.${args.id}/x\"", "", "unused");
    assert!(request(&beside, &json!({"id": "."})).is_err());
    let beside = tool("url: \"https://a.example/%2E${args.id}/x\"", "", "unused");
    assert!(request(&beside, &json!({"id": "."})).is_err());
    assert!(request(&beside, &json!({"id": ""})).is_err());
    let error = request(&declaration, &json!({})).unwrap_err();
    assert_eq!(
        error.message(),
        "the argument `id` is missing, and the path of the request needs it"
    );
}

#[test]
fn control_characters_are_refused_and_a_header_is_always_one_line() {
    for (http, argument) in [
        ("url: \"https://a.example/${args.id}\"", "id"),
        ("url: https://a.example/\nquery: {q: \"${args.q}\"}", "q"),
        ("url: https://a.example/\nquery: {t: \"${args.tags}\"}", "tags"),
        ("url: https://a.example/\nheaders: {X-Q: \"${args.q}\"}", "q"),
    ] {
        let declaration = tool(http, "", "unused");
        for bad in ["a\r\nX-Injected: 1", "a\nb", "a\rb", "a\0b", "a\u{85}b", "a\u{7f}"] {
            let mut arguments = json!({"id": "x"});
            arguments[argument] = if argument == "tags" { json!(["ok", bad]) } else { bad.into() };
            let error = request(&declaration, &arguments).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgs, "{http} {bad:?}");
            assert!(error.message().contains("contains"), "{error}");
        }
    }
    let declaration =
        tool("url: https://a.example/\nheaders: {X-Raw: \"${args.raw}\"}", "", "unused");
    for bad in ["a\r\nX-Injected: 1", "a\nb", "a\rb", "a\0b", "a\u{1b}b"] {
        let error = request(&declaration, &json!({"id": "x", "raw": bad})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgs, "{bad:?}");
    }
    assert!(request(&declaration, &json!({"id": "x", "raw": "grüße\t."})).is_ok());
    // In a body a line end is text; NUL is not.
    let body =
        "url: https://a.example/\nmethod: POST\njson: {q: \"${args.q}\", any: \"${args.any}\"}";
    let body = tool(body, "", "unused");
    assert!(request(&body, &json!({"id": "x", "q": "a\r\n\tb"})).is_ok());
    assert!(request(&body, &json!({"id": "x", "q": "a\0b"})).is_err());
    assert!(request(&body, &json!({"id": "x", "any": [{"k": "a\0b"}]})).is_err());
    assert!(request(&body, &json!({"id": "x", "any": {"a\0b": 1}})).is_err());
}

#[test]
fn json_is_built_as_json() {
    let http = r#"url: https://a.example/
method: POST
json:
  id: "${args.id}"
  n: "${args.n}"
  flag: "${args.flag}"
  any: "${args.any}"
  text: "id ${args.id}, n ${args.n}"
  by: "${ctx.user}"
  list: ["${args.q}", "${args.tags}", 1, null]
  deep: {q: "${args.q}", fixed: true}"#;
    let declaration = tool(http, "", "unused");
    let full = request(
        &declaration,
        &json!({"id": "\"},{\"x\":1", "n": 1.5, "flag": false, "any": {"a": [1, "x"]}, "q": "${args.id}", "tags": ["t"]}),
    )
    .unwrap();
    let expected = json!({
        "id": "\"},{\"x\":1",
        "n": 1.5,
        "flag": false,
        "any": {"a": [1, "x"]},
        "text": "id \"},{\"x\":1, n 1.5",
        "by": "ada",
        "list": ["${args.id}", ["t"], 1, null],
        "deep": {"q": "${args.id}", "fixed": true},
    });
    assert_eq!(full.body, Some(expected.clone()));
    let bytes: Value = serde_json::from_slice(full.body_bytes.as_deref().unwrap()).unwrap();
    assert_eq!(bytes, expected);
    let sparse = request(&declaration, &json!({"id": "x", "n": null})).unwrap();
    assert_eq!(
        sparse.body,
        Some(json!({"id": "x", "by": "ada", "list": [1, null], "deep": {"fixed": true}}))
    );
    let whole = tool("url: https://a.example/\nmethod: PUT\njson: \"${args.any}\"", "", "unused");
    assert_eq!(request(&whole, &json!({"id": "x", "any": [1]})).unwrap().body, Some(json!([1])));
    assert_eq!(request(&whole, &json!({"id": "x"})).unwrap().body_bytes, None);
}

#[test]
fn credentials_are_headers_that_are_never_shown() {
    let authorization = |auth: &str| {
        let declaration = tool(&format!("url: https://a.example/\nauth: {auth}"), "", "unused");
        let request = request(&declaration, &json!({"id": "x"})).unwrap();
        assert!(!format!("{request:?}").contains("s3cr3t"), "{request:?}");
        let secret: Vec<HttpHeader> =
            request.headers.into_iter().filter(|header| header.secret).collect();
        assert_eq!(secret.len(), 1);
        format!("{}: {}", secret[0].name, secret[0].value)
    };
    assert_eq!(
        authorization("{bearer: \"${secret.token}\"}"),
        "Authorization: Bearer s3cr3t-t0ken"
    );
    assert_eq!(
        authorization("{basic: {user: me, password: \"${secret.token}\"}}"),
        "Authorization: Basic bWU6czNjcjN0LXQwa2Vu"
    );
    assert_eq!(
        authorization("{header: {name: X-Api-Key, value: \"key ${secret.token}\"}}"),
        "X-Api-Key: key s3cr3t-t0ken"
    );
    // A secret in the URL is sent but not shown.
    let hook =
        "url: \"https://a.example/hooks/${secret.token}\"\nquery: {key: \"${secret.token}\"}";
    let request = request(&tool(hook, "", "unused"), &json!({"id": "x"})).unwrap();
    assert_eq!(request.url(), "https://a.example/hooks/s3cr3t-t0ken?key=s3cr3t-t0ken");
    assert_eq!(request.shown_url, "https://a.example/hooks/${secret.token}?key=${secret.token}");
    assert!(!format!("{request:?}").contains("s3cr3t"), "{request:?}");
}

#[test]
fn a_missing_secret_makes_the_tool_unavailable() {
    let declaration =
        tool("url: https://a.example/\nauth: {bearer: \"${secret.other}\"}", "", "unused");
    let entry = toolcrib_runners::entry(&declaration, &host());
    let reason = entry.unavailable_reason().unwrap();
    assert!(reason.starts_with("needs the secret `other`"), "{reason}");
    let error = request(&declaration, &json!({"id": "x"})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let there = tool("url: https://a.example/\nauth: {bearer: \"${secret.token}\"}", "", "unused");
    assert_eq!(toolcrib_runners::entry(&there, &host()).unavailable_reason(), None);
}

#[tokio::test]
async fn the_server_receives_the_planned_request() {
    let server = Server::always(200, &[], "fine").await;
    let http = r#"method: PUT
url: "http://HERE/tickets/${args.id}"
query: {q: "${args.q}"}
headers: {X-Request-Id: "r-${args.id}", Accept: text/plain}
auth: {bearer: "${secret.token}"}
json: {q: "${args.q}"}"#;
    let declaration = tool(http, "", &server.host());
    let output = call(&declaration, json!({"id": "a b", "q": "ä&"})).await.unwrap();
    assert_eq!(output.text(), "fine");
    let seen = &server.seen()[0];
    assert_eq!(seen.line, "PUT /tickets/a%20b?q=%C3%A4%26");
    assert_eq!(seen.body, r#"{"q":"ä&"}"#);
    for (name, value) in [
        ("host", server.host().as_str()),
        ("authorization", "Bearer s3cr3t-t0ken"),
        ("x-request-id", "r-a b"),
        ("accept", "text/plain"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(seen.headers[name], value, "{name}");
    }
}

#[tokio::test]
async fn forms_texts_and_empty_bodies_arrive() {
    let server = Server::always(200, &[], "fine").await;
    let send = async |http: &str, arguments: Value| {
        let http = format!("method: POST\nurl: http://HERE/\n{http}");
        call(&tool(&http, "", &server.host()), arguments).await.unwrap();
        server.seen().pop().unwrap()
    };
    let form = send(
        "form: {\"a b\": \"${args.q}\", tag: \"${args.tags}\", n: \"${args.n}\"}",
        json!({"id": "x", "q": "1&2\n=", "tags": ["a", "b"]}),
    )
    .await;
    assert_eq!(form.body, "a%20b=1%262%0A%3D&tag=a&tag=b");
    assert_eq!(form.headers["content-type"], "application/x-www-form-urlencoded");
    let text = send("text: \"id=${args.id}\\n\"", json!({"id": "x"})).await;
    assert_eq!(
        (text.body.as_str(), &*text.headers["content-type"]),
        ("id=x\n", "text/plain; charset=utf-8")
    );
    let own =
        send("text: \"<a/>\"\nheaders: {content-type: application/xml}", json!({"id": "x"})).await;
    assert_eq!(own.headers["content-type"], "application/xml");
    let empty = send("headers: {X-A: b}", json!({"id": "x"})).await;
    assert_eq!((empty.body.as_str(), &*empty.headers["content-length"]), ("", "0"));
    assert!(!empty.headers.contains_key("content-type"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    /// Whatever the values, the host, the number of segments and the parameters are the author's.
    #[test]
    fn no_value_changes_the_structure_of_a_url(id in "[\\PC]{0,20}|[./%\\\\?#@:&=;2eEfF]{0,8}", q in "\\PC{0,20}|[./%?#@&=+]{0,8}") {
        let declaration = tool(
            "url: \"https://a.example/teams/${args.id}/x?q=${args.q}&z=1\"\nquery: {again: \"${args.q}\"}",
            "",
            "unused",
        );
        let Ok(request) = request(&declaration, &json!({"id": id, "q": q})) else {
            prop_assert!(matches!(id.as_str(), "" | "." | ".."), "{:?} was refused", id);
            return Ok(());
        };
        let rest = request.url().strip_prefix("https://a.example/teams/").unwrap();
        let (path, query) = rest.split_once('?').unwrap();
        let (segment, last) = path.split_once('/').unwrap();
        prop_assert_eq!(last, "x");
        let unreserved = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte));
        prop_assert!(unreserved(segment) && !request.url().contains('#'));
        let pairs: Vec<_> = query.split('&').collect();
        prop_assert_eq!(pairs.len(), 3);
        prop_assert!(unreserved(pairs[0].strip_prefix("q=").unwrap()));
        prop_assert_eq!(pairs[1], "z=1");
        prop_assert_eq!(pairs[2].strip_prefix("again=").unwrap(), pairs[0].strip_prefix("q=").unwrap());
    }

    /// Whatever the value, a JSON body has the author's keys, with the value in its place.
    #[test]
    fn no_value_changes_the_structure_of_a_body(q in "\\PC{0,30}|[\"\\\\{},:\\[\\]]{0,10}") {
        let declaration = tool(
            "url: https://a.example/\nmethod: POST\njson: {a: \"${args.q}\", b: \"<${args.q}>\"}",
            "",
            "unused",
        );
        let request = request(&declaration, &json!({"id": "x", "q": q})).unwrap();
        let sent: Value = serde_json::from_slice(request.body_bytes.as_deref().unwrap()).unwrap();
        prop_assert_eq!(sent, json!({"a": q, "b": format!("<{q}>")}));
    }
}
