//! The zygote: a helper that stays, and copies itself for each program.
//!
//! Loading a helper takes as long as loading a program, most of it in the dynamic loader. A copy of
//! one that is loaded takes a tenth of that. It is a child of the server, as a helper that was
//! started by itself would be, since the server is who waits for it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{DumpableBehavior, chdir, set_dumpable_behavior, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::UnshareFlags;

use super::hold::{UserMap, in_pid_namespace};
use super::plan::{Facility, Plan};
use super::report::{self, Step, failure};
use super::supervisor::{supervise, supervise_inside};
use super::target::Program;
use crate::KillRung;

use crate::process::sys::{self, Fork};
use crate::process::{FURTHER, OF_HELPER, above};

/// The largest order, in bytes: what a socket takes at once with the kernel's own settings. What is
/// larger is started without the zygote.
const LARGEST: usize = 160 * 1024;
/// The word after the version that makes a helper a zygote.
pub(crate) const ROLE: &str = "zygote";

/// What a helper is to do. It is sent as strings that end in a zero: the directory, the number of
/// further descriptors, that of variables, those, and the argument vector.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Order<S> {
    /// Where the program starts; where the zygote is, if empty.
    pub(crate) directory: S,
    /// How many of the descriptors are the program's own, beside its streams.
    pub(crate) further: usize,
    /// The program's environment, `NAME=value` each.
    pub(crate) environment: Vec<S>,
    /// As of a helper that is started by itself.
    pub(crate) arguments: Vec<S>,
}

/// The most that a program may have of its own. With more it is started without the zygote.
pub(crate) const MOST_FURTHER: usize = 16;

/// The most descriptors that come with an order: the helper's control and report, the program's own,
/// its output, error output and, unless that is `/dev/null`, input.
const HANDLES: usize = 2 + MOST_FURTHER + 3;

impl<S: AsRef<[u8]>> Order<S> {
    /// Sends it, with the descriptors in the order of [`HANDLES`].
    ///
    /// # Errors
    ///
    /// [`Errno::MSGSIZE`] for one that is too large; any other if nobody listens.
    pub(crate) fn send(&self, socket: impl AsFd, handles: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let bytes = self.to_bytes();
        if bytes.len() > LARGEST {
            return Err(Errno::MSGSIZE);
        }
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(HANDLES))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(handles));
        sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL).map(drop)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let (further, variables) = (self.further.to_string(), self.environment.len().to_string());
        let mut bytes = Vec::new();
        let strings = [self.directory.as_ref(), further.as_bytes(), variables.as_bytes()]
            .into_iter()
            .chain(self.environment.iter().chain(&self.arguments).map(AsRef::as_ref));
        for string in strings {
            bytes.extend_from_slice(string);
            bytes.push(0);
        }
        bytes
    }
}

impl Order<OsString> {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let strings = bytes.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let mut strings = strings.map(|string| OsStr::from_bytes(string).to_owned());
        let directory = strings.next()?;
        let further = strings.next()?.to_str()?.parse().ok()?;
        let variables = strings.next()?.to_str()?.parse().ok()?;
        let environment: Vec<_> = strings.by_ref().take(variables).collect();
        (environment.len() == variables).then(|| Self {
            directory,
            further,
            environment,
            arguments: strings.collect(),
        })
    }
}

/// Takes orders until the server is gone. Copies come back from it, too, when they have nothing more
/// to do.
pub(super) fn serve(socket: OwnedFd) {
    // Whoever could look into it could have it start what he likes, without a jail.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let mut buffer = vec![0; LARGEST];
    while let Some((length, handles)) = receive(&socket, &mut buffer) {
        // Whose order makes no sense is told so by its descriptors being closed.
        let Some(order) = buffer.get(..length).and_then(Order::from_bytes) else { continue };
        let arguments = order.arguments.into_iter();
        let Some((plan, words)) = Plan::from_arguments(arguments) else { continue };
        let Ok(handles) = out_of_the_way(handles, order.further) else { continue };
        let mut handles = handles.into_iter();
        let (Some(control), Some(report)) = (handles.next(), handles.next()) else { continue };
        let mut report = File::from(report);
        let told = match copy(&plan) {
            Ok(Copied { fork: Fork::Child, place }) => {
                // As long as somebody has it, the server takes the zygote for alive.
                drop(socket);
                if let Err(error) = begin(&order.directory, order.further, handles) {
                    // As `posix_spawn` would have said of a helper that is started by itself.
                    let _ = report.write_all(failure(Step::Execute, &error).as_bytes());
                    return;
                }
                let program = Program { words, environment: Some(order.environment) };
                return match place {
                    Place::Beside => supervise(&plan, &program, &control, report),
                    Place::Inside(users) => {
                        supervise_inside(&plan, users.as_ref(), &program, &control, report);
                    }
                };
            }
            Ok(Copied { fork: Fork::Parent(process), .. }) => report::process(process),
            Err((step, error)) => failure(step, &error),
        };
        // If nobody listens, nobody waits.
        let _ = report.write_all(told.as_bytes());
    }
}

