//! An executor with the tools, a project's folder, and asynchronous tests.

use std::path::PathBuf;
use std::sync::Arc;

use libtest_mimic::Trial;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolcrib_builtins::Projects;
use toolcrib_core::{Executor, ExecutorConfig, Registry, TurnOptions};
use toolcrib_databases::AnalysisSettings;
use toolcrib_tool::{ErrorKind, Services, ToolCall, ToolResult, native_tools};

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

/// The tools and a project with files.
pub(crate) struct Crib {
    home: TempDir,
    pub(crate) executor: Executor,
    services: Services,
}

impl Crib {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::with(files, AnalysisSettings::default())
    }

    pub(crate) fn with(files: &[(&str, &str)], settings: AnalysisSettings) -> Self {
        let home = TempDir::new().expect("a folder");
        std::fs::create_dir(home.path().join("project")).expect("a folder");
        std::fs::write(home.path().join("secret.csv"), "secret\nSESAME\n").expect("a file");
        let mut registry = Registry::scratch();
        for tool in
            native_tools().into_iter().filter(|tool| tool.krate == toolcrib_databases::CRATE)
        {
            registry = registry.entry(tool.entry().expect("the definition is right"));
        }
        let registry = registry.build().expect("the names differ");
        let executor = {
            let mut config = ExecutorConfig::default();
            // Many queries of the tests run into their limit on purpose.
            config.breaker_timeouts = 0;
            Executor::new(registry, config)
        };
        let projects = Projects::in_folder(home.path().join("project"));
        let services = Services::new().with(Arc::new(projects)).with(Arc::new(settings));
        let crib = Self { home, executor, services };
        for (path, content) in files {
            crib.write(path, content);
        }
        crib
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.home.path().join("project").join(path)
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("it is in the project")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    }

    pub(crate) async fn call(&self, arguments: Value) -> ToolResult {
        let turn = self.executor.turn(TurnOptions::default().services(self.services.clone()));
        turn.call(ToolCall::new("call_1", "data_analysis", arguments.to_string())).await
    }

    pub(crate) async fn query(&self, paths: &[&str], sql: &str) -> ToolResult {
        self.call(json!({"paths": paths, "sql": sql})).await
    }

    /// The rows of a successful query.
    pub(crate) async fn rows(&self, paths: &[&str], sql: &str) -> Value {
        let result = self.query(paths, sql).await;
        assert!(result.is_success(), "{sql}: {}", result.text());
        result.data().map(|data| data["rows"].clone()).expect("there is data")
    }

    /// The text of a failed call.
    pub(crate) async fn fails(&self, arguments: Value, kind: ErrorKind) -> String {
        let result = self.call(arguments.clone()).await;
        assert_eq!(result.error_kind(), Some(kind), "{arguments}: {}", result.text());
        result.text().into_owned()
    }
}
