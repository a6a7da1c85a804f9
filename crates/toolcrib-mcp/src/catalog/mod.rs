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

/// A prompt: messages that a person chooses as the start of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// The name that people see instead.
    pub title: Option<String>,
    /// Icons for people.
    pub icons: Vec<Icon>,
    /// What it is for.
    pub description: String,
    /// Its arguments, in order.
    pub arguments: Vec<PromptArgument>,
    /// The messages, in order.
    pub messages: Vec<PromptMessage>,
}

/// An argument of a prompt: a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// The name that people see instead.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// Whether the prompt needs it. Missing optional arguments are empty.
    pub required: bool,
    /// Suggested values for completion.
    pub suggest: Vec<String>,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// Whether the message is from the assistant instead of the user.
    pub by_assistant: bool,
    /// The content.
    pub content: MessageContent,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageContent {
    /// A text.
    Text(CatalogText),
    /// A file: an image, audio or anything else, according to its type.
    File {
        /// Its path, and the directory that it has to be in.
        file: ServedFile,
        /// Its mime type.
        mime_type: String,
    },
    /// An embedded resource of the catalog, by its address.
    Resource(CatalogText),
}

/// A resource that clients can read by its address.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Its address, or an address template.
    pub address: Address,
    /// Its name for programs.
    pub name: String,
    /// The name that people see instead.
    pub title: Option<String>,
    /// Icons for people.
    pub icons: Vec<Icon>,
    /// What it contains.
    pub description: Option<String>,
    /// The MIME type of its content.
    pub mime_type: String,
    /// Its content.
    pub content: ResourceContent,
    /// Suggested values for the variables of the address.
    pub suggest: BTreeMap<String, Vec<String>>,
}

/// The content of a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceContent {
    /// A text that may contain values of the address's variables.
    Text(CatalogText),
    /// A file, read whenever the resource is read.
    File(ServedFile),
}

/// The prompts and resources of a server, which may change while it runs. Clones are cheap and
/// share one catalog.
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
    shared: Arc<CatalogState>,
    within: Option<Arc<ToolsetView>>,
}

/// The part of a catalog that a toolset names.
#[derive(Debug)]
struct ToolsetView {
    toolset: Toolset,
    /// The filtered offer and the offer it was made from: requests often come in series.
    last: ArcSwapOption<(Arc<Offer>, Arc<Offer>)>,
}

#[derive(Debug)]
struct CatalogState {
    offer: ArcSwap<Offer>,
    changes: watch::Sender<()>,
}

impl Catalog {
    /// Creates an empty catalog.
    pub fn new() -> Self {
        let offer = ArcSwap::from_pointee(Offer::default());
        Self {
            shared: Arc::new(CatalogState { offer, changes: watch::Sender::new(()) }),
            within: None,
        }
    }

    /// The same catalog, limited to what a toolset names.
    #[must_use]
    pub fn within(&self, toolset: &Toolset) -> Self {
        let within = ToolsetView { toolset: toolset.clone(), last: ArcSwapOption::empty() };
        Self { shared: Arc::clone(&self.shared), within: Some(Arc::new(within)) }
    }

    /// Replaces the content. If a name or address occurs twice, the first entry wins. Clients are
    /// notified if anything has changed.
    pub fn set(&self, prompts: Vec<Prompt>, resources: Vec<Resource>) {
        let offer = Offer::new(prompts, resources);
        if **self.shared.offer.load() != offer {
            self.shared.offer.store(Arc::new(offer));
            self.shared.changes.send_replace(());
        }
    }

    /// The current content.
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

    /// A receiver that is notified of every change.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

/// The content of a catalog at one time.
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

    /// The resources with a fixed address, or those with a template; sorted by address.
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

    /// The resource at an address, and the values of its variables. A resource with exactly this
    /// address takes precedence over templates that match it.
    pub(crate) fn resource(&self, uri: &str) -> Option<(&Resource, BTreeMap<String, String>)> {
        let mut all = self.resources.iter();
        let exact = all.find(|one| !one.address.is_template() && one.address.as_str() == uri);
        if let Some(resource) = exact {
            return Some((resource, BTreeMap::new()));
        }
        self.resources.iter().find_map(|resource| Some((resource, resource.address.values(uri)?)))
    }
}
