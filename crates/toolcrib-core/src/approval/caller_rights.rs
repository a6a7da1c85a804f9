//! What the client that made a waiting call may do at the time of the decision.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use toolcrib_tool::Arguments;

use crate::TurnOptions;
use crate::approval::policy::Verdict;
use crate::call::turn::TurnState;
use crate::suspension::{Caller, Suspension};

/// Reports what the client that made a suspended call may do now.
///
/// A host that manages clients implements this on top of its current table of clients and passes it
/// to [`Executor::add_caller_rights`](crate::Executor::add_caller_rights). A call can wait for
/// days, and its client can lose its token or its rights in the meantime.
pub trait CallerRights: Send + Sync {
    /// What this caller may do at this moment.
    fn caller_status(&self, caller: &Caller) -> CallerStatus;
}

/// What a client may do now.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallerStatus {
    /// The host does not manage this caller: the rights that were stored with the call apply.
    Unmanaged,
    /// The options that the client's turns are opened with now.
    Current(Box<TurnOptions>),
    /// The client may no longer make calls.
    Revoked {
        /// Why, in a few words.
        reason: String,
    },
}

/// All tables of clients of one executor. A table goes away with its server.
#[derive(Default)]
pub(crate) struct CallerTables(RwLock<Vec<Weak<dyn CallerRights>>>);

impl CallerTables {
    pub(crate) fn add(&self, rights: Weak<dyn CallerRights>) {
        let mut tables = self.0.write().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|table| table.strong_count() > 0);
        tables.push(rights);
    }

    /// A client that any table knows is current. Otherwise it is revoked if a table says so.
    fn caller_status(&self, caller: &Caller) -> CallerStatus {
        let tables: Vec<_> = {
            let tables = self.0.read().unwrap_or_else(PoisonError::into_inner);
            tables.iter().filter_map(Weak::upgrade).collect()
        };
        let mut found = CallerStatus::Unmanaged;
        for table in tables {
            match table.caller_status(caller) {
                current @ CallerStatus::Current(_) => return current,
                revoked @ CallerStatus::Revoked { .. } => found = revoked,
                CallerStatus::Unmanaged => {}
            }
        }
        found
    }
}

impl TurnState {
    /// Whether this process knows the current rights of a suspended call's caller: of the host
    /// itself, and of clients that it manages.
    pub(crate) fn knows_caller(&self, suspension: &Suspension) -> bool {
        let caller = suspension.caller();
        caller.client_name().is_none()
            || matches!(self.shared.callers.caller_status(caller), CallerStatus::Current(_))
    }

    /// The options that the caller of a suspended call has now, if the host manages it. The error
    /// says why the client may no longer make the call.
    pub(crate) fn caller_now(
        &self,
        suspension: &Suspension,
    ) -> Result<Option<Box<TurnOptions>>, String> {
        let caller = suspension.caller();
        let refused =
            |why: &str| Err(format!("the client that made this call may no longer make it: {why}"));
        let options = match self.shared.callers.caller_status(caller) {
            CallerStatus::Unmanaged => return Ok(None),
            CallerStatus::Revoked { reason } => return refused(&reason),
            CallerStatus::Current(options) => options,
        };
        // The values decide for whom the call runs and what is injected into it.
        let Ok(toolset) = options.toolset_of(caller) else {
            return refused("the toolset kept with it cannot be read");
        };
        if options.values_within(toolset.as_ref()) != caller.values() {
            return refused("its context values have changed");
        }
        let snapshot = self.shared.registry.snapshot();
        // If the tool is gone, the call's answer reports that.
        let Some(slot) = snapshot.slot(suspension.tool()) else { return Ok(Some(options)) };
        let in_toolset =
            |toolset: &crate::Toolset| toolset.view(&snapshot).slot(suspension.tool()).is_some();
        if !toolset.as_ref().is_none_or(in_toolset) {
            return refused("the tool is not in its toolset");
        }
        let arguments = Arguments::from_validated(suspension.arguments().to_owned());
        match options.scope.ruled(&slot.entry, &arguments) {
            Some(Verdict::Deny { by, message }) => {
                refused(&format!("a rule for this client denies it ({by}): {message}"))
            }
            _ => Ok(Some(options)),
        }
    }
}

impl fmt::Debug for CallerTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerTables").finish_non_exhaustive()
    }
}

impl crate::Executor {
    /// Adds a table of clients. Whenever a suspended call is decided on, the current rights of its
    /// client determine whether it may still run; if not, it is `denied`.
    ///
    /// The table is held weakly: it is used for as long as the host keeps `rights`. Without a
    /// table, the rights that were stored with the call apply.
    pub fn add_caller_rights(&self, rights: &Arc<impl CallerRights + 'static>) {
        let rights: Weak<dyn CallerRights> = Arc::<_>::downgrade(rights) as _;
        self.shared.callers.add(rights);
    }
}
