//! A server on loopback that notes what it is asked, and an executor with the web tools.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use toolcrib_core::{Executor, ExecutorConfig, Registry, TurnOptions};
use toolcrib_tool::{ContextValues, ErrorKind, Services, ToolCall, ToolResult, native_tools};
use toolcrib_web::{ApiKeys, Web, WebSettings};

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Noted {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Noted {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A server that ends with the test.
pub(crate) struct Server {
    pub(crate) address: String,
    noted: Arc<Mutex<Vec<Noted>>>,
    /// The most requests that were answered at the same time.
    pub(crate) most_at_once: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Answers each request with `answer`, after `delay`.
    pub(crate) async fn slow(
        delay: Duration,
        answer: impl Fn(&Noted) -> Response + Send + Sync + 'static,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (noted, answer) = (Arc::<Mutex<Vec<Noted>>>::default(), Arc::new(answer));
        let (now, most_at_once) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (log, most) = (Arc::clone(&noted), Arc::clone(&most_at_once));
        let router = Router::new().fallback(move |request: Request| {
            let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                let (parts, body) = request.into_parts();
                let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
                let (path, headers) = (parts.uri.to_string(), parts.headers);
                let request = Noted { path, headers, body };
                log.lock().expect("no panic").push(request.clone());
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(delay).await;
                now.fetch_sub(1, Ordering::SeqCst);
                answer(&request)
            }
        });
        let serving = async move {
            let _ = axum::serve(listener, router).await;
        };
        Self { address, noted, most_at_once, task: tokio::spawn(serving) }
    }

    pub(crate) async fn new(answer: impl Fn(&Noted) -> Response + Send + Sync + 'static) -> Self {
        Self::slow(Duration::ZERO, answer).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The requests so far.
    pub(crate) fn noted(&self) -> Vec<Noted> {
        self.noted.lock().expect("no panic").clone()
    }

    /// The paths of the requests so far.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.noted().into_iter().map(|noted| noted.path).collect()
    }
}

pub(crate) fn html(text: impl Into<String>) -> Response {
    ([("content-type", "text/html; charset=utf-8")], text.into()).into_response()
}

pub(crate) fn json(value: &Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}

pub(crate) fn status(code: u16) -> Response {
    StatusCode::from_u16(code).expect("a status").into_response()
}

pub(crate) fn redirect(to: &str) -> Response {
    (StatusCode::FOUND, [("location", to.to_owned())]).into_response()
}

/// The web tools over their executor.
pub(crate) struct Crib {
    pub(crate) executor: Executor,
    pub(crate) web: Arc<Web>,
    services: Services,
}

/// Settings with which pages of exactly this address of loopback can be fetched.
pub(crate) fn on_loopback() -> WebSettings {
    let mut settings = WebSettings::default();
    settings.pages.allow_private = vec!["127.0.0.1/32".parse().expect("a network")];
    settings
}

impl Crib {
    pub(crate) fn new(settings: WebSettings) -> Self {
        Self::with(settings, ExecutorConfig::default())
    }

    pub(crate) fn with(settings: WebSettings, config: ExecutorConfig) -> Self {
        let mut registry = Registry::scratch();
        for tool in native_tools().into_iter().filter(|tool| tool.krate == toolcrib_web::CRATE) {
            if settings.offers(tool.name) {
                registry = registry.entry(tool.entry().expect("a definition"));
            }
        }
        let executor = Executor::new(registry.build().expect("tools"), config);
        let keys = ApiKeys::new(|name| match name {
            "good" => Ok("key-of-the-test".to_owned().into()),
            other => Err(format!("needs the secret `{other}`: it is missing")),
        });
        let web = Arc::new(Web::new(settings, keys));
        let services = Services::new().with(Arc::clone(&web));
        Self { executor, web, services }
    }

    pub(crate) fn options(&self, user: &str) -> TurnOptions {
        let values = ContextValues::new().with("user", user);
        TurnOptions::default().services(self.services.clone()).values(values)
    }

    pub(crate) async fn call_as(&self, user: &str, tool: &str, arguments: Value) -> ToolResult {
        self.executor.turn(self.options(user)).call(ToolCall::new("1", tool, arguments)).await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.call_as("ada", tool, arguments).await
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
        result.data().cloned().expect("data")
    }

    /// The text of a failed call.
    pub(crate) async fn fails(&self, tool: &str, arguments: Value, kind: ErrorKind) -> String {
        let result = self.call(tool, arguments.clone()).await;
        assert_eq!(result.error_kind(), Some(kind), "{tool} {arguments}: {}", result.text());
        result.text().into_owned()
    }
}
