//! The machine and the settings that runners use.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::SecretString;
use toolcrib_sandbox::{ConfinementDefaults, ControlPlane};

use toolcrib_manifest::declaration::{SandboxProfile, SandboxSpec};

use crate::{Secrets, ServerValues, Trust, TrustNothing};

/// The settings that all declared tools of a server share.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunnerHost {
    /// The directory in which programs start if their declaration names none. Relative directories of declarations are
    /// resolved against it.
    pub workspace_root: PathBuf,
    /// The values of `${secret.x}`.
    pub secrets: Secrets,
    /// Whether a tool is refused when its script, or a file that its argument vector names, has changed since the
    /// manifest was loaded. Default `false`: the current file is used.
    pub pinned_scripts: bool,
    /// Paths that no program of a declaration may change, and paths that none may read. Empty by default; any clone can
    /// [set](ControlPlane::set) it.
    pub control_plane: ControlPlane,
    /// Which declarations the operator trusts with profile `trusted` and with grants that reach the home folder.
    /// Default: none.
    pub trust: Arc<dyn Trust>,
    /// Places of credentials in addition to the usual ones (`~/.ssh` and similar). Grants that reach them need the
    /// operator's trust.
    pub sensitive: Vec<PathBuf>,
    /// The operator's settings for all confined programs: whether their profiles must be enforced, and how much memory
    /// they have.
    pub confinement: ConfinementDefaults,
    /// Whether its tools only produce plans.
    pub(crate) for_plans: bool,
    /// The folder with the kept HOMEs of upstreams, or why there is none.
    homes: Result<PathBuf, String>,
    /// The leases that the tools of each file hold, by file name.
    leases: Option<Arc<BTreeMap<String, Lease>>>,
    /// The lease that this tool holds.
    held: Option<Lease>,
}

/// A value that lives as long as the tools made with it; see [`RunnerHost::with_leases`].
pub type Lease = Arc<dyn Any + Send + Sync>;

impl RunnerHost {
    /// A host whose workspace is this directory, without secrets.
    pub fn new(workspace_root: impl Into<PathBuf>) -> Self {
        Self {
            workspace_root: workspace_root.into(),
            secrets: Secrets::default(),
            pinned_scripts: false,
            control_plane: ControlPlane::new(),
            trust: Arc::new(TrustNothing),
            sensitive: Vec::new(),
            confinement: ConfinementDefaults::default(),
            for_plans: false,
            homes: Err("this host has no folder for them".to_owned()),
            leases: None,
            held: None,
        }
    }

    /// Assumes that everything tools need is available, except environment variables: programs, scripts, secrets and
    /// the operator's trust. Their plans ([`Tool::plan`](toolcrib_tool::Tool::plan)) can then be viewed on a machine
    /// that has none of these. A call of such a tool is still refused if something is missing.
    #[must_use]
    pub fn for_plans(self) -> Self {
        Self { for_plans: true, ..self }
    }

    /// Sets the folder in which upstreams with `keep_home` have their HOMEs, or why there is none: a clause.
    #[must_use]
    pub fn with_homes(self, homes: Result<PathBuf, String>) -> Self {
        Self { homes, ..self }
    }

    /// The kept HOME of an upstream, or why it cannot have one: a clause.
    pub fn home_of(&self, upstream: &str) -> Result<PathBuf, String> {
        self.homes.as_ref().map(|homes| homes.join(upstream)).map_err(Clone::clone)
    }

    /// Sets the secrets.
    #[must_use]
    pub fn with_secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Sets whether a tool is refused when a script, or a file that its argument vector names, has
    /// changed since its manifest was loaded. The files have to be recorded with
    /// [`pin_files`](crate::pin_files).
    #[must_use]
    pub fn with_pinned_scripts(self, pinned_scripts: bool) -> Self {
        Self { pinned_scripts, ..self }
    }

    /// Sets the control plane.
    #[must_use]
    pub fn with_control_plane(self, control_plane: ControlPlane) -> Self {
        Self { control_plane, ..self }
    }

