//! The variables that a unit sets.

use toolcrib::manifest::is_dangerous_env;

use super::file::{Setting, in_effect};
use super::overrides::Override;
use super::places::{Places, Writers};
use super::words::words;
use super::{Report, Shown};
use crate::command::setup::doctor::findings::FindingLevel;

/// Checks `Environment`, of which the last value of each variable applies.
pub(super) fn check(settings: &[Setting], places: &Places, report: &mut Report<'_>) {
    for (setting, variable) in variables(settings) {
        if let Some((name, value)) = variable.split_once('=') {
            let shown = Shown::hiding(setting, &format!("{name}=…"));
            assigned(name, value, &shown, places, report);
        }
    }
}

/// The variables in effect, each with its line.
pub(super) fn variables(settings: &[Setting]) -> Vec<(&Setting, String)> {
    let mut variables: Vec<(&Setting, String)> = Vec::new();
    for setting in in_effect(settings, "Environment") {
        for variable in words(&setting.value) {
            let name = variable.split('=').next();
            variables.retain(|(_, other)| other.split('=').next() != name);
            variables.push((setting, variable));
        }
    }
    variables
}

/// One variable that the server gets.
pub(super) fn assigned(
    name: &str,
    value: &str,
    shown: &Shown<'_>,
    places: &Places,
    report: &mut Report<'_>,
) {
    if name == "TOOLCRIB_TOKEN" || name.starts_with("TOOLCRIB__") {
        Override::Variable(name, value).check(shown, report);
    } else if is_dangerous_env(name) {
        let mut paths = value.split([':', ' ']);
        match paths.find_map(|path| places.writers(path)) {
            Some(Writers::Tools) => {
                let says = "tools or other programs can write files that decide what the server runs: promise 10 does not \
                            hold";
                report.add(FindingLevel::Failure, shown, says, "remove it, or name another folder");
            }
            Some(Writers::Service) => {
                let says = "trusted programs can write files that decide what the server runs: promise 10 holds in part";
                report.add(FindingLevel::Warning, shown, says, "remove it, or name another folder");
            }
            None if name.starts_with("LD_") => {
                let says = "the loader puts other code into the server, for which no promise holds";
                report.add(FindingLevel::Warning, shown, says, "remove it");
            }
            None => {}
        }
    }
}
