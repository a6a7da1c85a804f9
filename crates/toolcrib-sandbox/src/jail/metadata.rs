//! Modes, owners, times and attributes of files: Landlock has no rule for them, and what has the
//! server's user may change those of all its files, wherever they are.
//!
//! What computes changes none. Other programs have to set modes and times in their workspace, and a
//! filter sees no paths: there what is left are changes that do no harm outside (nothing is given to
//! another user or group, nothing gets the right to run as the server), and attributes, which
//! programs find missing as on file systems that have none.

use libc::c_long;
use seccompiler::{BackendError, SeccompCmpOp, SeccompRule};

use super::syscalls::{Rules, has, is, refuse};
use crate::Profile;

/// Numbers that the binding does not know; the same on every architecture.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const FILE_SETATTR: c_long = 469;

/// Requests that set flags of a file, such as that it cannot be changed.
const SET_FLAGS: [u64; 2] = [0x4008_6602, 0x401c_5820];

/// Calls that set extended attributes, access lists among them.
const ATTRIBUTES: [c_long; 8] = [
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
];

/// Calls that set modes, and which of their arguments is the mode.
const MODES: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];

/// Calls that set owners, and which of their arguments is the user; the next is the group.
const OWNERS: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chown, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lchown, 1),
    (libc::SYS_fchown, 1),
    (libc::SYS_fchownat, 2),
];

/// Calls that set times.
const TIMES: &[c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_utimensat,
];

/// Adds what is refused. Those of [`unsupported`] are answered before.
pub(super) fn rules(rules: &mut Rules, profile: Profile) -> Result<(), BackendError> {
    refuse(rules, &[FILE_SETATTR]);
    for request in SET_FLAGS {
        let flags = SeccompRule::new(vec![is(1, SeccompCmpOp::Eq, request)?])?;
        rules.entry(libc::SYS_ioctl).or_default().push(flags);
    }
    if profile == Profile::Pure {
        refuse(rules, &ATTRIBUTES);
        refuse(rules, TIMES);
        for (call, _) in MODES.iter().chain(OWNERS) {
            refuse(rules, &[*call]);
        }
        return Ok(());
    }
    for (call, mode) in MODES {
        rules.insert(*call, vec![has(*mode, u64::from(libc::S_ISUID))?]);
    }
    let user = u64::from(rustix::process::geteuid().as_raw());
    let group = u64::from(rustix::process::getegid().as_raw());
    for (call, first) in OWNERS {
        let others = [(*first, user), (first + 1, group)].map(|(argument, own)| {
            let unchanged = is(argument, SeccompCmpOp::Ne, u64::from(u32::MAX))?;
            SeccompRule::new(vec![is(argument, SeccompCmpOp::Ne, own)?, unchanged])
        });
        rules.insert(*call, others.into_iter().collect::<Result<_, _>>()?);
    }
    Ok(())
}

/// Calls that are answered as by a file system that does not have such a thing, because programs
/// that copy files take that for an answer and go on.
pub(super) fn unsupported(profile: Profile) -> &'static [c_long] {
    if profile == Profile::Pure { &[] } else { &ATTRIBUTES }
}
