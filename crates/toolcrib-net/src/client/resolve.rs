//! Resolving names, and handing on no address that may not be dialled.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::error::Error;
use crate::address::{AddressKind, AddressPolicy};

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Turns names into addresses. It decides nothing: whatever it returns is checked.
pub trait Resolver: Send + Sync + 'static {
    /// The addresses of a name, best first.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The machine's own resolver: its hosts file, then DNS, as other programs see them.
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

/// More addresses than this of one name are not tried.
const TRIED: usize = 16;

/// The client's only way to addresses of names: the connection is made to what this returns.
pub(super) struct GuardedResolver(Arc<Guard>);

struct Guard {
    policy: AddressPolicy,
    resolver: Arc<dyn Resolver>,
}

impl GuardedResolver {
    pub(super) fn new(policy: AddressPolicy, resolver: Arc<dyn Resolver>) -> Self {
        Self(Arc::new(Guard { policy, resolver }))
    }
}

impl Guard {
    async fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, Refused> {
        let refused = |why| Refused { host: name.to_owned(), why };
        let found = self.resolver.resolve(name).await;
        let found =
            found.map_err(|error| refused(Why::Unresolved(error.kind(), error.to_string())))?;
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
            Some((address, kind)) => Err(refused(Why::Address(address, kind))),
            None => {
                let nothing = "it has no address".to_owned();
                Err(refused(Why::Unresolved(io::ErrorKind::NotFound, nothing)))
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

/// Why a name leads nowhere; travels through the client below as a source of its error.
#[derive(Debug)]
pub(super) struct Refused {
    host: String,
    why: Why,
}

#[derive(Debug)]
enum Why {
    Unresolved(io::ErrorKind, String),
    Address(IpAddr, AddressKind),
}

impl Refused {
    pub(super) fn to_error(&self) -> Error {
        let host = self.host.clone();
        match &self.why {
            Why::Unresolved(kind, text) => {
                Error::Unresolved { host, source: io::Error::new(*kind, text.clone()) }
            }
            Why::Address(address, kind) => Error::Address { host, address: *address, kind: *kind },
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_error().fmt(f)
    }
}

impl std::error::Error for Refused {}
