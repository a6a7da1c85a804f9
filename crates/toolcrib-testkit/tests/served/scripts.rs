//! Random scripts for a writer of responses.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::json;
use toolcrib_testkit::served;
use toolcrib_tool::{CallId, Content, ErrorKind, ToolCall, ToolError, ToolOutput, ToolResult};
use toolcrib_wire::api::{SSE_DONE, StreamEvent};
use toolcrib_wire::model::{ModelItem, Usage, Wire};
use toolcrib_wire::responses::{
    CallKind, Dialect, Include, Phase, ResponseFailure, ResponseRequest, ResponseResource,
    ResponseWriter, WriterSettings,
};

/// One step of a script. Calls are those of a small set of ids.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Text(String),
    Refusal(String),
    Reasoning(String),
    Annotation,
    EndMessage(Option<bool>),
    Message(String),
    Answered(Vec<(u8, String, Option<bool>)>),
    Open(u8, u8),
    Arguments(u8, String),
    EndArguments(u8),
    Prepare(u8, u8),
    Working(u8),
    Picture(u8),
    Approved(u8),
    Complete(u8, u8),
    HandOver(u8),
    Abandon(u8),
    Lost,
    ListTools,
    AskApproval,
    Compaction,
}

/// The end of a script that is cancelled.
pub(crate) const CANCEL: u8 = 9;

#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) is_open_dialect: bool,
    pub(crate) include_all: bool,
    pub(crate) queued: bool,
    pub(crate) steps: Vec<Step>,
    pub(crate) end: u8,
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z ]{1,12}",
        1 => "\\PC{1,6}",
        1 => Just("line\n\nevent: x\r\ndata: \u{2028}\"\\".to_owned()),
        1 => Just(String::new()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let call = || 0..5_u8;
    let kind = || 0..8_u8;
    let phase = || option::of(any::<bool>());
    prop_oneof![
        6 => words().prop_map(Step::Text),
        1 => words().prop_map(Step::Refusal),
        3 => words().prop_map(Step::Reasoning),
        1 => Just(Step::Annotation),
        1 => phase().prop_map(Step::EndMessage),
        1 => words().prop_map(Step::Message),
        2 => vec((0..3_u8, words(), phase()), 0..4).prop_map(Step::Answered),
        3 => (call(), kind()).prop_map(|(call, kind)| Step::Open(call, kind)),
        4 => (call(), words()).prop_map(|(call, text)| Step::Arguments(call, text)),
        3 => call().prop_map(Step::EndArguments),
        3 => (call(), kind()).prop_map(|(call, kind)| Step::Prepare(call, kind)),
        2 => call().prop_map(Step::Working),
        1 => call().prop_map(Step::Picture),
        1 => call().prop_map(Step::Approved),
        4 => (call(), 0..4_u8).prop_map(|(call, how)| Step::Complete(call, how)),
        2 => call().prop_map(Step::HandOver),
        1 => call().prop_map(Step::Abandon),
        1 => Just(Step::Lost),
        1 => Just(Step::ListTools),
        1 => Just(Step::AskApproval),
        1 => Just(Step::Compaction),
    ]
}

pub(crate) fn script() -> impl Strategy<Value = Script> {
    (any::<bool>(), any::<bool>(), any::<bool>(), vec(step(), 0..40), 0..4_u8).prop_map(
        |(is_open_dialect, include_all, queued, steps, end)| Script {
            is_open_dialect,
            include_all,
            queued,
            steps,
            end,
        },
    )
}

/// What a script came to.
pub(crate) struct Played {
    pub(crate) stream: String,
    pub(crate) events: Vec<StreamEvent>,
    pub(crate) writer: ResponseWriter,
}

impl Script {
    pub(crate) fn checked_dialect(&self) -> served::Dialect {
        if self.is_open_dialect { served::Dialect::Open } else { served::Dialect::OpenAi }
    }

    pub(crate) fn play(&self) -> Played {
        let request = ResponseRequest::read(
            r#"{"model": "m", "input": "Hello.", "tools": [{"type": "function", "name": "f"}]}"#,
        );
        let resource = ResponseResource::new("resp_1", 7, "m", &request.unwrap());
        let dialect = if self.is_open_dialect { Dialect::Open } else { Dialect::OpenAi };
        let include = if self.include_all { Include::ALL } else { Include::default() };
        let mut ids = 0;
        let new_id = move || {
            ids += 1;
            format!("{ids}")
        };
        let mut writer =
            ResponseWriter::new(resource, WriterSettings::new(dialect, include), new_id);
        let mut events = if self.queued { writer.queued() } else { writer.begin() };
        let mut was_abandoned = false;
        for step in &self.steps {
            was_abandoned |= matches!(step, Step::Abandon(_));
            events.extend(play(&mut writer, step));
        }
        let usage = Some(usage());
        events.extend(match self.end {
            _ if writer.is_over() => Vec::new(),
            CANCEL => {
                writer.cancel(usage);
                Vec::new()
            }
            0 => writer.incomplete("max_output_tokens", usage),
            1 => writer.fail(ResponseFailure::new("server_error", "it broke"), None),
            _ if was_abandoned => writer.incomplete("paused", None),
            _ => writer.complete(9, usage),
        });
        let mut stream: String = events.iter().map(StreamEvent::as_sse).collect();
        stream.push_str(SSE_DONE);
        Played { stream, events, writer }
    }
}

