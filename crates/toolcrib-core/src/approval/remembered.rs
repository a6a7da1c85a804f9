//! Approvals that hold for a session.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use super::Remember;
use crate::identity::fingerprint::Fingerprint;

/// How many approvals are stored, over all sessions. The oldest are evicted first: the user is then
/// asked again.
const MAX_APPROVALS: usize = 10_000;

/// The approvals that apply for the rest of a session.
///
/// An approval applies to one session, one identity, one definition and one set of injected values.
/// A changed tool needs a new approval, and so does a call with, for example, another `project_id`.
/// Without a session nothing is remembered.
///
/// ```
/// use toolcrib_core::approval::{ApprovalKey, Remember, SessionApprovals};
/// use toolcrib_core::fingerprint::Fingerprint;
/// use toolcrib_tool::{Arguments, Layer, Source, ToolDefinition, ToolEntry};
///
/// let definition = ToolDefinition::builder("rm").description("Remove.").build()?;
/// let tool = Fingerprint::of_definition(&ToolEntry::client(definition, Source::new(Layer::Host, "doc")));
/// let arguments = |text: &str| Fingerprint::of_arguments(&Arguments::from_validated(text.into()));
///
/// let none = Fingerprint::of_json(&serde_json::json!({}));
/// let by = |identity| ApprovalKey { session: "s1", identity, definition: tool, injected: none, own: false };
///
/// let approvals = SessionApprovals::new();
/// approvals.remember(by("ada"), arguments(r#"{"path":"a"}"#), Remember::SameCall);
/// assert!(approvals.holds(by("ada"), || arguments(r#"{"path":"a"}"#)));
/// assert!(!approvals.holds(by("ada"), || arguments(r#"{"path":"b"}"#)));
/// assert!(!approvals.holds(by("bob"), || arguments(r#"{"path":"a"}"#)));
///
/// approvals.forget_session("s1");
/// assert!(!approvals.holds(by("ada"), || arguments(r#"{"path":"a"}"#)));
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
#[derive(Debug, Default)]
pub struct SessionApprovals(Mutex<ApprovalTable>);

#[derive(Debug, Default)]
struct ApprovalTable {
    sessions: HashMap<Box<str>, HashSet<RememberedApproval>>,
    /// All of them, oldest first.
    order: VecDeque<(Box<str>, RememberedApproval)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RememberedApproval {
    identity: Box<str>,
    definition: Fingerprint,
    injected: Fingerprint,
    own: bool,
    /// `None` means any arguments.
    arguments: Option<Fingerprint>,
}

/// Which calls an approval covers: by whom, of which definition, and with which context values.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalKey<'a> {
    /// The session.
    pub session: &'a str,
    /// On whose behalf the calls are made.
    pub identity: &'a str,
    /// The tool's fingerprint ([`Fingerprint::of_definition`]).
    pub definition: Fingerprint,
    /// The fingerprint of the injected values ([`Fingerprint::of_injected`]).
    pub injected: Fingerprint,
    /// Whether the caller itself approved, or its approver did. Such an approval applies only as
    /// long as the caller has the right to approve.
    pub own: bool,
}

impl ApprovalKey<'_> {
    fn entry(self, arguments: Option<Fingerprint>) -> RememberedApproval {
        let Self { session: _, identity, definition, injected, own } = self;
        RememberedApproval { identity: identity.into(), definition, injected, own, arguments }
    }
}

impl SessionApprovals {
    /// A store without approvals.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores an approval with this scope.
    pub fn remember(&self, key: ApprovalKey<'_>, arguments: Fingerprint, scope: Remember) {
        let arguments = match scope {
            Remember::Nothing => return,
            Remember::SameCall => Some(arguments),
            Remember::Tool => None,
        };
        let (session, entry) = (key.session, key.entry(arguments));
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.sessions.entry(session.into()).or_default().insert(entry.clone()) {
            kept.order.push_back((session.into(), entry));
        }
        while kept.order.len() > MAX_APPROVALS {
            kept.forget_oldest();
        }
    }

    /// Whether a call is approved already. The fingerprint of its arguments is computed only if
    /// there is something to compare it with.
    pub fn holds(&self, key: ApprovalKey<'_>, arguments: impl FnOnce() -> Fingerprint) -> bool {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(session) = kept.sessions.get(key.session) else { return false };
        session.contains(&key.entry(None)) || session.contains(&key.entry(Some(arguments())))
    }

    /// Removes the approvals of a session that has ended.
    pub fn forget_session(&self, session: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.sessions.remove(session).is_some() {
            kept.order.retain(|(of, _)| &**of != session);
        }
    }
}

impl ApprovalTable {
    fn forget_oldest(&mut self) {
        let Some((session, approved)) = self.order.pop_front() else { return };
        if let Some(of_session) = self.sessions.get_mut(&session) {
            of_session.remove(&approved);
            if of_session.is_empty() {
                self.sessions.remove(&session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_tool::Arguments;

    use super::*;

    fn fingerprint(n: usize) -> Fingerprint {
        Fingerprint::of_arguments(&Arguments::from_validated(n.to_string()))
    }

    fn of(session: &str, n: usize) -> ApprovalKey<'_> {
        let definition = fingerprint(n);
        ApprovalKey { session, identity: "", definition, injected: fingerprint(0), own: false }
    }

    #[test]
    fn a_tool_approved_as_a_whole_needs_no_look_at_arguments() {
        let approvals = SessionApprovals::new();
        approvals.remember(of("s", 1), fingerprint(9), Remember::Tool);
        let unread = || -> Fingerprint { panic!("nobody needs the arguments") };
        assert!(approvals.holds(of("s", 1), unread));
        assert!(!approvals.holds(of("other", 1), unread));
        assert!(!approvals.holds(of("s", 2), || fingerprint(9)));
    }

    #[test]
    fn an_approval_of_this_once_is_not_kept() {
        let approvals = SessionApprovals::new();
        approvals.remember(of("s", 1), fingerprint(9), Remember::Nothing);
        assert!(!approvals.holds(of("s", 1), || fingerprint(9)));
    }

    #[test]
    fn the_oldest_approvals_make_room() {
        let approvals = SessionApprovals::new();
        for n in 0..=MAX_APPROVALS {
            let session = if n == 0 { "first" } else { "then" };
            approvals.remember(of(session, n), fingerprint(n), Remember::Tool);
        }
        assert!(!approvals.holds(of("first", 0), || fingerprint(0)));
        assert!(approvals.holds(of("then", 1), || fingerprint(1)));
        let kept = approvals.0.lock().expect("nobody panicked");
        assert_eq!((kept.sessions.len(), kept.order.len()), (1, MAX_APPROVALS));
    }
}
