//! When each resource was written, and which cached answers have read it.

use hashbrown::{HashMap, HashSet};

use super::key::CacheKey;

/// The version of everything a tool reads: as long as it stays the same, so does the answer to the
/// same call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ResourceVersion(u64);

/// The last write of a resource, and the cached answers that read it.
#[derive(Debug, Default)]
pub(super) struct ResourceLedger {
    writes: u64,
    /// The minimum version: the time of the last write that was evicted from `resources`.
    floor: u64,
    resources: HashMap<String, Resource>,
}

#[derive(Debug, Default)]
struct Resource {
    written: u64,
    readers: HashSet<CacheKey>,
}

impl ResourceLedger {
    /// The version of what the key's tool reads.
    ///
    /// Resources that the tool itself writes do not count: otherwise its first call would
    /// invalidate its own answer.
    pub(super) fn version(&self, key: &CacheKey) -> ResourceVersion {
        let resources = key.definition().resources();
        let last = resources
            .read()
            .iter()
            .filter(|name| !resources.written().contains(name))
            .filter_map(|name| self.resources.get(name.as_str()))
            .map(|resource| resource.written)
            .max();
        ResourceVersion(last.unwrap_or(0).max(self.floor))
    }

    /// Registers a cached answer.
    pub(super) fn add_reader(&mut self, key: &CacheKey) {
        for name in key.definition().resources().read() {
            self.resource(name).readers.insert(key.clone());
        }
    }

    /// Unregisters an evicted answer.
    pub(super) fn remove_reader(&mut self, key: &CacheKey) {
        for name in key.definition().resources().read() {
            if let Some(resource) = self.resources.get_mut(name.as_str()) {
                resource.readers.remove(key);
            }
        }
    }

    /// Records a write; returns the answers that it invalidates.
    pub(super) fn write(&mut self, name: &str) -> HashSet<CacheKey> {
        self.writes += 1;
        let written = self.writes;
        let resource = self.resource(name);
        resource.written = written;
        std::mem::take(&mut resource.readers)
    }

    /// Records a write of everything.
    pub(super) fn write_all(&mut self) {
        self.writes += 1;
        self.floor = self.writes;
        self.resources.clear();
    }

    /// The number of tracked names.
    #[cfg(test)]
    pub(super) fn known(&self) -> usize {
        self.resources.len()
    }

    fn resource(&mut self, name: &str) -> &mut Resource {
        if !self.resources.contains_key(name) && self.resources.len() == self.resources.capacity() {
            // Names come and go with definitions. Unused ones are removed only when the map is
            // full, so the cost is amortized. Forgetting a write makes everything look written: a
            // superfluous call, never a stale answer.
            let before = self.resources.len();
            self.resources.retain(|_, resource| !resource.readers.is_empty());
            if self.resources.len() < before {
                self.floor = self.writes;
            }
        }
        self.resources.entry_ref(name).or_default()
    }
}
