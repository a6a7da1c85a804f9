//! The server's end of the zygote: one for the whole process, started when it is first needed.

use std::ffi::{CStr, CString};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{
    Gid, Pid, Uid, WaitId, WaitIdOptions, getegid, geteuid, getgid, getuid, waitid,
};

use super::start::{above, c_string};
use super::sys::{Request, spawn};
use crate::jail::plan::{NAME, VERSION};
use crate::jail::zygote::{Order, ROLE};

/// How many want one.
static KEEPERS: AtomicUsize = AtomicUsize::new(0);
static ZYGOTE: Mutex<Option<Arc<Zygote>>> = Mutex::new(None);

/// As whom a process acts.
type Identity = (Uid, Uid, Gid, Gid);

#[derive(Debug)]
struct Zygote {
    socket: OwnedFd,
    process: Pid,
    identity: Identity,
}

impl Drop for Zygote {
    /// It ends by itself when nobody can give it orders.
    fn drop(&mut self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
        let _ = waitid(WaitId::Pid(self.process), WaitIdOptions::EXITED);
    }
}

/// Somebody who wants one.
#[derive(Debug)]
pub(crate) struct Keeper(());

impl Keeper {
    pub(crate) fn new() -> Self {
        KEEPERS.fetch_add(1, Ordering::AcqRel);
        Self(())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if KEEPERS.fetch_sub(1, Ordering::AcqRel) == 1 {
            lock().take();
        }
    }
}

/// Whether there is to be one.
pub(super) fn is_kept() -> bool {
    KEEPERS.load(Ordering::Acquire) > 0
}

/// Has the zygote start what would be started by this request as a helper by itself. Says whether
/// the order was sent; if it comes to nothing, its descriptors are closed without a word.
pub(super) fn order(helper: &Path, request: &Request<'_>) -> bool {
    let order = Order {
        directory: request.cwd.map_or(&[][..], CStr::to_bytes),
        // The first two are the helper's.
        further: request.further.len().saturating_sub(2),
        environment: request.envp.iter().map(|variable| variable.to_bytes()).collect(),
        arguments: request.argv.iter().map(|argument| argument.to_bytes()).collect(),
    };
    let mut handles = request.further.to_vec();
    handles.extend([request.stdout, request.stderr]);
    handles.extend(request.stdin);
    // One that was there and is not any more is followed by another, once.
    for _ in 0..2 {
        let Ok(zygote) = current(helper) else { return false };
        match order.send(&zygote.socket, &handles) {
            Ok(()) => return true,
            Err(Errno::MSGSIZE | Errno::NOBUFS | Errno::TOOMANYREFS) => return false,
            Err(_) => forget(&zygote),
        }
    }
    false
}

fn current(helper: &Path) -> io::Result<Arc<Zygote>> {
    let identity = (getuid(), geteuid(), getgid(), getegid());
    let mut kept = lock();
    if let Some(zygote) = kept.as_ref().filter(|zygote| zygote.identity == identity) {
        return Ok(Arc::clone(zygote));
    }
    let zygote = Arc::new(start(helper, identity)?);
    *kept = Some(Arc::clone(&zygote));
    Ok(zygote)
}

fn forget(gone: &Arc<Zygote>) {
    lock().take_if(|kept| Arc::ptr_eq(kept, gone));
}

fn lock() -> MutexGuard<'static, Option<Arc<Zygote>>> {
    ZYGOTE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(helper: &Path, identity: Identity) -> io::Result<Zygote> {
    let (socket, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let theirs = above(theirs, 3)?;
    let nowhere = OpenOptions::new().write(true).open("/dev/null")?;
    let nowhere = above(nowhere.into(), libc::STDERR_FILENO)?;
    let path = c_string(helper.as_os_str(), || "the helper's path".to_owned());
    let path = path.map_err(io::Error::other)?;
    let argv =
        [NAME, VERSION, ROLE].map(CString::new).into_iter().collect::<Result<Vec<_>, _>>()?;
    let process = spawn(&Request {
        path: &path,
        argv: &argv,
        envp: &[],
        cwd: None,
        stdin: None,
        stdout: nowhere.as_fd(),
        stderr: nowhere.as_fd(),
        further: &[theirs.as_fd()],
    })?;
    Ok(Zygote { socket, process, identity })
}
