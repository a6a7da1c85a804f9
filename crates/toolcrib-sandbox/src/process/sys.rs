//! System interfaces without a safe wrapper: `posix_spawn` with closed descriptors, reset signals
//! and a new session; waiting for a process handle; and the system calls that the helper of a jail,
//! and a server at its start, make while they have one thread. This is the crate's only unsafe
//! code.
//!
//! `fork` is not used: copying the page tables of a parent of 1 GiB takes over 20 ms, `posix_spawn`
//! (`CLONE_VM | CLONE_VFORK` in glibc) less than one. Besides, none of our code runs between the
//! two halves, so it cannot allocate or take a lock there.
#![expect(unsafe_code, reason = "no safe interface offers these")]

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_short};
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;

use rustix::process::{Pid, Signal};
use rustix::thread::UnshareFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What to start. Strings are in the kernel's form.
pub(crate) struct Request<'a> {
    /// The absolute path of the program's file.
    pub(crate) path: &'a CStr,
    /// The argument vector, starting with the program's name.
    pub(crate) argv: &'a [CString],
    /// The environment, as `NAME=value`.
    pub(crate) envp: &'a [CString],
    /// The working directory.
    pub(crate) cwd: Option<&'a CStr>,
    /// Standard input; `/dev/null` if absent. Every descriptor must be above 2.
    pub(crate) stdin: Option<BorrowedFd<'a>>,
    /// Its standard output.
    pub(crate) stdout: BorrowedFd<'a>,
    /// Its standard error.
    pub(crate) stderr: BorrowedFd<'a>,
    /// Further descriptors, which get the numbers from 3 on. Every one must be above those numbers.
    pub(crate) further: &'a [BorrowedFd<'a>],
}

/// Starts the program as the leader of a new session, with default signal dispositions, an empty
/// signal mask and no descriptors but those of the request. Returns when the program has been loaded; the
/// error is that of the first step that failed, `execve` included.
pub(crate) fn spawn(request: &Request<'_>) -> io::Result<Pid> {
    remember_children();
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
    let mut next = libc::STDERR_FILENO + 1;
    for further in request.further {
        actions.duplicate(*further, next)?;
        next += 1;
    }
    actions.close_from(next)?;

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

/// Makes sure that this process learns how its children end. A server can be started with SIGCHLD
/// ignored and inherits that: then the kernel forgets each child as it ends, and waiting for it
/// fails. This is checked before the first child; a handler of the program's own stays.
fn remember_children() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: the structure is all integers, null pointers and `None`s when it is zeroed, and it
        // is valid for reads and writes for the length of both calls. The default disposition runs
        // no code.
        unsafe {
            if libc::sigaction(libc::SIGCHLD, ptr::null(), action.as_mut_ptr()) != 0 {
                return;
            }
            let mut action = action.assume_init();
            let ignored = action.sa_sigaction == libc::SIG_IGN;
            if ignored || action.sa_flags & libc::SA_NOCLDWAIT != 0 {
                if ignored {
                    action.sa_sigaction = libc::SIG_DFL;
                }
                action.sa_flags &= !libc::SA_NOCLDWAIT;
                libc::sigaction(libc::SIGCHLD, &raw const action, ptr::null_mut());
            }
        }
    });
}

/// The process that runs after [`fork`].
pub(crate) enum Fork {
    /// The parent, with the child's process number.
    Parent(Pid),
    /// The child.
    Child,
}

/// Whether this process has more than one thread; `None` if it is unknown.
fn has_threads() -> Option<bool> {
    // The directory has one link of its own, one from its parent, and one per thread.
    rustix::fs::stat("/proc/self/task").map(|tasks| tasks.st_nlink > 3).ok()
}

/// Forks this process, which must have one thread.
pub(crate) fn fork() -> io::Result<Fork> {
    if has_threads() == Some(true) {
        return Err(io::Error::other("a process of several threads is not forked"));
    }
    // SAFETY: no other thread exists that could hold a lock the copy would wait for: the helper
    // starts none, and is entered before `main` could.
    match unsafe { libc::fork() } {
        0 => Ok(Fork::Child),
        pid => Pid::from_raw(pid)
            .filter(|_| pid > 0)
            .map(Fork::Parent)
            .ok_or_else(io::Error::last_os_error),
    }
}

/// Replaces this process by a program and keeps the environment. `execvp` is not suitable: it
/// passes a file that is not a program to a shell.
pub(crate) fn execute(file: &OsStr, argv: &[OsString]) -> io::Error {
    let prepared = || -> io::Result<_> {
        let argv: io::Result<Vec<_>> =
            argv.iter().map(|string| Ok(CString::new(string.as_bytes())?)).collect();
        Ok((CString::new(file.as_bytes())?, argv?))
    };
    let (file, argv) = match prepared() {
        Ok(prepared) => prepared,
        Err(error) => return error,
    };
    let argv = pointers(&argv);
    // SAFETY: every string is NUL-terminated and outlives the call, as the environment of this
    // process does, which has one thread; the vectors end in a null pointer; and the default
    // disposition of a signal runs no code of ours. Rust's runtime ignores this one, which programs
    // would inherit.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::execve(file.as_ptr(), argv.as_ptr().cast(), libc::environ.cast());
    }
    io::Error::last_os_error()
}

