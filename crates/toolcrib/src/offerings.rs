//! Prompts and resources of manifests, as MCP clients are offered them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use toolcrib_manifest::Loaded;
use toolcrib_manifest::declaration::{self, PromptDeclaration, ResourceDeclaration};
use toolcrib_manifest::directory::DirectoryLoad;
use toolcrib_manifest::live::{ManifestUnit, UnitChange};
use toolcrib_manifest::lock::Kind;
use toolcrib_manifest::template::{Piece, Reference, Template};
use toolcrib_mcp::catalog::{
    Address, Catalog, CatalogText, MessageContent, Prompt, PromptArgument, PromptMessage, Resource,
    ResourceContent, TextPiece,
};
use toolcrib_tool::{Layer, Source};

use crate::lock::LockKeeper;

/// What all files offer, in a catalog that follows them. Cloning it is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offerings {
    catalog: Catalog,
    /// By rank and name: the order that decides whose a name is.
    files: Arc<Mutex<BTreeMap<(u32, String), Offered>>>,
}

/// What one file offers.
#[derive(Debug, Clone, Default)]
struct Offered {
    prompts: Vec<Prompt>,
    resources: Vec<Resource>,
}

impl Offerings {
    /// Those of all good files.
    pub(crate) fn of(files: &DirectoryLoad, lock: Option<&LockKeeper>) -> Self {
        let offerings = Self::default();
        let good = files.files.iter().filter(|file| !file.loaded.has_errors());
        let good = good.map(|file| {
            let name = file.path.to_string_lossy().into_owned();
            ((file.rank, name.clone()), offered(&name, &file.loaded, lock))
        });
        offerings.change(|known| known.extend(good));
        offerings
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Follows changes of manifests.
    pub(crate) fn apply(&self, changes: Vec<OfferingChange>) {
        self.change(|known| {
            for OfferingChange { gone, there } in changes {
                known.remove(&gone);
                known.extend(there);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<(u32, String), Offered>)) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut files);
        let all = |of: fn(&Offered) -> usize| files.values().map(of).sum();
        let mut prompts = Vec::with_capacity(all(|file| file.prompts.len()));
        let mut resources = Vec::with_capacity(all(|file| file.resources.len()));
        for file in files.values() {
            prompts.extend_from_slice(&file.prompts);
            resources.extend_from_slice(&file.resources);
        }
        // Under the lock: of two changes the later one is what holds.
        self.catalog.set(prompts, resources);
    }
}

/// What a change of a manifest means for what is offered.
pub(crate) struct OfferingChange {
    gone: (u32, String),
    there: Option<((u32, String), Offered)>,
}

impl OfferingChange {
    /// `known` is what was offered before: a file that is renamed offers the same.
    pub(crate) fn of(change: &UnitChange, known: &Offerings, lock: Option<&LockKeeper>) -> Self {
        let key = |file: &ManifestUnit| (file.rank, file.name.clone());
        match change {
            UnitChange::Replace { unit, loaded } => {
                let offered = offered(&unit.name, loaded, lock);
                Self { gone: key(unit), there: Some((key(unit), offered)) }
            }
            UnitChange::Remove { unit } => Self { gone: key(unit), there: None },
            UnitChange::Rename { from, to } => {
                let files = known.files.lock().unwrap_or_else(PoisonError::into_inner);
                let same = files.get(&key(from)).cloned().unwrap_or_default();
                Self { gone: key(from), there: Some((key(to), same)) }
            }
        }
    }
}

/// What a file offers and the lock does not block.
fn offered(file: &str, loaded: &Loaded, lock: Option<&LockKeeper>) -> Offered {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let source = Source::new(Layer::Manifest, file);
    let blocked = |kind, declared: Vec<(&str, String)>| match lock {
        Some(lock) => lock.blocked(kind, &source, &declared),
        None => vec![None; declared.len()],
    };
    let prompts = &loaded.prompts;
    let of_prompts = prompts.iter().map(|one| (one.name.as_str(), one.digest())).collect();
    let resources = &loaded.resources;
    let of_resources = resources.iter().map(|one| (one.uri.as_str(), one.digest())).collect();
    let prompts = prompts.iter().zip(blocked(Kind::Prompt, of_prompts));
    let resources = resources.iter().zip(blocked(Kind::Resource, of_resources));
    Offered {
        prompts: prompts
            .filter(|(_, blocked)| blocked.is_none())
            .map(|(declared, _)| prompt(declared, folder))
            .collect(),
        resources: resources
            .filter(|(_, blocked)| blocked.is_none())
            .map(|(declared, _)| resource(declared, folder))
            .collect(),
    }
}

fn prompt(declared: &PromptDeclaration, folder: &Path) -> Prompt {
    let arguments = declared.arguments.iter().map(|argument| PromptArgument {
        name: argument.name.clone(),
        title: argument.title.clone(),
        description: argument.description.clone(),
        required: argument.required,
        suggest: argument.suggest.clone(),
    });
    let messages = declared.messages.iter().map(|message| PromptMessage {
        by_assistant: message.by_assistant,
        content: match &message.content {
            declaration::MessageContent::Text(template) => MessageContent::Text(text(template)),
            declaration::MessageContent::Resource(uri) => MessageContent::Resource(text(uri)),
            declaration::MessageContent::File { path, mime_type } => {
                MessageContent::File { path: folder.join(path), mime_type: mime_type.clone() }
            }
        },
    });
    Prompt {
        name: declared.name.clone(),
        title: declared.title.clone(),
        icons: declared.icons.clone(),
        description: declared.description.clone(),
        arguments: arguments.collect(),
        messages: messages.collect(),
    }
}

fn resource(declared: &ResourceDeclaration, folder: &Path) -> Resource {
    Resource {
        address: Address::new(declared.uri.as_str()),
        name: declared.name.clone(),
        title: declared.title.clone(),
        icons: declared.icons.clone(),
        description: declared.description.clone(),
        mime_type: declared.mime_type.clone(),
        content: match &declared.content {
            declaration::ResourceContent::Text(template) => ResourceContent::Text(text(template)),
            declaration::ResourceContent::File(path) => ResourceContent::File(folder.join(path)),
        },
        suggest: declared.suggest.clone(),
    }
}

/// The loader lets nothing but arguments through.
fn text(template: &Template) -> CatalogText {
    let pieces = template.pieces.iter().map(|piece| match piece {
        Piece::Literal(text) => TextPiece::Literal(text.clone()),
        Piece::Reference(Reference::Arg(name)) => TextPiece::Value(name.clone()),
        Piece::Reference(other) => TextPiece::Literal(other.to_string()),
    });
    CatalogText { pieces: pieces.collect() }
}
