//! Checks before a start whether this machine can start a confined program.

use std::borrow::Cow;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::has_helper;
use crate::jail::files::grants::grants;
use crate::jail::files::mounts;
use crate::jail::files::withheld::{NotWithheld, Withheld};
use crate::jail::helper::plan::Facility;
use crate::process::{absolute, probe};
use crate::{Confinement, Profile, server_path};

/// How long a helper may take to answer. A server checks its tools before it serves anybody.
const PROBE_LIMIT: Duration = Duration::from_millis(500);

/// After a helper that did not answer in time, how long no other is asked.
const PROBE_INTERVAL: Duration = Duration::from_secs(30);

/// How often missing files of the control plane are looked for again where they come and go.
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
    let mut confinement = Cow::Borrowed(confinement);
    for _ in 1..MOST_LOOKS {
        match mounts(&confinement) {
            // A place of the control plane has gone since it was looked for, or is back.
            Err(NotWithheld::Missing(_)) if confinement.taken.is_some() => {
                confinement.to_mut().leave_out_missing();
            }
            found => {
                return found.map(|mounts| !mounts.is_empty()).map_err(NotWithheld::into_reason);
            }
        }
    }
    mounts(&confinement).map(|mounts| !mounts.is_empty()).map_err(NotWithheld::into_reason)
}

/// What is known of the helper.
enum Answer {
    Unknown,
    /// It did not answer in time, at this moment.
    Late(Instant),
    Known(Result<(), String>),
}

/// Whether a helper can make a mount namespace and mount something there. The answer is that of the
/// machine, so one helper is asked, once. If it does not answer in time, programs are not objected to:
/// whether one starts is found out when it does.
fn can_withhold() -> Result<(), String> {
    static ANSWER: Mutex<Answer> = Mutex::new(Answer::Unknown);
    let mut answer = ANSWER.lock().unwrap_or_else(PoisonError::into_inner);
    match &*answer {
        Answer::Known(known) => return known.clone(),
        Answer::Late(at) if at.elapsed() < PROBE_INTERVAL => return Ok(()),
        Answer::Late(_) | Answer::Unknown => {}
    }
    match probe(PROBE_LIMIT) {
        Ok(known) => {
            *answer = Answer::Known(known.clone());
            known
        }
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            *answer = Answer::Late(Instant::now());
            Ok(())
        }
        // An error is about this moment, for example a lack of descriptors: the next caller asks again.
        Err(error) => Err(format!("no helper can be started now: {error}")),
    }
}
