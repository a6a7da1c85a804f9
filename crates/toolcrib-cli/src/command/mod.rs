//! The commands, their options and their help.

pub(crate) mod agents;
pub(crate) mod manifests;
pub(crate) mod servers;
pub(crate) mod setup;
pub(crate) mod tools;

use crate::command::agents::run as run_agent;
use crate::command::agents::runs;
use crate::command::manifests::accept;
use crate::command::manifests::check;
use crate::command::manifests::enable;
use crate::command::manifests::lock;
use crate::command::manifests::new;
use crate::command::manifests::schema;
use crate::command::manifests::test;
use crate::command::manifests::trust;
use crate::command::servers::approvals;
use crate::command::servers::health;
use crate::command::servers::mcp;
use crate::command::servers::release;
use crate::command::servers::reload;
use crate::command::servers::reset;
use crate::command::servers::serve;
use crate::command::servers::stats;
use crate::command::servers::status;
use crate::command::servers::token;
use crate::command::setup::completions;
use crate::command::setup::config;
use crate::command::setup::doctor;
use crate::command::setup::init;
use crate::command::setup::man;
use crate::command::setup::state;
use crate::command::tools::call;
use crate::command::tools::export;
use crate::command::tools::list;
use crate::command::tools::search;
use crate::command::tools::show;
use crate::command::tools::why;
use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::Exit;
use crate::options::{Options, ServerFlags};

/// The guarded tool crib for LLM agents: manages tools, checks every call, serves them over MCP.
#[derive(Debug, Parser)]
#[command(
    name = "toolcrib",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Examples:
  toolcrib init                                  set up a folder with a first tool
  toolcrib list                                  list the tools
  toolcrib search disk space                     find a tool
  toolcrib call calculator expression='2 + 2'    call a tool
  toolcrib run 'Which disks are nearly full?'    let an agent work with the tools
  toolcrib check tools.d                         check manifests
  toolcrib test tools.d                          run the tests in them
  toolcrib mcp                                   serve MCP on standard input and output
  toolcrib serve                                 serve the HTTP API and MCP on 127.0.0.1:7777
  toolcrib help manifest                         the reference of manifests (also: diagnostics, lock-file, reloading)

Exit codes: 0 success; 1 a call, a test or a check failed, or nothing was found; 2 the command could
not run; 3 a run of an agent waits for somebody; 130 interrupted."
)]
struct CommandLine {
    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the tools; with --all also unavailable ones, with the reasons
    List(list::ListOptions),
    /// Show one tool: its description, its parameters and its source
    Show(show::ShowOptions),
    /// Show who owns a name, which other sources declare it, and why a tool is unavailable
    Why(why::WhyOptions),
    /// Find tools by words
    Search(search::SearchOptions),
    /// Call a tool
    Call(call::CallOptions),
    /// Let an agent work with the tools until it has an answer
    Run(run_agent::RunOptions),
    /// List, show, cancel and export runs of agents
    Runs(runs::RunsOptions),
    /// Check manifests and names without running anything
    Check(check::CheckOptions),
    /// Set up a folder: a config, a first tool and the entry for a client
    Init(init::InitOptions),
    /// Create a manifest for a new tool, with comments and tests
    New(new::NewOptions),
    /// Load a manifest of the catalogue, or list the catalogue
    Enable(enable::EnableOptions),
    /// No longer load a manifest of the catalogue
    Disable(enable::DisableOptions),
    /// Run the tests in manifests
    Test(test::TestCommand),
    /// Record the current tools in the lock file, or show what changed since they were recorded
    Lock(lock::LockOptions),
    /// Accept the changed definition of a tool of another MCP server
    Accept(accept::AcceptOptions),
    /// Trust tools that may do more than the workspace allows
    Trust(trust::TrustOptions),
    /// Serve MCP on standard input and output
    Mcp(mcp::StdioOptions),
    /// Serve the HTTP API, and MCP over HTTP
    Serve(serve::ServeOptions),
    /// Create a token for a client of the server
    Token(token::TokenOptions),
    /// Check that the server answers, for the probes of containers
    Health(health::HealthOptions),
    /// Show the running servers, their files and their tools
    Status(status::StatusOptions),
    /// Make running servers read the config and the manifests again
    Reload(reload::ReloadOptions),
    /// Show statistics of the tools of running servers
    Stats(stats::StatsOptions),
    /// List, show, approve and deny calls that wait for approval in running servers
    Approvals(approvals::ApprovalsOptions),
    /// End the reservation of a name in the running servers
    Release(release::ReleaseOptions),
    /// End the pause of a tool that timed out repeatedly, or restart an MCP server, in the running servers
    Reset(reset::ResetOptions),
    /// Print the tools in a provider's format
    Export(export::ExportOptions),
    /// Show the settings in effect, and where each comes from
    Config(config::ConfigOptions),
    /// Back up what is stored, or restore a backup
    State(state::StateOptions),
    /// Check this machine: what it can enforce, which promises do not hold, and how to fix that
    Doctor(doctor::DoctorOptions),
    /// Print the JSON Schema of manifests or of the config file
    Schema(schema::SchemaOptions),
    /// Print shell completions
    Completions(completions::CompletionOptions),
    /// Print the manual page, or write one page for each command
    Man(man::ManOptions),
}

