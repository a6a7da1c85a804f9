//! Settings of secrets: the source of each.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_core::masking::Mask;
use toolcrib_runners::{SecretSources, Secrets};

use super::Config;
use super::setup::{SetupError, values};

/// The source of a secret: exactly one of `env`, `file` and `command`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "SecretSourceConfig", into = "SecretSourceConfig")]
#[schemars(with = "SecretSourceConfig")]
pub struct SecretSource(toolcrib_runners::SecretSource);

/// The source of a secret, as written in a config file.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SecretSource", extend("oneOf" = [
    {"required": ["env"]}, {"required": ["file"]}, {"required": ["command"]},
], "x-scalar" = "the config names the place of a secret, not the secret: write `{env: VARIABLE}` or `{file: PATH}`"))]
struct SecretSourceConfig {
    /// A variable of the server's environment. Tools can get it only as this secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    env: Option<String>,
    /// A file; relative to the config file. A final line end is not part of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PathBuf")]
    file: Option<PathBuf>,
    /// A program with its arguments, run once at the start, in the config file's folder. Its output
    /// is the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>", length(min = 1))]
    command: Option<Vec<String>>,
    /// Variables of the server's environment for the command, in addition to PATH, LANG, TZ and
    /// HOME.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pass_env: Vec<String>,
}

impl TryFrom<SecretSourceConfig> for SecretSource {
    type Error = &'static str;

    fn try_from(written: SecretSourceConfig) -> Result<Self, Self::Error> {
        use toolcrib_runners::SecretSource as Source;

        if written.command.is_none() && !written.pass_env.is_empty() {
            return Err("`pass_env` of a secret is for those with a `command`");
        }
        match (written.env, written.file, written.command) {
            (Some(name), None, None) => Ok(Self(Source::Env(name))),
            (None, Some(path), None) => Ok(Self(Source::File(path))),
            (None, None, Some(argv)) => {
                let pass_env = written.pass_env;
                Ok(Self(Source::Command { argv, pass_env, cwd: PathBuf::from(".") }))
            }
            _ => Err("a secret has one of the keys `env`, `file` and `command`"),
        }
    }
}

/// The working directory of a command is not written: it is the config file's folder.
impl From<SecretSource> for SecretSourceConfig {
    fn from(source: SecretSource) -> Self {
        use toolcrib_runners::SecretSource as Source;

        match source.0 {
            Source::Env(name) => Self { env: Some(name), ..Self::default() },
            Source::File(path) => Self { file: Some(path), ..Self::default() },
            Source::Command { argv, pass_env, .. } => {
                Self { command: Some(argv), pass_env, ..Self::default() }
            }
            _ => Self::default(),
        }
    }
}

impl SecretSource {
    /// The file, if the secret is read from one.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        match &self.0 {
            toolcrib_runners::SecretSource::File(path) => Some(path),
            _ => None,
        }
    }

    /// The program with its arguments and its working directory, if the secret is read from one.
    pub(crate) fn command(&self) -> Option<(&[String], &Path)> {
        match &self.0 {
            toolcrib_runners::SecretSource::Command { argv, cwd, .. } => Some((argv, cwd)),
            _ => None,
        }
    }

    /// The variable, if the secret is read from one.
    pub(super) fn variable(&self) -> Option<&str> {
        match &self.0 {
            toolcrib_runners::SecretSource::Env(name) => Some(name),
            _ => None,
        }
    }

    /// Its path, which may be relative to the config file's folder: the file, or the working
    /// directory of the command.
    pub(super) fn path_mut(&mut self) -> Option<&mut PathBuf> {
        use toolcrib_runners::SecretSource as Source;

        match &mut self.0 {
            Source::File(path) => Some(path),
            Source::Command { cwd, .. } => Some(cwd),
            _ => None,
        }
    }
}

impl Config {
    /// The sources of secrets, in order: [`secrets`](Self::secrets),
    /// [`secret_folders`](Self::secret_folders), and `$CREDENTIALS_DIRECTORY` if it is set.
    pub fn secret_sources(&self) -> SecretSources {
        let named = self.secrets.iter().fold(SecretSources::new(), |sources, (name, source)| {
            sources.named(name.as_str(), source.0.clone())
        });
        let systemd = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        let folders = self.secret_folders.iter().cloned().chain(systemd);
        folders.fold(named, SecretSources::folder)
    }

    /// The mask of all secrets except those from commands, which are not run.
    pub fn mask(&self) -> Result<Mask, SetupError> {
        let secrets = Secrets::look(self.secret_sources());
        Mask::new(values(&secrets.values())).map_err(SetupError::Secrets)
    }

    /// Reads the secrets, commands included. Blocks; see [`Secrets::read`].
    pub fn read_secrets(&self) -> Secrets {
        Secrets::read(self.secret_sources())
    }
}
