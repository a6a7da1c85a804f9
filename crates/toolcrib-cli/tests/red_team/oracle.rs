//! Detects the effects of an attack from outside of the server: files, sockets, processes, answers.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::dimensions::{Goal, Row};
use crate::folder::{Folder, Words, walk};
use crate::surfaces::listeners::Listeners;

/// The identity and metadata of a file, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    mode: u32,
    inode: u64,
    owner: u32,
    size: u64,
    changed: i64,
    link: Option<PathBuf>,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        let folder = found.is_dir();
        Some(Self {
            mode: found.mode(),
            inode: found.ino(),
            owner: found.uid(),
            // The content of a folder is compared separately.
            size: if folder { 0 } else { found.size() },
            changed: if folder { 0 } else { found.mtime() * 1_000_000_000 + found.mtime_nsec() },
            link: fs::read_link(path).ok(),
        })
    }
}

/// A folder and the listeners beside it, with their state before an attack.
pub(crate) struct Oracle {
    plane: BTreeMap<PathBuf, Option<Stamp>>,
    planted: Option<Stamp>,
    audit: Option<Stamp>,
    outside: Vec<PathBuf>,
    workspace: Vec<PathBuf>,
    server: u32,
    pace: String,
}

impl Oracle {
    /// Records the state before any attack; `server` is the serving process, or its substitute.
    pub(crate) fn new(folder: &Folder, server: u32) -> Self {
        Self {
            plane: plane(folder),
            planted: Stamp::of(&folder.state().join("planted.txt")),
            audit: Stamp::of(&folder.site().join("audit.jsonl")),
            outside: outside(folder),
            workspace: walk(&folder.workspace()),
            server,
            pace: pace(server),
        }
    }

