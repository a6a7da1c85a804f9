//! What programs can do to the scratch directories and kept HOMEs of other programs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::jail::helper::plan::KernelFeature;
use crate::jail::tests::LIMIT;
use crate::process::cookie::Cookie;
use crate::process::scratch::ScratchDir;
use crate::process::scratch_parents;
use crate::{
    Command, Confinement, ControlPlane, Finished, Places, Profile, SpawnError, Workspace,
    WorkspaceError, run_blocking,
};

/// The scratch directory of a program that runs, with a file in it.
struct Victim(ScratchDir);

impl Victim {
    fn new() -> Self {
        let scratch = ScratchDir::new(&Cookie::new().unwrap()).unwrap();
        fs::create_dir(scratch.path().join("below")).unwrap();
        fs::write(scratch.path().join("below/rc"), "canary\n").unwrap();
        Self(scratch)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn parent(&self) -> &Path {
        self.path().parent().unwrap()
    }

    fn assert_unchanged(&self, after: &str) {
        let entries = fs::read_dir(self.path()).unwrap().count();
        let text = fs::read_to_string(self.path().join("below/rc")).unwrap();
        assert_eq!((entries, text.as_str()), (1, "canary\n"), "{after}");
    }
}

/// The temporary folder, without links.
fn temporary() -> PathBuf {
    std::env::temp_dir().canonicalize().unwrap()
}

fn sh(text: &str, confinement: Confinement) -> Result<Finished, SpawnError> {
    let command = Command::new("/bin/sh").args(["-c", text]).cwd(temporary());
    run_blocking(command.confine(confinement), LIMIT)
}

fn wide_grants(own: &Path) -> Vec<(&'static str, Confinement)> {
    let elsewhere = || Confinement::new(Profile::Workspace).workspace(own);
    vec![
        ("a grant to read", elsewhere().read(temporary())),
        ("a grant to write", elsewhere().write(temporary())),
        ("the workspace", Confinement::new(Profile::Workspace).workspace(temporary())),
        ("everything", elsewhere().read("/")),
        ("the network", Confinement::new(Profile::WorkspaceNet).workspace(own).write(temporary())),
    ]
}

#[test]
fn no_program_reaches_the_scratch_directory_of_another_one() {
    let own = tempfile::tempdir().unwrap();
    for (about, confinement) in wide_grants(own.path()) {
        let victim = Victim::new();
        confinement.check().unwrap();
        let (parent, home) = (victim.parent().display(), victim.path().display());
        let text = format!(
            "find {parent} -name rc -exec cat {{}} +; cat {home}/below/rc; \
             echo evil > {home}/below/rc; echo evil > {home}/.bashrc; mkdir {home}/more; \
             mv {home} {parent}/moved; mv {home}/below {parent}/moved; mv {parent} {parent}.moved; \
             rm -rf {home}; ln -s / {parent}/link; ln {home}/below/rc {parent}.hard; \
             chmod 777 {parent} {home}; mkdir {parent}/new; \
             ls {parent}; exit 0"
        );
        let out = sh(&text, confinement).unwrap();
        let text = out.stdout.text();
        assert!(!text.contains("canary"), "{about}: {text}");
        // Only its own directory is there.
        assert_eq!(text.lines().count(), 1, "{about}: {text}\n{}", out.stderr.text());
        victim.assert_unchanged(about);
        for left in ["moved", "hard"] {
            assert!(!victim.parent().with_extension(left).exists(), "{about}: {left}");
        }
    }
}

#[test]
fn a_program_has_its_own_scratch_directory_whatever_else_it_is_granted() {
    let text = "set -e; echo x > \"$HOME/file\"; mkdir \"$TMPDIR/a\"; mv \"$HOME/file\" \"$HOME/a\"; \
                cat \"$HOME/a/file\"; rm -r \"$HOME/a\"; echo left > \"$HOME/left\"; echo \"$HOME\"";
    let own = tempfile::tempdir().unwrap();
    for (about, confinement) in wide_grants(own.path()) {
        for in_scratch in [false, true] {
            let mut command = Command::new("/bin/sh").args(["-c", text]).cwd(temporary());
            if in_scratch {
                command = command.cwd_in_scratch();
            }
            let out = run_blocking(command.confine(confinement.clone()), LIMIT).unwrap();
            let said = out.stdout.text();
            let home = said.strip_prefix("x\n").map(str::trim);
            let home = home.unwrap_or_else(|| panic!("{about}: {}", out.stderr.text()));
            assert!(!Path::new(home).exists(), "{about}: {home}");
        }
    }
}

#[test]
fn a_program_that_only_computes_reads_no_scratch_directory_of_another_one() {
    let victim = Victim::new();
    let confinement = Confinement::new(Profile::Pure).read(temporary()).read("/bin").read("/usr");
    let text =
        format!("while read line; do echo $line; done < {}/below/rc", victim.path().display());
    let out = sh(&text, confinement).unwrap();
    assert!(!out.stdout.text().contains("canary"), "{}", out.stdout.text());
    assert!(out.stderr.text().contains("below/rc"), "{}", out.stderr.text());
}

#[test]
fn a_grant_inside_the_folder_of_scratch_directories_is_refused() {
    let victim = Victim::new();
    for place in [victim.path().to_owned(), victim.path().join("below")] {
        for granted in [
            Confinement::new(Profile::Workspace).read(&place),
            Confinement::new(Profile::Workspace).write(&place),
            Confinement::new(Profile::Workspace).workspace(&place),
        ] {
            let why = granted.check().unwrap_err();
            assert!(why.contains("which no program may read"), "{why}");
            assert!(matches!(sh("true", granted), Err(SpawnError::Grants { .. })));
        }
    }
    victim.assert_unchanged("refused grants");
}

#[test]
fn where_folders_cannot_be_hidden_a_program_with_the_temporary_folder_is_not_started() {
    let _victim = Victim::new();
    let without = |mut confinement: Confinement| {
        confinement.without.push(KernelFeature::Namespaces);
        confinement
    };
    let own = tempfile::tempdir().unwrap();
    for (about, confinement) in wide_grants(own.path()) {
        let confinement = without(confinement);
        let why = confinement.check().unwrap_err();
        assert!(why.contains("cannot hide files"), "{about}: {why}");
        assert!(matches!(sh("true", confinement), Err(SpawnError::Grants { .. })), "{about}");
    }
    let folder = tempfile::tempdir_in("/usr/local").or_else(|_| tempfile::tempdir_in("/dev/shm"));
    let Ok(folder) = folder else { return };
    let narrow = without(Confinement::new(Profile::Workspace).workspace(folder.path()));
    narrow.check().unwrap();
    assert!(sh("echo $HOME", narrow).unwrap().stdout.text().contains("toolcrib-"));
}

#[test]
fn file_operations_in_a_workspace_reach_no_scratch_directory() {
    let victim = Victim::new();
    let workspace = Workspace::builder(temporary()).open().unwrap();
    let name = victim.path().strip_prefix(temporary()).unwrap();
    let file = name.join("below/rc").display().to_string();
    let new = name.join("new").display().to_string();
    assert!(matches!(workspace.read(&file, 100), Err(WorkspaceError::Sensitive)));
    assert!(matches!(workspace.write(&file, b"evil"), Err(WorkspaceError::Sensitive)));
    assert!(matches!(workspace.write(&new, b""), Err(WorkspaceError::Sensitive)));
    victim.assert_unchanged("file operations");
}

#[test]
fn a_kept_home_is_shown_to_its_program_alone_even_in_a_folder_that_it_is_granted() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    for name in ["homes/a/cache", "homes/b", "w"] {
        fs::create_dir_all(top.join(name)).unwrap();
    }
    fs::write(top.join("homes/b/token"), "canary").unwrap();
    fs::write(top.join("homes/a/key"), "hidden").unwrap();
    fs::write(top.join("homes/a/mine"), "mine\n").unwrap();
    let plane = ControlPlane::new();
    plane.set(Places::resolve([top.join("homes"), top.join("homes/a/key")], [""; 0]));
    let granted = || Confinement::new(Profile::Workspace).workspace(top.join("w")).write(&top);
    let text =
        "cd ../homes || exit 0; cat */*; echo x > b/new; echo x > a/cache/new; mv a c; mkdir d; ls";
    let run = |confinement: Confinement| {
        let confinement = confinement.control_plane(&plane);
        confinement.check().unwrap();
        let command = Command::new("/bin/sh").args(["-c", text]).cwd(top.join("w"));
        run_blocking(command.confine(confinement), LIMIT).unwrap().stdout.text()
    };
    assert_eq!(run(granted().own_folder(top.join("homes/a"))), "mine\na\n");
    assert!(top.join("homes/a/cache/new").exists());
    fs::remove_file(top.join("homes/a/cache/new")).unwrap();
    assert_eq!(run(granted()), "");
    assert!(!top.join("homes/b/new").exists() && !top.join("homes/a/cache/new").exists());
}

#[test]
fn the_folders_of_scratch_directories_are_those_of_this_user() {
    let own = &scratch_parents::paths()[0];
    assert_eq!(own.parent().unwrap(), temporary());
    let name = format!("toolcrib-{}", rustix::process::geteuid().as_raw());
    assert!(scratch_parents::paths().iter().all(|path| path.ends_with(&name)));
}
