//! TLS: which servers the client trusts, and that nothing is sent to others.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use toolcrib_net::Error;

use crate::server::{get, local};

/// A self-signed certificate for `localhost` and 127.0.0.1.
const CERTIFICATE: &[u8] = include_bytes!("nobodys.crt.der");
const KEY: &[u8] = include_bytes!("nobodys.key.der");

#[tokio::test]
async fn an_untrusted_certificate_fails_the_connection() {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(KEY));
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)
            .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let handshake = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        acceptor.accept(socket).await.map(drop)
    });
    let error =
        get(&local().build(), &format!("https://127.0.0.1:{port}/s3cret")).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("invalid peer certificate"), "{text}");
    assert!(error.nothing_was_sent() && !text.contains("s3cret"));
    assert!(handshake.await.unwrap().is_err(), "the client hung up before it said anything");
}
