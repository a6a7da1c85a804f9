//! A project, and an executor with the file tools for it.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use toolcrib_builtins::{Builtins, NameProfile, Projects};
use toolcrib_core::{Executor, ExecutorConfig, Registry, TurnOptions};
use toolcrib_tool::{ContextValues, ErrorKind, Services, ToolCall, ToolResult, native_tools};

pub(crate) struct Crib {
    home: TempDir,
    pub(crate) executor: Executor,
    services: Services,
    values: ContextValues,
}

/// The tools under the names of a profile.
pub(crate) fn executor(builtins: &Builtins) -> Executor {
    let mut registry = Registry::scratch();
    for tool in native_tools() {
        let entry = tool.entry().unwrap();
        if entry.definition.category() == "file"
            && let Some(entry) = builtins.expose(tool, entry)
        {
            registry = registry.entry(entry);
        }
    }
    Executor::new(registry.build().unwrap(), ExecutorConfig::default())
}

impl Crib {
    /// With these files in the project.
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let home = TempDir::new().unwrap();
        for (path, content) in files {
            let path = home.path().join("project").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        fs::create_dir_all(home.path().join("project")).unwrap();
        fs::write(home.path().join("secret.txt"), "secret").unwrap();
        let projects = Projects::in_folder(home.path().join("project"));
        Self::over(home, projects, NameProfile::Default)
    }

    pub(crate) fn over(home: TempDir, projects: Projects, profile: NameProfile) -> Self {
        let builtins = Builtins::new().profile(profile).projects(projects);
        let executor = executor(&builtins);
        let services = builtins.lend(Services::new());
        Self { home, executor, services, values: ContextValues::new() }
    }

    pub(crate) fn with_value(mut self, key: &str, value: &str) -> Self {
        self.values = self.values.with(key, value);
        self
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn path(&self, path: &str) -> std::path::PathBuf {
        self.home().join("project").join(path)
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        let options =
            TurnOptions::default().services(self.services.clone()).values(self.values.clone());
        self.executor.turn(options).call(ToolCall::new("1", tool, arguments)).await
    }

    /// The text of a successful call.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments.clone()).await;
        assert!(result.is_success(), "{tool} {arguments}: {}", result.text());
        result.text().into_owned()
    }

    pub(crate) async fn data(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone()).await;
        assert!(result.is_success(), "{tool} {arguments}: {}", result.text());
        result.data().cloned().unwrap()
    }

    /// The text of a failed call.
    pub(crate) async fn fails(&self, tool: &str, arguments: Value, kind: ErrorKind) -> String {
        let result = self.call(tool, arguments.clone()).await;
        assert_eq!(result.error_kind(), Some(kind), "{tool} {arguments}: {}", result.text());
        result.text().into_owned()
    }
}
