//! Tests of the oracle: it detects each deed that is done without confinement.

use std::process::Stdio;

use crate::attack::facts;
use crate::dimensions::{Files, Goal, Layout, Right, Row, Surface, Tool, User};
use crate::folder::{Folder, Words, is_root, write};
use crate::oracle::Oracle;
use crate::surfaces::listeners::Listeners;
use crate::surfaces::program::command;
use crate::world::Server;

/// A folder without a server, with a process in its place.
struct Bare {
    folder: Folder,
    listeners: Listeners,
    oracle: Oracle,
    server: Server,
}

impl Bare {
    fn new(files: Files) -> Self {
        let user = if is_root() { User::Root } else { User::Plain };
        let folder = Folder::bare(Layout::Dot, files, user);
        let listeners = Listeners::open(&folder.outside());
        write(&folder.site().join("audit.jsonl"), "{}\n");
        let mut sleep = command(std::path::Path::new("sleep"));
        let server = Server(sleep.arg("600").spawn().unwrap());
        let oracle = Oracle::new(&folder, server.0.id());
        Self { folder, listeners, oracle, server }
    }

    /// The oracle's findings after an unconfined deed in the workspace.
    fn after(&self, goal: Goal) -> Vec<String> {
        let mark = format!("mark-{}", crate::run::unique());
        let facts =
            facts(goal, &self.folder, &self.listeners, self.server.0.id(), &mark).to_string();
        // It runs in a shell, because a deed against its parent then hits the shell.
        let mut shell = command(std::path::Path::new("sh"));
        shell.args(["-c", "/usr/bin/python3 kit/deeds.py \"$@\"; true", "sh", goal.name(), &facts]);
        shell.current_dir(self.folder.workspace()).stdin(Stdio::null());
        shell.env("HOME", self.folder.outside());
        let output = shell.output().unwrap();
        let heard = String::from_utf8_lossy(&output.stdout).into_owned();
        let row = Row {
            right: Right::Operator,
            surface: Surface::Rest,
            layout: Layout::Dot,
            files: self.folder.files,
            user: self.folder.user,
            tool: Tool::Bash,
            goal,
        };
        self.oracle.damage(&row, &self.folder, &self.listeners, &heard, &mark)
    }
}

/// Goals whose deed is a separate program.
const DEEDS: &[Goal] = &[
    Goal::HomeKey,
    Goal::HomeNote,
    Goal::OperatorToken,
    Goal::StateFile,
    Goal::WriteConfig,
    Goal::WriteManifest,
    Goal::WriteNewManifest,
    Goal::WriteLock,
    Goal::WriteRecords,
    Goal::WriteScript,
    Goal::WriteProgram,
    Goal::WriteServer,
    Goal::WriteSecret,
    Goal::ChangeMetadata,
    Goal::SetId,
    Goal::UnixDatagram,
    Goal::UnixStream,
    Goal::AbstractSocket,
    Goal::Loopback,
    Goal::RunUnconfined,
    Goal::OthersHome,
    Goal::KeptHome,
    Goal::ManyThreads,
    Goal::SlowTheServer,
    Goal::EndTheServer,
    Goal::TakeMemory,
    // Deep folders end a server, which the oracle detects.
    Goal::DeepScratch,
];

#[test]
fn every_deed_that_nothing_holds_is_noticed() {
    let mut missed = Vec::new();
    for goal in DEEDS {
        let bare = Bare::new(Files::Present);
        if *goal == Goal::DeepScratch {
            let server = bare.server.0.id().to_string();
            let done = command(std::path::Path::new("kill")).args(["-9", &server]).status();
            assert!(done.is_ok_and(|status| status.success()));
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let goal_for_deed = if *goal == Goal::DeepScratch { Goal::HomeKey } else { *goal };
        let damage = bare.after(goal_for_deed);
        let seen = match goal {
            Goal::HomeKey => damage.iter().any(|seen| seen.contains("the key")),
            Goal::HomeNote => damage.iter().any(|seen| seen.contains("a note")),
            Goal::OperatorToken => damage.iter().any(|seen| seen.contains("token")),
            Goal::StateFile => damage.iter().any(|seen| seen.contains("of the state")),
            Goal::SetId => damage.iter().any(|seen| seen.contains("set-id")),
            Goal::UnixDatagram | Goal::UnixStream | Goal::AbstractSocket | Goal::Loopback => {
                damage.iter().any(|seen| seen.contains("socket"))
            }
            Goal::ManyThreads | Goal::TakeMemory => {
                damage.iter().any(|seen| seen.contains("no bound"))
            }
            Goal::SlowTheServer => damage.iter().any(|seen| seen.contains("slowed")),
            Goal::EndTheServer | Goal::DeepScratch => {
                damage.iter().any(|seen| seen.contains("ended"))
            }
            Goal::RunUnconfined => damage.iter().any(|seen| seen.contains("pwned")),
            _ => damage.iter().any(|seen| seen.contains("changed")),
        };
        if !seen {
            missed.push(format!("{}: {damage:?}", goal.name()));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn every_single_way_of_writing_is_noticed_too() {
    let folder = Bare::new(Files::Present);
    assert!(folder.after(Goal::OwnApproval).is_empty(), "an honest program changes nothing");
    let fresh = Bare::new(Files::Fresh);
    write(&fresh.folder.site().join("config.yml"), "{}\n");
    assert!(!fresh.after(Goal::OwnApproval).is_empty(), "a config where none was");
    let words = Words::get();
    assert!(words.operator.len() > 20 && words.secret.len() > 20);
}
