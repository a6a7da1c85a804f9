//! Programs that need something that their profile does not grant: the network, the home directory,
//! the list of processes, or the machine's services.

use super::shown;
use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Node;
use crate::manifest::{StartedProgram, started};
use crate::words::Words;

/// Programs that always need the network.
static NETWORK: Words = Words::of(
    "curl wget http https kubectl oc helm psql pg_dump mysql mariadb mysqldump mongosh redis-cli \
     ssh scp sftp dig nslookup host nc ncat telnet aws gcloud az gh glab ansible ansible-playbook \
     traceroute tracepath nmap npx bunx uvx whois ldapsearch snmpwalk vault consul etcdctl argocd \
     flux logcli doctl hcloud rclone",
);

/// Arguments with which such programs do not use the network.
static OFFLINE: Words = Words::of(
    "template lint package kustomize config completion help --help version --version \
     --syntax-check --list-tasks --list-hosts --client",
);

/// Commands that need the network, of programs that do not always need it.
const NETWORK_COMMANDS: [(&str, &[&str]); 8] = [
    ("git", &["clone", "fetch", "pull", "push", "ls-remote"]),
    ("npm", &["install", "i", "ci", "view", "audit", "outdated", "exec"]),
    ("pip", &["install", "download", "index"]),
    ("openssl", &["s_client"]),
    ("terraform", &["init", "plan", "apply", "refresh", "destroy"]),
    ("cargo", &["install", "search", "fetch", "update"]),
    ("go", &["get", "install"]),
    ("gem", &["install", "search"]),
];

/// Programs with settings in the home directory: the folder, and the variables and options for
/// another place.
const HOME: [(&str, &str, &[&str]); 8] = [
    ("kubectl", "~/.kube", &["KUBECONFIG", "--kubeconfig", "--server", "-s"]),
    ("oc", "~/.kube", &["KUBECONFIG", "--kubeconfig", "--server", "-s"]),
    ("helm", "~/.kube", &["KUBECONFIG", "--kubeconfig", "--kube-apiserver"]),
    (
        "aws",
        "~/.aws",
        &[
            "AWS_CONFIG_FILE",
            "AWS_SHARED_CREDENTIALS_FILE",
            "AWS_ACCESS_KEY_ID",
            "--no-sign-request",
        ],
    ),
    ("gcloud", "~/.config/gcloud", &["CLOUDSDK_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS"]),
    ("az", "~/.azure", &["AZURE_CONFIG_DIR"]),
    ("gh", "~/.config/gh", &["GH_CONFIG_DIR", "GH_TOKEN", "GITHUB_TOKEN", "XDG_CONFIG_HOME"]),
    ("doctl", "~/.config/doctl", &["DIGITALOCEAN_ACCESS_TOKEN", "--access-token", "-t"]),
];

/// Programs that talk to the machine's services or need privileges that confined programs do not
/// have.
static TRUSTED: Words = Words::of(
    "sudo doas su systemctl loginctl hostnamectl timedatectl docker podman nerdctl crictl mount \
     umount nsenter dmesg busctl virsh",
);

/// Programs that read information about all processes in `/proc`.
const PROCESSES: [&str; 15] = [
    "ps", "pgrep", "pkill", "pidof", "killall", "pstree", "top", "htop", "atop", "btop", "lsof",
    "fuser", "vmstat", "pidstat", "iotop",
];

/// Those of them that a grant of `/proc` does not help: `ps` does not find itself there, because its process id is
/// another one, and signals reach no other process.
const OTHER_PROCESSES: [&str; 3] = ["ps", "pkill", "killall"];

