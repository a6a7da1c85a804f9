//! What viewers see of calls: while a model writes them, of tools whose output is special, and of sensitive arguments.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcrib_agent::model::{ScriptedModel, ScriptedTurn};
use toolcrib_agent::{Agent, AgentEvent, RunControl};
use toolcrib_core::approval::Decision;
use toolcrib_core::masking::Mask;
use toolcrib_core::run::MemoryRuns;
use toolcrib_core::suspension::MemorySuspensions;
use toolcrib_core::{Executor, Registry, RegistryBuilder, TurnOptions};
use toolcrib_testkit::model_server::{Fault, ModelServer, Reply};
use toolcrib_tool::{
    Approval, Arguments, BoxFuture, CallContext, Layer, PartialArguments, Phase, Source,
    StatusUpdate, Tool, ToolDefinition, ToolEntry, ToolError, ToolOutcome,
};
use toolcrib_wire::model::Wire;

use crate::fixture::endpoint;

/// A tool that previews what is written.
#[derive(Default)]
struct Writer {
    previewed: Arc<AtomicUsize>,
    is_silent: bool,
}

impl Tool for Writer {
    fn call<'a>(
        &'a self,
        _: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async { Ok(ToolOutcome::Done("written".into())) })
    }

    fn preview(&self, partial: &PartialArguments<'_>) -> Option<StatusUpdate> {
        self.previewed.fetch_add(1, Ordering::SeqCst);
        assert_ne!(partial.text("path"), Some("panic"), "a preview that fails");
        let tip = format!("{}: {} lines", partial.text("path")?, partial.lines("content"));
        Some(
            StatusUpdate::wait()
                .with_tip(tip)
                .with_param("bytes", partial.text("content").map(str::len)),
        )
    }

    fn previews(&self) -> bool {
        !self.is_silent
    }
}

