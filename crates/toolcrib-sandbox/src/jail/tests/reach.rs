//! What a confined program can reach: sockets of others, files of others that it watches, and the scheduling of other
//! processes. Everything is really tried, and listeners outside report whether they received anything.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::time::Duration;

use super::{LIMIT, can_try, on};
use crate::{Command, Confinement, KillRung, Profile, Status, run_blocking};

const CONFINED: [Profile; 3] = [Profile::Pure, Profile::Workspace, Profile::WorkspaceNet];

/// Runs a Perl script under a confinement. Each line of its output names an attempt and its result:
/// 0, or the error number.
pub(super) fn attempts(
    text: &str,
    arguments: &[&str],
    confinement: Confinement,
) -> BTreeMap<String, i32> {
    let command = Command::new("/usr/bin/perl").args(["-e", text]).args(arguments);
    let confinement = confinement.read("/usr/share/perl");
    let finished = run_blocking(command.confine(confinement), LIMIT).unwrap();
    assert_eq!(finished.status, Status::Exited(0), "{}", finished.stderr.text());
    let shown = finished.stdout.text();
    let went = shown.lines().map(|line| {
        let (name, error) = line.split_once(' ').unwrap();
        (name.to_owned(), error.parse().unwrap())
    });
    went.collect()
}

/// Sockets outside that a program of the same user could use.
struct Listeners {
    _folder: tempfile::TempDir,
    datagrams: UnixDatagram,
    abstract_datagrams: UnixDatagram,
    connections: UnixListener,
    abstract_connections: UnixListener,
    arguments: [String; 4],
}

impl Listeners {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = |name| folder.path().join(name);
        let unique = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
        let names = [format!("{unique}-datagrams"), format!("{unique}-stream")];
        let [first, second] =
            names.each_ref().map(|name| SocketAddr::from_abstract_name(name).unwrap());
        let listeners = Self {
            datagrams: UnixDatagram::bind(place("datagrams")).unwrap(),
            abstract_datagrams: UnixDatagram::bind_addr(&first).unwrap(),
            connections: UnixListener::bind(place("stream")).unwrap(),
            abstract_connections: UnixListener::bind_addr(&second).unwrap(),
            arguments: [
                place("datagrams").to_str().unwrap().to_owned(),
                place("stream").to_str().unwrap().to_owned(),
                format!("@{}", names[0]),
                format!("@{}", names[1]),
            ],
            _folder: folder,
        };
        listeners.datagrams.set_nonblocking(true).unwrap();
        listeners.abstract_datagrams.set_nonblocking(true).unwrap();
        listeners.connections.set_nonblocking(true).unwrap();
        listeners.abstract_connections.set_nonblocking(true).unwrap();
        listeners
    }

    fn attempts(&self, confinement: Confinement) -> BTreeMap<String, i32> {
        attempts(SOCKETS, &self.arguments.each_ref().map(String::as_str), confinement)
    }

    /// The sockets that received something.
    fn heard(&self) -> Vec<&'static str> {
        let mut text = [0; 64];
        let mut connected = |listener: &UnixListener| {
            let Ok((mut stream, _)) = listener.accept() else { return false };
            stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            let _ = stream.read(&mut text);
            true
        };
        let streams = [connected(&self.connections), connected(&self.abstract_connections)];
        let datagrams = [&self.datagrams, &self.abstract_datagrams]
            .map(|socket| socket.recv(&mut [0; 64]).is_ok());
        let heard = [
            (datagrams[0], "datagrams"),
            (datagrams[1], "abstract datagrams"),
            (streams[0], "stream"),
            (streams[1], "abstract stream"),
        ];
        heard.into_iter().filter_map(|(heard, name)| heard.then_some(name)).collect()
    }
}

/// Every type of socket and socket pair of the Unix family, and with each of them every way to send to the four
/// addresses, including a descriptor.
const SOCKETS: &str = r#"
    use strict; $| = 1;
    my @addresses = map { s/^@/\0/; pack("S a*", 1, $_) . (/^\0/ ? "" : "\0") } @ARGV;
    sub went { my ($name, $result) = @_; print "$name ", ($result == -1 ? $! + 0 : 0), "\n"; $result }
    open(my $file, '<', '/dev/null') or die;
    my $message = "out";
    sub reach {
        my ($name, $make) = @_;
        for my $address (@addresses) {
            my $fd = $make->() // return;
            syscall(44, $fd, $message, 3, 0x40, $address, length $address);
            my $iov = pack("P Q", $message, 3);
            my $rights = pack("Q l l l x4", 20, 1, 1, fileno($file));
            my $header = pack("P L x4 P Q P Q l x4",
                $address, length $address, $iov, 1, $rights, length $rights, 0);
            syscall(46, $fd, $header, 0x40);
            syscall(42, $fd, $address, length $address);
            syscall(44, $fd, $message, 3, 0x40, 0, 0);
            syscall(46, $fd, pack("Q L x4 P Q P Q l x4", 0, 0, $iov, 1, $rights, length $rights, 0), 0x40);
        }
    }
    for my $kind (0 .. 15) {
        for my $flags (0, 02000000, 04000, 020) {
            my $type = $kind | $flags;
            reach("socket", sub {
                my $fd = syscall(41, 1, $type, 0);
                went("socket_$kind", $fd) == -1 ? undef : $fd;
            });
            for my $end (0, 1) {
                reach("pair", sub {
                    my $pair = pack("l2", -1, -1);
                    went("pair_$kind", syscall(53, 1, $type, 0, $pair)) == -1
                        ? undef : (unpack "l2", $pair)[$end];
                });
            }
        }
    }
