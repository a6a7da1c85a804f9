//! The options that a host sets for a turn.

use std::fmt;
use std::sync::Arc;

use toolcrib_tool::{ContextValues, Identity, Services, ToolFiles};

use super::Deadline;
use crate::Toolset;
use crate::approval::Approver;
use crate::approval::policy::Policy;
use crate::events::Listeners;
use crate::suspension::Caller;

/// The options that a host sets for a turn.
#[derive(Clone, Default)]
pub struct TurnOptions {
    host_values: ContextValues,
    values: ContextValues,
    identity: Identity,
    pub(super) session: Option<Arc<str>>,
    pub(super) services: Services,
    pub(super) files: ToolFiles,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) may_approve: Option<bool>,
    pub(super) toolset: Option<Toolset>,
    /// What [`narrow`](Self::narrow) has limited it to, without the toolset that was there before.
    pub(super) narrowed_to: Option<Toolset>,
    pub(crate) scope: Policy,
    pub(super) asks: Option<Arc<str>>,
    pub(super) listeners: Listeners,
    pub(super) max_concurrency: Option<usize>,
    pub(super) deadline: Option<Deadline>,
    pub(super) client: Option<Arc<str>>,
    pub(super) client_key: Option<Arc<str>>,
    pub(super) joinable: bool,
}

impl TurnOptions {
    /// Context values of the host for all its turns. Values of a [toolset](Toolset::context)
    /// override them, and values of the turn override both.
    #[must_use]
    pub fn host_values(mut self, values: ContextValues) -> Self {
        self.host_values = values;
        self
    }

