//! Whether this machine can start what a confinement describes, asked before anything is started.

use std::sync::{Mutex, PoisonError};

use super::has_helper;
use crate::jail::files::grants::grants;
use crate::jail::files::mounts;
use crate::jail::files::withheld::{NotWithheld, Withheld};
use crate::jail::helper::plan::Facility;
use crate::process::{absolute, probe};
use crate::{Confinement, Profile, server_path};

/// See [`Confinement::check`].
pub(crate) fn check(confinement: &Confinement) -> Result<(), String> {
    if confinement.profile == Profile::Trusted {
        return Ok(());
    }
    if let Some(objection) = &confinement.objection {
        return Err(objection.clone());
    }
    if !has_helper() {
        return Err("needs the helper `toolcrib-jail` beside the program that offers it".to_owned());
    }
    if !needs_mounts(confinement)? {
        return Ok(());
    }
    if confinement.without.contains(&Facility::Namespaces) {
        return Err(mounts::without_namespaces());
    }
    can_withhold()
}

/// Whether something has to be mounted to keep withheld places from the program.
fn needs_mounts(confinement: &Confinement) -> Result<bool, String> {
    let grants = grants(confinement, None, &server_path(), None);
    let mounts = |confinement: &Confinement| {
        let (hidden, read_only) = (absolute(&confinement.hidden), absolute(&confinement.read_only));
        Withheld { hidden: &hidden, read_only: &read_only }.mounts(&grants)
    };
    let mut found = mounts(confinement);
    if let Err(NotWithheld::Missing(_)) = found {
        // A place has gone since it was looked for.
        let mut confinement = confinement.clone();
        confinement.leave_out_missing();
        found = mounts(&confinement);
    }
    match found {
        Ok(mounts) => Ok(!mounts.is_empty()),
        // It comes and goes: whether the program starts is found out when it does.
        Err(NotWithheld::Missing(_)) => Ok(true),
        Err(error) => Err(error.into_reason()),
    }
}

/// Whether a helper can make a mount namespace and mount something there. The answer is that of the
/// machine, so one helper is asked, once.
fn can_withhold() -> Result<(), String> {
    static ANSWER: Mutex<Option<Result<(), String>>> = Mutex::new(None);
    let mut answer = ANSWER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*answer {
        return known.clone();
    }
    // An error is about this moment, for example a lack of descriptors: the next caller asks again.
    let asked = probe().map_err(|error| format!("no helper can be started now: {error}"))?;
    answer.insert(asked).clone()
}
