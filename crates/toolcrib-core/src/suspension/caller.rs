//! The caller of a suspended call, stored so that the call can be resumed as its caller.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcrib_tool::{ContextValues, Identity, ToolDefinition};

use crate::Toolset;
use crate::approval::policy::Policy;
use crate::identity::fingerprint::Fingerprint;

/// The caller of a suspended call.
///
/// A suspended call runs with these values, whoever resolves it, so that what was decided on is
/// what runs. If the host manages the client, the client's rights at the time of the decision
/// replace those stored here ([`CallerRights`](crate::approval::CallerRights)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caller {
    /// The values of the caller's context.
    values: BTreeMap<String, Value>,
    /// The fingerprint of the injected ones.
    injected: Fingerprint,
    /// The rules of the caller's toolset; absent for all tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    toolset: Option<Value>,
    /// The part of them that is not the client's own ([`TurnOptions::narrow`](crate::TurnOptions::narrow)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    narrowed_to: Option<Value>,
    /// The caller's own policy rules.
    #[serde(default)]
    scope: Value,
    /// The client's name, as set by the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    /// Distinguishes clients of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_key: Option<String>,
    may_approve: bool,
    /// Whether making the same call again joins this one.
    joinable: bool,
}

impl Default for Caller {
    /// An anonymous caller without values and rights.
    fn default() -> Self {
        Self {
            values: BTreeMap::new(),
            injected: Fingerprint::of_json(&Value::Object(Map::new())),
            toolset: None,
            narrowed_to: None,
            scope: Value::Null,
            client: None,
            client_key: None,
            may_approve: false,
            joinable: false,
        }
    }
}

impl Caller {
    /// A caller with these values; the definition determines which are injected.
    pub fn new(definition: &ToolDefinition, values: &ContextValues) -> Self {
        Self {
            values: values.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect(),
            injected: Fingerprint::of_injected(definition, values),
            ..Self::default()
        }
    }

    /// Sets the toolset and the rules that apply to its calls.
    pub(crate) fn within(
        mut self,
        toolset: Option<&Toolset>,
        narrowed_to: Option<&Toolset>,
        scope: &Policy,
    ) -> Result<Self, serde_json::Error> {
        self.toolset = toolset.map(serde_json::to_value).transpose()?;
        self.narrowed_to = narrowed_to.map(serde_json::to_value).transpose()?;
        self.scope = serde_json::to_value(scope)?;
        Ok(self)
    }

    pub(crate) fn client(mut self, client: Option<&str>, key: Option<&str>) -> Self {
        self.client = client.map(str::to_owned);
        self.client_key = key.map(str::to_owned);
        self
    }

    pub(crate) fn rights(mut self, may_approve: bool, joinable: bool) -> Self {
        (self.may_approve, self.joinable) = (may_approve, joinable);
        self
    }

    /// The values of the caller's context.
    pub fn values(&self) -> ContextValues {
        self.values.iter().map(|(key, value)| (key.as_str(), value.clone())).collect()
    }

    /// One of them.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// The user, if the host stated one.
    pub fn user(&self) -> Option<&Value> {
        self.value(Identity::USER)
    }

    /// The tenant, if the host stated one.
    pub fn tenant(&self) -> Option<&Value> {
        self.value(Identity::TENANT)
    }

    /// The fingerprint of all values.
    pub(crate) fn values_digest(&self) -> Fingerprint {
        let values = self.values.iter().map(|(key, value)| (key.clone(), value.clone()));
        Fingerprint::of_json(&Value::Object(values.collect()))
    }

    /// The fingerprint of the injected values.
    pub fn injected(&self) -> Fingerprint {
        self.injected
    }

    /// The client's name, if the host set one.
    pub fn client_name(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// The key that distinguishes clients of the same name, if the host set one
    /// ([`TurnOptions::client_key`](crate::TurnOptions::client_key)).
    pub fn client_key(&self) -> Option<&str> {
        self.client_key.as_deref()
    }

    /// Whether the caller may approve calls.
    pub fn may_approve(&self) -> bool {
        self.may_approve
    }

    /// Whether the same call, made again, is answered with this one's answer
    /// ([`TurnOptions::joinable`](crate::TurnOptions::joinable)).
    pub fn is_joinable(&self) -> bool {
        self.joinable
    }

    pub(crate) fn toolset(&self) -> Result<Option<Toolset>, serde_json::Error> {
        self.toolset.clone().map(serde_json::from_value).transpose()
    }

    pub(crate) fn narrowed_to(&self) -> Result<Option<Toolset>, serde_json::Error> {
        self.narrowed_to.clone().map(serde_json::from_value).transpose()
    }

    pub(crate) fn scope(&self) -> Result<Policy, serde_json::Error> {
        match &self.scope {
            Value::Null => Ok(Policy::default()),
            scope => serde_json::from_value(scope.clone()),
        }
    }
}