    /// The goals that were reached, whatever was tried; empty if nothing was broken.
    pub(crate) fn damage(
        &self,
        row: &Row,
        folder: &Folder,
        listeners: &Listeners,
        heard: &str,
        mark: &str,
    ) -> Vec<String> {
        let mut damage = Vec::new();
        let now = plane(folder);
        for path in self.plane.keys().chain(now.keys()).collect::<std::collections::BTreeSet<_>>() {
            let (before, after) =
                (self.plane.get(path).cloned().flatten(), now.get(path).cloned().flatten());
            if before != after {
                damage.push(format!("changed: {}", short(folder, path)));
            }
        }
        self.records(folder, &mut damage);
        for path in outside(folder) {
            if !self.outside.contains(&path) {
                damage.push(format!("written outside: {}", short(folder, &path)));
            }
        }
        self.workspace_files(folder, &mut damage);
        canaries("an answer", heard, &mut damage);
        if listeners.have_heard(mark, is_about_sockets(row.goal)) {
            damage.push("a socket outside was reached".to_owned());
        }
        let has_ended =
            || !Path::new(&format!("/proc/{}/stat", self.server)).exists() || is_dead(self.server);
        if row.goal == Goal::EndTheServer {
            // A killed process takes a moment to end.
            let deadline = Instant::now() + Duration::from_millis(500);
            while !has_ended() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        if has_ended() {
            damage.push("the server has ended".to_owned());
        } else if pace(self.server) != self.pace {
            damage.push(format!("the server was slowed: {} -> {}", self.pace, pace(self.server)));
        }
        for (words, limit) in [("threads=", 2_000), ("mebibytes=", 1_536)] {
            let said = heard.split(words).skip(1).filter_map(|rest| {
                rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse::<u32>().ok()
            });
            let said = said.max();
            if said.is_some_and(|said| said >= limit) {
                damage.push(format!("no bound: {words}{}", said.unwrap_or_default()));
            }
        }
        damage
    }

    fn records(&self, folder: &Folder, damage: &mut Vec<String>) {
        if self.planted != Stamp::of(&folder.state().join("planted.txt")) {
            damage.push("changed: the planted file of the state".to_owned());
        }
        for path in walk(&folder.state()) {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            if name.is_some_and(|name| name.contains("forged")) {
                damage.push(format!("written into the state: {}", short(folder, &path)));
            }
        }
        let audit = folder.site().join("audit.jsonl");
        let now = Stamp::of(&audit);
        let kept = match (&self.audit, &now) {
            (Some(before), Some(now)) => {
                before.inode == now.inode && before.size <= now.size && before.mode == now.mode
            }
            (Some(_), None) => false,
            (None, _) => true,
        };
        let text = fs::read(&audit).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        if !kept
            || text.lines().any(|line| !line.starts_with('{'))
            || fs::symlink_metadata(&audit).is_ok_and(|found| !found.is_file())
        {
            damage.push("changed: the audit log".to_owned());
        }
    }

    fn workspace_files(&self, folder: &Folder, damage: &mut Vec<String>) {
        for path in walk(&folder.workspace()) {
            // Programs write anything to their own scratch directories.
            if path.starts_with(folder.temporary()) {
                continue;
            }
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            let kind = found.file_type();
            if found.mode() & 0o6000 != 0 && !kind.is_symlink() {
                damage.push(format!("set-id: {} {:o}", short(folder, &path), found.mode()));
            }
            if kind.is_block_device() || kind.is_char_device() {
                damage.push(format!("a device: {}", short(folder, &path)));
            }
            if kind.is_file()
                && found.nlink() == 1
                && found.size() < 1_000_000
                && !self.workspace.contains(&path)
            {
                let text = fs::read(&path).unwrap_or_default();
                let below_state = path.starts_with(folder.state());
                if !below_state {
                    canaries(&short(folder, &path), &String::from_utf8_lossy(&text), damage);
                }
            }
        }
    }

    /// Restores the workspace. If the control plane has changed, the folder is not used any more.
    pub(crate) fn restore(&self, folder: &Folder) {
        for path in walk(&folder.workspace()) {
            let kept = self.workspace.contains(&path)
                || ["state", "audit.jsonl", "target", "tools.d", "declared.d", "tmp"]
                    .iter()
                    .any(|name| path.starts_with(folder.site().join(name)));
            if !kept {
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
        }
        for (name, text) in [("docs/page.txt", "a page\n"), ("data.txt", "some data\n")] {
            let path = folder.workspace().join(name);
            let parent = path.parent().unwrap_or(&path).to_owned();
            if !fs::symlink_metadata(&parent).is_ok_and(|found| found.is_dir()) {
                let _ = fs::remove_file(&parent);
                let _ = fs::create_dir_all(&parent);
                folder.hand_over(&parent);
            }
            if fs::read_to_string(&path).ok().as_deref() != Some(text) {
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
                let _ = fs::write(&path, text);
                folder.hand_over(&path);
            }
        }
        let out = folder.workspace().join("out");
        if !fs::symlink_metadata(&out).is_ok_and(|found| found.is_dir()) {
            let _ = fs::remove_file(&out);
            let _ = fs::create_dir(&out);
            folder.hand_over(&out);
        }
    }
}

const fn is_about_sockets(goal: Goal) -> bool {
    matches!(goal, Goal::UnixDatagram | Goal::UnixStream | Goal::AbstractSocket | Goal::Loopback)
}

/// Texts that nobody may obtain; a part of the secret counts too.
fn canaries(place: &str, text: &str, damage: &mut Vec<String>) {
    let words = Words::get();
    let part = &words.secret[words.secret.len() - 12..];
    let rest = &words.secret[..12];
    for (name, canary) in [
        ("the key in the home folder", words.key.as_str()),
        ("a note in the home folder", &words.note),
        ("the operator's token", &words.operator),
        ("a file of the state", &words.state),
        ("the home of another program", &words.others_home),
        ("the kept home of another server", &words.kept_home),
        ("a secret", rest),
        ("a secret", part),
        ("a password", &words.password),
    ] {
        if text.contains(canary) {
            damage.push(format!("read: {name} (in {place})"));
        }
    }
}

fn plane(folder: &Folder) -> BTreeMap<PathBuf, Option<Stamp>> {
    let mut found = BTreeMap::new();
    for place in folder.plane() {
        for path in walk(&place) {
            let stamp = Stamp::of(&path);
            found.insert(path, stamp);
        }
        let stamp = Stamp::of(&place);
        found.insert(place, stamp);
    }
    found
}

fn outside(folder: &Folder) -> Vec<PathBuf> {
    [folder.outside(), folder.home()].iter().flat_map(|place| walk(place)).collect()
}

fn short(folder: &Folder, path: &Path) -> String {
    path.strip_prefix(folder.base()).unwrap_or(path).display().to_string()
}

fn is_dead(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with('Z') || rest.starts_with('X'))
}

/// Scheduling and limits of a process: niceness, policy, processors, and open files.
fn pace(process: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let field = |number: usize| fields.get(number).copied().unwrap_or_default();
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap_or_default();
    let line = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.trim_start_matches(name).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    format!(
        "nice {}, policy {}, processors {}, files {}",
        field(16),
        field(38),
        line(&status, "Cpus_allowed_list:"),
        line(&limits, "Max open files"),
    )
}
