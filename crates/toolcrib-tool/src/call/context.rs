//! The context of a call, for the tool.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use serde_json::Value;

use crate::identity::text;
use crate::{
    ByteMasks, CallHost, CallId, Content, Identity, NoHost, StatusUpdate, ToolCall, ToolDefinition,
    ToolError, ToolFile, ToolOutput, ToolResult,
};

/// Values that the host attached to a session or request, for example `project_id` or its own keys. `user` and `tenant`
/// among them set the [`Identity`](crate::Identity). They never come from a model. Clones are cheap, and an empty set
/// takes no memory.
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

    /// The caller's id for this call.
    pub fn call_id(&self) -> &CallId {
        &self.0.call_id
    }

    /// The definition the call was checked against.
    pub fn definition(&self) -> &ToolDefinition {
        &self.0.definition
    }

    /// The user on whose behalf the call is made, if the host has set one. Cached answers are always separate for each
    /// identity, so reading it does not affect caching.
    pub fn user(&self) -> Option<Cow<'_, str>> {
        text(self.0.values.user())
    }

    /// The tenant on whose behalf the call is made, if the host has set one.
    pub fn tenant(&self) -> Option<Cow<'_, str>> {
        text(self.0.values.tenant())
    }

    /// A value that the host attached.
    ///
    /// If a tool reads a value other than `user`, `tenant` and those that its definition injects, its answer is not
    /// cached, unless the definition says that answers are [shared](crate::CachePolicy::with_shared).
    pub fn value(&self, key: &str) -> Option<&Value> {
        let injected = |known: &crate::Injection| known.context_key() == key;
        if !matches!(key, Identity::USER | Identity::TENANT)
            && !self.definition().injections().iter().any(injected)
        {
            self.0.host.read_beyond_key();
        }
        self.0.values.get(key)
    }

    /// All values that the host attached. As with [`value`](Self::value), the answer of a tool that reads them is not
    /// cached.
    pub fn values(&self) -> &ContextValues {
        self.0.host.read_beyond_key();
        &self.0.values
    }

    /// The value of a parameter that the host fills in, under the parameter's own name.
    pub fn injected(&self, parameter: &str) -> Option<&Value> {
        let injection =
            self.definition().injections().iter().find(|known| known.parameter() == parameter)?;
        self.0.values.get(injection.context_key())
    }

    /// When the call will be ended, if it has a limit. `None` before its work begins, because waiting for a permit or a
    /// person does not count.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.deadline.or_else(|| self.0.host.deadline())
    }

    /// How many characters of text the model will get; longer output is cut in the middle.
    pub fn output_chars(&self) -> usize {
        self.0.output_chars
    }

    /// Completes when the call is cancelled or has timed out. Async tools need not watch it, because their future is
    /// dropped. Blocking tools should check [`is_cancelled`](Self::is_cancelled) now and then.
    pub async fn cancelled(&self) {
        self.0.host.cancelled().await;
    }

    /// Calls another tool through the same pipeline, on the same snapshot.
    ///
    /// The nested call shares the limits that this call holds, so a tool with one slot may call itself; more than 16
    /// levels are denied. It has the same deadline and cancellation, and is refused once this call is over. If its tool
    /// must run alone, it waits until it can.
    ///
    /// If it has to wait for a person or a client, this call waits too: its caller is told so, its time limit is
    /// suspended, and other calls of this tool may use its permit. After the decision, the future continues with the
    /// answer. Do not hold a lock across this call.
    ///
    /// If the server ends meanwhile, this call cannot continue. A tool that is declared read-only or idempotent runs
    /// again from its start: nested calls with the same ids and arguments that had ended before get the same answers.
    /// For any other tool the answer is `outcome_unknown`.
    pub async fn call(&self, call: ToolCall) -> ToolResult {
        self.0.host.read_beyond_key();
        self.0.host.call(self.definition(), call).await
    }

    /// The tools that [`call`](Self::call) can reach and that match a question's words, the best first, at most
    /// `limit`.
    pub fn search(&self, question: &str, limit: usize) -> Vec<Arc<ToolDefinition>> {
        self.0.host.read_beyond_key();
        self.0.host.search(question, limit)
    }

    /// The definition of a tool that [`call`](Self::call) can reach, or the error that a call would get: the name is
    /// unknown, or the tool cannot run here.
    pub fn describe(&self, name: &str) -> Result<Arc<ToolDefinition>, ToolError> {
        self.0.host.read_beyond_key();
        self.0.host.describe(name)
    }

    /// Whether the call was cancelled or has timed out.
    pub fn is_cancelled(&self) -> bool {
        self.0.host.is_cancelled()
    }

    /// Reports the progress of the call to people. The model sees none of it.
    pub fn status(&self, update: StatusUpdate) {
        self.0.host.status(update);
    }

    /// Whether there may be listeners to [`status`](Self::status) and [`stream`](Self::stream). A tool may
    /// skip work that only they would see.
    pub fn is_watched(&self) -> bool {
        self.0.host.is_watched()
    }

    /// Streams a part of the output to listeners, ahead of the result. Waits while a slow listener catches up; costs
    /// nothing without listeners.
    pub async fn stream(&self, part: impl Into<Content>) {
        self.0.host.stream(part.into()).await;
    }

    /// Sets the result, for tools that know it before they return. A returned value takes precedence if it is not
    /// empty, and a failure always does.
    pub fn set_result(&self, output: impl Into<ToolOutput>) {
        self.0.host.set_result(output.into());
    }

    /// Masks the host's secrets in streams of bytes, for tools that cut what they read: a secret has to be masked
    /// before the cut, because half a secret cannot be found. The executor masks everything that a tool returns in any
    /// case. `None` if the host masks nothing.
    pub fn byte_masks(&self) -> Option<ByteMasks> {
        self.0.host.byte_masks()
    }

    /// The text with the host's secrets masked, for tools that rewrite or cut a text that is not theirs: a secret must
    /// be masked first, because neither half a secret nor one with escaped characters can be found.
    pub fn masked(&self, text: String) -> String {
        let Some(masks) = self.byte_masks() else { return text };
        let (mut mask, mut masked) = (masks(), Vec::with_capacity(text.len()));
        mask(Some(text.as_bytes()), &mut masked);
        mask(None, &mut masked);
        String::from_utf8(masked)
            .unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned())
    }

    /// A service of the host, by its type. If a tool reads one, its answer is not cached, unless its definition says
    /// that answers are [shared](crate::CachePolicy::with_shared).
    pub fn service<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.host.read_beyond_key();
        self.0.host.services()?.get()
    }

    /// A service of the host, by name and type. As with [`service`](Self::service), the answer is not cached.
    pub fn named_service<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        self.0.host.read_beyond_key();
        self.0.host.services()?.named(name)
    }

    /// The files that the request contains for this tool: those for its name, or else for its category. As with
    /// [`service`](Self::service), the answer of a tool that reads them is not cached.
    pub fn files(&self) -> &[ToolFile] {
        self.0.host.read_beyond_key();
        let definition = self.definition();
        match self.0.host.files(definition.name()) {
            [] => self.0.host.files(definition.category()),
            files => files,
        }
    }

    /// The session of the call, if there is one. As with [`service`](Self::service), the answer of a tool that reads it
    /// is not cached.
    pub fn session(&self) -> Option<&str> {
        self.0.host.read_beyond_key();
        self.0.host.session()
    }

    /// What connects the call to its executor.
    pub fn host(&self) -> &dyn CallHost {
        &*self.0.host
    }

    /// The answer to the [`InputRequest`](crate::InputRequest) with which an earlier run of this call ended; it fits
    /// the request's schema. `None` in the first run.
    pub fn answer(&self) -> Option<&Value> {
        self.0.answer.as_ref()
    }

    /// The value that the earlier run stored for this one ([`InputRequest::remember`](crate::InputRequest::remember)).
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

/// The host of a context without an executor.
static NO_HOST: LazyLock<Arc<dyn CallHost>> = LazyLock::new(|| Arc::new(NoHost));

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
                host: Arc::clone(&NO_HOST),
            },
        }
    }

    /// Sets the host's values.
    #[must_use]
    pub fn values(mut self, values: ContextValues) -> Self {
        self.inner.values = values;
        self
    }

    /// Sets the deadline of the call.
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

    /// Sets the value that the earlier run stored.
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
