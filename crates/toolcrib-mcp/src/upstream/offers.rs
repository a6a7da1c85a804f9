//! What servers offer besides tools, for clients of this one: resources, resource templates and
//! prompts.

use std::collections::BTreeMap;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams, Prompt as ListedPrompt, Resource as ListedResource, ResourceTemplate,
    ServerResult,
};
use rmcp::{Peer, RoleClient};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};
use toolcrib_core::exposed_name;
use toolcrib_core::masking::LiveMask;
use toolcrib_tool::visible;

use super::settings::Upstream;
use super::settings::selection::Filter;
use super::tool::definition::hidden_character_in;
use crate::catalog::{Address, CatalogText, Prompt, PromptArgument, Resource, ResourceContent};

/// More resources, templates or prompts of one server are not listed.
const ENTRIES_MAX: usize = 1_000;
/// Nor are more pages asked for.
const PAGES_MAX: usize = 50;
/// Longer addresses and prompt names are left out, in bytes.
const ADDRESS_MAX: usize = 2_048;
/// How much of a name, a title or a description is shown, in characters.
const TEXT_MAX: usize = 1_000;
/// The largest list of a server, in bytes of JSON text: the entries after that are left out.
const LIST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How often an address is percent-decoded. An address that is still encoded after that is not read.
const DECODINGS_MAX: usize = 8;
/// More arguments of a prompt are left out.
const ARGUMENTS_MAX: usize = 100;

/// The resources, templates and prompts of one server, as it lists them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ServerOffer {
    resources: Vec<ListedResource>,
    templates: Vec<ResourceTemplate>,
    prompts: Vec<ListedPrompt>,
}

impl ServerOffer {
    /// Asks a server for what its declaration offers. A list that it does not have, or does not send in
    /// time, is empty.
    pub(crate) async fn list(peer: &Peer<RoleClient>, upstream: &Upstream) -> Self {
        let Some(server) = peer.peer_info() else { return Self::default() };
        let deadline = Instant::now() + upstream.connect_timeout;
        let mut offer = Self::default();
        if upstream.resources.is_some() && server.capabilities.resources.is_some() {
            offer.resources = timeout_at(deadline, resources(peer)).await.unwrap_or_default();
            offer.templates = timeout_at(deadline, templates(peer)).await.unwrap_or_default();
        }
        if upstream.prompts.is_some() && server.capabilities.prompts.is_some() {
            offer.prompts = timeout_at(deadline, prompts(peer)).await.unwrap_or_default();
        }
        offer
    }
}

/// All entries of a list, within bounds.
macro_rules! every_entry {
    ($peer:expr, $request:ident, $result:ident, $entries:ident) => {{
        let mut all = Vec::new();
        let mut cursor = None;
        let mut bytes = 0_usize;
        for _ in 0..PAGES_MAX {
            let params = Some(PaginatedRequestParams::default().with_cursor(cursor));
            let request = $request { params, ..$request::default() };
            let answer = $peer.send_request(ClientRequest::$request(request)).await;
            let Ok(ServerResult::$result(page)) = answer else { break };
            let room = ENTRIES_MAX.saturating_sub(all.len());
            let entries =
                page.$entries.into_iter().filter_map(|entry| Some((size(&entry)?, entry)));
            let within = entries.take(room).take_while(|(size, _)| {
                bytes = bytes.saturating_add(*size);
                bytes <= LIST_BYTES_MAX
            });
            all.extend(within.map(|(_, entry)| entry));
            cursor = page.next_cursor;
            if cursor.is_none() || all.len() == ENTRIES_MAX || bytes > LIST_BYTES_MAX {
                break;
            }
        }
        all
    }};
}

/// The length of an entry as JSON text; `None` if it has characters that cannot be seen, and is left out.
fn size(entry: &impl Serialize) -> Option<usize> {
    let entry = serde_json::to_value(entry).ok()?;
    hidden_character_in(&entry).is_none().then(|| entry.to_string().len())
}

async fn resources(peer: &Peer<RoleClient>) -> Vec<ListedResource> {
    every_entry!(peer, ListResourcesRequest, ListResourcesResult, resources)
}

async fn templates(peer: &Peer<RoleClient>) -> Vec<ResourceTemplate> {
    every_entry!(
        peer,
        ListResourceTemplatesRequest,
        ListResourceTemplatesResult,
        resource_templates
    )
}

async fn prompts(peer: &Peer<RoleClient>) -> Vec<ListedPrompt> {
    every_entry!(peer, ListPromptsRequest, ListPromptsResult, prompts)
}

/// What all upstreams offer besides tools, as clients here are shown it: without secrets and hidden
/// characters.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct UpstreamOffers {
    /// Sorted by address.
    pub(crate) resources: Vec<OfferedResource>,
    /// Resource templates, sorted by address.
    pub(crate) templates: Vec<OfferedResource>,
    /// Sorted by name here.
    pub(crate) prompts: Vec<OfferedPrompt>,
}

