//! Resolves names, and returns only addresses that may be dialled.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::error::Error;
use crate::address::{AddressKind, AddressPolicy};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Resolves names to addresses. Its results are always checked.
pub trait Resolver: Send + Sync + 'static {
    /// The addresses of a name, best first.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The machine's own resolver: the hosts file, then DNS, as for other programs.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// At most this many addresses of a name are tried.
const TRIED: usize = 16;

/// The client's only source of addresses for names: connections are made to what it returns.
pub(super) struct GuardedResolver(Arc<AddressGuard>);

struct AddressGuard {
    policy: AddressPolicy,
    resolver: Arc<dyn Resolver>,
}

impl GuardedResolver {
    pub(super) fn new(policy: AddressPolicy, resolver: Arc<dyn Resolver>) -> Self {
        Self(Arc::new(AddressGuard { policy, resolver }))
    }
}

impl AddressGuard {
    async fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, RefusedAddress> {
        let refused = |why| RefusedAddress { host: name.to_owned(), why };
        let found = self.resolver.resolve(name).await;
        let found = found
            .map_err(|error| refused(RefusalReason::Unresolved(error.kind(), error.to_string())))?;
        let mut allowed = Vec::new();
        let mut first_refused = None;
        for address in found {
            match self.policy.check(address) {
                Ok(()) => allowed.push(SocketAddr::new(address, 0)),
                Err(kind) => first_refused = first_refused.or(Some((address, kind))),
            }
        }
        allowed.truncate(TRIED);
        match first_refused {
            _ if !allowed.is_empty() => Ok(allowed),
            Some((address, kind)) => Err(refused(RefusalReason::Address(address, kind))),
            None => {
                let nothing = "it has no address".to_owned();
                Err(refused(RefusalReason::Unresolved(io::ErrorKind::NotFound, nothing)))
            }
        }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.0);
        Box::pin(async move {
            let addresses = guard.addresses(name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Why a name has no allowed address; it is a source in the error of the underlying client.
#[derive(Debug)]
pub(super) struct RefusedAddress {
    host: String,
    why: RefusalReason,
}

#[derive(Debug)]
enum RefusalReason {
    Unresolved(io::ErrorKind, String),
    Address(IpAddr, AddressKind),
}

impl RefusedAddress {
    pub(super) fn to_error(&self) -> Error {
        let host = self.host.clone();
        match &self.why {
            RefusalReason::Unresolved(kind, text) => {
                Error::Unresolved { host, source: io::Error::new(*kind, text.clone()) }
            }
            RefusalReason::Address(address, kind) => {
                Error::Address { host, address: *address, kind: *kind }
            }
        }
    }
}

impl fmt::Display for RefusedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_error().fmt(f)
    }
}

impl std::error::Error for RefusedAddress {}
