//! The other peer's agent: rig-agent's loop over a model in this process that calls one tool and then answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream;
use rig_agent::AgentBuilder;
use rig_agent::completion::{CompletionRequest, Usage};
use rig_agent::core::completion::FinishReason;
use rig_agent::core::driver::{Exchange, Model, Opened, Opening, Transport};
use rig_agent::core::operation::Finish;
use rig_agent::core::test_utils::{MockFrame, MockScript, MockStreamEvent};
use rig_agent::tool::{Tool, ToolContext};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// So many calls, and then an answer.
#[derive(Clone)]
struct Script {
    calls: u32,
    asked: Arc<AtomicU32>,
}

impl Transport<MockScript> for Script {
    #[expect(clippy::result_large_err, reason = "the error is rig's")]
    fn send(&self, _: CompletionRequest, _: Exchange) -> Opening<MockFrame> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let (said, reason) = if number < self.calls {
            let arguments = json!({"text": format!("number {number}")});
            let call = MockStreamEvent::tool_call(format!("c{number}"), Note::NAME, arguments);
            (call, FinishReason::ToolCalls)
        } else {
            (MockStreamEvent::text("Done."), FinishReason::Stop)
        };
        let finish = Finish { usage: Usage::default(), reason: Some(reason), ..Finish::default() };
        let events = [said, MockStreamEvent::FinalResponse(finish)];
        Opening::ready(Opened::new(stream::iter(events.map(|event| Ok(MockFrame::Event(event))))))
    }
}

#[derive(Deserialize)]
struct Noted {
    text: String,
}

struct Note;

impl Tool for Note {
    const NAME: &'static str = "note";
    type Error = std::convert::Infallible;
    type Args = Noted;
    type Output = String;

    fn description(&self) -> String {
        "Notes a text.".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
    }

    async fn call(&self, _: &mut ToolContext, args: Noted) -> Result<String, Self::Error> {
        std::hint::black_box(args.text);
        Ok("noted".to_owned())
    }
}

/// The time of one run with so many calls.
pub fn run(runtime: &Runtime, calls: u32) -> Duration {
    let script = Script { calls, asked: Arc::default() };
    let model = Model::new(MockScript::new("script"), script).erase();
    let agent = AgentBuilder::new(model).tool(Note).build();
    let turns = usize::try_from(calls).expect("it fits") + 10;
    let begun = Instant::now();
    let answer = runtime.block_on(async { agent.prompt("Note.").max_turns(turns).await });
    let answer = answer.expect("it runs");
    assert_eq!(answer.to_string(), "Done.");
    begun.elapsed()
}
