//! Starts a command: prepares its environment, program and pipes, and starts the process.

use std::borrow::Cow;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, Signal, WaitId, WaitIdOptions};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::cookie::{self, Cookie};
use super::launch::{LaunchError, LaunchTarget, START_LIMIT, late, launch};
use super::scratch::ScratchDir;
use super::sys::{Request, spawn};
use super::tree::{ProcessTree, TreeGuard};
use super::{Command, SpawnError, lookup, scratch_parents};
use crate::program::environment;
use crate::{Confinement, Enforced, Profile};

/// The program's first descriptor after its standard streams.
pub(super) const FURTHER: RawFd = libc::STDERR_FILENO + 1;
/// The number of descriptors that a helper uses itself.
pub(super) const OF_HELPER: RawFd = 3;

/// A program that has just been started, with our ends of its pipes.
pub(crate) struct Started {
    /// Ends it when it is dropped.
    pub(crate) guard: TreeGuard,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) enforced: Enforced,
}

/// What the program reads on standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StdinSource {
    /// The command's text, or `/dev/null` if the text is empty.
    Text,
    /// A pipe that the caller writes to while the program runs.
    Pipe,
}

/// Starts the command on a thread that may block, and returns the command too.
///
/// Opening a file of a network file system may hang, so this must neither block a thread of the
/// runtime nor wait forever.
pub(crate) async fn start(
    command: Command,
    input: StdinSource,
) -> Result<(Command, Started), SpawnError> {
    let program = PathBuf::from(&command.program);
    let work = spawn_blocking(move || {
        let mut command = command;
        hide_scratch_of_others(&mut command.confinement)?;
        let started = start_here(&command, input)?;
        Ok((command, started))
    });
    // The helper has its own time limit. The lookups of this process get a little more.
    match timeout(START_LIMIT + Duration::from_secs(1), work).await {
        Ok(Ok(started)) => started,
        Ok(Err(_)) => Err(io::Error::other("the runtime is shutting down").into()),
        Err(_) => Err(late(&program, io::ErrorKind::TimedOut.into())),
    }
}

/// Hides the scratch directories of all other programs of this user.
fn hide_scratch_of_others(confinement: &mut Confinement) -> Result<(), SpawnError> {
    if confinement.profile == Profile::Trusted {
        return Ok(());
    }
    for parent in scratch_parents::hidden_at_start(confinement)? {
        if !confinement.hidden.contains(&parent) {
            confinement.hidden.push(parent);
        }
    }
    Ok(())
}

