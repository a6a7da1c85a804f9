//! Which environment variables a program may see, and which ones would let a value take it over.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Where programs are looked for when the server has no `PATH` of its own.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The server's `PATH` without its relative and empty entries, or the usual system directories.
///
/// A relative entry means "the working directory": with the workspace as working directory, a file
/// somebody put there could pose as `git`.
pub fn server_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let absolute: Vec<&[u8]> =
        path.as_bytes().split(|byte| *byte == b':').filter(|dir| dir.starts_with(b"/")).collect();
    if absolute.is_empty() {
        return OsString::from(DEFAULT_PATH);
    }
    OsString::from_vec(absolute.join(&b':'))
}

/// The variables every program gets: `PATH`, `LANG` and, if the server has it, `TZ`.
pub(crate) fn base() -> Vec<(OsString, OsString)> {
    let mut base = vec![(OsString::from("PATH"), server_path())];
    // Without a locale many programs print `?` for every character beyond ASCII.
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
    fn a_variable_name_is_not_empty_and_has_no_equals_sign() {
        assert!(is_valid_name(OsStr::new("A_1")));
        for name in ["", "A=B", "A\0B"] {
            assert!(!is_valid_name(OsStr::new(name)), "{name:?}");
        }
    }
}
