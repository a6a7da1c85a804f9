//! Failed requests: the kind, the text, what to do next, and whether to retry.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use toolcrib_manifest::load_str;
use toolcrib_tool::{ErrorKind, ToolError};

use super::server::{Server, answer};
use super::{call, tool};

const READS: &str = "annotations: {read_only: true, idempotent: true}";

/// The failure of a tool with this annotation for this status.
async fn failed(
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    beside: &str,
) -> (ToolError, String) {
    let server = Server::always(status, headers, "why: because").await;
    let error = call(&tool("url: http://HERE/", beside, &server.host()), json!({"id": "x"}))
        .await
        .unwrap_err();
    (error, server.host())
}

#[tokio::test]
async fn a_failed_status_includes_the_response_and_what_to_do_next() {
    for (status, phrase, kind, hint) in [
        (400, "400 Bad Request", ErrorKind::Execution, "correct them"),
        (401, "401 Unauthorized", ErrorKind::Execution, "tell the user"),
        (403, "403 Forbidden", ErrorKind::Execution, "tell the user"),
        (404, "404 Not Found", ErrorKind::Execution, "tell the user"),
        (409, "409 Conflict", ErrorKind::Execution, "current state"),
        (422, "422 Unprocessable Entity", ErrorKind::Execution, "correct them"),
        (429, "429 Too Many Requests", ErrorKind::RateLimited, "Wait before"),
        (500, "500 Internal Server Error", ErrorKind::Execution, "arguments are not the cause"),
        (503, "503 Service Unavailable", ErrorKind::Unavailable, "Wait before"),
        (304, "304 Not Modified", ErrorKind::Execution, "is a redirect"),
        (599, "599", ErrorKind::Execution, "The service failed"),
    ] {
        let (error, address) = failed(status, &[], READS).await;
        assert_eq!(error.message(), format!("{address} answered {phrase}"));
        assert_eq!(error.kind(), kind, "{status}");
        assert!(
            error.hints().iter().any(|found| found.contains(hint)),
            "{status} {:?}",
            error.hints()
        );
        let partial = error.partial().unwrap();
        if status != 304 {
            assert_eq!(partial.text(), "why: because", "{status}");
        }
        assert_eq!(partial.meta()["status"], status);
    }
}

#[tokio::test]
async fn only_a_missing_place_that_an_argument_names_asks_for_other_arguments() {
    let hints = async |url: &str| {
        let server = Server::always(404, &[], "").await;
        let error = call(&tool(url, READS, &server.host()), json!({"id": "x"})).await.unwrap_err();
        error.hints().join(" ")
    };
    for url in ["url: http://HERE/${args.id}", "url: \"http://HERE/?id=${args.id}\""] {
        let said = hints(url).await;
        assert!(said.contains("check the arguments"), "{url}: {said}");
    }
    let said = hints("url: http://HERE/hook").await;
    assert!(said.contains("No argument can change that") && !said.contains("check"), "{said}");
}

#[tokio::test]
async fn temporary_failures_are_retryable_after_a_delay() {
    let later = &[("retry-after", "7")];
    let (error, _) = failed(429, later, "").await;
    assert!(error.retryable());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert_eq!(error.hints(), ["Wait 7 s before you call again."]);
    let (error, _) = failed(503, later, READS).await;
    assert!(error.retryable() && error.retry_after() == Some(Duration::from_secs(7)));
    // A call that changes something may have taken effect: a proxy does not know.
    for status in [502, 503, 504] {
        let (error, _) = failed(status, &[], "").await;
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{status}");
    }
    let (error, _) = failed(503, &[], "").await;
    assert!(!error.retryable());
    assert!(error.hints().iter().any(|hint| hint.contains("taken effect")), "{:?}", error.hints());
    let (error, _) = failed(500, &[], READS).await;
    assert!(!error.retryable() && error.hints().len() == 1);
}

