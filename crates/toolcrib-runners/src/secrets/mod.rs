//! Secrets: the values of `${secret.x}`, and their sources.

mod source;
mod variables;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

pub use secrecy::{ExposeSecret, SecretString};

pub use source::SecretSource;
use toolcrib_sandbox::{ControlPlane, ExposedFile};

use variables::ServerVariables;

/// The longest value of a secret, in bytes.
pub const SECRET_MAX: usize = 64 * 1024;

/// Where secrets are looked up: first by name, then in folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretSources {
    named: BTreeMap<String, SecretSource>,
    folders: Vec<PathBuf>,
    variables: ServerVariables,
}

impl SecretSources {
    /// No sources.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the source of one secret. Folders are then not searched for it.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>, source: SecretSource) -> Self {
        self.named.insert(name.into(), source);
        self
    }

    /// Adds every file of a folder as a secret under the file's name. If several folders have a name, the first one
    /// wins. A missing folder counts as empty.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.push(folder.into());
        self
    }

    /// Adds variables that were removed from the server's environment. A server removes those that hold secrets, so
    /// that no other process can read them there.
    #[must_use]
    pub fn variables(mut self, taken: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.variables.extend(taken);
        self
    }

    /// Whether a program is run to get a secret.
    pub fn has_commands(&self) -> bool {
        self.named.values().any(|source| matches!(source, SecretSource::Command { .. }))
    }

    /// Whether there are no sources.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.folders.is_empty()
    }

    /// Reads all secrets except those whose command has already succeeded (`known`): a command runs once. If `commands`
    /// is false, no command runs.
    ///
    /// A file that a program of this server could have changed keeps its known value, or has none.
    fn read(
        &self,
        known: &SecretStates,
        commands: bool,
        plane: Option<&ControlPlane>,
    ) -> SecretStates {
        let mut found = SecretStates::new();
        let checked = |name: &str, file: &Path, read: SecretState| match plane
            .and_then(|plane| plane.exposed([file]))
        {
            None => read,
            Some(file) => match known.get(name) {
                Some(value @ SecretState::Value(_)) => value.clone(),
                _ => SecretState::Missing(not_used(&file)),
            },
        };
        for (name, source) in &self.named {
            let value = match (source, known.get(name)) {
                (SecretSource::Command { .. }, Some(value @ SecretState::Value(_))) => {
                    value.clone()
                }
                (SecretSource::Command { .. }, _) if !commands => SecretState::NotAsked,
                _ => source
                    .read(&self.variables)
                    .map_or_else(SecretState::Missing, SecretState::Value),
            };
            let value = match source {
                SecretSource::File(file) => checked(name, file, value),
                SecretSource::Env(_) | SecretSource::Command { .. } => value,
            };
            found.insert(name.clone(), value);
        }
        for folder in &self.folders {
            for (name, value) in source::folder(folder) {
                let value = value.map_or_else(SecretState::Missing, SecretState::Value);
                let value = checked(&name, &folder.join(&name), value);
                found.entry(name).or_insert(value);
            }
        }
        found
    }

    /// Why an unknown name has no value, and what to do.
    fn unknown(&self, name: &str) -> String {
        let folders: Vec<String> =
            self.folders.iter().map(|folder| format!("`{}`", folder.display())).collect();
        let folders = match folders.as_slice() {
            [] => String::new(),
            folders => format!(", and no such file is in {}", folders.join(" or ")),
        };
        format!(
            "the config's `secrets` does not name it{folders}; add `{name}: {{env: VARIABLE}}`, \
             `{{file: PATH}}` or `{{command: [PROGRAM]}}` there"
        )
    }
}

/// Why a file's secret is not used, as a clause with what to do.
fn not_used(file: &ExposedFile) -> String {
    let remedy = if file.is_reviewed {
        "run `toolcrib reload` again when these programs have ended"
    } else {
        file.remedy()
    };
    format!("it would be read from {file}: {remedy}")
}

type SecretStates = BTreeMap<String, SecretState>;

/// The state of one secret.
#[derive(Clone)]
enum SecretState {
    Value(SecretString),
    /// A clause: where it was looked up, what was found, and what to do.
    Missing(String),
    /// Its command has not been run.
    NotAsked,
}

/// The secrets of a server, by name. Clones are cheap and share their values; none of them prints a value. When the
/// last clone is dropped, the values are overwritten in memory.
///
/// ```
/// use toolcrib_runners::{ExposeSecret, Secrets};
///
/// let secrets = Secrets::from_values([("token", "hunter2-secret")]);
/// assert_eq!(secrets.get("token").unwrap().expose_secret(), "hunter2-secret");
/// assert!(!format!("{secrets:?}").contains("hunter2"));
///
/// let missing = secrets.get("tokn").unwrap_err();
/// assert!(missing.to_string().starts_with("needs the secret `tokn`: the config's `secrets` does"));
/// ```
#[derive(Clone, Default)]
pub struct Secrets(Arc<Shared>);

#[derive(Default)]
struct Shared {
    sources: RwLock<Arc<SecretSources>>,
    found: RwLock<Arc<SecretStates>>,
    plane: OnceLock<ControlPlane>,
}

impl Secrets {
    /// Reads all secrets. Commands run one after another, each for at most ten seconds; blocks meanwhile. A secret that
    /// cannot be read is missing, with the reason.
    pub fn read(sources: SecretSources) -> Self {
        let found = sources.read(&SecretStates::new(), true, None);
        Self::with(sources, found)
    }

