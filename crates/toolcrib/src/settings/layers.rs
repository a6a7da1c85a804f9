//! Layers of a config: built-in defaults, a file, the environment, flags; later ones override
//! earlier ones.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_core::masking::Mask;
#[cfg(feature = "http")]
use toolcrib_manifest::layers::value_at;
use toolcrib_manifest::layers::{LayerProblem, Layered, Origin, Setting, decode_layers};

use super::Config;
use super::places::StateHome;

/// The prefix of variables that set a value: `TOOLCRIB__EXECUTOR__TOOL_TIMEOUT` is
/// `executor.tool_timeout`.
pub const VARIABLE_PREFIX: &str = "TOOLCRIB__";
/// The short name of the variable for `server.token`, which takes precedence if both are set.
#[cfg(feature = "http")]
const TOKEN_VARIABLE: &str = "TOOLCRIB_TOKEN";

/// The key of the state folder, as one text.
const STATE_KEY: &str = "state.dir";
/// The key of the token, as one text.
const TOKEN_KEY: &str = "server.token";

/// Collects the layers of a config; [`load`](Self::load) reads them.
///
/// ```
/// use toolcrib::settings::ConfigLayers;
///
/// let loaded = ConfigLayers::new()
///     .variables([("TOOLCRIB__EXECUTOR__MAX_CONCURRENCY".into(), "8".into())])
///     .set("--set", "executor.tool_timeout", "5s")
///     .load()?;
/// assert_eq!(loaded.config().executor.max_concurrency, std::num::NonZero::new(8));
/// assert_eq!(loaded.config().executor.tool_timeout.to_string(), "5s");
///
/// let error = ConfigLayers::new().set("--set", "executor.tool_timout", "5s").load().unwrap_err();
/// assert!(error.problems(false)[0].contains("did you mean `tool_timeout`?"));
/// # Ok::<(), toolcrib::settings::ConfigError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ConfigLayers {
    file: Option<PathBuf>,
    variables: Vec<Setting>,
    /// Variables whose value is not UTF-8.
    not_text: Vec<String>,
    flags: Vec<Setting>,
    state_home: StateHome,
}

/// Why a config could not be loaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read.
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The value of a variable is not UTF-8.
    NotText {
        /// The variable.
        variable: String,
    },
    /// The file, a variable or a flag is invalid.
    Wrong {
        /// The file's displayed path, and its text; both empty without a file.
        file: String,
        /// The file's text.
        text: String,
        /// All problems.
        problems: Vec<LayerProblem>,
    },
}

impl ConfigError {
    /// All problems with their positions and source lines, in the style of a compiler, for the terminal of the config's
    /// owner. Secrets are blanked. Empty if the file could not be read: then the text of the error is complete.
    pub fn problems(&self, colour: bool) -> Vec<String> {
        match self {
            Self::Read { .. } | Self::NotText { .. } => Vec::new(),
            Self::Wrong { file, text, problems } => {
                problems.iter().map(|problem| problem.render(file, text, colour)).collect()
            }
        }
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read { path, source } => {
                write!(f, "the config file {} cannot be read: {source}", path.display())
            }
            Self::NotText { variable } => write!(f, "the value of {variable} is not UTF-8 text"),
            // Logs and clients of a server get this text, so of the config it repeats only misspelt keys.
            Self::Wrong { file, text, problems } => {
                let lines: Vec<_> =
                    problems.iter().map(|problem| problem.report(file, text)).collect();
                f.write_str(&lines.join("\n"))
            }
        }
    }
}

/// The text is complete, so the cause is not reported a second time.
impl std::error::Error for ConfigError {}

/// A config, with the origin of each value.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    layered: Layered<Config>,
    file: Option<PathBuf>,
    /// The variables that set a token, even if a flag overrides it.
    token_variables: Vec<String>,
    /// The variable that determined the default of `state.dir`.
    state_variable: Option<&'static str>,
}

/// One value of a config.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EffectiveValue {
    /// Its key, as parts.
    pub path: Vec<String>,
    /// The value; secrets are hidden.
    pub value: Value,
    /// Its origin.
    pub origin: Origin,
}

