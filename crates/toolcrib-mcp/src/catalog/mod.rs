//! Prompts and resources: what clients are offered besides tools.

mod address;
pub(crate) mod linked_resources;
pub(crate) mod outputs;
pub(crate) mod paging;
pub(crate) mod prompts;
pub(crate) mod requests;
mod text;
pub(crate) mod tool_list;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::watch;
use toolcrib_core::Toolset;
use toolcrib_tool::Icon;

pub use address::Address;
pub use text::{CatalogText, TextPiece};
/// A file that the server itself reads.
pub use toolcrib_sandbox::ServedFile;

/// A prompt: messages that a person chooses to begin a conversation with.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// What people are shown instead of the name.
    pub title: Option<String>,
    /// Pictures of it, for people.
    pub icons: Vec<Icon>,
    /// What it is good for.
    pub description: String,
    /// What it has to be told, in order.
    pub arguments: Vec<PromptArgument>,
    /// The messages, in order.
    pub messages: Vec<PromptMessage>,
}

/// Something a prompt has to be told: a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What people are shown instead of the name.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// Whether the prompt is nothing without it. Others are empty where they are not given.
    pub required: bool,
    /// Values to suggest while somebody writes.
    pub suggest: Vec<String>,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// Whether the assistant says it, and not the user.
    pub by_assistant: bool,
    /// What is said.
    pub content: MessageContent,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageContent {
    /// A text.
    Text(CatalogText),
    /// A file: a picture, a sound or anything else, as its type says.
    File {
        /// Where it is, and where it may be.
        file: ServedFile,
        /// Its mime type.
        mime_type: String,
    },
    /// A resource of the catalog, embedded: its address.
    Resource(CatalogText),
}

/// Something that clients can read, by its address.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Its address, or a template of addresses.
    pub address: Address,
    /// What programs call it.
    pub name: String,
    /// What people are shown instead of the name.
    pub title: Option<String>,
    /// Pictures of it, for people.
    pub icons: Vec<Icon>,
    /// What is in it.
    pub description: Option<String>,
    /// The type of what is in it.
    pub mime_type: String,
    /// What is in it.
    pub content: ResourceContent,
    /// Values to suggest for the variables of the address while somebody writes.
    pub suggest: BTreeMap<String, Vec<String>>,
}

/// What is in a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceContent {
    /// A text, with the values of the address's variables in it.
    Text(CatalogText),
    /// A file, as it is when it is read.
    File(ServedFile),
}

/// The prompts and resources of a server, which may change while it serves. Cloning it is cheap;
/// clones are one catalog.
///
/// ```
/// use toolcrib_mcp::catalog::{Catalog, MessageContent, Prompt, PromptMessage};
///
/// let catalog = Catalog::new();
/// let text = MessageContent::Text("Review this change.".into());
/// let review = Prompt {
///     name: "review".to_owned(),
///     title: None,
///     icons: Vec::new(),
///     description: "Review a change.".to_owned(),
///     arguments: Vec::new(),
///     messages: vec![PromptMessage { by_assistant: false, content: text }],
/// };
/// catalog.set(vec![review], Vec::new());
/// ```
#[derive(Debug, Clone)]
pub struct Catalog {
    shared: Arc<Shared>,
    within: Option<Arc<Within>>,
}

/// What of a catalog a toolset names.
#[derive(Debug)]
struct Within {
    toolset: Toolset,
    /// What was chosen of the offer that was asked about last: questions come in rows.
    last: ArcSwapOption<(Arc<Offer>, Arc<Offer>)>,
}

#[derive(Debug)]
struct Shared {
    offer: ArcSwap<Offer>,
    changes: watch::Sender<()>,
}

impl Catalog {
    /// An empty one.
    pub fn new() -> Self {
        let offer = ArcSwap::from_pointee(Offer::default());
        Self { shared: Arc::new(Shared { offer, changes: watch::Sender::new(()) }), within: None }
    }

    /// The same catalog, seen by somebody who is limited to what a toolset names.
    #[must_use]
    pub fn within(&self, toolset: &Toolset) -> Self {
        let within = Within { toolset: toolset.clone(), last: ArcSwapOption::empty() };
        Self { shared: Arc::clone(&self.shared), within: Some(Arc::new(within)) }
    }

    /// Says what there is from now on, the first of a name or address before all others of it. Clients
    /// are told if it is something else.
    pub fn set(&self, prompts: Vec<Prompt>, resources: Vec<Resource>) {
        let offer = Offer::new(prompts, resources);
        if **self.shared.offer.load() != offer {
            self.shared.offer.store(Arc::new(offer));
            self.shared.changes.send_replace(());
        }
    }

    /// What there is now.
    pub(crate) fn offer(&self) -> Arc<Offer> {
        let whole = self.shared.offer.load_full();
        let Some(within) = &self.within else { return whole };
        if let Some(last) = &*within.last.load()
            && Arc::ptr_eq(&last.0, &whole)
        {
            return Arc::clone(&last.1);
        }
        let chosen = Arc::new(whole.within(&within.toolset));
        within.last.store(Some(Arc::new((whole, Arc::clone(&chosen)))));
        chosen
    }

    /// Told of every change.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

/// What a catalog holds at one time.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Offer {
    /// Sorted by name.
    pub(crate) prompts: Vec<Prompt>,
    /// Sorted by address.
    pub(crate) resources: Vec<Resource>,
}

impl Offer {
    fn new(mut prompts: Vec<Prompt>, mut resources: Vec<Resource>) -> Self {
        let mut names = BTreeSet::new();
        prompts.retain(|prompt| names.insert(prompt.name.clone()));
        prompts.sort_by(|one, other| one.name.cmp(&other.name));
        let mut addresses = BTreeSet::new();
        resources.retain(|resource| addresses.insert(resource.address.as_str().to_owned()));
        resources.sort_by(|one, other| one.address.as_str().cmp(other.address.as_str()));
        Self { prompts, resources }
    }

    /// The addresses, or the templates of addresses; sorted likewise.
    pub(crate) fn resources_at(&self, templates: bool) -> Vec<&Resource> {
        self.resources.iter().filter(|one| one.address.is_template() == templates).collect()
    }

    fn within(&self, toolset: &Toolset) -> Self {
        let prompts = self.prompts.iter().filter(|one| toolset.allows_prompt(&one.name));
        let resources = self.resources.iter();
        let resources = resources.filter(|one| toolset.allows_resource(one.address.as_str()));
        Self { prompts: prompts.cloned().collect(), resources: resources.cloned().collect() }
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<&Prompt> {
        let found = self.prompts.binary_search_by(|prompt| prompt.name.as_str().cmp(name)).ok()?;
        self.prompts.get(found)
    }

    /// The resource at an address, and the values of its variables. One that has just this address
    /// comes before templates that it fits.
    pub(crate) fn resource(&self, uri: &str) -> Option<(&Resource, BTreeMap<String, String>)> {
        let mut all = self.resources.iter();
        let exact = all.find(|one| !one.address.is_template() && one.address.as_str() == uri);
        if let Some(resource) = exact {
            return Some((resource, BTreeMap::new()));
        }
        self.resources.iter().find_map(|resource| Some((resource, resource.address.values(uri)?)))
    }
}
