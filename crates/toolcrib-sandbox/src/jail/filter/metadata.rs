//! Modes, owners, times and attributes of files. Landlock has no rules for them, and a program that
//! runs as the server's user may change those of every file of that user.
//!
//! Under `pure` no change is allowed. Other programs have to set modes and times in their
//! workspace, and a filter sees no paths. So they may make the changes that are harmless
//! everywhere: they cannot give a file to another user or group, and cannot create a set-user-ID or
//! set-group-ID file. Setting attributes fails as on a file system without them.

use libc::c_long;

use crate::Profile;
use crate::jail::filter::{Filter, has_any, is, is_not};

/// System call numbers that the binding lacks; they are the same on every architecture.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const FILE_SETATTR: c_long = 469;

/// Requests that set file flags, such as immutable.
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

/// Calls that set modes, and the index of their mode argument.
const MODES: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];

/// The set-user-ID and set-group-ID bits.
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;

/// Calls that create files, and the index of their mode argument. `mkdir` is not included: the
/// kernel clears these bits for new folders.
const CREATIONS: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];

/// Calls that open files, and the index of their flags argument. The next argument is the mode,
/// which applies only if the flags create a file.
const OPENINGS: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];
/// The flags that create a file: `O_CREAT`, and the one bit that only `O_TMPFILE` has.
const CREATES: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)).cast_unsigned();

/// Calls that set owners, and the index of their user argument; the next argument is the group.
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

/// Adds the refused calls and the unsupported ones.
pub(in crate::jail) fn rules(filter: &mut Filter, profile: Profile) {
    filter.refuse(&[FILE_SETATTR]);
    filter.refuse_if(libc::SYS_ioctl, SET_FLAGS.map(|request| vec![is(1, request)]));
    for (call, mode) in CREATIONS {
        filter.refuse_if(*call, [vec![has_any(*mode, SET_ID)]]);
    }
    for (call, flags) in OPENINGS {
        filter.refuse_if(*call, [vec![has_any(*flags, CREATES), has_any(flags + 1, SET_ID)]]);
    }
    if profile == Profile::Pure {
        filter.refuse(&ATTRIBUTES);
        filter.refuse(TIMES);
        for (call, _) in MODES.iter().chain(OWNERS) {
            filter.refuse(&[*call]);
        }
        return;
    }
    // They fail as on a file system without attributes, which programs that copy files can handle.
    filter.fail(&ATTRIBUTES, libc::EOPNOTSUPP);
    for (call, mode) in MODES {
        filter.refuse_if(*call, [vec![has_any(*mode, SET_ID)]]);
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
