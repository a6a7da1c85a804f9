//! Checking manifests as `toolcrib check` does: files, name conflicts, and the restrictions of
//! model providers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_core::Conflict;
use toolcrib_manifest::directory::{CATALOGUE, DirectoryLoad, catalogue, lint_paths_with};
use toolcrib_manifest::lock::{Kind, Lock, LockMode};
use toolcrib_manifest::{Diagnostic, LintContext, Remark, RemarkTarget, Severity};
use toolcrib_runners::{
    Secrets, TrustDecision, pin_files, prompt_trust_decision, resource_trust_decision,
    tool_trust_decision, upstream_trust_decision,
};
use toolcrib_tool::{Layer, Origin, Source, ToolDefinition, ToolEntry};
use toolcrib_wire::{Declaration, Target, export};

use crate::manifests::lock::LockKeeper;
#[cfg(feature = "mcp")]
use crate::manifests::names::DeclaredName;
use crate::manifests::trust::TrustUnderLock;
use crate::settings::Config;
use crate::{BuildError, Toolcrib};

/// The findings about manifests that were checked together.
#[derive(Debug)]
#[non_exhaustive]
pub struct CheckReport {
    /// The files, with all findings about each.
    pub files: DirectoryLoad,
    /// The tools whose name already belongs to a linked-in tool or an earlier file. Each is also
    /// reported as `shadowed-name` in its file.
    pub shadowed: Vec<Conflict>,
    /// The prompts, resources and other MCP servers whose name belongs to an earlier file, likewise
    /// reported.
    #[cfg(feature = "mcp")]
    pub shadowed_names: Vec<DeclaredName>,
}

/// Options of [`check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckOptions {
    /// Also report descriptions that some provider's models get in another form
    /// ([`provider_remarks`]).
    pub restated: bool,
    /// Whether the config was read from a file. Then a secret that it does not declare is a warning, even if it
    /// declares none. Manifests that are checked without a config may get their secrets elsewhere.
    pub config_loaded: bool,
}

/// Checks the manifests of directories and single files, in the order that resolves names. The names of built-in tools
/// that `config` offers are taken. Nothing is started; programs are looked up in the `PATH`, and scripts beside their
/// manifests.
///
/// The catalogue of a directory, its folder `available`, is checked too. Its tools are not loaded, so they take no
/// names and need no trust yet.
///
/// Fails if the definition of a linked-in tool is invalid.
pub fn check(
    paths: &[PathBuf],
    config: &Config,
    options: CheckOptions,
) -> Result<CheckReport, BuildError> {
    let known = known(config, options.config_loaded);
    let remarks = |definition: &ToolDefinition| provider_remarks(definition, options.restated);
    let mut files = lint_paths_with(paths, &known, &remarks);
    excuse_catalogue(&mut files);
    // Only names matter here, so no tool bodies are created.
    let names = files.declarations().map(|declaration| {
        let origin = declaration.origin.clone();
        let source = Source::new(Layer::Manifest, origin.file.clone()).at(origin);
        ToolEntry::client(ToolDefinition::clone(&declaration.definition), source)
    });
    let accepted = enforced_lock(config);
    let names = names.map(|entry| withheld_by(accepted.as_deref(), entry));
    let builder = Toolcrib::builder().native_tools().entries(names);
    #[cfg(feature = "builtins")]
    let builder = builder.builtins(config.builtin_tools());
    #[cfg(feature = "crawler")]
    let builder = builder.web(config.web_settings());
    let crib = builder.build()?;
    let snapshot = crib.executor().registry().snapshot();
    let shadowed = snapshot.conflicts().to_vec();
    for conflict in &shadowed {
        let (name, loser) = (conflict.loser.name(), &conflict.loser.source);
        let locked = accepted.as_deref().filter(|lock| lock_gives(lock, name, &conflict.winner));
        let (message, label, help) = if locked.is_some() && conflict.loser.is_blocked() {
            let winner = &conflict.winner;
            (
                format!("this tool is blocked: the lock gives the name `{name}` to {winner}"),
                "the lock accepted this tool under the name",
                format!(
                    "rename the tool, or hand the name over with `toolcrib lock --take-over {name}`"
                ),
            )
        } else {
            (
                format!("the name `{name}` is taken already, so this tool is never called"),
                "the name belongs to the tool declared first",
                "rename the tool, or set a `namespace` for the file".to_owned(),
            )
        };
        shadow(&mut files, loser, message, owner(&conflict.winner, label), &help);
    }
    #[cfg(feature = "mcp")]
    let shadowed_names = {
        let mut names = crate::manifests::names::checked(&files);
        names.retain(|one| one.shadowed_by().is_some());
        for one in &names {
            let Some(by) = one.shadowed_by() else { continue };
            let (name, (what, fate)) = (&one.name, fate(one.kind));
            let message = format!("the {what} `{name}` is taken already, so {fate}");
            let owner = owner(by, "it belongs to the one declared first");
            shadow(&mut files, &one.source, message, owner, &format!("choose another {what}"));
        }
        names
    };
    untrusted(&mut files, config);
    let catalogues = paths.iter().filter_map(|path| catalogue(path));
    let catalogues: Vec<PathBuf> =
        catalogues.filter(|folder| !files.paths().contains(folder)).collect();
    // A catalogue contains manifests for other machines and other configs.
    files.append(lint_paths_with(&catalogues, &LintContext::default().files(true), &remarks));
    Ok(CheckReport {
        files,
        shadowed,
        #[cfg(feature = "mcp")]
        shadowed_names,
    })
}

