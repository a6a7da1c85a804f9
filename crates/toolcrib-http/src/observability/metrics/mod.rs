//! Metrics in the Prometheus text format.

mod text;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use toolcrib_core::{BucketCounts, ModelSeries, ToolStatistics};

use crate::api::Api;
use crate::observability::traffic::BUCKETS;
use text::{Family, Kind, Text};

/// The media type of the format.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) async fn metrics(State(api): State<Api>) -> Response {
    ([("content-type", MEDIA_TYPE)], page(&api)).into_response()
}

fn page(api: &Api) -> String {
    let mut text = Text::default();
    text.family("toolcrib_build_info", Kind::Gauge, "Which version runs.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1_u64);
    health(api, &mut text);
    tools(&api.backend().executor().statistics().snapshot(), &mut text);
    models(&api.backend().executor().model_statistics().snapshot(), &mut text);
    cache(api, &mut text);
    traffic(api, &mut text);
    text.finish()
}

fn health(api: &Api, text: &mut Text) {
    let health = api.backend().health();
    let stopping = api.backend().executor().is_shutting_down();
    text.family("toolcrib_ready", Kind::Gauge, "Whether the server accepts calls.")
        .sample(&[], u64::from(!stopping));
    text.family(
        "toolcrib_degraded",
        Kind::Gauge,
        "Whether something needs an operator's attention.",
    )
    .sample(&[], u64::from(health.is_degraded()));
    text.family("toolcrib_generation", Kind::Gauge, "The generation of the registry.")
        .sample(&[], health.generation);
    let mut tools = text.family("toolcrib_tools", Kind::Gauge, "Tools that own their name.");
    tools.sample(&[("state", "callable")], health.tools.saturating_sub(health.unavailable));
    tools.sample(&[("state", "unavailable")], health.unavailable);
    let mut files = text.family("toolcrib_files", Kind::Gauge, "Manifests by state.");
    files.sample(&[("state", "live")], health.files_live);
    files.sample(&[("state", "stale")], health.files_stale);
    files.sample(&[("state", "broken")], health.files_broken);
    text.family(
        "toolcrib_directories_unreadable",
        Kind::Gauge,
        "Manifest directories that cannot be read.",
    )
    .sample(&[], health.directories_unreadable);
    text.family(
        "toolcrib_names_after_restart",
        Kind::Gauge,
        "Names that would have another owner after a restart.",
    )
    .sample(&[], health.names_after_restart);
    let mut upstreams = text.family(
        "toolcrib_upstream_connected",
        Kind::Gauge,
        "Whether an upstream MCP server is connected.",
    );
    for (name, connected) in api.backend().upstreams() {
        upstreams.sample(&[("upstream", &name)], u64::from(connected));
    }
    text.family(
        "toolcrib_audit_lost_total",
        Kind::Counter,
        "Audit records that could not be written or sent.",
    )
    .sample(&[], health.audit_lost);
    text.family(
        "toolcrib_audit_down",
        Kind::Gauge,
        "Places of the audit log to which records cannot be written or sent now.",
    )
    .sample(&[], health.audit_down);
    text.family(
        "toolcrib_state_down",
        Kind::Gauge,
        "Whether state cannot be stored now, for example because the disk is full.",
    )
    .sample(&[], health.state_down);
}

fn tools(statistics: &[ToolStatistics], text: &mut Text) {
    let mut calls =
        text.family("toolcrib_calls_total", Kind::Counter, "Calls by tool and outcome.");
    for tool in statistics {
        let name = tool.tool.as_str();
        calls.sample(&[("tool", name), ("outcome", "success")], tool.successes);
        calls.sample(&[("tool", name), ("outcome", "kept_answer")], tool.cache_hits);
        for (kind, count) in &tool.errors_by_kind {
            calls.sample(&[("tool", name), ("outcome", kind)], *count);
        }
    }
    let mut running = text.family("toolcrib_calls_in_flight", Kind::Gauge, "Calls in progress.");
    for tool in statistics {
        running.sample(&[("tool", &tool.tool)], tool.in_flight);
    }
    let mut timeouts =
        text.family("toolcrib_timeouts_total", Kind::Counter, "Calls that reached a time limit.");
    for tool in statistics {
        timeouts.sample(&[("tool", &tool.tool)], tool.timeouts);
    }
    let mut durations = text.family("toolcrib_call_seconds", Kind::Summary, "Duration of calls.");
    for tool in statistics {
        let name = tool.tool.as_str();
        for (quantile, seconds) in [("0.5", tool.p50_seconds), ("0.99", tool.p99_seconds)] {
            if let Some(seconds) = seconds {
                durations.sample(&[("tool", name), ("quantile", quantile)], seconds);
            }
        }
        durations.part("_sum", &[("tool", name)], tool.total_seconds);
        durations.part("_count", &[("tool", name)], tool.runs());
    }
}

/// Requests to models, under the names that OpenTelemetry's conventions have in Prometheus.
fn models(all: &[ModelSeries], text: &mut Text) {
    if all.is_empty() {
        return;
    }
    let labels = |one: &ModelSeries, more: Option<(&'static str, &str)>| {
        let mut labels = vec![
            ("gen_ai_operation_name", "chat".to_owned()),
            ("gen_ai_provider_name", one.provider.clone()),
            ("gen_ai_request_model", one.model.clone()),
        ];
        labels.extend(one.error.clone().map(|error| ("error_type", error)));
        labels.extend(more.map(|(name, value)| (name, value.to_owned())));
        labels
    };
    let mut durations = text.family(
        "gen_ai_client_operation_duration_seconds",
        Kind::Histogram,
        "Duration of requests to models.",
    );
    for one in all {
        histogram(&mut durations, labels(one, None), &one.seconds);
    }
    let mut tokens = text.family(
        "gen_ai_client_token_usage",
        Kind::Histogram,
        "Tokens of requests to models and of their answers.",
    );
    for one in all.iter().filter(|one| one.input_tokens.count > 0) {
        for (kind, counts) in [("input", &one.input_tokens), ("output", &one.output_tokens)] {
            histogram(&mut tokens, labels(one, Some(("gen_ai_token_type", kind))), counts);
        }
    }
}

fn histogram(family: &mut Family<'_>, mut labels: Vec<(&str, String)>, counts: &BucketCounts) {
    let bounds = counts.bounds.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
    let numbers = counts.up_to.iter().chain([&counts.count]);
    for (bound, number) in bounds.zip(numbers) {
        labels.push(("le", bound));
        family.part("_bucket", &borrowed(&labels), number);
        labels.pop();
    }
    family.part("_sum", &borrowed(&labels), counts.sum);
    family.part("_count", &borrowed(&labels), counts.count);
}

fn borrowed<'l>(labels: &'l [(&'l str, String)]) -> Vec<(&'l str, &'l str)> {
    labels.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

fn cache(api: &Api, text: &mut Text) {
    let executor = api.backend().executor();
    let stats = executor.cache_stats();
    let mut looks =
        text.family("toolcrib_cache_lookups_total", Kind::Counter, "Lookups in the result cache.");
    looks.sample(&[("outcome", "hit")], stats.hits);
    looks.sample(&[("outcome", "miss")], stats.misses);
    text.family("toolcrib_cache_entries", Kind::Gauge, "Entries in the result cache.")
        .sample(&[], stats.entries);
    text.family("toolcrib_cache_bytes", Kind::Gauge, "Size of the result cache in bytes.")
        .sample(&[], stats.bytes);
    text.family(
        "toolcrib_long_polls_total",
        Kind::Counter,
        "How often an async tool blocked its thread for 100 ms or more.",
    )
    .sample(&[], executor.long_polls());
}

fn traffic(api: &Api, text: &mut Text) {
    let counts = api.traffic().counts();
    let mut answers = text.family(
        "toolcrib_http_requests_total",
        Kind::Counter,
        "Requests by method, route and status.",
    );
    for ((method, route, status), count) in &counts.answers {
        let status = status.to_string();
        answers
            .sample(&[("method", *method), ("route", *route), ("status", status.as_str())], *count);
    }
    text.family("toolcrib_http_requests_in_flight", Kind::Gauge, "Requests in progress.")
        .sample(&[], api.traffic().in_flight());
    text.family(
        "toolcrib_http_connections_refused_total",
        Kind::Counter,
        "Connections refused because there were too many.",
    )
    .sample(&[], api.traffic().refused_connections());
    let mut durations = text.family(
        "toolcrib_http_request_seconds",
        Kind::Histogram,
        "Time until the response headers.",
    );
    for (route, counted) in &counts.durations {
        for (end, count) in BUCKETS.iter().zip(counted.at_most) {
            durations.part("_bucket", &[("route", *route), ("le", &end.to_string())], count);
        }
        durations.part("_bucket", &[("route", *route), ("le", "+Inf")], counted.count);
        durations.part("_sum", &[("route", *route)], counted.seconds);
        durations.part("_count", &[("route", *route)], counted.count);
    }
}
