//! The system call filter: the calls that no confined program may make.
//!
//! It lists what is refused and allows the rest, so that programs nobody tested still run. It refuses
//! three kinds of calls: ways around the other layers (namespaces, mounts, the memory of other
//! processes, and `io_uring`, whose operations no filter sees), what Landlock does not cover (sockets
//! other than TCP, watching files, other processes' priorities, and file metadata, which is in
//! `metadata.rs`), and system calls newer than this version of the filter.

use std::io;

use libc::{c_int, c_long, sock_filter};

use super::metadata;
use crate::jail::filter::{Filter, Rule, differs, has_any, is, is_not, lacks};
use crate::jail::helper::plan::{KernelFeature, Plan};
use crate::process::sys;
use crate::{KillRung, Profile};

/// The newest system call that was reviewed (`file_setattr`, Linux 6.17). Later ones are refused;
/// programs do not know them either and fall back. The numbers of the second calling convention of
/// x86-64, from `0x4000_0000`, are refused too.
const NEWEST: u32 = 469;
/// A system call number that the binding lacks; it is the same on every architecture.
const OPEN_TREE_ATTR: c_long = 467;
/// The bits of a socket type that hold the type; the others are flags.
const SOCKET_TYPE: u32 = 0xf;
/// Requests that send signals to a socket's owner (`FIOSETOWN`, `SIOCSPGRP`).
const SET_OWNER: [u32; 2] = [0x8901, 0x8902];
/// The newer `fcntl` command that names the process to signal (`F_SETOWN_EX`).
const F_SETOWN_EX: c_int = 15;
/// Selects all processes of a user, for `setpriority` and `ioprio_set`.
const WHOLE_USER: [(c_long, u32); 2] =
    [(libc::SYS_setpriority, libc::PRIO_USER), (libc::SYS_ioprio_set, 3)];
/// Requests that inject input into a terminal, `TIOCSTI` and `TIOCLINUX`.
const TYPING: [u32; 2] = [0x5412, 0x541c];

/// Installs the filter for this process and its descendants, which must have given up new
/// privileges. Returns `false` if the kernel lacks filters.
pub(in crate::jail) fn restrict(plan: &Plan) -> io::Result<bool> {
    if plan.lacks(KernelFeature::Seccomp) {
        return Ok(false);
    }
    match sys::filter_calls(&program(plan)?) {
        Ok(()) => Ok(true),
        // The kernel was built without filters.
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
    no_watching(&mut filter, plan.profile);
    metadata::rules(&mut filter, plan.profile);
    if plan.rung != KillRung::PidNamespace {
        neighbors(&mut filter);
    }
    if plan.profile == Profile::Pure {
        no_processes(&mut filter);
        nothing_shared(&mut filter);
    }
    if plan.rung == KillRung::SealedGroup {
        filter.refuse(&[libc::SYS_setsid, libc::SYS_setpgid]);
    }
    // Their flags and modes are behind a pointer, which a filter cannot read. The C library and
    // programs fall back to the older calls.
    filter.fail(&[libc::SYS_clone3, libc::SYS_openat2], libc::ENOSYS);
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
        // Parts of the kernel with a long history of vulnerabilities.
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
    let namespaces = namespaces.into_iter().fold(0, |all, flag| all | flag.cast_unsigned());
    filter.refuse_if(libc::SYS_clone, [vec![has_any(0, namespaces)]]);
    filter.refuse_if(libc::SYS_ioctl, TYPING.map(|request| vec![is(1, request)]));
    // Limits of others: those of the server are within reach of its user.
    filter.refuse_if(libc::SYS_prlimit64, [vec![is_not(0, 0)]]);
}

/// The sockets of a profile.
///
/// Unix sockets lead to the services of the machine, which act with their own rights, and Landlock
/// does not guard their paths. They are refused even where the network is allowed. A pair is allowed
/// between a program's own processes, but only of a type that stays connected to its other end: a
/// datagram socket can send to, and connect to, any path.
fn sockets(filter: &mut Filter, profile: Profile) {
    if profile == Profile::Pure {
        return filter.refuse(&[libc::SYS_socket, libc::SYS_socketpair]);
    }
    let not = |argument, value: c_int| is_not(argument, value.cast_unsigned());
    let not_of_type = |kind: c_int| differs(1, SOCKET_TYPE, kind.cast_unsigned());
    let unconnected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(not_of_type).into();
    filter.refuse_if(libc::SYS_socketpair, [vec![not(0, libc::AF_UNIX)], unconnected]);
    if profile == Profile::Workspace {
        return filter.refuse(&[libc::SYS_socket]);
    }
    let family: Rule =
        [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|family| not(0, family)).into();
    // Name resolution asks the kernel for the addresses of this machine. Nothing else of netlink.
    let kernel = vec![is(0, libc::AF_NETLINK.cast_unsigned()), not(2, libc::NETLINK_ROUTE)];
    filter.refuse_if(libc::SYS_socket, [family, kernel]);
}

/// Watching files. The kernel asks for read permission only, which the server's user has in many
/// folders that Landlock keeps this program from listing. Programs that watch files fall back to
/// looking at them again and again, as on a kernel without inotify.
fn no_watching(filter: &mut Filter, profile: Profile) {
    let error = if profile == Profile::Pure { libc::EPERM } else { libc::ENOSYS };
    filter.fail(&[libc::SYS_inotify_init1, libc::SYS_inotify_add_watch], error);
    #[cfg(target_arch = "x86_64")]
    filter.fail(&[libc::SYS_inotify_init], error);
}

/// Where other processes of the user have numbers that this program can name: their priorities,
/// processors and scheduling, and signals to them by way of a file. A process may change its own.
fn neighbors(filter: &mut Filter) {
    let own = std::process::id();
    let another = |argument| vec![is_not(argument, 0), is_not(argument, own)];
    for call in [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        libc::SYS_migrate_pages,
        libc::SYS_move_pages,
    ] {
        filter.refuse_if(call, [another(0)]);
    }
    for (call, whole_user) in WHOLE_USER {
        filter.refuse_if(call, [another(1), vec![is(0, whole_user)]]);
    }
    let owners = [libc::F_SETOWN, F_SETOWN_EX];
    filter.refuse_if(libc::SYS_fcntl, owners.map(|owner| vec![is(1, owner.cast_unsigned())]));
    filter.refuse_if(libc::SYS_ioctl, SET_OWNER.map(|request| vec![is(1, request)]));
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

/// Memory and messages that programs share by a number or a name: they have no path that Landlock
/// could guard.
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
    ]);
}
