//! A registered entry, with what its first call derives from its definition.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use toolcrib_search::Document;
use toolcrib_tool::{Body, Constraint, Layer, ToolEntry};

use super::rules::Rules;
use super::unit::EntryPosition;
use crate::arguments::prepare::Preparation;
use crate::cache::Callee;
use crate::core_tools::search;
use crate::identity::fingerprint::Fingerprint;
use crate::lifecycle::LiveBody;

/// A registered entry, whether it owns its name or waits for it.
///
/// Snapshots share unchanged slots, so that compiled parts are kept.
#[derive(Debug)]
pub(crate) struct ToolSlot {
    live: Option<Arc<LiveBody>>,
    compiled: OnceLock<Compiled>,
    pub(crate) entry: ToolEntry,
    pub(super) place: EntryPosition,
    fingerprint: OnceLock<Fingerprint>,
    document: OnceLock<Document>,
}

/// What calls need beside the entry. Validators are not stored here: they are large, and
/// [`SchemaCache`](crate::arguments::validators::SchemaCache) limits their number.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) preparation: Preparation,
    /// The first bits of the slot's fingerprint, which the breaker compares at every call.
    pub(crate) edition: u64,
    /// The tool's identity for cached answers.
    pub(crate) callee: Callee,
}

impl ToolSlot {
    pub(super) fn new(entry: ToolEntry, place: EntryPosition) -> Self {
        let live = match &entry.body {
            Body::Shared(tool) => Some(LiveBody::of(tool, entry.definition.tool_name())),
            _ => None,
        };
        let (compiled, fingerprint, document) = Default::default();
        Self { live, compiled, entry, place, fingerprint, document }
    }

    /// The shared instance, if all calls share one.
    pub(crate) fn live(&self) -> Option<&Arc<LiveBody>> {
        self.live.as_ref()
    }

    /// The parts derived from the definition, computed at the first call.
    pub(crate) fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| Compiled {
            preparation: Preparation::of(&self.entry.definition),
            edition: self.fingerprint().short(),
            callee: Callee::of(&self.entry, revision(&self.entry.body)),
        })
    }

    /// The fingerprint that decisions and call records are bound to; computed once.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        *self.fingerprint.get_or_init(|| Fingerprint::of_definition(&self.entry))
    }

    /// Its search document; computed once.
    pub(super) fn document(&self) -> &Document {
        self.document.get_or_init(|| search::document(&self.entry.definition))
    }

    pub(super) fn name(&self) -> &str {
        self.entry.name()
    }

    pub(super) fn is_fallback(&self) -> bool {
        self.entry.source.layer == Layer::Fallback
    }

    pub(crate) fn is_available(&self) -> bool {
        self.entry.unavailable_reason().is_none()
    }

    /// Its precedence among all claims on its name: in a fresh registry, the smallest owns it.
    pub(super) fn precedence<'a>(&'a self, rules: &Rules) -> NamePrecedence<'a> {
        let source = &self.entry.source;
        let class = match source.layer {
            Layer::Fallback => Class::Fallback,
            _ if self.entry.is_blocked() => Class::Blocked,
            _ if rules.may_override(&self.entry) => Class::Main,
            _ => Class::Refused,
        };
        let (rank, unit, position) = match self.place {
            EntryPosition::Registered(number) => (None, "", number),
            EntryPosition::Declared { rank, position } => {
                (Some(rank), source.unit.as_str(), position.into())
            }
        };
        NamePrecedence { class, layer: source.layer, rank, unit, position }
    }

    /// Whether the other slot is equivalent.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.place == other.place && same_entry(&self.entry, &other.entry)
    }
}

/// Whether two entries are equivalent. The destructuring makes sure that new fields are considered
/// here.
fn same_entry(one: &ToolEntry, other: &ToolEntry) -> bool {
    let ToolEntry {
        definition,
        constraint,
        availability,
        body,
        source,
        remark,
        unsafe_argv,
        digest,
        unit_everywhere,
        opt_in,
    } = one;
    same_body(body, &other.body)
        && same_constraint(constraint.as_ref(), other.constraint.as_ref())
        && *source == other.source
        && *availability == other.availability
        && *remark == other.remark
        && *unsafe_argv == other.unsafe_argv
        && *opt_in == other.opt_in
        && *digest == other.digest
        && *unit_everywhere == other.unit_everywhere
        && (Arc::ptr_eq(definition, &other.definition) || *definition == other.definition)
}

/// Constraints are compared by identity, because their behavior cannot be compared.
fn same_constraint(one: Option<&Arc<dyn Constraint>>, other: Option<&Arc<dyn Constraint>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

/// The precedence of entries with one name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamePrecedence<'a> {
    class: Class,
    layer: Layer,
    /// Individually registered entries (`None`) come before those of units.
    rank: Option<u32>,
    unit: &'a str,
    position: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Main,
    Fallback,
    /// Blocked by the lock: owns a name only if no other entry declares it.
    Blocked,
    /// May not override a fallback.
    Refused,
}

fn same_body(one: &Body, other: &Body) -> bool {
    match (one, other) {
        (Body::Shared(one), Body::Shared(other)) => one.is_same(other),
        (Body::PerUse(one), Body::PerUse(other)) => Arc::ptr_eq(one, other),
        (Body::Client, Body::Client) => true,
        _ => false,
    }
}

/// Distinguishes bodies with the same definition. It is a number, not an address, because addresses
/// are reused, and a new body must not get an old one's cached answers.
fn revision(body: &Body) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);

    match body {
        Body::Client => "client".to_owned(),
        _ => NEXT.fetch_add(1, Ordering::Relaxed).to_string(),
    }
}