    /// Like [`read`](Self::read), but runs no commands: their secrets count as available but cannot be used. For
    /// listings.
    pub fn look(sources: SecretSources) -> Self {
        let found = sources.read(&SecretStates::new(), false, None);
        Self::with(sources, found)
    }

    /// Secrets that a host program supplies directly.
    pub fn from_values<N: Into<String>, V: Into<String>>(
        values: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let value = |value: V| SecretState::Value(SecretString::from(value.into()));
        let found = values.into_iter().map(|(name, secret)| (name.into(), value(secret))).collect();
        Self::with(SecretSources::new(), found)
    }

    fn with(sources: SecretSources, found: SecretStates) -> Self {
        let (sources, found) = (RwLock::new(Arc::new(sources)), RwLock::new(Arc::new(found)));
        Self(Arc::new(Shared { sources, found, plane: OnceLock::new() }))
    }

    /// Sets the control plane that says which files programs of this server could have changed. Such a
    /// file is not read again before the operator has [reviewed](ControlPlane::reviewed) it. Only the
    /// first call has an effect.
    pub fn set_control_plane(&self, plane: &ControlPlane) {
        let _ = self.0.plane.set(plane.clone());
    }

    fn sources(&self) -> Arc<SecretSources> {
        Arc::clone(&self.0.sources.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks secrets up in other sources from the next [`refresh`](Self::refresh) on, and returns the sources
    /// before. Secrets that `is_kept` names keep their source, or stay without one. Variables that were removed from the
    /// environment stay known. A value from a command is used until the command changes.
    pub fn replace_sources(
        &self,
        mut sources: SecretSources,
        is_kept: impl Fn(&str) -> bool,
    ) -> SecretSources {
        let before = self.sources();
        sources.variables = before.variables.clone();
        sources.named.retain(|name, _| !is_kept(name));
        let kept = before.named.iter().filter(|(name, _)| is_kept(name));
        sources.named.extend(kept.map(|(name, source)| (name.clone(), source.clone())));
        {
            let mut found = self.0.found.write().unwrap_or_else(PoisonError::into_inner);
            let is_same = |name: &String| sources.named.get(name) == before.named.get(name);
            let same = found.iter().filter(|(name, _)| is_same(name));
            *found = Arc::new(same.map(|(name, state)| (name.clone(), state.clone())).collect());
        }
        *self.0.sources.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(sources);
        Arc::unwrap_or_clone(before)
    }

    fn found(&self) -> Arc<SecretStates> {
        Arc::clone(&self.0.found.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The value of a secret, or why it is missing.
    pub fn get(&self, name: &str) -> Result<SecretString, MissingSecret> {
        let missing = |reason: String| Err(MissingSecret { name: name.to_owned(), reason });
        match self.found().get(name) {
            Some(SecretState::Value(value)) => Ok(value.clone()),
            Some(SecretState::Missing(reason)) => {
                missing(format!("{reason} (config `secrets.{name}`)"))
            }
            Some(SecretState::NotAsked) => missing(
                "its command is not run for \
                 listings"
                    .to_owned(),
            ),
            None => missing(self.sources().unknown(name)),
        }
    }

    /// Fails, as [`get`](Self::get) does, if a tool that needs the secret cannot be available.
    pub fn check(&self, name: &str) -> Result<(), MissingSecret> {
        match self.found().get(name) {
            Some(SecretState::NotAsked) => Ok(()),
            _ => self.get(name).map(drop),
        }
    }

    /// The name of the secret that is read from this variable of the server's environment. Programs
    /// get such a variable only as that secret.
    pub fn held_in_variable(&self, variable: &str) -> Option<String> {
        let held =
            |source: &SecretSource| matches!(source, SecretSource::Env(name) if name == variable);
        let sources = self.sources();
        sources.named.iter().find(|(_, source)| held(source)).map(|(name, _)| name.clone())
    }

    /// Reads files and folders again, where secrets may have been rotated, and repeats failed commands. `mask` gets
    /// every value before a tool can use it and has to mask it from then on.
    pub fn refresh(&self, mask: impl FnOnce(&[(String, SecretString)])) {
        let found = self.sources().read(&self.found(), true, self.0.plane.get());
        mask(&values(&found));
        *self.0.found.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(found);
    }

    /// All values with their names, in byte order of the names: everything that has to be masked.
    pub fn values(&self) -> Vec<(String, SecretString)> {
        values(&self.found())
    }

    /// The missing secrets, with the reasons, in byte order of their names.
    pub fn missing(&self) -> Vec<MissingSecret> {
        self.found().keys().filter_map(|name| self.check(name).err()).collect()
    }
}

fn values(found: &SecretStates) -> Vec<(String, SecretString)> {
    let value = |(name, state): (&String, &SecretState)| match state {
        SecretState::Value(value) => Some((name.clone(), value.clone())),
        SecretState::Missing(_) | SecretState::NotAsked => None,
    };
    found.iter().filter_map(value).collect()
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.found().keys()).finish()
    }
}

/// A missing secret.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingSecret {
    /// Its name.
    pub name: String,
    /// Where it was looked up, what was found, and how to supply it.
    pub reason: String,
}

impl fmt::Display for MissingSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs the secret `{}`: {}", self.name, self.reason)
    }
}

impl std::error::Error for MissingSecret {}
