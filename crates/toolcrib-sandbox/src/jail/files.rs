//! What may be opened, by Landlock.

use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope,
};

use super::plan::{Access, Facility, Plan};
use crate::Profile;

/// The newest version that was looked at. On an older kernel what it does not know is left out.
const KNOWN: ABI = ABI::V7;

/// Puts the rules in force for this process and all it becomes, and forbids new privileges. Gives
/// the version of Landlock, or nothing where the kernel has none.
///
/// To be called in the process that is to be held: a rule for `/proc/self` is one for the process
/// that opened it.
pub(super) fn restrict(
    plan: &Plan,
    grants: &[(Access, OwnedFd)],
) -> Result<Option<u32>, RulesetError> {
    if plan.lacks(Facility::Landlock) {
        return Ok(None);
    }
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        // Signals, and sockets without a path, reach only what is held by these rules, too.
        .scope(Scope::from_all(KNOWN))?;
    if plan.profile != Profile::WorkspaceNet {
        ruleset = ruleset.handle_access(AccessNet::from_all(KNOWN))?;
    }
    let mut rules = ruleset.create()?;
    for (access, file) in grants {
        let rights = rights(*access, plan.profile);
        let is_directory = rustix::fs::fstat(file)
            .is_ok_and(|status| rustix::fs::FileType::from_raw_mode(status.st_mode).is_dir());
        let rights = if is_directory { rights } else { rights & AccessFs::from_file(KNOWN) };
        rules = rules.add_rule(PathBeneath::new(file, rights))?;
    }
    Ok(match rules.restrict_self()?.landlock {
        LandlockStatus::Available { effective_abi, .. } => Some(effective_abi as u32),
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    })
}

/// Not all that can be written: as root, whoever may make a device file has the disk.
fn rights(access: Access, profile: Profile) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let execute = BitFlags::from(AccessFs::Execute);
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    match access {
        Access::Read => read,
        Access::Run => read | execute,
        Access::Write => {
            let written = AccessFs::from_write(KNOWN) & !devices;
            if profile == Profile::Pure { read | written } else { read | execute | written }
        }
    }
}
