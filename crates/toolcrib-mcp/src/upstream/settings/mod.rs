//! Settings of an upstream: how it is reached and which tools it contributes.

pub(crate) mod declared;
pub(crate) mod selection;
mod stdio;

use std::time::Duration;

use toolcrib_core::exposed_name;
use toolcrib_sandbox::ControlPlane;
use toolcrib_tool::{Approval, Layer, Origin, RateLimit, Source};

use crate::upstream::connection::backoff::Backoff;
use crate::upstream::connection::http::HttpServer;
use selection::{Filter, NamePattern, Selection, ToolOverride};
pub use stdio::StdioServer;

/// Stands in the name of a pin between the tool's usual name here and the server's name of it.
const RENAMED: char = '#';

/// Another MCP server and the tools it contributes.
///
/// ```
/// use toolcrib_mcp::upstream::{StdioServer, Upstream};
///
/// let server = StdioServer::new("github-mcp-server").arg("stdio").env("GITHUB_TOKEN", "…");
/// let github = Upstream::stdio("github", server).include(["get_*", "list_*"]);
/// assert_eq!(github.name(), "github");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Upstream {
    pub(crate) name: String,
    pub(crate) transport: Transport,
    pub(crate) missing: Option<String>,
    pub(crate) tools: Selection,
    pub(crate) resources: Option<Filter>,
    pub(crate) prompts: Option<Filter>,
    pub(crate) trust_annotations: bool,
    pub(crate) connect_timeout: Duration,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_concurrent: Option<usize>,
    pub(crate) rate: Option<RateLimit>,
    pub(crate) approval: Approval,
    pub(crate) tags: Vec<String>,
    pub(crate) category: Option<String>,
    pub(crate) origin: Option<Origin>,
    pub(crate) backoff: Backoff,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Transport {
    Stdio(Box<StdioServer>),
    Http(HttpServer),
}

impl Upstream {
    /// Creates an upstream that is started here and spoken to over its standard input and output.
    /// Its tools are named `name_tool`; `name` is also the name of its registry unit.
    pub fn stdio(name: impl Into<String>, server: StdioServer) -> Self {
        Self::new(name.into(), Transport::Stdio(Box::new(server)))
    }

    /// Creates an upstream that speaks streamable HTTP.
    pub fn http(name: impl Into<String>, server: HttpServer) -> Self {
        Self::new(name.into(), Transport::Http(server))
    }

    fn new(name: String, transport: Transport) -> Self {
        Self {
            name,
            transport,
            missing: None,
            tools: Selection::default(),
            resources: None,
            prompts: None,
            trust_annotations: false,
            connect_timeout: Duration::from_secs(30),
            timeout: None,
            max_concurrent: None,
            rate: None,
            approval: Approval::Never,
            tags: Vec::new(),
            category: None,
            origin: None,
            backoff: Backoff::new(Duration::from_millis(500), Duration::from_secs(60)),
        }
    }

    /// The name of the upstream.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names something without which the server cannot be connected to, for example a secret. No
    /// connection is attempted then, and people see this as the reason.
    #[must_use]
    pub fn missing(mut self, what: impl Into<String>) -> Self {
        self.missing = Some(what.into());
        self
    }

    /// Sets what its program may not change, if that is not set yet; see
    /// [`StdioServer::control_plane`].
    #[must_use]
    pub fn control_plane(mut self, plane: &ControlPlane) -> Self {
        if let Transport::Stdio(server) = &mut self.transport
            && server.plane.is_none()
        {
            server.plane = Some(plane.clone());
        }
        self
    }

    /// Includes only tools whose own names match one of these patterns. Default: all.
    #[must_use]
    pub fn include<P: Into<NamePattern>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.tools.filter.include.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Excludes tools whose own names match one of these patterns. Default: none.
    #[must_use]
    pub fn exclude<P: Into<NamePattern>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.tools.filter.exclude.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Offers its resources and resource templates whose addresses match `include`, or all if that is empty, without those that match
    /// `exclude`. Default: none.
    #[must_use]
    pub fn resources<I: Into<NamePattern>, E: Into<NamePattern>>(
        mut self,
        include: impl IntoIterator<Item = I>,
        exclude: impl IntoIterator<Item = E>,
    ) -> Self {
        self.resources = Some(filter(include, exclude));
        self
    }

    /// Offers its prompts whose own names match `include`, or all if that is empty, without those that
    /// match `exclude`. Here they are called `name_prompt`. Default: none.
    #[must_use]
    pub fn prompts<I: Into<NamePattern>, E: Into<NamePattern>>(
        mut self,
        include: impl IntoIterator<Item = I>,
        exclude: impl IntoIterator<Item = E>,
    ) -> Self {
        self.prompts = Some(filter(include, exclude));
        self
    }

