//! HTTP responses, as the model and programs see them.

use serde_json::json;
use toolcrib_tool::{Content, ErrorKind, ToolError, ToolOutput};

use super::server::{Server, answer};
use super::{call, tool};

const JSON: &[(&str, &str)] = &[("content-type", "application/json; charset=utf-8")];
const TEXT: &[(&str, &str)] = &[("content-type", "text/plain")];

/// The result of a tool with these lines for a response.
async fn made(
    headers: &'static [(&'static str, &'static str)],
    body: impl Into<Vec<u8>>,
    http: &str,
    beside: &str,
) -> Result<ToolOutput, ToolError> {
    let server = Server::always(200, headers, body).await;
    let declaration = tool(&format!("url: http://HERE/\n{http}"), beside, &server.host());
    call(&declaration, json!({"id": "x"})).await
}

#[tokio::test]
async fn a_response_is_read_by_its_content_type() {
    let output = made(JSON, r#"{"b": [1, "x"], "a": null}"#, "", "").await.unwrap();
    assert_eq!(output.data(), Some(&json!({"b": [1, "x"], "a": null})));
    assert_eq!(output.text(), r#"{"a":null,"b":[1,"x"]}"#);
    assert_eq!(output.meta()["status"], 200);
    assert_eq!(output.meta()["content_type"], "application/json");
    assert_eq!(output.meta()["body_bytes"], 26);

    let problem = &[("content-type", "application/problem+json")];
    assert_eq!(made(problem, "[1]", "", "").await.unwrap().data(), Some(&json!([1])));
    let plain = made(TEXT, "{\"a\": 1}", "", "").await.unwrap();
    assert_eq!((plain.text().as_ref(), plain.data()), ("{\"a\": 1}", None));
    let unsaid = made(&[], "\u{feff}grüße", "", "").await.unwrap();
    assert_eq!(unsaid.text(), "grüße");

    let png = made(&[("content-type", "image/png")], *b"\x89PNG", "", "").await.unwrap();
    let picture = Content::Image { data: b"\x89PNG".to_vec(), mime_type: "image/png".into() };
    assert_eq!(png.content(), [picture]);
    let zip = made(&[("content-type", "application/zip")], *b"PK\x03\x04\x00\xff", "", "").await;
    let zip = zip.unwrap_err();
    assert!(
        zip.message().ends_with("answered 6 bytes of application/zip, which is not text"),
        "{zip}"
    );
}

#[tokio::test]
async fn an_empty_response_shows_its_status() {
    let server = Server::always(204, &[], "").await;
    let declaration = tool("url: http://HERE/\nmethod: DELETE", "", &server.host());
    let output = call(&declaration, json!({"id": "x"})).await.unwrap();
    assert_eq!(output.text(), "204 No Content");
    assert_eq!(server.seen()[0].line, "DELETE /");
    let head = tool("url: http://HERE/\nmethod: HEAD", "", &server.host());
    assert_eq!(call(&head, json!({"id": "x"})).await.unwrap().text(), "204 No Content");
    let json = tool("url: http://HERE/", "output: {format: json}", &server.host());
    let error = call(&json, json!({"id": "x"})).await.unwrap_err();
    assert!(
        error.message().ends_with("answered 204 No Content without the expected JSON"),
        "{error}"
    );
}

#[tokio::test]
async fn the_selected_part_is_the_result() {
    let body = r#"{"ticket": {"id": 7, "t/a~b": ["x", "y"]}, "rest": "no"}"#;
    let select = async |pointer: &str, beside: &str| {
        made(TEXT, body, &format!("select: {pointer}"), beside).await
    };
    let ticket = select("/ticket", "").await.unwrap();
    assert_eq!(ticket.data(), Some(&json!({"id": 7, "t/a~b": ["x", "y"]})));
    let text = select("/ticket/t~1a~0b/1", "").await.unwrap();
    assert_eq!((text.text().as_ref(), text.data()), ("y", Some(&json!("y"))));
    let as_text = select("/ticket/id", "output: {format: text}").await.unwrap();
    assert_eq!((as_text.text().as_ref(), as_text.data()), ("7", None));
    let error = select("/tickets", "").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Execution);
    assert!(error.message().ends_with("answered JSON with nothing at `/tickets`"), "{error}");
    assert!(error.partial().unwrap().text().contains("\"ticket\""));
}

#[tokio::test]
async fn invalid_json_fails_with_its_position_and_beginning() {
    for (beside, http) in
        [("output: {format: json}", ""), ("output_schema: {type: object}", ""), ("", "select: /a")]
    {
        let error = made(TEXT, "<html>no</html>", http, beside).await.unwrap_err();
        assert!(error.message().contains("answered with invalid JSON: "), "{error}");
        assert!(error.message().ends_with("at line 1 column 1"), "{error}");
        assert_eq!(error.partial().unwrap().text(), "<html>no</html>");
    }
    assert!(made(JSON, "nonsense", "", "").await.is_err());
}

#[tokio::test]
async fn limits_apply_after_the_selection() {
    let body = json!({"small": "abc", "large": "x".repeat(5_000)}).to_string();
    let small = "limits: {output: 1KiB}";
    let output = made(JSON, body.clone(), "select: /small", small).await.unwrap();
    assert_eq!(output.data(), Some(&json!("abc")));
    let error = made(JSON, body.clone(), "select: /large", small).await.unwrap_err();
    assert!(
        error.message().ends_with("answered 5000 bytes of JSON, more than the limit of 1024"),
        "{error}"
    );
    assert_eq!(error.hints(), ["Ask for less."]);
    // Text is cut as the tool declares.
    let text = "limits: {output: 8B}\noutput: {format: text, keep: tail}";
    let output = made(TEXT, "0123456789abcdefghij", "", text).await.unwrap();
    assert_eq!(output.text(), "[… 12 bytes omitted …]\ncdefghij");
    assert_eq!(output.meta()["truncated_bytes"], 12);
    let head = "limits: {output: 8B}\noutput: {keep: head}";
    let output = made(TEXT, "0123456789abcdefghij", "", head).await.unwrap();
    assert_eq!(output.text(), "01234567\n[… 12 bytes omitted …]\n");
    // A body over the read limit is an error.
    let error = made(TEXT, "x".repeat(2_000), "", "limits: {transfer: 1KiB}").await.unwrap_err();
    assert_eq!(error.message(), "the response is larger than 1024 bytes");
    assert_eq!(error.hints(), ["Ask for less."]);
}

#[tokio::test]
async fn lines_and_redaction_work_as_for_commands() {
    let lines = made(TEXT, "a b\r\n\nlast", "", "output: {format: lines}").await.unwrap();
    assert_eq!(lines.data(), Some(&json!(["a b", "", "last"])));
    let nothing = made(TEXT, "", "", "output: {format: lines}").await.unwrap();
    assert_eq!(nothing.data(), Some(&json!([])));
    let redact = "output: {redact: ['key-[a-z]+']}";
    let text = made(TEXT, "the key-abc \u{1b}[31m", "", redact).await.unwrap();
    assert_eq!(text.text(), "the [redacted] \\u{1b}[31m");
    let data = made(JSON, r#"{"k": "key-abc"}"#, "", redact).await.unwrap();
    assert_eq!(data.data(), Some(&json!({"k": "[redacted]"})));
    // A secret at the cut is removed completely.
    let cut = "output: {keep: head, redact: ['key-[a-z]+']}\nlimits: {output: 8B}";
    let cut = made(TEXT, "the key-abcdef", "", cut).await.unwrap();
    assert!(!cut.text().contains("key-"), "{}", cut.text());
}

#[tokio::test]
async fn redirects_are_followed_without_credentials_and_reported() {
    let other = Server::start(|_| async { answer(200, TEXT, "moved here") }).await;
    let to = format!("http://{}/new", other.host());
    let server = Server::start(move |path| {
        let to = if path == "/same" { "/there".to_owned() } else { to.clone() };
        async move {
            match path.as_str() {
                "/there" => answer(200, TEXT, "there"),
                _ => answer(302, &[("location", &to)], ""),
            }
        }
    })
    .await;
    let auth =
        "auth: {bearer: \"${secret.token}\"}\nheaders: {X-Key: \"${secret.token}\", X-Plain: a}";
    for (path, text) in [("same", "there"), ("other", "moved here")] {
        let declaration = tool(&format!("url: http://HERE/{path}\n{auth}"), "", &server.host());
        let output = call(&declaration, json!({"id": "x"})).await.unwrap();
        assert_eq!((output.text().as_ref(), &output.meta()["redirects"]), (text, &json!(1)));
    }
    let seen = server.seen();
    assert_eq!(seen[0].headers["authorization"], "Bearer s3cr3t-t0ken");
    assert_eq!(seen[0].headers["x-key"], "s3cr3t-t0ken");
    for (request, plain) in [(&seen[1], true), (&other.seen()[0], false)] {
        assert!(!request.headers.contains_key("authorization"), "{request:?}");
        assert!(!request.headers.contains_key("x-key"), "{request:?}");
        assert_eq!(request.headers.contains_key("x-plain"), plain, "{request:?}");
    }
    let found = tool("url: http://HERE/other\nexpect: {status: [302]}", "", &server.host());
    assert_eq!(call(&found, json!({"id": "x"})).await.unwrap().text(), "302 Found");
    assert_eq!(other.seen().len(), 1);
}

#[tokio::test]
async fn the_expected_statuses_are_the_successes() {
    let server = Server::start(|path| async move {
        let status = path.trim_start_matches('/').parse().unwrap();
        answer(status, TEXT, "text")
    })
    .await;
    let ends = async |status: u16, expect: &str| {
        let declaration = tool(&format!("url: http://HERE/{status}\n{expect}"), "", &server.host());
        call(&declaration, json!({"id": "x"})).await.is_ok()
    };
    assert!(ends(200, "").await && ends(206, "").await && !ends(404, "").await);
    let expect = "expect: {status: [201, 404]}";
    assert!(ends(201, expect).await && ends(404, expect).await && !ends(200, expect).await);
}
