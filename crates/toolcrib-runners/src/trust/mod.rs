//! Operator trust: permissions that a manifest cannot grant itself.
//!
//! A manifest describes a program; it does not decide how far the program is trusted. Profile `trusted`, and grants
//! that reach the home folder, credentials, a system folder that not every user may read, or write access to any system
//! folder, take effect only if the host's [`Trust`] says so. Everything else about a sandbox is the manifest's own
//! choice.
//!
//! Files of resources and prompts are read by the server itself, without a jail. Unless the operator trusts the
//! declaration, they have to be in the manifest's folder or in the workspace.

pub(crate) mod deciding_files;
pub(crate) mod pinned_files;
mod places;

use std::fmt;
use std::path::{Path, PathBuf};

use toolcrib_manifest::declaration::{
    Declaration, MessageContent, PromptDeclaration, ResourceContent, ResourceDeclaration,
    SandboxProfile, SandboxSpec, UpstreamDeclaration, UpstreamTransport,
};
use toolcrib_manifest::lock::Kind;
use toolcrib_sandbox::ServedFile;

use crate::RunnerHost;
use crate::confinement::resolved;
use places::{
    contains_home, contains_private, credentials, reaches_exposed, reaches_private, reaches_system,
};

pub(crate) use places::spellings;

/// A declaration that needs the operator's trust.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TrustRequest<'a> {
    /// The kind of declaration.
    pub kind: Kind,
    /// The manifest's path as it was given when it was loaded.
    pub unit: &'a str,
    /// The declared name, or the address of a resource.
    pub name: &'a str,
    /// The digest of the whole declaration, the same as in a lock.
    pub digest: &'a str,
    /// The permissions it asks for, one clause each, such as "to read" with a path.
    pub wants: &'a [String],
}

/// Whether the operator vouches for a declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustDecision {
    /// The operator vouches for it, whatever its content.
    Trusted,
    /// The operator vouches for exactly this definition. The files it runs must have the content that the digest
    /// covers.
    TrustedForDigest,
    /// Nobody vouches for it.
    Untrusted {
        /// What to do, as an imperative clause.
        remedy: String,
    },
}

/// Decides which declarations the operator vouches for.
pub trait Trust: fmt::Debug + Send + Sync {
    /// Decides about one declaration. Called whenever its manifest is loaded, and before each call of a tool that needs
    /// the operator's trust.
    fn decide(&self, request: &TrustRequest<'_>) -> TrustDecision;

    /// Why a loaded tool must no longer run, whether or not it needs the operator's trust, as a clause about the tool.
    /// Called before each call, so it has to be fast. The default `None` means no objection.
    fn objection(&self, _request: &TrustRequest<'_>) -> Option<String> {
        None
    }

    /// The command by which the operator trusts a declaration again after a file that it runs has changed; takes effect
    /// at once. The default `None` means that reloading the manifests is enough.
    fn renewal(&self, _kind: Kind, _unit: &str, _name: &str) -> Option<String> {
        None
    }

    /// Files on which the decisions depend. A server reloads its manifests when one of them changes.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Replaces the declarations trusted by name with those of a reloaded config: units and `unit:name`, with paths
    /// resolved for this process. Manifests are reloaded afterwards. The default does nothing.
    fn take_over(&self, _named: &[String]) {}
}

/// Trusts nothing: the default of a [`RunnerHost`].
#[derive(Debug, Clone, Copy, Default)]
pub struct TrustNothing;

impl Trust for TrustNothing {
    fn decide(&self, _: &TrustRequest<'_>) -> TrustDecision {
        let remedy =
            "the program that loads this manifest has to trust it (`RunnerHost::with_trust`)";
        TrustDecision::Untrusted { remedy: remedy.to_owned() }
    }
}

/// Trusts every declaration. For hosts that load only their own manifests.
#[derive(Debug, Clone, Copy, Default)]
pub struct TrustEverything;

impl Trust for TrustEverything {
    fn decide(&self, _: &TrustRequest<'_>) -> TrustDecision {
        TrustDecision::Trusted
    }
}

/// The permissions of a declared tool that need the operator's trust, one clause each; empty if none does.
pub fn tool_wants(declaration: &Declaration, host: &RunnerHost) -> Vec<String> {
    let folder = Path::new(&declaration.origin.file).parent();
    match (declaration.command(), declaration.worker()) {
        (Some(command), _) => {
            let script = command.script.as_ref().and_then(|script| script.path.parent());
            wants(&declaration.sandbox, command.cwd.as_deref(), script, folder, host)
        }
        (None, Some(worker)) => {
            wants(&declaration.sandbox, None, Some(&worker.folder), folder, host)
        }
        (None, None) => Vec::new(),
    }
}

/// Like [`tool_wants`], for a declared MCP server.
pub fn upstream_wants(declaration: &UpstreamDeclaration, host: &RunnerHost) -> Vec<String> {
    match &declaration.transport {
        UpstreamTransport::Stdio(stdio) => {
            wants(&stdio.sandbox, stdio.cwd.as_deref(), None, None, host)
        }
        UpstreamTransport::Http(_) => Vec::new(),
    }
}

/// Like [`tool_wants`], for a declared resource.
pub fn resource_wants(declaration: &ResourceDeclaration, host: &RunnerHost) -> Vec<String> {
    let file = match &declaration.content {
        ResourceContent::File(file) => Some(file.as_path()),
        ResourceContent::Text(_) => None,
    };
    file_grants(file, &declaration.origin.file, host)
}

/// Like [`tool_wants`], for a declared prompt.
pub fn prompt_wants(declaration: &PromptDeclaration, host: &RunnerHost) -> Vec<String> {
    let files = declaration.messages.iter().filter_map(|message| match &message.content {
        MessageContent::File { path, .. } => Some(path.as_path()),
        MessageContent::Text(_) | MessageContent::Resource(_) => None,
    });
    file_grants(files, &declaration.origin.file, host)
}

/// Whether a grant of reading this path needs the operator's trust.
pub(crate) fn read_needs_trust(path: &Path, host: &RunnerHost) -> bool {
    reaches_private(path, host) || reaches_exposed(path, host)
}

/// Whether a grant of writing to this path needs the operator's trust.
pub(crate) fn write_needs_trust(path: &Path, host: &RunnerHost) -> bool {
    reaches_private(path, host) || reaches_system(path, host)
}

/// What to do after a file that a declaration runs has changed.
#[derive(Debug, Clone)]
pub(crate) struct TrustRenewal {
    kind: Kind,
    unit: String,
    name: String,
    needs_trust: bool,
}

impl TrustRenewal {
    /// For a tool.
    pub(crate) fn of_tool(declaration: &Declaration, host: &RunnerHost) -> Self {
        Self {
            kind: Kind::Tool,
            unit: declaration.origin.file.clone(),
            name: declaration.definition.name().to_owned(),
            needs_trust: !tool_wants(declaration, host).is_empty(),
        }
    }

