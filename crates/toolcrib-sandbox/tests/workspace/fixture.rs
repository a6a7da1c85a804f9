//! A project with everything in it that has ever led a file tool astray, and its surroundings.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use toolcrib_sandbox::{LockTable, Workspace};

use super::{scratch, with_lookup};

pub(crate) const SECRET: &str = "outside secret";

pub(crate) struct Fixture {
    home: TempDir,
    pub(crate) locks: LockTable,
    pub(crate) workspace: Workspace,
}

impl Fixture {
    pub(crate) fn new(lookup: &str) -> Self {
        let home = scratch();
        build(home.path());
        let locks = LockTable::new();
        let builder = Workspace::builder(home.path().join("project"))
            .sensitive([home.path().join("project/vault")])
            .protected([home.path().join("project/config.yml")])
            .locks(&locks);
        Self { workspace: with_lookup(builder, lookup), home, locks }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.home().join("project")
    }

    /// Everything that is not in the project, and everything in it that is refused: paths and what
    /// is there.
    pub(crate) fn untouchable(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        for place in ["outside", "project-evil", "project/vault", "project/.git"] {
            gather(&self.home().join(place), &mut found);
        }
        found
    }
}

fn gather(place: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let meta = fs::symlink_metadata(place).unwrap();
    if meta.is_dir() {
        found.insert(place.to_owned(), b"a folder".to_vec());
        for entry in fs::read_dir(place).unwrap() {
            gather(&entry.unwrap().path(), found);
        }
    } else {
        found.insert(place.to_owned(), fs::read(place).unwrap());
    }
}

fn build(home: &Path) {
    let file = |path: &str, content: &str| {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    file("outside/secret.txt", SECRET);
    file("outside/folder/deep.txt", SECRET);
    file("outside/hard.txt", "hard");
    file("project-evil/secret.txt", SECRET);
    for (path, content) in [
        ("a.txt", "alpha"),
        ("b.txt", "beta"),
        ("empty.txt", ""),
        ("dir/sibling.txt", "sibling"),
        ("dir/deep/er/leaf.txt", "leaf"),
        ("with space.txt", "space"),
        ("gr\u{fc}n.txt", "green"),
        ("gru\u{308}n.txt", "green too"),
        ("-rf", "dash"),
        ("~/notes.txt", "tilde"),
        ("%2e%2e/encoded.txt", "percent"),
        ("$HOME", "dollar"),
        ("back\\slash", "backslash"),
        ("*.txt", "star"),
        ("dots...", "dots"),
        (".../three.txt", "three"),
        ("..hidden", "hidden"),
        ("trailing.", "dot"),
        ("C:", "drive"),
        ("A.TXT", "upper"),
        (".git/config", "git"),
        (".git/hooks/pre-commit", "hook"),
        ("sub/.git/config", "git"),
        ("sub/.git/HEAD", "head"),
        (".vscode/settings.json", "{}"),
        (".mcp.json", "{}"),
        ("tools.d/own.yaml", "tools"),
        ("config.yml", "config"),
        ("vault/key.pem", "key"),
    ] {
        file(&format!("project/{path}"), content);
    }
    let at = |path: &str| home.join("project").join(path);
    for (link, target) in [
        ("link", "a.txt"),
        ("link_slash", "dir/"),
        ("link_dir", "dir"),
        ("dir/up", "../a.txt"),
        ("dir/root", ".."),
        ("chain", "chain2"),
        ("chain2", "link_dir/chain3"),
        ("dir/chain3", "../link"),
        ("dangling", "missing.txt"),
        ("loop", "loop2"),
        ("loop2", "loop"),
        ("self", "self"),
        ("out_file", "../outside/secret.txt"),
        ("out_dir", "../outside"),
        ("out_missing", "../outside/missing.txt"),
        ("out_chain", "link_dir/out"),
        ("dir/out", "../../outside"),
        ("out_home", ".."),
        ("fd", "/proc/self/fd/0"),
        ("proc", "/proc/self/root"),
        ("git", ".git"),
        ("keys", "vault"),
        ("keys_missing", "vault/missing"),
    ] {
        symlink(target, at(link)).unwrap();
    }
    symlink(home.join("outside/secret.txt"), at("abs_out")).unwrap();
    symlink(at("a.txt"), at("abs_in")).unwrap();
    fs::hard_link(home.join("outside/hard.txt"), at("hard.txt")).unwrap();
    mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    UnixListener::bind(at("socket")).unwrap();
    fs::File::create(at("huge.bin")).unwrap().set_len(10 << 30).unwrap();
}
