//! Options that take a value, of programs that also have options which run something: a word behind any
//! other option may be an option itself.

mod data;
mod development;
mod files;
mod network;

pub(super) use data::*;
pub(super) use development::*;
pub(super) use files::*;
pub(super) use network::*;
