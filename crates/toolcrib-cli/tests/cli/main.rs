//! The command line as people use it: whole runs of the binary.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

/// Holds what a screen says against a file of `snapshots/`.
macro_rules! screen {
    ($name:literal, $text:expr) => {
        insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!($name, $text);
        });
    };
}

mod approval;
mod approvals;
mod bounds;
mod broken_lines;
mod calls;
mod catalogue;
mod checks;
mod command_lines;
mod confined;
mod constraints;
mod control_plane;
mod crib;
mod cuts;
mod deciding;
mod doctor;
mod dry_runs;
mod export_notes;
mod fairness;
mod finding;
mod finding_servers;
mod http;
mod joints;
mod keep_alive;
mod listings;
mod load;
mod lock;
mod lock_besides;
mod lock_files;
mod manifests;
mod meta_tools;
mod numbers;
mod own_process;
mod pauses;
mod processes;
mod programs;
mod reloads;
mod requests;
mod run_places;
mod running;
mod sarif;
mod scaffolds;
mod served_files;
mod settings;
mod settings_files;
mod showing;
mod state;
mod stations;
mod stopping;
mod storm;
mod tests_in_manifests;
mod told;
mod toolsets;
mod trust;
mod two_servers;
mod upstream_revisions;
mod upstreams;
mod without_landlock;

// The library's own dependencies, which this binary does not name.
use {
    anstream as _, anstyle as _, anyhow as _, clap as _, clap_complete as _, clap_mangen as _,
    comfy_table as _, similar as _, terminal_size as _, tokio as _, toolcrib as _,
    toolcrib_builtins as _, toolcrib_cli as _, toolcrib_sandbox as _, tracing as _,
    tracing_subscriber as _,
};
