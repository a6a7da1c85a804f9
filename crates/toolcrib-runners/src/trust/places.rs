//! Which paths a manifest's grants may reach without the operator's trust.

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use toolcrib_sandbox::sensitive_places;

use crate::RunnerHost;

/// System folders: files written there decide what others run, for example crontabs, units and programs.
const SYSTEM: [&str; 15] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/root", "/run",
    "/sbin", "/sys", "/usr", "/var",
];

/// Whether this path is in a system folder, or contains one, outside the workspace.
pub(super) fn reaches_system(path: &Path, host: &RunnerHost) -> bool {
    let meets = |path: &PathBuf| {
        SYSTEM.iter().any(|system| path.starts_with(system) || Path::new(system).starts_with(path))
    };
    !is_in_workspace(path, host) && spellings(path).iter().any(meets)
}

/// Secret places: a grant of one, of anything in it, or of a folder around it needs the operator's trust. Exceptions
/// are listed in [`PUBLIC`]; in `/proc`, everything except processes and [`SECRET_IN_PROC`] is public.
const SECRET: [&str; 15] = [
    "/boot",
    "/etc",
    "/home",
    "/proc",
    "/root",
    "/run",
    "/var/backups",
    "/var/lib/containerd",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/lib/private",
    "/var/lib/sss",
    "/var/mail",
    "/var/run",
    "/var/spool",
];

/// Files and folders in secret places that every user may read on common distributions.
const PUBLIC: [&str; 49] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/fstab",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/issue",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/login.defs",
    "/etc/lsb-release",
    "/etc/machine-id",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/mtab",
    "/etc/networks",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/redhat-release",
    "/etc/resolv.conf",
    "/etc/rpc",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/run/systemd/resolve",
    "/run/systemd/sessions",
    "/run/systemd/users",
    "/run/udev/data",
    "/run/utmp",
];

/// Files in `/proc` about memory, keys or all processes.
const SECRET_IN_PROC: [&str; 8] =
    ["kcore", "key-users", "keys", "kmsg", "kpagecount", "sched_debug", "timer_list", "vmcore"];

/// Whether a program that reads this path outside the workspace could learn what the system hides from most users, or
/// could talk to a service through its socket: users' passwords, the command lines of other processes, the containers
/// of a Docker daemon.
pub(super) fn reaches_exposed(path: &Path, host: &RunnerHost) -> bool {
    let is_exposed = |path: &PathBuf| {
        let meets = |place: &&str| path.starts_with(place) || Path::new(place).starts_with(path);
        let public = PUBLIC.iter().any(|place| path.starts_with(place)) || is_public_in_proc(path);
        (SECRET.iter().any(meets) && !public) || is_control_socket(path)
    };
    !is_in_workspace(path, host) && spellings(path).iter().any(is_exposed)
}

/// Whether this path in `/proc` is about the system, or about the process that reads it.
fn is_public_in_proc(path: &Path) -> bool {
    let Ok(rest) = path.strip_prefix("/proc") else { return false };
    let Some(Component::Normal(name)) = rest.components().next() else { return false };
    let Some(name) = name.to_str() else { return false };
    // `/proc/self` leads to the folder of this process.
    let process = name.parse::<u32>().ok();
    process.is_none_or(|process| process == std::process::id()) && !SECRET_IN_PROC.contains(&name)
}

/// Whether this is a socket, or by its name the socket or socket folder of a container engine, which need not be
/// running.
fn is_control_socket(path: &Path) -> bool {
    const ENGINES: [&str; 4] = ["containerd", "crio", "docker", "podman"];
    #[cfg(unix)]
    let is_socket = {
        use std::os::unix::fs::FileTypeExt as _;
        std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
    };
    #[cfg(not(unix))]
    let is_socket = false;
    let in_run = ["/run", "/var/run"].iter().find_map(|run| path.strip_prefix(run).ok());
    let first = in_run.and_then(|rest| rest.components().next());
    let name = first.and_then(|name| name.as_os_str().to_str()).unwrap_or_default();
    is_socket || ENGINES.iter().any(|engine| name.starts_with(engine))
}

/// Whether this path is in the workspace, however it is spelled.
fn is_in_workspace(path: &Path, host: &RunnerHost) -> bool {
    let roots = spellings(&host.workspace_root);
    spellings(path).iter().all(|path| roots.iter().any(|root| path.starts_with(root)))
}

/// Whether a grant of this path reaches the home folder outside the workspace, or credentials anywhere.
pub(super) fn reaches_private(path: &Path, host: &RunnerHost) -> bool {
    let paths = spellings(path);
    let in_workspace = is_in_workspace(path, host);
    let is_in = |place: &Path| paths.iter().any(|path| path.starts_with(place));
    credentials(host).any(|place| is_in(&place) || contains_credentials(&paths, &place))
        || (!in_workspace && HOME.iter().any(|home| is_in(home)))
        || contains_home(&paths)
}

