//! The metrics of a crib, as instruments that are read at every export.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter, MeterProvider as _};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use toolcrib_core::{MODEL_SECONDS, MODEL_TOKENS, ToolStatistics};
use toolcrib_http::Backend;

/// The backend that the instruments read.
type SharedBackend = Arc<dyn Backend>;

/// Creates the instruments; from then on they are read at every interval.
pub(crate) fn observe(provider: &SdkMeterProvider, backend: &SharedBackend) {
    let meter = provider.meter("toolcrib");
    calls(&meter, backend);
    cache(&meter, backend);
    state(&meter, backend);
    models(&meter, backend);
}

/// Reads the statistics of every tool.
fn each_tool<T>(
    backend: &SharedBackend,
    tell: impl Fn(&ToolStatistics, &dyn AsyncInstrument<T>) + Send + Sync + 'static,
) -> impl Fn(&dyn AsyncInstrument<T>) + Send + Sync + 'static {
    let backend = Arc::clone(backend);
    move |instrument| {
        for tool in &backend.executor().statistics().snapshot() {
            tell(tool, instrument);
        }
    }
}

fn of_tool(tool: &ToolStatistics) -> KeyValue {
    KeyValue::new("gen_ai.tool.name", tool.tool.clone())
}

fn calls(meter: &Meter, backend: &SharedBackend) {
    meter
        .u64_observable_counter("toolcrib.calls")
        .with_description("Calls by tool and outcome.")
        .with_unit("{call}")
        .with_callback(each_tool(backend, |tool, calls| {
            let outcome = |name: &'static str| [of_tool(tool), KeyValue::new("outcome", name)];
            calls.observe(tool.successes, &outcome("success"));
            calls.observe(tool.cache_hits, &outcome("kept_answer"));
            for (kind, count) in &tool.errors_by_kind {
                calls.observe(*count, &outcome(kind));
            }
        }))
        .build();
    meter
        .u64_observable_gauge("toolcrib.calls.in_flight")
        .with_description("Calls under way.")
        .with_unit("{call}")
        .with_callback(each_tool(backend, |tool, calls| {
            calls.observe(tool.in_flight, &[of_tool(tool)]);
        }))
        .build();
    meter
        .u64_observable_counter("toolcrib.timeouts")
        .with_description("Calls that exceeded a limit.")
        .with_unit("{call}")
        .with_callback(each_tool(backend, |tool, calls| {
            calls.observe(tool.timeouts, &[of_tool(tool)]);
        }))
        .build();
    meter
        .f64_observable_gauge("toolcrib.call.duration")
        .with_description("Duration of a tool's runs: median, 99th percentile and maximum.")
        .with_unit("s")
        .with_callback(each_tool(backend, |tool, durations| {
            for (quantile, seconds) in [("0.5", tool.p50_seconds), ("0.99", tool.p99_seconds)] {
                if let Some(seconds) = seconds {
                    durations
                        .observe(seconds, &[of_tool(tool), KeyValue::new("quantile", quantile)]);
                }
            }
        }))
        .build();
    meter
        .f64_observable_counter("toolcrib.calls.time")
        .with_description("Seconds spent in all runs of a tool.")
        .with_unit("s")
        .with_callback(each_tool(backend, |tool, seconds| {
            seconds.observe(tool.total_seconds, &[of_tool(tool)]);
        }))
        .build();
}

fn cache(meter: &Meter, backend: &SharedBackend) {
    let asked = Arc::clone(backend);
    meter
        .u64_observable_counter("toolcrib.cache.lookups")
        .with_description("Cache lookups.")
        .with_callback(move |lookups| {
            let stats = asked.executor().cache_stats();
            lookups.observe(stats.hits, &[KeyValue::new("outcome", "hit")]);
            lookups.observe(stats.misses, &[KeyValue::new("outcome", "miss")]);
        })
        .build();
}

fn state(meter: &Meter, backend: &SharedBackend) {
    let asked = Arc::clone(backend);
    meter
        .u64_observable_gauge("toolcrib.tools")
        .with_description("Registered tools.")
        .with_callback(move |tools| {
            let health = asked.health();
            let callable = health.tools.saturating_sub(health.unavailable);
            for (state, count) in [("callable", callable), ("unavailable", health.unavailable)] {
                tools.observe(count as u64, &[KeyValue::new("state", state)]);
            }
        })
        .build();
    let asked = Arc::clone(backend);
    meter
        .u64_observable_gauge("toolcrib.files")
        .with_description("Manifests by their state.")
        .with_callback(move |files| {
            let health = asked.health();
            let states = [
                ("live", health.files_live),
                ("stale", health.files_stale),
                ("broken", health.files_broken),
            ];
            for (state, count) in states {
                files.observe(count as u64, &[KeyValue::new("state", state)]);
            }
        })
        .build();
    let asked = Arc::clone(backend);
    meter
        .u64_observable_gauge("toolcrib.upstream.connected")
        .with_description("Whether an MCP server behind this one is connected.")
        .with_callback(move |upstreams| {
            for (name, is_connected) in asked.upstreams() {
                upstreams.observe(u64::from(is_connected), &[KeyValue::new("upstream", name)]);
            }
        })
        .build();
    let asked = Arc::clone(backend);
    meter
        .u64_observable_gauge("toolcrib.degraded")
        .with_description("Whether something needs the operator's attention.")
        .with_callback(move |degraded| {
            degraded.observe(u64::from(asked.health().is_degraded()), &[]);
        })
        .build();
    let asked = Arc::clone(backend);
    meter
        .u64_observable_counter("toolcrib.audit.lost")
        .with_description("Audit records that could not be written.")
        .with_callback(move |lost| lost.observe(asked.health().audit_lost, &[]))
        .build();
}

/// Requests to models, as the conventions for generative AI name them.
fn models(meter: &Meter, backend: &SharedBackend) {
    let durations = meter
        .f64_histogram("gen_ai.client.operation.duration")
        .with_description("Duration of requests to models.")
        .with_unit("s")
        .with_boundaries(MODEL_SECONDS.to_vec())
        .build();
    let tokens = meter
        .u64_histogram("gen_ai.client.token.usage")
        .with_description("Tokens of requests to models and of their answers.")
        .with_unit("{token}")
        .with_boundaries(MODEL_TOKENS.to_vec())
        .build();
    backend.executor().model_statistics().on_request(move |request| {
        let mut labels = vec![
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.provider.name", request.provider.to_owned()),
            KeyValue::new("gen_ai.request.model", request.model.to_owned()),
        ];
        let error = request.error.map(|error| KeyValue::new("error.type", error.to_owned()));
        labels.extend(error);
        durations.record(request.duration.as_secs_f64(), &labels);
        let Some((input, output)) = request.tokens else { return };
        for (kind, count) in [("input", input), ("output", output)] {
            labels.push(KeyValue::new("gen_ai.token.type", kind));
            tokens.record(count, &labels);
            labels.pop();
        }
    });
}
