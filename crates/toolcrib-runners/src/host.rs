//! What runners need to know of the machine they run on.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::SecretString;
use toolcrib_sandbox::{ConfinementDefaults, ControlPlane};

use toolcrib_manifest::declaration::{SandboxProfile, SandboxSpec};

use crate::{Secrets, ServerValues, Trust, TrustNothing};

/// What every declared tool of a server has in common.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunnerHost {
    /// Where programs start if their declaration names no directory; relative directories of
    /// declarations are below it.
    pub workspace_root: PathBuf,
    /// What `${secret.x}` stands for.
    pub secrets: Secrets,
    /// Whether scripts and files that argument vectors name are used only as they were when their
    /// manifest was loaded. Default `false`: programs run whatever is there.
    pub pinned_scripts: bool,
    /// What no program of a declaration may change, and what none may read. Default: one without
    /// places, which whoever holds a clone may [set](ControlPlane::set).
    pub control_plane: ControlPlane,
    /// Which declarations have the operator's word for profile `trusted` and for grants that reach
    /// the home folder. Default: none.
    pub trust: Arc<dyn Trust>,
    /// Places of credentials beside the usual ones (`~/.ssh` and its like): grants that reach them
    /// need the operator's word.
    pub sensitive: Vec<PathBuf>,
    /// What the operator decides for all programs that a declaration runs confined: whether their
    /// profiles have to be enforced, and how much memory they have.
    pub confinement: ConfinementDefaults,
    /// What the tools of each file keep alive, by the file's name.
    leases: Option<Arc<BTreeMap<String, Lease>>>,
    /// What this tool keeps alive.
    held: Option<Lease>,
}

/// Something that lives as long as the tools that were made with it; see
/// [`RunnerHost::with_leases`].
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
            leases: None,
            held: None,
        }
    }

    /// Gives it secrets.
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

    /// Gives it a control plane.
    #[must_use]
    pub fn with_control_plane(self, control_plane: ControlPlane) -> Self {
        Self { control_plane, ..self }
    }

    /// Decides which declarations have the operator's word. A host that loads manifests itself
    /// decides here; without it, tools that need the word are unavailable.
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

    /// Adds places of credentials: grants that reach them need the operator's word.
    #[must_use]
    pub fn with_sensitive(mut self, places: impl IntoIterator<Item = PathBuf>) -> Self {
        self.sensitive.extend(places);
        self
    }

    /// Gives it something for each file, by its name, that every tool of the file keeps alive for as
    /// long as anybody can call it: also after a reload, as long as a turn is open.
    #[must_use]
    pub fn with_leases(self, leases: BTreeMap<String, Lease>) -> Self {
        Self { leases: Some(Arc::new(leases)), ..self }
    }

    /// The host of one file's tools.
    pub(crate) fn of_file(&self, file: &str) -> Self {
        let held = self.leases.as_ref().and_then(|leases| leases.get(file)).cloned();
        Self { leases: None, held: held.or_else(|| self.held.clone()), ..self.clone() }
    }

    /// Sets what the operator decides for all confined programs.
    #[must_use]
    pub fn with_confinement(self, confinement: ConfinementDefaults) -> Self {
        Self { confinement, ..self }
    }

    /// The directory a program of a manifest starts in: the one that is declared, else the workspace. A
    /// trusted program that declares none starts in the folder of its manifest, because many programs run
    /// what they find where they start (a module, a makefile, a hook), and tools write the workspace.
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

    /// The directory that a declared one is, below the workspace.
    pub(crate) fn directory(&self, declared: Option<&Path>) -> PathBuf {
        match declared {
            Some(declared) => self.workspace_root.join(declared),
            None => self.workspace_root.clone(),
        }
    }
}

/// The server as a plan sees it: a secret whose command was not run is taken to be there.
pub(crate) struct LookedAt<'h>(pub(crate) &'h RunnerHost);

impl ServerValues for LookedAt<'_> {
    fn env(&self, name: &str) -> Result<String, String> {
        self.0.env(name)
    }

    fn may_pass(&self, name: &str) -> Result<(), String> {
        self.0.may_pass(name)
    }

    fn secret(&self, name: &str) -> Result<SecretString, String> {
        self.0.secret(name).or_else(|reason| match self.0.secrets.check(name) {
            Ok(()) => Ok(SecretString::from("[secret]".to_owned())),
            Err(_) => Err(reason),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trusted_program_starts_beside_its_manifest_unless_it_says_where() {
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
