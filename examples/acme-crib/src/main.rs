//! toolcrib with the tools of `acme-tools` linked in.
#![cfg_attr(not(test), deny(unused_crate_dependencies))]

#[cfg(not(forgotten))] // only for this example's test; yours needs just the next line
use acme_tools as _;

fn main() -> std::process::ExitCode {
    toolcrib_cli::main()
}
