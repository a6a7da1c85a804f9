//! The stored form of suspensions.

use serde::{Deserialize, Serialize};

use super::{Caller, Suspension, SuspensionId, Waiting};
use crate::approval::ShownCall;
use crate::identity::fingerprint::Fingerprint;
use crate::storage::clock::Timestamp;
use crate::suspension::parents::Within;

/// The current version of the stored form. Version 1 had no number.
const FORM: u32 = 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredForm {
    #[serde(default)]
    form: Option<u32>,
    id: SuspensionId,
    call_id: String,
    tool: String,
    arguments: String,
    waiting: Waiting,
    definition_hash: Fingerprint,
    argument_hash: Fingerprint,
    identity: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    caller: Option<Caller>,
    #[serde(default)]
    shown: ShownCall,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<Within>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_changed: bool,
    created_at: Timestamp,
    expires_at: Timestamp,
}

impl From<Suspension> for StoredForm {
    fn from(suspension: Suspension) -> Self {
        let Suspension { id, call_id, tool, arguments, waiting, .. } = suspension;
        let Suspension { definition_hash, argument_hash, identity, caller, .. } = suspension;
        let Suspension { shown, session, within, is_changed, created_at, expires_at, .. } =
            suspension;
        Self {
            form: Some(FORM),
            id,
            call_id,
            tool,
            arguments,
            waiting,
            definition_hash,
            argument_hash,
            identity,
            caller: Some(caller),
            shown,
            session,
            within,
            is_changed,
            created_at,
            expires_at,
        }
    }
}

impl TryFrom<StoredForm> for Suspension {
    type Error = &'static str;

    fn try_from(stored: StoredForm) -> Result<Self, Self::Error> {
        let (Some(FORM), Some(caller)) = (stored.form, stored.caller) else {
            return Err("the call was suspended by another version of toolcrib, whose records do \
                        not bind an approval to the injected values: make the call again");
        };
        Ok(Self {
            id: stored.id,
            call_id: stored.call_id,
            tool: stored.tool,
            arguments: stored.arguments,
            waiting: stored.waiting,
            definition_hash: stored.definition_hash,
            argument_hash: stored.argument_hash,
            identity: stored.identity,
            caller,
            shown: stored.shown,
            session: stored.session,
            within: stored.within,
            is_changed: stored.is_changed,
            created_at: stored.created_at,
            expires_at: stored.expires_at,
        })
    }
}