/// A resource or a resource template of an upstream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OfferedResource {
    pub(crate) upstream: String,
    pub(crate) shown: Resource,
    /// Decides on the addresses that match a template.
    filter: Filter,
}

/// A prompt of an upstream. Its messages are asked for when it is used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OfferedPrompt {
    pub(crate) upstream: String,
    /// The server's own name of it.
    pub(crate) original: String,
    pub(crate) shown: Prompt,
}

impl UpstreamOffers {
    /// Adds what an upstream offers. What an earlier upstream has stays as it is.
    pub(crate) fn add(&mut self, upstream: &Upstream, listed: &ServerOffer, mask: &LiveMask) {
        let name = &upstream.name;
        if let Some(filter) = &upstream.resources {
            let offered = |shown: Resource| {
                let is_taken = filter.takes(shown.address.as_str());
                is_taken.then(|| OfferedResource {
                    upstream: name.clone(),
                    shown,
                    filter: filter.clone(),
                })
            };
            let resources = listed.resources.iter().filter_map(|one| resource(name, one, mask));
            self.resources.extend(resources.filter_map(offered));
            let templates = listed.templates.iter().filter_map(|one| template(name, one, mask));
            self.templates.extend(templates.filter_map(offered));
        }
        if let Some(filter) = &upstream.prompts {
            let prompts = listed.prompts.iter().filter(|one| filter.takes(&one.name));
            self.prompts.extend(prompts.filter_map(|one| prompt(name, one, mask)));
        }
    }

    /// Everything sorted, each address and name once.
    pub(crate) fn sorted(mut self) -> Self {
        // Stable: of equal ones, the first added stays.
        for list in [&mut self.resources, &mut self.templates] {
            list.sort_by(|one, other| one.address().cmp(other.address()));
            list.dedup_by(|later, first| later.address() == first.address());
        }
        self.prompts.sort_by(|one, other| one.shown.name.cmp(&other.shown.name));
        self.prompts.dedup_by(|later, first| later.shown.name == first.shown.name);
        self
    }

    /// The upstream from which an address can be read, if it is offered.
    pub(crate) fn reader_of(&self, uri: &str) -> Option<&str> {
        let exact = self.resources.iter().find(|one| one.address() == uri);
        let found = exact.or_else(|| self.templates.iter().find(|one| one.is_instance(uri)))?;
        Some(&found.upstream)
    }

    /// The prompt of that name here.
    pub(crate) fn prompt(&self, name: &str) -> Option<&OfferedPrompt> {
        self.prompts.iter().find(|one| one.shown.name == name)
    }
}

impl OfferedResource {
    pub(crate) fn address(&self) -> &str {
        self.shown.address.as_str()
    }

    /// Whether an address matches this template, and the filters also take the address itself, however
    /// it is spelt: a server may decode it, and it may resolve `..`.
    fn is_instance(&self, uri: &str) -> bool {
        if uri.len() > ADDRESS_MAX || Address::decoded(uri).is_none() {
            return false;
        }
        let (values, spellings) = (self.shown.address.values(uri), decodings(uri));
        let Some((values, spellings)) = values.zip(spellings) else { return false };
        spellings.iter().all(|spelling| self.filter.takes(spelling))
            && values.values().all(|value| is_plain(value))
    }
}

/// A text and what it is after each percent-decoding; `None` if there are too many.
fn decodings(text: &str) -> Option<Vec<String>> {
    let mut all = vec![text.to_owned()];
    while let Some(next) = Address::decoded(all.last()?).filter(|next| all.last() != Some(next)) {
        if all.len() > DECODINGS_MAX {
            return None;
        }
        all.push(next);
    }
    Some(all)
}

/// Whether a server cannot take the value of a variable for a place elsewhere: an absolute path, or a path
/// with `.`, `..` or control characters, also if the server decodes it again, normalizes its characters, or
/// cuts parameters (`..;a`) and blanks off.
fn is_plain(value: &str) -> bool {
    let is_safe = |text: &String| {
        let text = ascii_punctuation(text);
        let mut segments = text.split(['/', '\\']);
        let name = |segment: &str| segment.split(';').next().unwrap_or_default().trim().to_owned();
        !text.contains(char::is_control)
            && segments.all(|segment| !matches!(name(segment).as_str(), "" | "." | ".."))
    };
    decodings(value).is_some_and(|spellings| spellings.iter().all(is_safe))
}

