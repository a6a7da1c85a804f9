//! Records the answers of tools while they really run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use toolcrib_core::RegistrySnapshot;
use toolcrib_tool::{
    Arguments, Body, BoxFuture, CallContext, Tool, ToolDefinition, ToolError, ToolFactory,
    ToolOutcome,
};

use super::{RecordedCall, RecordedOutcome, Recording};

/// Records every call of the wrapped tools, with its arguments and its outcome. Clones share one recording.
///
/// The recording contains what the tool returned: before limits cut it, and without results set through the context.
/// Calls that never reached the tool, were cancelled, or are run by the client are not recorded.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    calls: Arc<Mutex<Vec<RecordedCall>>>,
}

impl Recorder {
    /// An empty recorder.
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy of a snapshot for a separate registry in which every call is recorded.
    pub fn wrap(&self, snapshot: &RegistrySnapshot) -> RegistrySnapshot {
        snapshot.with_bodies(|entry| {
            // An unavailable tool stays unavailable.
            entry.unavailable_reason().is_none().then(|| self.body(&entry.body))
        })
    }

    fn body(&self, body: &Body) -> Body {
        match body {
            Body::Shared(tool) => Body::shared(self.recorded(Arc::clone(tool.tool()))),
            Body::PerUse(factory) => Body::PerUse(Arc::new(RecordedFactory {
                factory: Arc::clone(factory),
                recorder: self.clone(),
            })),
            other => other.clone(),
        }
    }

    fn recorded(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        Arc::new(Recorded { tool, recorder: self.clone() })
    }

    /// The calls recorded so far.
    pub fn recording(&self) -> Recording {
        Recording { calls: self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone() }
    }

    fn keep(&self, cx: &CallContext, arguments: &Arguments, outcome: Option<RecordedOutcome>) {
        let Some(outcome) = outcome else { return };
        let tool = cx.definition().name().to_owned();
        let call = RecordedCall { tool, arguments: arguments.exact(), outcome };
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}

struct RecordedFactory {
    factory: Arc<dyn ToolFactory>,
    recorder: Recorder,
}

impl ToolFactory for RecordedFactory {
    fn create<'a>(
        &'a self,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Arc<dyn Tool>, ToolError>> {
        Box::pin(async move { Ok(self.recorder.recorded(self.factory.create(cx).await?)) })
    }
}

struct Recorded {
    tool: Arc<dyn Tool>,
    recorder: Recorder,
}

impl Tool for Recorded {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let outcome = self.tool.call(arguments.clone(), cx).await;
            self.recorder.keep(cx, &arguments, RecordedOutcome::of(&outcome));
            outcome
        })
    }

    fn validate<'a>(
        &'a self,
        arguments: &'a Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            self.tool.validate(arguments, cx).await.inspect_err(|error| {
                let refused = RecordedOutcome::Refused(error.clone());
                self.recorder.keep(cx, arguments, Some(refused));
            })
        })
    }

    fn validates(&self) -> bool {
        self.tool.validates()
    }

    fn refresh<'a>(
        &'a self,
        current: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<Option<ToolDefinition>, ToolError>> {
        self.tool.refresh(current)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.tool.close()
    }

    fn wind_down(&self) -> Duration {
        self.tool.wind_down()
    }
}
