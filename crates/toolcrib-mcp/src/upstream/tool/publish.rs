//! The tools of an upstream in the registry: which there are, and which of them can be called.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::task::spawn_blocking;
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_core::{Change, Executor, RegistryError, SourceUnit};
use toolcrib_tool::{Source, ToolEntry};

use super::definition::{Imported, import};
use crate::upstream::connection::link::Link;
use crate::upstream::review::pins::{PinStore, Pins};
use crate::upstream::review::{OfferedTool, Review, Reviewed};
use crate::upstream::settings::Upstream;
use crate::upstream::settings::declared::Declared;
use crate::upstream::tool::UpstreamTool;

/// Digits of a fingerprint that people are shown.
const SHOWN: usize = 12;

/// Keeps the registry's unit of an upstream.
pub(crate) struct Publisher {
    upstream: Arc<Upstream>,
    executor: Executor,
    known_by: KnownBy,
    link: Arc<Link>,
    unit: SourceUnit,
    source: Source,
    /// The server's tools as it described them last, those that are not taken included.
    listed: Vec<Value>,
    known: Vec<Known>,
    /// What was published last, with the names on the wire and sorted by them, to be published again
    /// where nothing has changed.
    entries: Vec<(String, ToolEntry)>,
    /// Whether the registry took that.
    taken: bool,
}

/// By what it is known which definitions may be called.
#[derive(Debug, Clone)]
pub(crate) struct KnownBy {
    pub(crate) review: Arc<dyn Review>,
    pub(crate) pins: Arc<dyn PinStore>,
}

/// A tool that the server has offered, and that is taken.
struct Known {
    tool: Imported,
    /// What was reviewed of it.
    reviewed: Reviewed,
    /// Why its definition is not the one that may be called, where nothing was reviewed.
    unlike_pin: Option<String>,
}

impl Known {
    fn refused_by_review(&self) -> Option<&str> {
        match &self.reviewed {
            Reviewed::Refused(reason) => Some(reason),
            _ => None,
        }
    }
}

