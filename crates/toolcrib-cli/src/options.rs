//! Options that several commands have.

mod server_flags;

use std::path::PathBuf;

use clap::Args;
use toolcrib::core::Toolset;
use toolcrib::{ToolEntry, Toolcrib, TurnOptions, UnknownToolset};

use crate::logging::LogFormat;

pub(crate) use server_flags::ServerFlags;

/// What every command can be told.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The config file (YAML or TOML) [default: config.yml or config.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE", env = "TOOLCRIB_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// A setting, over the config file and the environment (may be repeated)
    #[arg(long, global = true, value_name = "SECTION.KEY=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,

    /// A directory of manifests, instead of the config's (may be repeated)
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) tools_dir: Vec<PathBuf>,

    /// A value for the context of calls, which no model can set (may be repeated)
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub(crate) ctx: Vec<String>,

    /// Log more on standard error (-v, -vv, -vvv)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// What a line of the log looks like
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        env = "TOOLCRIB_LOG_FORMAT",
        value_enum,
        default_value_t
    )]
    pub(crate) log_format: LogFormat,

    /// What the command itself says of the server's settings.
    #[arg(skip)]
    pub(crate) server: Option<ServerFlags>,
}

/// `executor.tool_timeout=5s`, taken apart.
fn setting(pair: &str) -> Result<(String, String), String> {
    match pair.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a setting is written SECTION.KEY=VALUE, such as executor.tool_timeout=5s".into()),
    }
}

/// Whether a command that only looks may ask other MCP servers.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ConnectChoice {
    /// Start or connect to other MCP servers and ask for their tools, instead of using what is pinned
    #[arg(long)]
    pub(crate) connect: bool,
}

/// Output for programs.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct JsonOutput {
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which tools the command is about.
#[derive(Debug, Clone, Args)]
pub(crate) struct ToolsetChoice {
    /// Only the tools of this toolset of the config
    #[arg(long, value_name = "NAME")]
    toolset: Option<String>,
}

impl From<Option<String>> for ToolsetChoice {
    fn from(toolset: Option<String>) -> Self {
        Self { toolset }
    }
}

impl ToolsetChoice {
    /// What a turn over these tools is opened with.
    pub(crate) fn turn_options(&self, crib: &Toolcrib) -> Result<TurnOptions, UnknownToolset> {
        let options = crib.turn_options();
        Ok(match &self.toolset {
            None => options,
            Some(name) => options.toolset(crib.toolset(name)?),
        })
    }

    /// The toolset, if there is one.
    pub(crate) fn chosen(&self, crib: &Toolcrib) -> Result<Option<Toolset>, UnknownToolset> {
        self.toolset.as_ref().map(|name| crib.toolset(name)).transpose()
    }

    /// Whether a tool is one of them.
    pub(crate) fn allows(&self, crib: &Toolcrib, tool: &ToolEntry) -> Result<bool, UnknownToolset> {
        match &self.toolset {
            None => Ok(true),
            Some(name) => Ok(crib.toolset(name)?.allows(tool)),
        }
    }
}
