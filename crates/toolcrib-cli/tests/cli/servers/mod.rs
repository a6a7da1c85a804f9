//! Running servers, their clients and their operators.

mod broken_lines;
mod call_ids;
mod deciding;
mod finding_servers;
mod http;
mod joints;
mod json_logs;
mod reloads;
mod run_places;
mod running;
mod served_files;
mod service;
mod stations;
mod stopping;
mod two_servers;
pub(crate) mod upstreams;
