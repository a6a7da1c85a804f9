//! The checker finds what is wrong.

use serde_json::{Value, json};
use toolcrib_testkit::served::{Dialect, check_events};
use toolcrib_wire::responses::{ResponseRequest, ResponseResource, ResponseWriter, WriterSettings};

fn events() -> Vec<Value> {
    let request = ResponseRequest::read(r#"{"model": "m", "input": "Hello."}"#).unwrap();
    let resource = ResponseResource::new("resp_1", 7, "m", &request);
    let mut writer = ResponseWriter::new(resource, WriterSettings::default(), || "x".to_owned());
    let mut events = writer.reasoning("Hm.");
    events.extend(writer.text("Hel"));
    events.extend(writer.text("lo."));
    events.extend(writer.complete(9, None));
    events.iter().map(|event| serde_json::from_str(event.json()).unwrap()).collect()
}

fn position(events: &[Value], name: &str) -> usize {
    events.iter().position(|event| event["type"] == name).unwrap()
}

/// Changes the events of a right stream, and gives what the checker says about them.
fn problem(change: impl FnOnce(&mut Vec<Value>)) -> String {
    let mut events = events();
    change(&mut events);
    check_events(Dialect::OpenAi, &events).unwrap_err()
}

#[test]
fn a_right_stream_passes() {
    let checked = check_events(Dialect::OpenAi, &events()).unwrap();
    assert_eq!(checked.names[0], "response.created");
    assert_eq!(checked.response["output"][1]["content"][0]["text"], "Hello.");
}

#[test]
fn what_servers_get_wrong_is_found() {
    let renumber = |events: &mut Vec<Value>| {
        for (number, event) in events.iter_mut().enumerate() {
            event["sequence_number"] = number.into();
        }
    };
    let without = |name: &'static str| {
        move |events: &mut Vec<Value>| {
            events.remove(position(events, name));
            renumber(events);
        }
    };
    for name in [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.reasoning_summary_part.added",
        "response.output_item.done",
        "response.completed",
    ] {
        problem(without(name));
    }
    let says = |wanted: &str, change: &dyn Fn(&mut Vec<Value>)| {
        let said = problem(|events| change(events));
        assert!(said.contains(wanted), "{said}");
    };
    says("number must be 3", &|events| events[3]["sequence_number"] = 7.into());
    says("nothing follows", &|events| {
        let mut again = events.last().unwrap().clone();
        again["sequence_number"] = events.len().into();
        events.push(again);
    });
    let last = |events: &mut Vec<Value>| events.len() - 1;
    says("`tools` must not be missing or null", &|events| {
        let last = last(events);
        events[last]["response"]["tools"] = Value::Null;
    });
    says("`error` must be there", &|events| {
        let last = last(events);
        events[last]["response"].as_object_mut().unwrap().remove("error");
    });
    says("in the output", &|events| {
        let last = last(events);
        events[last]["response"]["output"].as_array_mut().unwrap().reverse();
    });
    says("changed its id", &|events| {
        let last = last(events);
        events[last]["response"]["id"] = "resp_2".into();
    });
    says("not what its events say", &|events| {
        let at = position(events, "response.output_text.delta");
        events[at]["delta"] = "Hol".into();
    });
    says("no type", &|events| {
        let at = position(events, "response.output_item.added");
        events[at]["item"]["type"] = "thought".into();
    });
    says("prefixed", &|events| {
        let at = position(events, "response.output_item.added");
        events[at]["item"] = json!({"id": "mcp_1", "type": "mcp_call"});
        let error = check_events(Dialect::Open, events).unwrap_err();
        assert!(error.contains("prefixed"), "{error}");
        events[at]["item"]["type"] = "toolcrib:prefixed".into();
    });
}
