//! The status of upstream MCP servers.

use tokio::runtime::Handle;
use toolcrib_http::reports::UpstreamReport;
use toolcrib_mcp::upstream::{Upstream, UpstreamState, UpstreamStatus};

use crate::Toolcrib;

/// The servers to connect to.
pub(super) fn declared(crib: &Toolcrib) -> Vec<Upstream> {
    crib.declared_upstreams()
}

/// The status of each server.
pub(super) fn status(crib: &Toolcrib) -> Vec<UpstreamReport> {
    crib.upstreams().status().into_iter().map(report).collect()
}

fn report(status: UpstreamStatus) -> UpstreamReport {
    let mut report = UpstreamReport {
        name: status.name,
        state: Some(status.state.as_str().to_owned()),
        tools: Some(status.tools),
        disabled: Some(status.disabled),
        left_out: (status.left_out > 0).then_some(status.left_out),
        unmatched: status.unmatched.iter().map(ToString::to_string).collect(),
        ..UpstreamReport::default()
    };
    if let UpstreamState::Down { reason, detail, said, retry } = status.state {
        report.reason = Some(reason);
        report.detail = detail;
        report.said = said;
        report.retry_seconds = retry.map(|retry| retry.as_secs_f64());
    }
    report
}

/// The status of each server after a reload, and as `change` how the reload affected it: `added`,
/// `reconnected`, `restarted` because its program was changed, `updated` without a new connection, or
/// `removed`.
pub(super) fn status_after(crib: &Toolcrib, before: &[Upstream]) -> Vec<UpstreamReport> {
    let now = crib.declared_upstreams();
    if now != before {
        // This waits for no server: new ones may still be connecting when it returns.
        Handle::current().block_on(crib.connect());
    }
    let restarted = crib.upstreams().restart_changed();
    let of =
        |all: &[Upstream], name: &str| all.iter().find(|upstream| upstream.name() == name).cloned();
    let changed = |name: &str| match (of(before, name), of(&now, name)) {
        (None, Some(_)) => Some("added"),
        (Some(one), Some(other)) if !one.is_reached_as(&other) => Some("reconnected"),
        _ if restarted.iter().any(|own| own == name) => Some("restarted"),
        (Some(one), Some(other)) if one != other => Some("updated"),
        _ => None,
    };
    let changed = |status: UpstreamStatus| {
        let change = changed(&status.name).map(str::to_owned);
        UpstreamReport { change, ..report(status) }
    };
    let removed = |one: &Upstream| UpstreamReport {
        name: one.name().to_owned(),
        change: Some("removed".to_owned()),
        ..UpstreamReport::default()
    };
    let there = crib.upstreams().status().into_iter().map(changed);
    let gone = before.iter().filter(|one| of(&now, one.name()).is_none());
    there.chain(gone.map(removed)).collect()
}
