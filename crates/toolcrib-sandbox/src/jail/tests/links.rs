//! Grants, working directories and programs that are reached through links which programs can
//! create.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use super::LIMIT;
use crate::{Command, Confinement, Finished, Profile, SpawnError, Status, run_blocking};

/// A workspace, and a folder outside of it with a file that nobody granted.
struct TestFolders {
    _folder: tempfile::TempDir,
    workspace: PathBuf,
    outside: PathBuf,
}

impl TestFolders {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let (workspace, outside) = (top.join("w"), top.join("outside"));
        fs::create_dir_all(workspace.join("docs")).unwrap();
        fs::create_dir_all(outside.join("bin")).unwrap();
        fs::create_dir_all(outside.join("lib")).unwrap();
        fs::write(outside.join("key"), "secret\n").unwrap();
        Self { _folder: folder, workspace, outside }
    }

    fn program(&self, name: &str, text: &str) -> PathBuf {
        let file = self.workspace.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    fn confinement(&self, profile: Profile) -> Confinement {
        Confinement::new(profile).workspace(&self.workspace)
    }
}

fn start(command: Command) -> Result<Finished, SpawnError> {
    run_blocking(command, LIMIT)
}

fn assert_refused(started: Result<Finished, SpawnError>, link: &str) {
    let error = started.unwrap_err();
    let SpawnError::Grants { reason, .. } = &error else { panic!("{error:?}") };
    assert!(reason.contains(link) && reason.contains("symbolic link"), "{reason}");
}

#[test]
fn a_working_directory_that_became_a_link_is_not_entered() {
    let places = TestFolders::new();
    fs::remove_dir(places.workspace.join("docs")).unwrap();
    symlink(&places.outside, places.workspace.join("docs")).unwrap();
    for profile in [Profile::Workspace, Profile::WorkspaceNet, Profile::Pure] {
        let docs = places.workspace.join("docs");
        // As a runner grants it.
        for confinement in [places.confinement(profile), places.confinement(profile).read(&docs)] {
            let command = Command::new("/bin/sh").args(["-c", "read x < key && echo $x"]);
            assert_refused(start(command.cwd(&docs).confine(confinement)), "docs");
        }
        let below = places.workspace.join("docs/../outside/lib");
        let command = Command::new("/bin/true").cwd(below);
        assert_refused(start(command.confine(places.confinement(profile))), "docs");
    }
}

#[test]
fn a_link_leads_to_no_other_grant_for_writing() {
    let places = TestFolders::new();
    let out = places.workspace.join("out");
    symlink(&places.outside, &out).unwrap();
    for profile in [Profile::Pure, Profile::Workspace] {
        for confinement in [
            places.confinement(profile).write(&out),
            places.confinement(profile).write(out.join("lib")),
            places.confinement(profile).read(&out),
        ] {
            let text = "echo x > \"$1/new\" || echo x > \"$1/lib/new\"";
            let command = Command::new("/bin/sh").args(["-c", text, "sh"]).arg(&places.outside);
            assert_refused(start(command.confine(confinement)), "out");
        }
    }
    assert!(!places.outside.join("new").exists() && !places.outside.join("lib/new").exists());
}

#[test]
fn the_first_line_of_a_file_that_programs_may_write_grants_nothing() {
    let places = TestFolders::new();
    let shell = places.outside.join("bin/sh");
    fs::copy("/bin/sh", &shell).unwrap();
    symlink(&places.outside, places.workspace.join("lnk")).unwrap();
    let lnk = places.workspace.join("lnk").display().to_string();
    for line in [
        // The kernel treats all of it as one name, and does not find it.
        format!("{lnk}\u{c}f x"),
        format!("{lnk}/bin/sh"),
        shell.display().to_string(),
    ] {
        // It is checked, then replaced by a program of the workspace, then loaded.
        let script = places.program("build.sh", &format!("#!{line}\n"));
        for profile in [Profile::Workspace, Profile::Pure] {
            let confinement = places.confinement(profile);
            let program = super::super::ProgramFile::Named(&script);
            let search = std::ffi::OsStr::new("/usr/bin:/bin");
            let grants =
                crate::jail::files::grants::grants(&confinement, Some(program), search, None);
            let given =
                |path: &PathBuf| path.starts_with(&lnk) || path.starts_with(&places.outside);
            let given: Vec<_> = grants.iter().filter(|(_, path)| given(path)).collect();
            assert!(given.is_empty(), "{profile}: {line:?}: {given:?}");
        }
    }
    let text =
        format!("#!{}\nread x < {}/key; echo $x\n", shell.display(), places.outside.display());
    let script = places.program("build.sh", &text);
    let command = Command::new(script).confine(places.confinement(Profile::Workspace));
    let outcome = start(command).map(|finished| finished.stdout.text());
    assert!(!outcome.is_ok_and(|text| text.contains("secret")));
}

