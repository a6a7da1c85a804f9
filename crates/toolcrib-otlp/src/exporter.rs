//! Sends requests to the collector through `toolcrib-net`.

use std::fmt;
use std::io;

use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::{Builder, Runtime};
use toolcrib_net::{AddressPolicy, Client, NamedBy, Target};

/// A client with its own runtime, because the exporters' threads have none.
pub(crate) struct Exporter {
    client: Client,
    runtime: Option<Runtime>,
}

impl Exporter {
    pub(crate) fn new() -> io::Result<Self> {
        // The operator chose the collector, which is often on this machine or its network.
        let everywhere = ["0.0.0.0/0", "::/0"].into_iter().filter_map(|range| range.parse().ok());
        let policy = everywhere.fold(AddressPolicy::public(), AddressPolicy::allow);
        let mut runtime = Builder::new_multi_thread();
        let runtime =
            runtime.worker_threads(1).thread_name("toolcrib-otlp").enable_all().build()?;
        let client = Client::builder().addresses(policy).build();
        Ok(Self { client, runtime: Some(runtime) })
    }
}

#[async_trait::async_trait]
impl HttpClient for Exporter {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let Some(runtime) = &self.runtime else { return Err("it has ended".into()) };
        let (parts, body) = request.into_parts();
        let target = Target::parse(&parts.uri.to_string(), NamedBy::Operator)?;
        let mut request = toolcrib_net::Request::new(parts.method, target).body(body);
        let mut name = None;
        for (next, value) in parts.headers {
            name = next.or(name);
            if let Some(name) = &name {
                request = request.header(name.clone(), value);
            }
        }
        let client = self.client.clone();
        let answer = runtime.spawn(async move { client.send(request).await }).await??;
        Ok(Response::builder().status(answer.status).body(answer.body.into())?)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped on a runtime, which must not be blocked.
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}
