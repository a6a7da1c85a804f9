//! Names that files declare besides those of tools: other MCP servers, prompts and resources.

use std::collections::HashMap;

use toolcrib_manifest::lock::{Kind, LockError};
use toolcrib_tool::{Layer, Origin, Source};

use crate::lock::LockKeeper;
use crate::manifests::Manifests;

/// A name in a file, and what became of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeclaredName {
    /// What it is the name of; not a tool.
    pub kind: Kind,
    /// The name; of a resource its address, with variables as it is declared.
    pub name: String,
    /// What is said of it.
    pub description: Option<String>,
    /// The file and the place in it.
    pub source: Source,
    /// Who has the name instead, or why nobody is offered what it names.
    pub withheld: Option<Withheld>,
    /// What is to be known of it: it is not as the lock has it.
    pub remark: Option<String>,
}

/// Why nobody is offered what a file declares.
#[derive(Debug, Clone, PartialEq)]
pub enum Withheld {
    /// Another file had the name first.
    Shadowed(Source),
    /// The lock has not accepted it.
    Blocked(String),
}

/// Every such name of good files, in the order that decides names: directory, file, kind, place.
///
/// This is how it would be after a start. `lock` is what the names are held against, if anything; one
/// that cannot be used is an error where it is to be enforced.
pub fn declared_names(
    manifests: &Manifests,
    lock: Option<&LockKeeper>,
) -> Result<Vec<DeclaredName>, LockError> {
    let mut owners: HashMap<(Kind, String), Source> = HashMap::new();
    let mut names = Vec::new();
    for file in manifests.files().files.iter().filter(|file| !file.loaded.has_errors()) {
        let unit = file.path.to_string_lossy();
        for kind in [Kind::Upstream, Kind::Prompt, Kind::Resource] {
            let declared = of_kind(kind, &file.loaded);
            let digests: Vec<_> =
                declared.iter().map(|one| (one.name, one.digest.clone())).collect();
            let source = Source::new(Layer::Manifest, unit.as_ref());
            let findings = match lock {
                Some(lock) => lock.look(kind, &source, &digests)?,
                None => vec![None; digests.len()],
            };
            for (one, finding) in declared.into_iter().zip(findings) {
                let source = source.clone().at(one.origin.clone());
                let (blocked, remark) = match finding {
                    Some(finding) if finding.blocked => (Some(finding.verdict.to_string()), None),
                    Some(finding) => (None, Some(finding.verdict.to_string())),
                    None => (None, None),
                };
                let withheld = match (blocked, owners.get(&(kind, one.name.to_owned()))) {
                    (Some(reason), _) => Some(Withheld::Blocked(reason)),
                    (None, Some(owner)) => Some(Withheld::Shadowed(owner.clone())),
                    (None, None) => {
                        owners.insert((kind, one.name.to_owned()), source.clone());
                        None
                    }
                };
                names.push(DeclaredName {
                    kind,
                    name: one.name.to_owned(),
                    description: one.description.map(str::to_owned),
                    source,
                    withheld,
                    remark,
                });
            }
        }
    }
    Ok(names)
}

struct One<'a> {
    name: &'a str,
    description: Option<&'a str>,
    digest: String,
    origin: &'a Origin,
}

fn of_kind(kind: Kind, loaded: &toolcrib_manifest::Loaded) -> Vec<One<'_>> {
    match kind {
        // Tools are in the registry.
        Kind::Tool => Vec::new(),
        Kind::Upstream => {
            let upstreams = loaded.upstreams.iter().map(|one| One {
                name: &one.name,
                description: None,
                digest: one.digest(),
                origin: &one.origin,
            });
            upstreams.collect()
        }
        Kind::Prompt => {
            let prompts = loaded.prompts.iter().map(|one| One {
                name: &one.name,
                description: Some(&one.description),
                digest: one.digest(),
                origin: &one.origin,
            });
            prompts.collect()
        }
        Kind::Resource => {
            let resources = loaded.resources.iter().map(|one| One {
                name: &one.uri,
                description: one.description.as_deref().or(one.title.as_deref()),
                digest: one.digest(),
                origin: &one.origin,
            });
            resources.collect()
        }
    }
}
