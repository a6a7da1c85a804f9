//! Identities: data of one identity is never used for another.

pub mod fingerprint;
pub(crate) mod random;

use std::sync::Arc;

use serde_json::json;
use toolcrib_tool::{CallContext, ContextValues, canonical_json};

/// Tenant and user as one text; empty if the host names neither.
pub(crate) fn identity(values: &ContextValues) -> Arc<str> {
    match (values.tenant(), values.user()) {
        (None, None) => "".into(),
        (tenant, user) => canonical_json(&json!([tenant, user])).into(),
    }
}

/// The owner of a stored output: an identity, and a session if there is one.
///
/// ```
/// use toolcrib_core::spill::Owner;
/// use toolcrib_tool::{ContextValues, Identity};
///
/// let of = |user: &str| ContextValues::new().with_identity(&Identity::user(user));
/// let ada = Owner::of(&of("ada"), Some("s1"));
/// let bob = Owner::of(&of("bob"), Some("s1"));
/// assert_ne!(ada, bob);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    identity: Arc<str>,
    session: Option<Arc<str>>,
}

impl Owner {
    /// The owner from a turn's values and session.
    pub fn of(values: &ContextValues, session: Option<&str>) -> Self {
        Self { identity: identity(values), session: session.map(Arc::from) }
    }

    /// The owner for a running call.
    pub fn of_call(cx: &CallContext) -> Self {
        Self::of(cx.values(), cx.session())
    }

    /// The owner from a known identity and session.
    pub(crate) fn known(identity: &Arc<str>, session: Option<&Arc<str>>) -> Self {
        Self { identity: Arc::clone(identity), session: session.cloned() }
    }

    /// Tenant and user as one text; empty if the host names neither.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The session, if there is one.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_is_not_a_user_of_that_name() {
        let of = |key: &str| identity(&ContextValues::new().with(key, "ada"));
        assert_ne!(of("tenant"), of("user"));
        assert_eq!(identity(&ContextValues::new().with("project_id", "p")).as_ref(), "");
    }

    #[test]
    fn a_turn_and_its_calls_are_one_owner() {
        let values = ContextValues::new().with("user", "ada");
        let session: Arc<str> = "s".into();
        let known = Owner::known(&identity(&values), Some(&session));
        assert_eq!(known, Owner::of(&values, Some("s")));
        assert_ne!(known, Owner::of(&values, None));
    }
}
