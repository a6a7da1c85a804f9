//! The filter of system calls: what no confined program may ask the kernel for.
//!
//! It is a list of what is refused, so that programs nobody thought of run; what it refuses are the
//! ways out of the other walls (namespaces, mounts, other processes' memory, `io_uring`, which makes
//! calls that no filter sees), what Landlock does not know (sockets other than TCP; metadata of files,
//! in `metadata.rs`), and the numbers of system calls that this version does not know.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};

use super::metadata;
use super::plan::{Facility, Plan};
use crate::{KillRung, Profile};

/// The newest system call whose meaning was looked at (`file_setattr`, Linux 6.17); later ones are
/// unknown to programs as well, which fall back.
const NEWEST: u32 = 469;
/// A number that the binding does not know; the same on every architecture.
const OPEN_TREE_ATTR: c_long = 467;
/// Where numbers of the second calling convention of x86-64 begin.
const X32: u32 = 0x4000_0000;

pub(super) type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Puts the filter in force for this process and all it becomes. Says `false` where the kernel has
/// no filters.
pub(super) fn restrict(plan: &Plan) -> io::Result<bool> {
    if plan.lacks(Facility::Seccomp) {
        return Ok(false);
    }
    let program = program(plan).map_err(io::Error::other)?;
    match apply_filter(&program) {
        Ok(()) => Ok(true),
        // Built without filters.
        Err(seccompiler::Error::Seccomp(error))
            if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) =>
        {
            Ok(false)
        }
        Err(seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error)) => Err(error),
        Err(error) => Err(io::Error::other(error)),
    }
}

fn program(plan: &Plan) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules = never();
    not_from_outside(&mut rules)?;
    sockets(&mut rules, plan.profile)?;
    metadata::rules(&mut rules, plan.profile)?;
    if plan.profile == Profile::Pure {
        no_processes(&mut rules)?;
        nothing_shared(&mut rules);
    }
    if plan.rung == KillRung::SealedGroup {
        refuse(&mut rules, &[libc::SYS_setsid, libc::SYS_setpgid]);
    }
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        std::env::consts::ARCH.try_into()?,
    )?;
    let checked: BpfProgram = filter.try_into()?;
    Ok(answered_first(plan.profile).into_iter().chain(checked).collect())
}

pub(super) fn refuse(rules: &mut Rules, calls: &[c_long]) {
    rules.extend(calls.iter().map(|call| (*call, Vec::new())));
}

/// What nothing that is confined needs.
fn never() -> Rules {
    let mut rules = Rules::new();
    refuse(
        &mut rules,
        &[
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
        ],
    );
    #[cfg(target_arch = "x86_64")]
    refuse(
        &mut rules,
        &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_kexec_file_load],
    );
    rules
}

/// No namespaces of one's own, no typing into a terminal, no limits for others.
fn not_from_outside(rules: &mut Rules) -> Result<(), seccompiler::BackendError> {
    let namespaces = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let clone = namespaces.into_iter().map(|flag| has(0, u64::from(flag.cast_unsigned())));
    rules.insert(libc::SYS_clone, clone.collect::<Result<_, _>>()?);
    let terminal = [libc::TIOCSTI, libc::TIOCLINUX]
        .into_iter()
        .map(|request| SeccompRule::new(vec![is(1, SeccompCmpOp::Eq, request)?]));
    rules.insert(libc::SYS_ioctl, terminal.collect::<Result<_, _>>()?);
    // Limits of others: those of the server are within reach of its user.
    let other = SeccompRule::new(vec![is(0, SeccompCmpOp::Ne, 0)?])?;
    rules.insert(libc::SYS_prlimit64, vec![other]);
    Ok(())
}

