//! Finds out what this machine cannot enforce, by starting a program that does nothing.

use std::sync::OnceLock;
use std::time::Duration;

use crate::{Command, Confinement, Profile, Require, run_blocking};

/// The time limit for a program that does nothing, on a busy machine.
const TRIAL: Duration = Duration::from_secs(10);

static FOUND: OnceLock<Vec<String>> = OnceLock::new();

/// Finds out what this machine cannot enforce of the profiles `pure`, `workspace` and
/// `workspace+net`, by starting `true` under each of them. Returns one sentence per missing feature
/// with the affected profiles; empty if everything is enforced.
///
/// The first call blocks for some milliseconds, or for 30 seconds if the helper does not answer. Later calls return the
/// first result.
pub fn probe() -> &'static [String] {
    FOUND.get_or_init(|| {
        let mut found: Vec<(String, Vec<&str>)> = Vec::new();
        for profile in [Profile::Pure, Profile::Workspace, Profile::WorkspaceNet] {
            for what in missing(profile) {
                match found.iter_mut().find(|(known, _)| *known == what) {
                    Some((_, profiles)) => profiles.push(profile.as_str()),
                    None => found.push((what, vec![profile.as_str()])),
                }
            }
        }
        let sentence = |(what, profiles): (String, Vec<&str>)| {
            format!("not enforced for {}: {what}", profiles.join(", "))
        };
        found.into_iter().map(sentence).collect()
    })
}

/// The result of [`probe`], if it was called; otherwise empty.
pub fn shortfalls() -> &'static [String] {
    FOUND.get().map_or(&[], Vec::as_slice)
}

fn missing(profile: Profile) -> Vec<String> {
    let confinement = Confinement::new(profile).require(Require::BestEffort);
    match run_blocking(Command::new("true").confine(confinement), TRIAL) {
        Ok(finished) => finished.enforced.missing,
        Err(error) => vec![format!("no program can be started: {error}")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_enforces_everything_falls_short_of_nothing() {
        assert_eq!(missing(Profile::Pure), probe());
        assert_eq!(shortfalls(), probe());
    }
}
