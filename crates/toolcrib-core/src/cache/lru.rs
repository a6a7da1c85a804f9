//! A map in LRU order.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, Equivalent, HashTable};

/// No neighbour.
const NONE: usize = usize::MAX;

/// A map in order of use. Everything but [`drain`](Self::drain) takes constant time.
///
/// The nodes are stored in one vector and linked by position, newest to oldest; the index holds
/// only positions, so each key is stored once.
#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    nodes: Vec<LruNode<K, V>>,
    index: HashTable<usize>,
    hasher: DefaultHashBuilder,
    newest: usize,
    oldest: usize,
}

#[derive(Debug)]
struct LruNode<K, V> {
    key: K,
    value: V,
    hash: u64,
    newer: usize,
    older: usize,
}

impl<K: Hash + Eq, V> Lru<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            newest: NONE,
            oldest: NONE,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The value of a key, which becomes the newest.
    pub(crate) fn get<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<&mut V> {
        let at = self.position(key)?;
        if at != self.newest {
            self.unlink(at);
            self.link(at);
        }
        Some(&mut self.nodes[at].value)
    }

    /// Inserts a value as the newest; returns the one it replaces.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(known) = self.get(&key) {
            return Some(std::mem::replace(known, value));
        }
        let hash = self.hasher.hash_one(&key);
        let at = self.nodes.len();
        self.nodes.push(LruNode { key, value, hash, newer: NONE, older: NONE });
        let nodes = &self.nodes;
        self.index.insert_unique(hash, at, |&at| nodes[at].hash);
        self.link(at);
        None
    }

    /// Removes an entry.
    pub(crate) fn remove<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<(K, V)> {
        self.position(key).map(|at| self.take(at))
    }

    /// Removes the least recently used entry.
    pub(crate) fn pop_oldest(&mut self) -> Option<(K, V)> {
        (self.oldest != NONE).then(|| self.take(self.oldest))
    }

    /// The least recently used value; peeking does not count as a use.
    pub(crate) fn oldest(&mut self) -> Option<&mut V> {
        self.nodes.get_mut(self.oldest).map(|node| &mut node.value)
    }

    /// Removes all entries, in no particular order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        let emptied = std::mem::replace(self, Self::new());
        emptied.nodes.into_iter().map(|node| (node.key, node.value))
    }

    fn position<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<usize> {
        let hash = self.hasher.hash_one(key);
        self.index.find(hash, |&at| key.equivalent(&self.nodes[at].key)).copied()
    }

    /// Links a node in front of the newest.
    fn link(&mut self, at: usize) {
        self.nodes[at].newer = NONE;
        self.nodes[at].older = self.newest;
        match self.nodes.get_mut(self.newest) {
            Some(second) => second.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    /// Removes a node from the list.
    fn unlink(&mut self, at: usize) {
        let (newer, older) = (self.nodes[at].newer, self.nodes[at].older);
        match self.nodes.get_mut(newer) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
        match self.nodes.get_mut(older) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn take(&mut self, at: usize) -> (K, V) {
        self.unlink(at);
        if let Ok(slot) = self.index.find_entry(self.nodes[at].hash, |&known| known == at) {
            slot.remove();
        }
        let last = self.nodes.len() - 1;
        if at != last {
            // The last node moves into the gap, so links to it have to be updated.
            let (hash, newer, older) =
                (self.nodes[last].hash, self.nodes[last].newer, self.nodes[last].older);
            if let Some(place) = self.index.find_mut(hash, |&known| known == last) {
                *place = at;
            }
            match self.nodes.get_mut(newer) {
                Some(node) => node.older = at,
                None => self.newest = at,
            }
            match self.nodes.get_mut(older) {
                Some(node) => node.newer = at,
                None => self.oldest = at,
            }
        }
        let LruNode { key, value, .. } = self.nodes.swap_remove(at);
        (key, value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::Lru;

    #[derive(Debug, Clone)]
    enum LruStep {
        Get(u8),
        Insert(u8, u32),
        Remove(u8),
        PopOldest,
    }

    fn steps() -> impl Strategy<Value = Vec<LruStep>> {
        let key = 0..12_u8;
        prop::collection::vec(
            prop_oneof![
                key.clone().prop_map(LruStep::Get),
                (key.clone(), any::<u32>()).prop_map(|(key, value)| LruStep::Insert(key, value)),
                key.prop_map(LruStep::Remove),
                Just(LruStep::PopOldest),
            ],
            0..200,
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn it_behaves_like_a_list_searched_from_the_front(steps in steps()) {
            let mut lru = Lru::new();
            // The model: newest first.
            let mut list: VecDeque<(u8, u32)> = VecDeque::new();
            let find = |list: &VecDeque<(u8, u32)>, key| list.iter().position(|(k, _)| *k == key);
            for step in steps {
                match step {
                    LruStep::Get(key) => {
                        let expected = find(&list, key).and_then(|at| list.remove(at));
                        list.extend(expected);
                        if expected.is_some() {
                            list.rotate_right(1);
                        }
                        let expected = expected.map(|(_, value)| value);
                        prop_assert_eq!(lru.get(&key).copied(), expected);
                    }
                    LruStep::Insert(key, value) => {
                        let replaced = find(&list, key).and_then(|at| list.remove(at));
                        list.push_front((key, value));
                        prop_assert_eq!(lru.insert(key, value), replaced.map(|(_, value)| value));
                    }
                    LruStep::Remove(key) => {
                        let expected = find(&list, key).and_then(|at| list.remove(at));
                        prop_assert_eq!(lru.remove(&key), expected);
                    }
                    LruStep::PopOldest => prop_assert_eq!(lru.pop_oldest(), list.pop_back()),
                }
                prop_assert_eq!(lru.len(), list.len());
                prop_assert_eq!(lru.oldest().copied(), list.back().map(|(_, value)| *value));
            }
            while let Some(oldest) = list.pop_back() {
                prop_assert_eq!(lru.pop_oldest(), Some(oldest));
            }
            prop_assert!(lru.is_empty());
        }
    }
}