impl ConfigLayers {
    /// Starts with the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, YAML or TOML according to its name. Missing keys keep their defaults.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = Some(path.into());
        self
    }

    /// Adds the variables with the prefix [`VARIABLE_PREFIX`], usually from [`std::env::vars_os`]. Two underscores
    /// separate the parts of a key; case does not matter. `TOOLCRIB_TOKEN` sets `server.token` if there is a server.
    /// `STATE_DIRECTORY`, `XDG_STATE_HOME` and `HOME` determine the default of `state.dir`; without variables it has no
    /// default.
    #[must_use]
    pub fn variables(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        // If two variables set the same key, the later one applies: the short name.
        let mut variables: Vec<_> = variables.into_iter().collect();
        variables.sort_by(|(one, _), (other, _)| other.cmp(one));
        for (name, value) in variables {
            let Ok(name) = name.into_string() else { continue };
            self.state_home.take(&name, &value);
            let Some(path) = key_of(&name) else { continue };
            match value.into_string() {
                Ok(value) => self.variables.push(Setting::text(name, path, value)),
                Err(_) => self.not_text.push(name),
            }
        }
        // Sections come before their keys, and the order is the same in every run.
        self.variables.sort_by_key(|setting| (setting.key().matches('.').count(), setting.key()));
        self
    }

    /// Sets a key (`executor.tool_timeout`) to a text, overriding file and variables. `flag` is the
    /// name of the flag, for messages.
    #[must_use]
    pub fn set(mut self, flag: &str, key: &str, text: &str) -> Self {
        self.flags.push(Setting::text(flag, key.split('.'), text));
        self
    }

    /// Like [`set`](Self::set), with a JSON value.
    #[must_use]
    pub fn value(mut self, flag: &str, path: &[&str], value: Value) -> Self {
        self.flags.push(Setting::value(flag, path.iter().copied(), value));
        self
    }

    /// Reads all layers. Relative paths are relative to the file's folder, or to the current directory if a variable or
    /// a flag sets them. The default directory of manifests may be missing, because nobody named it.
    pub fn load(self) -> Result<LoadedConfig, ConfigError> {
        let Self { file: path, variables, not_text, flags, state_home } = self;
        if let Some(variable) = not_text.into_iter().next() {
            return Err(ConfigError::NotText { variable });
        }
        let text = path.as_ref().map(|path| {
            std::fs::read_to_string(path)
                .map_err(|source| ConfigError::Read { path: path.clone(), source })
        });
        let text = text.transpose()?;
        let name = path.as_ref().map(|path| path.display().to_string());
        let sets_token = |setting: &&Setting| setting.key() == TOKEN_KEY;
        let token_variables = variables.iter().filter(sets_token);
        let token_variables = token_variables.map(|setting| setting.origin().to_owned()).collect();
        let settings: Vec<_> = variables.into_iter().chain(flags).collect();
        let file = name.as_deref().zip(text.as_deref());
        let mut layered = decode_layers::<Config>(file, &settings).map_err(|problems| {
            let (file, text) = file.unwrap_or_default();
            ConfigError::Wrong { file: file.to_owned(), text: text.to_owned(), problems }
        })?;
        let written_beside = |key: &str| {
            let path: Vec<_> = key.split('.').collect();
            !matches!(layered.origin(&path), Origin::Setting(_))
        };
        let base = path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let mut config = layered.value.clone().rebased(base, written_beside);
        if layered.origin(&["manifests", "dirs"]) == Origin::Default {
            // The user did not name this directory.
            config.manifests.may_be_missing = true;
        }
        let mut state_variable = None;
        if config.state.says_none() {
            config.state.dir = None;
        } else if config.state.dir.is_none() {
            config.state.dir = state_home.folder(path.as_deref());
            config.state.is_default = true;
            state_variable = state_home.variable();
        }
        config.state.users_default = state_home.users_folder(path.as_deref());
        config.own_files.extend(path.clone());
        layered.value = config;
        Ok(LoadedConfig { layered, file: path, token_variables, state_variable })
    }

    /// The information that is needed to find the servers of an invalid config: its file, and the values of `state`, as
    /// far as they can be read.
    #[cfg(feature = "http")]
    pub(crate) fn salvage(self) -> (Config, Option<PathBuf>) {
        let Self { file: path, variables, flags, state_home, .. } = self;
        let settings = variables.into_iter().chain(flags);
        let settings: Vec<_> = settings.filter(|one| one.key() == STATE_KEY).collect();
        let set = decode_layers::<Config>(None, &settings).ok();
        let mut config = Config::default();
        config.state.dir = set.and_then(|set| set.value.state.dir);
        if config.state.dir.is_none()
            && let Some(path) = &path
            && let Ok(text) = std::fs::read_to_string(path)
            && let Some(Value::String(dir)) =
                value_at((&path.to_string_lossy(), &text), &["state", "dir"])
        {
            config.state.dir = Some(dir.into());
            config = config.rebased(path.parent().unwrap_or(Path::new("")), |_| true);
        }
        config.state.users_default = state_home.users_folder(path.as_deref());
        if config.state.says_none() {
            config.state.dir = None;
        } else if config.state.dir.is_none() {
            config.state.dir = state_home.folder(path.as_deref());
            config.state.is_default = true;
        }
        (config, path)
    }
}

