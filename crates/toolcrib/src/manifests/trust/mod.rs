//! The operator's trust: which manifests may run programs with more access than the workspace.
//!
//! A tool or MCP server whose manifest says `profile: trusted`, or whose grants reach the home folder or a place of
//! credentials, is available only if the operator trusts it: by naming it in `manifests.trusted` of the config, by an
//! enforced lock that contains it unchanged, or with `toolcrib trust`, which records its digest in the state folder.

mod record;

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use toolcrib_manifest::directory::CATALOGUE;
use toolcrib_manifest::lock::{Kind, LockMode, apply_lock_to};
use toolcrib_runners::{Trust, TrustDecision, TrustRequest};
use toolcrib_tool::{Layer, Source};

pub use record::{TrustRecord, TrustedDeclaration};

use crate::manifests::lock::LockKeeper;
use crate::settings::Config;

/// Decides according to the config and the record of `toolcrib trust`.
#[derive(Debug)]
pub struct TrustKeeper {
    /// The config's folder, to which names of units are relative.
    folder: PathBuf,
    /// `manifests.trusted`, as absolute texts. Replaced when the config is reloaded.
    named: RwLock<Vec<String>>,
    record: Option<TrustRecord>,
    /// The catalogues of the directories of manifests. Their files are trusted where `toolcrib enable` puts them.
    catalogues: Vec<PathBuf>,
}

impl TrustKeeper {
    /// The decisions of a config whose paths are relative to the current directory
    /// ([`Config::relative_to`]). Opens nothing: the record is read when it is first needed, and
    /// whenever it has changed.
    pub fn of(config: &Config) -> Self {
        let record = config.state.dir.as_deref().map(TrustRecord::in_state);
        let dirs = config.manifests.dirs.iter().map(|dir| PathBuf::from(plain(dir)));
        let dirs: Vec<PathBuf> = dirs.collect();
        let mut catalogues: Vec<_> = dirs.iter().map(|dir| dir.join(CATALOGUE)).collect();
        catalogues.retain(|folder| !dirs.contains(folder));
        Self {
            folder: PathBuf::from(plain(&Path::new(".").join(&config.folder))),
            named: RwLock::new(absolute(&config.manifests.trusted)),
            record,
            catalogues,
        }
    }

    /// The name of a manifest in `manifests.trusted`: its path relative to the config's folder.
    pub fn unit(&self, file: &str) -> String {
        let file = plain(Path::new(file));
        let below = Path::new(&file).strip_prefix(&self.folder).ok();
        below.map(|below| below.to_string_lossy().into_owned()).unwrap_or(file)
    }

    /// The name by which a file of a catalogue is enabled, and its path after that.
    fn enabled(&self, file: &Path) -> Option<(String, PathBuf)> {
        let folder =
            file.parent().filter(|folder| self.catalogues.iter().any(|own| own == folder))?;
        let name = file.file_stem()?.to_string_lossy().into_owned();
        Some((name, folder.parent()?.join(file.file_name()?)))
    }

    /// The record of `toolcrib trust`, if there is a state folder.
    pub fn record(&self) -> Option<&TrustRecord> {
        self.record.as_ref()
    }
}

impl Trust for TrustKeeper {
    fn decide(&self, claim: &TrustRequest<'_>) -> TrustDecision {
        let file = plain(Path::new(claim.unit));
        let is_named = |named: &String| {
            let rest = named.strip_prefix(&file);
            rest.is_some_and(|rest| {
                rest.is_empty()
                    || rest.strip_prefix(':').is_some_and(|name| {
                        // In a path, repeated slashes of a resource's address have become one.
                        name == claim.name || name == squeezed(claim.name)
                    })
            })
        };
        if self.named.read().unwrap_or_else(PoisonError::into_inner).iter().any(is_named) {
            return TrustDecision::Trusted;
        }
        let (enable, unit) = match self.enabled(Path::new(&file)) {
            Some((name, file)) => {
                (format!("run `toolcrib enable {name}`, then "), self.unit(&file.to_string_lossy()))
            }
            None => (String::new(), self.unit(claim.unit)),
        };
        let name = claim.name;
        let Some(record) = &self.record else {
            let remedy =
                format!("{enable}add `{unit}:{name}` to `manifests.trusted` in the config");
            return TrustDecision::Untrusted { remedy };
        };
        let known = record.trusted().into_iter();
        let mut same = known.filter(|own| own.kind == claim.kind.as_str() && own.name == name);
        let before = same.find(|own| own.unit == file);
        let changed = match &before {
            Some(own) if own.digest == claim.digest => return TrustDecision::TrustedForDigest,
            Some(_) => "it has changed since it was trusted; look at it and ",
            None => "",
        };
        let trust = if enable.is_empty() { "run " } else { "" };
        let remedy = format!(
            "{changed}{enable}{trust}`toolcrib trust {unit}:{name}`, or add `{unit}:{name}` to \
             `manifests.trusted` in the config"
        );
        TrustDecision::Untrusted { remedy }
    }

