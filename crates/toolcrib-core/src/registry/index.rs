//! From a name to its position: one hash probe, then one comparison.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};
use toolcrib_tool::ToolName;

/// A table of names that never changes.
///
/// At thousands of tools a lookup costs what it misses in the caches. So a bucket is twelve bytes
/// and points into one text that holds all names, instead of holding a pointer to each.
#[derive(Debug, Default)]
pub(super) struct NameIndex {
    table: HashTable<Bucket>,
    text: String,
    /// Where each name ends in the text, by position.
    ends: Vec<u32>,
    hasher: DefaultHashBuilder,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    start: u32,
    position: u32,
    len: u8,
}

impl NameIndex {
    /// Of names without repetition, each at its position.
    pub(super) fn new<'a>(names: impl ExactSizeIterator<Item = &'a ToolName>) -> Self {
        let count = names.len();
        let mut index = Self {
            table: HashTable::with_capacity(count),
            text: String::with_capacity(count * 16),
            ends: Vec::with_capacity(count),
            hasher: DefaultHashBuilder::default(),
        };
        for (position, name) in names.enumerate() {
            let name = name.as_str();
            let bucket = Bucket {
                start: narrow(index.text.len()),
                position: narrow(position),
                len: u8::try_from(name.len()).unwrap_or(u8::MAX),
            };
            index.text.push_str(name);
            index.ends.push(narrow(index.text.len()));
            let (hasher, text) = (&index.hasher, &index.text);
            index.table.insert_unique(hash(hasher, name.as_bytes()), bucket, |bucket| {
                hash(hasher, bucket.name(text))
            });
        }
        index
    }

    /// Where the name is.
    #[inline]
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let name = name.as_bytes();
        let found = self.table.find(hash(&self.hasher, name), |bucket| {
            usize::from(bucket.len) == name.len() && bucket.name(&self.text) == name
        });
        found.map(|bucket| bucket.position as usize)
    }

    /// The name at a position; empty if there is none.
    pub(super) fn name(&self, position: usize) -> &str {
        let end = |position: usize| self.ends.get(position).map_or(0, |&end| end as usize);
        let start = position.checked_sub(1).map_or(0, end);
        self.text.get(start..end(position)).unwrap_or_default()
    }
}

impl Bucket {
    #[inline]
    fn name(self, text: &str) -> &[u8] {
        let start = self.start as usize;
        text.as_bytes().get(start..start + usize::from(self.len)).unwrap_or_default()
    }
}

#[expect(clippy::expect_used, reason = "4 GiB of names are 67 million tools of a KiB each")]
fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 67 million tools")
}

#[inline]
fn hash(hasher: &DefaultHashBuilder, name: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(name);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::NameIndex;
    use toolcrib_tool::ToolName;

    #[test]
    fn every_name_is_found_and_no_other() {
        let names: Vec<_> = (0..3_000).map(|n| ToolName::new(&format!("t{n}")).unwrap()).collect();
        let index = NameIndex::new(names.iter());
        for (position, name) in names.iter().enumerate() {
            assert_eq!(index.find(name.as_str()), Some(position));
            assert_eq!(index.name(position), name.as_str());
        }
        for other in ["", "t", "t3000", "t1 ", "T1", &"t1".repeat(200)] {
            assert_eq!(index.find(other), None);
        }
        assert_eq!(index.name(3_000), "");
        assert_eq!(NameIndex::new([].iter()).find("t"), None);
    }
}