fn executor(tools: impl IntoIterator<Item = (&'static str, bool, Writer)>) -> Executor {
    let mut builder = RegistryBuilder::new();
    for (name, is_hidden, tool) in tools {
        let definition = ToolDefinition::builder(name)
            .description("Writes.")
            .hidden(is_hidden)
            .input_schema(json!({"additionalProperties": true}))
            .build()
            .unwrap();
        let entry = ToolEntry::new(definition, Arc::new(tool), Source::new(Layer::Host, "test"));
        let _ = builder.register(entry);
    }
    let mask = Mask::new(["top-secret-password".to_owned()]).unwrap();
    Executor::builder(Registry::new(builder.build())).mask(mask).build()
}

/// Runs an agent and returns the tips of its previews, with the tools.
async fn previews(wire: Wire, executor: Executor, replies: Vec<Reply>) -> Vec<(String, String)> {
    // What was masked does not come back as it was sent.
    let server = ModelServer::continuing(wire, replies).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let agent = Agent::builder(executor, Arc::new(endpoint(&server))).on_event(move |event| {
        if let AgentEvent::Preview { tool, status, call, .. } = event {
            assert_eq!(status.phase, Phase::Wait);
            assert!(call.as_str().starts_with("call_1_"), "{call}");
            record.lock().unwrap().push((tool.to_string(), status.tip.clone().unwrap_or_default()));
        }
    });
    let report = agent.build().run("Write.").await.unwrap();
    assert_eq!(report.text(), "Done.", "{wire}: {:?}", server.violations());
    let seen = seen.lock().unwrap();
    seen.clone()
}

/// The arguments for a file of this many lines. The path comes first, as a model would write it.
fn arguments(path: &str, lines: usize) -> Value {
    let content = "a \"line\", größe\n".repeat(lines);
    Value::String(format!("{{\"path\": {}, \"content\": {}}}", json!(path), json!(content)))
}

#[tokio::test]
async fn viewers_see_a_preview_while_the_arguments_of_a_call_grow_on_every_wire() {
    for &wire in Wire::ALL {
        let executor = executor([("write", false, Writer::default())]);
        let replies = vec![
            Reply::call("write", arguments("notes.txt", 400)).with_fault(Fault::Pieces(4_000)),
            Reply::text("Done."),
        ];
        let seen = previews(wire, executor, replies).await;
        assert!(!seen.is_empty(), "{wire}");
        for (tool, tip) in &seen {
            assert_eq!(tool, "write");
            assert!(tip.starts_with("notes.txt: "), "{wire}: {tip}");
        }
    }
}

#[tokio::test]
async fn hidden_tools_and_tools_without_a_preview_have_none_and_one_that_panics_harms_nothing() {
    let silent = Arc::new(AtomicUsize::new(0));
    let tools = [
        ("hidden", true, Writer { previewed: silent.clone(), is_silent: false }),
        ("silent", false, Writer { previewed: silent.clone(), is_silent: true }),
        ("write", false, Writer::default()),
    ];
    let first = Reply::call("hidden", arguments("a", 9))
        .and_call("silent", arguments("b", 9))
        .and_call("write", arguments("panic", 9));
    let seen = previews(Wire::Chat, executor(tools), vec![first, Reply::text("Done.")]).await;
    assert_eq!(seen, []);
    assert_eq!(silent.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_secret_that_is_being_written_is_in_no_preview() {
    let executor = executor([("write", false, Writer::default())]);
    let text = format!(
        "{{\"path\": \"top-secret-password{}\", \"content\": \"{}\"}}",
        " ".repeat(80),
        "x".repeat(80)
    );
    let replies = vec![Reply::call("write", Value::String(text)), Reply::text("Done.")];
    let seen = previews(Wire::Responses, executor, replies).await;
    assert!(!seen.is_empty());
    assert!(seen.iter().all(|(_, tip)| !tip.contains("top-sec")), "{seen:?}");
}

/// Previews come at 64 bytes and then at each growth by a quarter, and at most every 50 ms.
#[tokio::test]
async fn previews_are_few_however_small_the_pieces_are() {
    let previewed = Arc::new(AtomicUsize::new(0));
    let executor =
        executor([("write", false, Writer { previewed: previewed.clone(), is_silent: false })]);
    let text = "x".repeat(200_000);
    let arguments = format!("{{\"path\": \"a\", \"content\": \"{text}\"}}");
    let replies = vec![Reply::call("write", Value::String(arguments)), Reply::text("Done.")];
    let began = std::time::Instant::now();
    let seen = previews(Wire::Chat, executor, replies).await;
    let count = previewed.load(Ordering::SeqCst);
    // ln(200,000 / 64) / ln(1.25) is 36.
    let by_time = usize::try_from(began.elapsed().as_millis()).unwrap() / 50 + 1;
    assert!((1..=37.min(by_time)).contains(&count), "{count}");
    assert_eq!(seen.len(), count);
}

#[tokio::test]
async fn a_final_output_is_the_answer_and_a_hidden_result_reaches_the_model() {
    let define = |name: &str| {
        ToolDefinition::builder(name)
            .description("Answers.")
            .input_schema(json!({"properties": {}}))
    };
    let registry = Registry::scratch()
        .tool_as(define("secret").hidden(true).build().unwrap(), |_: Value, _| async {
            "hidden result"
        })
        .tool_as(define("report").final_output(true).build().unwrap(), |_: Value, _| async {
            "The report."
        })
        .build()
        .unwrap();
    let model = ScriptedModel::new([
        ScriptedTurn::call("secret", json!({})),
        ScriptedTurn::call("report", json!({})),
        ScriptedTurn::text("This is never asked for."),
    ]);
    let model = Arc::new(model);
    let agent = Agent::builder(Executor::builder(registry).build(), model.clone()).build();
    let report = agent.run("Report.").await.unwrap();
    assert_eq!((report.text(), model.requests().len()), ("The report.", 2));
    assert_eq!(model.requests()[1]["messages"][2]["content"], "hidden result");
}

#[tokio::test]
async fn viewers_see_what_running_calls_report_one_after_the_other_masked_and_without_hidden_tools()
{
    let define = |name: &str| {
        let builder = ToolDefinition::builder(name).description("Works.").read_only(true);
        builder.input_schema(json!({"additionalProperties": true}))
    };
    let registry = Registry::scratch()
        .tool_as(define("work").build().unwrap(), |arguments: Value, cx: CallContext| async move {
            for part in 0..3 {
                cx.stream(format!("{}{part} top-secret-password\n", arguments["name"])).await;
                tokio::task::yield_now().await;
            }
            "done"
        })
        .tool_as(
            define("hidden").hidden(true).build().unwrap(),
            |_: Value, cx: CallContext| async move {
                cx.stream("seen by nobody").await;
                "done"
            },
        )
        .build()
        .unwrap();
    let mask = Mask::new(["top-secret-password".to_owned()]).unwrap();
    let both = ScriptedTurn::call("work", json!({"name": 1}))
        .and_call("hidden", json!({}))
        .and_call("work", json!({"name": 2}));
    let model = Arc::new(ScriptedModel::new([both, ScriptedTurn::text("Done.")]));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let executor = Executor::builder(registry).mask(mask).build();
    let agent = Agent::builder(executor, model).on_event(move |event| {
        let value = event.to_value().unwrap();
        let line = match event {
            AgentEvent::Call { .. } if value["type"] == "call.output" => &value["payload"]["text"],
            AgentEvent::Call { .. } => return,
            _ => &value["type"],
        };
        record.lock().unwrap().push(line.as_str().unwrap().to_owned());
    });
    assert_eq!(agent.build().run("Work.").await.unwrap().text(), "Done.");
    let seen = seen.lock().unwrap();
    let started = seen.iter().position(|line| line == "run.calls_started").unwrap();
    let of = |name: u32| (0..3).map(move |part| format!("{name}{part} [masked]\n"));
    let expected: Vec<_> = of(1).chain(of(2)).collect();
    assert_eq!(seen[started + 1..started + 7], expected, "{seen:?}");
    assert_eq!(seen[started + 7], "run.call_finished", "they come before the answers");
}

/// `login` has a sensitive password, and so has `sudo`, which asks for approval.
fn executor_with_passwords() -> Executor {
    let define = |name: &str| {
        ToolDefinition::builder(name).description("Log in.").input_schema(json!({
            "properties": {
                "user": {"type": "string"},
                "password": {"type": "string", "x-sensitive": true},
            },
        }))
    };
    let registry = Registry::scratch()
        .tool_as(define("login").build().unwrap(), |arguments: Value, _| async move {
            format!("{} characters", arguments["password"].as_str().unwrap().len())
        })
        .tool_as(
            define("sudo").approval(Approval::Always).build().unwrap(),
            |arguments: Value, _| async move {
                format!("{} characters", arguments["password"].as_str().unwrap().len())
            },
        )
        .build()
        .unwrap();
    Executor::builder(registry).suspensions(Arc::new(MemorySuspensions::new())).build()
}

#[tokio::test]
async fn arguments_that_a_tool_declares_sensitive_are_hidden_from_every_view_and_not_from_the_model()
 {
    let password = |text: &str| json!({"user": "ada", "password": text});
    for &wire in Wire::ALL {
        let first = Reply::call("login", password("hunter-one"))
            .and_call("sudo", password("hunter-two"))
            .and_call("logn", password("hunter-three"));
        let replies = [first.with_fault(Fault::Pieces(9)), Reply::text("Done.")];
        let server = ModelServer::start(wire, replies).await;
        let seen = Arc::new(Mutex::new(String::new()));
        let record = Arc::clone(&seen);
        let agent = Agent::builder(executor_with_passwords(), Arc::new(endpoint(&server)))
            .turn_options(TurnOptions::default().may_approve(true))
            .journal(Arc::new(MemoryRuns::new()))
            .on_event(move |event| {
                let value = event.to_value().unwrap_or_default();
                let mut seen = record.lock().unwrap();
                writeln!(seen, "{value}\n{event:?}").unwrap();
            })
            .build();
        let report = agent.run("Log in.").await.unwrap();
        let call = report.waiting().next().unwrap().id().clone();
        let waiting = agent.rows(report.id(), 0, 99).await.unwrap();
        let changed = json!({"user": "ada", "password": "hunter-seven"}).to_string();
        let decision = Decision::approve_changed(changed);
        agent.resolve(report.id(), &call, decision.into()).await.unwrap();
        let report = agent.resume_with(report.id(), &RunControl::new()).await.unwrap();
        assert_eq!(report.text(), "Done.", "{wire}");
        let rows = agent.rows(report.id(), 0, 99).await.unwrap();
        let rows = serde_json::to_string(&(waiting, rows)).unwrap();
        let seen = seen.lock().unwrap();
        for shown in [&*rows, &*seen] {
            assert!(!shown.contains("hunter"), "{wire}: {shown}");
            assert!(shown.contains("login") && shown.contains("[redacted]"), "{wire}: {shown}");
        }
        assert!(rows.contains("ada"), "{wire}: {rows}");
        let requests = server.requests();
        let sent = &requests.last().unwrap().text;
        for password in ["hunter-one", "hunter-two", "hunter-three"] {
            assert!(sent.contains(password), "{wire}: {sent}");
        }
        assert!(sent.contains("12 characters"), "{wire}: {sent}");
    }
}

#[tokio::test]
async fn secrets_are_masked_in_keys_and_values_of_a_runs_notes() {
    let mask = Mask::new(["top-secret-password".to_owned()]).unwrap();
    let executor = Executor::builder(Registry::scratch().build().unwrap()).mask(mask).build();
    let model = Arc::new(ScriptedModel::new([ScriptedTurn::text("Done.")]));
    let note = |text: &str| format!("{text} top-secret-password");
    let agent = Agent::builder(executor, model).metadata([(note("k"), note("v"))].into()).build();
    let report = agent.run("Hello.").await.unwrap();
    let notes: Vec<_> = report.run().metadata().iter().collect();
    assert_eq!(notes, [(&"k [masked]".to_owned(), &"v [masked]".to_owned())]);
}