impl Command {
    /// The command's own server settings.
    fn server_flags(&self) -> Option<&ServerFlags> {
        match self {
            Self::Serve(own) => Some(own.settings()),
            Self::Config(own) => Some(own.server_settings()),
            _ => None,
        }
    }

    /// Whether the command calls tools or serves them to others.
    pub(crate) fn calls_tools(&self) -> bool {
        self.is_server() || matches!(self, Self::Call(_) | Self::Run(_) | Self::Test(_))
    }

    /// Whether the command serves until it is stopped.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Mcp(_))
    }
}

/// The commands with their help as it is displayed.
pub(crate) fn command_line() -> clap::Command {
    unwrapped(CommandLine::command())
}

/// Joins the lines of each paragraph in the after-help of a command and its subcommands, so that
/// only the terminal's width determines line breaks.
fn unwrapped(mut command: clap::Command) -> clap::Command {
    if let Some(text) = command.get_after_help().map(|text| joined(&text.ansi().to_string())) {
        command = command.after_help(text);
    }
    command.mut_subcommands(unwrapped)
}

/// Joins each paragraph to one line. Indented lines, such as examples, and the line before them are
/// kept.
fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut continues = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        match (continues && is_prose, joined.is_empty()) {
            (true, _) => joined.push(' '),
            (false, false) => joined.push('\n'),
            (false, true) => {}
        }
        joined.push_str(line);
        continues = is_prose;
    }
    joined
}

/// Parses a command line; the first item is the program's name.
pub(crate) fn parse(arguments: &[OsString]) -> Result<(Options, Command), clap::Error> {
    let matches = command_line().try_get_matches_from(arguments)?;
    let CommandLine { mut options, command } = CommandLine::from_arg_matches(&matches)?;
    options.restore_repeated(arguments);
    options.server = command.server_flags().cloned();
    Ok((options, command))
}

/// Runs one command.
pub(crate) fn run(options: &Options, command: &Command) -> anyhow::Result<Exit> {
    match command {
        Command::List(own) => list::run(options, own),
        Command::Show(own) => show::run(options, own),
        Command::Call(own) => call::run(options, own),
        Command::Run(own) => run_agent::run(options, own),
        Command::Runs(own) => runs::run(options, own),
        Command::Check(own) => check::run(options, own),
        Command::Init(own) => init::run(own),
        Command::New(own) => new::run(options, own),
        Command::Enable(own) => enable::run(options, own),
        Command::Disable(own) => enable::disable(options, own),
        Command::Test(own) => test::run(options, own),
        Command::Lock(own) => lock::run(options, own),
        Command::Accept(own) => accept::run(options, own),
        Command::Trust(own) => trust::run(options, own),
        Command::Mcp(own) => mcp::run(options, own),
        Command::Serve(own) => serve::run(options, own),
        Command::Token(own) => token::run(own),
        Command::Config(own) => config::run(options, own),
        Command::Why(own) => why::run(options, own),
        Command::Search(own) => search::run(options, own),
        Command::Health(own) => health::run(options, own),
        Command::Status(own) => status::run(options, own),
        Command::Reload(own) => reload::run(options, own),
        Command::Stats(own) => stats::run(options, own),
        Command::Approvals(own) => approvals::run(options, own),
        Command::Release(own) => release::run(options, own),
        Command::Reset(own) => reset::run(options, own),
        Command::Export(own) => export::run(options, own),
        Command::State(own) => state::run(options, own),
        Command::Doctor(own) => doctor::run(options, own),
        Command::Schema(own) => schema::run(own),
        Command::Completions(own) => completions::run(own, command_line()),
        Command::Man(own) => man::run(own, command_line()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The help texts of a command and its subcommands, at the usual terminal width.
    fn helps(command: &mut clap::Command, all: &mut Vec<(String, String)>) {
        let name = command.get_name().to_owned();
        let help = command.clone().term_width(80).render_long_help().to_string();
        all.push((name, help));
        for own in command.get_subcommands_mut() {
            helps(own, all);
        }
    }

    #[test]
    fn no_line_of_a_help_is_wider_than_the_terminal_or_broken_twice() {
        let mut all = Vec::new();
        helps(&mut command_line(), &mut all);
        assert!(all.len() > 20, "every command has a help");
        for (name, help) in all {
            // A line that was broken before folding leaves a few words on a line of their own.
            let lines: Vec<&str> = help.lines().collect();
            for pair in lines.windows(2) {
                let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
                let [first, next] = pair else { continue };
                if !is_prose(first) || !is_prose(next) || first.ends_with(':') {
                    continue;
                }
                let word = next.split(' ').next().unwrap_or_default().len();
                let room = first.chars().count() + 1 + word;
                assert!(room > 80, "{name}: {first:?} has room for the next word of {next:?}");
            }
        }
    }

    #[test]
    fn paragraphs_are_joined_and_examples_stay() {
        assert_eq!(
            joined("Examples:\n  a b\n  c\n\nOne\ntwo\n\nThree"),
            "Examples:\n  a b\n  c\n\nOne two\n\nThree"
        );
    }
}
