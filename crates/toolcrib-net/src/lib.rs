#![doc = include_str!("docs/net.md")]
#![forbid(unsafe_code)]

mod address;
#[cfg(feature = "client")]
mod client;
mod encode;
mod host_name;
mod target;

pub use address::{AddressKind, AddressPolicy};
pub use encode::encode_component;
pub use ipnet::IpNet;
pub use target::{FORBIDDEN_IN_URLS, NamedBy, Target, URL_MAX_BYTES, UrlRefusal};
pub use url::Host;

#[cfg(feature = "client")]
pub use client::{
    BoxFuture, Client, ClientBuilder, Error, Limits, RedirectRefusal, Request, Resolver, Response,
    SystemResolver,
};
/// The error of requests with [`Client::of_server`]'s client.
#[cfg(feature = "client")]
pub use reqwest::Error as TransportError;
/// The client that [`Client::of_server`] makes, and its responses.
#[cfg(feature = "client")]
pub use reqwest::{Client as TransportClient, Response as TransportResponse};
/// The types of methods, statuses and headers: those of the `http` crate.
#[cfg(feature = "client")]
pub use reqwest::{Method, StatusCode, header};