/// Makes what this config lacks a hint in the files of a catalogue, because no server loads them: a secret is
/// needed once such a manifest is enabled.
fn excuse_catalogue(files: &mut DirectoryLoad) {
    for file in &mut files.files {
        let path = std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone());
        let folder = path.parent().and_then(Path::file_name);
        if folder.is_none_or(|folder| folder != CATALOGUE) {
            continue;
        }
        let found = file.loaded.diagnostics.iter_mut();
        for one in found.filter(|one| one.code == "unknown-secret") {
            one.severity = Severity::Hint;
        }
    }
}

/// The lock, if the config enforces it. The commands that start the tools report a lock that cannot be read.
fn enforced_lock(config: &Config) -> Option<Arc<Lock>> {
    let keeper = LockKeeper::new(&config.registry.lock_file, config.registry.lock);
    (keeper.mode() == LockMode::Enforce).then(|| keeper.lock().ok().flatten()).flatten()
}

/// Blocks an entry whose name the lock gives to another source, so that the lock's owner keeps the name as it does when
/// the tools are started. It does not check whether the owner has changed since.
fn withheld_by(lock: Option<&Lock>, entry: ToolEntry) -> ToolEntry {
    let is_known = |lock: &Lock| lock.get(Kind::Tool, entry.name()).is_some();
    match lock {
        Some(lock) if is_known(lock) && !lock_gives(lock, entry.name(), &entry.source) => {
            entry.blocked("the lock gives the name to another source")
        }
        _ => entry,
    }
}

/// Whether the lock names this source as the owner of a tool's name.
fn lock_gives(lock: &Lock, name: &str, source: &Source) -> bool {
    lock.get(Kind::Tool, name).is_some_and(|locked| locked.owner == lock.owner_of(source))
}

/// What the config and this machine tell about the references in manifests.
fn known(config: &Config, config_loaded: bool) -> LintContext {
    let own = config.own_places();
    let mut known = LintContext::default()
        .files(true)
        .workspace(&config.workspace.root)
        .unwritable(own.hidden.iter().chain(&own.read_only));
    if let Some(longest) = config.executor.max_timeout.0 {
        known = known.max_timeout(longest);
    }
    if let Some(path) = std::env::var_os("PATH") {
        known = known.programs(path);
    }
    match secret_names(config) {
        Some(names) if config_loaded || !names.is_empty() => known.secrets(names),
        _ => known,
    }
}

