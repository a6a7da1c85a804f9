//! Refreshing definitions when a source has changed, or periodically.

mod period;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{self, StreamExt};
use tokio::time::timeout;
use toolcrib_tool::{Body, ErrorKind, Tool, ToolDefinition, ToolError};

use crate::Executor;
use crate::call::executor::Shared;
use crate::call::panics::PanicMessage;

/// How long a tool may take to return its definition.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Tools that are asked at once.
const AT_ONCE: usize = 8;

/// How often a refresh is repeated because the entry was replaced meanwhile.
const ROUNDS: usize = 3;

/// Asks tools for their current definitions ([`Tool::refresh`]) and publishes changes. Created by
/// [`Executor::refresher`]; cloning it is cheap.
///
/// A tool that fails, panics, takes too long, or returns an unusable definition keeps its old one,
/// which is logged. Open turns are not affected.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use toolcrib_core::{Executor, ExecutorConfig, Refreshed, Registry, RegistryBuilder, TurnOptions};
/// use toolcrib_tool::{
///     Arguments, BoxFuture, CallContext, Layer, Source, Tool, ToolDefinition, ToolEntry, ToolError,
///     ToolOutcome,
/// };
///
/// /// Searches tables; its description states how many there are.
/// struct Search {
///     tables: AtomicU32,
/// }
///
/// fn describe(tables: u32) -> Result<ToolDefinition, ToolError> {
///     let description = format!("Search the {tables} tables.");
///     Ok(ToolDefinition::builder("search").description(description).build()?)
/// }
///
/// impl Tool for Search {
///     fn call<'a>(
///         &'a self,
///         _: Arguments,
///         _: &'a CallContext,
///     ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
///         Box::pin(async { Ok("nothing found".into()) })
///     }
///
///     fn refresh<'a>(
///         &'a self,
///         _: &'a ToolDefinition,
///     ) -> BoxFuture<'a, Result<Option<ToolDefinition>, ToolError>> {
///         Box::pin(async { describe(self.tables.load(Ordering::Relaxed)).map(Some) })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let search = Arc::new(Search { tables: AtomicU32::new(3) });
/// let mut builder = RegistryBuilder::new();
/// let definition = describe(3).map_err(|error| error.to_string())?;
/// let _ = builder.register(ToolEntry::new(
///     definition,
///     Arc::clone(&search) as Arc<dyn Tool>,
///     Source::new(Layer::Host, "doc"),
/// ));
/// let executor = Executor::new(Registry::new(builder.build()), ExecutorConfig::default());
///
/// // A table was added, so `search` has to be refreshed.
/// search.tables.store(4, Ordering::Relaxed);
/// let report = executor.refresher().refresh(["search"]).await;
/// assert!(matches!(report.of("search"), Some(Refreshed::Changed)));
///
/// let turn = executor.turn(TurnOptions::default());
/// assert_eq!(turn.definitions()[0].description(), "Search the 4 tables.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Refresher {
    executor: Weak<Shared>,
    timeout: Duration,
}

/// The result of refreshing one tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Refreshed {
    /// Its definition is unchanged.
    Unchanged,
    /// It has a new definition, which new turns see.
    Changed,
    /// No tool has the name, or it has no shared instance.
    NotAsked,
    /// It keeps its old definition because of this error.
    Kept(ToolError),
}

/// The results of a refresh, in the order of the names.
#[derive(Debug, Clone, Default)]
pub struct RefreshReport {
    tools: Vec<(String, Refreshed)>,
}

impl RefreshReport {
    /// The result for one tool; `None` if it was not among the names.
    pub fn of(&self, tool: &str) -> Option<&Refreshed> {
        self.tools.iter().find(|(name, _)| name == tool).map(|(_, refreshed)| refreshed)
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Refreshed)> {
        self.tools.iter().map(|(name, refreshed)| (name.as_str(), refreshed))
    }
}

impl Executor {
    /// The refresher for the tools of this executor.
    pub fn refresher(&self) -> Refresher {
        Refresher { executor: Arc::downgrade(&self.shared), timeout: TIMEOUT }
    }
}