/// The next order's length and descriptors; nothing when there will be none any more.
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Option<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(HANDLES))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut slices = [IoSliceMut::new(buffer)];
        match recvmsg(socket, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received.ok()?,
        }
    };
    let mut handles = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            handles.extend(rights);
        }
    }
    (received.bytes > 0).then_some((received.bytes, handles))
}

/// Moves descriptors above the numbers that so many of a program's own will have.
fn out_of_the_way(handles: Vec<OwnedFd>, further: usize) -> io::Result<Vec<OwnedFd>> {
    match further {
        0 => Ok(handles),
        1..=MOST_FURTHER => {
            let last = own_numbers().nth(further - 1).unwrap_or(FURTHER);
            handles.into_iter().map(|handle| above(handle, last)).collect()
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The numbers of a confined program's own descriptors.
fn own_numbers() -> impl Iterator<Item = RawFd> {
    FURTHER + OF_HELPER..
}

/// A copy of the zygote, seen from either side.
struct Copied {
    fork: Fork,
    place: Place,
}

enum Place {
    /// Where the zygote is.
    Beside,
    /// As the first process of a PID namespace, with the users of the user namespace if it took one.
    Inside(Option<UserMap>),
}

/// Makes the copy. Where the plan wants a PID namespace it is the first process in there: a helper
/// that is started by itself is too late for that, and has to make one more.
fn copy(plan: &Plan) -> Result<Copied, (Step, io::Error)> {
    if plan.rung == KillRung::PidNamespace && !plan.lacks(Facility::Namespaces) {
        let made = in_pid_namespace(sys::fork_sibling);
        let (fork, users) = made.map_err(|error| (Step::Rung, error))?;
        return Ok(Copied { fork, place: Place::Inside(users) });
    }
    let fork = sys::fork_sibling(UnshareFlags::empty()).map_err(|error| (Step::Jail, error))?;
    Ok(Copied { fork, place: Place::Beside })
}

/// In the copy: becomes what a helper that is started by itself is from its start.
fn begin(
    directory: &OsStr,
    further: usize,
    mut handles: impl Iterator<Item = OwnedFd>,
) -> io::Result<()> {
    // What is written about a process is its own to change again, the map of its users for example.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    setsid()?;
    if !directory.is_empty() {
        chdir(directory)?;
    }
    for (handle, number) in handles.by_ref().take(further).zip(own_numbers()) {
        sys::inherit_as(&handle, number)?;
    }
    let mut next = || handles.next().ok_or(io::ErrorKind::InvalidInput);
    dup2_stdout(next()?)?;
    dup2_stderr(next()?)?;
    match handles.next() {
        Some(stdin) => dup2_stdin(stdin)?,
        None => dup2_stdin(File::open("/dev/null")?)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn an_order_arrives_as_it_was_sent(
            directory in "[/a-z ]{0,8}",
            further in 0..3_usize,
            environment in prop::collection::vec("[A-Z]{1,3}=[ -~]{0,6}", 0..4),
            arguments in prop::collection::vec("[ -~\n]{0,8}", 0..5),
        ) {
            let own = |strings: Vec<String>| strings.into_iter().map(OsString::from).collect();
            let order = Order {
                directory: OsString::from(directory),
                further,
                environment: own(environment),
                arguments: own(arguments),
            };
            let sent = Order {
                directory: order.directory.as_bytes(),
                further,
                environment: order.environment.iter().map(|it| it.as_bytes()).collect(),
                arguments: order.arguments.iter().map(|it| it.as_bytes()).collect(),
            };
            prop_assert_eq!(Order::from_bytes(&sent.to_bytes()), Some(order));
        }

        #[test]
        fn whatever_else_arrives_is_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Order::from_bytes(&bytes);
        }
    }
}
