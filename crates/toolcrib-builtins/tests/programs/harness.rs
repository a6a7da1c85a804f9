//! An executor with the tools, a workspace, and asynchronous tests.

use std::path::Path;
use std::sync::Arc;

use libtest_mimic::Trial;
use serde_json::Value;
use tempfile::TempDir;
use toolcrib_builtins::Projects;
use toolcrib_builtins::code::PythonSettings;
use toolcrib_builtins::shell::BashSettings;
use toolcrib_core::policy::{OnAsk, Policy};
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, TurnOptions};
use toolcrib_tool::{Services, ToolCall, ToolResult, native_tools};

/// A test of that name.
pub(crate) fn trial<F>(name: &str, test: fn() -> F) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(test());
        Ok(())
    })
}

/// The tools, with settings, and their own workspace.
pub(crate) struct Crib {
    pub(crate) executor: Executor,
    services: Services,
    workspace: TempDir,
}

impl Crib {
    pub(crate) fn new() -> Self {
        Self::with(|bash| bash, |python| python, ExecutorConfig::default())
    }

    pub(crate) fn with(
        bash: impl FnOnce(BashSettings) -> BashSettings,
        python: impl FnOnce(PythonSettings) -> PythonSettings,
        config: ExecutorConfig,
    ) -> Self {
        let workspace = tempfile::tempdir().expect("a directory for the workspace");
        let mut registry = RegistryBuilder::new();
        for tool in native_tools() {
            let _ = registry.register(tool.entry().expect("the definition is right"));
        }
        let unasked = Policy::new(OnAsk::Allow, []).expect("there are no rules");
        let executor = Executor::builder(Registry::new(registry.build()))
            .config(config)
            .policy(unasked)
            .build();
        let services = Services::new()
            .with(Arc::new(Projects::in_folder(workspace.path())))
            .with(Arc::new(bash(BashSettings::default())))
            .with(Arc::new(python(PythonSettings::default())));
        Self { executor, services, workspace }
    }

    pub(crate) fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        let turn = self.executor.turn(TurnOptions::default().services(self.services.clone()));
        turn.call(ToolCall::new("call_1", tool, arguments.to_string())).await
    }

    /// The code's result at this level.
    pub(crate) async fn python(&self, code: &str, strictness: &str) -> ToolResult {
        let arguments = serde_json::json!({"code": code, "strictness": strictness});
        self.call("execute_python", arguments).await
    }
}
