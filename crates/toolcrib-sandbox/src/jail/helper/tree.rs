//! Holding a process tree together and killing it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getegid, geteuid, getpid, getuid, kill_process,
    kill_process_group, set_child_subreaper, waitid,
};
use rustix::thread::UnshareFlags;

use super::plan::{KernelFeature, Plan};
use crate::process::{procfs, sys};
use crate::{KillRung, Limits};

/// Process numbers below this are assigned only once in a new namespace.
const RESERVED_PIDS: u32 = 300;
/// The first kernel version in which a namespace has its own maximum process number.
const OWN_PID_MAX: (u32, u32) = (6, 14);

/// The mechanism, set up.
#[derive(Debug)]
pub(in crate::jail) struct TreeHold {
    rung: KillRung,
    cgroup: Option<PathBuf>,
    /// Whether process limits are counted for this tree alone.
    own_user_namespace: bool,
    procfs: bool,
}

impl TreeHold {
    /// Sets up the mechanism that the plan requires. For [`KillRung::PidNamespace`] the *next*
    /// process that is forked is the first of the namespace.
    pub(in crate::jail) fn new(plan: &Plan) -> io::Result<Self> {
        let procfs = !plan.lacks(KernelFeature::Procfs);
        let mut hold = Self { rung: plan.rung, cgroup: None, own_user_namespace: false, procfs };
        let missing = |facility| plan.lacks(facility).then_some(io::Error::from(Errno::NOSYS));
        match plan.rung {
            KillRung::PidNamespace => {
                missing(KernelFeature::Namespaces).map_or(Ok(()), Err)?;
                hold.own_user_namespace = enter_pid_namespace()?.is_some();
            }
            KillRung::Cgroup => {
                missing(KernelFeature::Cgroups).map_or(Ok(()), Err)?;
                let cgroup = make_cgroup()?;
                bound(&cgroup, &plan.limits);
                hold.cgroup = Some(cgroup);
            }
            KillRung::Subreaper => {
                missing(KernelFeature::Procfs).map_or(Ok(()), Err)?;
                procfs::processes()?;
            }
            KillRung::SealedGroup | KillRung::ProcessGroup => {}
        }
        // Orphans are reparented to this process.
        set_child_subreaper(Some(getpid()))?;
        Ok(hold)
    }

    /// Runs in the first process of the namespace, while it still has privileges there.
    pub(in crate::jail) fn limit_processes(&self, most: u32) {
        if self.rung != KillRung::PidNamespace || !has_own_pid_max() {
            return;
        }
        // Process numbers start above the reserved ones, so that those do not add to the limit.
        let _ = fs::write("/proc/sys/kernel/ns_last_pid", RESERVED_PIDS.to_string());
        // The file is missing, or cannot be written, with another `/proc`: then there is no limit.
        let _ = fs::write("/proc/sys/kernel/pid_max", (RESERVED_PIDS + most).to_string());
    }

    /// The `RLIMIT_NPROC` that limits the tree to this many processes, if possible. In its own user
    /// namespace, only the tree is counted. Elsewhere, all processes of the user are, so the
    /// existing ones are added. Root is never limited.
    pub(in crate::jail) fn processes(&self, most: u32) -> Option<u64> {
        let most = u64::from(most);
        if self.own_user_namespace {
            return Some(most);
        }
        let user = getuid();
        let there = (self.procfs && !user.is_root()).then(|| procfs::tasks_of(user.as_raw()));
        Some(there?.ok()?.saturating_add(most))
    }

    /// Runs in the process that becomes the program.
    pub(in crate::jail) fn join(&self) -> io::Result<()> {
        match &self.cgroup {
            Some(cgroup) => fs::write(cgroup.join("cgroup.procs"), "0"),
            None => Ok(()),
        }
    }

    /// Signals all processes of the tree that can be reached at once: the namespace, or the
    /// program's group.
    pub(in crate::jail) fn signal(&self, program: Pid, reaped: bool, signal: Signal) {
        if self.rung == KillRung::PidNamespace {
            let _ = sys::kill_all(signal);
            return;
        }
        // After the program is reaped, only a child of this process in its group keeps the group's
        // number from being reused.
        let member = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if !reaped || waitid(WaitId::Pgid(Some(program)), member).is_ok() {
            let _ = kill_process_group(program, signal);
        }
    }

    /// Kills all processes that exist now. Processes that they have just started are found by the
    /// next call.
    pub(in crate::jail) fn kill(&self, program: Pid, reaped: bool) {
        match self.rung {
            KillRung::Cgroup => {
                if let Some(cgroup) = &self.cgroup {
                    let _ = fs::write(cgroup.join("cgroup.kill"), "1");
                }
            }
            KillRung::Subreaper => {
                self.signal(program, reaped, Signal::KILL);
                // A process whose parent dies becomes a child of this process before the next call.
                let own = getpid().as_raw_nonzero().get();
                for process in procfs::processes().unwrap_or_default() {
                    if process.parent == own
                        && !process.zombie
                        && let Some(pid) = Pid::from_raw(process.pid)
                    {
                        let _ = kill_process(pid, Signal::KILL);
                    }
                }
            }
            KillRung::PidNamespace | KillRung::SealedGroup | KillRung::ProcessGroup => {
                self.signal(program, reaped, Signal::KILL);
            }
        }
    }

