//! Files outside the manifest's folder and the workspace that are not pinned.

use std::path::Path;

use toolcrib_manifest::declaration::NamedFile;

/// Folders with the system's programs and settings.
const SYSTEM: [&str; 10] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/nix/store", "/gnu"];

/// Folders whose files the kernel generates.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Folders with data that changes all the time, such as logs.
const VARIABLE: [&str; 2] = ["/var", "/run"];

/// Whether a file with an absolute path is not pinned: only the administrator can change it, it is system data, or it
/// is too large to read before each start. `is_code`: the file is run.
pub(super) fn is_left_out(place: &Path, is_code: bool) -> bool {
    let Ok(found) = place.canonicalize() else { return false };
    let is_below = |folders: &[&str]| folders.iter().any(|folder| found.starts_with(folder));
    let is_large = || found.metadata().is_ok_and(|file| file.len() > NamedFile::MAX_BYTES);
    is_below(&KERNEL)
        || (!is_code && is_below(&VARIABLE))
        || (is_below(&SYSTEM) && is_the_administrators(&found))
        || is_large()
}

/// Whether only the administrator can change or replace a file.
#[cfg(unix)]
fn is_the_administrators(file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    const WRITABLE_BY_OTHERS: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    file.ancestors().all(|place| {
        place.symlink_metadata().is_ok_and(|found| {
            // In a sticky folder, users cannot replace each other's files.
            let is_sticky = found.is_dir() && found.mode() & STICKY != 0;
            found.uid() == 0 && (is_sticky || found.mode() & WRITABLE_BY_OTHERS == 0)
        })
    })
}

#[cfg(not(unix))]
fn is_the_administrators(_: &Path) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn system_programs_and_data_are_not_pinned_but_scripts_elsewhere_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("run.sh");
        std::fs::write(&script, "echo").expect("a script");
        assert!(!is_left_out(&script, true));
        assert!(!is_left_out(&script, false));
        assert!(is_left_out(Path::new("/proc/meminfo"), true));
        let shell = Path::new("/bin/sh");
        assert_eq!(is_left_out(shell, true), is_the_administrators(&shell.canonicalize().unwrap()));
    }
}
