//! The files that a profile grants on this machine.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::resolve::{FileId, FoundFile, resolve_path};
use crate::SealedFile;
use crate::jail::helper::plan::Access;
use crate::program::lookup;
use crate::{Confinement, Profile};

/// Folders of programs and their libraries.
const SYSTEM: [&str; 8] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// Folders of libraries only, for programs that only compute.
const LIBRARIES: [&str; 11] = [
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libx32",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/nix/store",
];

/// The dynamic loaders that programs name as their interpreter.
const LOADERS: [&str; 4] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];

/// Files that the loader and the C library read in every program.
const LOADING: [&str; 4] =
    ["/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime", "/etc/locale.alias"];

/// Settings that programs expect, none of them secret.
const SETTINGS: [&str; 31] = [
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.conf",
    "/etc/machine-id",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/etc/xdg",
];

/// Kernel facts that are public, and facts about the process itself. `/proc` as a whole is not
/// granted: it would show the command lines of all processes.
const KERNEL: [&str; 15] = [
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel",
    "/proc/sys/vm/overcommit_memory",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/dev/fd",
];

/// Harmless pseudo-devices.
const DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];
const RANDOM: [&str; 2] = ["/dev/random", "/dev/urandom"];

/// How many nested `#!` interpreters are followed.
const INTERPRETERS: usize = 3;
/// How many bytes of a first line are read, as in the kernel.
const LINE_MAX: usize = 256;

