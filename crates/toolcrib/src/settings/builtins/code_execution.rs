//! Settings of `execute_python`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_builtins::code::{ModuleName, PythonSettings, Strictness};
use toolcrib_tool::units::TimeLimit;

use super::without_limit;

/// Settings of the code that `execute_python` runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CodeExecution {
    /// The level of calls that do not choose one.
    pub default_strictness: Strictness,
    /// Whether calls may ask for `lenient`, under which code may write in the workspace and use the
    /// network. If it is the default level, they may anyway.
    pub allow_lenient: bool,
    /// Time limits of code.
    pub timeouts: Timeouts,
    /// Modules that code may import in addition to those of its level.
    pub extra_allowed_modules: ExtraModules,
}

/// Time limits of each level; `none` for no limit except that of every call.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Limit of `lenient` code.
    pub lenient: TimeLimit,
    /// Limit of `standard` code.
    pub standard: TimeLimit,
    /// Limit of `strict` code.
    pub strict: TimeLimit,
}

impl Default for Timeouts {
    fn default() -> Self {
        let of = |level: Strictness| TimeLimit(Some(level.default_timeout()));
        Self {
            lenient: of(Strictness::Lenient),
            standard: of(Strictness::Standard),
            strict: of(Strictness::Strict),
        }
    }
}

/// Modules that are installed with the server's Python. Their submodules are allowed too.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExtraModules {
    /// For `standard` code.
    pub standard: Vec<ModuleName>,
    /// For `strict` code.
    pub strict: Vec<ModuleName>,
}

impl CodeExecution {
    /// Converts the settings for the tool.
    pub(in crate::settings) fn settings(&self) -> PythonSettings {
        let Self { default_strictness, allow_lenient, timeouts, extra_allowed_modules } = self;
        let mut settings = PythonSettings::default()
            .with_default_strictness(*default_strictness)
            .with_allow_lenient(*allow_lenient)
            .with_timeout(Strictness::Lenient, without_limit(timeouts.lenient))
            .with_timeout(Strictness::Standard, without_limit(timeouts.standard))
            .with_timeout(Strictness::Strict, without_limit(timeouts.strict));
        let extra = extra_allowed_modules;
        settings.register_extra_modules(Strictness::Standard, extra.standard.iter().cloned());
        settings.register_extra_modules(Strictness::Strict, extra.strict.iter().cloned());
        settings
    }
}
