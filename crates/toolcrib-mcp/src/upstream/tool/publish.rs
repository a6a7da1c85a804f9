//! The tools of an upstream in the registry: which exist, and which of them can be called.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::task::spawn_blocking;
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_core::{Change, Executor, RegistryError, SourceUnit};
use toolcrib_tool::{Source, ToolEntry};

use super::definition::{ImportedTool, import};
use crate::upstream::connection::link::Link;
use crate::upstream::review::pins::{PinStore, Pins};
use crate::upstream::review::{OfferedTool, Review, Reviewed};
use crate::upstream::settings::Upstream;
use crate::upstream::settings::declared::UpstreamDeclaration;
use crate::upstream::settings::selection::{UnmatchedReason, UnmatchedSetting};
use crate::upstream::tool::UpstreamTool;

/// Maintains an upstream's unit in the registry.
pub(crate) struct Publisher {
    upstream: Arc<Upstream>,
    executor: Executor,
    checks: DefinitionChecks,
    link: Arc<Link>,
    unit: SourceUnit,
    source: Source,
    /// The tools as the server last described them, including those that the filters exclude.
    listed: Vec<Value>,
    known: Vec<TrackedTool>,
    /// Filters and overrides that match nothing of what is listed.
    unmatched: Vec<UnmatchedSetting>,
    /// Tools whose names belong to other upstreams.
    foreign: Vec<UnmatchedSetting>,
    /// What was last published, with the names on the wire and sorted by them. It is published
    /// again if nothing has changed.
    entries: Vec<(String, ToolEntry)>,
    /// Whether the registry accepted it.
    is_published: bool,
}

/// Decides which definitions may be called.
#[derive(Debug, Clone)]
pub(crate) struct DefinitionChecks {
    pub(crate) review: Arc<dyn Review>,
    pub(crate) pins: Arc<dyn PinStore>,
}

/// The names that are not an upstream's to take.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameClaims {
    /// What the names of each declared upstream begin with.
    pub(crate) prefixes: Arc<[String]>,
    /// Earlier upstreams whose first connection attempt is under way.
    pub(crate) connecting: Vec<Arc<Upstream>>,
}

impl NameClaims {
    /// Whether a name of an upstream with this prefix begins with the longer prefix of another one.
    fn is_foreign(&self, name: &str, prefix: &str) -> bool {
        let mut longer = self.prefixes.iter().filter(|other| other.len() > prefix.len());
        longer.any(|other| name.starts_with(other.as_str()))
    }

    /// Whether an earlier upstream with this prefix may still offer a tool of that name.
    fn may_go_to_earlier(&self, name: &str, prefix: &str) -> bool {
        let mut rivals =
            self.connecting.iter().filter(|earlier| earlier.names_begin_with() == prefix);
        rivals.any(|earlier| earlier.may_offer(name))
    }
}

/// A tool that the server offers and the filters include.
struct TrackedTool {
    tool: ImportedTool,
    /// The review result of its definition.
    reviewed: Reviewed,
    /// Why its definition may not be called according to its pin, if it was not reviewed.
    pin_mismatch: Option<String>,
}

impl TrackedTool {
    fn refused_by_review(&self) -> Option<&str> {
        match &self.reviewed {
            Reviewed::Refused(reason) => Some(reason),
            _ => None,
        }
    }
}

