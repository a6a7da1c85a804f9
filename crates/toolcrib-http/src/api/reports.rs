//! Reports for operators: the bodies of `/v1/status`, `/v1/names`, `/v1/reload` and
//! `/v1/names/{name}/release`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// The status of a server: its files, its upstream MCP servers, and what a restart would change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ServerStatus {
    /// The process.
    pub pid: u32,
    /// The version of the program.
    pub version: String,
    /// The generation of the registry, which rises with every change.
    pub generation: u64,
    /// The number of tools that can be called.
    pub tools: usize,
    /// The number of tools that cannot be called.
    pub unavailable: usize,
    /// The first of these by name, at most [`ServerStatus::UNAVAILABLE_MAX`], with the reasons.
    #[schemars(length(max = 100))]
    pub unavailable_tools: Vec<UnavailableTool>,
    /// Tools that are paused after repeated timeouts, by name.
    pub paused_tools: Vec<PausedTool>,
    /// The number of declarations that lost a name conflict.
    pub shadowed: usize,
    /// Reserved names, which their owners gave up.
    pub reserved: Vec<String>,
    /// Names that would have another owner after a restart.
    pub after_restart: Vec<NameChange>,
    /// The manifest files.
    pub files: Vec<FileReport>,
    /// Manifest directories that cannot be read.
    pub unreadable: Vec<UnreadableDirectory>,
    /// The upstream MCP servers.
    pub upstreams: Vec<UpstreamReport>,
    /// The state of the configuration after the last reload.
    pub config: ConfigReport,
    /// Parts of confinement profiles that this machine cannot enforce.
    pub not_enforced: Vec<String>,
    /// What is stored, and how much.
    pub state: StateReport,
    /// Where audit records go.
    pub audit: Vec<AuditReport>,
}

/// What is stored in the state folder, or in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StateReport {
    /// The size of the database and its write-ahead log in bytes.
    pub bytes: u64,
    /// How much of it is free for new entries, in bytes.
    pub free_bytes: u64,
    /// Each kind of entry.
    pub kinds: Vec<StoredKind>,
    /// Why state cannot be stored or read now, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How much of one kind is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StoredKind {
    /// `runs`, `waiting calls`, `decisions`, `outputs`, `answers` or `tasks`.
    pub kind: String,
    /// How many there are.
    pub entries: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// When the oldest of them was stored (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<String>,
}

/// A place that audit records go to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditReport {
    /// The file, or the address of syslog.
    pub place: String,
    /// Records that could not be written or sent since the server started.
    pub lost: u64,
    /// Why records cannot be written or sent now, if they cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl ServerStatus {
    /// The maximum number of unavailable tools in a status. `toolcrib list --all` shows all of
    /// them.
    pub const UNAVAILABLE_MAX: usize = 100;
    /// The maximum length of a reason in a status, in characters.
    pub const REASON_MAX: usize = 1_000;
}

/// A tool that is paused after repeated timeouts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PausedTool {
    /// Its name.
    pub name: String,
    /// Seconds until a call is attempted, for the identity that waits longest; 0 while an attempt
    /// is running.
    pub seconds_left: u64,
}

/// A tool that cannot be called.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct UnavailableTool {
    /// Its name.
    pub name: String,
    /// The reason, truncated if it is long.
    #[schemars(length(max = 1_000))]
    pub reason: String,
}

impl UnavailableTool {
    /// Creates an entry; a long reason is truncated.
    pub fn new(name: impl Into<String>, reason: &str) -> Self {
        let mut shown: String = reason.chars().take(ServerStatus::REASON_MAX).collect();
        if shown.len() < reason.len() {
            shown.pop();
            shown.push('…');
        }
        Self { name: name.into(), reason: shown }
    }
}

/// A name that would have another owner after a restart.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NameChange {
    /// The kind of declaration: `tool`, `prompt`, `resource` or `upstream`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The current owner; null if there is none.
    pub live: Option<String>,
    /// The owner after a restart.
    pub fresh: String,
}

/// A manifest.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FileReport {
    /// Its path.
    pub file: String,
    /// `live`, `stale` (the file is invalid, and its last valid version is in use) or `broken`.
    pub state: String,
    /// How many of its tools are in use.
    pub tools: usize,
    /// Why it is invalid, if it is.
    pub reason: Option<String>,
}

/// A manifest directory that cannot be read.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct UnreadableDirectory {
    /// Its path.
    pub directory: String,
    /// The error.
    pub reason: String,
}