/// Removes a variable from the environment of this process, which must have one thread, and
/// overwrites its value in the memory that the kernel shows as the environment.
pub(crate) fn forget_variable(name: &OsStr, shown: Option<&Range<usize>>) -> io::Result<()> {
    if has_threads() != Some(false) {
        return Err(io::Error::other(
            "the environment of a process of several threads cannot be changed",
        ));
    }
    let mut texts = Vec::new();
    // SAFETY: `environ` is null or a vector of pointers to NUL-terminated strings that ends in a
    // null pointer. Nobody changes it meanwhile: there is no other thread.
    unsafe {
        let mut entry = libc::environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            let named = text.strip_prefix(name.as_bytes());
            if named.is_some_and(|rest| rest.starts_with(b"=")) {
                texts.push((*entry, text.len()));
            }
            entry = entry.add(1);
        }
    }
    // SAFETY: there is no other thread that could read the environment.
    unsafe { std::env::remove_var(name) };
    let is_shown = |address: usize, length: usize| {
        shown.is_some_and(|shown| {
            shown.contains(&address) && address.saturating_add(length) <= shown.end
        })
    };
    for (text, length) in texts.into_iter().filter(|(text, length)| is_shown(text.addr(), *length))
    {
        for offset in 0..length {
            // SAFETY: the byte is one of a string in the part of the stack that the kernel made for
            // the environment. It is this process's to write to, and since no entry points to it
            // any more nobody reads it.
            unsafe { text.add(offset).write_volatile(0) };
        }
    }
    Ok(())
}

/// Signals every process of this process's PID namespace except itself. Call it only in the
/// namespace's first process.
pub(crate) fn kill_all(signal: Signal) -> io::Result<()> {
    if std::process::id() != 1 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // SAFETY: the call takes numbers only.
    if unsafe { libc::kill(-1, signal.as_raw()) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Leaves namespaces for new ones.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: what is unsafe is `CLONE_FILES`, after which descriptors are not what they were.
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// The argument of `mount_setattr` (`struct mount_attr`).
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Makes a mount, with all mounts below it, read-only. Its other flags stay, because flags
/// inherited from the parent user namespace cannot be set again.
pub(crate) fn make_read_only(mount: &OwnedFd) -> io::Result<()> {
    set_mount_attributes(mount.as_raw_fd(), c"", libc::MOUNT_ATTR_RDONLY, 0)
}

/// Makes either all mounts of this process's mount namespace read-only, or none.
pub(crate) fn make_all_mounts_read_only() -> io::Result<()> {
    set_mount_attributes(libc::AT_FDCWD, c"/", libc::MOUNT_ATTR_RDONLY, 0)
}

/// Detaches all mounts of this process's mount namespace from those of others.
pub(crate) fn make_mounts_private() -> io::Result<()> {
    set_mount_attributes(libc::AT_FDCWD, c"/", 0, libc::MS_PRIVATE)
}

fn set_mount_attributes(folder: c_int, path: &CStr, set: u64, propagation: u64) -> io::Result<()> {
    let attributes = MountAttributes { set, clear: 0, propagation, user_namespace: 0 };
    let flags = libc::AT_RECURSIVE | libc::AT_EMPTY_PATH;
    // SAFETY: the path is NUL-terminated, and the kernel reads that many bytes of the attributes.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Installs a system call filter for this thread and the program that it becomes.
pub(crate) fn filter_calls(program: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads that many instructions from there and writes to none, and checks the
    // program before it takes it.
    let done = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The first descriptors from 3 on that a helper was started with, which are closed when a program
/// is loaded; `None` if this process was not started as a helper. Call it once.
pub(crate) fn inherited<const COUNT: usize>() -> Option<[OwnedFd; COUNT]> {
    let take = |number| {
        // SAFETY: nothing but F_SETFD, which fails for a number that is no descriptor.
        let set = unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        // SAFETY: the number is an open descriptor. It was passed on for this purpose, nobody else
        // knows of it, and it is taken once.
        (set == 0).then(|| unsafe { OwnedFd::from_raw_fd(number) })
    };
    let taken: Option<Vec<_>> = (3..).take(COUNT).map(take).collect();
    taken?.try_into().ok()
}

/// A descriptor that becomes readable when a child changes. The signal stays blocked in the program
/// that is loaded later.
pub(crate) fn watch_children() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is initialised by sigemptyset before it is read, and the descriptor is a
    // fresh one that nobody else has.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        check(libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()))?;
        let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Makes the descriptor of [`watch_children`] wait for the next change.
pub(crate) fn forget_children(children: &OwnedFd) {
    let mut record = [0_u8; size_of::<libc::signalfd_siginfo>()];
    while rustix::io::read(children, &mut record).is_ok_and(|count| count > 0) {}
}

/// Lets the current tokio runtime watch a descriptor for being readable.
pub(crate) fn watch(fd: BorrowedFd<'_>) -> io::Result<AsyncFd<BorrowedFd<'_>>> {
    // SAFETY: a `BorrowedFd` gives the same open descriptor as long as it lives, and the
    // `AsyncFd` cannot outlive it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

/// Like [`watch`], for a descriptor that is owned by its watch.
pub(crate) fn watch_owned(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` gives the same open descriptor as long as it lives, and the `AsyncFd`
    // owns it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

/// A null-terminated vector of pointers, as C expects it.
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
        // The flags are bits 1 to 7 of a short; the binding declares some of them as int.
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

/// For programs whose `main` cannot be changed, such as tests: registers the hook among the
/// functions that run before `main`.
#[cfg(feature = "hook-before-main")]
#[used]
// SAFETY: the section is one of pointers to functions of this type, which are called once, in the
// only thread there is, when the C library and the arguments are there.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

#[cfg(feature = "hook-before-main")]
extern "C" fn before_main() {
    crate::jail::reexec_hook();
}