"#;

#[test]
fn no_socket_of_the_machine_hears_a_confined_program() {
    if !can_try() {
        return;
    }
    // The attempt is valid: all of them receive messages from an unconfined program.
    let listeners = Listeners::new();
    listeners.attempts(Confinement::new(Profile::Trusted));
    assert_eq!(listeners.heard().len(), 4, "{:?}", listeners.heard());

    for profile in CONFINED {
        let listeners = Listeners::new();
        let went = listeners.attempts(Confinement::new(profile));
        assert_eq!(listeners.heard(), [""; 0], "{profile}");
        assert!(went.len() >= 32, "{went:?}");
        let made: Vec<_> =
            went.iter().filter(|(_, error)| **error != libc::EPERM).map(|(name, _)| name).collect();
        // A stream and a sequence of packets stay connected to their other ends.
        let pairs = ["pair_1", "pair_5"];
        assert_eq!(made, if profile == Profile::Pure { &[][..] } else { &pairs }, "{profile}");
    }
}

/// Every family and type of socket, and for netlink every protocol.
const FAMILIES: &str = r#"
    for my $family (0 .. 50) {
        for my $type (1, 2, 3, 4, 5, 6, 10) {
            my $result = syscall(41, $family, $type, 0);
            print "${family}_$type ", ($result == -1 ? $! + 0 : 0), "\n";
        }
    }
    for my $protocol (0 .. 31) {
        my $result = syscall(41, 16, 3, $protocol);
        print "netlink_$protocol ", ($result == -1 ? $! + 0 : 0), "\n";
    }
"#;

#[test]
fn the_network_is_internet_sockets_and_the_addresses_of_this_machine() {
    if !can_try() {
        return;
    }
    for profile in CONFINED {
        let went = attempts(FAMILIES, &[], Confinement::new(profile));
        assert!(went.len() >= 380, "{went:?}");
        for (name, error) in went {
            let internet = ["2_", "10_", "16_"].iter().any(|family| name.starts_with(family));
            let allowed = profile == Profile::WorkspaceNet && (internet || name == "netlink_0");
            assert_eq!(error != libc::EPERM, allowed && error != libc::EPERM, "{profile}: {name}");
            if profile == Profile::WorkspaceNet && ["2_1", "2_2", "10_1"].contains(&name.as_str()) {
                assert!([0, libc::EAFNOSUPPORT].contains(&error), "{name}: {error}");
            }
        }
    }
}

#[test]
fn names_are_resolved_and_pairs_are_made_by_programs_that_may() {
    let mut text = "getent ahosts localhost >/dev/null && echo resolved".to_owned();
    if crate::find_program("ip").is_ok() {
        text += "; ip -o address show lo >/dev/null && echo shown";
    }
    let confinement = Confinement::new(Profile::WorkspaceNet);
    let command = Command::new("sh").args(["-c", &text]).confine(confinement);
    let finished = run_blocking(command, LIMIT).unwrap();
    assert_eq!(finished.stdout.text().lines().count(), text.split(';').count(), "{finished:?}");
}

#[test]
fn nothing_confined_watches_files_and_programs_that_would_look_again_instead() {
    const WATCH: &str = r#"
        for ([init1 => 294, 0], [init => 253], [add => 254, 3, "/", 0x100], [all => 300, 0, 0],
            [mark => 301, 3, 1, 0x100, -100, "/"], [handle => 303, -100, "/", "", "", 0]) {
            my ($name, $number, @rest) = @$_;
            my $result = syscall($number, @rest);
            print "$name ", ($result == -1 ? $! + 0 : 0), "\n";
        }"#;
    if !can_try() {
        return;
    }
    for profile in CONFINED {
        for (name, error) in attempts(WATCH, &[], Confinement::new(profile)) {
            let refused = [libc::EPERM, libc::ENOSYS].contains(&error);
            // Marking needs a socket that cannot be created.
            assert!(
                refused || name == "mark" && error == libc::EBADF,
                "{profile}: {name}: {error}"
            );
        }
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("log"), "a line\n").unwrap();
    let text = "timeout 1 tail -f log; [ $? = 124 ] && echo still";
    let confinement = Confinement::new(Profile::Workspace).workspace(folder.path());
    let command = Command::new("sh").args(["-c", text]).cwd(folder.path()).confine(confinement);
    let finished = run_blocking(command, LIMIT).unwrap();
    assert_eq!(finished.stdout.text(), "a line\nstill\n", "{}", finished.stderr.text());
}