    /// Whether killing again can reach processes that were missed before.
    pub(in crate::jail) fn may_miss(&self) -> bool {
        matches!(self.rung, KillRung::Subreaper | KillRung::ProcessGroup)
    }
}

impl Drop for TreeHold {
    fn drop(&mut self) {
        if let Some(cgroup) = &self.cgroup {
            let _ = fs::remove_dir(cgroup);
        }
    }
}

/// Creates a PID namespace, and an IPC namespace if the kernel supports it. If this user may not
/// create them alone, a user namespace is created too; returns its user mapping. After a failure
/// this process may be in an unusable namespace, so it must exit.
fn enter_pid_namespace() -> io::Result<Option<UserMap>> {
    let mut wanted = UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    let mut users = None;
    loop {
        match sys::unshare(wanted) {
            Ok(()) => break,
            Err(error) => match error.raw_os_error() {
                Some(libc::EPERM) if users.is_none() => {
                    users = Some(UserMap::of_this_process());
                    wanted |= UnshareFlags::NEWUSER;
                }
                // The kernel was built without IPC namespaces.
                Some(libc::EINVAL) if wanted.contains(UnshareFlags::NEWIPC) => {
                    wanted.remove(UnshareFlags::NEWIPC);
                }
                _ => return Err(error),
            },
        }
    }
    users.as_ref().map_or(Ok(()), UserMap::write)?;
    Ok(users)
}

/// The one user and the one group of a user namespace: the same as outside.
#[derive(Debug)]
pub(in crate::jail) struct UserMap {
    user: u32,
    group: u32,
}

impl UserMap {
    /// Call this outside of the namespace, which has no users until they are mapped.
    pub(in crate::jail) fn of_this_process() -> Self {
        Self { user: geteuid().as_raw(), group: getegid().as_raw() }
    }

    /// Call this inside the namespace.
    pub(in crate::jail) fn write(&self) -> io::Result<()> {
        let Self { user, group } = self;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
    }
}

/// On older kernels, the number belonged to the whole machine.
fn has_own_pid_max() -> bool {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= OWN_PID_MAX,
        _ => false,
    }
}

/// Sets the limits of the control group, for the controllers that it has.
fn bound(cgroup: &Path, limits: &Limits) {
    let processes = limits.processes.map(u64::from);
    // If swap is not limited, a memory limit only makes the machine slow.
    let swap = limits.memory.map(|_| 0);
    for (file, limit) in
        [("memory.max", limits.memory), ("memory.swap.max", swap), ("pids.max", processes)]
    {
        let Some(limit) = limit else { continue };
        // Missing if the controller is not enabled: then only the limits of each process apply.
        let _ = fs::OpenOptions::new()
            .write(true)
            .open(cgroup.join(file))
            .and_then(|mut file| file.write_all(limit.to_string().as_bytes()));
    }
}

/// A new control group below that of this process, which can be killed as a whole.
fn make_cgroup() -> io::Result<PathBuf> {
    let nowhere = || io::Error::from(Errno::NOSYS);
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).ok_or_else(nowhere)?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mounted = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, point) = (place.next()?, place.next()?);
        (kind.split(' ').next() == Some("cgroup2")).then_some((root, point))
    });
    let (root, point) = mounted.ok_or_else(nowhere)?;
    let below = own.strip_prefix(root.trim_end_matches('/')).ok_or_else(nowhere)?;
    let name = format!("toolcrib-{}", getpid().as_raw_nonzero());
    let cgroup = PathBuf::from(point).join(below.trim_start_matches('/')).join(name);
    fs::create_dir(&cgroup)?;
    // Since Linux 5.14.
    if cgroup.join("cgroup.kill").exists() {
        return Ok(cgroup);
    }
    let _ = fs::remove_dir(&cgroup);
    Err(nowhere())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    #[test]
    fn a_control_group_gets_the_limits_that_it_counts() {
        let cgroup = tempfile::tempdir().unwrap();
        let file = |name| cgroup.path().join(name);
        for name in ["memory.max", "memory.swap.max"] {
            fs::write(file(name), "").unwrap();
        }
        bound(cgroup.path(), &Limits::of(Profile::Workspace));
        assert_eq!(fs::read_to_string(file("memory.max")).unwrap(), "2147483648");
        assert_eq!(fs::read_to_string(file("memory.swap.max")).unwrap(), "0");
        assert!(!file("pids.max").exists());
    }
}
