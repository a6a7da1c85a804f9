//! Which resource was written when, and which kept answers have read it.

use hashbrown::{HashMap, HashSet};

use super::key::CacheKey;

/// The state of everything a tool reads, as far as writers have told: as long as it stays the
/// same, so does the answer to the same call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ResourceVersion(u64);

/// The writes so far, and the readers to tell of the next.
#[derive(Debug, Default)]
pub(super) struct ResourceLedger {
    writes: u64,
    /// No version is older: the time of the last write that is not in `resources` any more.
    floor: u64,
    resources: HashMap<String, Resource>,
}

#[derive(Debug, Default)]
struct Resource {
    written: u64,
    readers: HashSet<CacheKey>,
}

impl ResourceLedger {
    /// The state of what the key's tool reads.
    ///
    /// What it writes itself does not count: its own first call would make the second one another.
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

    /// Takes note of a kept answer.
    pub(super) fn add_reader(&mut self, key: &CacheKey) {
        for name in key.definition().resources().read() {
            self.resource(name).readers.insert(key.clone());
        }
    }

    /// Forgets an answer that is not kept any more.
    pub(super) fn remove_reader(&mut self, key: &CacheKey) {
        for name in key.definition().resources().read() {
            if let Some(resource) = self.resources.get_mut(name.as_str()) {
                resource.readers.remove(key);
            }
        }
    }

    /// A write; returns the answers that are out of date now.
    pub(super) fn write(&mut self, name: &str) -> HashSet<CacheKey> {
        self.writes += 1;
        let written = self.writes;
        let resource = self.resource(name);
        resource.written = written;
        std::mem::take(&mut resource.readers)
    }

    /// Everything is out of date, and nothing is kept.
    pub(super) fn write_all(&mut self) {
        self.writes += 1;
        self.floor = self.writes;
        self.resources.clear();
    }

    /// How many names are known.
    #[cfg(test)]
    pub(super) fn known(&self) -> usize {
        self.resources.len()
    }

    fn resource(&mut self, name: &str) -> &mut Resource {
        if !self.resources.contains_key(name) && self.resources.len() == self.resources.capacity() {
            // Names come and go with definitions. Looked over only when the map is full, which it
            // is again only after as many new names as were kept. Forgetting a write makes
            // everything look written: a call too many, never an old answer.
            let before = self.resources.len();
            self.resources.retain(|_, resource| !resource.readers.is_empty());
            if self.resources.len() < before {
                self.floor = self.writes;
            }
        }
        self.resources.entry_ref(name).or_default()
    }
}