    /// For an MCP server.
    pub(crate) fn of_upstream(declaration: &UpstreamDeclaration, host: &RunnerHost) -> Self {
        Self {
            kind: Kind::Upstream,
            unit: declaration.origin.file.clone(),
            name: declaration.name.clone(),
            needs_trust: !upstream_wants(declaration, host).is_empty(),
        }
    }

    /// The advice, as a clause.
    pub(crate) fn advice(&self, host: &RunnerHost) -> String {
        let renewal =
            self.needs_trust.then(|| host.trust.renewal(self.kind, &self.unit, &self.name));
        match renewal.flatten() {
            Some(command) => format!("review it, then run `{command}`, which takes effect at once"),
            None => {
                "review it, then run `toolcrib reload`, which compares it with the lock".to_owned()
            }
        }
    }
}

/// A file of a resource or prompt, as the server may read it. `manifest` is the declaring file, and `decision` the
/// operator's decision about the declaration.
pub fn served_file(
    file: &Path,
    manifest: &str,
    decision: Option<&TrustDecision>,
    host: &RunnerHost,
) -> ServedFile {
    let served =
        ServedFile::new(manifest_folder(manifest).join(file)).control_plane(&host.control_plane);
    let own = OwnFolders::of(manifest, host);
    let is_granted =
        matches!(decision, Some(TrustDecision::Trusted | TrustDecision::TrustedForDigest));
    if is_granted && !own.contain(served.path()) {
        return served;
    }
    served.within(own.folders, own.except)
}

/// The decision about a resource whose declaration has this digest; `None` if it needs none.
pub fn resource_trust_decision(
    declaration: &ResourceDeclaration,
    digest: &str,
    host: &RunnerHost,
) -> Option<TrustDecision> {
    let wants = resource_wants(declaration, host);
    let (unit, name) = (&declaration.origin.file, declaration.uri.as_str());
    decision(&TrustRequest { kind: Kind::Resource, unit, name, digest, wants: &wants }, host)
}

/// The decision about a prompt whose declaration has this digest; `None` if it needs none.
pub fn prompt_trust_decision(
    declaration: &PromptDeclaration,
    digest: &str,
    host: &RunnerHost,
) -> Option<TrustDecision> {
    let wants = prompt_wants(declaration, host);
    let (unit, name) = (&declaration.origin.file, declaration.name.as_str());
    decision(&TrustRequest { kind: Kind::Prompt, unit, name, digest, wants: &wants }, host)
}

/// The decision about a tool whose declaration has this digest; `None` if it needs none.
pub fn tool_trust_decision(
    declaration: &Declaration,
    digest: &str,
    host: &RunnerHost,
) -> Option<TrustDecision> {
    let wants = tool_wants(declaration, host);
    let (unit, name) = (&declaration.origin.file, declaration.definition.name());
    decision(&TrustRequest { kind: Kind::Tool, unit, name, digest, wants: &wants }, host)
}

/// The decision about an MCP server whose declaration has this digest; `None` if it needs none.
pub fn upstream_trust_decision(
    declaration: &UpstreamDeclaration,
    digest: &str,
    host: &RunnerHost,
) -> Option<TrustDecision> {
    let wants = upstream_wants(declaration, host);
    let (unit, name) = (&declaration.origin.file, declaration.name.as_str());
    decision(&TrustRequest { kind: Kind::Upstream, unit, name, digest, wants: &wants }, host)
}

fn decision(request: &TrustRequest<'_>, host: &RunnerHost) -> Option<TrustDecision> {
    if request.wants.is_empty() {
        return None;
    }
    Some(match host.trust.decide(request) {
        TrustDecision::Untrusted { remedy } => {
            let wants = request.wants.join(" and ");
            let preposition = if wants.starts_with("to ") { "" } else { "for " };
            let remedy = format!("needs the operator's trust {preposition}{wants}: {remedy}");
            TrustDecision::Untrusted { remedy }
        }
        given => given,
    })
}

/// Read permissions for files that the server itself opens and that need the operator's trust, one clause each.
fn file_grants<'p>(
    files: impl IntoIterator<Item = &'p Path>,
    manifest: &str,
    host: &RunnerHost,
) -> Vec<String> {
    let mut files = files.into_iter().peekable();
    if files.peek().is_none() {
        return Vec::new();
    }
    let own = OwnFolders::of(manifest, host);
    let others = files.filter(|file| !own.contain(&manifest_folder(manifest).join(file)));
    others.map(|file| format!("to read `{}`", file.display())).collect()
}

