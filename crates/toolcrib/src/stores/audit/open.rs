//! Opening files of the audit log: only regular files, and never through a link.
//!
//! A FIFO, a socket or a device would swallow records without an error, and a link would send them to a file that
//! others may read.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// The mode of a new file. An existing file keeps its mode, which may be wider for a program that ships logs.
const MODE: u32 = 0o600;

/// The mode bits of other users.
const OTHERS: u32 = 0o077;

/// Opens the file for appending, and creates it if it does not exist.
pub(super) fn for_appending(path: &Path) -> io::Result<(File, Metadata)> {
    let (file, found) =
        open(path, OpenOptions::new().read(true).append(true).create(true).mode(MODE))?;
    let mode = found.mode() & 0o7777;
    if mode & OTHERS != 0 {
        tracing::warn!(
            "the audit log {} has mode {mode:o}, so other users can reach it; to close it, run \
             `chmod 600` on it",
            path.display()
        );
    }
    Ok((file, found))
}

/// Opens the file for reading.
pub(super) fn for_reading(path: &Path) -> io::Result<(File, Metadata)> {
    open(path, OpenOptions::new().read(true))
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<(File, Metadata)> {
    // A FIFO without a reader would block the open, and a terminal would become the process's own.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = options.custom_flags(flags).open(path).map_err(|error| {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::LOOP) => not_regular("a symbolic link"),
            // A socket, or a FIFO without a reader.
            Some(Errno::NXIO) => not_regular("a FIFO or a socket"),
            _ => error,
        }
    })?;
    let found = file.metadata()?;
    let kind = found.file_type();
    if kind.is_file() {
        Ok((file, found))
    } else if kind.is_fifo() {
        Err(not_regular("a FIFO"))
    } else if kind.is_dir() {
        Err(not_regular("a folder"))
    } else {
        Err(not_regular("a device"))
    }
}

fn not_regular(found: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "this is {found}, and the audit log must be a regular file: remove it, or choose another place"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;
    use std::time::SystemTime;

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use toolcrib_core::audit::{AuditRecord, AuditSink as _};

    use super::*;
    use crate::stores::FileAudit;

    fn fifo(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    }

    #[test]
    fn a_fifo_a_socket_a_device_or_a_link_is_no_place_for_the_audit_log() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fifo(&at("fifo"));
        let _socket = UnixListener::bind(at("socket")).unwrap();
        std::fs::write(at("elsewhere"), "").unwrap();
        symlink(at("elsewhere"), at("link")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        for (place, kind) in [
            (at("fifo"), "a FIFO"),
            (at("socket"), "a socket"),
            (at("link"), "a symbolic link"),
            (at("dangling"), "a symbolic link"),
            ("/dev/null".into(), "a device"),
        ] {
            let error = FileAudit::open(&place).unwrap_err().to_string();
            assert!(error.contains(kind) && error.contains("regular file"), "{place:?}: {error}");
            assert!(error.contains(place.to_str().unwrap()), "{error}");
        }
        assert!(!at("nowhere").exists());
    }

    #[test]
    fn records_are_counted_as_lost_when_a_fifo_or_a_link_takes_the_place_of_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let audit = FileAudit::open(&path).unwrap();
        let record = AuditRecord::new(SystemTime::UNIX_EPOCH, "1", "t");
        std::fs::remove_file(&path).unwrap();
        fifo(&path);
        audit.record(&record);
        audit.flush();
        assert_eq!(audit.lost(), 1);
        audit.tail(1).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::fs::write(&elsewhere, "").unwrap();
        symlink(&elsewhere, &path).unwrap();
        audit.record(&record);
        audit.flush();
        assert_eq!(audit.lost(), 2);
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "");
        std::fs::remove_file(&path).unwrap();
        audit.record(&record);
        audit.flush();
        assert_eq!((audit.lost(), audit.tail(5).unwrap().len()), (2, 1));
    }

    #[test]
    fn a_link_to_the_open_log_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let audit = FileAudit::open(&path).unwrap();
        let moved = dir.path().join("moved");
        std::fs::rename(&path, &moved).unwrap();
        symlink(&moved, &path).unwrap();
        audit.record(&AuditRecord::new(SystemTime::UNIX_EPOCH, "1", "t"));
        audit.flush();
        assert_eq!(audit.lost(), 1);
    }

    #[test]
    fn an_existing_log_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let audit = FileAudit::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        drop(audit);
    }
}