/// The text with dots and slashes for the characters that a normalization (NFKC) or a conversion to a code
/// page makes dots and slashes.
fn ascii_punctuation(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{2024}' | '\u{fe52}' | '\u{ff0e}' => plain.push('.'),
            '\u{2025}' => plain.push_str(".."),
            '\u{2044}' | '\u{2215}' | '\u{ff0f}' => plain.push('/'),
            '\u{2216}' | '\u{29f5}' | '\u{fe68}' | '\u{ff3c}' => plain.push('\\'),
            '\u{fe54}' | '\u{ff1b}' => plain.push(';'),
            other => plain.push(other),
        }
    }
    plain
}

/// Words of a server on one line, without secrets and hidden characters, as far as they are shown.
fn short(text: &str, mask: &LiveMask) -> String {
    line(text, mask).chars().take(TEXT_MAX).collect()
}

/// All words of a server on one line, without secrets and hidden characters.
fn line(text: &str, mask: &LiveMask) -> String {
    visible(&mask.text(text.to_owned())).replace(['\n', '\r', '\t'], " ")
}

/// The server's description, with its source.
fn description(upstream: &str, said: Option<&str>, mask: &LiveMask) -> String {
    let said = said.map(|text| short(text, mask)).unwrap_or_default();
    format!("From the MCP server `{upstream}`: {said}")
}

fn resource(upstream: &str, listed: &ListedResource, mask: &LiveMask) -> Option<Resource> {
    let address = Address::new(usable(&listed.uri, mask)?);
    // It is asked for under this address, so it cannot stand for others.
    (!address.is_template()).then(|| Resource {
        address,
        name: short(&listed.name, mask),
        title: listed.title.as_deref().map(|text| short(text, mask)),
        icons: Vec::new(),
        description: Some(description(upstream, listed.description.as_deref(), mask)),
        mime_type: mime_type(listed.mime_type.as_deref(), mask),
        content: ResourceContent::Text(CatalogText::default()),
        suggest: BTreeMap::new(),
    })
}

fn template(upstream: &str, listed: &ResourceTemplate, mask: &LiveMask) -> Option<Resource> {
    let address = Address::new(usable(&listed.uri_template, mask)?);
    address.has_only_plain_variables().then(|| Resource {
        address,
        name: short(&listed.name, mask),
        title: listed.title.as_deref().map(|text| short(text, mask)),
        icons: Vec::new(),
        description: Some(description(upstream, listed.description.as_deref(), mask)),
        mime_type: mime_type(listed.mime_type.as_deref(), mask),
        content: ResourceContent::Text(CatalogText::default()),
        suggest: BTreeMap::new(),
    })
}

fn mime_type(listed: Option<&str>, mask: &LiveMask) -> String {
    listed.map_or_else(|| "text/plain".to_owned(), |text| short(text, mask))
}

/// A text by which the server is asked: it must be short, and clients must see all of it.
fn usable<'a>(text: &'a str, mask: &LiveMask) -> Option<&'a str> {
    ((1..=ADDRESS_MAX).contains(&text.len()) && line(text, mask) == text).then_some(text)
}

fn prompt(upstream: &str, listed: &ListedPrompt, mask: &LiveMask) -> Option<OfferedPrompt> {
    let original = usable(&listed.name, mask)?.to_owned();
    let arguments = listed.arguments.iter().flatten().take(ARGUMENTS_MAX).filter_map(|argument| {
        Some(PromptArgument {
            name: usable(&argument.name, mask)?.to_owned(),
            title: argument.title.as_deref().map(|text| short(text, mask)),
            description: argument.description.as_deref().map(|text| short(text, mask)),
            required: argument.required.unwrap_or(false),
            suggest: Vec::new(),
        })
    });
    let shown = Prompt {
        name: exposed_name(upstream, &original),
        title: listed.title.as_deref().map(|text| short(text, mask)),
        icons: Vec::new(),
        description: description(upstream, listed.description.as_deref(), mask),
        arguments: arguments.collect(),
        messages: Vec::new(),
    };
    Some(OfferedPrompt { upstream: upstream.to_owned(), original, shown })
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn a_value_that_a_server_could_take_for_a_path_elsewhere_is_not_read() {
        for value in [
            "..",
            "a/../b",
            "/etc",
            "..;a",
            "a/..;b=c/d",
            ";a",
            ".. ",
            "%2e%2e",
            "%2e%2e;a",
            "\u{ff0e}\u{ff0e}",
            "%EF%BC%8E.",
            "\u{2025}",
            "\u{2024}.",
            "a\u{ff0f}..",
            "..\u{ff1b}a",
            "a\u{2215}..\u{fe68}b",
            "a\0b",
        ] {
            assert!(!is_plain(value), "{value:?}");
        }
        for value in ["a", "a;b", "notes/today.md", "...", "wait\u{2026}", "v1.2;x", "\u{ff41}.md"]
        {
            assert!(is_plain(value), "{value:?}");
        }
    }
}
