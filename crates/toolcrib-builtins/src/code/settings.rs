//! The operator's settings for `execute_python`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use toolcrib_sandbox::ConfinementDefaults;

use super::{ModuleName, Strictness};

/// How `execute_python` runs code. Lend it to the calls as a service; without it, the defaults apply.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_builtins::code::{PythonSettings, Strictness};
///
/// let mut settings = PythonSettings::default().with_default_strictness(Strictness::Strict);
/// settings.register_extra_modules(Strictness::Standard, ["numpy".parse()?]);
/// assert_eq!(settings.timeout(Strictness::Strict), Duration::from_secs(5));
/// assert!(!settings.allows(Strictness::Lenient));
/// # Ok::<(), toolcrib_builtins::code::InvalidModule>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonSettings {
    default_strictness: Strictness,
    timeouts: BTreeMap<Strictness, Duration>,
    extra_modules: BTreeMap<Strictness, BTreeSet<ModuleName>>,
    allow_lenient: bool,
    confinement: ConfinementDefaults,
}

impl PythonSettings {
    /// Sets the operator's settings for all confined programs. They affect `lenient` code; the other levels always
    /// require an enforced profile and have their own limits.
    #[must_use]
    pub fn with_confinement(self, confinement: ConfinementDefaults) -> Self {
        Self { confinement, ..self }
    }

    /// The operator's settings for all confined programs.
    pub(crate) const fn confinement(&self) -> ConfinementDefaults {
        self.confinement
    }

    /// Sets the default level of calls. Default: [`Standard`](Strictness::Standard).
    #[must_use]
    pub fn with_default_strictness(self, default_strictness: Strictness) -> Self {
        Self { default_strictness, ..self }
    }

    /// Sets the time limit for code of a level. Default: [`default_timeout`](Strictness::default_timeout).
    #[must_use]
    pub fn with_timeout(mut self, level: Strictness, timeout: Duration) -> Self {
        self.timeouts.insert(level, timeout);
        self
    }

    /// Sets whether calls may ask for [`Lenient`](Strictness::Lenient), with which code can write in the workspace and
    /// use the network. Default: `false`. If `Lenient` is the default level, it is always allowed.
    #[must_use]
    pub fn with_allow_lenient(self, allow_lenient: bool) -> Self {
        Self { allow_lenient, ..self }
    }

    /// Lets code of a level import these modules and their submodules in addition to those of the level. The code gets
    /// the whole modules, including everything reachable through them; the jail is unchanged. Lenient code may import
    /// everything anyway.
    pub fn register_extra_modules(
        &mut self,
        level: Strictness,
        modules: impl IntoIterator<Item = ModuleName>,
    ) {
        self.extra_modules.entry(level).or_default().extend(modules);
    }

    /// The default level of calls.
    pub fn default_strictness(&self) -> Strictness {
        self.default_strictness
    }

    /// The time limit for code of a level.
    pub fn timeout(&self, level: Strictness) -> Duration {
        self.timeouts.get(&level).copied().unwrap_or_else(|| level.default_timeout())
    }

    /// Whether calls may ask for a level.
    pub fn allows(&self, level: Strictness) -> bool {
        level != Strictness::Lenient || self.allow_lenient || self.default_strictness == level
    }

    /// The additional modules of a level.
    pub fn extra_modules(&self, level: Strictness) -> impl Iterator<Item = &str> {
        self.extra_modules.get(&level).into_iter().flatten().map(ModuleName::as_str)
    }
}
