//! Names of other MCP servers, prompts and resources that files declare: who owns each, and what is
//! offered and connected as a result.

mod declaration;
mod files;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolcrib_manifest::Loaded;
use toolcrib_manifest::directory::DirectoryLoad;
use toolcrib_manifest::live::{ManifestUnit, UnitChange};
use toolcrib_manifest::lock::{Kind, LockMode};
use toolcrib_mcp::catalog::{Catalog, Prompt, Resource};
use toolcrib_mcp::upstream::Upstream;
use toolcrib_runners::{RunnerHost, TrustDecision};
use toolcrib_tool::{Layer, Source};

use crate::manifests::lock::LockKeeper;
use crate::manifests::offerings;
use crate::upstreams::{DeclaredUpstreams, upstream};

pub(crate) use declaration::Declaration;
use files::{DeclaredEntry, FileChange, FileNames, ManifestKey};

/// A declared name with its state.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeclaredName {
    /// The kind of the declaration; never a tool.
    pub kind: Kind,
    /// The name; for a resource its address, with variables as declared.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// The file and the position in it.
    pub source: Source,
    /// Why it is not offered: another owner, the lock, or missing trust.
    pub withheld: Option<NotOffered>,
    /// A remark that it differs from the lock.
    pub remark: Option<String>,
    /// The owner after a restart, if it differs from the current owner.
    pub after_restart: Option<Source>,
}

/// Why a declaration of a file is not offered.
#[derive(Debug, Clone, PartialEq)]
pub enum NotOffered {
    /// The host or another file declared the name first.
    Shadowed(Source),
    /// The lock has not accepted it; this is the reason.
    Blocked(String),
    /// It needs the operator's trust; this says what to do.
    Untrusted(String),
}

impl NotOffered {
    /// The reason, unless the name has another owner.
    fn reason(&self) -> Option<&str> {
        match self {
            Self::Blocked(reason) | Self::Untrusted(reason) => Some(reason),
            Self::Shadowed(_) => None,
        }
    }
}

impl DeclaredName {
    /// The other owner of the name.
    pub fn shadowed_by(&self) -> Option<&Source> {
        match &self.withheld {
            Some(NotOffered::Shadowed(by)) => Some(by),
            _ => None,
        }
    }
}

/// The names of files that are checked together, as after a start and without a lock.
pub(crate) fn checked(files: &DirectoryLoad) -> Vec<DeclaredName> {
    let mut names = FileNames::new([]);
    names.apply(files.files.iter().filter(|file| !file.loaded.has_errors()).map(|file| {
        let name = file.path.to_string_lossy().into_owned();
        let declared = declared(&name, &file.loaded, None, None, |_, _, _| ());
        FileChange::Replace((file.rank, name), declared)
    }));
    names.names()
}

/// The object that a name stands for.
#[derive(Debug, Clone, PartialEq)]
enum DeclarationTarget {
    Upstream(Box<Upstream>),
    Prompt(Box<Prompt>),
    Resource(Box<Resource>),
}

/// The names of a crib's files, and what depends on them: the catalog, and the MCP servers to
/// connect to. Cloning it is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    files: Arc<Mutex<FileNames<DeclarationTarget>>>,
    catalog: Catalog,
    wanted: DeclaredUpstreams,
}

/// The effect of a set of manifest changes on names.
#[derive(Debug)]
pub(crate) struct NameChanges(Vec<FileChange<DeclarationTarget>>);

impl Names {
    /// Without files; only the host's servers.
    pub(crate) fn new(wanted: DeclaredUpstreams) -> Self {
        let host = wanted.host().iter().map(|one| (Kind::Upstream, one.name().to_owned()));
        let files = Arc::new(Mutex::new(FileNames::new(host)));
        Self { files, catalog: Catalog::new(), wanted }
    }

    /// The prompts and resources of owners.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// All declarations of files with their states, in the order that resolves names: directory, file, kind, position.
    pub(crate) fn declared(&self) -> Vec<DeclaredName> {
        self.files().names()
    }

    /// Takes over the valid files of a load.
    pub(crate) fn load(&self, files: &DirectoryLoad, host: &RunnerHost, lock: Option<&LockKeeper>) {
        let good = files.files.iter().filter(|file| !file.loaded.has_errors());
        let changes = good.map(|file| {
            let name = file.path.to_string_lossy().into_owned();
            let declared = of_file(&name, &file.loaded, host, lock);
            FileChange::Replace((file.rank, name), declared)
        });
        self.apply(NameChanges(changes.collect()));
    }

    /// Applies changes of manifests and logs new conflicts.
    pub(crate) fn apply(&self, changes: NameChanges) {
        let mut files = self.files();
        if files.concern(&changes.0) {
            let before = files.names();
            files.apply(changes.0);
            log(&files.names(), &before);
            let mut upstreams = Vec::new();
            let (mut prompts, mut resources) = (Vec::new(), Vec::new());
            for one in files.owned() {
                match &one.what {
                    // A blocked declaration carries its reason.
                    DeclarationTarget::Upstream(upstream) => {
                        upstreams.push(Upstream::clone(upstream));
                    }
                    _ if one.blocked.is_some() => {}
                    DeclarationTarget::Prompt(prompt) => prompts.push(Prompt::clone(prompt)),
                    DeclarationTarget::Resource(resource) => {
                        resources.push(Resource::clone(resource));
                    }
                }
            }
            // This holds the lock, so that of two changes the later one is effective.
            self.catalog.set(prompts, resources);
            self.wanted.of_files(upstreams);
        }
        // This runs even without changes, because the lock may have changed.
        self.wanted.look_again();
    }

