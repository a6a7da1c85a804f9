//! The operator's defaults for all confined programs.

use crate::{Confinement, Limits, Profile, Require};

/// The operator's defaults for all confined programs; see [`Confinement::defaults`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfinementDefaults {
    /// What to do if the kernel cannot enforce a profile. Default: [`Require::Required`].
    pub require: Require,
    /// Bytes of memory of programs under `workspace` and `workspace+net` ([`Limits::memory`]).
    /// Default: 2 GiB, the limit of these profiles.
    pub memory: Option<u64>,
}

impl Default for ConfinementDefaults {
    fn default() -> Self {
        Self { require: Require::Required, memory: Limits::of(Profile::Workspace).memory }
    }
}

impl ConfinementDefaults {
    /// Sets what to do if the kernel cannot enforce a profile.
    #[must_use]
    pub const fn require(mut self, require: Require) -> Self {
        self.require = require;
        self
    }

    /// Sets the bytes of memory of programs under `workspace` and `workspace+net`.
    #[must_use]
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }
}

impl Confinement {
    /// Applies the operator's defaults for confined programs. `pure` stays
    /// [required](Require::Required) and keeps its own limits.
    #[must_use]
    pub const fn defaults(mut self, defaults: ConfinementDefaults) -> Self {
        if matches!(self.profile, Profile::Workspace | Profile::WorkspaceNet) {
            self.require = defaults.require;
            self.limits.memory = defaults.memory;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operators_trust_reaches_what_works_in_the_workspace_and_not_what_computes() {
        let defaults = ConfinementDefaults::default().require(Require::BestEffort).memory(5);
        for profile in Profile::ALL {
            let confinement = Confinement::new(profile).defaults(defaults);
            let works = matches!(profile, Profile::Workspace | Profile::WorkspaceNet);
            assert_eq!(confinement.require == Require::BestEffort, works, "{profile}");
            assert_eq!(confinement.limits.memory == Some(5), works, "{profile}");
            let plain = Confinement::new(profile);
            assert_eq!(plain.clone().defaults(ConfinementDefaults::default()), plain);
        }
    }
}