/// The sockets of a profile. Those of the machine's own services have paths, which Landlock does
/// not guard before its ninth version, and speak with the server's rights: they are refused even
/// where the network is allowed. A pair between one's own processes is not.
fn sockets(rules: &mut Rules, profile: Profile) -> Result<(), seccompiler::BackendError> {
    if profile == Profile::Pure {
        refuse(rules, &[libc::SYS_socket, libc::SYS_socketpair]);
        return Ok(());
    }
    let not =
        |argument, value: i32| is(argument, SeccompCmpOp::Ne, u64::from(value.cast_unsigned()));
    let pair = SeccompRule::new(vec![not(0, libc::AF_UNIX)?])?;
    rules.insert(libc::SYS_socketpair, vec![pair]);
    if profile == Profile::Workspace {
        refuse(rules, &[libc::SYS_socket]);
        return Ok(());
    }
    let family = SeccompRule::new(vec![
        not(0, libc::AF_INET)?,
        not(0, libc::AF_INET6)?,
        not(0, libc::AF_NETLINK)?,
    ])?;
    // Of the kernel's own, the addresses and the sockets of the machine.
    let kernel = SeccompRule::new(vec![
        is(0, SeccompCmpOp::Eq, u64::from(libc::AF_NETLINK.cast_unsigned()))?,
        not(2, libc::NETLINK_ROUTE)?,
        not(2, libc::NETLINK_SOCK_DIAG)?,
    ])?;
    rules.insert(libc::SYS_socket, vec![family, kernel]);
    Ok(())
}

/// Threads, but no processes; signals to oneself, but to nobody else.
fn no_processes(rules: &mut Rules) -> Result<(), seccompiler::BackendError> {
    refuse(
        rules,
        &[
            libc::SYS_kill,
            libc::SYS_tkill,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_rt_tgsigqueueinfo,
            libc::SYS_pidfd_open,
            libc::SYS_pidfd_send_signal,
            libc::SYS_memfd_create,
            libc::SYS_memfd_secret,
        ],
    );
    #[cfg(target_arch = "x86_64")]
    refuse(rules, &[libc::SYS_fork, libc::SYS_vfork]);
    let thread = u64::from(libc::CLONE_THREAD.cast_unsigned());
    let process = SeccompRule::new(vec![is(0, SeccompCmpOp::MaskedEq(thread), 0)?])?;
    rules.entry(libc::SYS_clone).or_default().push(process);
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![is(0, SeccompCmpOp::Ne, own)?])?]);
    Ok(())
}

/// Memory and messages that programs share by a number or a name, and hearing of what others do with
/// files: neither has a path that Landlock would guard.
fn nothing_shared(rules: &mut Rules) {
    refuse(
        rules,
        &[
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
        ],
    );
    #[cfg(target_arch = "x86_64")]
    refuse(rules, &[libc::SYS_inotify_init]);
}

pub(super) fn is(
    argument: u8,
    comparison: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value)
}

/// A rule for calls whose argument has this bit.
pub(super) fn has(argument: u8, bit: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![is(argument, SeccompCmpOp::MaskedEq(bit), bit)?])
}

/// Ahead of the filter, whose first check is that of the architecture: what is to be answered in
/// another way than by "not permitted". Numbers nobody knows, those of the second calling convention
/// among them, and `clone3`, whose flags no filter can see, "do not exist", at which the C library
/// does without; some calls are not supported.
fn answered_first(profile: Profile) -> Vec<sock_filter> {
    // Their classes, sizes and sources are bits of 16; the binding has them as 32.
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_GREATER: u16 = 0x25;
    const RETURN: u16 = 0x06;
    const { assert!(NEWEST < X32) };
    let answer = |error: i32| {
        let answer = libc::SECCOMP_RET_ERRNO | error.cast_unsigned();
        sock_filter { code: RETURN, jt: 0, jf: 0, k: answer }
    };
    let mut first = vec![
        // The first field is the number.
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_GREATER, jt: 0, jf: 1, k: NEWEST },
        answer(libc::ENOSYS),
    ];
    let unsupported = metadata::unsupported(profile).iter().map(|call| (*call, libc::EOPNOTSUPP));
    for (call, error) in unsupported.chain([(libc::SYS_clone3, libc::ENOSYS)]) {
        // Numbers are small and not negative.
        let Ok(call) = u32::try_from(call) else { continue };
        first.push(sock_filter { code: JUMP_IF_EQUAL, jt: 0, jf: 1, k: call });
        first.push(answer(error));
    }
    first
}