impl Publisher {
    /// `listed` is what the server said to another publisher.
    pub(crate) fn new(
        declared: &Declared,
        executor: Executor,
        known_by: KnownBy,
        link: Arc<Link>,
        listed: Vec<Value>,
    ) -> Self {
        Self {
            upstream: Arc::clone(&declared.upstream),
            executor,
            known_by,
            link,
            unit: declared.unit(),
            source: declared.source(),
            taken: listed.is_empty(),
            listed,
            known: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Has what is published from now on declared otherwise.
    pub(crate) async fn declare(&mut self, declared: &Declared) {
        let (unit, source) = (declared.unit(), declared.source());
        self.taken &= unit == self.unit && source == self.source;
        (self.unit, self.source) = (unit, source);
        self.upstream = Arc::clone(&declared.upstream);
        self.take().await;
    }

    /// The server's tools as it described them last, for another publisher.
    pub(crate) fn into_listed(self) -> Vec<Value> {
        self.listed
    }

    /// Takes the server's list over: what is new is pinned, what differs from its pin is disabled.
    pub(crate) async fn list(&mut self, tools: Vec<Value>) {
        self.listed = tools;
        self.take().await;
    }

    /// Makes of what the server said what the settings say of it.
    pub(crate) async fn take(&mut self) {
        let secrets = self.executor.mask();
        let mut listed: Vec<Imported> = self
            .listed
            .iter()
            .filter_map(|tool| import(&self.upstream, &secrets, tool))
            .filter(|tool| self.upstream.takes(&tool.original))
            .collect();
        // By their own names, so that of two that become equal here the same one wins each time.
        listed.sort_by(|a, b| a.original.cmp(&b.original));
        listed.dedup_by(|a, b| a.original == b.original);
        self.warn_of_equal_names(&listed);
        let known = |tool| Known { tool, reviewed: Reviewed::Unknown(None), unlike_pin: None };
        self.known = listed.into_iter().map(known).collect();
        self.compare().await;
    }

    /// The registry lists such a conflict; only here both names on the wire are known.
    fn warn_of_equal_names(&self, listed: &[Imported]) {
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
                    "two tools of an upstream get one name here; the first keeps it"
                );
            }
        }
    }

    /// Compares what is known with what was reviewed, and the rest with its pins, again: somebody may
    /// have accepted a definition.
    pub(crate) async fn compare(&mut self) {
        if self.known.is_empty() {
            return;
        }
        self.review().await;
        let (store, upstream) = (Arc::clone(&self.known_by.pins), self.upstream.name.clone());
        let pins = match store.pins(&upstream).await {
            Ok(pins) => pins,
            Err(error) => {
                let reason = "what it was when it was first seen cannot be read";
                tracing::error!(upstream = self.upstream.name, %error, "{reason}");
                for known in &mut self.known {
                    let has_to = matches!(known.reviewed, Reviewed::Unknown(_));
                    known.unlike_pin = has_to.then(|| reason.to_owned());
                }
                return;
            }
        };
        let first_seen = self.compare_with(&pins);
        if first_seen.is_empty() {
            return;
        }
        match store.pin_new(&upstream, &first_seen).await {
            // Another process may have pinned other definitions meanwhile.
            Ok(pins) => {
                drop(self.compare_with(&pins));
                self.keep_texts(&first_seen).await;
            }
            Err(error) => {
                tracing::error!(upstream, %error, "tools seen for the first time could not be pinned");
            }
        }
    }

    /// Keeps what the server says of tools that were pinned just now.
    async fn keep_texts(&self, pinned: &Pins) {
        let (store, upstream) = (&self.known_by.pins, &self.upstream.name);
        for Known { tool, .. } in &self.known {
            let (name, definition) = (tool.definition.name(), tool.fingerprint);
            if pinned.get(name) != Some(&definition) {
                continue;
            }
            // Without it a later change is shown without what was before.
            if let Err(error) = store.keep_text(upstream, name, definition, &tool.says).await {
                tracing::warn!(upstream, %error, "a pinned definition could not be kept as text");
                return;
            }
        }
    }

    /// Marks what differs from its pin. Returns what has none, which is taken as it is.
    fn compare_with(&mut self, pins: &Pins) -> Pins {
        let mut first_seen = Pins::new();
        for Known { tool, reviewed, unlike_pin } in &mut self.known {
            if !matches!(reviewed, Reviewed::Unknown(_)) {
                *unlike_pin = None;
                continue;
            }
            let name = tool.definition.name();
            let pinned = pins.get(name).or_else(|| first_seen.get(name));
            match pinned {
                Some(pinned) if *pinned == tool.fingerprint => *unlike_pin = None,
                Some(pinned) => *unlike_pin = Some(changed(name, *pinned, tool.fingerprint)),
                None if tool.refused.is_some() => {}
                None => {
                    *unlike_pin = None;
                    first_seen.insert(name.to_owned(), tool.fingerprint);
                }
            }
        }
        first_seen
    }

    async fn review(&mut self) {
        let (review, source) = (Arc::clone(&self.known_by.review), self.source.clone());
        let offered: Vec<_> = self.known.iter().map(offered).collect();
        let wanted = offered.len();
        let reviewed = spawn_blocking(move || review.review(&source, &offered)).await;
        // Whoever does not answer for each of them has accepted none.
        let reviewed = reviewed.ok().filter(|reviewed| reviewed.len() == wanted);
        let mut reviewed = reviewed.into_iter().flatten();
        for known in &mut self.known {
            known.reviewed = reviewed.next().unwrap_or_else(|| {
                Reviewed::Refused("what was reviewed of it cannot be read".to_owned())
            });
        }
    }

    /// What the server offers, refused definitions left out.
    pub(crate) fn offered(&self) -> Vec<OfferedTool> {
        let sound = self.known.iter().filter(|known| known.tool.refused.is_none());
        sound.map(offered).collect()
    }

    /// Puts what is known into the registry; while the server is `down`, none of it can be called.
    pub(crate) fn publish(&mut self, down: bool) -> Result<(), RegistryError> {
        let down = down.then(|| self.link.unavailable());
        let of = |known: &Known| (known.tool.original.clone(), self.entry(known, down.as_deref()));
        let now: Vec<_> = self.known.iter().map(of).collect();
        let same = |(one, other): (&(String, ToolEntry), &(String, ToolEntry))| {
            one.0 == other.0
                && one.1.availability == other.1.availability
                && one.1.remark == other.1.remark
                && Arc::ptr_eq(&one.1.definition, &other.1.definition)
        };
        if self.taken && now.len() == self.entries.len() && now.iter().zip(&self.entries).all(same)
        {
            return Ok(());
        }
        let entries = now.iter().map(|(_, entry)| entry.clone()).collect();
        self.entries = now;
        let change = Change::Replace { unit: self.unit.clone(), entries };
        let outcome = self.executor.registry().apply([change]).map(drop);
        self.taken = outcome.is_ok();
        outcome
    }

    fn entry(&self, known: &Known, down: Option<&str>) -> ToolEntry {
        let Known { tool, reviewed, unlike_pin } = known;
        let blocked = known.refused_by_review().filter(|_| tool.refused.is_none());
        let reason = tool.refused.as_deref().or(blocked).or(unlike_pin.as_deref()).or(down);
        let remark = match reviewed {
            Reviewed::Unknown(remark) => remark.as_deref(),
            Reviewed::Accepted | Reviewed::Refused(_) => None,
        };
        // The same entry again keeps what was made from it; its link is for good.
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
        let disabled = |known: &&Known| {
            known.tool.refused.is_some()
                || known.unlike_pin.is_some()
                || known.refused_by_review().is_some()
        };
        (self.known.len(), self.known.iter().filter(disabled).count())
    }

    /// Whether somebody could accept a definition.
    pub(crate) fn awaits_acceptance(&self) -> bool {
        self.known.iter().any(|known| known.unlike_pin.is_some())
    }

    /// What the server offers under these names and may not be called as it is.
    pub(crate) fn unaccepted(&self) -> BTreeMap<String, Unaccepted> {
        let unlike = self.known.iter().filter(|known| known.unlike_pin.is_some());
        let unaccepted = unlike.map(|known| {
            let says = (*known.tool.says).clone();
            let offered = Unaccepted { fingerprint: known.tool.fingerprint, says };
            (known.tool.definition.name().to_owned(), offered)
        });
        unaccepted.collect()
    }
}

/// A changed definition that nobody has accepted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Unaccepted {
    /// What it is pinned by.
    pub fingerprint: Fingerprint,
    /// All that the server says of the tool.
    pub says: Value,
}

fn offered(known: &Known) -> OfferedTool {
    OfferedTool::new(known.tool.definition.name(), (*known.tool.says).clone())
}

fn changed(name: &str, pinned: Fingerprint, now: Fingerprint) -> String {
    let short = |fingerprint: Fingerprint| fingerprint.to_string()[..SHOWN].to_owned();
    format!(
        "its definition changed since it was first seen ({} then, {} now); it can be called when \
         an operator has accepted the new one (`toolcrib accept {name}`)",
        short(pinned),
        short(now)
    )
}
