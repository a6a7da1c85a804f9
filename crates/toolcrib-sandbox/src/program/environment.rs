//! The environment variables of programs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::OnceLock;

/// The `PATH` to use if the server has none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The folders of the server's `PATH` that existed at the first call, or the usual system
/// directories. Relative and empty entries are left out.
///
/// A relative entry means "the working directory": if that is the workspace, a file there could
/// pose as `git`. So could a program in a folder that a tool creates later.
pub fn server_path() -> OsString {
    static PATH: OnceLock<OsString> = OnceLock::new();
    PATH.get_or_init(|| searched(&std::env::var_os("PATH").unwrap_or_default())).clone()
}

/// The absolute folders of a `PATH` that exist.
fn searched(path: &OsStr) -> OsString {
    let exists =
        |folder: &&[u8]| folder.starts_with(b"/") && Path::new(OsStr::from_bytes(folder)).is_dir();
    let folders: Vec<&[u8]> = path.as_bytes().split(|byte| *byte == b':').filter(exists).collect();
    if folders.is_empty() {
        return OsString::from(DEFAULT_PATH);
    }
    OsString::from_vec(folders.join(&b':'))
}

/// The variables of every program: `PATH`, `LANG` and, if the server has it, `TZ`.
pub(crate) fn base() -> Vec<(OsString, OsString)> {
    let mut base = vec![(OsString::from("PATH"), server_path())];
    // Without a locale, many programs print `?` for every character that is not ASCII.
    let lang = std::env::var_os("LANG").unwrap_or_else(|| OsString::from("C.UTF-8"));
    base.push((OsString::from("LANG"), lang));
    if let Some(zone) = std::env::var_os("TZ") {
        base.push((OsString::from("TZ"), zone));
    }
    base
}

/// Whether `name` can be a variable at all: not empty, no `=`, no NUL.
pub(crate) fn is_valid_name(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !name.is_empty() && !name.contains(&b'=') && !name.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_in_folders_that_exist_and_in_no_relative_one() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().to_str().unwrap();
        let path = format!("bin::{there}/later:{there}:.");
        assert_eq!(searched(OsStr::new(&path)), there);
        assert_eq!(searched(OsStr::new("bin:.")), DEFAULT_PATH);
    }

    #[test]
    fn a_variable_name_is_not_empty_and_has_no_equals_sign() {
        assert!(is_valid_name(OsStr::new("A_1")));
        for name in ["", "A=B", "A\0B"] {
            assert!(!is_valid_name(OsStr::new(name)), "{name:?}");
        }
    }
}
