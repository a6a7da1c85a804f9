//! Paths of file tools from any text: nothing outside the project is reached, by any implementation of the lookup.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use toolcrib_sandbox::{LockTable, Workspace, WorkspaceBuilder, WorkspaceError};

/// The beginning of every file inside, and of none outside.
const INSIDE: &[u8] = b"inside";
/// Represents the path of the project in an input, because it is not known beforehand.
const ROOT: &str = "{root}";

/// Any bytes as a path (the first line) in a project with links, two of which have the second and the third line as
/// targets. Promises for the kernel's lookup, the stepwise one and the portable one:
///
/// - Files that are read are inside, and nothing outside is changed, created or removed.
/// - All lookups give the same results.
/// - No result depends on the files outside.
/// - Written content can be read back; a path has one displayed form, which leads to the same file.
pub fn workspace_path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.splitn(3, '\n');
    let path = lines.next().unwrap_or_default();
    let targets = [lines.next(), lines.next()];
    let scratch = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let scratch = scratch.unwrap_or_else(|error| panic!("a temporary folder: {error}"));
    // One folder for all of them, because a path may contain part of its name.
    let home = scratch.path().join("home");
    let answers = |surroundings, lookup: fn(WorkspaceBuilder) -> WorkspaceBuilder| {
        let _ = fs::remove_dir_all(&home);
        TestProject::new(&home, targets, surroundings, lookup).answers(path)
    };
    let by_kernel = answers(OutsideFiles::Something, |builder| builder);
    for lookup in [WorkspaceBuilder::in_steps, WorkspaceBuilder::portably] {
        assert_eq!(by_kernel, answers(OutsideFiles::Something, lookup), "they differ: {text:?}");
    }
    let alone = answers(OutsideFiles::Nothing, |builder| builder);
    assert_eq!(by_kernel, alone, "{text:?} tells what there is outside");
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutsideFiles {
    Something,
    Nothing,
}

/// A project with its environment.
struct TestProject<'h> {
    home: &'h Path,
    workspace: Workspace,
}

impl<'h> TestProject<'h> {
    fn new(
        home: &'h Path,
        targets: [Option<&str>; 2],
        surroundings: OutsideFiles,
        lookup: fn(WorkspaceBuilder) -> WorkspaceBuilder,
    ) -> Self {
        build(home, targets, surroundings).unwrap_or_else(|error| panic!("the project: {error}"));
        let builder = Workspace::builder(home.join("project")).locks(&LockTable::new());
        let workspace =
            lookup(builder).open().unwrap_or_else(|error| panic!("the project: {error}"));
        Self { home, workspace }
    }

    /// The result of each operation.
    fn answers(&self, path: &str) -> Vec<String> {
        let before = surroundings(self.home);
        let path = path.replace(ROOT, &self.workspace.root().to_string_lossy());
        let workspace = &self.workspace;
        let found = workspace.look(&path).map(|found| found.map(|entry| (entry.kind, entry.size)));
        let read = workspace.read(&path, 1 << 20);
        if let Ok(bytes) = &read {
            assert!(bytes.starts_with(INSIDE), "{path:?} leads outside");
        }
        let shown = workspace.relative(&path);
        if let Ok(shown) = &shown {
            assert_eq!(workspace.relative(shown).ok().as_ref(), Some(shown), "{path:?}");
        }
        let written = workspace.write(&path, b"inside, and new");
        if written.is_ok() {
            let again = workspace.read(&path, 1 << 20).ok();
            assert_eq!(again.as_deref(), Some(&b"inside, and new"[..]), "{path:?} is not there");
        }
        let made = workspace.make_folder(&path);
        let removed = workspace.remove_all(&path, 1000);
        assert_eq!(surroundings(self.home), before, "{path:?} changes what is outside");
        vec![
            said(found, |found| format!("{found:?}")),
            said(read, |bytes| String::from_utf8_lossy(&bytes).into_owned()),
            said(shown, |shown| shown),
            said(written, |_| String::new()),
            said(made, |made| made.to_string()),
            said(removed, |_| String::new()),
        ]
    }
}

/// The result, or the kind of the refusal.
fn said<T>(outcome: Result<T, WorkspaceError>, text: impl FnOnce(T) -> String) -> String {
    match outcome {
        Ok(value) => format!("ok {}", text(value)),
        Err(error) => {
            let error = format!("{error:?}");
            error.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned()
        }
    }
}

fn build(
    home: &Path,
    targets: [Option<&str>; 2],
    surroundings: OutsideFiles,
) -> std::io::Result<()> {
    let root = home.join("project");
    fs::create_dir_all(root.join("sub/deep"))?;
    for file in ["a.txt", "sub/b.txt", "sub/deep/c.txt"] {
        fs::write(root.join(file), [INSIDE, b" ", file.as_bytes()].concat())?;
    }
    if surroundings == OutsideFiles::Something {
        fs::create_dir(home.join("outside"))?;
        fs::write(home.join("outside/secret"), "secret")?;
        fs::write(home.join("beside.txt"), "beside")?;
    }
    for (link, target) in [
        ("up", ".."),
        ("out", "../outside"),
        ("stolen", "../outside/secret"),
        ("sub/root", ".."),
        ("sub/beside", "../../beside.txt"),
        ("loop", "loop"),
        ("ping", "pong"),
        ("pong", "ping"),
        ("dangling", "nowhere"),
        ("deep", "sub/deep"),
        ("chain", "deep/c.txt"),
        ("etc", "/etc"),
    ] {
        symlink(target, root.join(link))?;
    }
    symlink(home.join("outside"), root.join("absolute"))?;
    for (link, target) in ["one", "sub/two"].into_iter().zip(targets) {
        if let Some(target) = target {
            let target = target.replace(ROOT, &root.to_string_lossy());
            // Not every text can be the target of a link.
            let _ = symlink(target, root.join(link));
        }
    }
    Ok(())
}

/// Everything beside the project, with its content.
fn surroundings(home: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![home.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path == home.join("project") {
                continue;
            }
            let content = fs::read(&path).unwrap_or_default();
            found.push((path.to_string_lossy().into_owned(), content));
            if path.is_dir() {
                waiting.push(path);
            }
        }
    }
    found.sort();
    found
}
