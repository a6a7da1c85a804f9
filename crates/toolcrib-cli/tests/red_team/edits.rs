//! Programs that start while somebody deletes and rewrites files that the server runs.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::thread::{scope, sleep};
use std::time::Duration;

use serde_json::json;

use crate::attack::{facts, pwned, script};
use crate::dimensions::{Row, User};
use crate::folder::{Folder, NOBODY, is_root};
use crate::world::World;

/// How long each file is missing after the attacker has called, in milliseconds: shorter and longer than a
/// program takes to start.
const MISSING: [u64; 6] = [0, 5, 15, 40, 90, 200];

/// Files that an editor deletes and rewrites, all of them run unconfined.
fn edited(folder: &Folder) -> [PathBuf; 2] {
    ["scripts/tidy.sh", "target/debug/toolcrib-jail"].map(|name| folder.site().join(name))
}

/// The file that the program puts in place of each.
pub(crate) fn plants(folder: &Folder) -> Vec<(PathBuf, String)> {
    edited(folder).into_iter().map(|file| (file, script(folder))).collect()
}

/// Calls the row's tool while the files are missing, then the tools that run them; returns what was
/// received.
pub(crate) fn attack(world: &mut World, row: &Row, mark: &str) -> String {
    let facts = facts(row.goal, &world.folder, &world.listeners, world.server(), mark);
    let files = edited(&world.folder).map(|file| {
        let content = fs::read(&file).unwrap();
        (file, content)
    });
    let owner = (row.user == User::Plain && is_root()).then_some(NOBODY);
    let mut heard = String::new();
    for (number, missing) in MISSING.into_iter().enumerate() {
        for (file, _) in &files {
            fs::remove_file(file).unwrap();
        }
        let at_once = number % 2 == 0;
        heard += &scope(|scope| {
            let files = &files;
            scope.spawn(move || {
                sleep(Duration::from_millis(missing));
                for (file, content) in files {
                    put(file, content, owner, at_once);
                }
            });
            world.run_code(row, row.goal.name(), &facts)
        });
        heard += &run_what_was_edited(world, row);
        if pwned(&world.folder).exists() {
            break;
        }
        // The operator checks the files and confirms them.
        for (file, content) in &files {
            put(file, content, owner, true);
        }
        heard += &reload(world);
        let runs = run_what_was_edited(world, row);
        assert!(runs.contains("tidy"), "the operator's own script does not run: {runs}");
    }
    heard
}

/// Writes a program as an editor does: under another name that is then renamed, or in place.
fn put(file: &Path, content: &[u8], owner: Option<u32>, at_once: bool) {
    let new = if at_once { file.with_extension("new") } else { file.to_owned() };
    fs::write(&new, content).unwrap();
    fs::set_permissions(&new, Permissions::from_mode(0o755)).unwrap();
    chown(&new, owner, owner).unwrap();
    if at_once {
        fs::rename(&new, file).unwrap();
    }
}

fn run_what_was_edited(world: &mut World, row: &Row) -> String {
    let mut heard = world.call(row, "red_trusted", &json!({}));
    heard += &world.call(row, "execute_python", &json!({"code": "print(1)"}));
    heard
}

/// The operator reloads everything; returns the server's answer.
pub(crate) fn reload(world: &World) -> String {
    let answer = world.operator().send("POST", "/v1/reload", &[], "");
    answer.map_or_else(|error| error, crate::surfaces::http::Answer::text)
}
