//! The `toolcrib` binary. A distribution with tools of its own is this file plus one `use`.
#![forbid(unsafe_code)]
// A crate of tools that nobody names is not linked, and registers nothing: forgetting its
// `use x as _;` must not compile.
#![cfg_attr(not(test), deny(unused_crate_dependencies))]

// The library beside this file uses these; the binary only starts it.
use {
    anstream as _, anstyle as _, anyhow as _, clap as _, clap_complete as _, clap_mangen as _,
    comfy_table as _, serde_json as _, similar as _, terminal_size as _, tokio as _, toolcrib as _,
    toolcrib_builtins as _, toolcrib_sandbox as _, tracing as _, tracing_subscriber as _,
};

#[cfg(feature = "otlp")]
use toolcrib_otlp as _;

fn main() -> std::process::ExitCode {
    toolcrib_cli::main()
}
