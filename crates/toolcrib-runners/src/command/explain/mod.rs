//! Explains from its output why a confined program failed: what its profile did not grant, and the manifest key that
//! grants it.

use std::fmt;
use std::path::{Path, PathBuf};

use toolcrib_manifest::declaration::{SandboxProfile, SandboxSpec};

use crate::RunnerHost;
use crate::confinement::{planned_limits, resolved};
use crate::trust::{read_needs_trust, spellings, write_needs_trust};

/// The conditions under which a declared program ran.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfinedRun<'a> {
    /// The declared confinement.
    pub(crate) sandbox: &'a SandboxSpec,
    /// The host that ran it, whose workspace it may use.
    pub(crate) host: &'a RunnerHost,
    /// The program that was started.
    pub(crate) program: &'a str,
    /// The exit code, if the program ended by itself.
    pub(crate) exit: Option<i32>,
    /// Whether the declaration sets HOME.
    pub(crate) own_home: bool,
}

/// Messages of programs without a network.
const NO_NETWORK: [&str; 19] = [
    "temporary failure in name resolution",
    "could not resolve",
    "couldn't resolve",
    "name or service not known",
    "could not translate host name",
    "network is unreachable",
    "no such host",
    "getaddrinfo",
    "eai_again",
    "socket: operation not permitted",
    "socket: permission denied",
    "cannot create socket",
    "failed to create socket",
    "unable to resolve host",
    "connection refused",
    "couldn't connect to server",
    "could not connect to server",
    "curl: (7)",
    "curl: (28)",
];

/// Messages about a service that did not answer, whatever the arguments were.
const UNREACHABLE: [&str; 10] = [
    "connection refused",
    "connection timed out",
    "connection reset",
    "network is unreachable",
    "no route to host",
    "temporary failure in name resolution",
    "couldn't connect to server",
    "could not connect to server",
    "unable to connect to the server",
    "was refused - did you specify the right host",
];

/// The exit codes of curl for a name it could not resolve, a failed connection and a timeout. With `-s` it prints no
/// message.
const CURL_UNCONNECTED: [i32; 3] = [6, 7, 28];

/// Messages of programs that did not find their settings in the home directory.
const NO_HOME: [&str; 9] = [
    "localhost:8080 was refused",
    "invalid configuration: no configuration has been provided",
    "unable to locate credentials",
    "could not load credentials",
    "do not currently have an active account",
    "gh auth login",
    "az login",
    "config file does not exist",
    "no kubeconfig",
];

/// Messages of programs that wanted a service or a privilege of the machine.
const NO_SERVICES: [&str; 9] = [
    "no new privileges",
    "failed to connect to bus",
    "failed to connect to system scope bus",
    "system has not been booted with systemd",
    "cannot connect to the docker daemon",
    "docker.sock",
    "must be run as root",
    "must be superuser",
    "no journal files were opened due to insufficient permissions",
];

/// Messages about a file that may not be opened or changed.
const NOT_GRANTED: [&str; 5] =
    ["permission denied", "read-only file system", "operation not permitted", "eacces", "eperm"];

/// Messages of programs that got no more memory.
const NO_MEMORY: [&str; 9] = [
    "memoryerror",
    "cannot allocate memory",
    "out of memory",
    "bad_alloc",
    "enomem",
    "memory exhausted",
    "memory allocation of",
    "not enough memory",
    "failed to allocate memory",
];

/// The paths that mean connections to bash.
const CONNECTIONS: [&str; 2] = ["/dev/tcp", "/dev/udp"];

/// Folders of which no advice grants everything: a missing path below one is no file that could be created.
const TOO_WIDE: [&str; 4] = ["/", "/dev", "/proc", "/sys"];

/// The beginning of the path of a scratch folder: the user's number follows, then `/` and this many
/// hexadecimal digits.
const SCRATCH: (&str, usize) = ("/toolcrib-", 32);
/// Messages about a missing file.
const NOT_THERE: [&str; 3] = ["no such file or directory", "cannot access", "enoent"];

