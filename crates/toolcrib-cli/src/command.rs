//! The commands, their options and their help.

mod accept;
mod beside;
mod call;
mod check;
mod config;
mod doctor;
mod export;
mod generate;
mod list;
mod lock;
mod mcp;
mod new;
mod running;
mod schema;
mod search;
mod serve;
mod server_flags;
mod show;
mod stop;
mod test;
mod token;
mod why;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use toolcrib::core::Toolset;
use toolcrib::{ToolEntry, Toolcrib, TurnOptions, UnknownToolset};

use self::server_flags::ServerFlags;
use crate::Exit;
use crate::logging::LogFormat;

/// The guarded tool crib of LLM agents: keeps tools, checks every call, serves them over MCP.
#[derive(Debug, Parser)]
#[command(
    name = "toolcrib",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Examples:
  toolcrib list                                  what is in the crib
  toolcrib search disk space                     find a tool
  toolcrib call calculator expression='2 + 2'    call a tool
  toolcrib check tools.d                         check manifests
  toolcrib test tools.d                          run the tests in them
  toolcrib mcp                                   serve MCP on standard input and output
  toolcrib serve                                 serve the HTTP API and MCP on 127.0.0.1:7777

Exit codes: 0 it worked; 1 the call, a test or the check failed, or nothing was found; 2 it could
not run; 130 interrupted."
)]
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

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the tools, and with --all also those that cannot be called and why
    List(list::ListOptions),
    /// Show one tool: what it says, what it takes, where it comes from
    Show(show::ShowOptions),
    /// Say who owns a name, who wants it, and why a tool cannot be called
    Why(why::WhyOptions),
    /// Find tools by words
    Search(search::SearchOptions),
    /// Call a tool
    Call(call::CallOptions),
    /// Check manifests and names without running anything
    Check(check::CheckOptions),
    /// Make a first manifest of a tool, with comments and tests
    New(new::NewOptions),
    /// Run the tests that stand in manifests
    Test(test::TestCommand),
    /// Accept the tools as they are declared now, or see what has changed since they were accepted
    Lock(lock::LockOptions),
    /// Accept the changed definition of a tool of another MCP server
    Accept(accept::AcceptOptions),
    /// Serve MCP on standard input and output
    Mcp(mcp::StdioOptions),
    /// Serve the HTTP API, and MCP over HTTP
    Serve(serve::ServeOptions),
    /// Make a token for a client of the server
    Token(token::TokenOptions),
    /// Show the servers that run, their files and what they have
    Status(running::StatusOptions),
    /// Let the servers that run read their manifests again
    Reload(running::ReloadOptions),
    /// Show what the tools of the servers that run have done
    Stats(running::StatsOptions),
    /// End the reservation of a name in the servers that run
    Release(running::ReleaseOptions),
    /// Print the tools in a provider's format
    Export(export::ExportOptions),
    /// Show the settings that are in effect, and where each is from
    Config(config::ConfigOptions),
    /// Say what this machine offers, and which promises do not hold here and why
    Doctor(doctor::DoctorOptions),
    /// Print the JSON Schema of manifests or of the config file
    Schema(schema::SchemaOptions),
    /// Print the completions of a shell
    Completions(generate::CompletionOptions),
    /// Print the manual page, or write a page per command
    Man(generate::ManOptions),
}

impl Command {
    /// What the command itself says of the server's settings.
    pub(crate) fn server_flags(&self) -> Option<&ServerFlags> {
        match self {
            Self::Serve(own) => Some(own.settings()),
            Self::Config(own) => Some(own.server_settings()),
            _ => None,
        }
    }
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

impl ToolsetChoice {
    /// What a turn over these tools is opened with.
    fn turn_options(&self, crib: &Toolcrib) -> Result<TurnOptions, UnknownToolset> {
        let options = crib.turn_options();
        Ok(match &self.toolset {
            None => options,
            Some(name) => options.toolset(crib.toolset(name)?.clone()),
        })
    }

    /// The toolset, if there is one.
    fn chosen<'c>(&self, crib: &'c Toolcrib) -> Result<Option<&'c Toolset>, UnknownToolset> {
        self.toolset.as_ref().map(|name| crib.toolset(name)).transpose()
    }

    /// Whether a tool is one of them.
    fn allows(&self, crib: &Toolcrib, tool: &ToolEntry) -> Result<bool, UnknownToolset> {
        match &self.toolset {
            None => Ok(true),
            Some(name) => Ok(crib.toolset(name)?.allows(tool)),
        }
    }
}

/// `executor.tool_timeout=5s`, taken apart.
fn setting(pair: &str) -> Result<(String, String), String> {
    match pair.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a setting is written SECTION.KEY=VALUE, such as executor.tool_timeout=5s".into()),
    }
}

/// Runs one command.
pub(crate) fn run(options: &Options) -> anyhow::Result<Exit> {
    match &options.command {
        Command::List(own) => list::run(options, own),
        Command::Show(own) => show::run(options, own),
        Command::Call(own) => call::run(options, own),
        Command::Check(own) => check::run(options, own),
        Command::New(own) => new::run(options, own),
        Command::Test(own) => test::run(options, own),
        Command::Lock(own) => lock::run(options, own),
        Command::Accept(own) => accept::run(options, own),
        Command::Mcp(own) => mcp::run(options, own),
        Command::Serve(own) => serve::run(options, own),
        Command::Token(own) => token::run(own),
        Command::Config(own) => config::run(options, own),
        Command::Why(own) => why::run(options, own),
        Command::Search(own) => search::run(options, own),
        Command::Status(own) => running::status(options, own),
        Command::Reload(own) => running::reload(options, own),
        Command::Stats(own) => running::stats(options, own),
        Command::Release(own) => running::release(options, own),
        Command::Export(own) => export::run(options, own),
        Command::Doctor(own) => doctor::run(options, own),
        Command::Schema(own) => schema::run(own),
        Command::Completions(own) => generate::completions(own),
        Command::Man(own) => generate::man(own),
    }
}

/// Runs a command that calls tools, on a runtime of its own.
fn block_on<T>(command: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(command);
    // A thread that reads a terminal, or a tool's that nobody waits for any more, cannot be
    // stopped; it ends with the process.
    runtime.shutdown_background();
    Ok(outcome)
}