/// Starts the command. Blocks.
fn start_here(command: &Command, input: StdinSource) -> Result<Started, SpawnError> {
    if let Some(reason) = &command.confinement.objection {
        return Err(SpawnError::Grants {
            program: command.program.to_string_lossy().into_owned(),
            reason: reason.clone(),
        });
    }
    let mut confinement = Cow::Borrowed(&command.confinement);
    let mut running = match command.confinement.expose() {
        Ok(running) => running,
        Err(_) => {
            confinement.to_mut().expose_when_guarded_places_are_there().map_err(|reason| {
                SpawnError::Grants {
                    program: command.program.to_string_lossy().into_owned(),
                    reason,
                }
            })?
        }
    };
    let parent = &scratch_parents::paths()[0];
    if command.confinement.is_open_to_running(parent) {
        return Err(SpawnError::Scratch {
            path: parent.clone(),
            source: io::Error::other(
                "it was removed and created again while programs ran that can reach it now: try again \
                 when these programs have ended",
            ),
        });
    }
    let trusted = command.confinement.profile == Profile::Trusted;
    if let Some(cwd) = command.cwd.as_deref().filter(|_| trusted) {
        check_directory(cwd)?;
    }
    let cookie = Cookie::new()?;
    let (environment, scratch) = environment(command, &cookie)?;
    let search = value_of(&environment, "PATH").unwrap_or_default().to_owned();
    let sealed = SealedDescriptors::of(command)?;
    let file = match sealed.program() {
        Some(name) => PathBuf::from(name),
        None => lookup::find(&command.program, &search, command.cwd.as_deref())?,
    };

    let argv = argv(command, &sealed)?;
    let envp = envp(environment)?;
    let path = c_string(file.as_os_str(), || "the program's path".to_owned())?;
    let scratch_path = scratch.as_ref().filter(|_| command.in_scratch).map(ScratchDir::path);
    // The helper opens the working directory of a confined program.
    let cwd = match scratch_path.or(command.cwd.as_deref()).filter(|_| trusted) {
        Some(cwd) => Some(c_string(cwd.as_os_str(), || "the working directory".to_owned())?),
        None => None,
    };

    let piped = input == StdinSource::Pipe || !command.stdin.is_empty();
    let stdin = if piped { Some(pipe_into_child()?) } else { None };
    let (stdout, child_stdout) = pipe_out_of_child()?;
    let (stderr, child_stderr) = pipe_out_of_child()?;
    let request = Request {
        path: &path,
        argv: &argv,
        envp: &envp,
        cwd: cwd.as_deref(),
        stdin: stdin.as_ref().map(|(child, _)| child.as_fd()),
        stdout: child_stdout.as_fd(),
        stderr: if command.joined { child_stdout.as_fd() } else { child_stderr.as_fd() },
        further: &sealed.descriptors(),
    };
    let (pid, supervisor, enforced) = if trusted {
        let pid = spawn(&request).map_err(|error| explain(command, &file, error))?;
        (pid, None, Enforced::nothing())
    } else {
        let own = std::env::current_dir().ok();
        let target = LaunchTarget {
            confinement: &confinement,
            file: &file,
            sealed: command.sealed.as_ref(),
            search: &search,
            scratch: scratch.as_ref().map(ScratchDir::path),
            directory: scratch_path.or(command.cwd.as_deref()).or(own.as_deref()),
            request,
        };
        let (pid, supervisor, enforced) =
            launch(&target, &mut running).map_err(|refusal| match refusal {
                LaunchError::Because(error) => error,
                LaunchError::Load(error) => explain(command, &file, error),
            })?;
        (pid, Some(supervisor), enforced)
    };

    let pidfd = match rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK) {
        Ok(pidfd) => pidfd,
        Err(error) => {
            // For example, no descriptor is available. Without a process handle the child cannot be
            // supervised.
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            let _ = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
            let program = command.program.to_string_lossy().into_owned();
            return Err(SpawnError::Unfollowed { program, source: error.into() });
        }
    };
    let tree = ProcessTree::new(pid, pidfd, supervisor, cookie, scratch, command.grace, running);
    let guard = TreeGuard::new(tree);
    Ok(Started { guard, stdin: stdin.map(|(_, ours)| ours), stdout, stderr, enforced })
}

/// Fails if a program cannot start in this directory. The error of `posix_spawn` would not
/// distinguish a missing directory from a missing program.
fn check_directory(cwd: &Path) -> Result<(), SpawnError> {
    let refused = |source| SpawnError::WorkingDirectory { path: cwd.to_owned(), source };
    if !cwd.metadata().map_err(refused)?.is_dir() {
        return Err(refused(io::Error::from(io::ErrorKind::NotADirectory)));
    }
    rustix::fs::access(cwd, rustix::fs::Access::EXEC_OK).map_err(|error| refused(error.into()))
}

type Variables = Vec<(OsString, OsString)>;

/// The complete environment of the child, and the scratch directory if the environment needs one.
fn environment(
    command: &Command,
    cookie: &Cookie,
) -> Result<(Variables, Option<ScratchDir>), SpawnError> {
    let mut variables = environment::base();
    let mut scratch = None;
    if command.in_scratch {
        scratch = Some(ScratchDir::new(cookie)?);
    }
    for name in ["HOME", "TMPDIR"] {
        if command.env.iter().any(|(given, _)| given == name) {
            continue;
        }
        let scratch = match &mut scratch {
            Some(scratch) => scratch,
            none => none.insert(ScratchDir::new(cookie)?),
        };
        variables.push((OsString::from(name), scratch.path().into()));
    }
    for (name, value) in &command.env {
        if !environment::is_valid_name(name) {
            let name = name.to_string_lossy().into_owned();
            return Err(SpawnError::VariableName { name });
        }
        set(&mut variables, name.clone(), value.clone());
    }
    set(&mut variables, OsString::from(cookie::VARIABLE), cookie.value());
    Ok((variables, scratch))
}

fn set(variables: &mut Variables, name: OsString, value: OsString) {
    match variables.iter_mut().find(|(known, _)| *known == name) {
        Some((_, old)) => *old = value,
        None => variables.push((name, value)),
    }
}

fn value_of<'a>(variables: &'a Variables, name: &str) -> Option<&'a OsStr> {
    variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

