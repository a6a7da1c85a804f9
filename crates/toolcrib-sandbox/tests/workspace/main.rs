//! What a `Workspace` promises: nothing outside, nothing half, nobody waiting for ever.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "what is skipped is said")]

mod changes;
mod control_plane;
mod fixture;
mod oracle;
mod paths;
mod races;
mod sharing;
mod special;
mod walks;

use toolcrib_sandbox::{Workspace, WorkspaceBuilder, WorkspaceError};

/// The ways in which paths are looked up; every promise holds for each.
const LOOKUPS: [&str; 3] = ["kernel", "steps", "portable"];

fn with_lookup(builder: WorkspaceBuilder, lookup: &str) -> Workspace {
    let builder = match lookup {
        "steps" => builder.in_steps(),
        "portable" => builder.portably(),
        _ => builder,
    };
    builder.open().unwrap()
}

/// The kind of an error, as its variant is called.
fn kind(error: &WorkspaceError) -> String {
    let text = format!("{error:?}");
    text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned()
}

/// Runs a test as root, if that is who runs the tests, and as a plain user.
fn as_everybody(test: impl Fn() + Send + Sync) {
    test();
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped as root: the tests are run by a plain user");
        return;
    }
    std::thread::scope(|scope| {
        let plain = scope.spawn(|| {
            let nobody = (rustix::fs::Uid::from_raw(65534), rustix::fs::Gid::from_raw(65534));
            rustix::thread::set_thread_groups(&[]).unwrap();
            rustix::thread::set_thread_res_gid(nobody.1, nobody.1, nobody.1).unwrap();
            rustix::thread::set_thread_res_uid(nobody.0, nobody.0, nobody.0).unwrap();
            test();
        });
        if let Err(panic) = plain.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// A folder for many small trees: in memory, where there is room in it for everybody.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
