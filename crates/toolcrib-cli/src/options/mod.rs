//! Options that several commands share.

mod server_flags;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use clap::Args;
use toolcrib::core::Toolset;
use toolcrib::{ToolEntry, Toolcrib, TurnOptions, UnknownToolset};

use crate::logging::LogFormat;

pub(crate) use server_flags::ServerFlags;

/// The heading of the options that every command has.
const GLOBAL: &str = "Global options";

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The config file, YAML or TOML [default: config.yml, config.yaml or config.toml, if it exists]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE", env = "TOOLCRIB_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// A setting that overrides the config file and the environment (may be repeated)
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "SECTION.KEY=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,

    /// A directory of manifests to use instead of those in the config (may be repeated)
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "DIR")]
    pub(crate) tools_dir: Vec<PathBuf>,

    /// A value that tools get with each call and that models cannot set, such as user=ada (may be repeated)
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "KEY=VALUE")]
    pub(crate) ctx: Vec<String>,

    /// Log more on standard error (-v, -vv, -vvv)
    #[arg(short, long, global = true, help_heading = GLOBAL, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// The format of log lines
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL,
        value_name = "FORMAT",
        env = "TOOLCRIB_LOG_FORMAT",
        value_enum,
        default_value_t
    )]
    pub(crate) log_format: LogFormat,

    /// The command's own server settings.
    #[arg(skip)]
    pub(crate) server: Option<ServerFlags>,
}

impl Options {
    /// Collects repeatable options from the whole command line, in order. The parser keeps only
    /// those after the subcommand if there are any, so settings before it would be lost.
    pub(crate) fn restore_repeated(&mut self, arguments: &[OsString]) {
        let texts = |option| {
            occurrences(arguments, option).filter_map(|value| value.to_str().map(str::to_owned))
        };
        self.set = texts("--set").filter_map(|pair| setting(&pair).ok()).collect();
        self.ctx = texts("--ctx").collect();
        self.tools_dir = occurrences(arguments, "--tools-dir").map(PathBuf::from).collect();
    }
}

/// The values of an option, given as `--option value` or `--option=value`, up to a `--`. The parser
/// has accepted the command line, and no option takes a value that starts with a dash.
fn occurrences<'a>(
    arguments: &'a [OsString],
    option: &'a str,
) -> impl Iterator<Item = &'a OsStr> + 'a {
    let mut rest = arguments.iter().take_while(|argument| *argument != "--");
    std::iter::from_fn(move || {
        loop {
            let argument = rest.next()?;
            if argument == option {
                return rest.next().map(OsString::as_os_str);
            }
            let bytes = argument.as_encoded_bytes().strip_prefix(option.as_bytes());
            if let Some(value) = bytes.and_then(|rest| rest.strip_prefix(b"=")) {
                return Some(OsStr::from_bytes(value));
            }
        }
    })
}

/// Parses `executor.tool_timeout=5s`.
fn setting(pair: &str) -> Result<(String, String), String> {
    match pair.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => {
            Err("a setting has the form SECTION.KEY=VALUE, such as executor.tool_timeout=5s".into())
        }
    }
}

/// Whether a read-only command may ask other MCP servers.
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

/// The toolset that a command is limited to.
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
    /// The name of the toolset, if there is one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.toolset.as_deref()
    }

    /// The options of a turn over these tools.
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

    /// Whether the toolset contains a tool.
    pub(crate) fn allows(&self, crib: &Toolcrib, tool: &ToolEntry) -> Result<bool, UnknownToolset> {
        match &self.toolset {
            None => Ok(true),
            Some(name) => Ok(crib.toolset(name)?.allows(tool)),
        }
    }
}