#[tokio::test]
async fn a_failure_after_a_redirect_says_that_credentials_were_not_sent() {
    let server = Server::start(|path| async move {
        if path == "/" { answer(302, &[("location", "/x")], "") } else { answer(401, &[], "") }
    })
    .await;
    let declaration =
        tool("url: http://HERE/\nauth: {bearer: \"${secret.token}\"}", "", &server.host());
    let error = call(&declaration, json!({"id": "x"})).await.unwrap_err();
    assert!(error.hints()[0].contains("not sent after a redirect"), "{:?}", error.hints());
}

#[tokio::test]
async fn a_refused_connection_is_unavailable_and_nothing_was_sent() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let declaration = tool("url: http://HERE/s3cr3t?s3cr3t", "", &nobody.to_string());
    let error = call(&declaration, json!({"id": "x"})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.retryable());
    assert!(
        error.message().starts_with(&format!("cannot connect to http://{nobody}: ")),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("s3cr3t"), "{error:?}");
}

/// The address is not a literal here, so it is known only when the name is resolved.
#[tokio::test]
async fn a_name_with_a_private_address_is_denied() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let text = format!(
        "toolcrib: 1\ntools:\n  - name: t\n    description: T.\n    http: {{url: 'http://ip6-localhost:{port}/', allow_private: [10.0.0.0/8]}}\n"
    );
    let declaration = load_str("t.yaml", &text).declarations.remove(0);
    let error = call(&declaration, json!({})).await.unwrap_err();
    // If the name cannot be resolved, the error differs, but no connection is made.
    if error.kind() == ErrorKind::Denied {
        assert!(
            error.message().contains("a loopback address; connections to it are not allowed"),
            "{error}"
        );
        assert_eq!(error.hints(), ["No argument can change that: tell the user."]);
        assert!(!error.retryable());
    } else {
        assert!(error.message().contains("cannot be resolved"), "{error}");
    }
    let connected = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(connected.is_err());
}

/// A redirect into the private network, from a server that is allowed.
#[tokio::test]
async fn a_redirect_to_a_private_address_is_denied() {
    for location in ["http://169.254.169.254/latest/", "http://localhost/", "http://127.0.0.2/"] {
        let headers: &'static [(&str, &str)] =
            Vec::leak(vec![("location", &*String::leak(location.to_owned()))]);
        let (error, _) = failed(302, headers, READS).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{location}: {error}");
        assert!(!error.retryable());
    }
}

#[tokio::test]
async fn a_hanging_server_times_out_at_the_tools_limit() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (closed, mut when_closed) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let closed = closed.clone();
            tokio::spawn(async move {
                let mut asked = [0; 1024];
                let _ = socket.read(&mut asked).await;
                let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await;
                while socket.read(&mut asked).await.is_ok_and(|read| read > 0) {}
                let _ = closed.send(());
            });
        }
    });
    let began = Instant::now();
    let declaration = tool("url: http://HERE/", "limits: {timeout: 200ms}", &address);
    let error = call(&declaration, json!({"id": "x"})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.message(), format!("{address} gave no complete answer within 200ms"));
    assert!(error.hints()[0].contains("taken effect"), "{:?}", error.hints());
    // Less than the default limit of a request.
    assert!(began.elapsed() < Duration::from_secs(15));
    when_closed.recv().await.unwrap();

    // A cancelled call is dropped, so its connection closes at once.
    let declaration = tool("url: http://HERE/", "", &address);
    let running = tokio::spawn(async move { call(&declaration, json!({"id": "x"})).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    running.abort();
    let closed = tokio::time::timeout(Duration::from_secs(1), when_closed.recv()).await;
    assert_eq!(closed, Ok(Some(())));
}

#[tokio::test]
async fn a_truncated_response_is_outcome_unknown_unless_the_call_is_repeatable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.read(&mut [0; 1024]).await;
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await;
        }
    });
    let error =
        call(&tool("url: http://HERE/", "", &address), json!({"id": "x"})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert!(!error.retryable() && error.hints()[0].contains("taken effect"), "{error:?}");
    let reading = tool("url: http://HERE/", READS, &address);
    let error = call(&reading, json!({"id": "x"})).await.unwrap_err();
    assert!(error.retryable() && error.hints().is_empty(), "{error:?}");
}
