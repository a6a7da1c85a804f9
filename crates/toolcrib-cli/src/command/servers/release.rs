//! `toolcrib release NAME`: ends the reservation of a name.

use clap::Args;
use serde_json::Value;
use toolcrib::servers::{OwnerClient, path_segment};

use super::ask_servers::{WHICH, each};
use crate::Exit;
use crate::options::{JsonOutput, Options};

#[derive(Debug, Args)]
#[command(after_help = WHICH)]
pub(crate) struct ReleaseOptions {
    /// The reserved name
    name: String,
    #[command(flatten)]
    output: JsonOutput,
}

pub(in crate::command) fn run(options: &Options, own: &ReleaseOptions) -> anyhow::Result<Exit> {
    let path = format!("/v1/names/{}/release", path_segment(&own.name));
    let released = async |server: &OwnerClient| server.post(&path, None).await;
    each(options, own.output, &released, |answer| release_page(&own.name, answer))
}

fn release_page(name: &str, answer: &Value) -> String {
    match (answer["released"].as_bool(), answer["owner"].as_str()) {
        (Some(true), Some(owner)) => format!("  `{name}` now belongs to {owner}"),
        (Some(true), None) => format!("  `{name}` goes to the next source that declares it"),
        (_, Some(owner)) => format!("  `{name}` was not reserved: it belongs to {owner}"),
        (_, None) => format!("  `{name}` was not reserved"),
    }
}
