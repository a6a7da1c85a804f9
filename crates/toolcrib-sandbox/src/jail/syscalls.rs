//! The filter of system calls: what no confined program may ask the kernel for.
//!
//! It is a list of what is refused, so that programs nobody thought of run; what it refuses are the
//! ways out of the other walls (namespaces, mounts, other processes' memory, `io_uring`, which makes
//! calls that no filter sees), what Landlock does not know (sockets other than TCP; metadata of files,
//! in `metadata.rs`), and the numbers of system calls that this version does not know.

use std::io;

use libc::{c_int, c_long, sock_filter};

use super::filter::{Filter, Rule, has, is, is_not, lacks};
use super::metadata;
use super::plan::{Facility, Plan};
use crate::process::sys;
use crate::{KillRung, Profile};

/// The newest system call whose meaning was looked at (`file_setattr`, Linux 6.17); later ones are
/// unknown to programs as well, which fall back. So are the numbers of the second calling convention
/// of x86-64, which begin at `0x4000_0000`.
const NEWEST: u32 = 469;
/// A number that the binding does not know; the same on every architecture.
const OPEN_TREE_ATTR: c_long = 467;
/// Requests that type into a terminal, `TIOCSTI` and `TIOCLINUX`.
const TYPING: [u32; 2] = [0x5412, 0x541c];

/// Puts the filter in force for this process and all it becomes, which must have given up new
/// privileges. Says `false` where the kernel has no filters.
pub(super) fn restrict(plan: &Plan) -> io::Result<bool> {
    if plan.lacks(Facility::Seccomp) {
        return Ok(false);
    }
    match sys::filter_calls(&program(plan)?) {
        Ok(()) => Ok(true),
        // Built without filters.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn program(plan: &Plan) -> io::Result<Vec<sock_filter>> {
    let mut filter = Filter::default();
    never(&mut filter);
    not_from_outside(&mut filter);
    sockets(&mut filter, plan.profile);
    metadata::rules(&mut filter, plan.profile);
    if plan.profile == Profile::Pure {
        no_processes(&mut filter);
        nothing_shared(&mut filter);
    }
    if plan.rung == KillRung::SealedGroup {
        filter.refuse(&[libc::SYS_setsid, libc::SYS_setpgid]);
    }
    // Its flags are behind a pointer, where no filter sees them. The C library does without.
    filter.fail(&[libc::SYS_clone3], libc::ENOSYS);
    filter.compile(NEWEST)
}

/// What nothing that is confined needs.
fn never(filter: &mut Filter) {
    filter.refuse(&[
        // Calls made on one's behalf, where no filter is asked.
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        // Other processes.
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_process_madvise,
        libc::SYS_pidfd_getfd,
        libc::SYS_kcmp,
        // Another view of the machine.
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        OPEN_TREE_ATTR,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        // Files by another way than their names.
        libc::SYS_open_by_handle_at,
        libc::SYS_name_to_handle_at,
        libc::SYS_fanotify_init,
        // Parts of the kernel with a long list of holes.
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        // The machine itself.
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_kexec_load,
        libc::SYS_reboot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_acct,
        libc::SYS_quotactl,
        libc::SYS_syslog,
        libc::SYS_vhangup,
        libc::SYS_sethostname,
        libc::SYS_setdomainname,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_adjtimex,
        libc::SYS_clock_adjtime,
    ]);
    #[cfg(target_arch = "x86_64")]
    filter.refuse(&[
        libc::SYS_iopl,
        libc::SYS_ioperm,
        libc::SYS_modify_ldt,
        libc::SYS_kexec_file_load,
    ]);
}

/// No namespaces of one's own, no typing into a terminal, no limits for others.
fn not_from_outside(filter: &mut Filter) {
    let namespaces = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let any = |flag: c_int| vec![has(0, flag.cast_unsigned())];
    filter.refuse_if(libc::SYS_clone, namespaces.map(any));
    filter.refuse_if(libc::SYS_ioctl, TYPING.map(|request| vec![is(1, request)]));
    // Limits of others: those of the server are within reach of its user.
    filter.refuse_if(libc::SYS_prlimit64, [vec![is_not(0, 0)]]);
}

/// The sockets of a profile. Those of the machine's own services have paths, which Landlock does
/// not guard before its ninth version, and speak with the server's rights: they are refused even
/// where the network is allowed. A pair between one's own processes is not.
fn sockets(filter: &mut Filter, profile: Profile) {
    if profile == Profile::Pure {
        return filter.refuse(&[libc::SYS_socket, libc::SYS_socketpair]);
    }
    let not = |argument, value: c_int| is_not(argument, value.cast_unsigned());
    filter.refuse_if(libc::SYS_socketpair, [vec![not(0, libc::AF_UNIX)]]);
    if profile == Profile::Workspace {
        return filter.refuse(&[libc::SYS_socket]);
    }
    let family: Rule =
        [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|family| not(0, family)).into();
    // Of the kernel's own, the addresses and the sockets of the machine.
    let kernel = vec![
        is(0, libc::AF_NETLINK.cast_unsigned()),
        not(2, libc::NETLINK_ROUTE),
        not(2, libc::NETLINK_SOCK_DIAG),
    ];
    filter.refuse_if(libc::SYS_socket, [family, kernel]);
}

/// Threads, but no processes; signals to oneself, but to nobody else.
fn no_processes(filter: &mut Filter) {
    filter.refuse(&[
        libc::SYS_kill,
        libc::SYS_tkill,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
        libc::SYS_pidfd_open,
        libc::SYS_pidfd_send_signal,
        libc::SYS_memfd_create,
        libc::SYS_memfd_secret,
    ]);
    #[cfg(target_arch = "x86_64")]
    filter.refuse(&[libc::SYS_fork, libc::SYS_vfork]);
    filter.refuse_if(libc::SYS_clone, [vec![lacks(0, libc::CLONE_THREAD.cast_unsigned())]]);
    filter.refuse_if(libc::SYS_tgkill, [vec![is_not(0, std::process::id())]]);
}

/// Memory and messages that programs share by a number or a name, and hearing of what others do with
/// files: neither has a path that Landlock would guard.
fn nothing_shared(filter: &mut Filter) {
    filter.refuse(&[
        libc::SYS_shmget,
        libc::SYS_shmat,
        libc::SYS_shmctl,
        libc::SYS_msgget,
        libc::SYS_msgsnd,
        libc::SYS_msgrcv,
        libc::SYS_msgctl,
        libc::SYS_semget,
        libc::SYS_semop,
        libc::SYS_semtimedop,
        libc::SYS_semctl,
        libc::SYS_mq_open,
        libc::SYS_mq_unlink,
        libc::SYS_inotify_init1,
        libc::SYS_inotify_add_watch,
    ]);
    #[cfg(target_arch = "x86_64")]
    filter.refuse(&[libc::SYS_inotify_init]);
}
