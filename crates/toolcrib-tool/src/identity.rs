//! On whose behalf a call is made.

use std::borrow::Cow;

use serde_json::Value;

use crate::ContextValues;

/// On whose behalf a call is made: a user, a tenant, or a user of a tenant.
///
/// Anything that is cached, kept, counted, paused or approved for one identity never serves another. A host sets the
/// identity of a turn; a model can neither see nor choose it. Tools read it with
/// [`CallContext::user`](crate::CallContext::user) and [`CallContext::tenant`](crate::CallContext::tenant), and
/// parameters that are [injected](crate::Injection) from the context values `user` and `tenant` get it too.
///
/// ```
/// use toolcrib_tool::Identity;
///
/// let ada = Identity::user("ada").tenant("acme");
/// assert_eq!(ada.user_name().as_deref(), Some("ada"));
/// assert_ne!(ada, Identity::user("ada"));
/// assert!(Identity::default().is_nobody());
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identity {
    user: Option<Value>,
    tenant: Option<Value>,
}

impl Identity {
    /// The key of the context value with the user.
    pub const USER: &'static str = "user";

    /// The key of the context value with the tenant.
    pub const TENANT: &'static str = "tenant";

    /// A user, without a tenant. For a tenant without a user, start with `Identity::default()`.
    pub fn user(name: impl Into<String>) -> Self {
        Self { user: Some(Value::String(name.into())), tenant: None }
    }

    /// Sets the tenant. Users of the same name in two tenants are two identities.
    #[must_use]
    pub fn tenant(mut self, name: impl Into<String>) -> Self {
        self.tenant = Some(Value::String(name.into()));
        self
    }

    /// The user as text, if there is one. A value of another type, such as a number from a config file, becomes its
    /// JSON text.
    pub fn user_name(&self) -> Option<Cow<'_, str>> {
        text(self.user.as_ref())
    }

    /// The tenant as text, if there is one; otherwise as [`user_name`](Self::user_name).
    pub fn tenant_name(&self) -> Option<Cow<'_, str>> {
        text(self.tenant.as_ref())
    }

    /// Whether neither a user nor a tenant is set.
    pub fn is_nobody(&self) -> bool {
        self.user.is_none() && self.tenant.is_none()
    }
}

/// A context value as a name.
pub(crate) fn text(value: Option<&Value>) -> Option<Cow<'_, str>> {
    match value? {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

/// The only place that converts between an identity and the context values `user` and `tenant`. Config files, flags and
/// tokens set the values; hosts set the identity.
impl ContextValues {
    /// Sets the values `user` and `tenant` from an identity, as far as the identity has them.
    #[must_use]
    pub fn with_identity(mut self, identity: &Identity) -> Self {
        for (key, value) in [(Identity::USER, &identity.user), (Identity::TENANT, &identity.tenant)]
        {
            if let Some(value) = value {
                self = self.with(key, value.clone());
            }
        }
        self
    }

    /// The identity in the values `user` and `tenant`.
    pub fn identity(&self) -> Identity {
        Identity { user: self.user().cloned(), tenant: self.tenant().cloned() }
    }

    /// The value with the user.
    pub fn user(&self) -> Option<&Value> {
        self.get(Identity::USER)
    }

    /// The value with the tenant.
    pub fn tenant(&self) -> Option<&Value> {
        self.get(Identity::TENANT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_equals_the_values_user_and_tenant() {
        let identity = Identity::user("ada").tenant("acme");
        let values = ContextValues::new().with("project_id", "p").with_identity(&identity);
        let stated = ContextValues::new().with("user", "ada").with("tenant", "acme");
        assert_eq!(values.identity(), identity);
        assert_eq!(values, stated.with("project_id", "p"));
    }

    #[test]
    fn an_identity_leaves_other_host_values_unchanged() {
        let values = ContextValues::new().with("tenant", "acme").with("user", "host");
        let values = values.with_identity(&Identity::user("ada"));
        assert_eq!(values.identity(), Identity::user("ada").tenant("acme"));
    }

    #[test]
    fn a_number_reads_as_text_but_is_a_different_identity() {
        let number = ContextValues::new().with("user", 42).identity();
        assert_eq!(number.user_name().as_deref(), Some("42"));
        assert_ne!(number, Identity::user("42"));
        assert_eq!(ContextValues::new().with("user", Value::Null).identity().user_name(), None);
    }
}
