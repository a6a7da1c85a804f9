//! Pins: what a tool's definition was when it was first seen.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_core::suspension::StoreError;
use toolcrib_tool::BoxFuture;

/// The pins of one upstream, by the tool's name here.
pub type Pins = BTreeMap<String, Fingerprint>;

/// Keeps the fingerprints of imported definitions, by the upstream's name and the tool's name here.
///
/// What is pinned once is the only definition of that tool that may be called, until somebody accepts
/// another.
pub trait PinStore: fmt::Debug + Send + Sync + 'static {
    /// All pins of an upstream. If they cannot be read, none of its tools can be called.
    fn pins<'a>(&'a self, upstream: &'a str) -> BoxFuture<'a, Result<Pins, StoreError>>;

    /// Pins tools that were seen for the first time. A tool that has a pin keeps it: of two processes
    /// that see different definitions at once, the first decides. Returns all pins of the upstream.
    fn pin_new<'a>(
        &'a self,
        upstream: &'a str,
        seen: &'a Pins,
    ) -> BoxFuture<'a, Result<Pins, StoreError>>;

    /// Puts the definition of a tool that somebody has accepted in the place of its pin.
    fn accept<'a>(
        &'a self,
        upstream: &'a str,
        tool: &'a str,
        definition: Fingerprint,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Keeps what a server says of its tool, if this definition is the pinned one: when the definition
    /// changes, whoever accepts the new one is shown both. Default: nothing is kept.
    fn keep_text<'a>(
        &'a self,
        _upstream: &'a str,
        _tool: &'a str,
        _definition: Fingerprint,
        _says: &'a Value,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// What the server said of the pinned definition of a tool, if that was kept.
    fn text<'a>(
        &'a self,
        _upstream: &'a str,
        _tool: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// Pins that last as long as the program.
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
