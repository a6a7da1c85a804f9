//! The lock that accepts everything as it is.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use toolcrib_core::RegistrySnapshot;
use toolcrib_manifest::lock::{Kind, Lock};
use toolcrib_mcp::upstream::OfferedTool;
use toolcrib_tool::{Layer, Source};

use crate::manifests::Manifests;

/// The lock that accepts a registry as it is: what its manifests declare, what other MCP servers offer,
/// and who owns the rest of its names.
///
/// `offered` says what a server offers, by its name; where it says nothing, because the server was not
/// asked or is not there, what `accepted`, the lock there is, has of that server's tools is kept.
pub fn lock_of(
    snapshot: &RegistrySnapshot,
    manifests: &Manifests,
    offered: impl Fn(&str) -> Option<Vec<OfferedTool>>,
    accepted: Option<&Lock>,
    folder: &Path,
) -> Lock {
    let mut lock = declared_lock(snapshot, manifests, folder);
    let mut asked = BTreeSet::new();
    for upstream in manifests.files().upstreams() {
        let name = upstream.name.as_str();
        if !asked.insert(name) {
            continue;
        }
        let source = Source::new(Layer::Upstream, name);
        let Some(tools) = offered(name) else {
            let owner = lock.owner_of(&source);
            let before = accepted.into_iter().flat_map(|accepted| &accepted.entries);
            for (key, locked) in before.filter(|(_, locked)| locked.owner == owner) {
                lock.entries.entry(key.clone()).or_insert_with(|| locked.clone());
            }
            continue;
        };
        let has_it = |tool: &&OfferedTool| {
            let owner = snapshot.get(&tool.name).map(|entry| &entry.source);
            owner.is_some_and(|own| own.layer == Layer::Upstream && own.unit == name)
        };
        for tool in tools.iter().filter(has_it) {
            lock.accept(Kind::Tool, &tool.name, &source, Some(&tool.says));
        }
    }
    lock
}

/// What files declare and programs have compiled in.
fn declared_lock(snapshot: &RegistrySnapshot, manifests: &Manifests, folder: &Path) -> Lock {
    let mut lock = Lock::empty(folder);
    let declarations: HashMap<_, _> =
        manifests.files().declarations().map(|declared| (&declared.origin, declared)).collect();
    for entry in snapshot.entries() {
        let name = entry.name();
        match entry.source.layer {
            Layer::Manifest => {
                let origin = entry.source.origin.as_ref();
                if let Some(declared) = origin.and_then(|origin| declarations.get(origin)) {
                    lock.accept(Kind::Tool, name, &entry.source, Some(&declared.expanded()));
                }
            }
            Layer::Host | Layer::Native => lock.accept(Kind::Tool, name, &entry.source, None),
            _ => {}
        }
    }
    for file in &manifests.files().files {
        let source = Source::new(Layer::Manifest, file.path.to_string_lossy());
        let loaded = &file.loaded;
        let upstreams = loaded.upstreams.iter();
        let upstreams = upstreams.map(|one| (Kind::Upstream, &one.name, one.expanded()));
        let prompts = loaded.prompts.iter().map(|one| (Kind::Prompt, &one.name, one.expanded()));
        let resources = loaded.resources.iter();
        let resources = resources.map(|one| (Kind::Resource, &one.uri, one.expanded()));
        for (kind, name, expanded) in upstreams.chain(prompts).chain(resources) {
            // The first file that has a name keeps it.
            if lock.get(kind, name).is_none() {
                lock.accept(kind, name, &source, Some(&expanded));
            }
        }
    }
    lock
}
