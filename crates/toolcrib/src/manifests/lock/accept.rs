//! Creating a lock that accepts the current state.

use std::collections::HashMap;
use std::path::Path;

use toolcrib_core::RegistrySnapshot;
use toolcrib_manifest::lock::{Kind, Lock};
use toolcrib_mcp::upstream::OfferedTool;
use toolcrib_tool::{Layer, Source};

use crate::Toolcrib;
use crate::manifests::Manifests;
use crate::manifests::names::Declaration;

/// Creates the lock that accepts the current state of a crib: the declarations of its manifests, the tools of other MCP
/// servers (including the host's), and the owners of all other names. The crib itself must have no lock in force,
/// because blocked tools could not be accepted.
///
/// `offered` returns the tools that a server offers, by the server's name. If it returns nothing, because the server
/// was not asked or is not available, the server's tools in `accepted`, the current lock, are kept.
pub fn lock_of(
    crib: &Toolcrib,
    manifests: &Manifests,
    offered: impl Fn(&str) -> Option<Vec<OfferedTool>>,
    accepted: Option<&Lock>,
    folder: &Path,
) -> Lock {
    let snapshot = crib.executor().registry().snapshot();
    let mut lock = declared_lock(&snapshot, manifests, folder);
    for upstream in crib.declared_upstreams() {
        let name = upstream.name();
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

/// The declarations of files and compiled-in tools.
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
        for one in Declaration::all_of(&file.loaded) {
            // The first file with a name keeps it.
            if lock.get(one.kind(), one.name()).is_none() {
                lock.accept(one.kind(), one.name(), &source, Some(&one.expanded()));
            }
        }
    }
    lock
}
