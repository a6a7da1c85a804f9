//! Outputs that clients submit.

use serde_json::{Value, json};
use toolcrib_tool::{Content, Link, ToolOutput};
use toolcrib_wire::responses::{RequiredAction, read_output_items, read_tool_outputs};

#[test]
fn an_output_is_a_text_or_data_or_nothing() {
    let answers = read_tool_outputs(&json!({"tool_outputs": [
        {"tool_call_id": "a", "output": "  "},
        {"tool_call_id": "b"},
        {"tool_call_id": "c", "output": {"free": 3}},
        {"tool_call_id": "d", "output": null},
    ]}))
    .unwrap();
    let outputs: Vec<&ToolOutput> = answers.iter().map(|answer| &answer.output).collect();
    // A blank text is kept; the run decides what replaces it.
    assert_eq!(outputs[0].text(), "  ");
    assert_eq!(outputs[1].text(), "");
    assert_eq!(outputs[2].data(), Some(&json!({"free": 3})));
    assert_eq!(outputs[3].text(), "");
    assert_eq!(read_tool_outputs(&json!({"tool_outputs": []})).unwrap(), []);
}

#[test]
fn the_parts_of_an_item_are_read_with_their_bytes() {
    let answers = read_output_items(&json!([
        {"type": "message", "role": "user", "content": "hello"},
        {"type": "function_call_output", "call_id": "a", "output": [
            {"type": "input_text", "text": "a picture"},
            {"type": "input_image", "image_url": "data:image/png;base64,AP8H"},
            {"type": "input_image", "image_url": "https://example.com/a.png"},
            {"type": "input_file", "filename": "r.pdf", "file_data": "data:application/pdf;base64,JVA="},
        ]},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "patched"},
        {"type": "local_shell_call_output", "call_id": "c", "id": "lsho_1", "output": "ok"},
    ]))
    .unwrap();
    assert_eq!(
        answers[0].output.content(),
        [
            Content::text("a picture"),
            Content::Image { data: vec![0, 255, 7], mime_type: "image/png".into() },
            Link::new("https://example.com/a.png", "image").into(),
            Content::Blob {
                uri: "r.pdf".into(),
                data: vec![37, 80],
                mime_type: "application/pdf".into(),
            },
        ]
    );
    let ids: Vec<&str> = answers.iter().map(|answer| answer.call_id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(read_output_items(&json!("just a question")).unwrap(), []);
    assert_eq!(read_output_items(&Value::Null).unwrap(), []);
}

#[test]
fn unreadable_output_is_reported_with_its_position() {
    let outputs = |body: Value| read_tool_outputs(&body).unwrap_err().to_string();
    assert_eq!(
        outputs(json!([])),
        r#"the outputs: send {"tool_outputs": [{"tool_call_id", "output"}]}"#
    );
    let twice = json!({"tool_outputs": [
        {"tool_call_id": "a", "output": "1"}, {"tool_call_id": "a", "output": "2"},
    ]});
    assert_eq!(
        outputs(twice),
        r#"/tool_outputs/1: call "a" is answered twice; send one output for each call"#
    );
    let items = |item: Value| read_output_items(&json!([item])).unwrap_err().to_string();
    for (item, says) in [
        (json!({"type": "function_call_output", "output": "x"}), "/0: `call_id` must be"),
        (
            json!({"type": "function_call_output", "id": "a", "output": "x"}),
            "/0: `call_id` must be",
        ),
        (json!({"type": "local_shell_call_output", "output": "x"}), "/0: `call_id` or `id` must"),
        (json!({"type": "function_call_output", "call_id": "a"}), "/0/output: must be text"),
        (json!({"type": "function_call_output", "call_id": "a", "output": {}}), "/0/output: must"),
    ] {
        let error = items(item);
        assert!(error.starts_with(says), "{error}");
    }
    for (part, says) in [
        (json!({"type": "input_image", "file_id": "file_1"}), "data URL"),
        (json!({"type": "input_image"}), "`image_url`"),
        (json!({"type": "input_image", "image_url": "data:image/png;base64,*"}), "data URL"),
        (json!({"type": "input_file"}), "`file_data`"),
        (json!({"type": "input_text"}), "`text`"),
        (json!({"type": "video"}), "`type`"),
    ] {
        let item = json!({"type": "custom_tool_call_output", "call_id": "a", "output": ["", part]});
        assert!(items(item).starts_with("/0/output/0: `type`"));
        let error =
            items(json!({"type": "custom_tool_call_output", "call_id": "a", "output": [part]}));
        assert!(error.starts_with("/0/output/0: ") && error.contains(says), "{error}");
    }
}

#[test]
fn a_foreign_action_is_not_read() {
    for value in [
        json!({}),
        json!({"type": "other"}),
        json!({"type": "submit_tool_outputs"}),
        json!({"type": "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": [{"id": "a"}]}}),
    ] {
        assert_eq!(RequiredAction::from_value(&value), None);
    }
}