    /// Sets on whose behalf the calls are made. Default: the context values `user` and `tenant`,
    /// otherwise nobody.
    ///
    /// The identity overrides context values. What it does not state, for example the tenant, comes
    /// from the context.
    ///
    /// ```
    /// use toolcrib_core::{Executor, ExecutorConfig, Registry, TurnOptions};
    /// use toolcrib_tool::{Identity, ToolCall};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), toolcrib_tool::DefinitionError> {
    /// let registry = Registry::scratch()
    ///     .tool("whoami", |_, cx| async move { cx.user().unwrap_or_default().into_owned() })
    ///     .build()?;
    /// let executor = Executor::new(registry, ExecutorConfig::default());
    /// let ada = TurnOptions::default().identity(Identity::user("ada").tenant("acme"));
    /// // Arguments do not change it.
    /// let call = ToolCall::new("1", "whoami", r#"{"user": "eve"}"#);
    /// assert_eq!(executor.turn(ada).call(call).await.text(), "ada");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = identity;
        self
    }

    /// The context values within this toolset, or without one: a key's value comes from the turn,
    /// else from the toolset, else from the host. A set identity overrides all of them.
    pub(crate) fn values_within(&self, toolset: Option<&Toolset>) -> ContextValues {
        let of_toolset = || toolset.into_iter().flat_map(Toolset::context_values);
        if self.host_values.iter().next().is_none() && of_toolset().next().is_none() {
            return self.values.clone().with_identity(&self.identity);
        }
        let all = self.host_values.iter().chain(of_toolset()).chain(self.values.iter());
        let values: ContextValues = all.map(|(key, value)| (key, value.clone())).collect();
        values.with_identity(&self.identity)
    }

    /// Sets the context values of the calls, for example a project. The keys `user` and `tenant`
    /// define the [`identity`](Self::identity) if that is not set.
    #[must_use]
    pub fn values(mut self, values: ContextValues) -> Self {
        self.values = values;
        self
    }

    /// Sets the session of the calls: tools that declare `dedupe: session` answer repeated calls
    /// from its history. Without a session there is no history.
    #[must_use]
    pub fn session(mut self, session: impl Into<Arc<str>>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets the services for tools: databases, clients, settings.
    #[must_use]
    pub fn services(mut self, services: Services) -> Self {
        self.services = services;
        self
    }

    /// Sets the files of the request.
    #[must_use]
    pub fn files(mut self, files: ToolFiles) -> Self {
        self.files = files;
        self
    }

    /// Sets the approver for calls that need approval. Default: the executor's approver.
    ///
    /// An approver that the host's code sets, here or on the executor, gives the turn the right to
    /// approve, unless [`may_approve`](Self::may_approve) removes it.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Sets whether the client of this turn may approve calls. Default: only if the host has set an
    /// approver, on the turn or on the executor.
    ///
    /// Without the right, no approver is called, no client is shown a question, and
    /// [`Turn::resolve`](crate::Turn::resolve) accepts no approval. A call that needs approval is
    /// suspended for somebody else to decide on, or denied if suspended calls are not stored.
    /// Nested calls belong to the same turn, so they never have more rights than their parent.
    ///
    /// Servers set this for every client, so that a host's options never pass on the right by
    /// accident.
    #[must_use]
    pub fn may_approve(mut self, may_approve: bool) -> Self {
        self.may_approve = Some(may_approve);
        self
    }

    /// Sets the name of the client that makes the calls. Approvers see it.
    #[must_use]
    pub fn client(mut self, name: impl Into<Arc<str>>) -> Self {
        self.client = Some(name.into());
        self
    }

    /// Sets a key that distinguishes clients of the same name, for example a fingerprint of the
    /// token. It is never shown, only stored with waiting calls
    /// ([`Caller::client_key`](crate::suspension::Caller::client_key)).
    #[must_use]
    pub fn client_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.client_key = Some(key.into());
        self
    }

    /// Sets whether a call that waits for approval can be joined by the same call made again
    /// ([`Turn::same_call`](crate::Turn::same_call)). For clients that have no other way to ask for
    /// a waiting call. Default: no.
    #[must_use]
    pub fn joinable(mut self, joinable: bool) -> Self {
        self.joinable = joinable;
        self
    }

    /// Whether [`may_approve`](Self::may_approve) has granted the right explicitly. An approver
    /// alone does not count: it belongs to the host, not to the caller.
    pub fn grants_approval(&self) -> bool {
        self.may_approve == Some(true)
    }

    /// Limits the turn to a toolset: no other tools are listed, described, suggested or called.
    /// Default: all tools.
    #[must_use]
    pub fn toolset(mut self, toolset: Toolset) -> Self {
        self.toolset = Some(toolset);
        self
    }

    /// Limits the turn to a toolset within the one it has: a tool has to be in both. For what works on a client's
    /// behalf with fewer tools, as an agent does. A suspended call keeps this limit when the client's own toolset
    /// changes.
    #[must_use]
    pub fn narrow(mut self, toolset: &Toolset) -> Self {
        let within = |outer: Option<Toolset>| match outer {
            Some(outer) => toolset.clone().within(&outer),
            None => toolset.clone(),
        };
        self.toolset = Some(within(self.toolset));
        self.narrowed_to = Some(within(self.narrowed_to));
        self
    }

    /// The toolset that limits a call of these options which was suspended with `caller`'s.
    pub(crate) fn toolset_of(&self, caller: &Caller) -> Result<Option<Toolset>, serde_json::Error> {
        Ok(match (&self.toolset, caller.narrowed_to()?) {
            (Some(own), Some(narrowed)) => Some(narrowed.within(own)),
            (Some(own), None) => Some(own.clone()),
            // A client without a toolset of its own may have chosen one for the call.
            (None, _) => caller.toolset()?,
        })
    }

    /// Sets rules for this turn in addition to the host's policy. The stricter verdict applies, so
    /// they can only narrow what may be called. If no rule matches, the host's policy decides.
    /// Default: none.
    #[must_use]
    pub fn scope(mut self, rules: Policy) -> Self {
        self.scope = rules;
        self
    }

    /// Makes every call of this turn wait for approval, for this reason, unless a rule denies it. What was approved in its
    /// session before does not count. A call that waits is decided on as any other. Default: the policy decides.
    #[must_use]
    pub fn asking(mut self, reason: impl Into<Arc<str>>) -> Self {
        self.asks = Some(reason.into());
        self
    }

    /// The client name set by [`client`](Self::client).
    pub fn own_client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// The key set by [`client_key`](Self::client_key).
    pub fn own_client_key(&self) -> Option<&str> {
        self.client_key.as_deref()
    }

    /// The services for tools.
    pub fn own_services(&self) -> &Services {
        &self.services
    }

    /// The toolset of the turn, if it is limited to one.
    pub fn own_toolset(&self) -> Option<&Toolset> {
        self.toolset.as_ref()
    }

    /// Sets the listeners for events of the calls. The executor's bus always gets them, too.
    #[must_use]
    pub fn listeners(mut self, listeners: Listeners) -> Self {
        self.listeners = listeners;
        self
    }

    /// Sets how many calls of a batch run concurrently: 1 = one after another, 0 = all. Default:
    /// the executor's setting. A batch can override it ([`BatchOptions`](crate::BatchOptions)).
    #[must_use]
    pub fn max_concurrency(mut self, max_concurrency: usize) -> Self {
        self.max_concurrency = Some(max_concurrency);
        self
    }

    /// Sets the deadline of the calls: an `Instant`, a `SystemTime`, or a `Duration` from now.
    /// Default: none.
    ///
    /// Unlike a tool's own limit, it includes all waiting: for a person, a permit, another call. A
    /// call that is not answered by then is ended and answered `timeout`; work that has not started
    /// does not start. The breaker does not count such a timeout against the tool. Nested calls
    /// have the same deadline. A suspended call counts as answered: its wait has a separate expiry.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Deadline>) -> Self {
        self.deadline = Some(deadline.into());
        self
    }
}

impl fmt::Debug for TurnOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnOptions")
            .field("session", &self.session)
            .field("max_concurrency", &self.max_concurrency)
            .finish_non_exhaustive()
    }
}
