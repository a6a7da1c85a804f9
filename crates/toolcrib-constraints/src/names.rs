//! The names that the rules of a tool can use.

use std::collections::{BTreeMap, BTreeSet};

/// The type of an argument, as far as rules need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// True or false.
    Boolean,
    /// Something else.
    Other,
    /// The schema has no type.
    #[default]
    Unknown,
}

/// The arguments and context values of a tool.
#[derive(Debug, Clone, Default)]
pub struct Names {
    arguments: BTreeMap<String, (Kind, bool)>,
    context: BTreeSet<String>,
}

impl Names {
    /// No names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an argument, `args.name`; `present` means that every call has it.
    #[must_use]
    pub fn argument(mut self, name: impl Into<String>, kind: Kind, present: bool) -> Self {
        self.arguments.insert(name.into(), (kind, present));
        self
    }

    /// Adds a context value, `ctx.name`.
    #[must_use]
    pub fn context(mut self, name: impl Into<String>) -> Self {
        self.context.insert(name.into());
        self
    }

    pub(crate) fn kind(&self, argument: &str) -> Option<Kind> {
        self.arguments.get(argument).map(|(kind, _)| *kind)
    }

    /// Whether this argument exists and is optional.
    pub(crate) fn may_be_absent(&self, argument: &str) -> bool {
        self.arguments.get(argument).is_some_and(|(_, present)| !present)
    }

    pub(crate) fn has_context(&self, name: &str) -> bool {
        self.context.contains(name)
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.arguments.keys().map(String::as_str)
    }

    pub(crate) fn contexts(&self) -> impl Iterator<Item = &str> {
        self.context.iter().map(String::as_str)
    }
}
