//! What a host attaches to a turn.

use std::fmt;
use std::sync::Arc;

use toolcrib_tool::{ContextValues, Identity, Services, ToolFiles};

use super::Deadline;
use crate::Toolset;
use crate::approval::Approver;
use crate::approval::policy::Policy;
use crate::events::Listeners;

/// What a host attaches to a turn.
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
    pub(crate) scope: Policy,
    pub(super) listeners: Listeners,
    pub(super) max_concurrency: Option<usize>,
    pub(super) deadline: Option<Deadline>,
    pub(super) client: Option<Arc<str>>,
    pub(super) client_key: Option<Arc<str>>,
    pub(super) joinable: bool,
}

impl TurnOptions {
    /// Values that the host has for the context of all its turns. Those of a
    /// [toolset](Toolset::context) go before them, and those of the turn before both.
    #[must_use]
    pub fn host_values(mut self, values: ContextValues) -> Self {
        self.host_values = values;
        self
    }

    /// Sets on whose behalf the calls are made. Default: what the values `user` and `tenant` of the
    /// context state, and otherwise nobody.
    ///
    /// What the identity states takes precedence over every context value. What it does not state, the
    /// tenant of a user for example, is what the context says.
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

    /// The values that calls have within this toolset, or without any: a key's value is the turn's own,
    /// else the toolset's, else the host's. The identity that was set comes before all of them.
    pub(crate) fn values_within(&self, toolset: Option<&Toolset>) -> ContextValues {
        let of_toolset = || toolset.into_iter().flat_map(Toolset::context_values);
        if self.host_values.iter().next().is_none() && of_toolset().next().is_none() {
            return self.values.clone().with_identity(&self.identity);
        }
        let all = self.host_values.iter().chain(of_toolset()).chain(self.values.iter());
        let values: ContextValues = all.map(|(key, value)| (key, value.clone())).collect();
        values.with_identity(&self.identity)
    }

    /// Values for the calls' context: a project, and the host's own. The keys `user` and `tenant`
    /// state the [`identity`](Self::identity), where that is not set.
    #[must_use]
    pub fn values(mut self, values: ContextValues) -> Self {
        self.values = values;
        self
    }

    /// The session the calls belong to: tools that declare `dedupe: session` answer a repeated call
    /// from its history. Without one there is no history.
    #[must_use]
    pub fn session(mut self, session: impl Into<Arc<str>>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// What the host lends to its tools: databases, clients, settings.
    #[must_use]
    pub fn services(mut self, services: Services) -> Self {
        self.services = services;
        self
    }

    /// The files the request brings for its tools.
    #[must_use]
    pub fn files(mut self, files: ToolFiles) -> Self {
        self.files = files;
        self
    }

    /// Sets who is asked about calls that need approval. Default: the executor's approver.
    ///
    /// An approver that the host's own code sets, here or on the executor, speaks for the host: the
    /// turn then has the right to approve, unless [`may_approve`](Self::may_approve) takes it away.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Sets whether whoever this turn acts for may approve calls. Default: only where the host has
    /// set an approver, on the turn or on the executor.
    ///
    /// Without the right nobody is asked: no approver is called, no client is shown a question, and
    /// [`Turn::resolve`](crate::Turn::resolve) accepts no approval. A call that needs approval is suspended for somebody
    /// else to decide on, or denied where suspended calls are not kept. Calls made by running calls
    /// belong to the same turn, so they never have more rights than their parent.
    ///
    /// Servers set this for every client. What they take over from a host never carries the right
    /// by accident.
    #[must_use]
    pub fn may_approve(mut self, may_approve: bool) -> Self {
        self.may_approve = Some(may_approve);
        self
    }

    /// Names the client that the calls come from. Whoever approves is shown the name.
    #[must_use]
    pub fn client(mut self, name: impl Into<Arc<str>>) -> Self {
        self.client = Some(name.into());
        self
    }

    /// Tells the client from another of the same name: a fingerprint of its token, for example.
    /// Nobody is shown it; it is kept with calls that wait
    /// ([`Caller::client_key`](crate::suspension::Caller::client_key)).
    #[must_use]
    pub fn client_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.client_key = Some(key.into());
        self
    }

    /// Sets whether a call that waits for approval can be joined by the same call made again
    /// ([`Turn::same_call`](crate::Turn::same_call)). For clients that can ask after a waiting call in no other way.
    /// Default: no.
    #[must_use]
    pub fn joinable(mut self, joinable: bool) -> Self {
        self.joinable = joinable;
        self
    }

    /// Whether [`may_approve`](Self::may_approve) has granted the right in so many words. An
    /// approver alone does not count here: it is the host's, not the caller's.
    pub fn grants_approval(&self) -> bool {
        self.may_approve == Some(true)
    }

    /// The tools this turn is about: no others are listed, described, suggested or called. Default:
    /// all.
    #[must_use]
    pub fn toolset(mut self, toolset: Toolset) -> Self {
        self.toolset = Some(toolset);
        self
    }

    /// Rules for this turn's calls beside the host's policy: of the two verdicts the stricter holds, so
    /// that they can narrow what may be called and never widen it. A call that no rule matches is the
    /// host's policy's alone. Default: none.
    #[must_use]
    pub fn scope(mut self, rules: Policy) -> Self {
        self.scope = rules;
        self
    }

    /// The client that [`client`](Self::client) has set.
    pub fn own_client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// What [`client_key`](Self::client_key) has set.
    pub fn own_client_key(&self) -> Option<&str> {
        self.client_key.as_deref()
    }

    /// The toolset that the turn is about, if it is not about everything.
    pub fn own_toolset(&self) -> Option<&Toolset> {
        self.toolset.as_ref()
    }

    /// Who is told of the calls while they run. The executor's bus, if it has one, is told anyway.
    #[must_use]
    pub fn listeners(mut self, listeners: Listeners) -> Self {
        self.listeners = listeners;
        self
    }

    /// Calls of a batch that run at once: 1 = one after another, 0 = all. Default: the executor's
    /// setting. One batch can have a setting of its own ([`BatchOptions`](crate::BatchOptions)).
    #[must_use]
    pub fn max_concurrency(mut self, max_concurrency: usize) -> Self {
        self.max_concurrency = Some(max_concurrency);
        self
    }

    /// Sets the moment by which the calls must be answered: an `Instant`, a `SystemTime`, or a
    /// `Duration` from now. Default: none.
    ///
    /// Unlike a tool's own limit, it counts all waiting: for a person, a permit, another call. A call
    /// that is not answered by then is ended and answered `timeout`; what has not begun by then does
    /// not begin. The breaker does not count such a timeout against the tool. Calls made by running
    /// calls have the same deadline. A call that is suspended has been answered: what it waits for
    /// has an expiry of its own.
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
