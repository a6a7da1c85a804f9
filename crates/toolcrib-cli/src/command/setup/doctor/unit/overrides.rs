//! Settings of the server that a unit changes, in variables or with options.

use std::ffi::OsString;

use toolcrib::http::Listen;
use toolcrib::settings::{Config, ConfigLayers, SandboxRequire};

use super::{Report, Shown};
use crate::command::setup::doctor::findings::FindingLevel;

/// A setting of the server, as a unit gives it.
#[derive(Debug)]
pub(super) enum Override<'a> {
    /// A variable and its value.
    Variable(&'a str, &'a str),
    /// `--set KEY=VALUE`
    Set(&'a str, &'a str),
}

impl Override<'_> {
    /// The config with this setting alone; none if nothing starts with it.
    pub(super) fn config(&self) -> Option<Config> {
        let layers = ConfigLayers::new();
        let layers = match *self {
            Self::Variable(name, value) => {
                layers.variables([(OsString::from(name), OsString::from(value))])
            }
            Self::Set(key, value) => layers.set("--set", key, value),
        };
        layers.load().ok().map(toolcrib::settings::LoadedConfig::into_config)
    }

    /// The folder that it makes the workspace, if it does.
    pub(super) fn workspace(&self) -> Option<String> {
        let root = self.config()?.workspace.root;
        let is_own = root != Config::default().workspace.root && root.is_absolute();
        is_own.then(|| root.to_string_lossy().into_owned())
    }

    /// Whether it is the token by its name, whatever its value.
    fn is_token(&self) -> bool {
        match self {
            Self::Variable(name, _) => {
                *name == "TOOLCRIB_TOKEN" || name.eq_ignore_ascii_case("TOOLCRIB__SERVER__TOKEN")
            }
            Self::Set(key, _) => *key == "server.token",
        }
    }

    /// Reports what the setting takes away. `shown` does not contain its value.
    pub(super) fn check(&self, shown: &Shown<'_>, report: &mut Report<'_>) {
        let config = self.config();
        if self.is_token() || config.as_ref().is_some_and(|config| config.server.token.is_some()) {
            shown_token(shown, report);
        }
        let Some(config) = config else { return };
        if config.server.no_auth {
            without_token(shown, report);
        }
        listening(&config.server.listen, shown, report);
        if config.sandbox.require == SandboxRequire::BestEffort {
            let says = "programs start also where the kernel cannot confine them completely: promises 4, 9 and 10 hold \
                        in part";
            report.add(FindingLevel::Warning, shown, says, "remove it");
        }
    }
}

/// Everybody may read what a unit says.
pub(super) fn shown_token(shown: &Shown<'_>, report: &mut Report<'_>) {
    let says = "every user of the machine can read the token with `systemctl show`: promise 9 does not hold";
    let help =
        "put the hash of a token into the config (`toolcrib token NAME`), or use LoadCredential";
    report.add(FindingLevel::Failure, shown, says, help);
}

pub(super) fn without_token(shown: &Shown<'_>, report: &mut Report<'_>) {
    let says = "no token is required: promise 7 holds in part";
    report.add(FindingLevel::Warning, shown, says, "remove it");
}

pub(super) fn listening(listen: &Listen, shown: &Shown<'_>, report: &mut Report<'_>) {
    if !listen.is_local() {
        let says = "other machines can reach the server, which has no TLS: promise 7 holds in part";
        let help = "listen on 127.0.0.1 behind a proxy with TLS";
        report.add(FindingLevel::Warning, shown, says, help);
    }
}