    fn renewal(&self, kind: Kind, unit: &str, name: &str) -> Option<String> {
        let asked = trusted(kind, unit, name, "");
        let is_known =
            |record: &TrustRecord| record.trusted().iter().any(|own| own.is_about_the_same(&asked));
        let record = self.record.as_ref().filter(|record| is_known(record));
        record.map(|_| format!("toolcrib trust {}:{name}", self.unit(unit)))
    }

    fn files(&self) -> Vec<PathBuf> {
        self.record.iter().map(TrustRecord::watched).collect()
    }

    fn take_over(&self, named: &[String]) {
        *self.named.write().unwrap_or_else(PoisonError::into_inner) = absolute(named);
    }
}

/// Entries of `manifests.trusted` as absolute texts.
fn absolute(named: &[String]) -> Vec<String> {
    named.iter().map(|named| plain(Path::new(named))).collect()
}

/// Replaces repeated slashes of a name by one.
fn squeezed(name: &str) -> String {
    name.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

/// Decides as the host does, or as an enforced lock does, which a person has reviewed.
#[derive(Debug)]
pub(crate) struct TrustUnderLock {
    pub(crate) own: Arc<dyn Trust>,
    pub(crate) lock: Arc<LockKeeper>,
}

impl Trust for TrustUnderLock {
    fn decide(&self, claim: &TrustRequest<'_>) -> TrustDecision {
        match self.own.decide(claim) {
            TrustDecision::Untrusted { .. } if self.lock.enforces(claim) => {
                TrustDecision::TrustedForDigest
            }
            word => word,
        }
    }

    fn objection(&self, claim: &TrustRequest<'_>) -> Option<String> {
        self.own.objection(claim).or_else(|| self.lock.objection(claim))
    }

    fn renewal(&self, kind: Kind, unit: &str, name: &str) -> Option<String> {
        self.own.renewal(kind, unit, name)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.own.files()
    }

    fn take_over(&self, named: &[String]) {
        self.own.take_over(named);
    }
}

impl LockKeeper {
    /// Whether the lock is enforced and contains this declaration unchanged.
    fn enforces(&self, claim: &TrustRequest<'_>) -> bool {
        let source = Source::new(Layer::Manifest, claim.unit);
        self.accepts(claim.kind, claim.name, &source, claim.digest)
    }

    /// Why the current lock blocks this declaration. A lock that cannot be read changes nothing.
    fn objection(&self, claim: &TrustRequest<'_>) -> Option<String> {
        if self.mode() != LockMode::Enforce {
            return None;
        }
        let lock = self.lock().ok()?;
        let source = Source::new(Layer::Manifest, claim.unit);
        let digest = Some(claim.digest);
        let finding =
            apply_lock_to(claim.kind, claim.name, &source, digest, lock.as_deref(), self.mode())?;
        let reason = finding.blocked.then(|| finding.reason())?;
        Some(format!("is blocked: {reason}"))
    }
}

/// The record that `toolcrib trust` makes of a declaration.
pub fn trusted(kind: Kind, file: &str, name: &str, digest: &str) -> TrustedDeclaration {
    TrustedDeclaration::new(kind.as_str(), plain(Path::new(file)), name, digest)
}

/// The path as one absolute text without `.` and `..`.
pub(crate) fn plain(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut plain = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain.to_string_lossy().into_owned()
}
