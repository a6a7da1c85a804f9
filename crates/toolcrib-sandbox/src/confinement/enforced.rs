//! What the kernel enforces for a program.

use std::fmt;

use crate::{KillRung, Profile};

/// What the kernel enforces for a program. It formats as one line:
///
/// ```
/// use toolcrib_sandbox::Enforced;
///
/// assert_eq!(Enforced::nothing().to_string(), "trusted; processes: process_group");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Enforced {
    /// The requested profile.
    pub profile: Profile,
    /// Whether it can open only the files of its profile and its grants.
    pub files: bool,
    /// Whether it can open only the sockets of its profile.
    pub network: bool,
    /// Whether its system calls are filtered.
    pub syscalls: bool,
    /// Whether it has no capabilities and can gain no privileges.
    pub privileges: bool,
    /// Whether places below its grants were hidden from it or made read-only: those of
    /// [`Confinement::hidden`](crate::Confinement::hidden) and
    /// [`read_only`](crate::Confinement::read_only). Also `false` if no grant contains such a
    /// place.
    pub withheld: bool,
    /// The mechanism that holds its process tree together.
    pub processes: KillRung,
    /// The Landlock version in force.
    pub landlock: Option<u32>,
    /// Guarantees of the profile that this machine does not enforce, with the reason, one clause
    /// each.
    pub missing: Vec<String>,
}

impl Enforced {
    /// For a [trusted](Profile::Trusted) program, only its process tree is ended.
    pub const fn nothing() -> Self {
        Self {
            profile: Profile::Trusted,
            files: false,
            network: false,
            syscalls: false,
            privileges: false,
            withheld: false,
            processes: KillRung::ProcessGroup,
            landlock: None,
            missing: Vec::new(),
        }
    }

    /// Whether everything that the profile promises is enforced.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// The names of the enforced restrictions.
    pub fn held(&self) -> impl Iterator<Item = &'static str> {
        let held = [
            (self.files, "files"),
            (self.network, "network"),
            (self.syscalls, "syscalls"),
            (self.privileges, "privileges"),
            (self.withheld, "withheld"),
        ];
        held.into_iter().filter_map(|(held, name)| held.then_some(name))
    }
}

impl fmt::Display for Enforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.profile.as_str())?;
        for (index, name) in self.held().enumerate() {
            write!(f, "{} {name}", if index == 0 { ":" } else { "," })?;
        }
        write!(f, "; processes: {}", self.processes.as_str())?;
        for missing in &self.missing {
            write!(f, "; not enforced: {missing}")?;
        }
        Ok(())
    }
}
