//! Landlock rules: which files a program may open.

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
use crate::jail::helper::plan::{Access, KernelFeature, Plan};

/// The newest Landlock version that this code supports. Rules that an older kernel does not know
/// are left out.
const KNOWN: ABI = ABI::V7;

/// Enforces the rules for this process and its descendants, and drops the ability to gain
/// privileges. Returns the Landlock version, or `None` if the kernel lacks Landlock.
///
/// Grants are opened one at a time, because a server may have fewer descriptors left than a program has grants. The
/// first grant that fails determines the error.
///
/// Call this in the process that is to be confined: a rule for `/proc/self` applies to the process that opened it.
pub(super) fn restrict<E: From<io::Error>>(
    plan: &Plan,
    mut grants: impl Iterator<Item = Result<(Access, OwnedFd), E>>,
) -> Result<Option<u32>, E> {
    if plan.lacks(KernelFeature::Landlock) {
        // A grant that is an error fails without Landlock too.
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
        // Signals and abstract sockets reach only processes under the same rules.
        .scope(Scope::from_all(KNOWN))?;
    if plan.profile != Profile::WorkspaceNet {
        ruleset = ruleset.handle_access(AccessNet::from_all(KNOWN))?;
    }
    ruleset.create()
}

/// The `errno` of the error, wherever it is in the chain of sources: the helper can report only a
/// number.
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

/// Device files are not included: a root process that may create one can access the whole disk.
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