/// An upstream MCP server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct UpstreamReport {
    /// Its name.
    pub name: String,
    /// `connecting`, `connected` or `down`; absent if a reload has removed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// How many of its tools are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// How many of these were refused or have changed since they were first seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<usize>,
    /// A lower bound of how many of its tools are left out because it lists too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
    /// Filters and overrides of its manifest that match nothing, with their positions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub unmatched: Vec<String>,
    /// Why it is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the server or the system reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The last lines that the server wrote, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub said: Vec<String>,
    /// How long after it went down the next attempt is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_seconds: Option<f64>,
    /// What a reload has changed: `added`, `reconnected`, `updated` without a reconnect, or
    /// `removed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

/// The state of the configuration after the last reload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConfigReport {
    /// Why the latest configuration is invalid, so that the previous one is still in effect.
    pub problem: Option<String>,
    /// Keys whose new value takes effect only after a restart.
    pub needs_restart: Vec<String>,
    /// Where these keys are set, if they are: `config.yml:3:5`, a variable or a flag.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub restart_origins: BTreeMap<String, String>,
}

/// The owner of a name, its other declarations, and what a restart would change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NameStatus {
    /// The name.
    pub name: String,
    /// The source of the tool that owns the name.
    pub owner: Option<String>,
    /// Why that tool cannot be called, if it cannot.
    pub unavailable: Option<String>,
    /// Seconds until that tool's pause after repeated timeouts ends, for the identity that waits
    /// longest; 0 while an attempt is running. Absent if it is not paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_seconds: Option<u64>,
    /// Why its file is invalid, if it is.
    pub stale: Option<String>,
    /// Sources of other tools with the name, which came later.
    pub waiting: Vec<String>,
    /// The previous owner, if the name is reserved.
    pub given_up_by: Option<String>,
    /// The owner after a restart, if that is another one.
    pub after_restart: Option<String>,
    /// Prompts, resources and upstream MCP servers with this name.
    pub besides: Vec<OtherDeclaration>,
}

/// A declaration of a name by something other than a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OtherDeclaration {
    /// `prompt`, `resource` or `upstream`.
    pub kind: String,
    /// Where it is declared.
    pub declared_by: String,
    /// Why it is blocked, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// Which trust by the operator it lacks, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<String>,
    /// Who owns the name instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_by: Option<String>,
    /// The owner after a restart, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_restart: Option<String>,
}

/// The changes made by a reload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Reloaded {
    /// The new generation of the registry.
    pub generation: u64,
    /// Names of added tools.
    pub added: Vec<String>,
    /// Names of removed tools.
    pub removed: Vec<String>,
    /// Invalid files, with their errors.
    pub troubles: Vec<FileProblem>,
    /// The manifest files.
    pub files: Vec<FileReport>,
    /// Manifest directories that cannot be read.
    pub unreadable: Vec<UnreadableDirectory>,
    /// The upstream MCP servers and their changes.
    pub upstreams: Vec<UpstreamReport>,
    /// The changes of the configuration, if the server has a configuration file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigChanges>,
    /// Names in the configuration that match nothing, one sentence each.
    pub unmatched: Vec<String>,
    /// Files that decide what runs, that programs of this server could have created or changed, and that count as
    /// reviewed because of this reload.
    pub reviewed: Vec<String>,
}

/// An invalid file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FileProblem {
    /// Its path.
    pub file: String,
    /// The error.
    pub reason: String,
    /// The errors as rendered diagnostics.
    pub shown: Option<String>,
}

/// The configuration changes made by a reload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConfigChanges {
    /// Keys whose new value is in effect, without those of added or removed clients.
    pub changed: Vec<String>,
    /// Added clients (`server.tokens`).
    pub added_clients: Vec<String>,
    /// Removed clients.
    pub removed_clients: Vec<String>,
    /// Keys whose new value takes effect only after a restart.
    pub needs_restart: Vec<String>,
    /// Where these keys are set, if they are: `config.yml:3:5`, a variable or a flag.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub restart_origins: BTreeMap<String, String>,
    /// Clients whose token was revoked or whose rights have changed. Requests, streams and sessions
    /// that they are no longer entitled to have ended.
    pub ended_clients: Vec<String>,
}

/// The result of ending the reservation of a name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReleasedName {
    /// Whether it was reserved.
    pub released: bool,
    /// The current owner; null if there is none.
    pub owner: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_fits_the_document() {
        let tool = UnavailableTool::new("a", &"é".repeat(5_000));
        assert_eq!(tool.reason.chars().count(), ServerStatus::REASON_MAX);
        assert!(tool.reason.ends_with('…'));
        assert_eq!(UnavailableTool::new("a", "no").reason, "no");
    }
}
