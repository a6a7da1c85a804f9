//! Translates the confinement that a manifest declares for the sandbox.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcrib_manifest::declaration::{SandboxProfile, SandboxSpec};
use toolcrib_sandbox::{Confinement, Enforced, Profile, Require};
use toolcrib_tool::CommandLimits;

use crate::RunnerHost;

/// The confinement that a declaration asks for on this host, minus the host's [control
/// plane](RunnerHost::control_plane) as it is now. Relative paths are below the host's workspace; `~` is the home
/// directory of the server's user.
pub fn confinement(spec: &SandboxSpec, host: &RunnerHost) -> Confinement {
    grants(spec, host).control_plane(&host.control_plane)
}

/// What a declaration asks for on this host, including the control plane. For programs that are started later and
/// subtract the control plane then.
pub fn grants(spec: &SandboxSpec, host: &RunnerHost) -> Confinement {
    let profile = match spec.profile {
        SandboxProfile::Pure => Profile::Pure,
        SandboxProfile::Workspace => Profile::Workspace,
        SandboxProfile::WorkspaceNet => Profile::WorkspaceNet,
        SandboxProfile::Trusted => Profile::Trusted,
    };
    let mut confinement =
        Confinement::new(profile).defaults(host.confinement).workspace(&host.workspace_root);
    // A manifest can be stricter than the config, and under `pure` it may also declare `strict: false`; otherwise only
    // the config can be less strict.
    confinement.require = if spec.required { Require::Required } else { host.confinement.require };
    if let Some(memory) = spec.memory {
        confinement.limits.memory = Some(memory);
    }
    for path in &spec.read {
        confinement = confinement.read(resolved(path, host));
    }
    for path in &spec.write {
        confinement = confinement.write(resolved(path, host));
    }
    confinement
}

/// The resource limits for programs of this declaration on this host, as a plan shows them.
pub(crate) fn planned_limits(spec: &SandboxSpec, host: &RunnerHost) -> CommandLimits {
    let most = grants(spec, host).limits;
    let mut limits = CommandLimits::default();
    limits.memory = most.memory;
    limits.file_size = most.file_size;
    limits.open_files = most.open_files;
    limits.processes = most.processes;
    limits
}

/// A grant as an absolute path.
pub(crate) fn resolved(path: &Path, host: &RunnerHost) -> PathBuf {
    match path.strip_prefix("~") {
        Ok(below) => std::env::home_dir().unwrap_or_else(|| PathBuf::from("/")).join(below),
        Err(_) => host.workspace_root.join(path),
    }
}

/// The confinement of a program as a result's metadata reports it: the profile, what was enforced, and what was not.
pub(crate) fn facts(enforced: &Enforced) -> Value {
    let mut facts = json!({
        "profile": enforced.profile.as_str(),
        "enforced": enforced.held().collect::<Vec<_>>(),
        "processes": enforced.processes.as_str(),
    });
    if !enforced.missing.is_empty() {
        facts["missing"] = json!(enforced.missing);
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_workspace_or_the_home_or_absolute() {
        let host = RunnerHost::new("/srv/w");
        let spec = SandboxSpec {
            read: vec!["data".into(), "~/.kube".into(), "/etc/app".into()],
            write: vec!["../beside".into()],
            ..SandboxSpec::of(SandboxProfile::WorkspaceNet)
        };
        let confinement = confinement(&spec, &host);
        assert_eq!(confinement.profile, Profile::WorkspaceNet);
        let home = std::env::home_dir().unwrap().join(".kube");
        assert_eq!(confinement.read, ["/srv/w/data".into(), home, "/etc/app".into()]);
        assert_eq!(confinement.write, [PathBuf::from("/srv/w/../beside")]);
    }

    #[test]
    fn a_manifest_can_be_stricter_than_the_config_and_not_looser() {
        let defaults = toolcrib_sandbox::ConfinementDefaults::default();
        let strict = RunnerHost::new("/srv/w").with_confinement(defaults);
        let loose = strict.clone().with_confinement(defaults.require(Require::BestEffort));
        for profile in SandboxProfile::ALL {
            for required in [false, true] {
                let spec = SandboxSpec { required, ..SandboxSpec::of(profile) };
                assert_eq!(confinement(&spec, &strict).require, Require::Required);
                let may_be_loose = confinement(&spec, &loose).require == Require::BestEffort;
                assert_eq!(may_be_loose, !required, "{spec:?}");
            }
        }
    }

    #[test]
    fn the_memory_limit_comes_from_the_manifest_or_else_the_config() {
        let defaults = toolcrib_sandbox::ConfinementDefaults::default().memory(7 << 20);
        let host = RunnerHost::new("/srv/w").with_confinement(defaults);
        let memory = |profile, memory| {
            let spec = SandboxSpec { memory, ..SandboxSpec::of(profile) };
            confinement(&spec, &host).limits.memory
        };
        assert_eq!(memory(SandboxProfile::Workspace, None), Some(7 << 20));
        assert_eq!(memory(SandboxProfile::WorkspaceNet, Some(64 << 20)), Some(64 << 20));
        assert_eq!(memory(SandboxProfile::Pure, None), Some(1 << 30));
        assert_eq!(memory(SandboxProfile::Pure, Some(64 << 20)), Some(64 << 20));
    }
}