/// Whether this folder contains the home folder, or contains or is in a place of credentials.
pub(super) fn contains_private(folder: &Path, host: &RunnerHost) -> bool {
    let paths = spellings(folder);
    let is_in = |place: &Path| paths.iter().any(|path| path.starts_with(place));
    credentials(host).any(|place| is_in(&place) || contains_credentials(&paths, &place))
        || contains_home(&paths)
}

/// Whether one of these folders is or contains the home folder. `/` contains everything.
pub(super) fn contains_home(paths: &[PathBuf]) -> bool {
    let places = HOME.iter().map(PathBuf::as_path).chain([Path::new("/")]);
    places.into_iter().any(|place| paths.iter().any(|path| place.starts_with(path)))
}

/// Whether one of these folders contains existing credentials. `/etc/passwd` names home folders of services, such as
/// `/usr/sbin`, that never contain any.
fn contains_credentials(paths: &[PathBuf], place: &Path) -> bool {
    paths.iter().any(|path| place.starts_with(path)) && place.symlink_metadata().is_ok()
}

/// The home folder of the server's user, in all spellings. A service whose home is `/` has none.
static HOME: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let home = std::env::home_dir().filter(|home| home.is_absolute() && home != Path::new("/"));
    home.map(|home| spellings(&home)).unwrap_or_default()
});

static CREDENTIALS: LazyLock<Vec<PathBuf>> =
    LazyLock::new(|| sensitive_places().iter().flat_map(|place| spellings(place)).collect());

pub(super) fn credentials(host: &RunnerHost) -> impl Iterator<Item = PathBuf> {
    let own = host.sensitive.iter().flat_map(|place| spellings(place));
    CREDENTIALS.iter().cloned().chain(own)
}

/// The path as written, without `.` and `..`, and its target if that differs.
pub(crate) fn spellings(path: &Path) -> Vec<PathBuf> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut plain = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    // A file that does not exist yet will be created where its folder really is.
    let real = absolute.ancestors().find_map(|there| {
        let rest = absolute.strip_prefix(there).ok()?;
        Some(std::fs::canonicalize(there).ok()?.join(rest))
    });
    let real = real.filter(|real| *real != plain);
    std::iter::once(plain).chain(real).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> (tempfile::TempDir, RunnerHost) {
        let folder = tempfile::tempdir().unwrap();
        let host = RunnerHost::new(folder.path());
        (folder, host)
    }

    #[test]
    fn write_grants_in_system_folders_need_the_operators_trust() {
        let (_folder, host) = host();
        for path in [
            "/",
            "/etc/cron.d",
            "/opt/vendor",
            "/tmp/../etc/cron.d",
            "/usr/local/bin",
            "/var/spool",
            "/var/spool/cron/crontabs/root",
        ] {
            assert!(reaches_system(Path::new(path), &host), "{path}");
        }
    }

    #[test]
    fn write_grants_in_temporary_folders_and_the_workspace_need_no_trust() {
        let (folder, host) = host();
        let own = ["", "out", "out/../deeper/x"].map(|below| folder.path().join(below));
        for path in own.iter().map(PathBuf::as_path).chain([Path::new("/tmp/x")]) {
            assert!(!reaches_system(path, &host), "{}", path.display());
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_workspace_to_a_system_folder_does_not_hide_it() {
        let (folder, host) = host();
        let link = folder.path().join("jobs");
        std::os::unix::fs::symlink("/etc", &link).unwrap();
        assert!(reaches_system(&link.join("cron.d"), &host));
        assert!(reaches_exposed(&link, &host));
    }

    #[test]
    fn read_grants_that_expose_other_users_or_processes_need_the_operators_trust() {
        let (_folder, host) = host();
        for path in [
            "/etc",
            "/etc/",
            "/etc/kubernetes",
            "/etc/shadow-",
            "/etc/ssh/ssh_host_rsa_key",
            "/etc/ssl",
            "/etc/shadow",
            "/etc/ssl/private/key.pem",
            "/etc/sudoers.d",
            "/proc",
            "/proc/1",
            "/proc/1/cmdline",
            "/home",
            "/home/somebody/notes",
            "/proc/kcore",
            "/root",
            "/root/notes",
            "/run",
            "/run/secrets/token",
            "/run/docker.sock",
            "/run/podman/podman.sock",
            "/usr/../etc",
            "/var",
            "/var/backups/shadow.bak",
            "/var/run",
            "/var/run/docker.sock",
        ] {
            assert!(reaches_exposed(Path::new(path), &host), "{path}");
        }
    }

    #[test]
    fn read_grants_of_single_system_files_need_no_trust() {
        let (folder, host) = host();
        let own = folder.path().join("data");
        for path in [
            "/etc/hosts",
            "/etc/localtime",
            "/etc/passwd",
            "/etc/ssl/certs",
            "/proc/cpuinfo",
            "/proc/self/mountinfo",
            "/proc/sys/kernel",
            "/run/udev/data",
            "/run/utmp",
            "/usr/share",
            "/var/log/app",
        ]
        .map(Path::new)
        .into_iter()
        .chain([own.as_path()])
        {
            assert!(!reaches_exposed(path, &host), "{}", path.display());
        }
    }
}
