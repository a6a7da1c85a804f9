//! What may be opened, by Landlock.

pub(crate) mod grants;
pub(crate) mod mounts;
pub(crate) mod opened;
pub(crate) mod resolve;
pub(crate) mod withheld;

use std::error::Error;
use std::io;
use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};

use crate::Profile;
use crate::jail::helper::plan::{Access, Facility, Plan};

/// The newest version that was looked at. On an older kernel what it does not know is left out.
const KNOWN: ABI = ABI::V7;

/// Enforces the rules for this process and its descendants, and forbids new privileges. Returns the
/// Landlock version, or `None` if the kernel has none.
///
/// Grants are taken one after the other, so that only one of them is open at a time: a server may have
/// fewer descriptors than a program has grants. The first grant that is an error is the result.
///
/// This must be called in the process that is to be confined: a rule for `/proc/self` is a rule for the
/// process that opened it.
pub(super) fn restrict<E: From<io::Error>>(
    plan: &Plan,
    mut grants: impl Iterator<Item = Result<(Access, OwnedFd), E>>,
) -> Result<Option<u32>, E> {
    if plan.lacks(Facility::Landlock) {
        // Grants that are refused are refused without Landlock, too.
        return grants.find_map(Result::err).map_or(Ok(None), Err);
    }
    let mut rules = ruleset(plan).map_err(system_error)?;
    for grant in grants {
        let (access, file) = grant?;
        let rights = rights(access, plan.profile);
        let is_directory = rustix::fs::fstat(&file)
            .is_ok_and(|status| rustix::fs::FileType::from_raw_mode(status.st_mode).is_dir());
        let rights = if is_directory { rights } else { rights & AccessFs::from_file(KNOWN) };
        rules = rules.add_rule(PathBeneath::new(&file, rights)).map_err(system_error)?;
    }
    Ok(match rules.restrict_self().map_err(system_error)?.landlock {
        LandlockStatus::Available { effective_abi, .. } => Some(effective_abi as u32),
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    })
}

fn ruleset(plan: &Plan) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        // Signals, and sockets without a path, reach only what is held by these rules, too.
        .scope(Scope::from_all(KNOWN))?;
    if plan.profile != Profile::WorkspaceNet {
        ruleset = ruleset.handle_access(AccessNet::from_all(KNOWN))?;
    }
    ruleset.create()
}

/// What the system said, wherever it is in the error: the number is all that the helper can report.
fn system_error(error: RulesetError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(one) = cause {
        let number = one.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        if let Some(number) = number {
            return io::Error::from_raw_os_error(number);
        }
        cause = one.source();
    }
    io::Error::other(error)
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