pub(super) fn check(tool: &Node, findings: &mut Findings<'_>) {
    let Some(run) = tool.entry("run") else { return };
    let sandbox = tool.entry("sandbox").map(|entry| &entry.node);
    let profile = sandbox.and_then(|sandbox| sandbox.entry("profile"));
    let profile = profile.and_then(|entry| entry.node.as_str()).unwrap_or("workspace");
    if profile == "trusted" {
        return;
    }
    let lists = ["read", "write"].map(|key| sandbox.and_then(|sandbox| sandbox.entry(key)));
    let granted = lists.into_iter().flatten().flat_map(|entry| entry.node.items());
    let granted: Vec<&str> = granted.filter_map(Node::as_str).collect();
    let is_granted = |folder: &str| granted.iter().any(|path| covers(path, folder));
    let reads_processes = granted.iter().any(|path| *path == "/" || is_proc(path));
    let lacks = |program: &str| {
        PROCESSES.contains(&program) && (!reads_processes || OTHER_PROCESSES.contains(&program))
    };
    if let Some(text) = run.node.entry("text") {
        let mut programs = programs_of(text.node.as_str().unwrap_or_default());
        let program = programs.find(|program| lacks(program));
        findings.add_all(program.map(|program| needs_processes(program, &shown(text))));
    }
    let list = run.node.entry("argv").or(run.node.entry("worker"));
    let Some(list) = list.map(|entry| &entry.node) else { return };
    for program in started(list, findings) {
        if let Some(found) = needs_trusted(&program) {
            findings.add(found);
            continue;
        }
        // Report all of them at once.
        findings.add_all(needs_network(&program).filter(|_| profile != "workspace+net"));
        findings.add_all(needs_home(&program, &run.node));
        findings.add_all(needs_keys(&program, &is_granted));
        findings.add_all(needs_journal(&program, &is_granted));
        if lacks(&program.name) {
            findings.add(needs_processes(&program.name, &program.span));
        }
    }
}

fn is_proc(path: &str) -> bool {
    path.trim_end_matches('/') == "/proc" || path.starts_with("/proc/")
}