/// The permission that a failed program lacked, as a line for the tool's maintainer; `None` if its output does not show
/// one.
pub(crate) fn explain(confined: ConfinedRun<'_>, printed: &str) -> Option<String> {
    let profile = confined.sandbox.profile;
    let lower = printed.to_lowercase();
    let shows = |signs: &[&str]| signs.iter().any(|sign| lower.contains(sign));
    let memory = planned_limits(confined.sandbox, confined.host).memory;
    let out_of_memory = memory.filter(|_| shows(&NO_MEMORY)).map(more_memory);
    if profile == SandboxProfile::Trusted {
        return out_of_memory.map(|lack| format!("For the tool's maintainer: {lack}."));
    }
    let name = profile.as_str();
    let offline = profile != SandboxProfile::WorkspaceNet;
    let mut lacks = Vec::new();
    if shows(&NO_SERVICES) {
        lacks.push(format!(
            "programs cannot use the machine's services or gain privileges under `{name}`: \
             `sandbox: {{profile: trusted}}` allows it, and needs the operator's trust (`toolcrib trust`)"
        ));
    }
    lacks.extend(out_of_memory);
    let is_curl = Path::new(confined.program).file_name().is_some_and(|name| name == "curl");
    let unconnected = is_curl && confined.exit.is_some_and(|code| CURL_UNCONNECTED.contains(&code));
    if offline && (unconnected || shows(&NO_NETWORK) || shows(&CONNECTIONS)) {
        lacks.push(format!(
            "it has no network under `{name}`: `sandbox: {{profile: workspace+net}}` gives it one"
        ));
    }
    if !confined.own_home && (shows(&NO_HOME) || missed_in_scratch(&lower)) {
        lacks.push(
            "its HOME is a scratch folder: `pass_env: [HOME]` in `run` gives it the server's, and \
             `sandbox: {read: [\"~/…\"]}` the files there, which needs the operator's trust (`toolcrib trust`)"
                .to_owned(),
        );
    }
    if let Some(grant) = withheld_grant(confined).filter(|_| shows(&NOT_GRANTED)) {
        lacks.push(format!(
            "its grant `write: [\"{}\"]` reaches files that decide what the server runs, such as manifests, and no \
             confined program changes these: let it write to another folder",
            grant.display()
        ));
    } else if let Some(refused) = refused_path(printed, confined) {
        lacks.push(refused.advice(confined.host));
    }
    // A program that fails for another reason gets no advice about the network.
    (!lacks.is_empty()).then(|| {
        format!("For the tool's maintainer: it ran confined. {}.", capitalized(&lacks.join("; ")))
    })
}

/// What may have ended a program that somebody else killed: the control group, if it has a limit of memory.
pub(crate) fn explain_kill(confined: ConfinedRun<'_>) -> Option<String> {
    let most = planned_limits(confined.sandbox, confined.host).memory?;
    Some(format!("For the tool's maintainer: {}.", more_memory(most)))
}

/// The advice for a program that needed more than this many bytes.
fn more_memory(most: u64) -> String {
    format!(
        "it may have needed more than its {} of memory: `limits: {{memory: {}}}` of the tool raises the limit",
        Bytes(most),
        Bytes(most.saturating_mul(2))
    )
}

/// Whether the output shows that a service did not answer.
pub(crate) fn shows_unreachable_service(printed: &str) -> bool {
    let lower = printed.to_lowercase();
    UNREACHABLE.iter().any(|sign| lower.contains(sign))
}

/// Whether a line reports a missing file in the scratch folder, to which `~` and `$HOME` lead.
fn missed_in_scratch(lower: &str) -> bool {
    let (prefix, digits) = SCRATCH;
    let is_scratch = |rest: &str| {
        let name = rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).strip_prefix('/');
        name.is_some_and(|name| name.bytes().take_while(u8::is_ascii_hexdigit).count() == digits)
    };
    lower.lines().any(|line| {
        line.split(prefix).skip(1).any(is_scratch)
            && NOT_THERE.iter().any(|sign| line.contains(sign))
    })
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// A path that a program could not use.
struct RefusedPath {
    path: String,
    /// Whether the program wanted to write to it.
    writes: bool,
}

