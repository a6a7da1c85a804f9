//! Results as JSON survive a round trip.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_tool::{CallId, Content, ErrorKind, Link, ToolError, ToolOutput, ToolResult};

fn round(result: &ToolResult) -> ToolResult {
    let text = serde_json::to_string(result).expect("it is plain data");
    serde_json::from_str(&text).expect("what was written is read")
}

#[test]
fn every_kind_of_part_survives_a_round_trip() {
    let mime_type = "image/png".to_owned();
    let mut link = Link::new("a:b", "n").mime_type("x/y");
    link.title = Some("N".into());
    link.description = Some("An n.".into());
    link.size = Some(3);
    let output = ToolOutput::from("text")
        .with_content(Content::Image { data: vec![0, 255, 7], mime_type: mime_type.clone() })
        .with_content(Content::Audio { data: vec![], mime_type: mime_type.clone() })
        .with_content(link)
        .with_content(Link::new("a:b", "n"))
        .with_content(Content::TextFile {
            uri: "f".into(),
            text: "t".into(),
            mime_type: Some("text/plain".into()),
        })
        .with_content(Content::TextFile { uri: "f".into(), text: "t".into(), mime_type: None })
        .with_content(Content::Blob { uri: "f".into(), data: vec![1], mime_type })
        .with_data(Value::Null)
        .with_meta("exit_code", 3);
    let duration = Duration::from_nanos(1_234_567);
    let result = ToolResult::success(CallId::new("1"), "t", output, duration)
        .with_truncated(true)
        .with_cached(true);
    let back = round(&result);
    assert_eq!(back, result);
    assert_eq!(back.data(), Some(&Value::Null));
}

#[test]
fn a_failure_keeps_everything() {
    for &kind in ErrorKind::ALL {
        let error = ToolError::new(kind, "broken")
            .with_hint("mend it")
            .with_retryable(true)
            .with_retry_after(Duration::from_millis(7_500))
            .with_partial(ToolOutput::from(json!({"half": 1})))
            .with_source(std::io::Error::other("because"));
        let result = ToolResult::failure(CallId::new("1"), "t", error, Duration::ZERO);
        let back = round(&result);
        assert_eq!(back, result);
        let error = back.error().expect("a failure");
        assert_eq!(error.retry_after(), Some(Duration::from_millis(7_500)));
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("because"));
    }
}

#[test]
fn a_part_of_an_unknown_type_is_refused() {
    for text in [r#"{"type": "smell"}"#, r#"{"type": "image", "data": "?", "mime_type": ""}"#, "3"]
    {
        let text = format!(r#"{{"content": [{text}]}}"#);
        assert!(serde_json::from_str::<ToolOutput>(&text).is_err(), "{text}");
    }
}

#[test]
fn an_unknown_kind_is_refused_by_name() {
    let text = r#"{"kind": "odd", "message": "", "retryable": false}"#;
    let error = serde_json::from_str::<ToolError>(text).expect_err("it is unknown");
    assert!(error.to_string().contains("\"odd\" is not a kind of failure"), "{error}");
}

#[test]
fn data_keeps_its_numbers_as_written() {
    let text = r#"{"id":123456789012345678901,"rate":0.1000000000000000055}"#;
    let data = toolcrib_tool::Data::from_json(text).unwrap();
    let output = ToolOutput::new().with_exact_data(data);
    let result = ToolResult::success(CallId::new("1"), "t", output, Duration::ZERO);
    let kept = serde_json::to_string(&result).unwrap();
    let read: ToolResult = serde_json::from_str(&kept).unwrap();
    assert_eq!(read, result);
    assert_eq!(read.exact_data().unwrap().to_json(), text);
    // Also through a `Value`, which rounds numbers.
    let value = serde_json::to_value(&result).unwrap();
    assert_eq!(serde_json::from_value::<ToolResult>(value).unwrap(), result);
    assert!(result.to_json().contains(&format!(r#""data":{text}"#)));
}