    /// Sets what decides which declarations the operator trusts. A host that loads manifests itself decides here;
    /// without it, tools that need the operator's trust are unavailable.
    ///
    /// ```
    /// use toolcrib_runners::{RunnerHost, TrustEverything};
    ///
    /// // All manifests of this host were written by its authors.
    /// let host = RunnerHost::new("/srv/work").with_trust(TrustEverything);
    /// # let _ = host;
    /// ```
    #[must_use]
    pub fn with_trust(self, trust: impl Trust + 'static) -> Self {
        Self { trust: Arc::new(trust), ..self }
    }

    /// Adds places of credentials. Grants that reach them need the operator's trust.
    #[must_use]
    pub fn with_sensitive(mut self, places: impl IntoIterator<Item = PathBuf>) -> Self {
        self.sensitive.extend(places);
        self
    }

    /// Sets a lease for each file, by name. Every tool of the file holds it for as long as the tool can be called;
    /// after a reload, that is until the last turn that uses the old tools closes.
    #[must_use]
    pub fn with_leases(self, leases: BTreeMap<String, Lease>) -> Self {
        Self { leases: Some(Arc::new(leases)), ..self }
    }

    /// The host for the tools of one file.
    pub(crate) fn of_file(&self, file: &str) -> Self {
        let held = self.leases.as_ref().and_then(|leases| leases.get(file)).cloned();
        Self { leases: None, held: held.or_else(|| self.held.clone()), ..self.clone() }
    }

    /// Sets the operator's settings for all confined programs.
    #[must_use]
    pub fn with_confinement(self, confinement: ConfinementDefaults) -> Self {
        Self { confinement, ..self }
    }

    /// The directory in which a manifest's program starts: the declared one, else the workspace. A trusted program that
    /// declares none starts in the folder of its manifest, because many programs run files that they find in their
    /// working directory (a module, a makefile, a hook), and tools can write to the workspace.
    pub fn start_directory(
        &self,
        declared: Option<&Path>,
        sandbox: &SandboxSpec,
        manifest: &str,
    ) -> PathBuf {
        let own = || std::path::absolute(Path::new(manifest).parent()?).ok();
        match own().filter(|folder| folder.is_dir()) {
            Some(folder) if declared.is_none() && sandbox.profile == SandboxProfile::Trusted => {
                folder
            }
            _ => self.directory(declared),
        }
    }

    /// Resolves a declared directory against the workspace.
    pub(crate) fn directory(&self, declared: Option<&Path>) -> PathBuf {
        match declared {
            Some(declared) => self.workspace_root.join(declared),
            None => self.workspace_root.clone(),
        }
    }
}

/// What a plan has in place of a secret that is not read for it.
pub(crate) const UNREAD_SECRET: &str = "[secret]";

/// The host for making plans: secrets whose command was not run count as available.
pub(crate) struct PlanningHost<'h>(pub(crate) &'h RunnerHost);

impl ServerValues for PlanningHost<'_> {
    fn env(&self, name: &str) -> Result<String, String> {
        self.0.env(name)
    }

    fn may_pass(&self, name: &str) -> Result<(), String> {
        self.0.may_pass(name)
    }

    fn secret(&self, name: &str) -> Result<SecretString, String> {
        self.0.secret(name).or_else(|reason| match self.0.secrets.check(name) {
            Err(_) if !self.0.for_plans => Err(reason),
            _ => Ok(SecretString::from(UNREAD_SECRET.to_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trusted_program_starts_in_its_manifests_folder_by_default() {
        let folder = tempfile::tempdir().unwrap();
        let host = RunnerHost::new("/srv/w");
        let manifest = folder.path().join("a.yaml");
        let start = |profile, declared| {
            let sandbox = SandboxSpec::of(profile);
            host.start_directory(declared, &sandbox, manifest.to_str().unwrap())
        };
        assert_eq!(start(SandboxProfile::Trusted, None), folder.path());
        assert_eq!(start(SandboxProfile::Trusted, Some(Path::new("sub"))), Path::new("/srv/w/sub"));
        assert_eq!(start(SandboxProfile::Workspace, None), Path::new("/srv/w"));
    }
}
