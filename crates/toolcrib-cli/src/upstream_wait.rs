//! Connects to other MCP servers for commands that end by themselves: waits for a bounded time and
//! reports servers that are down.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use toolcrib::Toolcrib;
use toolcrib::core::clock::{Clock as _, SystemClock};
use toolcrib::mcp::upstream::{
    UPSTREAM_TOOLS_MAX, Upstream, UpstreamState, UpstreamStatus, Upstreams,
};
use toolcrib::stores::{DatabasePins, PinnedTools};
use toolcrib::tool::units::HumanDuration;
use toolcrib::tool::{ToolEntry, fully_visible};

use crate::screen::{FAINT, STRONG, WARNING, folded_note, note};
use crate::serving::stop;
use crate::startup::{self, Started};

/// After how long to print which servers are still awaited.
const NOTICE_DELAY: Duration = Duration::from_secs(2);
/// Extra time for starting a program and shutting it down.
const MARGIN: Duration = Duration::from_secs(5);

/// Connects to all servers, and waits for each within the limit of its manifest.
pub(crate) async fn connect(started: &Started) -> anyhow::Result<()> {
    before_programs(started)?;
    let connected = async { wait_for_all(started, started.crib.connect().await).await };
    Ok(stop::unless_requested(connected).await.ok_or(stop::Interrupted)?)
}

/// Waits until every server is connected or down, and prints which ones take long.
async fn wait_for_all(started: &Started, upstreams: &Upstreams) {
    if upstreams.settled(NOTICE_DELAY).await {
        return;
    }
    let connecting: Vec<String> = upstreams
        .status()
        .into_iter()
        .filter(|status| is_connecting(&status.state))
        .map(|status| status.name)
        .collect();
    let declared = started.manifests.files().upstreams();
    let limits = declared.filter(|upstream| connecting.contains(&upstream.name));
    let limit = limits.map(|upstream| upstream.connect_timeout).max().unwrap_or_default();
    let names: Vec<_> = connecting.iter().map(|name| fully_visible(name)).collect();
    note(folded_note(
        &format!(
            "{FAINT}waiting{FAINT:#} up to {} for upstream {STRONG}{}{STRONG:#} (`connect_timeout` of its \
             manifest)",
            HumanDuration(Some(limit)),
            names.join(", ")
        ),
        4,
    ));
    upstreams.settled(limit.saturating_sub(NOTICE_DELAY) + MARGIN).await;
}

fn is_connecting(state: &UpstreamState) -> bool {
    !matches!(state, UpstreamState::Connected | UpstreamState::Down { .. })
}

/// Connects only to servers that may have a tool of this name, unless the name belongs to another
/// source.
pub(crate) async fn connect_for(started: &Started, tool: &str) -> anyhow::Result<()> {
    if started.crib.executor().registry().snapshot().get(tool).is_some() {
        return Ok(());
    }
    // Uses the crib's view: a server that the lock blocks is not started for a call either.
    let declared = started.crib.declared_upstreams().into_iter();
    let asked: Vec<_> = declared.filter(|upstream| upstream.may_offer(tool)).collect();
    if !asked.is_empty() {
        before_programs(started)?;
    }
    let upstreams = started.crib.upstreams();
    upstreams.set(asked).await;
    wait_for_all(started, upstreams).await;
    Ok(())
}

/// Creates paths that decide what runs, before servers are started.
fn before_programs(started: &Started) -> anyhow::Result<()> {
    if started.manifests.upstreams().next().is_some() {
        startup::before_programs(&started.config)?;
    }
    Ok(())
}

/// A line for each server with more tools than are used.
pub(crate) fn cut_lists(crib: &Toolcrib) -> Vec<String> {
    let statuses = crib.upstreams().status().into_iter().filter(|status| status.left_out > 0);
    let line = |status: UpstreamStatus| {
        format!(
            "{WARNING}left out{WARNING:#} of upstream {STRONG}{}{STRONG:#}: at least {} of its tools; at \
             most {UPSTREAM_TOOLS_MAX} of one server are taken",
            status.name, status.left_out
        )
    };
    statuses.map(line).collect()
}

