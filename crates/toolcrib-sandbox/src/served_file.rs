//! Files that the server itself opens for clients. They are outside of any jail, so access is
//! checked here.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, stat};

use crate::ControlPlane;
use crate::workspace::is_below;

/// A file that the server reads for its clients, such as the content of a resource.
///
/// At first the file is opened only for examination: it must be a regular file, and the rules apply to the path of the
/// open descriptor, after all links have been followed.
///
/// ```
/// use toolcrib_sandbox::{ControlPlane, Places, ServedFile};
///
/// let dir = tempfile::tempdir()?;
/// std::fs::write(dir.path().join("notes.md"), "Notes.")?;
/// std::fs::write(dir.path().join("config.yml"), "token: x")?;
/// let plane = ControlPlane::new();
/// plane.set(Places::resolve([dir.path().join("config.yml")], [""; 0]));
///
/// let served = |name| ServedFile::new(dir.path().join(name)).control_plane(&plane);
/// assert_eq!(served("notes.md").read(100)?, b"Notes.");
/// assert!(served("config.yml").read(100).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedFile {
    path: PathBuf,
    plane: ControlPlane,
    within: Option<Vec<PathBuf>>,
    except: Vec<PathBuf>,
}

impl ServedFile {
    /// Creates a file that may be anywhere. Relative paths are relative to the current directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { path, plane: ControlPlane::new(), within: None, except: Vec::new() }
    }

    /// Refuses to read places that this control plane hides at the time of the read.
    #[must_use]
    pub fn control_plane(self, plane: &ControlPlane) -> Self {
        Self { plane: plane.clone(), ..self }
    }

    /// Allows reading only while the file is in one of `folders` and in none of the places `except`. All are paths
    /// without links.
    #[must_use]
    pub fn within(self, folders: Vec<PathBuf>, except: Vec<PathBuf>) -> Self {
        Self { within: Some(folders), except, ..self }
    }

    /// Its path, as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its content. Fails if there are more than `max` bytes, or if the rules forbid reading the
    /// file.
    pub fn read(&self, max: u64) -> io::Result<Vec<u8>> {
        let file = self.open()?;
        let mut bytes = Vec::new();
        file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max {
            return Err(io::Error::other(format!("it is longer than {max} bytes")));
        }
        Ok(bytes)
    }

    fn open(&self) -> io::Result<File> {
        let held = hold(&self.path)?;
        let found = fstat(&held)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is not a regular file"));
        }
        if found.st_nlink == 0 {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        let place = place_of(&held, &self.path)?;
        self.plane.refresh();
        let places = self.plane.places();
        // A file may have several names.
        let is_same = |hidden: &PathBuf| {
            stat(hidden).is_ok_and(|own| (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino))
        };
        if places.hidden.iter().any(|hidden| is_below(&place, hidden) || is_same(hidden)) {
            let problem = "it is part of what decides what this server runs, or of what only the \
                           server may know, which is never handed out";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        if is_of_a_process(&place) {
            let problem = "it shows the inside of a process, which is never handed out";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        if let Some(folders) = &self.within
            && (!folders.iter().any(|folder| is_below(&place, folder))
                || self.except.iter().any(|except| is_below(&place, except)))
        {
            let problem = format!(
                "it is `{}`, outside of the manifest's folder and the workspace or in a place of \
                 credentials, which needs the operator's trust",
                place.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        reopen(&held)
    }
}

/// Whether a path is below `/proc/PID`, where the kernel shows a process's memory, environment and
/// files.
fn is_of_a_process(place: &Path) -> bool {
    let mut parts = place.components().skip(1);
    let first = |part: Option<Component<'_>>| part.map(|part| part.as_os_str().to_owned());
    first(parts.next()).is_some_and(|name| name == "proc")
        && first(parts.next())
            .is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// Opens a file without opening its content: opening some devices has effects.
#[cfg(target_os = "linux")]
fn hold(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// The path of the open file, without links.
#[cfg(target_os = "linux")]
fn place_of(held: &OwnedFd, _: &Path) -> io::Result<PathBuf> {
    use std::os::fd::AsFd as _;

    Ok(crate::workspace::path_of(held.as_fd())?)
}

/// Reopens the same file, even if its path names another one by now.
#[cfg(target_os = "linux")]
fn reopen(held: &OwnedFd) -> io::Result<File> {
    use std::os::fd::AsRawFd as _;

    let link = format!("/proc/self/fd/{}", held.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(link, flags, Mode::empty())?))
}

#[cfg(not(target_os = "linux"))]
fn hold(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

#[cfg(not(target_os = "linux"))]
fn place_of(held: &OwnedFd, path: &Path) -> io::Result<PathBuf> {
    let place = path.canonicalize()?;
    let (there, own) = (rustix::fs::lstat(&place)?, fstat(held)?);
    if (there.st_dev, there.st_ino) != (own.st_dev, own.st_ino) {
        return Err(io::Error::other("it was replaced while it was opened"));
    }
    Ok(place)
}

#[cfg(not(target_os = "linux"))]
fn reopen(held: &OwnedFd) -> io::Result<File> {
    Ok(File::from(held.try_clone()?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::Places;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        (dir, path)
    }

    #[test]
    fn a_hidden_place_is_never_read_by_whatever_name() {
        let (_dir, top) = folder();
        fs::create_dir(top.join("state")).unwrap();
        fs::write(top.join("state/trust.json"), "{}").unwrap();
        fs::write(top.join("config.yml"), "token").unwrap();
        fs::write(top.join("notes"), "notes").unwrap();
        symlink("config.yml", top.join("link")).unwrap();
        symlink("state", top.join("folder")).unwrap();
        fs::hard_link(top.join("config.yml"), top.join("hard")).unwrap();
        let plane = ControlPlane::new();
        plane.set(Places::resolve([top.join("config.yml"), top.join("state")], [""; 0]));
        let read = |name: &str| ServedFile::new(top.join(name)).control_plane(&plane).read(100);
        for name in ["config.yml", "link", "hard", "state/../config.yml", "folder/trust.json"] {
            let error = read(name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{name}: {error}");
        }
        assert_eq!(read("notes").unwrap(), b"notes");
    }

    #[test]
    fn a_file_is_read_only_within_its_folders_wherever_a_link_leads() {
        let (_dir, top) = folder();
        let (_other, outside) = folder();
        fs::write(outside.join("secret"), "secret").unwrap();
        fs::write(top.join("notes"), "notes").unwrap();
        fs::create_dir(top.join(".ssh")).unwrap();
        fs::write(top.join(".ssh/id"), "id").unwrap();
        symlink(outside.join("secret"), top.join("link")).unwrap();
        let read = |name: &str| {
            let file = ServedFile::new(top.join(name));
            file.within(vec![top.clone()], vec![top.join(".ssh")]).read(100)
        };
        assert_eq!(read("notes").unwrap(), b"notes");
        for name in ["link", ".ssh/id", "../../etc/passwd"] {
            let error = read(name).unwrap_err();
            assert!(error.to_string().contains("operator's trust"), "{name}: {error}");
        }
    }

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let (_dir, top) = folder();
        let pipe = top.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .unwrap();
        for path in [&pipe, &top, Path::new("/dev/null")] {
            let error = ServedFile::new(path).read(100).unwrap_err();
            assert!(error.to_string().contains("not a regular file"), "{error}");
        }
        fs::write(top.join("long"), "12345").unwrap();
        assert!(ServedFile::new(top.join("long")).read(4).is_err());
        assert_eq!(ServedFile::new(top.join("long")).read(5).unwrap(), b"12345");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_inside_of_a_process_is_never_read() {
        for path in ["/proc/self/environ", "/proc/thread-self/environ", "/proc/1/environ"] {
            let error = ServedFile::new(path).read(1 << 20).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{path}: {error}");
        }
        assert!(ServedFile::new("/proc/uptime").read(100).is_ok());
    }
}
