//! Checks before a start whether this machine can start a confined program.

use std::borrow::Cow;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::has_helper;
use crate::jail::files::grants::grants;
use crate::jail::files::mounts;
use crate::jail::files::withheld::{WithheldPlaces, WithholdError};
use crate::jail::helper::plan::KernelFeature;
use crate::process::{absolute, probe, scratch_parents};
use crate::{Confinement, Profile, server_path};

/// The time limit for a helper's answer. A server checks its tools before it serves requests.
const PROBE_LIMIT: Duration = Duration::from_millis(500);

/// After a helper has not answered in time, the time until another one is asked.
const PROBE_INTERVAL: Duration = Duration::from_secs(30);

/// The maximum number of lookups of missing control plane files that come and go.
const MOST_LOOKS: u32 = 100;

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
    if confinement.without.contains(&KernelFeature::Namespaces) {
        return Err(mounts::without_namespaces());
    }
    can_withhold()
}

/// Whether withheld places require mounts.
fn needs_mounts(confinement: &Confinement) -> Result<bool, String> {
    let grants = grants(confinement, None, &server_path(), None);
    let parents = scratch_parents::hidden_from(confinement)?;
    let own: Vec<_> = confinement.own_folder.iter().cloned().collect();
    let mounts = |confinement: &Confinement| {
        let (mut hidden, read_only) =
            (absolute(&confinement.hidden), absolute(&confinement.read_only));
        hidden.extend(parents.iter().cloned());
        let own = absolute(&own);
        WithheldPlaces { hidden: &hidden, read_only: &read_only, own: &own }.mounts(&grants)
    };
    let mut confinement = Cow::Borrowed(confinement);
    for _ in 1..MOST_LOOKS {
        match mounts(&confinement) {
            // A place of the control plane has disappeared since the last lookup, or is back.
            Err(WithholdError::Missing(_)) if confinement.taken.is_some() => {
                confinement.to_mut().leave_out_missing();
            }
            found => {
                return found.map(|mounts| !mounts.is_empty()).map_err(WithholdError::into_reason);
            }
        }
    }
    mounts(&confinement).map(|mounts| !mounts.is_empty()).map_err(WithholdError::into_reason)
}

/// The result of asking the helper.
enum HelperProbe {
    Unknown,
    /// It did not answer in time; this is when.
    Late(Instant),
    Known(Result<(), String>),
}

/// Whether a helper can create a mount namespace and mount something there. The answer is the same for the whole
/// machine, so one helper is asked once. If it does not answer in time, programs are not refused: a start will show
/// whether it works.
fn can_withhold() -> Result<(), String> {
    static ANSWER: Mutex<HelperProbe> = Mutex::new(HelperProbe::Unknown);
    let mut answer = ANSWER.lock().unwrap_or_else(PoisonError::into_inner);
    match &*answer {
        HelperProbe::Known(known) => return known.clone(),
        HelperProbe::Late(at) if at.elapsed() < PROBE_INTERVAL => return Ok(()),
        HelperProbe::Late(_) | HelperProbe::Unknown => {}
    }
    match probe(PROBE_LIMIT) {
        Ok(known) => {
            *answer = HelperProbe::Known(known.clone());
            known
        }
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            *answer = HelperProbe::Late(Instant::now());
            Ok(())
        }
        // An error may be temporary, for example a lack of descriptors: the next caller asks again.
        Err(error) => Err(format!("no helper can be started now: {error}")),
    }
}
