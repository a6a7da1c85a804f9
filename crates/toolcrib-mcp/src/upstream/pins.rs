//! Pins: what a tool's definition was when it was first seen.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

use toolcrib_core::fingerprint::Fingerprint;

/// Keeps the fingerprints of imported definitions, by the upstream's name and the tool's name here.
///
/// What is pinned once is the only definition of that tool that may be called, until somebody accepts
/// another. Methods may block: they are called where that does no harm.
pub trait PinStore: fmt::Debug + Send + Sync + 'static {
    /// All pins of an upstream. If they cannot be read, none of its tools can be called.
    fn pins(&self, upstream: &str) -> io::Result<BTreeMap<String, Fingerprint>>;

    /// Adds pins to those of an upstream, in the place of those of the same names.
    fn pin(&self, upstream: &str, pins: &BTreeMap<String, Fingerprint>) -> io::Result<()>;
}

/// Pins that last as long as the program.
#[derive(Debug, Default)]
pub struct MemoryPins(Mutex<BTreeMap<String, BTreeMap<String, Fingerprint>>>);

impl PinStore for MemoryPins {
    fn pins(&self, upstream: &str) -> io::Result<BTreeMap<String, Fingerprint>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(all.get(upstream).cloned().unwrap_or_default())
    }

    fn pin(&self, upstream: &str, pins: &BTreeMap<String, Fingerprint>) -> io::Result<()> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(upstream.to_owned()).or_default().extend(pins.clone());
        Ok(())
    }
}