/// A text for each filter and override that matches nothing of its server.
pub(crate) fn unmatched(crib: &Toolcrib) -> Vec<String> {
    let statuses = crib.upstreams().status().into_iter();
    let told = statuses.flat_map(|status| {
        let name = status.name;
        status.unmatched.into_iter().map(move |own| format!("upstream {name}: {own}"))
    });
    told.collect()
}

/// The last lines of output of servers that are down, if there are several.
pub(crate) fn last_output(crib: &Toolcrib) -> Vec<String> {
    let mut lines = Vec::new();
    for status in crib.upstreams().status() {
        if let UpstreamState::Down { said, .. } = status.state
            && !said.is_empty()
        {
            lines.push(format!("{FAINT}the last lines of {}:{FAINT:#}", status.name));
            lines.extend(said.iter().map(|line| format!("  {line}")));
        }
    }
    lines
}

/// A line for each server that is not connected.
pub(crate) fn absent(crib: &Toolcrib) -> Vec<String> {
    let line = |status: UpstreamStatus| {
        let name = format!("upstream {STRONG}{}{STRONG:#}", status.name);
        match status.state {
            UpstreamState::Connected => None,
            UpstreamState::Down { reason, detail, .. } => {
                let detail = detail.map(|detail| format!(" {FAINT}({detail}){FAINT:#}"));
                let detail = detail.unwrap_or_default();
                Some(format!("{WARNING}down{WARNING:#} {name}: {reason}{detail}"))
            }
            _ => Some(format!("{WARNING}connecting{WARNING:#} {name}: it has not answered yet")),
        }
    };
    crib.upstreams().status().into_iter().filter_map(line).collect()
}

/// Why no source has the name of a tool, if a server that may have it is down.
pub(crate) fn down_for(started: &Started, tool: &str) -> Option<String> {
    if started.crib.executor().registry().snapshot().get(tool).is_some() {
        return None;
    }
    let declared = started.crib.declared_upstreams().into_iter();
    let may_have_it: Vec<_> = declared.filter(|upstream| upstream.may_offer(tool)).collect();
    started.crib.upstreams().status().into_iter().find_map(|status| match status.state {
        UpstreamState::Down { reason, .. }
            if may_have_it.iter().any(|upstream| upstream.name() == status.name) =>
        {
            Some(format!("the MCP server {} is down: {reason}", status.name))
        }
        _ => None,
    })
}

/// All servers as JSON.
pub(crate) fn records(crib: &Toolcrib) -> Value {
    crib.upstreams().status().iter().map(UpstreamStatus::to_value).collect()
}

/// The number of a server's tools that are named in one line.
const NAMED_MAX: usize = 8;

/// The pinned tools of an MCP server that was not asked.
pub(crate) struct UnaskedServer {
    pub(crate) upstream: String,
    pub(crate) tools: Vec<String>,
    age: String,
}

impl UnaskedServer {
    /// Prints their names to standard error, or the first few.
    pub(crate) fn say(&self) {
        let tools = self.tools.iter().take(NAMED_MAX).map(|tool| fully_visible(tool));
        let mut named = tools.collect::<Vec<_>>().join(", ");
        if self.tools.len() > NAMED_MAX {
            let _ = write!(named, " and {} more", self.tools.len() - NAMED_MAX);
        }
        note_not_asked(&self.upstream, &format!("{} ago it had these tools: {named}", self.age));
    }

    /// Whose tools these are, and how long ago the last was pinned, as a clause.
    pub(crate) fn source(&self) -> String {
        format!("a tool of the MCP server `{}`, as pinned {} ago", self.upstream, self.age)
    }
}

