//! Explains from its output why a confined program failed: what its profile did not grant, and the manifest key that
//! grants it.

use std::path::Path;

use toolcrib_manifest::declaration::{SandboxProfile, SandboxSpec};

/// The conditions under which a declared program ran.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfinedRun<'a> {
    /// The declared confinement.
    pub(crate) sandbox: &'a SandboxSpec,
    /// The workspace of the host, which the program may use.
    pub(crate) workspace: &'a Path,
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

/// The prefix of scratch folder names; this many hexadecimal digits follow.
const SCRATCH: (&str, usize) = ("/toolcrib-", 32);
/// Messages about a missing file.
const NOT_THERE: [&str; 3] = ["no such file or directory", "cannot access", "enoent"];

/// The permission that a failed program lacked, as a line for the tool's maintainer; `None` if its output does not show
/// one.
pub(crate) fn explain(confined: ConfinedRun<'_>, printed: &str) -> Option<String> {
    let profile = confined.sandbox.profile;
    if profile == SandboxProfile::Trusted {
        return None;
    }
    let lower = printed.to_lowercase();
    let shows = |signs: &[&str]| signs.iter().any(|sign| lower.contains(sign));
    let name = profile.as_str();
    let offline = profile != SandboxProfile::WorkspaceNet;
    let mut lacks = Vec::new();
    if shows(&NO_SERVICES) {
        lacks.push(format!(
            "programs cannot use the machine's services or gain privileges under `{name}`: \
             `sandbox: {{profile: trusted}}` allows it, and needs the operator's trust (`toolcrib trust`)"
        ));
    }
    let is_curl = Path::new(confined.program).file_name().is_some_and(|name| name == "curl");
    let unconnected = is_curl && confined.exit.is_some_and(|code| CURL_UNCONNECTED.contains(&code));
    if offline && (unconnected || shows(&NO_NETWORK)) {
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
    if let Some((path, writes)) = refused_path(printed, confined) {
        let key = if writes { "write" } else { "read" };
        lacks.push(format!(
            "`{path}` is not granted to it: `sandbox: {{{key}: [\"{path}\"]}}` grants it"
        ));
    }
    // A program that fails for another reason gets no advice about the network.
    (!lacks.is_empty()).then(|| {
        format!("For the tool's maintainer: it ran confined. {}.", capitalized(&lacks.join("; ")))
    })
}

/// Whether a line reports a missing file in the scratch folder, to which `~` and `$HOME` lead.
fn missed_in_scratch(lower: &str) -> bool {
    let (prefix, digits) = SCRATCH;
    let is_scratch = |rest: &str| rest.bytes().take_while(u8::is_ascii_hexdigit).count() == digits;
    lower.lines().any(|line| {
        line.split(prefix).skip(1).any(is_scratch)
            && NOT_THERE.iter().any(|sign| line.contains(sign))
    })
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// The first absolute path outside the workspace in a line about a missing permission, and whether the program wanted
/// to write to it.
fn refused_path(printed: &str, confined: ConfinedRun<'_>) -> Option<(String, bool)> {
    printed.lines().find_map(|line| {
        let lower = line.to_lowercase();
        if !NOT_GRANTED.iter().any(|sign| lower.contains(sign)) {
            return None;
        }
        let words = line.split([' ', '\'', '"', '`', '(', ')', '\u{2018}', '\u{2019}']);
        let words = words.map(|word| word.trim_end_matches([':', ',', ';', '.']));
        let path = words.filter(|word| is_path(word)).find(|word| {
            let path = Path::new(word);
            let granted = confined.sandbox.write.iter().any(|grant| path.starts_with(grant));
            !granted && !path.starts_with(confined.workspace)
        })?;
        let read = confined.sandbox.read.iter().any(|grant| Path::new(path).starts_with(grant));
        let writes = read
            || ["create", "write", "mkdir", "read-only", "remove", "save", "open for"]
                .iter()
                .any(|sign| lower.contains(sign));
        Some((path.to_owned(), writes))
    })
}

fn is_path(word: &str) -> bool {
    word.len() > 1
        && word.starts_with('/')
        && !word.starts_with("//")
        && word.chars().all(|c| c.is_alphanumeric() || "/._-+@~".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explanation(profile: SandboxProfile, own_home: bool, printed: &str) -> String {
        let sandbox = SandboxSpec::of(profile);
        let workspace = Path::new("/srv/work");
        let confined =
            ConfinedRun { sandbox: &sandbox, workspace, program: "sh", exit: Some(1), own_home };
        explain(confined, printed).unwrap_or_default()
    }

    #[test]
    fn a_missing_grant_is_reported_with_the_key_that_grants_it() {
        let rows = [
            ("curl: (6) Could not resolve host: example.com", "profile: workspace+net"),
            ("psql: error: could not translate host name \"db\" to address", "workspace+net"),
            ("The connection to the server localhost:8080 was refused", "pass_env: [HOME]"),
            ("Unable to locate credentials. You can configure", "pass_env: [HOME]"),
            ("cat: /var/lib/app/key: Permission denied", "read: [\"/var/lib/app/key\"]"),
            (
                "mkdir: cannot create directory '/opt/out': Permission denied",
                "write: [\"/opt/out\"]",
            ),
            (
                "npm error EACCES: permission denied, mkdir '/home/ada/.npm'",
                "write: [\"/home/ada/.npm\"]",
            ),
            (
                "curl: (7) Failed to connect to 127.0.0.1 port 7791 after 0 ms: Couldn't connect to server",
                "profile: workspace+net",
            ),
            ("curl: (28) Connection timed out after 1001 milliseconds", "profile: workspace+net"),
            (
                "cat: /tmp/toolcrib-0123456789abcdef0123456789abcdef/.gitconfig: No such file or directory",
                "pass_env: [HOME]",
            ),
            ("Unable to locate credentials. You can configure", "the operator's trust"),
            ("Failed to connect to bus: No such file or directory", "profile: trusted"),
            ("sudo: The \"no new privileges\" flag is set", "profile: trusted"),
        ];
        for (printed, key) in rows {
            let explanation = explanation(SandboxProfile::Workspace, false, printed);
            assert!(explanation.contains(key), "{printed}: {explanation}");
        }
    }

    #[test]
    fn a_silent_curl_without_a_network_gets_the_network_hint() {
        let sandbox = SandboxSpec::of(SandboxProfile::Workspace);
        let workspace = Path::new("/srv/work");
        let explanation = |program, code| {
            let exit = Some(code);
            let confined =
                ConfinedRun { sandbox: &sandbox, workspace, program, exit, own_home: false };
            explain(confined, "").unwrap_or_default()
        };
        for code in [6, 7, 28] {
            assert!(
                explanation("/usr/bin/curl", code).contains("profile: workspace+net"),
                "{code}"
            );
            assert_eq!(explanation("grep", code), "", "{code}");
        }
        assert_eq!(explanation("curl", 22), "", "the server answered");
    }

    #[test]
    fn granted_permissions_are_not_reported_as_missing() {
        let offline = "Could not resolve host: example.com";
        assert_eq!(explanation(SandboxProfile::WorkspaceNet, false, offline), "");
        assert_eq!(explanation(SandboxProfile::Trusted, false, "cat: /x: Permission denied"), "");
        let home = "The connection to the server localhost:8080 was refused";
        assert_eq!(explanation(SandboxProfile::WorkspaceNet, true, home), "");
        assert_eq!(explanation(SandboxProfile::Workspace, false, "grep: no match"), "");
        let own = "cat: /srv/work/a: Permission denied";
        assert_eq!(explanation(SandboxProfile::Workspace, false, own), "");
    }
}
