//! Which MCP servers are named, and by whom: the first to name one keeps it.

#[cfg(feature = "manifests")]
use std::collections::{BTreeMap, BTreeSet};

use toolcrib_mcp::upstream::Upstream;

/// A manifest: the rank of its directory, and its name. Sorted as they decide names.
#[cfg(feature = "manifests")]
pub(crate) type File = (u32, String);

/// A change of what a manifest names.
#[cfg(feature = "manifests")]
#[derive(Debug)]
pub(crate) enum FileChange {
    /// It names exactly these.
    Replace(File, Vec<Upstream>),
    /// It is gone.
    Remove(File),
    /// It is called otherwise, and keeps what it owns. What stood under the new name is gone.
    Rename(File, File),
}

/// The servers that the host and the manifests name.
///
/// The host's come first. What a manifest names is its own as long as it does so, whatever other
/// manifests come later; then it goes to the first of the others that names it.
#[derive(Debug, Default)]
pub(super) struct Declared {
    host: Vec<Upstream>,
    #[cfg(feature = "manifests")]
    files: BTreeMap<File, Named>,
}

/// What a manifest names.
#[cfg(feature = "manifests")]
#[derive(Debug, Default)]
struct Named {
    upstreams: Vec<Upstream>,
    owns: BTreeSet<String>,
}

impl Declared {
    pub(super) fn new(host: Vec<Upstream>) -> Self {
        Self { host, ..Self::default() }
    }

    /// Those to be connected to, in the order that decides names among their tools.
    pub(super) fn wanted(&self) -> Vec<Upstream> {
        #[cfg_attr(not(feature = "manifests"), expect(unused_mut, reason = "there are no others"))]
        let mut wanted = self.host.clone();
        #[cfg(feature = "manifests")]
        for named in self.files.values() {
            let own = named.upstreams.iter().filter(|one| named.owns.contains(one.name()));
            wanted.extend(own.cloned());
        }
        wanted
    }

    /// Applies a set of changes: in which order they stand makes no difference. Whether other servers,
    /// or the same ones otherwise, are to be connected to now.
    #[cfg(feature = "manifests")]
    pub(super) fn apply(&mut self, changes: Vec<FileChange>) -> bool {
        let before = self.wanted();
        let (mut moved, mut gone, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
        for change in changes {
            match change {
                // All of them leave before one arrives: files may have exchanged their names.
                FileChange::Rename(from, to) => moved.push((self.files.remove(&from), to)),
                FileChange::Remove(file) => gone.push(file),
                FileChange::Replace(file, upstreams) => replaced.push((file, upstreams)),
            }
        }
        for (named, to) in moved {
            match named {
                Some(named) => drop(self.files.insert(to, named)),
                None => drop(self.files.remove(&to)),
            }
        }
        for file in gone {
            self.files.remove(&file);
        }
        let mut told = BTreeSet::new();
        for (file, upstreams) in replaced {
            if upstreams.is_empty() {
                self.files.remove(&file);
                continue;
            }
            told.insert(file.clone());
            let named = self.files.entry(file).or_default();
            named.owns.retain(|name| upstreams.iter().any(|one| one.name() == name));
            named.upstreams = upstreams;
        }
        self.decide(&told);
        self.wanted() != before
    }

    /// Gives every name that nobody owns to the first that has it. Of the files in `told` it is said
    /// what they name in vain.
    #[cfg(feature = "manifests")]
    fn decide(&mut self, told: &BTreeSet<File>) {
        let mut owned: BTreeSet<String> =
            self.host.iter().map(|one| one.name().to_owned()).collect();
        owned.extend(self.files.values().flat_map(|named| named.owns.iter().cloned()));
        for (file, named) in &mut self.files {
            for upstream in &named.upstreams {
                let name = upstream.name();
                if owned.insert(name.to_owned()) {
                    named.owns.insert(name.to_owned());
                } else if told.contains(file) && !named.owns.contains(name) {
                    tracing::warn!(
                        upstream = name,
                        file = file.1,
                        "an MCP server of this name is declared elsewhere already; that one counts"
                    );
                }
            }
        }
    }
}