/// Every way to slow another process, and to make the kernel signal it; then the same for the
/// process itself.
const SLOW: &str = r#"
    use strict; $| = 1;
    my ($other, $user) = @ARGV;
    open(my $file, '<', '/dev/null') or die;
    my $fd = fileno($file);
    my $mask = pack("Q", 1);
    my $parameter = pack("l", 0);
    my $attribute = pack("L L Q l L Q Q Q", 48, 5, 0, 0, 0, 0, 0, 0);
    my $owner = pack("l l", 1, $other);
    sub tried {
        my ($name, $number, @rest) = @_;
        my $result = syscall($number, @rest);
        print "$name ", ($result == -1 ? $! + 0 : 0), "\n";
    }
    tried(priority => 141, 0, $other, 15);
    tried(priority_group => 141, 1, $other, 15);
    tried(priority_user => 141, 2, $user, 15);
    tried(affinity => 203, $other, 8, $mask);
    tried(parameter => 142, $other, $parameter);
    tried(scheduler => 144, $other, 5, $parameter);
    tried(attribute => 314, $other, $attribute, 0);
    tried(io => 251, 1, $other, 3 << 13);
    tried(io_user => 251, 3, $user, 3 << 13);
    tried(limit => 302, $other, 7, pack("Q2", 5, 5), 0);
    tried(migrate => 256, $other, 8, $mask, $mask);
    tried(signal => 72, $fd, 8, $other);
    tried(signal_newer => 72, $fd, 15, $owner);
    tried(kill => 62, $other, 15);
    tried(queue => 129, $other, 15, $owner x 16);
    tried(own_priority => 141, 0, 0, 5);
    tried(own_affinity => 203, 0, 8, $mask);
    tried(own_affinity_by_number => 203, $$, 8, $mask);
    tried(own_scheduler => 144, 0, 3, $parameter);
    tried(own_io => 251, 1, 0, 3 << 13);
"#;

#[test]
fn no_confined_program_slows_or_signals_a_process_of_the_same_user() {
    if !can_try() {
        return;
    }
    // Like the server: the same user, outside.
    #[expect(clippy::disallowed_methods, reason = "a process outside, whose number is known")]
    let mut bystander = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let number = bystander.id().to_string();
    let user = rustix::process::getuid().as_raw().to_string();
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap();
        let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        // Its state, priority, niceness, real-time priority and policy.
        let kept = [0, 15, 16, 37, 38].map(|at| fields[at].to_owned());
        let status = fs::read_to_string(format!("/proc/{number}/status")).unwrap();
        let allowed = status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap();
        (kept, allowed.to_owned())
    };
    std::thread::sleep(Duration::from_millis(50));
    let before = state();
    for rung in [None, Some(KillRung::SealedGroup), Some(KillRung::Subreaper)] {
        for profile in CONFINED {
            let mut confinement = rung.map_or_else(|| Confinement::new(profile), on);
            confinement.profile = profile;
            let went = attempts(SLOW, &[&number, &user], confinement);
            assert_eq!(went.len(), 20, "{went:?}");
            for (name, error) in went {
                // In a namespace that process does not exist, and the user has no others.
                let refused = [libc::EPERM, libc::ESRCH].contains(&error);
                let expected = if name.starts_with("own_") {
                    error == 0
                } else {
                    refused || rung.is_none() && name.ends_with("_user")
                };
                assert!(expected, "{profile} {rung:?}: {name}: {error}");
            }
            assert_eq!(state(), before, "{profile} {rung:?}");
        }
    }
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

/// System V objects stay until somebody removes them, and have no path.
#[test]
fn shared_memory_queues_and_semaphores_are_the_programs_own_and_go_with_it() {
    const MAKE: &str = r#"
        for ([memory => 29, 77001, 4096, 01600], [messages => 68, 77001, 01600],
            [semaphores => 64, 77001, 1, 01600], [queue => 240, "toolcrib-own", 0102, 0600, 0]) {
            my ($name, $number, @rest) = @$_;
            my $result = syscall($number, @rest);
            print "$name ", ($result == -1 ? $! + 0 : 0), "\n";
        }"#;
    if !can_try() || !super::is_here(KillRung::PidNamespace) {
        return;
    }
    let left = || {
        ["shm", "msg", "sem"].map(|kind| {
            let table: PathBuf = format!("/proc/sysvipc/{kind}").into();
            let table = fs::read_to_string(table).unwrap();
            table.lines().filter(|line| line.trim_start().starts_with("77001 ")).count()
        })
    };
    for profile in [Profile::Workspace, Profile::WorkspaceNet] {
        for _ in 0..2 {
            let went = attempts(MAKE, &[], Confinement::new(profile));
            for (name, error) in went {
                // No Landlock rule covers the file system of POSIX message queues.
                assert_eq!(error, if name == "queue" { libc::EACCES } else { 0 }, "{name}");
            }
        }
    }
    assert_eq!(left(), [0, 0, 0]);
}
