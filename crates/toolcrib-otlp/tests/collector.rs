//! A test collector: a real HTTP server that decodes what arrives.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric, number_data_point};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};
use toolcrib_core::audit::{AuditRecord, AuditSink as _};
use toolcrib_core::{Executor, ModelRequestRecord, Registry, RegistryBuilder, TurnOptions};
use toolcrib_http::{HttpServer, ServerConfig};
use toolcrib_mcp::{McpOptions, McpServer};
use toolcrib_otlp::{Otlp, OtlpAudit};
use toolcrib_tool::{Layer, Source, ToolCall, ToolDefinition, ToolEntry, ToolError, tool_fn};
use tracing_subscriber::layer::SubscriberExt as _;

/// Receives requests: the path and the body.
fn collector() -> (String, Receiver<(String, Vec<u8>)>) {
    collector_at(TcpListener::bind("127.0.0.1:0").unwrap())
}

fn collector_at(listener: TcpListener) -> (String, Receiver<(String, Vec<u8>)>) {
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (told, heard) = channel();
    // It ends with the test, when the receiver is dropped.
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

/// One request; `None` once the other side has closed.
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
fn a_collector_receives_every_call_and_the_metrics() {
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
    executor.model_statistics().record(&ModelRequestRecord {
        provider: "openai",
        model: "m",
        duration: Duration::from_millis(30),
        error: None,
        tokens: Some((100, 5)),
    });
    otlp.finish();

    let (mut spans, mut metrics) = (Vec::<Span>::new(), Vec::<Metric>::new());
    let mut services = Vec::new();
    // Everything was sent before `finish` returned.
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

    let histogram = |name: &str| match &named(name).data {
        Some(metric::Data::Histogram(histogram)) => histogram.data_points.clone(),
        other => panic!("{name}: {other:?}"),
    };
    let durations = histogram("gen_ai.client.operation.duration");
    assert_eq!((durations.len(), durations[0].count, durations[0].bucket_counts[2]), (1, 1, 1));
    assert_eq!(text(&durations[0].attributes, "gen_ai.request.model"), Some("m"));
    let tokens = histogram("gen_ai.client.token.usage");
    let mut sums: Vec<_> = tokens
        .iter()
        .map(|point| (text(&point.attributes, "gen_ai.token.type"), point.sum))
        .collect();
    sums.sort_unstable_by_key(|(kind, _)| *kind);
    assert_eq!(sums, [(Some("input"), Some(100.0)), (Some("output"), Some(5.0))]);
}

/// The spans received so far, sorted by name.
fn spans(heard: &Receiver<(String, Vec<u8>)>) -> Vec<Span> {
    let traces = heard.try_iter().filter(|(path, _)| path == "/v1/traces");
    let told = traces.map(|(_, body)| ExportTraceServiceRequest::decode(&body[..]).unwrap());
    let scopes = told.flat_map(|told| told.resource_spans).flat_map(|own| own.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

/// Sends one request and reads the answer's status line.
async fn post(address: SocketAddr, path: &str, head: &str, body: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\n\
         content-length: {}\r\n{head}\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[test]
fn a_call_continues_the_trace_of_its_client() {
    const STATE: &str = "vendor=7";
    let (endpoint, heard) = collector();
    let otlp = Otlp::to(&endpoint);
    let executor = executor();
    otlp.start(executor.clone()).unwrap();
    let log = tracing_subscriber::registry().with(otlp.layer());
    let parent = |number: u8| format!("00-{number:032x}-{number:016x}-01");
    let named = |number| format!("traceparent: {}\r\ntracestate: {STATE}\r\n", parent(number));
    let meta = |number| {
        format!(r#""_meta":{{"traceparent":"{}","tracestate":"{STATE}"}}"#, parent(number))
    };
    let call = |id: u8, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo"{more}}}}}"#
        )
    };
    // Everything on one thread, which uses this log.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(log, || {
        runtime.block_on(async {
            let mcp = McpServer::new(executor.clone(), McpOptions::default());
            let config = ServerConfig {
                listen: SocketAddr::from(([127, 0, 0, 1], 0)).into(),
                no_auth: true,
                ..ServerConfig::default()
            };
            let server = HttpServer::bind(config, executor.clone(), mcp).await.unwrap();
            let address = server.local_addr().unwrap();
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            let serving = tokio::spawn(server.serve(async move { drop(stopped.await) }));
            let both = "accept: application/json, text/event-stream\r\n";
            let asked = |number| named(number) + both;
            let (rest, events) = ("/v1/tools/echo/call", "accept: text/event-stream\r\n");
            let answers = [
                post(address, rest, &named(1), r#"{"call_id":"1"}"#).await,
                post(address, rest, &(named(7) + events), r#"{"call_id":"7"}"#).await,
                post(address, rest, &(named(8) + "idempotency-key: k\r\n"), r#"{"call_id":"8"}"#)
                    .await,
                post(address, "/mcp", &asked(2), &call(2, "")).await,
                // The trace in the message is closer to the call than the one in its request.
                post(address, "/mcp", &asked(9), &call(3, &format!(",{}", meta(3)))).await,
                // An unknown member makes the protocol library handle the message.
                post(address, "/mcp", &asked(9), &call(4, &format!(r#",{},"x":1"#, meta(4)))).await,
                post(address, "/mcp", &asked(5), &call(5, r#","x":1"#)).await,
                // An invalid trace begins a new one.
                post(address, "/mcp", &format!("traceparent: 00-not-one\r\n{both}"), &call(6, ""))
                    .await,
            ];
            for answer in answers {
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            }
            stop.send(()).unwrap();
            serving.await.unwrap().unwrap();
        });
    });
    otlp.finish();
    let spans = spans(&heard);
    let by_id = |id: &[u8]| spans.iter().find(|span| span.span_id == id);
    for number in 1..=8_u8 {
        let id = number.to_string();
        let is_own = |span: &&Span| text(&span.attributes, "gen_ai.tool.call.id") == Some(&id);
        let own = spans.iter().find(is_own).unwrap_or_else(|| panic!("{number}: {spans:?}"));
        let mut top = own;
        while let Some(parent) = by_id(&top.parent_span_id) {
            top = parent;
        }
        let is_followed = id_of(&own.trace_id) == u128::from(number);
        assert_eq!(is_followed, number != 6, "{number}: {own:?}");
        if is_followed {
            assert_eq!(id_of(&top.parent_span_id), u128::from(number), "{top:?}");
            assert_eq!(top.trace_state, STATE);
        } else {
            assert!(top.parent_span_id.is_empty(), "{top:?}");
        }
    }
}

/// An id as the number in `traceparent`.
fn id_of(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[test]
fn an_unreachable_collector_affects_no_call_and_stops_in_time() {
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

/// A record whose arguments have so many bytes.
fn record(id: &str, bytes: usize) -> AuditRecord {
    let mut record = AuditRecord::new(SystemTime::UNIX_EPOCH, id, "echo");
    record.arguments = Some(json!("x".repeat(bytes)));
    record
}

/// The ids and argument lengths of audit records in a request.
fn audit_records(body: &[u8]) -> Vec<(String, usize)> {
    let told = ExportLogsServiceRequest::decode(body).unwrap();
    let mut records = Vec::new();
    for own in told.resource_logs {
        let service = own.resource.unwrap().attributes;
        assert_eq!(text(&service, "service.name"), Some("toolcrib"));
        for log in own.scope_logs.into_iter().flat_map(|scope| scope.log_records) {
            assert_eq!((log.time_unix_nano, log.severity_text.as_str()), (0, "INFO"));
            let Some(any_value::Value::StringValue(json)) = log.body.unwrap().value else {
                panic!("no text")
            };
            let json: Value = serde_json::from_str(&json).unwrap();
            let arguments = json["arguments"].as_str().unwrap().len();
            records.push((json["call_id"].as_str().unwrap().to_owned(), arguments));
        }
    }
    records
}

#[test]
fn a_collector_receives_every_audit_record_and_long_ones_without_their_arguments() {
    let (endpoint, heard) = collector();
    let audit = OtlpAudit::to(&endpoint).unwrap();
    audit.record(&record("first", 10));
    audit.record(&record("long", 1_000_000));
    (0..600).for_each(|id| audit.record(&record(&id.to_string(), 1)));
    audit.flush();
    assert_eq!((audit.lost(), audit.problem(), audit.name()), (0, None, endpoint));
    let mut records = Vec::new();
    while let Ok((path, body)) = heard.try_recv() {
        assert_eq!(path, "/v1/logs");
        records.extend(audit_records(&body));
    }
    assert_eq!(records.len(), 602);
    assert_eq!(records[0], ("first".to_owned(), 10));
    assert!(records[1].0 == "long" && records[1].1 < 100, "{:?}", records[1]);
    let ids: Vec<String> = records[2..].iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(ids, (0..600).map(|id| id.to_string()).collect::<Vec<_>>(), "in order, none twice");
}

#[test]
fn while_the_collector_is_away_records_wait_and_those_that_are_too_many_are_counted() {
    let place = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = place.local_addr().unwrap();
    drop(place);
    let audit = OtlpAudit::to(&format!("http://{address}")).unwrap();
    let began = Instant::now();
    (0..5_000).for_each(|id| audit.record(&record(&id.to_string(), 1)));
    assert!(began.elapsed() < Duration::from_secs(1), "a call does not wait");
    assert!((1..=904).contains(&audit.lost()), "{}", audit.lost());
    while audit.problem().is_none() {
        assert!(began.elapsed() < Duration::from_secs(20), "nobody notices");
        std::thread::sleep(Duration::from_millis(5));
    }
    let lost = audit.lost();
    let (_, heard) = collector_at(TcpListener::bind(address).unwrap());
    let mut records = Vec::new();
    while (records.len() as u64) < 5_000 - lost {
        let (_, body) = heard.recv_timeout(Duration::from_secs(20)).unwrap();
        records.extend(audit_records(&body));
    }
    let until = Instant::now() + Duration::from_secs(10);
    while audit.problem().is_some() {
        assert!(Instant::now() < until, "{:?}", audit.problem());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(audit.lost(), lost);
}

#[test]
fn records_that_the_collector_rejects_are_counted_and_hold_up_no_others() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    // The first request is invalid to the collector. Of the second it rejects one record.
    let partial = b"\x0a\x02\x08\x01";
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        let refused = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_vec();
        let mut accepted = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n".to_vec();
        accepted.extend_from_slice(partial);
        for answer in [refused, accepted] {
            request(&mut stream).unwrap();
            stream.get_mut().write_all(&answer).unwrap();
        }
    });
    let audit = OtlpAudit::to(&endpoint).unwrap();
    audit.record(&record("1", 1));
    audit.flush();
    assert_eq!(audit.lost(), 1);
    assert!(audit.problem().is_some());
    audit.record(&record("2", 1));
    audit.flush();
    assert_eq!((audit.lost(), audit.problem()), (2, None));
}

#[test]
fn what_waits_for_a_silent_collector_at_the_end_is_given_up_after_a_moment() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let audit = OtlpAudit::to(&format!("http://{}", silent.local_addr().unwrap())).unwrap();
    (0..300).for_each(|id| audit.record(&record(&id.to_string(), 1)));
    let began = Instant::now();
    drop(audit);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}
