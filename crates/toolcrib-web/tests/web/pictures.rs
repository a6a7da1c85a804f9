//! `image_generate` against servers shaped like OpenAI's images endpoint.

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use toolcrib_core::StreamItem;
use toolcrib_tool::{Content, ErrorKind, ToolCall};
use toolcrib_web::{ImageSettings, WebSettings};

use crate::harness::{Crib, Noted, Server, json as json_answer};

/// Three bytes of a PNG and of a JPEG, in base64.
const PNG: &str = "iVBO";
const JPEG: &str = "/9j/4A==";

fn answer(noted: &Noted) -> Response {
    let path = noted.path.as_str();
    match path {
        "/v1/images/generations" if noted.body.windows(8).any(|part| part == b"\"stream\"") => {
            let events = format!(
                "event: image_generation.partial_image\ndata: {{\"type\": \"image_generation.partial_image\", \
                 \"b64_json\": \"{PNG}\", \"partial_image_index\": 0}}\n\nevent: image_generation.completed\n\
                 data: {{\"type\": \"image_generation.completed\", \"b64_json\": \"{JPEG}\", \"usage\": \
                 {{\"total_tokens\": 7}}}}\n\n"
            );
            ([("content-type", "text/event-stream")], events).into_response()
        }
        "/v1/images/generations" => json_answer(
            &json!({"data": [{"b64_json": JPEG, "revised_prompt": "A red boat"}], "usage": {"total_tokens": 5}}),
        ),
        "/url/images/generations" => {
            let host = noted.header("host").unwrap_or_default();
            json_answer(&json!({"data": [{"url": format!("http://{host}/picture")}]}))
        }
        "/inside/images/generations" => {
            json_answer(&json!({"data": [{"url": "http://127.0.0.1:9/picture"}]}))
        }
        "/picture" => ([("content-type", "image/jpeg")], vec![0xff, 0xd8, 0xff]).into_response(),
        "/refused/images/generations" => (
            StatusCode::BAD_REQUEST,
            json_answer(
                &json!({"error": {"message": "The prompt was rejected by the safety system"}}),
            ),
        )
            .into_response(),
        "/cut/images/generations" => {
            ([("content-type", "text/event-stream")], "data: {\"type\": \"x\"}\n\n").into_response()
        }
        _ => StatusCode::UNAUTHORIZED.into_response(),
    }
}

fn crib(server: &Server, path: &str, partial_images: u32) -> Crib {
    let mut images = ImageSettings::new(server.url(path), "paint-1");
    images.api_key = Some("good".to_owned());
    images.partial_images = partial_images;
    let mut settings = WebSettings::default();
    settings.images = Some(images);
    Crib::new(settings)
}

#[tokio::test]
async fn a_picture_is_made_with_what_the_call_asks_for() {
    let server = Server::new(answer).await;
    let crib = crib(&server, "/v1", 0);
    let arguments = json!({"prompt": "a boat", "size": "1024x1024", "quality": "low"});
    let result = crib.call("image_generate", arguments).await;
    assert!(result.is_success(), "{}", result.text());
    let output = result.output().expect("an output");
    let picture =
        Content::Image { data: vec![0xff, 0xd8, 0xff, 0xe0], mime_type: "image/jpeg".to_owned() };
    assert_eq!(output.content()[1], picture);
    assert_eq!(output.data().expect("data")["revised_prompt"], "A red boat");
    let asked = &server.noted()[0];
    assert_eq!(asked.header("authorization"), Some("Bearer key-of-the-test"));
    let body: Value = serde_json::from_slice(&asked.body).expect("JSON");
    let expected = json!({"model": "paint-1", "prompt": "a boat", "n": 1, "size": "1024x1024", "quality": "low"});
    assert_eq!(body, expected);
}

#[tokio::test]
async fn intermediate_pictures_are_streamed() {
    let server = Server::new(answer).await;
    let crib = crib(&server, "/v1", 2);
    let turn = crib.executor.turn(crib.options("ada"));
    let mut items = turn.stream(ToolCall::new("1", "image_generate", json!({"prompt": "a boat"})));
    let (mut partial, mut last) = (Vec::new(), None);
    while let Some(item) = items.next().await {
        match item {
            StreamItem::Event(event) if event.name() == "call.output" => {
                partial.push(event.to_value()["payload"]["data"].clone());
            }
            StreamItem::Answer(answer) => last = Some(answer),
            StreamItem::Event(_) => {}
        }
    }
    assert_eq!(partial, [PNG]);
    assert!(last.is_some());
}

#[tokio::test]
async fn a_picture_at_an_address_is_fetched_from_the_endpoint_or_the_public_internet_only() {
    let server = Server::new(answer).await;
    let result = crib(&server, "/url", 0).call("image_generate", json!({"prompt": "x"})).await;
    assert_eq!(result.data().expect("data")["bytes"], 3, "{}", result.text());
    let refused = crib(&server, "/inside", 0);
    let text = refused.fails("image_generate", json!({"prompt": "x"}), ErrorKind::Execution).await;
    assert!(text.contains("not allowed") && text.contains("charged"), "{text}");
}

#[tokio::test]
async fn failures_of_the_endpoint_say_what_to_do() {
    let server = Server::new(answer).await;
    for (path, kind, parts) in [
        ("/refused", ErrorKind::Execution, ["rejected by the safety system", "prompt"]),
        ("/cut", ErrorKind::OutcomeUnknown, ["broke off", "ask the user"]),
        ("/other", ErrorKind::Unavailable, ["401", "`images`"]),
    ] {
        let text =
            crib(&server, path, 1).fails("image_generate", json!({"prompt": "x"}), kind).await;
        for part in parts {
            assert!(text.contains(part), "{path}: {text}");
        }
    }
}