impl RefusedPath {
    /// What the declaration lacks. A grant of a missing path has no effect, so the advice for one names the folder
    /// above it.
    fn advice(&self, host: &RunnerHost) -> String {
        let path = &self.path;
        let trust = |needed: bool| {
            if needed { ", and needs the operator's trust (`toolcrib trust`)" } else { "" }
        };
        if !self.writes {
            let trust = trust(read_needs_trust(Path::new(path), host));
            return format!(
                "`{path}` is not granted to it: `sandbox: {{read: [\"{path}\"]}}` grants it{trust}"
            );
        }
        let folder = Path::new(path).ancestors().find(|folder| folder.exists());
        match folder.map(Path::to_string_lossy).as_deref() {
            Some(folder) if folder == path => format!(
                "`{path}` is not granted to it: `sandbox: {{write: [\"{path}\"]}}` grants it{}",
                trust(write_needs_trust(Path::new(path), host))
            ),
            None => format!("`{path}` is not granted to it"),
            // Advice must not open the whole file system.
            Some(folder) if TOO_WIDE.contains(&folder) => format!(
                "`{path}` is not granted to it and does not exist, and only an existing path can be granted: create \
                 a folder for its files and grant that with `write` in `sandbox`"
            ),
            Some(folder) => format!(
                "`{path}` is not granted to it and does not exist, and only an existing path can be granted: \
                 `sandbox: {{write: [\"{folder}\"]}}` grants the folder above it{}",
                trust(write_needs_trust(Path::new(folder), host))
            ),
        }
    }
}

/// A grant of writing that has no effect, because it is a part of the control plane.
fn withheld_grant(confined: ConfinedRun<'_>) -> Option<&Path> {
    let places = confined.host.control_plane.places();
    let is_withheld = |path: &PathBuf| {
        let mut withheld = places.hidden.iter().chain(&places.read_only);
        withheld.any(|place| path.starts_with(place))
    };
    let grants = confined.sandbox.write.iter();
    let mut grants =
        grants.filter(|grant| spellings(&resolved(grant, confined.host)).iter().any(is_withheld));
    grants.next().map(PathBuf::as_path)
}

/// A number of bytes as manifests write it.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes % (1 << 30) == 0 => write!(f, "{}GiB", bytes >> 30),
            bytes => write!(f, "{}MiB", bytes.div_ceil(1 << 20)),
        }
    }
}

/// The first absolute path outside the workspace in a line about a missing permission.
fn refused_path(printed: &str, confined: ConfinedRun<'_>) -> Option<RefusedPath> {
    printed.lines().find_map(|line| {
        let lower = line.to_lowercase();
        if !NOT_GRANTED.iter().any(|sign| lower.contains(sign)) {
            return None;
        }
        // A grant of a path that did not exist had no effect.
        let is_granted = |path: &Path, grants: &[PathBuf]| {
            grants.iter().any(|grant| path.starts_with(grant) && grant.exists())
        };
        let words = line.split([' ', '\'', '"', '`', '(', ')', '\u{2018}', '\u{2019}']);
        let words = words.map(|word| word.trim_end_matches([':', ',', ';', '.']));
        let mut paths = words.filter(|word| {
            let path = Path::new(word);
            is_path(word)
                && *word != confined.program
                && !is_granted(path, &confined.sandbox.write)
                && !path.starts_with(&confined.host.workspace_root)
                && !CONNECTIONS.iter().any(|prefix| path.starts_with(prefix))
        });
        let first = paths.next()?;
        // Programs begin their messages with their own path: `/usr/bin/python3: can't open file '/srv/a.py'`.
        let is_speaker =
            line.trim_start().strip_prefix(first).is_some_and(|rest| rest.starts_with(": "));
        let path = if is_speaker { paths.next().unwrap_or(first) } else { first };
        let writes = is_granted(Path::new(path), &confined.sandbox.read)
            || !Path::new(path).exists()
            || ["create", "write", "mkdir", "read-only", "remove", "save", "open for"]
                .iter()
                .any(|sign| lower.contains(sign));
        Some(RefusedPath { path: path.to_owned(), writes })
    })
}

fn is_path(word: &str) -> bool {
    word.len() > 1
        && word.starts_with('/')
        && !word.starts_with("//")
        && word.chars().all(|c| c.is_alphanumeric() || "/._-+@~".contains(c))
}

#[cfg(test)]
mod tests;