/// The key that a variable sets, if any.
fn key_of(name: &str) -> Option<Vec<String>> {
    #[cfg(feature = "http")]
    if name == TOKEN_VARIABLE {
        return Some(vec!["server".to_owned(), "token".to_owned()]);
    }
    let key = name.strip_prefix(VARIABLE_PREFIX)?;
    Some(key.split("__").map(str::to_lowercase).collect())
}

impl LoadedConfig {
    /// The config.
    pub fn config(&self) -> &Config {
        &self.layered.value
    }

    /// The config, for changes; origins stay unchanged.
    pub fn config_mut(&mut self) -> &mut Config {
        &mut self.layered.value
    }

    /// Returns the config; the origins of its values are in [`Config::origins`].
    pub fn into_config(mut self) -> Config {
        let file = self.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
        let mut values = Vec::new();
        let all = serde_json::to_value(self.config()).unwrap_or_default();
        self.collect(&mut Vec::new(), all, &mut values);
        let origins = values.into_iter().filter_map(|value| {
            let place = match value.origin {
                Origin::File { line, column } => format!("{file}:{line}:{column}"),
                Origin::Setting(origin) => origin,
                _ => return None,
            };
            Some((value.path.join("."), place))
        });
        self.layered.value.origins = origins.collect();
        self.layered.value
    }

    /// The origin of a key's value.
    pub fn origin<P: AsRef<str>>(&self, path: &[P]) -> Origin {
        if let Some(variable) = self.state_variable
            && path.iter().map(AsRef::as_ref).eq(STATE_KEY.split('.'))
        {
            return Origin::Setting(variable.to_owned());
        }
        self.layered.origin(path)
    }

    /// The file it was read from, if any.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The file's text; empty without a file.
    #[cfg(all(unix, feature = "manifests"))]
    pub(super) fn text(&self) -> &str {
        self.layered.text()
    }

    /// A problem with the value at a path, with its position ([`Layered::problem_at`]).
    #[cfg(all(unix, feature = "manifests"))]
    pub(super) fn problem_at(
        &self,
        path: &[String],
        problem: toolcrib_manifest::Diagnostic,
    ) -> LayerProblem {
        self.layered.problem_at(path, problem)
    }

    /// The environment variables that hold a secret: those of `secrets`, and the server's token. A
    /// server removes them from its environment after reading them
    /// (`toolcrib_sandbox::take_variables`).
    pub fn secret_variables(&self) -> Vec<String> {
        let named = self.config().secrets.values().filter_map(super::SecretSource::variable);
        named.chain(self.token_variables.iter().map(String::as_str)).map(str::to_owned).collect()
    }

    /// The whole config as JSON. Tokens, and texts that `mask` covers ([`Config::mask`]), are
    /// hidden.
    pub fn shown(&self, mask: &Mask) -> Value {
        // Every key is a text, and every value has a JSON form.
        mask.value(serde_json::to_value(self.config()).unwrap_or_default())
    }

    /// Every value of [`shown`](Self::shown) by its key, sorted; a list is one value.
    pub fn effective(&self, mask: &Mask) -> Vec<EffectiveValue> {
        let mut values = Vec::new();
        self.collect(&mut Vec::new(), self.shown(mask), &mut values);
        values.sort_by(|one, other| one.path.cmp(&other.path));
        values
    }

    fn collect(&self, path: &mut Vec<String>, value: Value, values: &mut Vec<EffectiveValue>) {
        match value {
            Value::Object(entries) if !entries.is_empty() => {
                for (key, value) in entries {
                    path.push(key);
                    self.collect(path, value, values);
                    path.pop();
                }
            }
            value => {
                let origin = self.origin(path);
                values.push(EffectiveValue { origin, path: path.clone(), value });
            }
        }
    }
}
