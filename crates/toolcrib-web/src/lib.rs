//! The web tools of toolcrib: `web_search`, `fetch_page`, `crawl_batch` and `image_generate`.
//!
//! Linking the crate registers its tools. A call gets its settings, its cache and its HTTP clients from the service
//! [`Web`], which the host lends:
//!
//! ```
//! use std::sync::Arc;
//!
//! use toolcrib_tool::Services;
//! use toolcrib_web::{ApiKeys, SearchProvider, SearchProviderKind, Web, WebSettings};
//!
//! let mut settings = WebSettings::default();
//! assert!(!settings.offers("web_search") && settings.offers("fetch_page"));
//! settings.search.push(SearchProvider::new(SearchProviderKind::DuckDuckGo));
//! assert!(settings.offers("web_search"));
//! let services = Services::new().with(Arc::new(Web::new(settings, ApiKeys::none())));
//! ```
//!
//! What a page or a search says was written by others. Each result says so around the text ([`untrusted`]), and its
//! data has `untrusted: true`. All requests go through [`toolcrib_net`], which checks every address and every redirect.
#![forbid(unsafe_code)]

mod crawl;
mod failure;
mod host_limits;
mod image;
mod page;
mod search;
mod service;
mod settings;
pub mod untrusted;

pub use page::{ExtractType, PageText, extract_text};
pub use service::{ApiKeys, Web};
pub use settings::{ImageSettings, PageSettings, SearchProvider, SearchProviderKind, WebSettings};
pub use toolcrib_net::IpNet;

/// The crate whose linked tools these are: the unit that declares them.
pub const CRATE: &str = env!("CARGO_PKG_NAME");
