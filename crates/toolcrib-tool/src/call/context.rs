//! What a tool can see of the call it is answering.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use crate::identity::text;
use crate::{
    ByteMasks, CallHost, CallId, Content, Identity, NoHost, StatusUpdate, ToolCall, ToolDefinition,
    ToolError, ToolFile, ToolOutput, ToolResult,
};

/// Values the host attached to a session or request: `project_id`, for example, or keys of its own.
/// `user` and `tenant` among them state the [`Identity`](crate::Identity). They never come from a
/// model. Cloning is cheap, and no values take no memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContextValues(Option<Arc<BTreeMap<String, Value>>>);

impl ContextValues {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a value.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        Arc::make_mut(self.0.get_or_insert_default()).insert(key.into(), value.into());
        self
    }

    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.as_ref()?.get(key)
    }

    /// All values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().flat_map(|values| values.iter()).map(|(key, value)| (key.as_str(), value))
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for ContextValues {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        pairs.fold(Self::new(), |values, (key, value)| values.with(key, value))
    }
}

/// The context of one call. Cloning it is cheap.
///
/// ```
/// use toolcrib_tool::{CallContext, ContextValues, Identity, ToolDefinition};
///
/// let definition = ToolDefinition::builder("demo").description("A demo.").build()?;
/// let cx = CallContext::builder("call_1", definition)
///     .values(ContextValues::new().with_identity(&Identity::user("ada")))
///     .build();
/// assert_eq!(cx.user().as_deref(), Some("ada"));
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
#[derive(Clone)]
pub struct CallContext(Arc<Inner>);

struct Inner {
    call_id: CallId,
    definition: Arc<ToolDefinition>,
    values: ContextValues,
    deadline: Option<Instant>,
    output_chars: usize,
    answer: Option<Value>,
    remembered: Option<Value>,
    host: Arc<dyn CallHost>,
}

impl CallContext {
    /// Starts a context. The executor does this for every call; a test of one tool may.
    pub fn builder(
        call_id: impl Into<CallId>,
        definition: impl Into<Arc<ToolDefinition>>,
    ) -> CallContextBuilder {
        CallContextBuilder::new(call_id.into(), definition.into())
    }

    /// The caller's id of this call.
    pub fn call_id(&self) -> &CallId {
        &self.0.call_id
    }

    /// The definition the call was checked against.
    pub fn definition(&self) -> &ToolDefinition {
        &self.0.definition
    }