fn note_not_asked(upstream: &str, line: &str) {
    let line = format!(
        "{FAINT}not asked{FAINT:#} upstream {STRONG}{upstream}{STRONG:#}: {line} (`--connect` asks it)"
    );
    note(folded_note(&line, 4));
}

/// The pinned tools that are `wanted`, by server. A pinned tool that the manifest now excludes is
/// not included.
pub(crate) fn pinned_tools(started: &Started, wanted: impl Fn(&str) -> bool) -> Vec<UnaskedServer> {
    let of = |upstream: Upstream| {
        let (mut tools, age) = pinned(started, &upstream)?;
        tools.retain(|tool| wanted(tool));
        let upstream = upstream.name().to_owned();
        (!tools.is_empty()).then_some(UnaskedServer { upstream, tools, age })
    };
    started.manifests.upstreams().filter_map(of).collect()
}

/// Prints for each server that was not asked which of its tools are pinned, and since when.
pub(crate) fn note_pinned_tools(started: &Started) {
    let pinned = pinned_tools(started, |_| true);
    for upstream in started.manifests.files().upstreams() {
        match pinned.iter().find(|own| own.upstream == upstream.name) {
            Some(own) => own.say(),
            None => note_not_asked(&upstream.name, "none of its tools is pinned"),
        }
    }
}

/// Which server that was not asked has a tool or may have it, as a sentence.
pub(crate) fn not_asked_for(started: &Started, tool: &str) -> Option<String> {
    if started.crib.executor().registry().snapshot().get(tool).is_some() {
        return None;
    }
    let mut asked = started.manifests.upstreams().filter(|upstream| upstream.may_offer(tool));
    let upstream = asked.next()?;
    let (name, tool_shown) = (upstream.name(), fully_visible(tool));
    let pinned =
        pinned(started, &upstream).filter(|(tools, _)| tools.iter().any(|own| own == tool));
    Some(match pinned {
        Some((_, age)) => format!(
            "`{tool_shown}` is a tool of the MCP server {name}, as pinned {age} ago: `--connect` asks the server"
        ),
        None => format!(
            "`{tool_shown}` may be a tool of the MCP server {name}, which was not asked: `--connect` asks it"
        ),
    })
}

/// A tool of a server that was not asked, as it was pinned, with the words and settings of the manifest.
pub(crate) fn pinned_tool(started: &Started, tool: &str) -> Option<ToolEntry> {
    let dir = started.config.state.dir.as_ref()?;
    started.manifests.upstreams().filter(|upstream| upstream.may_offer(tool)).find_map(|upstream| {
        let pins = DatabasePins::pinned_tools(dir, upstream.name()).ok()??;
        let is_it = |pin: &&String| upstream.name_of_pinned(pin).as_deref() == Some(tool);
        let pin = pins.tools.iter().find(is_it)?;
        let says = DatabasePins::pinned_text(dir, upstream.name(), pin);
        let says =
            says.inspect_err(|error| tracing::warn!(%error, "pins cannot be read")).ok()??;
        upstream.pinned_entry(&started.crib.executor().mask(), &says)
    })
}

/// The names of a server's pinned tools here, and the age of the latest pin.
fn pinned(started: &Started, upstream: &Upstream) -> Option<(Vec<String>, String)> {
    let PinnedTools { tools, changed_at } =
        DatabasePins::pinned_tools(started.config.state.dir.as_ref()?, upstream.name())
            .inspect_err(|error| tracing::warn!(%error, "pins cannot be read"))
            .ok()??;
    let age = SystemClock.now().since(changed_at).as_secs();
    let age = match age {
        ..120 => format!("{age} s"),
        120..7_200 => format!("{} min", age / 60),
        7_200..172_800 => format!("{} h", age / 3_600),
        _ => format!("{} days", age / 86_400),
    };
    let mut tools: Vec<_> = tools.iter().filter_map(|pin| upstream.name_of_pinned(pin)).collect();
    tools.sort();
    Some((tools, age))
}