/// The names of the secrets that the config declares; `None` if one of its secret folders cannot be read here.
fn secret_names(config: &Config) -> Option<Vec<String>> {
    let mut names: Vec<String> = config.secrets.keys().cloned().collect();
    let systemd = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    for folder in config.secret_folders.iter().chain(&systemd) {
        let files = std::fs::read_dir(folder).ok()?.flatten();
        names.extend(files.filter_map(|file| file.file_name().into_string().ok()));
    }
    Some(names)
}

/// The word for a name of this kind, and the effect of a taken name.
#[cfg(feature = "mcp")]
fn fate(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Tool => ("name", "this tool is never called"),
        Kind::Upstream => ("name", "this server is never connected to"),
        Kind::Prompt => ("name", "clients are never offered this prompt"),
        Kind::Resource => ("address", "clients are never offered this resource"),
    }
}

/// Declarations of one file that need the operator's trust for the same.
struct UntrustedNames<'a> {
    names: Vec<&'a str>,
    /// Where the first one is declared.
    origin: &'a Origin,
    /// Whether all are tools.
    are_tools: bool,
    /// What to do about the first one.
    remedy: String,
    /// The same for the whole file.
    of_file: String,
}

/// Reports in each file which of its tools, MCP servers, prompts and resources need the operator's trust and lack it:
/// as a warning if the config loads the file, otherwise as a hint.
fn untrusted(files: &mut DirectoryLoad, config: &Config) {
    let mut host = config.runner_host(Secrets::default());
    let lock = LockKeeper::new(&config.registry.lock_file, config.registry.lock);
    if lock.mode() == LockMode::Enforce {
        let (own, lock) = (Arc::clone(&host.trust), Arc::new(lock));
        host = host.with_trust(TrustUnderLock { own, lock });
    }
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let loaded: Vec<_> = config.manifests.dirs.iter().map(|dir| absolute(dir)).collect();
    for file in &mut files.files {
        // The trust may have been given to this version of the files.
        pin_files(&mut file.loaded, &host);
        let path = absolute(&file.path);
        let is_loaded =
            loaded.iter().any(|dir| *dir == path || Some(dir.as_path()) == path.parent());
        let tools = file.loaded.declarations.iter().filter_map(|tool| {
            let word = tool_trust_decision(tool, &tool.digest(), &host)?;
            Some((tool.definition.name(), &tool.origin, word, true))
        });
        let upstreams = file.loaded.upstreams.iter().filter_map(|server| {
            let word = upstream_trust_decision(server, &server.digest(), &host)?;
            Some((server.name.as_str(), &server.origin, word, false))
        });
        let prompts = file.loaded.prompts.iter().filter_map(|prompt| {
            let word = prompt_trust_decision(prompt, &prompt.digest(), &host)?;
            Some((prompt.name.as_str(), &prompt.origin, word, false))
        });
        let resources = file.loaded.resources.iter().filter_map(|resource| {
            let word = resource_trust_decision(resource, &resource.digest(), &host)?;
            Some((resource.uri.as_str(), &resource.origin, word, false))
        });
        let all = tools.chain(upstreams).chain(prompts).chain(resources);
        let mut open: Vec<UntrustedNames<'_>> = Vec::new();
        for (name, origin, word, is_tool) in all {
            let TrustDecision::Untrusted { remedy } = word else { continue };
            // A file of which several declarations need the same is trusted as a whole.
            let of_file = remedy.replace(&format!(":{name}`"), "`");
            if let Some(group) = open.iter_mut().find(|group| group.of_file == of_file) {
                group.names.push(name);
                group.are_tools &= is_tool;
            } else {
                let (names, are_tools) = (vec![name], is_tool);
                open.push(UntrustedNames { names, origin, are_tools, remedy, of_file });
            }
        }
        let found = open.into_iter().map(|group| {
            let place = file.scalar_at(group.origin.line, group.origin.column);
            let message = match group.names.as_slice() {
                [name] => format!("`{name}` is unavailable: it {}", group.remedy),
                names => format!(
                    "{} {} of this file are unavailable: {}. Each {}",
                    names.len(),
                    if group.are_tools { "tools" } else { "declarations" },
                    names.join(", "),
                    group.of_file
                ),
            };
            let diagnostic = Diagnostic::about("needs-trust", place, message).help(
                "`manifests.trusted` in the config holds wherever the config is used, in CI as well; what \
                 `toolcrib trust` records holds on this machine only. A tool that asks for less (a narrower \
                 profile, fewer grants and files) needs neither",
            );
            if is_loaded { diagnostic } else { diagnostic.as_hint() }
        });
        let found: Vec<_> = found.collect();
        for diagnostic in found {
            file.add(diagnostic);
        }
    }
}

