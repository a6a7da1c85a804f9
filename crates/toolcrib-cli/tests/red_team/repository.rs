//! A hostile Git repository, written file by file, that runs a program when its status is
//! requested.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::json;

use crate::dimensions::Row;
use crate::surfaces::program::command;
use crate::world::World;

/// The index of a repository with one file `x` of unknown content, in base64; `None` without Git.
fn index() -> Option<&'static String> {
    static INDEX: OnceLock<Option<String>> = OnceLock::new();
    let made = INDEX.get_or_init(|| {
        let folder = tempfile::tempdir().ok()?;
        std::fs::write(folder.path().join("x"), "old\n").ok()?;
        for arguments in [&["init", "-q"][..], &["add", "x"]] {
            let done =
                command(Path::new("git")).current_dir(folder.path()).args(arguments).status();
            done.ok().filter(std::process::ExitStatus::success)?;
        }
        let encoded = command(Path::new("base64"))
            .args(["-w0"])
            .arg(folder.path().join(".git/index"))
            .output()
            .ok()?;
        Some(String::from_utf8_lossy(&encoded.stdout).trim().to_owned())
    });
    made.as_ref()
}

/// Writes the repository only with `file_write`, requests its status, and reads the filter's output.
pub(crate) fn run_code(world: &mut World, row: &Row, deed: &str, facts: &str) -> String {
    let Some(index) = index() else { return "git is not installed".to_owned() };
    let workspace = world.folder.workspace().display().to_string();
    let run = format!(
        "cd {workspace}\nexec /usr/bin/python3 kit/deeds.py -- {deed} \"$(cat evil/facts.json)\" > tree/said.txt 2>&1\n"
    );
    let run_line = format!("sh {workspace}/evil/run.sh");
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = {workspace}/tree\n\
         \tfsmonitor = {run_line}\n[filter \"x\"]\n\tclean = {run_line}\n\tsmudge = {run_line}\n"
    );
    for (path, text) in [
        ("evil/HEAD", "ref: refs/heads/main\n"),
        ("evil/config", config.as_str()),
        ("evil/objects/info/keep", ""),
        ("evil/refs/heads/keep", ""),
        ("evil/run.sh", run.as_str()),
        ("evil/facts.json", facts),
        ("tree/.gitattributes", "* filter=x\n"),
        // As long as the size in the index, so that Git has to read it.
        ("tree/x", "new\n"),
    ] {
        world.call(row, "file_write", &json!({"path": path, "content": text}));
    }
    world.call(
        row,
        "file_write",
        &json!({"path": "evil/index", "content": index, "encoding": "base64"}),
    );
    world.call(row, "file_delete", &json!({"path": "evil/objects/info/keep"}));
    let mut heard = world.call(row, "git_status", &json!({"path": "evil"}));
    heard += &world.call(row, "git_status", &json!({"path": format!("{workspace}/evil")}));
    heard + &world.call(row, "file_read", &json!({"path": "tree/said.txt"}))
}
