//! The two system interfaces that nobody wraps safely: `posix_spawn` with everything closed, reset
//! and detached, and awaiting a process handle. The crate's only unsafe code.
//!
//! Not `fork`: copying the page tables of a parent of 1 GiB takes over 20 ms, `posix_spawn`
//! (`CLONE_VM | CLONE_VFORK` in glibc) under one. And nothing of ours runs between the two halves,
//! so nothing there can allocate or lock.
#![expect(unsafe_code, reason = "no safe interface offers these two")]

use std::ffi::{CStr, CString, c_char, c_int, c_short};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use rustix::process::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What to start. Strings are as the kernel wants them.
pub(crate) struct Request<'a> {
    /// The program's file, absolute.
    pub(crate) path: &'a CStr,
    /// The argument vector, the program's name first.
    pub(crate) argv: &'a [CString],
    /// The environment, `NAME=value` each.
    pub(crate) envp: &'a [CString],
    /// Where it starts.
    pub(crate) cwd: Option<&'a CStr>,
    /// Its standard input; `/dev/null` without. Every descriptor must be above 2.
    pub(crate) stdin: Option<BorrowedFd<'a>>,
    /// Its standard output.
    pub(crate) stdout: BorrowedFd<'a>,
    /// Its standard error.
    pub(crate) stderr: BorrowedFd<'a>,
}

/// Starts the program as the leader of a new session, with default signal dispositions, an empty
/// signal mask and no descriptors but its three. Returns when the program has been loaded; the
/// error is that of the first step that failed, `execve` included.
pub(crate) fn spawn(request: &Request<'_>) -> io::Result<Pid> {
    let mut attributes = Attributes::new()?;
    let mut actions = FileActions::new()?;
    if let Some(cwd) = request.cwd {
        actions.change_directory(cwd)?;
    }
    match request.stdin {
        Some(stdin) => actions.duplicate(stdin, libc::STDIN_FILENO)?,
        None => actions.open_null(libc::STDIN_FILENO)?,
    }
    actions.duplicate(request.stdout, libc::STDOUT_FILENO)?;
    actions.duplicate(request.stderr, libc::STDERR_FILENO)?;
    actions.close_from(libc::STDERR_FILENO + 1)?;

    let argv = pointers(request.argv);
    let envp = pointers(request.envp);
    let mut pid: libc::pid_t = 0;
    // SAFETY: `path` and every string behind `argv` and `envp` is NUL-terminated and borrowed for
    // the length of the call, both vectors end in a null pointer, and both objects are initialised.
    // posix_spawn writes to none of the strings; its prototype is only older than `const`.
    check(unsafe {
        libc::posix_spawn(
            &raw mut pid,
            request.path.as_ptr(),
            &raw const actions.0,
            attributes.as_ptr(),
            argv.as_ptr(),
            envp.as_ptr(),
        )
    })?;
    Pid::from_raw(pid).ok_or_else(|| io::Error::other("posix_spawn gave no process id"))
}

/// Lets the current tokio runtime watch a descriptor for being readable.
pub(crate) fn watch(fd: BorrowedFd<'_>) -> io::Result<AsyncFd<BorrowedFd<'_>>> {
    // SAFETY: a `BorrowedFd` gives the same open descriptor as long as it lives, and the
    // `AsyncFd` cannot outlive it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

/// As [`watch`], for a descriptor that goes with its watch.
pub(crate) fn watch_owned(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` gives the same open descriptor as long as it lives, and the `AsyncFd`
    // owns it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

/// The vector of pointers C wants, with its null at the end.
fn pointers(strings: &[CString]) -> Vec<*mut c_char> {
    strings.iter().map(|string| string.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

/// The `posix_spawn` family returns its error instead of setting `errno`.
fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// An initialised `posix_spawnattr_t`.
struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the pointer is valid for writes; on success the object is initialised.
        let mut attributes = unsafe {
            check(libc::posix_spawnattr_init(raw.as_mut_ptr()))?;
            Self(raw.assume_init())
        };
        // The flags are bits 1 to 7 of a short; the binding gives some of them as int.
        let flags = c_int::from(libc::POSIX_SPAWN_SETSID)
            | libc::POSIX_SPAWN_SETSIGDEF
            | libc::POSIX_SPAWN_SETSIGMASK;
        let flags = c_short::try_from(flags).map_err(io::Error::other)?;
        let mut none = MaybeUninit::uninit();
        let mut all = MaybeUninit::uninit();
        let this = &raw mut attributes.0;
        // SAFETY: `this` is initialised; the sets are initialised by sigemptyset and sigfillset,
        // which cannot fail on a valid pointer, before they are read.
        unsafe {
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigfillset(all.as_mut_ptr());
            check(libc::posix_spawnattr_setflags(this, flags))?;
            check(libc::posix_spawnattr_setsigmask(this, none.as_ptr()))?;
            check(libc::posix_spawnattr_setsigdefault(this, all.as_ptr()))?;
        }
        Ok(attributes)
    }

    fn as_ptr(&mut self) -> *const libc::posix_spawnattr_t {
        &raw const self.0
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed only here.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

/// An initialised `posix_spawn_file_actions_t`. The C library copies the strings it is given.
struct FileActions(libc::posix_spawn_file_actions_t);

impl FileActions {
    fn new() -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the pointer is valid for writes; on success the object is initialised.
        unsafe {
            check(libc::posix_spawn_file_actions_init(raw.as_mut_ptr()))?;
            Ok(Self(raw.assume_init()))
        }
    }

    fn change_directory(&mut self, directory: &CStr) -> io::Result<()> {
        // SAFETY: `self.0` is initialised, the string is NUL-terminated.
        check(unsafe {
            libc::posix_spawn_file_actions_addchdir_np(&raw mut self.0, directory.as_ptr())
        })
    }

    fn duplicate(&mut self, from: BorrowedFd<'_>, to: c_int) -> io::Result<()> {
        // SAFETY: `self.0` is initialised; the numbers are only noted down here.
        check(unsafe {
            libc::posix_spawn_file_actions_adddup2(&raw mut self.0, from.as_raw_fd(), to)
        })
    }

    fn open_null(&mut self, to: c_int) -> io::Result<()> {
        // SAFETY: `self.0` is initialised, the string is NUL-terminated.
        check(unsafe {
            libc::posix_spawn_file_actions_addopen(
                &raw mut self.0,
                to,
                c"/dev/null".as_ptr(),
                libc::O_RDONLY,
                0,
            )
        })
    }

    fn close_from(&mut self, first: c_int) -> io::Result<()> {
        // SAFETY: `self.0` is initialised.
        check(unsafe { libc::posix_spawn_file_actions_addclosefrom_np(&raw mut self.0, first) })
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed only here.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}