impl Publisher {
    /// `listed` is what the server told an earlier publisher.
    pub(crate) fn new(
        declared: &UpstreamDeclaration,
        executor: Executor,
        checks: DefinitionChecks,
        link: Arc<Link>,
        listed: Vec<Value>,
    ) -> Self {
        Self {
            upstream: Arc::clone(&declared.upstream),
            executor,
            checks,
            link,
            unit: declared.unit(),
            source: declared.source(),
            is_published: listed.is_empty(),
            listed,
            known: Vec::new(),
            unmatched: Vec::new(),
            foreign: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Changes the declaration under which tools are published from now on.
    pub(crate) async fn declare(&mut self, declared: &UpstreamDeclaration) {
        let (unit, source) = (declared.unit(), declared.source());
        self.is_published &= unit == self.unit && source == self.source;
        (self.unit, self.source) = (unit, source);
        self.upstream = Arc::clone(&declared.upstream);
        self.take().await;
    }

    /// The tools as the server last described them, for another publisher.
    pub(crate) fn into_listed(self) -> Vec<Value> {
        self.listed
    }

    /// Takes over the server's list: new tools are pinned, and tools that differ from their pin are
    /// disabled.
    pub(crate) async fn list(&mut self, tools: Vec<Value>) {
        self.listed = tools;
        self.take().await;
    }

    /// Applies the current settings to the server's descriptions.
    pub(crate) async fn take(&mut self) {
        let secrets = self.executor.mask();
        let mut listed: Vec<ImportedTool> = self
            .listed
            .iter()
            .filter_map(|tool| import(&self.upstream, &secrets, tool))
            .filter(|tool| self.upstream.takes(&tool.original))
            .collect();
        let tools: Vec<_> =
            self.listed.iter().filter_map(|tool| tool.get("name")?.as_str()).collect();
        let unmatched =
            if tools.is_empty() { Vec::new() } else { self.upstream.tools.unmatched(&tools) };
        // Said once, and again when it changes.
        for unmatched in unmatched.iter().filter(|own| !self.unmatched.contains(own)) {
            tracing::warn!(upstream = self.upstream.name, "{unmatched}");
        }
        self.unmatched = unmatched;
        // Sorted by their own names, so that if two get the same name here, the same one always
        // wins.
        listed.sort_by(|a, b| a.original.cmp(&b.original));
        listed.dedup_by(|a, b| a.original == b.original);
        self.warn_of_equal_names(&listed);
        let known =
            |tool| TrackedTool { tool, reviewed: Reviewed::Unknown(None), pin_mismatch: None };
        self.known = listed.into_iter().map(known).collect();
        self.compare().await;
    }

    /// The registry lists such a conflict, but only here both names on the wire are known.
    fn warn_of_equal_names(&self, listed: &[ImportedTool]) {
        let mut owners = BTreeMap::new();
        for tool in listed {
            let name = tool.definition.name();
            let first = *owners.entry(name).or_insert(&tool.original);
            if *first != tool.original {
                let secrets = self.executor.mask();
                let shown = |original: &String| secrets.text(original.clone());
                tracing::warn!(
                    upstream = self.upstream.name,
                    name,
                    first = shown(first),
                    second = shown(&tool.original),
                    "two tools of an upstream get the same name here; the first one keeps it"
                );
            }
        }
    }

    /// Compares the known tools with the review, and the others with their pins, again: somebody
    /// may have accepted a definition.
    pub(crate) async fn compare(&mut self) {
        if self.known.is_empty() {
            return;
        }
        self.review().await;
        let (store, upstream) = (Arc::clone(&self.checks.pins), self.upstream.name.clone());
        let pins = match store.pins(&upstream).await {
            Ok(pins) => pins,
            Err(error) => {
                let reason = "its pinned definition cannot be read";
                tracing::error!(upstream = self.upstream.name, %error, "{reason}");
                for known in &mut self.known {
                    let has_to = matches!(known.reviewed, Reviewed::Unknown(_));
                    known.pin_mismatch = has_to.then(|| reason.to_owned());
                }
                return;
            }
        };
        let first_seen = self.compare_with_pins(&pins);
        if first_seen.is_empty() {
            return;
        }
        match store.pin_new(&upstream, &first_seen).await {
            // Another process may have pinned other definitions in the meantime.
            Ok(pins) => {
                drop(self.compare_with_pins(&pins));
                self.store_texts(&first_seen).await;
            }
            Err(error) => {
                tracing::error!(upstream, %error, "tools seen for the first time could not be pinned");
            }
        }
    }

    /// Keeps what the server says of tools that were pinned just now.
    async fn store_texts(&self, pinned: &Pins) {
        let (store, upstream) = (&self.checks.pins, &self.upstream.name);
        for TrackedTool { tool, .. } in &self.known {
            let (pin, definition) = (&tool.pinned_as, tool.fingerprint);
            if pinned.get(pin) != Some(&definition) {
                continue;
            }
            // Without it a later change is shown without the earlier text.
            if let Err(error) = store.keep_text(upstream, pin, definition, &tool.says).await {
                tracing::warn!(upstream, %error, "the text of a pinned definition could not be stored");
                return;
            }
        }
    }

    /// Marks tools that differ from their pin. Returns the tools without a pin, which are accepted
    /// as they are.
    fn compare_with_pins(&mut self, pins: &Pins) -> Pins {
        let mut first_seen = Pins::new();
        for TrackedTool { tool, reviewed, pin_mismatch } in &mut self.known {
            if !matches!(reviewed, Reviewed::Unknown(_)) {
                *pin_mismatch = None;
                continue;
            }
            let (name, pin) = (tool.definition.name(), &tool.pinned_as);
            let pinned = pins.get(pin).or_else(|| first_seen.get(pin));
            match pinned {
                Some(pinned) if *pinned == tool.fingerprint => *pin_mismatch = None,
                Some(pinned) => {
                    *pin_mismatch = Some(change_reason(name, *pinned, tool.fingerprint));
                }
                None if tool.refused.is_some() => {}
                None => {
                    *pin_mismatch = None;
                    first_seen.insert(pin.clone(), tool.fingerprint);
                }
            }
        }
        first_seen
    }

    async fn review(&mut self) {
        let (review, source) = (Arc::clone(&self.checks.review), self.source.clone());
        let offered: Vec<_> = self.known.iter().map(offered).collect();
        let wanted = offered.len();
        let reviewed = spawn_blocking(move || review.review(&source, &offered)).await;
        // A review that does not answer for every tool has accepted none.
        let reviewed = reviewed.ok().filter(|reviewed| reviewed.len() == wanted);
        let mut reviewed = reviewed.into_iter().flatten();
        for known in &mut self.known {
            known.reviewed = reviewed.next().unwrap_or_else(|| {
                Reviewed::Refused("its reviewed definition cannot be read".to_owned())
            });
        }
    }

    /// The tools that the server offers, without refused definitions.
    pub(crate) fn offered(&self) -> Vec<OfferedTool> {
        let sound = self.known.iter().filter(|known| known.tool.refused.is_none());
        sound.map(offered).collect()
    }

    /// Publishes the known tools; while the server is `down`, none of them can be called. Tools whose names
    /// belong to another upstream are left out, and those that an earlier upstream may still get are
    /// withheld, unless this one has them already. Returns whether some are withheld.
    pub(crate) fn publish(
        &mut self,
        down: bool,
        claims: &NameClaims,
    ) -> Result<bool, RegistryError> {
        let down = down.then(|| self.link.unavailable());
        let snapshot = self.executor.registry().snapshot();
        let is_own = |name: &str| {
            let owner = snapshot.get(name).map(|entry| &entry.source);
            owner.is_some_and(|owner| {
                owner.layer == self.source.layer && owner.unit == self.source.unit
            })
        };
        let prefix = self.upstream.names_begin_with();
        let (known, foreign): (Vec<_>, Vec<_>) = (self.known.iter())
            .partition(|known| !claims.is_foreign(known.tool.definition.name(), &prefix));
        let foreign: Vec<_> = foreign.into_iter().map(|known| self.foreign(known)).collect();
        let (withheld, known): (Vec<_>, Vec<_>) = known.into_iter().partition(|known| {
            let name = known.tool.definition.name();
            claims.may_go_to_earlier(name, &prefix) && !is_own(name)
        });
        let of =
            |known: &TrackedTool| (known.tool.original.clone(), self.entry(known, down.as_deref()));
        let now: Vec<_> = known.into_iter().map(of).collect();
        let withholds = !withheld.is_empty();
        for unmatched in foreign.iter().filter(|one| !self.foreign.contains(one)) {
            tracing::warn!(upstream = self.upstream.name, "{unmatched}");
        }
        self.foreign = foreign;
        let same = |(one, other): (&(String, ToolEntry), &(String, ToolEntry))| {
            one.0 == other.0
                && one.1.availability == other.1.availability
                && one.1.remark == other.1.remark
                && Arc::ptr_eq(&one.1.definition, &other.1.definition)
        };
        if self.is_published
            && now.len() == self.entries.len()
            && now.iter().zip(&self.entries).all(same)
        {
            return Ok(withholds);
        }
        let entries = now.iter().map(|(_, entry)| entry.clone()).collect();
        self.entries = now;
        let change = Change::Replace { unit: self.unit.clone(), entries };
        let outcome = self.executor.registry().apply([change]).map(drop);
        self.is_published = outcome.is_ok();
        outcome.map(|()| withholds)
    }

    fn entry(&self, known: &TrackedTool, down: Option<&str>) -> ToolEntry {
        let TrackedTool { tool, reviewed, pin_mismatch } = known;
        let blocked = known.refused_by_review().filter(|_| tool.refused.is_none());
        let reason = tool.refused.as_deref().or(blocked).or(pin_mismatch.as_deref()).or(down);
        let remark = match reviewed {
            Reviewed::Unknown(remark) => remark.as_deref(),
            Reviewed::Accepted | Reviewed::Refused(_) => None,
        };
        // Reusing an equal entry keeps what was built from it; its link never changes.
        let known = self.entries.binary_search_by(|(original, _)| original.cmp(&tool.original));
        if let Some((_, same)) = known.ok().and_then(|at| self.entries.get(at))
            && same.unavailable_reason() == reason
            && same.is_blocked() == blocked.is_some()
            && same.remark.as_deref() == remark
            && same.definition == tool.definition
        {
            return ToolEntry { source: self.source.clone(), ..same.clone() };
        }
        let definition = Arc::clone(&tool.definition);
        let annotations = definition.annotations();
        let body = UpstreamTool {
            link: Arc::clone(&self.link),
            original: tool.original.clone(),
            repeatable: annotations.read_only || annotations.idempotent,
            bus: self.executor.events().cloned(),
        };
        let mut entry = ToolEntry::new(definition, Arc::new(body), self.source.clone())
            .with_digest(tool.fingerprint.to_string());
        if let Some(remark) = remark {
            entry = entry.with_remark(remark);
        }
        match reason {
            Some(reason) if blocked.is_some() => entry.blocked(reason),
            Some(reason) => entry.unavailable(reason),
            None => entry,
        }
    }

    /// How many tools are known, and how many of them are refused or changed.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let disabled = |known: &&TrackedTool| {
            known.tool.refused.is_some()
                || known.pin_mismatch.is_some()
                || known.refused_by_review().is_some()
        };
        (self.known.len(), self.known.iter().filter(disabled).count())
    }

