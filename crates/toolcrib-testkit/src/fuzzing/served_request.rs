//! Requests to the served APIs.

use serde_json::Value;
use toolcrib_wire::api::ApiError;
use toolcrib_wire::chat::ChatRequest;
use toolcrib_wire::responses::{
    CompactRequest, InputItem, ResponseRequest, ResponseResource, ResponseWriter, WriterSettings,
};

use crate::served::{Dialect, check_events};

/// Any bytes as the body of a request to the Responses API and to chat completions.
///
/// - Only a JSON object is read; an error is one of the client, with a code and, within an object, a parameter.
/// - Reading twice gives the same. Every item is listed with an id and a type.
/// - A response to whatever was read is what the specification says.
pub fn served_request(data: &[u8]) {
    let Ok(body) = std::str::from_utf8(data) else { return };
    let is_object = serde_json::from_str::<Value>(body).is_ok_and(|body| body.is_object());
    let read = ResponseRequest::read(body);
    assert_eq!(read, ResponseRequest::read(body));
    match &read {
        Ok(request) => {
            assert!(is_object, "only an object is a request");
            assert_items(&request.input);
            request.history("fuzz/m");
            assert!(
                request.submissions().count() + request.approvals().count() <= request.input.len()
            );
            assert_response(request);
        }
        Err(error) => assert_error(error),
    }
    for error in [ResponseRequest::read_socket(body).err(), CompactRequest::read(body).err()] {
        error.iter().for_each(assert_error);
    }
    match ChatRequest::read(body) {
        Ok(request) => {
            assert!(is_object && !request.model.is_empty());
            assert_items(&request.input);
            request.history("fuzz/m");
        }
        Err(error) => assert_error(&error),
    }
}

fn assert_error(error: &ApiError) {
    assert_eq!(error.status, 400, "{error}");
    let code = error.code.as_deref().expect("a wrong request has a code");
    assert_eq!(error.param.is_none(), code == "invalid_json", "{error}");
}

fn assert_items(items: &[InputItem]) {
    for item in items {
        let listed = item.to_value(&mut |prefix| format!("{prefix}1"));
        assert!(listed["type"].is_string() && listed["id"].is_string(), "{listed}");
    }
}

fn assert_response(request: &ResponseRequest) {
    let resource = ResponseResource::new("resp_1", 1, "m", request);
    let mut writer = ResponseWriter::new(resource, WriterSettings::default(), || "1".to_owned());
    let mut events = writer.text("Hello.");
    events.extend(writer.complete(2, None));
    let events: Vec<Value> = events
        .iter()
        .map(|event| serde_json::from_str(event.json()).expect("an event is JSON"))
        .collect();
    check_events(Dialect::OpenAi, &events).expect("a response that the specification allows");
}