pub(crate) fn usage() -> Usage {
    let mut usage = Usage::default();
    (usage.input, usage.cached_input, usage.output, usage.reasoning) = (10, 4, 5, 2);
    usage
}

pub(crate) fn id_of(call: u8) -> CallId {
    CallId::new(format!("call_{call}"))
}

fn kind_of(kind: u8) -> CallKind {
    match kind {
        0 => CallKind::Function,
        1 => CallKind::Custom,
        2 => CallKind::FileSearch,
        3 => CallKind::WebSearch,
        4 => CallKind::ImageGeneration,
        5 => CallKind::CodeInterpreter,
        6 => CallKind::LocalShell,
        _ => CallKind::Mcp { server_label: "toolcrib".into() },
    }
}

fn phase(phase: Option<bool>) -> Option<Phase> {
    phase.map(|is_final| if is_final { Phase::FinalAnswer } else { Phase::Commentary })
}

fn item((kind, text, phase): &(u8, String, Option<bool>)) -> ModelItem {
    let raw = match kind {
        0 => json!({
            "type": "reasoning",
            "id": "rs_provider",
            "summary": [{"type": "summary_text", "text": text}],
            "encrypted_content": "sealed",
        }),
        1 => json!({
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text}],
            "phase": phase.map(|is_final| if is_final { "final_answer" } else { "commentary" }),
        }),
        _ => json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": text}),
    };
    ModelItem::read(Wire::Responses, "test", raw.to_string()).unwrap()
}

fn result(call: u8, how: u8) -> ToolResult {
    let (id, tool) = (id_of(call), "tool");
    let failed =
        |kind| ToolResult::failure(id.clone(), tool, ToolError::new(kind, "no"), Duration::ZERO);
    match how {
        0 => failed(ErrorKind::Execution),
        1 => failed(ErrorKind::Cancelled),
        _ => {
            let found = json!({"results": [{
                "file_id": "f", "filename": "a.md", "score": 0.5, "text": "done", "attributes": {},
                "url": "https://a.example",
            }]});
            let output = ToolOutput::from("done")
                .with_data(found)
                .with_content(Content::Image { data: vec![1], mime_type: "image/png".to_owned() });
            ToolResult::success(id, tool, output, Duration::ZERO)
        }
    }
}

fn play(writer: &mut ResponseWriter, step: &Step) -> Vec<StreamEvent> {
    // A step out of order is refused and changes nothing.
    match step {
        Step::Text(text) => writer.text(text),
        Step::Refusal(text) => writer.refusal(text),
        Step::Reasoning(text) => writer.reasoning(text),
        Step::Annotation => writer.annotation(&json!({
            "type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 1,
        })),
        Step::EndMessage(which) => writer.end_message(phase(*which)),
        Step::Message(text) => writer.message(text, None),
        Step::Answered(items) => writer.answered(&items.iter().map(item).collect::<Vec<_>>()),
        Step::Open(call, kind) => {
            writer.open_call(&id_of(*call), "f", kind_of(*kind)).unwrap_or_default()
        }
        Step::Arguments(call, text) => {
            writer.call_arguments(&id_of(*call), text).unwrap_or_default()
        }
        Step::EndArguments(call) => end_arguments(writer, *call),
        Step::Prepare(call, kind) => {
            let arguments = r#"{"command": ["ls"], "query": "q", "code": "1", "input_data": "x"}"#;
            let call = ToolCall::new(id_of(*call).as_str(), "f", arguments);
            writer.prepare_call(&call, kind_of(*kind)).unwrap_or_default()
        }
        Step::Working(call) => writer.call_working(&id_of(*call)).unwrap_or_default(),
        Step::Picture(call) => writer.partial_image(&id_of(*call), &[1, 2]).unwrap_or_default(),
        Step::Approved(call) => {
            let _ = writer.approved(&id_of(*call), "mcpr_1");
            Vec::new()
        }
        Step::Complete(call, how) => {
            writer.complete_call(&result(*call, *how)).unwrap_or_default()
        }
        Step::HandOver(call) => {
            writer.hand_over(&id_of(*call)).map(|(events, _)| events).unwrap_or_default()
        }
        Step::Abandon(call) => writer.abandon_call(&id_of(*call)).unwrap_or_default(),
        Step::Lost => match writer.lost_answer() {
            Ok(events) => events,
            Err(lost) => writer.fail(ResponseFailure::new("server_error", lost.to_string()), None),
        },
        Step::ListTools => writer.list_tools(
            "files",
            &[json!({"name": "read", "description": null, "input_schema": {}, "annotations": null})],
        ),
        Step::AskApproval => {
            let id = format!("mcpr_{}", writer.next_sequence_number());
            writer.request_approval(&id, "files", "write", "{}", "write: it changes files")
        }
        Step::Compaction => {
            writer.item(json!({"type": "compaction", "encrypted_content": "sealed"}))
        }
    }
}

/// The arguments that were written so far are all of them.
fn end_arguments(writer: &mut ResponseWriter, call: u8) -> Vec<StreamEvent> {
    let written = writer.written(&id_of(call)).unwrap_or_default().to_owned();
    writer.end_arguments(&id_of(call), &written).unwrap_or_default()
}
