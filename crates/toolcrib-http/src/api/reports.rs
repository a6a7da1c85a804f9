//! What a server reports to its operators: the bodies of `/v1/status`, `/v1/names`, `/v1/reload` and
//! `/v1/names/{name}/release`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// How a server stands: its files, the MCP servers behind it, and what a restart would change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ServerStatus {
    /// The process.
    pub pid: u32,
    /// The version of the program.
    pub version: String,
    /// The number of the registry's snapshot; it rises with every change.
    pub generation: u64,
    /// Tools that can be called.
    pub tools: usize,
    /// Tools that cannot be called here.
    pub unavailable: usize,
    /// The first of these by name, at most [`ServerStatus::UNAVAILABLE_MAX`], with the reasons.
    #[schemars(length(max = 100))]
    pub unavailable_tools: Vec<UnavailableTool>,
    /// Tools that are paused after repeated timeouts, by name.
    pub paused_tools: Vec<PausedTool>,
    /// Declarations that did not get their name.
    pub shadowed: usize,
    /// Names that their owners gave up.
    pub reserved: Vec<String>,
    /// Names that a restart would give to others.
    pub after_restart: Vec<NameChange>,
    /// The manifests.
    pub files: Vec<FileReport>,
    /// Directories of manifests that cannot be read.
    pub unreadable: Vec<UnreadableDirectory>,
    /// The MCP servers behind it.
    pub upstreams: Vec<UpstreamReport>,
    /// How the last reload of the config ended.
    pub config: ConfigReport,
    /// Things that this machine cannot enforce of the profiles of programs.
    pub not_enforced: Vec<String>,
}

impl ServerStatus {
    /// The most unavailable tools that a status names. `toolcrib list --all` names all of them.
    pub const UNAVAILABLE_MAX: usize = 100;
    /// The most characters of the reason that a status gives for one of them.
    pub const REASON_MAX: usize = 1_000;
}

/// A tool that is paused after repeated timeouts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PausedTool {
    /// Its name.
    pub name: String,
    /// The seconds until a call is tried, for the identity that has to wait longest; 0 while one is tried.
    pub seconds_left: u64,
}

/// A tool that cannot be called.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct UnavailableTool {
    /// Its name.
    pub name: String,
    /// Why; long reasons lose their end.
    #[schemars(length(max = 1_000))]
    pub reason: String,
}

impl UnavailableTool {
    /// The tool, with as much of the reason as a status has room for.
    pub fn new(name: impl Into<String>, reason: &str) -> Self {
        let mut shown: String = reason.chars().take(ServerStatus::REASON_MAX).collect();
        if shown.len() < reason.len() {
            shown.pop();
            shown.push('…');
        }
        Self { name: name.into(), reason: shown }
    }
}

/// A name that a restart would give to somebody else.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NameChange {
    /// What has the name: `tool`, `prompt`, `resource` or `upstream`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Who has it now; nobody, if it is null.
    pub live: Option<String>,
    /// Who would have it.
    pub fresh: String,
}

/// A manifest.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FileReport {
    /// Its path.
    pub file: String,
    /// `live`, `stale` (it cannot be used, and what it said last still holds) or `broken`.
    pub state: String,
    /// How many tools of it are in use.
    pub tools: usize,
    /// Why it cannot be used, if it cannot.
    pub reason: Option<String>,
}

/// A directory of manifests that cannot be read.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct UnreadableDirectory {
    /// Its path.
    pub directory: String,
    /// Why not.
    pub reason: String,
}

/// An MCP server behind this one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct UpstreamReport {
    /// Its name.
    pub name: String,
    /// `connecting`, `connected` or `down`; absent where a reload has removed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// How many tools of it are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// How many of these were refused, or changed since they were first seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<usize>,
    /// How many of its tools are not taken because it lists too many, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
    /// Filters and overrides of its manifest that match nothing it has, with their places.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub unmatched: Vec<String>,
    /// Why it is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the server itself or the system said of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The last lines that the server said, where they are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub said: Vec<String>,
    /// How long after it went down it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_seconds: Option<f64>,
    /// What a reload has made of it: `added`, `reconnected`, `updated` without another connection, or
    /// `removed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

/// How the last reload of the config ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConfigReport {
    /// Why the config that was read last cannot be used, so that the one before is in effect.
    pub problem: Option<String>,
    /// Keys that differ from what the server runs with, and need a restart.
    pub needs_restart: Vec<String>,
    /// Where those of them that are set are set: `config.yml:3:5`, a variable or a flag.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub restart_origins: BTreeMap<String, String>,
}

/// Who owns a name, who else declares it, and what a restart would change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NameStatus {
    /// The name.
    pub name: String,
    /// The source of the tool that has the name.
    pub owner: Option<String>,
    /// Why that tool cannot be called, if it cannot.
    pub unavailable: Option<String>,
    /// The seconds for which that tool is still paused after repeated timeouts, for the identity that has
    /// to wait longest; 0 while a call is tried. Absent if it is not paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_seconds: Option<u64>,
    /// Why its file cannot be used any more, if so.
    pub stale: Option<String>,
    /// Sources of tools that want the name and came later.
    pub waiting: Vec<String>,
    /// Who gave the name up, if it is reserved.
    pub given_up_by: Option<String>,
    /// Who would have the name after a restart, if that is somebody else.
    pub after_restart: Option<String>,
    /// Prompts, resources and other MCP servers of this name.
    pub besides: Vec<OtherDeclaration>,
}

/// A declaration of a name that is no tool's.
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
    /// The operator's trust that it lacks, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<String>,
    /// Who has the name instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_by: Option<String>,
    /// Who would have the name after a restart, if that is somebody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_restart: Option<String>,
}

/// What a reload has changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Reloaded {
    /// The number of the registry's snapshot now.
    pub generation: u64,
    /// Names of tools that are new.
    pub added: Vec<String>,
    /// Names of tools that are gone.
    pub removed: Vec<String>,
    /// Files that cannot be used, with their errors.
    pub troubles: Vec<FileTrouble>,
    /// The manifests.
    pub files: Vec<FileReport>,
    /// Directories of manifests that cannot be read.
    pub unreadable: Vec<UnreadableDirectory>,
    /// The MCP servers behind it, and what has changed of them.
    pub upstreams: Vec<UpstreamReport>,
    /// What has changed of the config, where the server follows one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigChanges>,
    /// Names in the config that match nothing, a sentence each.
    pub unmatched: Vec<String>,
}

/// A file that cannot be used.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FileTrouble {
    /// Its path.
    pub file: String,
    /// Why not.
    pub reason: String,
    /// Its errors as a compiler would show them.
    pub shown: Option<String>,
}

/// What a reload has changed of the config.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConfigChanges {
    /// Keys whose new value is in effect now, without those of clients that came or went.
    pub changed: Vec<String>,
    /// Clients (`server.tokens`) that are new.
    pub added_clients: Vec<String>,
    /// Clients whose entry is gone.
    pub removed_clients: Vec<String>,
    /// Keys that differ from what the server runs with, and need a restart.
    pub needs_restart: Vec<String>,
    /// Where those of them that are set are set: `config.yml:3:5`, a variable or a flag.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub restart_origins: BTreeMap<String, String>,
    /// Clients whose token is no longer good or whose rights have changed. What they may no longer do has
    /// ended: their requests, streams and sessions.
    pub ended_clients: Vec<String>,
}

/// What came of ending the reservation of a name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Released {
    /// Whether it was reserved.
    pub released: bool,
    /// Who has it now; nobody, if it is null.
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
