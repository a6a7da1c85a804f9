//! The `toolcrib` binary. A distribution with its own tools is this file plus one `use`.
#![forbid(unsafe_code)]
// A crate of tools that is not used is not linked and registers nothing: make a forgotten `use x as
// _;` a compile error.
#![cfg_attr(not(test), deny(unused_crate_dependencies))]

// The library uses these crates; the binary only starts it.
use {
    anstream as _, anstyle as _, anyhow as _, clap as _, clap_complete as _, clap_mangen as _,
    comfy_table as _, rustix as _, serde as _, serde_json as _, similar as _, terminal_size as _,
    tokio as _, toolcrib as _, toolcrib_builtins as _, toolcrib_sandbox as _, toolcrib_search as _,
    tracing as _, tracing_subscriber as _,
};

#[cfg(feature = "otlp")]
use toolcrib_otlp as _;
#[cfg(feature = "crawler")]
use toolcrib_web as _;

fn main() -> std::process::ExitCode {
    toolcrib_cli::main()
}