    /// Sets what the names of its tools begin with, instead of its own name. With an empty prefix the
    /// tools keep the server's names.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.tools.prefix = Some(prefix.into());
        self
    }

    /// Replaces the server's words about the tool that it calls `tool`. What the server says is pinned and
    /// compared all the same.
    #[must_use]
    pub fn override_tool(mut self, tool: impl Into<String>, with: ToolOverride) -> Self {
        self.tools.overrides.insert(tool.into(), with);
        self
    }

    /// Sets whether to believe what the server says about its tools' effects. Default: no. Then its
    /// tools count as destructive, and its hints are only
    /// [shown](toolcrib_tool::ToolDefinition::claims).
    #[must_use]
    pub fn trust_annotations(mut self, trust: bool) -> Self {
        self.trust_annotations = trust;
        self
    }

    /// Sets how long the server may take to be ready and to list its tools. Default: 30 s.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Sets how long a call may take. Default: the executor's limit.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Sets how many calls of one tool may run at once. Default: no limit.
    #[must_use]
    pub fn max_concurrent(mut self, calls: usize) -> Self {
        self.max_concurrent = Some(calls);
        self
    }

    /// Sets how many calls of one tool may start in a period. Default: no limit.
    #[must_use]
    pub fn rate(mut self, rate: RateLimit) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Sets when calls wait for a person. Default: never.
    #[must_use]
    pub fn approval(mut self, approval: Approval) -> Self {
        self.approval = approval;
        self
    }

    /// Sets the tags of its tools.
    #[must_use]
    pub fn tags(mut self, tags: Vec<String>) -> Self {
        self.tags = tags;
        self
    }

    /// Sets the category of its tools.
    #[must_use]
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.category = Some(category.into());
        self
    }

    /// Sets where the upstream is declared.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Sets the backoff of reconnects: the first delay, and the longest one. Delays double after
    /// each failure and are reduced by up to half at random. Default: half a second and a minute.
    #[must_use]
    pub fn reconnect(mut self, first: Duration, longest: Duration) -> Self {
        self.backoff = Backoff::new(first, longest);
        self
    }

    /// Whether both can share a connection: they have the same name, command or address, and are
    /// given the same values. Limits, labels, filters and the place of the declaration make no
    /// difference.
    pub fn is_reached_as(&self, other: &Self) -> bool {
        self.name == other.name
            && self.transport == other.transport
            && self.missing == other.missing
            && self.backoff == other.backoff
    }

    /// The source of its tools.
    pub(crate) fn source(&self) -> Source {
        let source = Source::new(Layer::Upstream, self.name.as_str());
        match &self.origin {
            Some(origin) => source.at(origin.clone()),
            None => source,
        }
    }

    /// Whether the filters include a tool of that name.
    pub(crate) fn takes(&self, tool: &str) -> bool {
        self.tools.filter.takes(tool)
    }

    /// What the names of its tools begin with; empty if they keep the server's names.
    pub(crate) fn names_begin_with(&self) -> String {
        self.tools.begins_with(&self.name)
    }

    /// Whether a tool of this name here could be one of its tools.
    pub fn may_offer(&self, name: &str) -> bool {
        self.tools.may_offer(&self.name, name)
    }

    /// The name here of the tool whose definition is pinned under this name, if it is still taken as far
    /// as its pin tells.
    pub fn name_of_pinned(&self, pinned: &str) -> Option<String> {
        let tool = match pinned.split_once(RENAMED) {
            Some((_, tool)) => tool,
            None => match pinned.strip_prefix(exposed_name(&self.name, "").as_str()) {
                Some(tool) => tool,
                // It was cut.
                None => return Some(pinned.to_owned()),
            },
        };
        // A pin has `_` for every character that no name here has.
        let known = self.tools.overrides.keys().find(|known| self.pinned_as(known) == pinned);
        let tool = known.map_or(tool, String::as_str);
        self.tools.filter.may_take(tool).then(|| self.tools.name_here(&self.name, tool))
    }

    /// The name under which the definition of a tool is pinned. It is the same whatever the tool is called
    /// here: a tool that gets another name does not become one that was never seen.
    pub(crate) fn pinned_as(&self, tool: &str) -> String {
        let pinned = exposed_name(&self.name, tool);
        let is_renamed = self.tools.overrides.get(tool).is_some_and(|own| own.name.is_some());
        // Two tools with equal pins are told apart by their names here, so that one of them can be renamed.
        if is_renamed && !pinned.ends_with(tool) {
            format!("{pinned}{RENAMED}{tool}")
        } else {
            pinned
        }
    }

    /// Values that the upstream was given, which must not be shown even if the server says them.
    pub(crate) fn confidential(&self) -> impl Iterator<Item = &str> {
        let (env, http) = match &self.transport {
            Transport::Stdio(server) => (Some(server.env.values()), None),
            Transport::Http(server) => (None, Some(server.confidential())),
        };
        let values =
            env.into_iter().flatten().map(String::as_str).chain(http.into_iter().flatten());
        values.filter(|value| value.len() >= 6)
    }
}

fn filter<I: Into<NamePattern>, E: Into<NamePattern>>(
    include: impl IntoIterator<Item = I>,
    exclude: impl IntoIterator<Item = E>,
) -> Filter {
    let include = include.into_iter().map(Into::into).collect();
    let exclude = exclude.into_iter().map(Into::into).collect();
    Filter { include, exclude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_the_servers_own_names() {
        let upstream = Upstream::stdio("git", StdioServer::new("x"))
            .include(["get_*", "list.issues"])
            .exclude(["get_secret*"]);
        let taken = ["get_issue", "list.issues"];
        let left = ["get_secrets", "list_issues", "delete"];
        assert!(taken.iter().all(|tool| upstream.takes(tool)));
        assert!(!left.iter().any(|tool| upstream.takes(tool)));
    }

    #[test]
    fn debug_output_omits_values_of_variables() {
        let upstream = Upstream::stdio("git", StdioServer::new("x").env("TOKEN", "hunter22"));
        let shown = format!("{upstream:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter22"), "{shown}");
    }
}
