//! What a call of a tool runs, its confinement, limits and approval.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::core::policy::Verdict;
use toolcrib::manifest::declaration::{
    Declaration, DeclaredBody, UpstreamDeclaration, UpstreamTransport,
};
use toolcrib::tool::units::HumanDuration;
use toolcrib::tool::{ToolDefinition, ToolEntry, fully_visible};

use crate::command::manifests::trust::report::TrustReport;
use crate::screen::{self, STRONG};
use crate::startup::Started;

/// What declares the tool.
enum DeclaredBy<'a> {
    Here(&'a Declaration),
    ByServer(&'a UpstreamDeclaration),
    /// The tool is compiled in.
    InProgram,
}

/// What a person wants to know before a call.
pub(super) struct Behavior<'a> {
    definition: &'a ToolDefinition,
    declared: DeclaredBy<'a>,
    /// The decision for every call; none if it depends on the arguments.
    verdict: Option<Verdict>,
    timeout: Option<Duration>,
    /// Whether the time limit is that of the tool's own settings.
    is_own_limit: bool,
}

/// The built-in tool that runs its queries in a process of their own.
pub(in crate::command) const DATA_ANALYSIS: &str = "data_analysis";

/// The width of the row labels.
const LABEL_WIDTH: usize = 8;

/// Why every call needs approval, as the end of a clause. The reason of a tool's own setting only repeats that.
pub(in crate::command) fn because(by: &str, reason: &str) -> String {
    if reason == EVERY_CALL { format!(" ({by})") } else { format!(": {reason} ({by})") }
}

/// The reason that a tool's own `approval: always` gives.
const EVERY_CALL: &str = "the tool asks for approval of every call";

impl<'a> Behavior<'a> {
    pub(super) fn of(tool: &'a ToolEntry, started: &'a Started) -> Self {
        let files = started.manifests.files();
        let origin = tool.source.origin.as_ref();
        let here = files.declarations().find(|own| Some(&own.origin) == origin);
        let server = files.upstreams().find(|own| Some(&own.origin) == origin);
        let declared = match (here, server) {
            (Some(own), _) => DeclaredBy::Here(own),
            (None, Some(own)) => DeclaredBy::ByServer(own),
            (None, None) => DeclaredBy::InProgram,
        };
        let definition = &tool.definition;
        let timeout = started.crib.executor().config().limit(definition.timeout());
        let own_limit = matches!(declared, DeclaredBy::InProgram)
            .then(|| started.config.data_limit(definition.name()))
            .flatten();
        let is_own_limit = own_limit.is_some_and(|own| timeout.is_none_or(|all| own < all));
        let timeout = if is_own_limit { own_limit } else { timeout };
        let verdict = started.config.policy.verdict_of_every_call(tool);
        Self { definition, declared, verdict, timeout, is_own_limit }
    }

    /// The rows for people.
    pub(super) fn section(&self) -> String {
        let mut section = format!("\n{STRONG}A call{STRONG:#}\n");
        section.push_str(&self.runs());
        let mut row = |name: &str, value: &str| {
            let before = LABEL_WIDTH + 3;
            let value = screen::folded(&fully_visible(value), before, before);
            let _ = writeln!(section, "  {name:<LABEL_WIDTH$} {value}");
        };
        row("approval", &self.approval());
        // Some built-in tools have a shorter limit for their work, which their description says.
        let is_own = matches!(self.declared, DeclaredBy::InProgram)
            && self.timeout.is_some()
            && !self.is_own_limit;
        let suffix = if is_own { " for the whole call" } else { "" };
        row("timeout", &format!("{}{suffix}", HumanDuration(self.timeout)));
        if let Some(calls) = self.definition.max_concurrent() {
            row("at once", &format!("at most {}", screen::count(calls, "call")));
        }
        if let Some(rate) = self.definition.rate() {
            row("rate", &rate.to_string());
        }
        if let Some(cache) = self.definition.cache() {
            let time = match cache.ttl() {
                None => "for the time that the config sets".to_owned(),
                Some(time) => format!("for {}", HumanDuration(Some(time))),
            };
            let whose = if cache.is_shared() { "for all callers" } else { "for the same caller" };
            row("cache", &format!("answers are kept {time}, {whose}"));
        }
        if let Some(retry) = self.definition.retry() {
            let max = usize::try_from(retry.max()).unwrap_or(usize::MAX);
            row("retry", &format!("at most {}", screen::count(max, "more attempt")));
        }
        section
    }

    fn runs(&self) -> String {
        match &self.declared {
            DeclaredBy::Here(tool) => TrustReport::brief(tool).screen().to_owned(),
            DeclaredBy::ByServer(server) => {
                TrustReport::brief_of_upstream(server).screen().to_owned()
            }
            DeclaredBy::InProgram => {
                let runs = match self.definition.name() {
                    DATA_ANALYSIS => "a query in a confined process of its own",
                    _ => "code of this program",
                };
                format!("  {:<LABEL_WIDTH$} {runs}\n", "runs")
            }
        }
    }

    fn approval(&self) -> String {
        match &self.verdict {
            None => "depends on the arguments: see `policy.rules` of the config".to_owned(),
            Some(Verdict::Ask { by, reason }) => {
                format!("every call needs it{}", because(&by.to_string(), reason))
            }
            Some(Verdict::Deny { by, message }) => {
                format!("every call is denied: {message} ({by})")
            }
            Some(_) => "not needed".to_owned(),
        }
    }

    /// Adds the same facts to the JSON document.
    pub(super) fn add_to(&self, document: &mut Value) {
        document["timeout_seconds"] = json!(self.timeout.map(|limit| limit.as_secs_f64()));
        document["approval"] = json!(self.definition.approval().as_str());
        document["decision"] = match &self.verdict {
            None => json!({"action": "depends"}),
            Some(Verdict::Ask { by, reason }) => {
                json!({"action": "ask", "by": by.to_string(), "reason": reason})
            }
            Some(Verdict::Deny { by, message }) => {
                json!({"action": "deny", "by": by.to_string(), "reason": message})
            }
            Some(other) => json!({"action": "allow", "by": other.by().to_string()}),
        };
        match &self.declared {
            DeclaredBy::Here(tool) => {
                let (key, runs, confined) = match &tool.body {
                    DeclaredBody::Command(command) => ("command", json!(command), true),
                    DeclaredBody::Worker(worker) => ("worker", json!(worker), true),
                    DeclaredBody::Http(http) => ("request", json!(http), false),
                    DeclaredBody::Client => ("client", json!({}), false),
                };
                document["runs"] = json!({(key): runs});
                if confined {
                    document["confinement"] = json!(tool.sandbox);
                }
                document["secrets"] = json!(tool.needs.secrets);
            }
            DeclaredBy::ByServer(server) => {
                let mut of_server = json!({"name": server.name});
                match &server.transport {
                    UpstreamTransport::Stdio(stdio) => {
                        of_server["argv"] = json!(stdio.argv);
                        document["confinement"] = json!(stdio.sandbox);
                    }
                    UpstreamTransport::Http(http) => of_server["url"] = json!(http.url),
                }
                document["runs"] = json!({"server": of_server});
                document["secrets"] = json!(server.needs.secrets);
            }
            DeclaredBy::InProgram => document["runs"] = json!({"built_in": {}}),
        }
    }
}