    fn files(&self) -> MutexGuard<'_, FileNames<DeclarationTarget>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NameChanges {
    pub(crate) fn of(changes: &[UnitChange], host: &RunnerHost, lock: Option<&LockKeeper>) -> Self {
        let key = |file: &ManifestUnit| -> ManifestKey { (file.rank, file.name.clone()) };
        let change = |change: &UnitChange| match change {
            UnitChange::Replace { unit, loaded } => {
                FileChange::Replace(key(unit), of_file(&unit.name, loaded, host, lock))
            }
            UnitChange::Remove { unit } => FileChange::Remove(key(unit)),
            UnitChange::Rename { from, to } => FileChange::Rename(key(from), key(to)),
        };
        Self(changes.iter().map(change).collect())
    }
}

/// The declarations of a file, with the lock's remarks and their objects. MCP servers that the lock blocks are never
/// connected, and their status says so.
fn of_file(
    file: &str,
    loaded: &Loaded,
    host: &RunnerHost,
    lock: Option<&LockKeeper>,
) -> Vec<DeclaredEntry<DeclarationTarget>> {
    declared(file, loaded, lock, Some(host), |declaration, blocked, trust_decision| {
        match declaration {
            Declaration::Upstream(one) => {
                let upstream = upstream(one, host);
                DeclarationTarget::Upstream(Box::new(match blocked {
                    Some(reason) => upstream.missing(reason),
                    None => upstream,
                }))
            }
            Declaration::Prompt(one) => {
                DeclarationTarget::Prompt(Box::new(offerings::prompt(one, trust_decision, host)))
            }
            Declaration::Resource(one) => DeclarationTarget::Resource(Box::new(
                offerings::resource(one, trust_decision, host),
            )),
        }
    })
}

/// The declarations of a file, in order; `what` creates the object of a name from the reason why it is blocked and the
/// operator's trust decision. Without a `host`, trust is not checked.
fn declared<T>(
    file: &str,
    loaded: &Loaded,
    lock: Option<&LockKeeper>,
    host: Option<&RunnerHost>,
    what: impl Fn(Declaration<'_>, Option<&str>, Option<&TrustDecision>) -> T,
) -> Vec<DeclaredEntry<T>> {
    let declarations: Vec<_> = Declaration::all_of(loaded).collect();
    let source = Source::new(Layer::Manifest, file);
    let findings = match lock.filter(|lock| lock.mode() != LockMode::Off) {
        Some(lock) => {
            let digest = |one: &Declaration<'_>| (one.kind(), one.name().to_owned(), one.digest());
            let digests: Vec<_> = declarations.iter().map(digest).collect();
            lock.judge(&source, &digests)
        }
        None => vec![None; declarations.len()],
    };
    let declared = declarations.into_iter().zip(findings).map(|(one, finding)| {
        let (blocked, remark) = match finding {
            Some(said) if said.blocked => (Some(said.text), None),
            said => (None, said.map(|said| said.text)),
        };
        let trust_decision = host.and_then(|host| one.trust_decision(host));
        let blocked = blocked.map(NotOffered::Blocked).or_else(|| match &trust_decision {
            Some(TrustDecision::Untrusted { remedy }) => {
                Some(NotOffered::Untrusted(format!("it {remedy}")))
            }
            _ => None,
        });
        let reason = blocked.as_ref().and_then(NotOffered::reason);
        DeclaredEntry {
            kind: one.kind(),
            name: one.name().to_owned(),
            description: one.description().map(str::to_owned),
            origin: one.origin().clone(),
            what: what(one, reason, trust_decision.as_ref()),
            blocked,
            remark,
        }
    });
    declared.collect()
}

/// Logs conflicts that are new, and newly blocked declarations.
fn log(names: &[DeclaredName], known: &[DeclaredName]) {
    for one in names {
        if let Some(reason) = one.withheld.as_ref().and_then(NotOffered::reason)
            && !known.contains(one)
        {
            let (kind, name, source) = (one.kind.as_str(), &one.name, &one.source);
            tracing::warn!(kind, name, %source, reason, "what a manifest declares is withheld");
        }
        let Some(by) = one.shadowed_by() else { continue };
        let is_same = |own: &DeclaredName| {
            (own.kind, &own.name, &own.source, own.shadowed_by())
                == (one.kind, &one.name, &one.source, Some(by))
        };
        if !known.iter().any(is_same) {
            tracing::warn!(
                kind = one.kind.as_str(),
                name = one.name,
                kept = %by,
                shadowed = %one.source,
                "two files declare one name; the first keeps it"
            );
        }
    }
}