/// Reports in a declaration's file that it has lost its name.
fn shadow(
    files: &mut DirectoryLoad,
    loser: &Source,
    message: String,
    (owner, label): (Origin, &str),
    help: &str,
) {
    let Some(origin) = &loser.origin else { return };
    let file = files.files.iter_mut().find(|file| file.path.to_string_lossy() == origin.file);
    if let Some(file) = file {
        let place = file.scalar_at(origin.line, origin.column);
        let diagnostic =
            Diagnostic::about("shadowed-name", place, message).elsewhere(owner, label).help(help);
        file.add(diagnostic);
    }
}

/// The location of the owner's declaration, with a label.
fn owner<'a>(source: &Source, label: &'a str) -> (Origin, &'a str) {
    let unit = || Origin { file: source.unit.clone(), line: 0, column: 0 };
    (source.origin.clone().unwrap_or_else(unit), label)
}

/// The targets that differ in what they accept, with their display names.
const PROVIDERS: [(Target, &str); 5] = [
    (Target::OpenAiChat, "OpenAI"),
    (Target::OpenAiStrict, "OpenAI's strict mode"),
    (Target::Anthropic, "Anthropic"),
    (Target::Gemini, "Gemini"),
    (Target::Mcp, "MCP"),
];

/// Per provider: what it refuses of a tool (`provider-refused`: a warning, or a hint if only a strict mode refuses it),
/// which names change (`provider-renamed`), and what is changed (`provider-differs`). Content that is only moved into a
/// description is reported only if `restated`.
///
/// None of this prevents a tool from being served: it is not offered to a provider that refuses it,
/// and arguments are always checked against the tool's own schema.
pub fn provider_remarks(definition: &ToolDefinition, restated: bool) -> Vec<Remark> {
    // The length of descriptions is checked elsewhere, once for all providers.
    let declaration = Declaration::new(definition.name(), "", definition.input_schema());
    let mut refused: RemarksByText = BTreeMap::new();
    let mut differs: RemarksByText = BTreeMap::new();
    let mut renamed: Vec<(&str, String)> = Vec::new();
    for (target, provider) in PROVIDERS {
        let told = export([declaration], target);
        for refusal in told.refused {
            refused
                .entry((refusal.at, refusal.reason.to_string()))
                .or_default()
                .push((provider, target.is_strict()));
        }
        for note in told.notes.into_iter().filter(|note| restated || !note.restated) {
            let at = keyword(definition, &note.at, &note.text);
            differs.entry((at, note.text)).or_default().push((provider, target.is_strict()));
        }
        if let Some(name) = told.names.to_provider(definition.name())
            && name != definition.name()
        {
            renamed.push((provider, name.to_owned()));
        }
    }
    let mut remarks = Vec::new();
    for ((at, reason), providers) in refused {
        let strict_only = providers.iter().all(|(_, strict)| *strict);
        let rest = if strict_only {
            "offer it without the strict mode, or say it in the schema as the strict mode wants it"
        } else {
            "say it in another way if models of this provider are to have the tool; others are \
             offered it as it is"
        };
        remarks.push(Remark {
            severity: if strict_only { Severity::Hint } else { Severity::Warning },
            code: "provider-refused",
            at: RemarkTarget::Input(at),
            message: format!("{} cannot be offered the tool: {reason}", listed(&providers)),
            help: Some(rest.to_owned()),
        });
    }
    // The description that was omitted above is not one of theirs.
    differs.retain(|(_, text), _| !text.contains("missing description"));
    for ((at, text), providers) in differs {
        remarks.push(Remark {
            severity: Severity::Hint,
            code: "provider-differs",
            at: RemarkTarget::Input(at),
            message: format!("for {}, {text}", listed(&providers)),
            help: Some(
                "nothing has to be done: the arguments that models send are checked in full"
                    .to_owned(),
            ),
        });
    }
    for (provider, name) in renamed {
        remarks.push(Remark {
            severity: Severity::Hint,
            code: "provider-renamed",
            at: RemarkTarget::Name,
            message: format!("{provider} takes no such name: its models know the tool as `{name}`"),
            help: Some(
                "begin the name with a letter if it is to be the same everywhere".to_owned(),
            ),
        });
    }
    remarks
}

