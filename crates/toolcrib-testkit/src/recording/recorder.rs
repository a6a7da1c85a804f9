//! Keeping what tools answer while they run for real.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use toolcrib_core::RegistrySnapshot;
use toolcrib_tool::{
    Arguments, Body, BoxFuture, CallContext, Tool, ToolDefinition, ToolError, ToolFactory,
    ToolOutcome,
};

use super::{RecordedCall, RecordedOutcome, Recording};

/// Keeps every call of the tools it has wrapped, with its arguments and its outcome. All clones are
/// one recorder.
///
/// What is kept is what the tool returned: before limits cut it, and without what it set through its
/// context. Calls that never reached the tool, were cancelled, or are run by the client are not kept.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    calls: Arc<Mutex<Vec<RecordedCall>>>,
}

impl Recorder {
    /// Has kept nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy of a snapshot, for a registry of its own, in which every call is kept.
    pub fn wrap(&self, snapshot: &RegistrySnapshot) -> RegistrySnapshot {
        snapshot.with_bodies(|entry| {
            // A tool that cannot run here is not made to.
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

    /// What was kept so far.
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
