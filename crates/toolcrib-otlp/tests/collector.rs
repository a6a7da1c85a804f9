//! What a collector hears: a real one's side of HTTP, and what arrives, decoded.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric, number_data_point};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};
use toolcrib_core::{Executor, Registry, RegistryBuilder, TurnOptions};
use toolcrib_otlp::Otlp;
use toolcrib_tool::{Layer, Source, ToolCall, ToolDefinition, ToolEntry, ToolError, tool_fn};
use tracing_subscriber::layer::SubscriberExt as _;

/// Takes what is sent to it: the path, and the body.
fn collector() -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (told, heard) = channel();
    // It ends with the test: whoever hears is gone then, and so is the process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let told = told.clone();
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream.unwrap());
                while let Some(request) = request(&mut stream) {
                    let _ = told.send(request);
                    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    stream.get_mut().write_all(answer.as_bytes()).unwrap();
                }
            });
        }
    });
    (endpoint, heard)
}

/// One request; none once the other side has closed.
fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "content-type" => assert_eq!(value, "application/x-protobuf"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((path, body))
}

fn executor() -> Executor {
    let mut registry = RegistryBuilder::new();
    let define = |name: &str| {
        let schema = json!({"type": "object"});
        ToolDefinition::builder(name).description("A tool for tests.").input_schema(schema)
    };
    let source = || Source::new(Layer::Host, "fixture");
    let echo = tool_fn(|args: Value, _| async move { args });
    let fail = tool_fn(|_: Value, _| async { Err::<String, _>(ToolError::execution("disk full")) });
    let _ = registry.register(ToolEntry::new(
        define("echo").build().unwrap(),
        Arc::new(echo),
        source(),
    ));
    let _ = registry.register(ToolEntry::new(
        define("fail").build().unwrap(),
        Arc::new(fail),
        source(),
    ));
    Executor::builder(Registry::new(registry.build())).build()
}

fn text<'a>(attributes: &'a [KeyValue], name: &str) -> Option<&'a str> {
    let own = attributes.iter().find(|own| own.key == name)?;
    match own.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text),
        _ => None,
    }
}

#[test]
fn a_collector_hears_of_every_call_and_of_the_numbers() {
    let (endpoint, heard) = collector();
    let otlp = Otlp::to(&endpoint);
    let executor = executor();
    otlp.start(executor.clone()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let log = tracing_subscriber::registry().with(otlp.layer());
    tracing::subscriber::with_default(log, || {
        runtime.block_on(async {
            for (id, name) in [("1", "echo"), ("2", "fail"), ("3", "echo")] {
                executor.turn(TurnOptions::default()).call(ToolCall::new(id, name, "{}")).await;
            }
        });
    });
    otlp.finish();

    let (mut spans, mut metrics) = (Vec::<Span>::new(), Vec::<Metric>::new());
    let mut services = Vec::new();
    // All was sent before `finish` has returned.
    while let Ok((path, body)) = heard.try_recv() {
        let resource = match path.as_str() {
            "/v1/traces" => {
                let told = ExportTraceServiceRequest::decode(&body[..]).unwrap();
                let own = told.resource_spans.first().unwrap().resource.clone();
                let all = told.resource_spans.into_iter().flat_map(|own| own.scope_spans);
                spans.extend(all.flat_map(|scope| scope.spans));
                own
            }
            "/v1/metrics" => {
                let told = ExportMetricsServiceRequest::decode(&body[..]).unwrap();
                let own = told.resource_metrics.first().unwrap().resource.clone();
                let all = told.resource_metrics.into_iter().flat_map(|own| own.scope_metrics);
                metrics.extend(all.flat_map(|scope| scope.metrics));
                own
            }
            other => panic!("{other}"),
        };
        services.extend(text(&resource.unwrap().attributes, "service.name").map(str::to_owned));
    }
    assert!(!services.is_empty() && services.iter().all(|name| name == "toolcrib"), "{services:?}");

    let mut calls: Vec<_> = spans
        .iter()
        .map(|span| {
            let attribute = |name| text(&span.attributes, name);
            (attribute("gen_ai.tool.call.id"), span.name.as_str(), attribute("error.type"))
        })
        .collect();
    calls.sort_unstable();
    assert_eq!(
        calls,
        [
            (Some("1"), "execute_tool echo", None),
            (Some("2"), "execute_tool fail", Some("execution")),
            (Some("3"), "execute_tool echo", None),
        ]
    );
    assert!(spans.iter().all(|span| span.end_time_unix_nano >= span.start_time_unix_nano));

    let named = |name: &str| metrics.iter().rev().find(|metric| metric.name == name).unwrap();
    let Some(metric::Data::Sum(counted)) = &named("toolcrib.calls").data else { panic!("no sum") };
    assert!(counted.is_monotonic);
    let count = |tool: &str, outcome: &str| {
        counted.data_points.iter().find_map(|point| {
            let is_own = text(&point.attributes, "gen_ai.tool.name") == Some(tool)
                && text(&point.attributes, "outcome") == Some(outcome);
            match point.value {
                Some(number_data_point::Value::AsInt(count)) if is_own => Some(count),
                _ => None,
            }
        })
    };
    assert_eq!((count("echo", "success"), count("fail", "execution")), (Some(2), Some(1)));
    let Some(metric::Data::Gauge(tools)) = &named("toolcrib.tools").data else {
        panic!("no gauge")
    };
    assert_eq!(tools.data_points.len(), 2);
}

#[test]
fn a_collector_that_is_not_there_costs_no_call_and_ends_in_time() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let otlp = Otlp::to(format!("http://{nobody}"));
    let executor = executor();
    otlp.start(executor.clone()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let log = tracing_subscriber::registry().with(otlp.layer());
    let answer = tracing::subscriber::with_default(log, || {
        let call = ToolCall::new("1", "echo", r#"{"x": 1}"#);
        runtime.block_on(executor.turn(TurnOptions::default()).call(call))
    });
    assert_eq!(answer.text(), r#"{"x":1}"#);
    let (ended, has_ended) = channel();
    std::thread::spawn(move || {
        otlp.finish();
        ended.send(()).unwrap();
    });
    has_ended.recv_timeout(Duration::from_secs(60)).expect("an end in time");
}