    /// Filters and overrides that match nothing, and tools whose names belong to other upstreams.
    pub(crate) fn unmatched(&self) -> Vec<UnmatchedSetting> {
        self.unmatched.iter().chain(&self.foreign).cloned().collect()
    }

    fn foreign(&self, known: &TrackedTool) -> UnmatchedSetting {
        let name = known.tool.definition.name().to_owned();
        let origin = self.upstream.origin.clone();
        UnmatchedSetting {
            key: "tools".to_owned(),
            name,
            problem: UnmatchedReason::BelongsToAnother,
            origin,
        }
    }

    /// Whether there is a definition that somebody could accept.
    pub(crate) fn has_changed_tools(&self) -> bool {
        self.known.iter().any(|known| known.pin_mismatch.is_some())
    }

    /// The tools whose changed definition may not be called, by name here.
    pub(crate) fn unaccepted(&self) -> BTreeMap<String, UnacceptedChange> {
        let unlike = self.known.iter().filter(|known| known.pin_mismatch.is_some());
        let unaccepted = unlike.map(|known| {
            let says = (*known.tool.says).clone();
            let pinned_as = known.tool.pinned_as.clone();
            let offered = UnacceptedChange { fingerprint: known.tool.fingerprint, says, pinned_as };
            (known.tool.definition.name().to_owned(), offered)
        });
        unaccepted.collect()
    }
}

/// A changed definition that nobody has accepted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UnacceptedChange {
    /// The fingerprint to pin it by.
    pub fingerprint: Fingerprint,
    /// All that the server says about the tool.
    pub says: Value,
    /// The name of its pin.
    pub(crate) pinned_as: String,
}

fn offered(known: &TrackedTool) -> OfferedTool {
    OfferedTool::new(known.tool.definition.name(), (*known.tool.says).clone())
}

fn change_reason(name: &str, pinned: Fingerprint, now: Fingerprint) -> String {
    format!(
        "its definition changed since it was first seen ({} then, {} now); it can be called when \
         an operator has accepted the new one (`toolcrib accept {name}`)",
        pinned.abbreviated(),
        now.abbreviated()
    )
}