/// The sealed files of a command, and their names in the program.
struct SealedDescriptors {
    /// The descriptor of the program, and those of arguments with their positions.
    program: Option<RawFd>,
    args: Vec<(usize, RawFd)>,
    files: Vec<OwnedFd>,
}

impl SealedDescriptors {
    fn of(command: &Command) -> io::Result<Self> {
        // A confined program gets these after the two of its helper.
        let first = match command.confinement.profile {
            Profile::Trusted => FURTHER,
            _ => FURTHER + OF_HELPER,
        };
        let mut numbers = first..;
        let program = command.sealed.as_ref().and_then(|_| numbers.next());
        let places = command.sealed_args.iter().map(|(place, _)| *place);
        let args: Vec<_> = places.zip(numbers).collect();
        let files = command.sealed.iter().chain(command.sealed_args.iter().map(|(_, file)| file));
        // They are above all numbers in the program, so that none overwrites another before it is
        // moved.
        let last = args.last().map(|(_, number)| *number).or(program).unwrap_or(first);
        let files = files.map(|file| file.above(last)).collect::<Result<_, _>>()?;
        Ok(Self { program, args, files })
    }

    fn program(&self) -> Option<String> {
        self.program.map(name_of)
    }

    fn arg(&self, place: usize) -> Option<String> {
        self.args.iter().find(|(own, _)| *own == place).map(|(_, number)| name_of(*number))
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.files.iter().map(AsFd::as_fd).collect()
    }
}

/// The program's name for one of its descriptors.
fn name_of(number: RawFd) -> String {
    format!("/proc/self/fd/{number}")
}

/// The argument vector; its first entry is the name under which the program was given.
fn argv(command: &Command, sealed: &SealedDescriptors) -> Result<Vec<CString>, SpawnError> {
    let program = c_string(&command.program, || "the program's name".to_owned());
    let args = command.args.iter().enumerate().map(|(index, arg)| {
        let name = sealed.arg(index).map(OsString::from);
        c_string(name.as_ref().unwrap_or(arg), || format!("argument {}", index + 1))
    });
    std::iter::once(program).chain(args).collect()
}

/// The environment as `NAME=value` strings.
fn envp(variables: Variables) -> Result<Vec<CString>, SpawnError> {
    variables
        .into_iter()
        .map(|(name, value)| {
            let mut entry = name.clone();
            entry.push("=");
            entry.push(value);
            CString::new(entry.into_vec()).map_err(|_| SpawnError::Nul {
                place: format!("the variable {}", name.to_string_lossy()),
            })
        })
        .collect()
}

pub(super) fn c_string(
    text: &OsStr,
    place: impl FnOnce() -> String,
) -> Result<CString, SpawnError> {
    CString::new(text.as_bytes()).map_err(|_| SpawnError::Nul { place: place() })
}

/// A pipe to which the child writes: (our end, the child's end).
fn pipe_out_of_child() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, child) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((ours, above(child, libc::STDERR_FILENO)?))
}

/// A pipe from which the child reads: (the child's end, our end).
fn pipe_into_child() -> io::Result<(OwnedFd, OwnedFd)> {
    let (child, ours) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((above(child, libc::STDERR_FILENO)?, ours))
}

/// In a server that was started with closed standard streams, a pipe may get the number 0, 1 or 2,
/// and the child's own streams would overwrite it.
pub(super) fn above(fd: OwnedFd, last: RawFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > last {
        return Ok(fd);
    }
    Ok(fcntl_dupfd_cloexec(&fd, last + 1)?)
}

/// Explains the system's error for this command.
fn explain(command: &Command, file: &Path, error: io::Error) -> SpawnError {
    let path = match &command.sealed {
        Some(_) => PathBuf::from(&command.program),
        None => PathBuf::from(file),
    };
    let reason = match error.raw_os_error() {
        Some(libc::E2BIG) => {
            let program = command.program.to_string_lossy().into_owned();
            return SpawnError::TooLong { program };
        }
        Some(libc::ENOEXEC) => "neither a program nor a script with a `#!` line",
        Some(libc::ENOENT) if command.sealed.is_some() => {
            "the interpreter or loader it names is missing, or `/proc` is"
        }
        // The file exists, so its interpreter is missing.
        Some(libc::ENOENT) if file.exists() => "the interpreter or loader it names is missing",
        _ => return SpawnError::Start { path, source: error },
    };
    SpawnError::NotExecutable { path, reason: reason.to_owned() }
}
