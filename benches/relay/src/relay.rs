//! The least that a server between client and model can be: it passes the request and the answer on as they come.

use std::io::Write as _;
use std::net::Ipv4Addr;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::Response;
use axum::serve::ListenerExt as _;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;

use crate::Failure;

/// The first argument of a process that is to relay; the second one is the model's address.
pub(crate) const WORD: &str = "relay-for-bench";

#[derive(Clone)]
struct Onward {
    client: Client<HttpConnector, Body>,
    model: Uri,
}

/// Serves until it is ended. Its first line is its port.
pub(crate) fn serve(model: &str) -> Result<(), Failure> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let onward = Onward { client, model: format!("http://{model}/v1/responses").parse()? };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let mut output = std::io::stdout();
        writeln!(output, "{}", listener.local_addr()?.port())?;
        output.flush()?;
        let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
        let app = axum::Router::new().fallback(pass_on).with_state(onward);
        Ok(axum::serve(listener, app).await?)
    })
}

async fn pass_on(State(onward): State<Onward>, request: Request) -> Result<Response, StatusCode> {
    let (mut head, body) = request.into_parts();
    head.uri = onward.model.clone();
    head.headers.remove(header::HOST);
    let request = Request::from_parts(head, body);
    let answer = onward.client.request(request).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    let mut answer = answer.map(Body::new);
    // The connection to the client has its own framing.
    answer.headers_mut().remove(header::TRANSFER_ENCODING);
    Ok(answer)
}
