//! A model and a tool in this process, and runs of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;
use toolcrib_agent::Agent;
use toolcrib_agent::budget::Budget;
use toolcrib_agent::model::{AttemptError, ModelClient};
use toolcrib_core::{Executor, Registry, RegistryBuilder};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, Layer, PartialArguments, Source, StatusUpdate, Tool,
    ToolDefinition, ToolEntry, ToolError, ToolOutcome,
};
use toolcrib_wire::model::{Answer, DecoderSettings, ModelEvent, RequestHead, StreamDecoder, Wire};

/// A tool that answers at once and previews what is written if it `previews`.
struct Note {
    previews: bool,
}

impl Tool for Note {
    fn call<'a>(
        &'a self,
        _: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async { Ok(ToolOutcome::Done("noted".into())) })
    }

    fn validates(&self) -> bool {
        false
    }

    fn preview(&self, partial: &PartialArguments<'_>) -> Option<StatusUpdate> {
        Some(StatusUpdate::wait().with_param("lines", partial.lines("text")))
    }

    fn previews(&self) -> bool {
        self.previews
    }
}

/// An executor with the tool alone.
pub(crate) fn executor(previews: bool) -> Executor {
    let definition = ToolDefinition::builder("note")
        .description("Notes a text.")
        .input_schema(json!({"properties": {"text": {"type": "string"}}, "required": ["text"]}))
        .build()
        .expect("it is right");
    let source = Source::new(Layer::Host, "bench");
    let mut builder = RegistryBuilder::new();
    let _ = builder.register(ToolEntry::new(definition, Arc::new(Note { previews }), source));
    Executor::builder(Registry::new(builder.build())).build()
}

/// A model in this process: so many calls, and then an answer.
struct Model {
    calls: u32,
    asked: AtomicU32,
    /// Bytes of each call's text, in pieces of one byte; `None` for a short text in one piece.
    bytes: Option<usize>,
}

impl Model {
    fn new(calls: u32, bytes: Option<usize>) -> Arc<Self> {
        Arc::new(Self { calls, asked: AtomicU32::new(0), bytes })
    }

    fn stream(
        &self,
        settings: DecoderSettings,
        events: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<Answer, AttemptError> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut decoder = StreamDecoder::new(Wire::Chat, settings);
        let mut found = Vec::new();
        let mut push = |text: &str| {
            let pushed = decoder.push(text.as_bytes(), &mut found);
            found.drain(..).for_each(&mut *events);
            pushed.map_err(|error| AttemptError::of_answer(&error))
        };
        let piece = |arguments: &str| {
            let call = json!({"index": 0, "function": {"arguments": arguments}});
            format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}))
        };
        let end = if number % (self.calls + 1) < self.calls {
            let call = json!({"index": 0, "id": format!("c{number}"), "type": "function",
                "function": {"name": "note", "arguments": ""}});
            push(&format!(
                "data: {}\n\n",
                json!({"choices": [{"delta": {"tool_calls": [call]}}]})
            ))?;
            match self.bytes {
                None => push(&piece(&json!({"text": format!("number {number}")}).to_string()))?,
                Some(bytes) => {
                    push(&piece("{\"text\":\""))?;
                    // A read of a socket has many events.
                    let read = piece("x").repeat(1_024);
                    for _ in 0..bytes / 1_024 {
                        push(&read)?;
                    }
                    push(&piece("\"}"))?;
                }
            }
            "tool_calls"
        } else {
            push(&format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "Done."}}]})))?;
            "stop"
        };
        push(&format!("data: {}\n\n", json!({"choices": [{"delta": {}, "finish_reason": end}]})))?;
        decoder.finish(&mut found).map_err(|error| AttemptError::of_answer(&error))
    }
}

impl ModelClient for Model {
    fn wire(&self) -> Wire {
        Wire::Chat
    }

    fn head(&self) -> RequestHead {
        RequestHead::new("bench", "bench")
    }

    fn ask<'a>(
        &'a self,
        _: String,
        settings: DecoderSettings,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<Answer, AttemptError>> {
        Box::pin(async move { self.stream(settings, events) })
    }
}

/// The time of one run with so many calls.
pub(crate) fn run(
    runtime: &Runtime,
    executor: &Executor,
    calls: u32,
    bytes: Option<usize>,
) -> Duration {
    let agent = Agent::builder(executor.clone(), Model::new(calls, bytes))
        .budget(Budget::default().with_max_turns(calls + 10))
        .on_event(|event| {
            std::hint::black_box(event);
        })
        .build();
    let begun = Instant::now();
    let report = runtime.block_on(agent.run("Note.")).expect("it runs");
    assert_eq!(report.text(), "Done.", "{:?}", report.outcome());
    begun.elapsed()
}
