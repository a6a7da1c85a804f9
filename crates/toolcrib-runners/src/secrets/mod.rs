//! Secrets: values that tools get as `${secret.x}`, and where each of them comes from.

mod source;
mod variables;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

pub use secrecy::{ExposeSecret, SecretString};

pub use source::SecretSource;

use variables::Variables;

/// The longest value of a secret, in bytes.
pub const SECRET_MAX: usize = 64 * 1024;

/// Where secrets are looked for: under their names, then in folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretSources {
    named: BTreeMap<String, SecretSource>,
    folders: Vec<PathBuf>,
    variables: Variables,
}

impl SecretSources {
    /// Nowhere.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says where one secret comes from; it is not looked for in folders then.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>, source: SecretSource) -> Self {
        self.named.insert(name.into(), source);
        self
    }

    /// Takes every file of a folder as a secret under the file's name. The first folder that has a
    /// name keeps it. A folder that is not there has none.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.push(folder.into());
        self
    }

    /// Says what variables held that were taken out of the server's environment, as a server does
    /// with those that hold secrets, so that no other process can read them there.
    #[must_use]
    pub fn variables(mut self, taken: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.variables.extend(taken);
        self
    }

    /// Whether there can be none.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.folders.is_empty()
    }

    /// Reads everything but what `known` has of a command already: a command runs once. With
    /// `commands` false none is run.
    fn read(&self, known: &Found, commands: bool) -> Found {
        let mut found = Found::new();
        for (name, source) in &self.named {
            let value = match (source, known.get(name)) {
                (SecretSource::Command { .. }, Some(value @ State::Value(_))) => value.clone(),
                (SecretSource::Command { .. }, _) if !commands => State::NotAsked,
                _ => source.read(&self.variables).map_or_else(State::Missing, State::Value),
            };
            found.insert(name.clone(), value);
        }
        for folder in &self.folders {
            for (name, value) in source::folder(folder) {
                let value = value.map_or_else(State::Missing, State::Value);
                found.entry(name).or_insert(value);
            }
        }
        found
    }

    /// Why a name that nobody knows is not there, and what to do.
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

type Found = BTreeMap<String, State>;

/// What became of one secret.
#[derive(Clone)]
enum State {
    Value(SecretString),
    /// One clause: where it was looked for, what was found, what to do.
    Missing(String),
    /// Its command was not run.
    NotAsked,
}

/// The secrets of a server, by name. Cloning it is cheap; clones share what they know, and none of
/// them shows a value. Values are overwritten in memory when the last user lets go of them.
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
    sources: SecretSources,
    found: RwLock<Arc<Found>>,
}

impl Secrets {
    /// Reads them all. Commands run one after another, each for at most ten seconds; blocks for as
    /// long. What cannot be read is missing, and says why.
    pub fn read(sources: SecretSources) -> Self {
        let found = sources.read(&Found::new(), true);
        Self::with(sources, found)
    }

    /// Like [`read`](Self::read), but runs no commands: their secrets are taken to be there, and
    /// cannot be used. For listings.
    pub fn look(sources: SecretSources) -> Self {
        let found = sources.read(&Found::new(), false);
        Self::with(sources, found)
    }

    /// Secrets a host program has by itself.
    pub fn from_values<N: Into<String>, V: Into<String>>(
        values: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let value = |value: V| State::Value(SecretString::from(value.into()));
        let found = values.into_iter().map(|(name, secret)| (name.into(), value(secret))).collect();
        Self::with(SecretSources::new(), found)
    }

    fn with(sources: SecretSources, found: Found) -> Self {
        Self(Arc::new(Shared { sources, found: RwLock::new(Arc::new(found)) }))
    }

    fn found(&self) -> Arc<Found> {
        Arc::clone(&self.0.found.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The value of a secret, or why there is none.
    pub fn get(&self, name: &str) -> Result<SecretString, MissingSecret> {
        let missing = |reason: String| Err(MissingSecret { name: name.to_owned(), reason });
        match self.found().get(name) {
            Some(State::Value(value)) => Ok(value.clone()),
            Some(State::Missing(reason)) => missing(format!("{reason} (config `secrets.{name}`)")),
            Some(State::NotAsked) => missing("its command was not run to look at tools".to_owned()),
            None => missing(self.0.sources.unknown(name)),
        }
    }

    /// Fails, as [`get`](Self::get) does, if a tool that needs it cannot be available.
    pub fn check(&self, name: &str) -> Result<(), MissingSecret> {
        match self.found().get(name) {
            Some(State::NotAsked) => Ok(()),
            _ => self.get(name).map(drop),
        }
    }

    /// The name of the secret that this variable of the server's environment holds. No program is
    /// given such a variable but as that secret.
    pub fn held_in_variable(&self, variable: &str) -> Option<&str> {
        let held =
            |source: &SecretSource| matches!(source, SecretSource::Env(name) if name == variable);
        let mut named = self.0.sources.named.iter();
        named.find(|(_, source)| held(source)).map(|(name, _)| name.as_str())
    }

    /// Reads files and folders again, which are replaced where secrets are rotated, and runs the
    /// commands that failed. `mask` gets every value before a tool can: it has to hide them.
    pub fn refresh(&self, mask: impl FnOnce(&[(String, SecretString)])) {
        let found = self.0.sources.read(&self.found(), true);
        mask(&values(&found));
        *self.0.found.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(found);
    }

    /// All values with their names, in byte order of these: what has to be masked.
    pub fn values(&self) -> Vec<(String, SecretString)> {
        values(&self.found())
    }

    /// Those of the named ones that are missing, with the reasons, in byte order.
    pub fn missing(&self) -> Vec<MissingSecret> {
        self.found().keys().filter_map(|name| self.check(name).err()).collect()
    }
}

fn values(found: &Found) -> Vec<(String, SecretString)> {
    let value = |(name, state): (&String, &State)| match state {
        State::Value(value) => Some((name.clone(), value.clone())),
        State::Missing(_) | State::NotAsked => None,
    };
    found.iter().filter_map(value).collect()
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.found().keys()).finish()
    }
}

/// A secret that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingSecret {
    /// Its name.
    pub name: String,
    /// Where it was looked for, what was found, and how to give it.
    pub reason: String,
}

impl fmt::Display for MissingSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs the secret `{}`: {}", self.name, self.reason)
    }
}

impl std::error::Error for MissingSecret {}