impl Refresher {
    /// Sets how long each tool may take. Default: 10 s.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Refreshes these tools, because their source has changed. Each change is published as soon as
    /// it is known.
    pub async fn refresh<N: Into<String>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> RefreshReport {
        let asked = names.into_iter().map(|name| {
            let name: String = name.into();
            async move {
                let refreshed = self.refresh_one(&name).await;
                (name, refreshed)
            }
        });
        // Collected first, because the caller's iterator need not be `Send`.
        let asked: Vec<_> = asked.collect();
        RefreshReport { tools: stream::iter(asked).buffered(AT_ONCE).collect().await }
    }

    /// Refreshes tools periodically as their definitions state
    /// ([`refresh_every`](ToolDefinition::refresh_every)), including tools that are added later.
    /// Hosts with such tools spawn it. It ends within a second after the executor is gone.
    ///
    /// A period begins when the last refresh has ended, so that refreshes of a slow source do not
    /// overlap.
    pub async fn run(self) {
        period::serve(&self).await;
    }

    async fn refresh_one(&self, name: &str) -> Refreshed {
        for _ in 0..ROUNDS {
            let Some(shared) = self.executor.upgrade() else { return Refreshed::NotAsked };
            let snapshot = shared.registry.snapshot();
            let Some(entry) = snapshot.get(name) else { return Refreshed::NotAsked };
            let Body::Shared(tool) = &entry.body else { return Refreshed::NotAsked };
            let (definition, tool) = (Arc::clone(&entry.definition), Arc::clone(tool.tool()));
            // While the tool answers, neither the snapshot nor the executor is held.
            drop((snapshot, shared));

            let fresh = match self.ask(tool.as_ref(), &definition).await {
                Ok(None) => return Refreshed::Unchanged,
                Ok(Some(fresh)) if fresh == *definition => return Refreshed::Unchanged,
                Ok(Some(fresh)) => fresh,
                Err(error) => return kept(name, error),
            };
            let Some(shared) = self.executor.upgrade() else { return Refreshed::NotAsked };
            if let Err(error) = usable(&shared, &definition, &fresh) {
                return kept(name, error);
            }
            let published = shared.registry.try_update(|current| {
                // The entry was replaced meanwhile: the answer does not apply to it.
                let unchanged = current
                    .get(name)
                    .is_some_and(|entry| Arc::ptr_eq(&entry.definition, &definition));
                unchanged.then(|| current.refreshed([Arc::new(fresh)]))
            });
            if published {
                tracing::info!(tool = name, "the tool has a new definition");
                return Refreshed::Changed;
            }
        }
        kept(name, ToolError::unavailable("its entry was replaced again and again meanwhile"))
    }

    async fn ask(
        &self,
        tool: &dyn Tool,
        current: &ToolDefinition,
    ) -> Result<Option<ToolDefinition>, ToolError> {
        let refresh = AssertUnwindSafe(async { tool.refresh(current).await }).catch_unwind();
        match timeout(self.timeout, refresh).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => Err(PanicMessage::of(panic.as_ref())
                .into_error(ErrorKind::Panic, "the tool crashed while it was asked")),
            Err(_) => Err(ToolError::new(
                ErrorKind::Timeout,
                format!("it took longer than {:?} to say its definition", self.timeout),
            )),
        }
    }
}

fn kept(tool: &str, error: ToolError) -> Refreshed {
    let source = error.source().map(ToString::to_string);
    let kind = error.kind().as_str();
    tracing::warn!(tool, kind, source, %error, "refreshing failed; the definition in use stays");
    Refreshed::Kept(error)
}

/// Checks whether a definition may replace the old one of the same instance.
fn usable(
    shared: &Shared,
    current: &ToolDefinition,
    fresh: &ToolDefinition,
) -> Result<(), ToolError> {
    if fresh.name() != current.name() {
        return Err(ToolError::internal(format!(
            "it calls itself `{}` now; a name cannot change: register another tool",
            fresh.name()
        )));
    }
    let schemas = shared.registry.schemas();
    schemas.input(fresh)?;
    schemas.output(fresh)?;
    Ok(())
}
