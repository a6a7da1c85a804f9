//! Checks that the paths in the settings exist and have safe permissions.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use toolcrib::core::policy::OnAsk;
use toolcrib::manifest::layers::Origin;
use toolcrib::runners::Secrets;
use toolcrib::servers::{SocketFolder, running_servers};
use toolcrib::settings::{Config, LoadedConfig, State};
use toolcrib::stores::{StateDir, foreign_entry};

use super::findings::{FindingLevel, Findings};
use super::storage;

pub(super) fn look(loaded: &LoadedConfig, findings: &mut Findings) {
    let config = loaded.config();
    file(loaded, findings);
    workspace(&config.workspace.root, findings);
    projects(config, findings);
    state(&config.state, findings);
    control(loaded, findings);
    storage::look(loaded, findings);
    secrets(config, findings);
    if config.policy.on_ask() == OnAsk::Allow {
        findings.warn(
            "policy",
            "policy.on_ask is `allow`: calls that need approval run without it",
            "set policy.on_ask to wait",
        );
    }
    server(loaded, findings);
}

fn file(loaded: &LoadedConfig, findings: &mut Findings) {
    let Some(path) = loaded.file() else {
        findings.note("config", "no file: the built-in defaults apply");
        return;
    };
    let holds_token = matches!(loaded.origin(&["server", "token"]), Origin::File { .. })
        && loaded.config().server.token.is_some();
    let shown = path.display();
    match mode(path) {
        Some(mode) if mode & 0o022 != 0 => findings.warn(
            "config",
            format!("others may write to {shown} (mode {mode:03o}), and so decide what runs"),
            "remove the permission: chmod go-w",
        ),
        Some(mode) if mode & 0o044 != 0 && holds_token => findings.warn(
            "config",
            format!("others may read {shown} (mode {mode:03o}), which contains the server's token"),
            "remove the permission: chmod go-r; or set TOOLCRIB_TOKEN instead",
        ),
        _ => findings.good("config", format!("{shown} is in order")),
    }
}

