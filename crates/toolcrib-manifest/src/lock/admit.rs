//! Compares entries with the lock before they enter a registry.

use std::fmt;

use toolcrib_tool::{Layer, Source, ToolEntry};

use super::{Kind, Lock, LockMode, Owner};

/// How a name differs from the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MismatchKind {
    /// The name is in no lock.
    Unlisted,
    /// The owner is the same, but the declaration has changed.
    Changed,
    /// The name has another owner in the lock.
    TakenOver {
        /// The owner in the lock.
        owner: Owner,
    },
    /// The same declaration was moved within its layer. This is accepted.
    Moved {
        /// Its previous owner.
        from: Owner,
    },
}

/// One clause. [`LockMismatch::reason`] adds what the operator can do about it.
impl fmt::Display for MismatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlisted => f.write_str("toolcrib.lock has not accepted it"),
            Self::Changed => f.write_str("it has changed since toolcrib.lock accepted it"),
            Self::TakenOver { owner } => write!(f, "toolcrib.lock gives its name to {owner}"),
            Self::Moved { from } => {
                write!(f, "it has moved since toolcrib.lock accepted it, from {from}")
            }
        }
    }
}

/// A name that differs from the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockMismatch {
    /// The kind of declaration.
    pub kind: Kind,
    /// The name.
    pub name: String,
    /// Who declares it.
    pub source: Source,
    /// The difference.
    pub verdict: MismatchKind,
    /// Whether it is blocked because of that.
    pub blocked: bool,
}

impl LockMismatch {
    /// The difference and, if it is blocked, what the operator can do about it: for listings and
    /// for the result of a call.
    pub fn reason(&self) -> String {
        let verdict = &self.verdict;
        if !self.blocked {
            return verdict.to_string();
        }
        // The tools of an MCP server are known only while the server is connected.
        let is_offered = self.kind == Kind::Tool && self.source.layer == Layer::Upstream;
        let connect = if is_offered { " --connect" } else { "" };
        format!(
            "{verdict}; the operator sees what differs with `toolcrib lock --diff{connect}` and accepts it \
             with `toolcrib lock{connect}`"
        )
    }
}

/// Compares entries with the lock before they enter a registry, and returns them with all
/// differences. `lock` is `None` if there is no file.
///
/// An entry that differs from the lock gets a [remark](ToolEntry::remark), or is
/// [blocked](ToolEntry::blocked), depending on `mode`. Of a tool that is compiled in, only the
/// owner is compared, and nothing if the lock does not have its name: building the program accepted
/// it. The system's own fallbacks are not compared. A tool of an MCP server that has changed since
/// the lock accepted it is blocked under [`LockMode::Warn`], too, because nobody here wrote its
/// definition.
///
/// Each entry is compared separately, so a set may be all tools or those of one file.
///
/// ```
/// use toolcrib_manifest::lock::{Lock, LockMode, apply_lock};
/// use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry};
///
/// let definition = ToolDefinition::builder("pick").description("Pick a file.").build()?;
/// let entry = ToolEntry::client(definition, Source::new(Layer::Manifest, "tools.d/pick.yaml"));
/// let lock = Lock::empty(".".as_ref());
/// let (entries, findings) = apply_lock([entry], Some(&lock), LockMode::Enforce);
/// assert!(entries[0].is_blocked() && findings[0].blocked);
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
pub fn apply_lock(
    entries: impl IntoIterator<Item = ToolEntry>,
    lock: Option<&Lock>,
    mode: LockMode,
) -> (Vec<ToolEntry>, Vec<LockMismatch>) {
    let mut findings = Vec::new();
    let admitted = entries.into_iter().map(|entry| {
        let digest = entry.digest.as_deref();
        let found = apply_lock_to(Kind::Tool, entry.name(), &entry.source, digest, lock, mode);
        let Some(finding) = found else { return entry };
        let (text, blocked) = (finding.reason(), finding.blocked);
        findings.push(finding);
        if blocked { entry.blocked(text) } else { entry.with_remark(text) }
    });
    let admitted = admitted.collect();
    (admitted, findings)
}

/// Compares one name with the lock, as [`apply_lock`] does for tools; `digest` is that of its
/// declaration.
pub fn apply_lock_to(
    kind: Kind,
    name: &str,
    source: &Source,
    digest: Option<&str>,
    lock: Option<&Lock>,
    mode: LockMode,
) -> Option<LockMismatch> {
    let verdict = match (mode, lock) {
        (LockMode::Off, _) | (LockMode::Warn, None) => None,
        (_, Some(lock)) => judge(kind, name, source, digest, lock),
        (LockMode::Enforce, None) => (!is_built_in(source)).then_some(MismatchKind::Unlisted),
    }?;
    let blocked = match &verdict {
        MismatchKind::Moved { .. } => false,
        MismatchKind::Changed if source.layer == Layer::Upstream => true,
        _ => mode == LockMode::Enforce,
    };
    Some(LockMismatch { kind, name: name.to_owned(), source: source.clone(), verdict, blocked })
}

fn judge(
    kind: Kind,
    name: &str,
    source: &Source,
    digest: Option<&str>,
    lock: &Lock,
) -> Option<MismatchKind> {
    let owner = lock.owner_of(source);
    let built_in = is_built_in(source);
    let Some(locked) = lock.get(kind, name) else {
        return (!built_in).then_some(MismatchKind::Unlisted);
    };
    let same = digest == locked.digest.as_deref();
    let stolen = || MismatchKind::TakenOver { owner: locked.owner.clone() };
    if source.layer == Layer::Fallback {
        None
    } else if locked.owner == owner {
        (!built_in && !same).then_some(MismatchKind::Changed)
    } else if locked.owner.layer == owner.layer && same && !built_in && digest.is_some() {
        Some(MismatchKind::Moved { from: locked.owner.clone() })
    } else {
        Some(stolen())
    }
}

/// Whether the source is part of the program.
fn is_built_in(source: &Source) -> bool {
    matches!(source.layer, Layer::Host | Layer::Native | Layer::Fallback)
}
