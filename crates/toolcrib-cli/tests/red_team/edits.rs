//! Programs that start while somebody deletes and rewrites files that the server runs.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::thread::{scope, sleep};
use std::time::Duration;

use serde_json::{Value, json};

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

/// The target of a link in place of a script.
fn link_target(folder: &Folder) -> PathBuf {
    folder.site().join("linked.sh")
}

/// The file that the program puts in place of each.
pub(crate) fn plants(folder: &Folder) -> Vec<(PathBuf, String)> {
    let places = edited(folder).into_iter().chain([link_target(folder)]);
    places.map(|file| (file, script(folder))).collect()
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
    let mut heard = link(world, row, &facts);
    for (file, content) in &files {
        put(file, content, owner, true);
    }
    heard += &reload(world);
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

/// The operator replaces the script by a link whose target comes later. Calls the row's tool, and then the
/// script; returns what was received.
fn link(world: &mut World, row: &Row, facts: &Value) -> String {
    let [script, _] = edited(&world.folder);
    let link = script.with_extension("link");
    symlink(link_target(&world.folder), &link).unwrap();
    fs::rename(&link, &script).unwrap();
    let mut heard = world.run_code(row, row.goal.name(), facts);
    let target = link_target(&world.folder);
    if let Ok(found) = target.metadata() {
        let mut mode = found.permissions();
        mode.set_mode(0o755);
        fs::set_permissions(&target, mode).unwrap();
    }
    heard += &run_what_was_edited(world, row);
    if !pwned(&world.folder).exists() {
        let _ = fs::remove_file(target);
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
