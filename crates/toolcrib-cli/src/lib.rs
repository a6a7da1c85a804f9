//! The command line of toolcrib as a library: a distribution with its own tools takes ten lines.
//!
//! ```no_run
//! #![deny(unused_crate_dependencies)]
//! use acme_tools as _; // links the crate in; its `#[tool]` fns register themselves
//! # mod acme_tools {}
//!
//! fn main() -> std::process::ExitCode {
//!     toolcrib_cli::main()
//! }
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(unused_crate_dependencies))]

mod arguments;
#[cfg(feature = "otlp")]
mod collector;
mod command;
mod could_not_run;
mod exit;
mod logging;
mod options;
mod runtime;
mod screen;
mod serving;
mod startup;
mod terminal_approver;
mod terminal_line;
mod upstream_wait;

use std::ffi::OsString;
use std::process::ExitCode;

// Links the built-in native tools: a crate that is not used registers nothing.
use toolcrib_builtins as _;
#[cfg(feature = "crawler")]
use toolcrib_web as _;

pub use exit::Exit;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    // Without a `toolcrib-jail` beside this program, as in a distribution, this program is the helper.
    toolcrib_sandbox::jail::reexec_hook();
    // A query of `data_analysis` runs in a process of this program.
    toolcrib::databases::worker_hook();
    main_with(std::env::args_os())
}

/// Runs a command line; the first item is the program's name.
pub fn main_with(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    if let Some(text) = command::setup::reference::topic(&arguments) {
        return match command::setup::reference::print(text) {
            Err(error) if !screen::is_broken_pipe(&error) => could_not_run::report(&error, false),
            _ => Exit::Success,
        }
        .into();
    }
    let (options, command) = match command::parse(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            return could_not_run::report_parse(error, &arguments, command::command_line()).into();
        }
    };
    let is_server = command.is_server();
    logging::start(options.log_format, options.verbose, is_server);
    if command.calls_tools() {
        // Before any tool runs that could replace the file. Whoever needs the helper reports if it
        // is missing.
        toolcrib_sandbox::jail::open_helper();
    }
    let exit = match command::run(&options, &command) {
        Ok(exit) => exit,
        // The reader of our output has closed the pipe, as `| head` does; this is not an error.
        Err(error) if screen::is_broken_pipe(&error) => Exit::Success,
        Err(error) if error.is::<serving::stop::Interrupted>() => {
            screen::note("interrupted");
            Exit::Interrupted
        }
        Err(error) => could_not_run::report(&error, could_not_run::asks_for_json(&arguments)),
    };
    // Programs that a command tool started must not outlive this process.
    toolcrib_sandbox::finish_kills(std::time::Duration::from_secs(2));
    logging::finish();
    exit.into()
}
