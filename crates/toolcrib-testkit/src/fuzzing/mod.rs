//! The bodies of the fuzz targets: each takes any bytes and panics if a promise is broken.
//!
//! A body compares the code with an independent implementation (another parser, a short model), instead of only
//! checking that nothing crashes.

mod agent_journal;
mod ambiguity;
mod check_url;
mod edit_text;
mod find_tools;
mod load_manifest;
mod model_stream;
mod parse_arguments;
mod preparation_model;
mod registry_model;
mod registry_operations;
mod served_request;
mod workspace_path;

pub use agent_journal::agent_journal;
pub use check_url::check_url;
pub use edit_text::edit_text;
pub use find_tools::find_tools;
pub use load_manifest::load_manifest;
pub use model_stream::{anthropic_stream, chat_stream, responses_stream};
pub use parse_arguments::parse_arguments;
pub use registry_operations::registry_operations;
pub use served_request::served_request;
pub use workspace_path::workspace_path;

/// A target: its name and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, under the name of its folder of seeds.
pub const TARGETS: &[Target] = &[
    ("parse_arguments", parse_arguments),
    ("load_manifest", load_manifest),
    ("check_url", check_url),
    ("registry_operations", registry_operations),
    ("edit_text", edit_text),
    ("find_tools", find_tools),
    ("workspace_path", workspace_path),
    ("chat_stream", chat_stream),
    ("responses_stream", responses_stream),
    ("anthropic_stream", anthropic_stream),
    ("agent_journal", agent_journal),
    ("served_request", served_request),
];
