//! Settings of `execute_python`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_builtins::code::{ModuleName, PythonSettings, Strictness};
use toolcrib_tool::units::TimeLimit;

use super::builtins::without_limit;

/// How `execute_python` runs code.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CodeExecution {
    /// The level of calls that name none.
    pub default_strictness: Strictness,
    /// Whether calls may ask for `lenient`, with which code may write in the workspace and use the
    /// network. Where it is the default they may anyway.
    pub allow_lenient: bool,
    /// How long code may run.
    pub timeouts: Timeouts,
    /// What code may import beside the modules of its level.
    pub extra_allowed_modules: ExtraModules,
}

/// How long code of each level may run; `none` for no limit but that of every call.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Of `lenient` code.
    pub lenient: TimeLimit,
    /// Of `standard` code.
    pub standard: TimeLimit,
    /// Of `strict` code.
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

/// Modules that are installed with the server's Python. What is part of them is allowed, too.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExtraModules {
    /// For `standard` code.
    pub standard: Vec<ModuleName>,
    /// For `strict` code.
    pub strict: Vec<ModuleName>,
}

impl CodeExecution {
    /// The same, for the tool.
    pub(super) fn settings(&self) -> PythonSettings {
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