    /// The user on whose behalf the call is made, if the host has stated one. Answers depend on it in
    /// any case, so to ask for it costs a tool nothing.
    pub fn user(&self) -> Option<Cow<'_, str>> {
        text(self.0.values.user())
    }

    /// The tenant on whose behalf the call is made, if the host has stated one.
    pub fn tenant(&self) -> Option<Cow<'_, str>> {
        text(self.0.values.tenant())
    }

    /// A value the host attached.
    ///
    /// The answer of a tool that asks for a value beside `user`, `tenant` and those that its
    /// definition injects is not kept for later calls, unless the definition says that answers are
    /// [shared](crate::CachePolicy::with_shared).
    pub fn value(&self, key: &str) -> Option<&Value> {
        let injected = |known: &crate::Injection| known.context_key() == key;
        if !matches!(key, Identity::USER | Identity::TENANT)
            && !self.definition().injections().iter().any(injected)
        {
            self.0.host.read_beyond_key();
        }
        self.0.values.get(key)
    }

    /// All values the host attached. The answer of a tool that asks for them is not kept, as with
    /// [`value`](Self::value).
    pub fn values(&self) -> &ContextValues {
        self.0.host.read_beyond_key();
        &self.0.values
    }

    /// The value of a parameter the host fills in, under the parameter's own name.
    pub fn injected(&self, parameter: &str) -> Option<&Value> {
        let injection =
            self.definition().injections().iter().find(|known| known.parameter() == parameter)?;
        self.0.values.get(injection.context_key())
    }

    /// When the call will be ended, if it has a limit. Known once its work begins: waiting for a
    /// permit or a person does not count, so it is `None` before.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.deadline.or_else(|| self.0.host.deadline())
    }

    /// How many characters of text will reach the model; more is cut in the middle.
    pub fn output_chars(&self) -> usize {
        self.0.output_chars
    }

    /// Completes when the call is cancelled or timed out. Async tools need not watch it: they
    /// are dropped. Blocking ones should ask [`is_cancelled`](Self::is_cancelled) now and then.
    pub async fn cancelled(&self) {
        self.0.host.cancelled().await;
    }

    /// Calls another tool, through the same pipeline and on the same snapshot.
    ///
    /// The nested call shares the limits this one already holds, so that a tool with one slot may
    /// call itself; it is denied beyond 16 levels. It ends with this one: it has the same deadline and
    /// cancellation, and once this call is over it is refused. It waits until it can run alone, if its
    /// tool must.
    ///
    /// Where it has to wait for a person or a client, this call waits too: whoever made it is told so,
    /// its time limit stands still, and other calls of this tool may use its permit. When somebody has
    /// decided, the future goes on with the answer. Keep no lock across this call.
    ///
    /// If the server ends meanwhile, this call cannot go on. A tool that is declared read-only or
    /// idempotent is run again from its start: calls that it makes again with the same ids and
    /// arguments and that had ended before get the same answers. The answer to a call of any other
    /// tool is then `outcome_unknown`.
    pub async fn call(&self, call: ToolCall) -> ToolResult {
        self.0.host.read_beyond_key();
        self.0.host.call(self.definition(), call).await
    }

    /// The tools that [`call`](Self::call) reaches and a question's words fit, the best first, at most
    /// `limit`.
    pub fn search(&self, question: &str, limit: usize) -> Vec<Arc<ToolDefinition>> {
        self.0.host.read_beyond_key();
        self.0.host.search(question, limit)
    }

    /// The definition of a tool that [`call`](Self::call) reaches; or what a call of it would fail with:
    /// there is none of that name, or it cannot run here.
    pub fn describe(&self, name: &str) -> Result<Arc<ToolDefinition>, ToolError> {
        self.0.host.read_beyond_key();
        self.0.host.describe(name)
    }

    /// Whether the call was cancelled or timed out.
    pub fn is_cancelled(&self) -> bool {
        self.0.host.is_cancelled()
    }

    /// Tells a person how far the call has come. The model sees nothing of it.
    pub fn status(&self, update: StatusUpdate) {
        self.0.host.status(update);
    }

    /// Streams a part of the output to whoever listens, ahead of the result. Waits while a slow
    /// listener catches up with this call; costs nothing where nobody listens.
    pub async fn stream(&self, part: impl Into<Content>) {
        self.0.host.stream(part.into()).await;
    }

    /// Sets the result, for tools that find it before they return. What the tool returns counts,
    /// if it is anything; a failure counts always.
    pub fn set_result(&self, output: impl Into<ToolOutput>) {
        self.0.host.set_result(output.into());
    }

    /// What hides the host's secrets in streams of bytes, for tools that cut what they read: a secret
    /// has to be hidden before the cut, because half a secret cannot be found. The executor masks what
    /// a tool returns in any case. `None` if the host hides nothing.
    pub fn byte_masks(&self) -> Option<ByteMasks> {
        self.0.host.byte_masks()
    }

    /// A service the host lends, by its type. The answer of a tool that asks for one is not kept for
    /// later calls, unless its definition says that answers are
    /// [shared](crate::CachePolicy::with_shared).
    pub fn service<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.host.read_beyond_key();
        self.0.host.services()?.get()
    }

    /// A service the host lends, by name and type. As with [`service`](Self::service), the answer is
    /// not kept.
    pub fn named_service<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        self.0.host.read_beyond_key();
        self.0.host.services()?.named(name)
    }

    /// The files the request brought for this tool: those for its name, or else for its category. As
    /// with [`service`](Self::service), the answer of a tool that asks is not kept.
    pub fn files(&self) -> &[ToolFile] {
        self.0.host.read_beyond_key();
        let definition = self.definition();
        match self.0.host.files(definition.name()) {
            [] => self.0.host.files(definition.category()),
            files => files,
        }
    }

    /// The session the call belongs to, if there is one. As with [`service`](Self::service), the
    /// answer of a tool that asks is not kept.
    pub fn session(&self) -> Option<&str> {
        self.0.host.read_beyond_key();
        self.0.host.session()
    }

    /// What connects the call to its executor.
    pub fn host(&self) -> &dyn CallHost {
        &*self.0.host
    }

    /// What was answered to the [`InputRequest`](crate::InputRequest) with which an earlier run of
    /// this call ended; it fits the request's schema. `None` in the first run.
    pub fn answer(&self) -> Option<&Value> {
        self.0.answer.as_ref()
    }

    /// What the earlier run kept for this one ([`InputRequest::remember`](crate::InputRequest::remember)).
    pub fn remembered(&self) -> Option<&Value> {
        self.0.remembered.as_ref()
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext")
            .field("call_id", &self.0.call_id)
            .field("tool", &self.definition().name())
            .field("deadline", &self.0.deadline)
            .finish_non_exhaustive()
    }
}

/// Builds a [`CallContext`].
pub struct CallContextBuilder {
    inner: Inner,
}

impl CallContextBuilder {
    fn new(call_id: CallId, definition: Arc<ToolDefinition>) -> Self {
        Self {
            inner: Inner {
                call_id,
                definition,
                values: ContextValues::new(),
                deadline: None,
                output_chars: usize::MAX,
                answer: None,
                remembered: None,
                host: Arc::new(NoHost),
            },
        }
    }

    /// Sets the host's values.
    #[must_use]
    pub fn values(mut self, values: ContextValues) -> Self {
        self.inner.values = values;
        self
    }

    /// Sets when the call ends at the latest.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.inner.deadline = Some(deadline);
        self
    }

    /// Sets the text budget, in characters.
    #[must_use]
    pub fn output_chars(mut self, output_chars: usize) -> Self {
        self.inner.output_chars = output_chars;
        self
    }

    /// Sets the answer to the question of an earlier run.
    #[must_use]
    pub fn answer(mut self, answer: Value) -> Self {
        self.inner.answer = Some(answer);
        self
    }

    /// Sets what the earlier run kept.
    #[must_use]
    pub fn remembered(mut self, value: Option<Value>) -> Self {
        self.inner.remembered = value;
        self
    }

    /// Connects the call to its executor.
    #[must_use]
    pub fn host(mut self, host: Arc<dyn CallHost>) -> Self {
        self.inner.host = host;
        self
    }

    /// Makes the context.
    pub fn build(self) -> CallContext {
        CallContext(Arc::new(self.inner))
    }
}

impl fmt::Debug for CallContextBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContextBuilder")
            .field("call_id", &self.inner.call_id)
            .finish_non_exhaustive()
    }
}
