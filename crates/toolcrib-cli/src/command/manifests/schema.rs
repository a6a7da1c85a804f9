//! `toolcrib schema`: prints the JSON Schemas of manifests and the config file.

use clap::{Args, ValueEnum};
use toolcrib::manifest::manifest_schema;
use toolcrib::settings::Config;

use crate::{Exit, screen};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib schema manifest > manifest.schema.json
  toolcrib schema config > config.schema.json

Editors with the YAML language server check and complete files that start with
  # yaml-language-server: $schema=../manifest.schema.json")]
pub(crate) struct SchemaOptions {
    /// The kind of file
    #[arg(value_enum)]
    of: Subject,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Subject {
    /// Files in tools.d
    Manifest,
    /// config.yml
    Config,
}

pub(in crate::command) fn run(own: &SchemaOptions) -> anyhow::Result<Exit> {
    screen::json(&match own.of {
        Subject::Manifest => manifest_schema(),
        Subject::Config => Config::json_schema(),
    })?;
    Ok(Exit::Success)
}