/// The program to start.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProgramFile<'a> {
    /// A file with a path.
    Named(&'a Path),
    /// A file in memory. It needs no grant, because rules apply only to files of mounted file
    /// systems. Its interpreter does need one.
    Sealed(&'a SealedFile),
}

/// Everything that a confinement grants a program: its profile's files, its own installation, its
/// scratch directory, and the explicit grants.
pub(crate) fn grants(
    confinement: &Confinement,
    program: Option<ProgramFile<'_>>,
    search: &OsStr,
    scratch: Option<&Path>,
) -> Vec<(Access, PathBuf)> {
    let mut grants = Grants { list: Vec::new(), changeable: WritableParents::of(confinement) };
    grants.all(Access::Read, LOADING);
    grants.all(Access::Read, RANDOM);
    grants.all(Access::Write, DEVICES);
    let given = if confinement.profile == Profile::Pure {
        grants.all(Access::Read, LIBRARIES);
        grants.all(Access::Run, LOADERS);
        if let Some(program) = program {
            grants.own(program, search, Access::Read);
        }
        let access = if confinement.writable_scratch { Access::Write } else { Access::Read };
        grants.all(access, scratch);
        Access::Read
    } else {
        grants.all(Access::Run, SYSTEM);
        grants.all(Access::Read, SETTINGS);
        grants.all(Access::Read, KERNEL);
        if let Some(program) = program {
            grants.own(program, search, Access::Run);
        }
        let searched = search.as_bytes().split(|byte| *byte == b':').map(OsStr::from_bytes);
        for directory in searched.map(Path::new).filter(|directory| holds_programs(directory)) {
            grants.add(Access::Run, directory);
        }
        grants.all(Access::Write, scratch);
        grants.all(Access::Write, confinement.workspace.as_deref());
        Access::Run
    };
    for name in &confinement.programs {
        if let Ok(program) = lookup::find(name, search, None) {
            grants.own(ProgramFile::Named(&program), search, given);
        }
    }
    grants.all(given, &confinement.read);
    grants.all(Access::Write, &confinement.write);
    grants.list
}

struct Grants {
    list: Vec<(Access, PathBuf)>,
    changeable: WritableParents,
}

impl Grants {
    fn add(&mut self, access: Access, path: &Path) {
        // A relative path is relative to the server's directory, and the helper has another one.
        self.list.push((access, absolute(path)));
    }

    fn all<P: AsRef<Path>>(&mut self, access: Access, paths: impl IntoIterator<Item = P>) {
        for path in paths {
            self.add(access, path.as_ref());
        }
    }

    /// Grants a program with its installation, and the interpreter of its `#!` line.
    fn own(&mut self, program: ProgramFile<'_>, search: &OsStr, installation: Access) {
        let mut next = match program {
            ProgramFile::Named(program) => Some(program.to_owned()),
            ProgramFile::Sealed(file) => {
                let mut start = [0; LINE_MAX];
                let read = file.beginning(&mut start).unwrap_or(0);
                self.interpreter(&start[..read], search)
            }
        };
        for _ in 0..=INTERPRETERS {
            let Some(program) = next else { return };
            // Files that programs can change could name anything, so neither their first line nor a
            // link in their path adds grants. Writable places are executable anyway, except under
            // `pure`.
            let changeable = self.changeable.contains(&program);
            if !changeable || installation == Access::Read {
                self.add(Access::Run, &program);
            }
            if changeable {
                return;
            }
            for place in [Some(program.clone()), program.canonicalize().ok()].into_iter().flatten()
            {
                self.all(installation, prefix(&place));
            }
            next = beginning(&program).and_then(|start| self.interpreter(&start, search));
        }
    }

    /// The program that a script names in its first line. For `env`, which is granted separately, this is the program
    /// that it looks up.
    fn interpreter(&mut self, start: &[u8], search: &OsStr) -> Option<PathBuf> {
        let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        // This splits as the kernel does: other white space is part of a name.
        let words = line.split(|byte| matches!(byte, b' ' | b'\t' | 0));
        let mut words = words.filter(|word| !word.is_empty());
        let first = Path::new(OsStr::from_bytes(words.next()?));
        if first.file_name()? != "env" {
            return Some(first.to_owned());
        }
        self.add(Access::Run, first);
        let name = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
        lookup::find(OsStr::from_bytes(name), search, None).ok()
    }
}

/// The folders in which programs may have written files.
#[derive(Default)]
struct WritableParents {
    /// The workspace, even where this program has no access to it, and the places that this program
    /// may write.
    folders: HashSet<FileId>,
    /// The parts of these folders that are withheld from every program.
    withheld: Vec<PathBuf>,
}

impl WritableParents {
    fn of(confinement: &Confinement) -> Self {
        let id = |path: &PathBuf| resolve_path(&absolute(path)).ok()?.way.ids().last().copied();
        Self {
            folders: confinement
                .workspace
                .iter()
                .chain(&confinement.write)
                .filter_map(id)
                .collect(),
            withheld: confinement.hidden.iter().chain(&confinement.read_only).cloned().collect(),
        }
    }

    /// Whether a program could have changed this file or a link in its path.
    fn contains(&self, file: &Path) -> bool {
        if self.folders.is_empty() {
            return false;
        }
        let Ok(FoundFile { way, .. }) = resolve_path(&absolute(file)) else { return true };
        if way.link_in(|id| self.folders.contains(id)).is_some() {
            return true;
        }
        if !way.ids().iter().any(|id| self.folders.contains(id)) {
            return false;
        }
        // A place is compared both as given and with its links resolved.
        let real = way.path(way.ids().len().saturating_sub(1));
        let withheld = |place: &PathBuf| file.starts_with(place) || real.starts_with(place);
        !self.withheld.iter().any(withheld)
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The installation that a program belongs to: its `bin` folder has a sibling `lib`, or it is the
/// folder of shims of a version manager. A home directory or a shared system folder is never an
/// installation.
fn prefix(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    let prefix = folder.parent()?;
    let installed = folder.ends_with("bin") && prefix.join("lib").is_dir();
    let is_home = std::env::home_dir().is_some_and(|home| {
        prefix == home || prefix == home.join(".local") || home.starts_with(prefix)
    });
    (prefix.parent().is_some() && !is_home && (installed || folder.ends_with("shims")))
        .then(|| prefix.to_owned())
}

/// Whether a directory of `PATH` contains only programs.
fn holds_programs(directory: &Path) -> bool {
    let is_home = std::env::home_dir().is_some_and(|home| home.starts_with(directory));
    directory.is_absolute() && directory.parent().is_some() && !is_home
}

/// Reads as many bytes of a program's file as its first line may have.
fn beginning(program: &Path) -> Option<Vec<u8>> {
    let mut start = Vec::with_capacity(LINE_MAX);
    File::open(program).ok()?.take(LINE_MAX as u64).read_to_end(&mut start).ok()?;
    Some(start)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn program(file: &Path, text: &str) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn granted(confinement: &Confinement, program: &Path, search: &Path) -> Vec<PathBuf> {
        let grants =
            grants(confinement, Some(ProgramFile::Named(program)), search.as_os_str(), None);
        grants.into_iter().map(|(_, path)| path).collect()
    }

    #[test]
    fn a_script_is_granted_with_its_interpreter_and_that_ones_installation() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let snake = folder.join("versions/3/bin/snake3");
        program(&snake, "\u{7f}ELF");
        std::fs::create_dir(folder.join("versions/3/lib")).unwrap();
        std::fs::create_dir(folder.join("links")).unwrap();
        symlink(&snake, folder.join("links/snake")).unwrap();
        let script = folder.join("tools/count");
        program(&script, "#!/usr/bin/env -S snake -u\n");
        for profile in [Profile::Pure, Profile::Workspace] {
            let granted = granted(&Confinement::new(profile), &script, &folder.join("links"));
            for path in [&script, &folder.join("links/snake"), &folder.join("versions/3")] {
                assert!(granted.contains(path), "{profile}: {path:?} in {granted:?}");
            }
            assert!(!granted.contains(&folder), "{granted:?}");
        }
    }

    #[test]
    fn a_program_that_another_one_starts_is_granted_with_its_installation() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let snake = folder.join("snakes/shims/snake");
        program(&snake, "#!/bin/sh\n");
        let shims = folder.join("snakes/shims");
        let granted = |starts: &[&str]| {
            let confinement = Confinement::new(Profile::Workspace);
            let confinement = starts.iter().fold(confinement, |all, name| all.starts(*name));
            granted(&confinement, Path::new("/usr/bin/env"), &shims)
        };
        assert!(!granted(&[]).contains(&folder.join("snakes")));
        assert!(!granted(&["no-such-snake"]).contains(&folder.join("snakes")));
        assert!(granted(&["snake"]).contains(&folder.join("snakes")));
    }

    #[test]
    fn nothing_found_by_itself_is_a_home_directory_or_the_root() {
        let home = std::env::home_dir().unwrap();
        assert_eq!(prefix(&home.join("bin/tool")), None);
        assert_eq!(prefix(&home.join(".local/bin/tool")), None);
        assert_eq!(prefix(Path::new("/bin/true")), None);
        for directory in [home.as_path(), Path::new("/"), Path::new("bin")] {
            assert!(!holds_programs(directory), "{directory:?}");
        }
    }

    #[test]
    fn what_computes_is_granted_nothing_to_write_but_what_is_given() {
        let confinement = Confinement::new(Profile::Pure).workspace("/srv/w").read("/srv/r");
        let program = Some(ProgramFile::Named(Path::new("/bin/true")));
        let grants = grants(&confinement, program, OsStr::new("/bin"), None);
        let written: Vec<_> = grants
            .iter()
            .filter(|(access, _)| *access == Access::Write)
            .map(|(_, path)| path.to_str().unwrap())
            .collect();
        assert_eq!(written, DEVICES);
        let scratch = Path::new("/tmp/s");
        for (confinement, access) in [
            (confinement.clone(), Access::Read),
            (confinement.clone().writable_scratch(), Access::Write),
        ] {
            let granted = super::grants(&confinement, program, OsStr::new("/bin"), Some(scratch));
            assert!(granted.contains(&(access, scratch.to_owned())), "{granted:?}");
        }
        assert!(grants.contains(&(Access::Read, "/srv/r".into())));
        assert!(!grants.iter().any(|(_, path)| path == Path::new("/srv/w")));
    }
}
