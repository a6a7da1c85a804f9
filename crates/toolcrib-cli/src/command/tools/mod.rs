//! Commands about tools: `list`, `show`, `why`, `search`, `call`, `export`.

pub(crate) mod call;
pub(crate) mod export;
pub(crate) mod list;
pub(crate) mod search;
pub(crate) mod show;
pub(crate) mod why;