/// The location of the keyword that a text mentions, if it exists there.
fn keyword(definition: &ToolDefinition, at: &str, text: &str) -> String {
    let word = text.split('`').nth(1).map(|word| format!("{at}/{word}"));
    word.filter(|at| definition.input_schema().pointer(at).is_some()).unwrap_or(at.to_owned())
}

/// The providers with the same finding at the same location.
type RemarksByText = BTreeMap<(String, String), Vec<(&'static str, bool)>>;

fn listed(providers: &[(&'static str, bool)]) -> String {
    let names: Vec<&str> = providers.iter().map(|(name, _)| *name).collect();
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.join(""),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn remarks(name: &str, schema: Value) -> Vec<(Severity, &'static str, RemarkTarget, String)> {
        let definition = ToolDefinition::builder(name).description("Do it.").input_schema(schema);
        provider_remarks(&definition.build().unwrap(), true)
            .into_iter()
            .map(|remark| (remark.severity, remark.code, remark.at, remark.message))
            .collect()
    }

    #[test]
    fn a_plain_tool_is_offered_to_everybody_as_it_is() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}},
            "required": ["a"], "additionalProperties": false});
        assert_eq!(remarks("plain", schema), []);
    }

    #[test]
    fn who_refuses_what_is_said_at_its_place() {
        let schema = json!({"type": "object", "properties": {
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        }, "required": ["labels"], "additionalProperties": false});
        let found = remarks("label", schema);
        assert!(
            found.iter().any(|(severity, code, at, message)| {
                *severity == Severity::Hint
                    && *code == "provider-refused"
                    && *at == RemarkTarget::Input("/properties/labels".to_owned())
                    && message.starts_with("OpenAI's strict mode cannot be offered the tool:")
            }),
            "{found:#?}"
        );
    }

    #[test]
    fn what_is_told_in_other_words_is_said_to_those_who_ask() {
        let schema = json!({"type": "object", "properties": {
            "path": {"type": "string", "maxLength": 9},
        }, "required": ["path"], "additionalProperties": false});
        let definition = ToolDefinition::builder("cat").description("Do it.").input_schema(schema);
        let definition = definition.build().unwrap();
        assert_eq!(provider_remarks(&definition, false), []);
        let [remark] = &provider_remarks(&definition, true)[..] else { panic!("one remark") };
        assert_eq!(remark.at, RemarkTarget::Input("/properties/path/maxLength".to_owned()));
        assert_eq!(
            remark.message,
            "for OpenAI's strict mode, `maxLength` is moved to the description"
        );
    }

    #[test]
    fn a_name_that_a_provider_changes_is_said() {
        let found = remarks("3d_print", json!({"type": "object", "additionalProperties": false}));
        assert_eq!(
            found,
            [(
                Severity::Hint,
                "provider-renamed",
                RemarkTarget::Name,
                "Gemini takes no such name: its models know the tool as `_3d_print`".to_owned()
            )]
        );
    }
}
