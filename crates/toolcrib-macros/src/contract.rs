//! Finds the path of the contract crate in the calling crate.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

/// The path of the contract: `::toolcrib_tool`, or `::toolcrib::tool` if only the facade is a dependency, each under
/// the name in the caller's `Cargo.toml`.
///
/// Inside the facade and the contract crate the path uses their own names. That is right for their tests and examples,
/// and for their library if it declares `extern crate self as …`.
pub(crate) fn contract() -> syn::Result<TokenStream> {
    if let Ok(found) = crate_name("toolcrib-tool") {
        let krate = identifier(&found, "toolcrib_tool");
        return Ok(quote!(::#krate));
    }
    if let Ok(found) = crate_name("toolcrib") {
        let krate = identifier(&found, "toolcrib");
        return Ok(quote!(::#krate::tool));
    }
    Err(syn::Error::new(
        Span::call_site(),
        "`#[tool]` needs `toolcrib` (or `toolcrib-tool`) among this crate's dependencies: \
         add it to [dependencies] in Cargo.toml",
    ))
}

fn identifier(found: &FoundCrate, own_name: &str) -> Ident {
    let name = match found {
        FoundCrate::Itself => own_name,
        FoundCrate::Name(name) => name,
    };
    Ident::new(name, Span::call_site())
}