fn workspace(root: &Path, findings: &mut Findings) {
    if root.is_dir() {
        findings.good("workspace", format!("commands run in {}", root.display()));
    } else if root.symlink_metadata().is_err() && parent_of(root).is_dir() {
        findings.good("workspace", format!("{} will be created on first use", root.display()));
    } else {
        findings.fail(
            "workspace",
            format!("{} is not a directory: command tools cannot start", root.display()),
            "create it, or set workspace.root",
        );
    }
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn projects(config: &Config, findings: &mut Findings) {
    if config.projects.is_empty() {
        let root = config.workspace.root.display();
        findings.note("projects", format!("none: file tools work in {root} for everybody"));
    }
    for (name, root) in &config.projects {
        if root.is_dir() {
            findings.good("projects", format!("{name} is {}", root.display()));
        } else {
            findings.fail(
                "projects",
                format!("{} of {name} is not a directory: file tools fail in it", root.display()),
                "create it, or set another root",
            );
        }
    }
}

fn state(state: &State, findings: &mut Findings) {
    // Without the default folder a program starts and keeps everything in memory.
    let trouble = if state.is_default { FindingLevel::Warning } else { FindingLevel::Failure };
    let Some(dir) = &state.dir else {
        findings.note(
            "state",
            "no state folder: long outputs, waiting calls and runs are lost when the program ends",
        );
        return;
    };
    let shown = dir.display();
    match fs::metadata(dir) {
        Ok(found) if !found.is_dir() => {
            findings.trouble(
                trouble,
                "state",
                format!("{shown} is not a directory"),
                "set another state.dir",
            );
        }
        Ok(found) if found.permissions().mode() & 0o077 != 0 => {
            let mode = found.permissions().mode() & 0o777;
            if state.is_default && StateDir::is_mendable(dir) {
                findings.note(
                    "state",
                    format!("{shown} has mode {mode:03o}; the next server that starts sets 700"),
                );
            } else {
                let then = if state.is_default {
                    "a server keeps its state in memory, and commands cannot find it"
                } else {
                    "servers and calls do not start"
                };
                findings.trouble(
                    trouble,
                    "state",
                    format!("others may read {shown} (mode {mode:03o}), so {then}"),
                    "use a separate directory, or run chmod 700 on it",
                );
            }
        }
        Ok(_) if matches!(foreign_entry(dir), Ok(Some(_))) => findings.trouble(
            trouble,
            "state",
            format!("{shown} contains files that are not toolcrib's state"),
            "name an empty folder in state.dir, or one that does not exist yet",
        ),
        Ok(_) => match StateDir::check_place(dir).and_then(|()| writable(dir)) {
            Ok(()) => findings.good("state", format!("{shown} is private and writable")),
            Err(error) => findings.trouble(
                trouble,
                "state",
                format!("{shown} cannot be used: {error}"),
                "change its owner to the server's user, or set another state.dir",
            ),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let there = |dir: &&Path| dir.as_os_str().is_empty() || dir.exists();
            let outer = dir.ancestors().find(there).filter(|dir| !dir.as_os_str().is_empty());
            match writable(outer.unwrap_or(Path::new("."))) {
                Ok(()) => findings.good(
                    "state",
                    format!("{shown} will be created at the first start, for its owner alone"),
                ),
                Err(error) => findings.trouble(
                    trouble,
                    "state",
                    format!("{shown} cannot be created: {error}"),
                    "create it for the server's user, or set another state.dir",
                ),
            }
        }
        Err(error) => {
            findings.trouble(
                trouble,
                "state",
                format!("{shown}: {error}"),
                "change its owner to the server's user",
            );
        }
    }
}

fn control(loaded: &LoadedConfig, findings: &mut Findings) {
    match SocketFolder::of(loaded) {
        Ok(place) => {
            let place = place.path().display();
            findings.good("control", format!("running servers are found in {place}"));
        }
        Err(why) => {
            findings
                .note("control", format!("{why}: status, reload and stats cannot find servers"));
        }
    }
}

/// Creates and removes a file: permission bits do not show access control lists.
pub(super) fn writable(dir: &Path) -> io::Result<()> {
    let probe = dir.join(format!(".doctor-{}", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&probe)?;
    fs::remove_file(probe)
}

fn secrets(config: &Config, findings: &mut Findings) {
    let secrets = Secrets::look(config.secret_sources());
    let missing = secrets.missing();
    for missing in &missing {
        findings.warn("secrets", missing.to_string(), "tools that need it are unavailable");
    }
    if missing.is_empty() && !config.secrets.is_empty() {
        findings.good(
            "secrets",
            "all are available, as far as can be checked without running commands",
        );
    }
    match config.mask() {
        Ok(mask) if !mask.ignored().is_empty() => findings.warn(
            "secrets",
            "at least one is too short to be masked in results",
            "use secrets of 4 bytes or more",
        ),
        Ok(_) => {}
        Err(error) => findings.fail(
            "secrets",
            error.to_string(),
            "servers and calls do not start with these settings",
        ),
    }
}

fn server(loaded: &LoadedConfig, findings: &mut Findings) {
    let server = &loaded.config().server;
    let listen = &server.listen;
    let guard = match (&server.token, server.no_auth) {
        (_, true) => "no token is required".to_owned(),
        (Some(_), _) => match loaded.origin(&["server", "token"]) {
            Origin::Setting(place) => format!("the token of {place} is required"),
            _ => "the token of the config is required".to_owned(),
        },
        (None, false) => "a new token is generated at every start".to_owned(),
    };
    match listen.try_out() {
        Ok(()) if server.no_auth && !listen.is_local() => findings.fail(
            "server",
            format!("{listen} without a token is refused: anybody on the network could call"),
            "set a token, or listen on a loopback address",
        ),
        Ok(()) if server.no_auth => findings.warn(
            "server",
            format!("{listen} is free, and {guard}: every program on this machine may call tools"),
            "set server.no_auth to false",
        ),
        Ok(()) => findings.good("server", format!("{listen} is free, and {guard}")),
        Err(error) if error.is_taken() => {
            let servers =
                SocketFolder::of(loaded).ok().and_then(|place| running_servers(&place).ok());
            match servers.unwrap_or_default().first() {
                Some(server) => findings.note(
                    "server",
                    format!(
                        "{listen} is in use by the server {}, which runs with this config",
                        server.pid
                    ),
                ),
                None => findings.warn(
                    "server",
                    format!(
                        "{listen} is in use by another program: no server runs with this config"
                    ),
                    "end that program, or set another server.listen (or --listen)",
                ),
            }
        }
        Err(error) => findings.fail("server", error.to_string(), "set another server.listen"),
    }
}

/// The permission bits of a file, if it exists.
pub(super) fn mode(path: &Path) -> Option<u32> {
    Some(fs::metadata(path).ok()?.permissions().mode() & 0o777)
}
