//! An executor with the tools and configured databases.

use std::sync::Arc;

use libtest_mimic::Trial;
use serde_json::{Value, json};
use toolcrib_core::{Executor, ExecutorConfig, Registry, TurnOptions};
use toolcrib_databases::{Database, Databases, SecretLookup, UrlSource};
use toolcrib_tool::{ContextValues, ErrorKind, Services, ToolCall, ToolResult, native_tools};

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

/// A database with this URL.
pub(crate) fn database(url: impl Into<String>) -> Database {
    Database { url: UrlSource::Url(url.into()), allow_superuser: false }
}

pub(crate) struct Crib {
    pub(crate) executor: Executor,
    services: Services,
    pub(crate) values: ContextValues,
}

impl Crib {
    pub(crate) fn new(databases: Databases) -> Self {
        let mut registry = Registry::scratch();
        for tool in
            native_tools().into_iter().filter(|tool| tool.krate == toolcrib_databases::CRATE)
        {
            registry = registry.entry(tool.entry().expect("the definition is right"));
        }
        let mut config = ExecutorConfig::default();
        config.breaker_timeouts = 0;
        let executor = Executor::new(registry.build().expect("the names differ"), config);
        let secrets = SecretLookup::new(|name| Err(format!("there is no {name}")));
        let services = Services::new().with(Arc::new(databases)).with(Arc::new(secrets));
        Self { executor, services, values: ContextValues::new() }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        let options =
            TurnOptions::default().services(self.services.clone()).values(self.values.clone());
        self.executor.turn(options).call(ToolCall::new("call_1", tool, arguments.to_string())).await
    }

    pub(crate) async fn query(&self, sql: &str) -> ToolResult {
        self.call("db_query", json!({"sql": sql})).await
    }

    pub(crate) async fn rows(&self, sql: &str) -> Value {
        let result = self.query(sql).await;
        assert!(result.is_success(), "{sql}: {}", result.text());
        result.data().map(|data| data["rows"].clone()).expect("there is data")
    }

    pub(crate) async fn refuses(&self, sql: &str) -> String {
        let result = self.query(sql).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Denied), "{sql}: {}", result.text());
        result.text().into_owned()
    }
}