/// The folders in which the server reads files for a manifest that the operator does not trust.
struct OwnFolders {
    /// The manifest's folder and the workspace.
    folders: Vec<PathBuf>,
    /// Places of credentials.
    except: Vec<PathBuf>,
}

impl OwnFolders {
    fn of(manifest: &str, host: &RunnerHost) -> Self {
        let folders = [manifest_folder(manifest), &host.workspace_root].map(spellings);
        let folders = folders.into_iter().filter(|folder| !contains_home(folder)).flatten();
        Self { folders: folders.collect(), except: credentials(host).collect() }
    }

    fn contain(&self, file: &Path) -> bool {
        spellings(file).iter().all(|file| {
            self.folders.iter().any(|folder| file.starts_with(folder))
                && !self.except.iter().any(|place| file.starts_with(place))
        })
    }
}

/// The folder that a manifest is in.
fn manifest_folder(manifest: &str) -> &Path {
    let folder = Path::new(manifest).parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// `implied` is a folder that the program may read without a grant: that of its script or of its manifest.
fn wants(
    sandbox: &SandboxSpec,
    cwd: Option<&Path>,
    implied: Option<&Path>,
    manifest_folder: Option<&Path>,
    host: &RunnerHost,
) -> Vec<String> {
    if sandbox.profile == SandboxProfile::Trusted {
        return vec!["profile `trusted`".to_owned()];
    }
    let reads = sandbox.read.iter().map(|path| ("to read", path.as_path(), resolved(path, host)));
    let cwd = cwd.map(|cwd| ("to work in", cwd, host.directory(Some(cwd))));
    let reads = reads.chain(cwd).map(|(verb, written, path)| {
        let needs = read_needs_trust(&path, host);
        (verb, written, needs)
    });
    let writes = sandbox.write.iter().map(|written| {
        let path = resolved(written, host);
        let needs = write_needs_trust(&path, host);
        ("to write", written.as_path(), needs)
    });
    let mut wants: Vec<_> = reads
        .chain(writes)
        .filter(|(_, _, needs)| *needs)
        .map(|(verb, written, _)| format!("{verb} `{}`", written.display()))
        .collect();
    if let Some(folder) = implied.filter(|folder| {
        let is_beside_manifest = manifest_folder.is_some_and(|own| {
            spellings(folder)
                .iter()
                .any(|folder| spellings(own).iter().any(|own| folder.starts_with(own)))
        });
        // The folder of the manifests may be in the home folder, but must not contain it.
        if is_beside_manifest {
            contains_private(folder, host)
        } else {
            reaches_private(folder, host)
        }
    }) {
        wants.push(format!("to read `{}`, where its file is", folder.display()));
    }
    wants
}
