//! The spans and figures of runs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use serde_json::json;
use toolcrib_testkit::model_server::Reply;
use toolcrib_wire::model::Wire;
use tracing::field::{Field, Visit};
use tracing::instrument::WithSubscriber as _;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::fixture::{Counts, endpoint, executor, quick_retries};

type Fields = BTreeMap<String, String>;

/// Keeps the fields of all spans.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<Fields>>>);

struct Read<'f>(&'f mut Fields);

impl Visit for Read<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("toolcrib")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut all = self.0.lock().unwrap();
        let mut fields = Fields::new();
        span.record(&mut Read(&mut fields));
        all.push(fields);
        Id::from_u64(all.len() as u64)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let mut all = self.0.lock().unwrap();
        let index = usize::try_from(id.into_u64()).unwrap() - 1;
        values.record(&mut Read(&mut all[index]));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn runs_requests_and_calls_have_the_spans_and_figures_of_the_conventions_on_every_wire() {
    // The first run is for the places of spans only: another test may be registering them just now, without a subscriber.
    for (nth, wire) in [Wire::Chat].iter().chain(Wire::ALL).copied().enumerate() {
        let counts = Arc::new(Counts::default());
        let replies = [
            Reply::status(500, "{}"),
            Reply::call("add", json!({"a": 1, "b": 2})),
            Reply::text("It is 3."),
        ];
        let server = toolcrib_testkit::model_server::ModelServer::start(wire, replies).await;
        let executor = executor(&counts);
        let model = Arc::new(endpoint(&server));
        let agent = toolcrib_agent::Agent::builder(executor.clone(), model);
        let agent = agent.name("adder").retry(quick_retries()).build();
        let spans = Spans::default();
        let report = agent.run("Add.").with_subscriber(spans.clone()).await.unwrap();
        assert_eq!(report.text(), "It is 3.", "{wire}");
        if nth == 0 {
            continue;
        }

        let provider = if wire == Wire::Anthropic { "anthropic" } else { "openai" };
        let spans = spans.0.lock().unwrap();
        let named = |name: &str| -> Vec<&Fields> {
            spans.iter().filter(|fields| fields["otel.name"] == name).collect()
        };
        let runs = named("invoke_agent adder");
        assert_eq!(runs.len(), 1, "{wire}: {spans:?}");
        assert_eq!(runs[0]["gen_ai.conversation.id"], report.id().as_str());
        assert_eq!(
            (&*runs[0]["gen_ai.provider.name"], &*runs[0]["otel.kind"]),
            (provider, "internal")
        );
        let chats = named("chat scripted");
        assert_eq!(chats.len(), 3, "{wire}: {spans:?}");
        assert!(!chats[0]["error.type"].is_empty() && chats[0]["otel.status_code"] == "ERROR");
        let usage = report.spent().usage;
        let sum = |field: &str| -> u64 {
            chats.iter().filter_map(|chat| chat.get(field)?.parse::<u64>().ok()).sum()
        };
        assert_eq!(sum("gen_ai.usage.input_tokens"), usage.input, "{wire}");
        assert_eq!(sum("gen_ai.usage.output_tokens"), usage.output, "{wire}");
        assert_eq!(chats[2]["gen_ai.operation.name"], "chat");
        assert_eq!(named("execute_tool add").len(), 1, "{wire}: {spans:?}");

        let figures = executor.model_statistics().snapshot();
        let (answered, failed): (Vec<_>, Vec<_>) =
            figures.iter().partition(|one| one.error.is_none());
        assert_eq!((answered.len(), failed.len()), (1, 1), "{wire}: {figures:?}");
        assert_eq!((&*answered[0].provider, &*answered[0].model), (provider, "scripted"));
        assert_eq!((answered[0].seconds.count, failed[0].seconds.count), (2, 1));
        assert_eq!(failed[0].error.as_ref(), Some(&chats[0]["error.type"]));
        let tokens =
            [&answered[0].input_tokens, &answered[0].output_tokens].map(|one| one.sum.to_string());
        assert_eq!(tokens, [usage.input, usage.output].map(|one| one.to_string()), "{wire}");
    }
}