#[test]
fn a_script_of_the_workspace_is_run_by_a_program_of_the_system() {
    let places = TestFolders::new();
    for line in ["/bin/sh", "/usr/bin/env sh", "/bin/sh -e"] {
        let script = places.program("run.sh", &format!("#!{line}\necho \"$0\"\n"));
        let command = Command::new("./run.sh").cwd(&places.workspace);
        let finished = start(command.confine(places.confinement(Profile::Workspace))).unwrap();
        let said = finished.stdout.text();
        assert_eq!(said, format!("{}\n", script.display()), "{line}: {finished:?}");
    }
    // For `pure`, an interpreter is granted if no program could have changed the script.
    let script = places.program("run.sh", "#!/bin/sh\necho ran\n");
    let pure = || places.confinement(Profile::Pure);
    assert!(start(Command::new(&script).confine(pure())).is_err());
    let outside = places.outside.join("run.sh");
    fs::copy(&script, &outside).unwrap();
    for confinement in [pure(), places.confinement(Profile::Workspace)] {
        let command = Command::new(&outside).confine(confinement);
        assert_eq!(start(command).unwrap().stdout.text(), "ran\n");
    }
    let withheld = pure().read_only(&script);
    assert_eq!(start(Command::new(&script).confine(withheld)).unwrap().stdout.text(), "ran\n");
}

#[test]
fn links_of_the_system_and_within_what_is_granted_are_followed() {
    let places = TestFolders::new();
    let bin = places.workspace.join("bin");
    fs::create_dir(&bin).unwrap();
    // As in a virtual environment.
    symlink("/bin/sh", bin.join("shell")).unwrap();
    symlink("docs", places.workspace.join("current")).unwrap();
    fs::write(places.workspace.join("docs/page"), "page\n").unwrap();
    let command = Command::new(bin.join("shell")).args(["-c", "cat page"]);
    let command = command.cwd(places.workspace.join("current"));
    let finished = start(command.confine(places.confinement(Profile::Workspace))).unwrap();
    assert_eq!(finished.stdout.text(), "page\n", "{finished:?}");
    // A link that no program can change.
    let alias = places.outside.join("alias");
    symlink(&places.workspace, &alias).unwrap();
    let command = Command::new("/bin/cat").arg("page").cwd(alias.join("docs"));
    let confinement = Confinement::new(Profile::Workspace).workspace(&alias);
    assert_eq!(start(command.confine(confinement)).unwrap().stdout.text(), "page\n");
}

#[test]
fn a_directory_that_is_not_there_or_is_none_says_so() {
    let places = TestFolders::new();
    fs::write(places.workspace.join("file"), "").unwrap();
    for (name, word) in [("none", "No such file"), ("file", "Not a directory")] {
        let command = Command::new("/bin/true").cwd(places.workspace.join(name));
        let error = start(command.confine(places.confinement(Profile::Workspace))).unwrap_err();
        assert!(matches!(error, SpawnError::WorkingDirectory { .. }), "{error:?}");
        assert!(error.to_string().contains(word) && error.to_string().contains(name), "{error}");
    }
    let finished = start(Command::new("/bin/pwd").confine(places.confinement(Profile::Workspace)));
    assert_eq!(finished.unwrap().status, Status::Exited(0));
}
