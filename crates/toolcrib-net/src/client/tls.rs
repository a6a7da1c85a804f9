//! TLS: rustls with ring, and the root certificates of this machine.

use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, RootCertStore};

use super::error::Error;

/// The root certificates, read once per process: every client trusts the same.
static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();

/// The TLS settings of a client. Reads files at the first call.
///
/// The provider is passed explicitly and not installed for the process, because a host may have its own. Without any
/// root certificate every handshake fails with `UnknownIssuer`; plain http works.
pub(super) fn config() -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Setup(error.to_string()))?;
    let roots = Arc::clone(ROOTS.get_or_init(|| Arc::new(roots())));
    Ok(versions.with_root_certificates(roots).with_no_client_auth())
}

fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // Skip an unreadable certificate; the others stay trusted.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
