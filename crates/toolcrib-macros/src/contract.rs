//! Finds the contract crate under the name by which the calling crate knows it.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

/// The path of the contract: `::toolcrib_tool`, or `::toolcrib::tool` where only the facade is a
/// dependency, each under the name its caller gave it.
///
/// Inside the facade and the contract themselves the name is their own: right for their tests and
/// examples, and for their library if it says `extern crate self as …`.
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
