//! The stream stays consistent for any order of several calls' steps.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use toolcrib_tool::{CallId, Content, ErrorKind, ToolCall, ToolError, ToolOutput, ToolResult};
use toolcrib_wire::responses::{CallKind, EventName, ResponseEvent, ResponseStream};

use crate::responses::stream;

const CALLS: usize = 5;

#[derive(Debug, Clone, Copy)]
enum Step {
    Prepare,
    Open,
    Write,
    Arguments,
    Working,
    PartialImage,
    Complete,
    Fail,
    Cancel,
    HandOver,
    Abandon,
}

fn step() -> impl Strategy<Value = Step> {
    use Step::*;
    prop::sample::select(vec![
        Prepare,
        Open,
        Write,
        Arguments,
        Working,
        PartialImage,
        Complete,
        Fail,
        Cancel,
        HandOver,
        Abandon,
    ])
}

fn kind() -> impl Strategy<Value = CallKind> {
    prop::sample::select(vec![
        CallKind::Function,
        CallKind::Custom,
        CallKind::FileSearch,
        CallKind::WebSearch,
        CallKind::ImageGeneration,
        CallKind::CodeInterpreter,
        CallKind::Mcp { server_label: "m".into() },
        CallKind::LocalShell,
    ])
}

const ARGUMENTS: &str = r#"{"command": ["ls"], "query": "q", "code": "1", "input_data": "i"}"#;

/// The step's events; empty if the stream refuses the step.
fn take(
    stream: &mut ResponseStream,
    call: usize,
    kind: &CallKind,
    step: Step,
) -> Vec<ResponseEvent> {
    let id = CallId::new(format!("call_{call}"));
    let failed =
        |kind| ToolResult::failure(id.clone(), "tool", ToolError::new(kind, "no"), Duration::ZERO);
    let picture = Content::Image { data: vec![7], mime_type: "image/png".into() };
    let output = ToolOutput::from("x").with_content(picture);
    let events = match step {
        Step::Prepare => {
            stream.prepare(&ToolCall::new(id.as_str(), "tool", ARGUMENTS), kind.clone())
        }
        Step::Open => stream.open(&id, "tool", kind.clone()),
        Step::Write => stream.write(&id, "{"),
        Step::Arguments => stream.arguments(&id, ARGUMENTS),
        Step::Working => stream.working(&id),
        Step::PartialImage => stream.partial_image(&id, &[1]),
        Step::Complete => {
            let result = ToolResult::success(id.clone(), "tool", output, Duration::ZERO);
            stream.complete(&result).map(|finished| finished.events)
        }
        Step::Fail => stream.complete(&failed(ErrorKind::Execution)).map(|f| f.events),
        Step::Cancel => stream.complete(&failed(ErrorKind::Cancelled)).map(|f| f.events),
        Step::HandOver => stream.hand_over(&id).map(|finished| finished.events),
        Step::Abandon => stream.abandon(&id).map(|finished| finished.events),
    };
    events.unwrap_or_default()
}

proptest! {
    #[test]
    fn any_interleaving_keeps_the_stream_consistent(
        kinds in vec(kind(), CALLS),
        steps in vec((0..CALLS, step()), 0..80),
    ) {
        let mut stream = stream();
        let mut events = Vec::new();
        for (call, step) in steps {
            events.extend(take(&mut stream, call, &kinds[call], step));
        }
        events.extend(stream.close());

        // Sequence numbers have no gaps.
        for (expected, event) in (0_u64..).zip(&events) {
            prop_assert_eq!(event.sequence_number(), expected);
            prop_assert_eq!(&event.to_value()["sequence_number"], expected);
        }
        // One item for each position, and positions without gaps, in the order of the items.
        let mut items: BTreeMap<u64, Vec<&ResponseEvent>> = BTreeMap::new();
        for event in &events {
            items.entry(event.output_index()).or_default().push(event);
        }
        for (expected, index) in (0_u64..).zip(items.keys()) {
            prop_assert_eq!(*index, expected);
        }
        let mut ids: Vec<&str> = items.values().map(|life| life[0].item_id()).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), items.len());
        let mut last_added = None;
        for life in items.values() {
            // Each item is added first and done last, with no such event in between.
            prop_assert_eq!(life[0].name(), EventName::ItemAdded);
            prop_assert_eq!(life[life.len() - 1].name(), EventName::ItemDone);
            for event in &life[1..life.len() - 1] {
                prop_assert!(event.item().is_none(), "{:?}", event);
            }
            for event in life {
                prop_assert_eq!(event.item_id(), life[0].item_id());
                let id = event.item().map_or(event.to_value()["item_id"].clone(), |item| item["id"].clone());
                prop_assert_eq!(id, event.item_id());
            }
            prop_assert!(last_added < Some(life[0].sequence_number()));
            last_added = Some(life[0].sequence_number());
            // The streamed text is a prefix of the whole.
            let text = |event: &&ResponseEvent| {
                event.to_value().get("delta").and_then(|delta| delta.as_str().map(str::to_owned))
            };
            let streamed: String = life.iter().filter_map(text).collect();
            let whole = life[life.len() - 1].item().and_then(|item| {
                ["arguments", "input", "code"].into_iter().find_map(|key| item.get(key)?.as_str())
            });
            if let Some(whole) = whole {
                let mended = streamed.starts_with("{{") || !whole.starts_with('{');
                prop_assert!(whole == streamed || mended, "{} / {}", streamed, whole);
            }
        }
        // The final output repeats the last state of every item.
        let output: Vec<_> = stream.output().map(|(index, item)| (index, item.clone())).collect();
        let last: Vec<_> = items
            .iter()
            .filter_map(|(index, life)| Some((*index, life[life.len() - 1].item()?.clone())))
            .collect();
        prop_assert_eq!(output, last);
    }
}