/// Whether a grant of a path includes another one.
fn covers(path: &str, other: &str) -> bool {
    let path = path.trim_end_matches('/');
    other.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The programs of the commands in a shell text, if they are literals.
fn programs_of(text: &str) -> impl Iterator<Item = &str> {
    let before = ["!", "{", "do", "else", "if", "then", "while", "until", "exec", "time"];
    let mut quote = None;
    let commands = text.split(move |c: char| match (quote, c) {
        (None, '"' | '\'') => {
            quote = Some(c);
            false
        }
        (Some(open), _) => {
            if open == c {
                quote = None;
            }
            false
        }
        (None, _) => "|;&\n(".contains(c),
    });
    commands.filter_map(move |command| {
        command.split_whitespace().find(|word| !before.contains(word) && !word.contains('='))
    })
}

fn needs_processes(program: &str, place: &Span) -> Diagnostic {
    let message =
        format!("`{program}` looks at all processes in `/proc`, which this profile hides");
    let found = Diagnostic::warning("needs-processes", place, message);
    if OTHER_PROCESSES.contains(&program) {
        return found.help(
            "write `sandbox: {profile: trusted}`, which needs the operator's trust (`toolcrib trust`): this program \
             does not work in a process namespace of its own, even with `read: [/proc]`",
        );
    }
    found.help(
        "add `read: [/proc]` to the `sandbox` of the tool; it needs the operator's trust \
         (`toolcrib \
         trust`), because `/proc` shows what other programs were given",
    )
}

fn needs_trusted(program: &StartedProgram) -> Option<Diagnostic> {
    let name = program.name.as_str();
    let elsewhere = program.arguments.iter().any(|word| word == "-H" || word.starts_with("--host"));
    if !TRUSTED.contains(name) || elsewhere {
        return None;
    }
    let (why, help) = match name {
        "sudo" | "doas" | "su" | "mount" | "umount" | "nsenter" => (
            "gains no rights under a confined profile",
            "run the server as the user that may do it, and write `sandbox: {profile: trusted}` \
             without the wrapper",
        ),
        _ => (
            "talks to a service of this machine, which no confined program reaches",
            "write `sandbox: {profile: trusted}`; it needs the operator's trust (`toolcrib trust`)",
        ),
    };
    let message = format!("`{name}` {why}");
    Some(Diagnostic::warning("needs-trusted", &program.span, message).help(help))
}

/// SSH finds its folder without `HOME`.
fn needs_keys(program: &StartedProgram, is_granted: &dyn Fn(&str) -> bool) -> Option<Diagnostic> {
    let name = program.name.as_str();
    let names_files = program.arguments.iter().any(|word| {
        ["-i", "-F"].iter().any(|option| word.starts_with(option))
            || word.contains("IdentityFile=")
            || word.contains("UserKnownHostsFile=")
    });
    if !["ssh", "scp", "sftp", "autossh"].contains(&name) || names_files || is_granted("~/.ssh") {
        return None;
    }
    let message =
        format!("`{name}` looks for keys and known hosts in `~/.ssh`, which this profile hides");
    Some(Diagnostic::warning("needs-home", &program.span, message).help(
        "add `read: [\"~/.ssh\"]` to `sandbox`; it needs the operator's trust (`toolcrib trust`). Or name other \
         files with `-i FILE` and `-o UserKnownHostsFile=FILE`, and grant these",
    ))
}

fn needs_journal(
    program: &StartedProgram,
    is_granted: &dyn Fn(&str) -> bool,
) -> Option<Diagnostic> {
    let names_files = program.arguments.iter().any(|word| {
        word.starts_with("-D") || word.starts_with("--directory") || word.starts_with("--file")
    });
    let is_open = is_granted("/var/log/journal") || is_granted("/run/log/journal");
    if program.name != "journalctl" || names_files || is_open {
        return None;
    }
    let message = "`journalctl` reads the journal of this machine, which this profile hides";
    Some(Diagnostic::warning("needs-trusted", &program.span, message).help(
        "write `sandbox: {profile: trusted}`, or add `read: [/var/log/journal]` to `sandbox`; either needs the \
         operator's trust (`toolcrib trust`)",
    ))
}

fn needs_network(program: &StartedProgram) -> Option<Diagnostic> {
    let name = program.name.as_str();
    let commands = NETWORK_COMMANDS.iter().find(|(known, _)| *known == name).map(|(_, list)| *list);
    let of_command = commands.is_some_and(|list| {
        let mut words = program.arguments.iter().filter(|word| !word.starts_with('-'));
        words.any(|word| list.contains(&word.as_str()))
    });
    let offline = program.arguments.iter().any(|word| OFFLINE.contains(word.as_str()));
    if offline || !NETWORK.contains(name) && !of_command {
        return None;
    }
    let message = format!("`{name}` needs the network, and this profile has none");
    Some(
        Diagnostic::warning("needs-network", &program.span, message)
            .help("add `sandbox: {profile: workspace+net}` to the tool"),
    )
}

fn needs_home(program: &StartedProgram, run: &Node) -> Option<Diagnostic> {
    let offline = program.arguments.iter().any(|word| OFFLINE.contains(word.as_str()));
    let (name, folder, others) =
        HOME.iter().find(|(name, ..)| *name == program.name).filter(|_| !offline)?;
    let env = run.entry("env").map(|env| env.node.entries()).unwrap_or_default();
    let passed = run.entry("pass_env").map(|passed| passed.node.items()).unwrap_or_default();
    let set = |variable: &str| {
        env.iter().any(|entry| entry.key == variable)
            || passed.iter().any(|name| name.as_str() == Some(variable))
    };
    let given = set("HOME")
        || others.iter().any(|other| {
            set(other) || program.arguments.iter().any(|word| word.split('=').next() == Some(other))
        });
    if given {
        return None;
    }
    let message =
        format!("`{name}` looks for its settings in `{folder}`, and its HOME is a scratch folder");
    let variable = others.first().filter(|other| !other.starts_with('-'));
    let other = variable.map_or(String::new(), |variable| {
        format!("; or name them: `env: {{{variable}: /path/to/file}}`, with that path in `read`")
    });
    Some(Diagnostic::warning("needs-home", &program.span, message).help(format!(
        "add `pass_env: [HOME]` to `run` and `read: [\"{folder}\"]` to `sandbox`{other}. A grant \
         below the home \
         folder needs the operator's trust (`toolcrib trust`)"
    )))
}
