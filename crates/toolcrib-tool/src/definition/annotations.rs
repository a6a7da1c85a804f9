//! A tool's claims about its effects: MCP's four hints, with MCP's defaults.

use serde::{Deserialize, Serialize};

/// Hints about the effects of a call.
///
/// The meanings and defaults are those of the Model Context Protocol's tool annotations: a tool without annotations is
/// assumed to write, possibly destructively, not idempotently, and to reach an open world.
///
/// ```
/// use toolcrib_tool::Annotations;
///
/// let unknown = Annotations::default();
/// assert!(!unknown.read_only && unknown.destructive && !unknown.idempotent && unknown.open_world);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "four independent hints, named by the protocol")]
pub struct Annotations {
    /// The call changes nothing. Default `false`.
    pub read_only: bool,
    /// The call may destroy or overwrite something. Meaningless if `read_only`. Default `true`.
    pub destructive: bool,
    /// Calling twice with the same arguments has no further effect. Default `false`.
    pub idempotent: bool,
    /// The call reaches things outside the host's control (a network, people). Default `true`.
    pub open_world: bool,
}

impl Default for Annotations {
    fn default() -> Self {
        Self { read_only: false, destructive: true, idempotent: false, open_world: true }
    }
}

impl Annotations {
    /// Whether a call may destroy something: `destructive` and not `read_only`.
    pub fn may_destroy(&self) -> bool {
        self.destructive && !self.read_only
    }
}

/// Some of the four hints: those that somebody says in place of what is known.
///
/// ```
/// use toolcrib_tool::{AnnotationOverrides, Annotations};
///
/// let reads = AnnotationOverrides { read_only: Some(true), ..AnnotationOverrides::default() };
/// let annotations = reads.over(Annotations::default());
/// assert!(annotations.read_only && annotations.open_world);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub struct AnnotationOverrides {
    /// Replaces [`Annotations::read_only`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Replaces [`Annotations::destructive`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Replaces [`Annotations::idempotent`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Replaces [`Annotations::open_world`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl AnnotationOverrides {
    /// Whether it replaces nothing.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// The annotations with these hints in place of their own.
    #[must_use]
    pub fn over(self, annotations: Annotations) -> Annotations {
        Annotations {
            read_only: self.read_only.unwrap_or(annotations.read_only),
            destructive: self.destructive.unwrap_or(annotations.destructive),
            idempotent: self.idempotent.unwrap_or(annotations.idempotent),
            open_world: self.open_world.unwrap_or(annotations.open_world),
        }
    }
}
