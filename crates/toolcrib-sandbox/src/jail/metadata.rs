//! Modes, owners, times and attributes of files: Landlock has no rule for them, and what has the
//! server's user may change those of all its files, wherever they are.
//!
//! What computes changes none. Other programs have to set modes and times in their workspace, and a
//! filter sees no paths: there what is left are changes that do no harm outside (nothing is given to
//! another user or group, nothing gets the right to run as the server), and attributes, which
//! programs find missing as on file systems that have none.

use libc::c_long;

use super::filter::{Filter, has, is, is_not};
use crate::Profile;

/// Numbers that the binding does not know; the same on every architecture.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const FILE_SETATTR: c_long = 469;

/// Requests that set flags of a file, such as that it cannot be changed.
const SET_FLAGS: [u32; 2] = [0x4008_6602, 0x401c_5820];

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

/// Adds what is refused, and what is not supported.
pub(super) fn rules(filter: &mut Filter, profile: Profile) {
    filter.refuse(&[FILE_SETATTR]);
    filter.refuse_if(libc::SYS_ioctl, SET_FLAGS.map(|request| vec![is(1, request)]));
    if profile == Profile::Pure {
        filter.refuse(&ATTRIBUTES);
        filter.refuse(TIMES);
        for (call, _) in MODES.iter().chain(OWNERS) {
            filter.refuse(&[*call]);
        }
        return;
    }
    // As by a file system that has none: programs that copy files take that for an answer.
    filter.fail(&ATTRIBUTES, libc::EOPNOTSUPP);
    for (call, mode) in MODES {
        filter.refuse_if(*call, [vec![has(*mode, libc::S_ISUID)]]);
    }
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    for (call, first) in OWNERS {
        let others = [(*first, user), (first + 1, group)].map(|(argument, own)| {
            let unchanged = u32::MAX;
            vec![is_not(argument, own), is_not(argument, unchanged)]
        });
        filter.refuse_if(*call, others);
    }
}
