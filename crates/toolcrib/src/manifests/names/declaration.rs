//! The declarations of a file besides tools.

use toolcrib_manifest::Loaded;
use toolcrib_manifest::declaration::{PromptDeclaration, ResourceDeclaration, UpstreamDeclaration};
use toolcrib_manifest::lock::Kind;
use toolcrib_runners::{
    RunnerHost, TrustDecision, prompt_trust_decision, resource_trust_decision,
    upstream_trust_decision,
};
use toolcrib_tool::Origin;

/// A declaration that is not a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Declaration<'a> {
    Upstream(&'a UpstreamDeclaration),
    Prompt(&'a PromptDeclaration),
    Resource(&'a ResourceDeclaration),
}

impl<'a> Declaration<'a> {
    /// All declarations of a file: other MCP servers, prompts, resources, each in order.
    pub(crate) fn all_of(loaded: &'a Loaded) -> impl Iterator<Item = Self> {
        let upstreams = loaded.upstreams.iter().map(Self::Upstream);
        let prompts = loaded.prompts.iter().map(Self::Prompt);
        upstreams.chain(prompts).chain(loaded.resources.iter().map(Self::Resource))
    }

    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Upstream(_) => Kind::Upstream,
            Self::Prompt(_) => Kind::Prompt,
            Self::Resource(_) => Kind::Resource,
        }
    }

    /// Its name; for a resource its address, with variables as declared.
    pub(crate) fn name(self) -> &'a str {
        match self {
            Self::Upstream(one) => &one.name,
            Self::Prompt(one) => &one.name,
            Self::Resource(one) => &one.uri,
        }
    }

    /// Its description.
    pub(crate) fn description(self) -> Option<&'a str> {
        match self {
            Self::Upstream(_) => None,
            Self::Prompt(one) => Some(&one.description),
            Self::Resource(one) => one.description.as_deref().or(one.title.as_deref()),
        }
    }

    /// The position of its name.
    pub(crate) fn origin(self) -> &'a Origin {
        match self {
            Self::Upstream(one) => &one.origin,
            Self::Prompt(one) => &one.origin,
            Self::Resource(one) => &one.origin,
        }
    }

    /// The operator's trust decision, if it needs one.
    pub(crate) fn trust_decision(self, host: &RunnerHost) -> Option<TrustDecision> {
        match self {
            Self::Upstream(one) => upstream_trust_decision(one, &self.digest(), host),
            Self::Prompt(one) => prompt_trust_decision(one, &self.digest(), host),
            Self::Resource(one) => resource_trust_decision(one, &self.digest(), host),
        }
    }

    /// Everything that the lock pins of it.
    pub(crate) fn expanded(self) -> serde_json::Value {
        match self {
            Self::Upstream(one) => one.expanded(),
            Self::Prompt(one) => one.expanded(),
            Self::Resource(one) => one.expanded(),
        }
    }

    /// Its key in the lock.
    pub(crate) fn digest(self) -> String {
        match self {
            Self::Upstream(one) => one.digest(),
            Self::Prompt(one) => one.digest(),
            Self::Resource(one) => one.digest(),
        }
    }
}
