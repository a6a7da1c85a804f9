//! Entries on their way into a registry, held against the lock.

use std::fmt;

use toolcrib_tool::{Layer, Source, ToolEntry};

use super::{Kind, Lock, LockMode, Owner};

/// What a lock says of a name that is not just as it has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The name is in no lock.
    Unlisted,
    /// The owner is the same and the declaration is not.
    Changed,
    /// The name is another's.
    TakenOver {
        /// Whose.
        owner: Owner,
    },
    /// The same declaration stands elsewhere in its layer. It is accepted.
    Moved {
        /// Where it stood.
        from: Owner,
    },
}

/// One clause. [`Finding::reason`] adds what the operator can do.
impl fmt::Display for Verdict {
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

/// A name that is not just as the lock has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is the name of.
    pub kind: Kind,
    /// The name.
    pub name: String,
    /// Who declares it.
    pub source: Source,
    /// What the lock says.
    pub verdict: Verdict,
    /// Whether it is blocked for that.
    pub blocked: bool,
}

impl Finding {
    /// What the lock says and, of what is blocked, what the operator does about it: for listings and for
    /// the answer to a call.
    pub fn reason(&self) -> String {
        let verdict = &self.verdict;
        if !self.blocked {
            return verdict.to_string();
        }
        // What another server offers is known only while that server is asked.
        let is_offered = self.kind == Kind::Tool && self.source.layer == Layer::Upstream;
        let connect = if is_offered { " --connect" } else { "" };
        format!(
            "{verdict}; the operator sees what differs with `toolcrib lock --diff{connect}` and accepts it \
             with `toolcrib lock{connect}`"
        )
    }
}

/// Holds entries against the lock, before they enter a registry, and returns them with everything
/// worth saying. `lock` is `None` where there is no file.
///
/// What is not as the lock has it gets a [remark](ToolEntry::remark), or is
/// [blocked](ToolEntry::blocked) where `mode` says so. A tool that is compiled in is held against the
/// owner of its name only, and against nothing where its name is in no lock: whoever builds the
/// program has accepted it. The system's own fallbacks are not held against anything. A tool of another
/// MCP server that has changed since the lock accepted it is blocked under [`LockMode::Warn`], too:
/// nobody here wrote what it says.
///
/// Each entry is judged by itself, so that a set may be a whole catalogue or what one file declares.
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
) -> (Vec<ToolEntry>, Vec<Finding>) {
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

/// Holds one name against the lock, as [`apply_lock`] does those of tools; `digest` is that of what its
/// source declares of it.
pub fn apply_lock_to(
    kind: Kind,
    name: &str,
    source: &Source,
    digest: Option<&str>,
    lock: Option<&Lock>,
    mode: LockMode,
) -> Option<Finding> {
    let verdict = match (mode, lock) {
        (LockMode::Off, _) | (LockMode::Warn, None) => None,
        (_, Some(lock)) => judge(kind, name, source, digest, lock),
        (LockMode::Enforce, None) => (!is_built_in(source)).then_some(Verdict::Unlisted),
    }?;
    let blocked = match &verdict {
        Verdict::Moved { .. } => false,
        Verdict::Changed if source.layer == Layer::Upstream => true,
        _ => mode == LockMode::Enforce,
    };
    Some(Finding { kind, name: name.to_owned(), source: source.clone(), verdict, blocked })
}

fn judge(
    kind: Kind,
    name: &str,
    source: &Source,
    digest: Option<&str>,
    lock: &Lock,
) -> Option<Verdict> {
    let owner = lock.owner_of(source);
    let built_in = is_built_in(source);
    let Some(locked) = lock.get(kind, name) else {
        return (!built_in).then_some(Verdict::Unlisted);
    };
    let same = digest == locked.digest.as_deref();
    let stolen = || Verdict::TakenOver { owner: locked.owner.clone() };
    if source.layer == Layer::Fallback {
        None
    } else if locked.owner == owner {
        (!built_in && !same).then_some(Verdict::Changed)
    } else if locked.owner.layer == owner.layer && same && !built_in && digest.is_some() {
        Some(Verdict::Moved { from: locked.owner.clone() })
    } else {
        Some(stolen())
    }
}

/// Whether it is part of the program.
fn is_built_in(source: &Source) -> bool {
    matches!(source.layer, Layer::Host | Layer::Native | Layer::Fallback)
}
