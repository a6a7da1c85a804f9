//! The jail on systems without the required kernel features, where programs are not started at all
//! ([`SpawnError::Unsupported`](crate::SpawnError::Unsupported)).

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

/// What this system cannot enforce: one sentence, that it starts no program.
pub fn probe() -> &'static [String] {
    static FOUND: OnceLock<[String; 1]> = OnceLock::new();
    FOUND.get_or_init(|| [crate::NO_PROGRAMS.to_owned()])
}

/// Nothing: no program is started here under any profile.
pub fn shortfalls() -> &'static [String] {
    &[]
}

/// Nothing: there is nothing that this program could be a helper for.
pub fn reexec_hook() {}

/// What `toolcrib-jail` does here: it fails, and says so.
pub fn main() -> ExitCode {
    // Nobody may be there to hear it.
    let _ = writeln!(io::stderr(), "toolcrib-jail {}", crate::NO_PROGRAMS);
    ExitCode::from(2)
}

/// Says that the file is of no use: `false`.
pub fn set_helper(_file: impl Into<PathBuf>) -> bool {
    false
}

/// Opens nothing, and says that there is no helper.
pub fn open_helper() -> bool {
    false
}

/// Whether there is a helper: no.
pub fn has_helper() -> bool {
    false
}

/// Only trusted programs could be started.
pub(crate) fn check(confinement: &crate::Confinement) -> Result<(), String> {
    match confinement.profile {
        crate::Profile::Trusted => Ok(()),
        _ => Err(crate::NO_PROGRAMS.to_owned()),
    }
}
