//! The command line as people use it: whole runs of the binary.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

/// Compares the output of a command with a file of `snapshots/`.
macro_rules! screen {
    ($name:literal, $text:expr) => {
        insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!($name, $text);
        });
    };
}

mod agents;
mod calls;
mod harness;
mod load;
mod machine;
mod manifests;
mod screens;
mod servers;

// Dependencies of the library that this binary does not use.
use {
    anstream as _, anstyle as _, anyhow as _, clap as _, clap_complete as _, clap_mangen as _,
    comfy_table as _, similar as _, terminal_size as _, toolcrib_builtins as _, toolcrib_cli as _,
    toolcrib_sandbox as _, tracing as _, tracing_subscriber as _,
};

#[cfg(feature = "crawler")]
use toolcrib_web as _;
