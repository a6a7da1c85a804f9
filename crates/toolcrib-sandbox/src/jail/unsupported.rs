//! The jail on systems without the required kernel features, where programs are not started at all
//! ([`SpawnError::Unsupported`](crate::SpawnError::Unsupported)).

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

/// The features that this system cannot enforce: one sentence, which says that it starts no
/// programs.
pub fn probe() -> &'static [String] {
    static FOUND: OnceLock<[String; 1]> = OnceLock::new();
    FOUND.get_or_init(|| [crate::NO_PROGRAMS.to_owned()])
}

/// Empty: this system starts no program under any profile.
pub fn shortfalls() -> &'static [String] {
    &[]
}

/// Does nothing: a helper is not needed.
pub fn reexec_hook() {}

/// The `main` of `toolcrib-jail`: it fails with a message.
pub fn main() -> ExitCode {
    // Writing the message may fail.
    let _ = writeln!(io::stderr(), "toolcrib-jail {}", crate::NO_PROGRAMS);
    ExitCode::from(2)
}

/// Returns `false`: the file is not used.
pub fn set_helper(_file: impl Into<PathBuf>) -> bool {
    false
}

/// Returns `false`: there is no helper.
pub fn open_helper() -> bool {
    false
}

/// Returns `false`: there is no helper.
pub fn has_helper() -> bool {
    false
}

/// Programs cannot be confined.
pub(crate) fn check(confinement: &crate::Confinement) -> Result<(), String> {
    match confinement.profile {
        crate::Profile::Trusted => Ok(()),
        _ => Err(crate::NO_PROGRAMS.to_owned()),
    }
}
