//! Pins: the definition of each tool as it was first seen.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_core::suspension::StoreError;
use toolcrib_tool::BoxFuture;

/// The pins of one upstream, by the tools' names here.
pub type Pins = BTreeMap<String, Fingerprint>;

/// Stores the fingerprints of imported definitions, by the upstream's name and the tool's name
/// here.
///
/// Only the pinned definition of a tool may be called, until somebody accepts another.
pub trait PinStore: fmt::Debug + Send + Sync + 'static {
    /// All pins of an upstream. If they cannot be read, none of its tools can be called.
    fn pins<'a>(&'a self, upstream: &'a str) -> BoxFuture<'a, Result<Pins, StoreError>>;

    /// Pins tools that are seen for the first time. A tool that has a pin keeps it: if two
    /// processes see different definitions at the same time, the first one wins. Returns all pins
    /// of the upstream.
    fn pin_new<'a>(
        &'a self,
        upstream: &'a str,
        seen: &'a Pins,
    ) -> BoxFuture<'a, Result<Pins, StoreError>>;

    /// Replaces a tool's pin with a definition that somebody has accepted.
    fn accept<'a>(
        &'a self,
        upstream: &'a str,
        tool: &'a str,
        definition: Fingerprint,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Stores what a server says about its tool, if this is the pinned definition. When the
    /// definition changes, the person who accepts the new one sees both. Default: nothing is
    /// stored.
    fn keep_text<'a>(
        &'a self,
        _upstream: &'a str,
        _tool: &'a str,
        _definition: Fingerprint,
        _says: &'a Value,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// What the server said about the pinned definition of a tool, if that was stored.
    fn text<'a>(
        &'a self,
        _upstream: &'a str,
        _tool: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// Pins that last as long as the process.
#[derive(Debug, Default)]
pub struct MemoryPins(Mutex<BTreeMap<String, Pins>>);

impl MemoryPins {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Pins>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PinStore for MemoryPins {
    fn pins<'a>(&'a self, upstream: &'a str) -> BoxFuture<'a, Result<Pins, StoreError>> {
        let pins = self.all().get(upstream).cloned().unwrap_or_default();
        Box::pin(std::future::ready(Ok(pins)))
    }

    fn pin_new<'a>(
        &'a self,
        upstream: &'a str,
        seen: &'a Pins,
    ) -> BoxFuture<'a, Result<Pins, StoreError>> {
        let mut all = self.all();
        let pins = all.entry(upstream.to_owned()).or_default();
        for (tool, definition) in seen {
            pins.entry(tool.clone()).or_insert(*definition);
        }
        Box::pin(std::future::ready(Ok(pins.clone())))
    }

    fn accept<'a>(
        &'a self,
        upstream: &'a str,
        tool: &'a str,
        definition: Fingerprint,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.all().entry(upstream.to_owned()).or_default().insert(tool.to_owned(), definition);
        Box::pin(std::future::ready(Ok(())))
    }
}
