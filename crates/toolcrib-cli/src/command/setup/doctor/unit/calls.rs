//! What a `SystemCallFilter` leaves of the system calls that confine programs.

use super::file::{Place, Setting};
use crate::command::setup::doctor::findings::{FindingLevel, Findings};

/// Without one of these no program can be confined.
const NEEDED: [&str; 4] =
    ["seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"];
/// The group of them in newer versions of systemd; older ones do not know it.
const NEEDED_GROUP: &str = "@sandbox";
/// Groups with calls that starting a confined program takes.
const NEEDED_GROUPS: [&str; 3] = [NEEDED_GROUP, "@privileged", "@resources"];

/// The filters of a unit, applied one after another.
#[derive(Debug, Default)]
pub(super) struct CallFilter {
    /// Whether only what is listed is allowed: decided by the first line.
    lists_allowed: Option<bool>,
    allowed: Vec<String>,
    denied: Vec<(String, Place)>,
    last: Option<Setting>,
    answers_with_an_error: bool,
}

impl CallFilter {
    pub(super) fn apply(&mut self, setting: &Setting) {
        if setting.value.is_empty() {
            *self = Self { answers_with_an_error: self.answers_with_an_error, ..Self::default() };
            return;
        }
        self.last = Some(setting.clone());
        let (denies, names) = match setting.value.strip_prefix('~') {
            Some(names) => (true, names),
            None => (false, setting.value.as_str()),
        };
        self.lists_allowed.get_or_insert(!denies);
        // A name may have an error of its own, as in `bpf:EPERM`.
        for name in names.split_whitespace().map(|name| name.split(':').next().unwrap_or(name)) {
            self.allowed.retain(|own| own != name);
            self.denied.retain(|(own, _)| own != name);
            if denies {
                self.denied.push((name.to_owned(), setting.place.clone()));
            } else {
                self.allowed.push(name.to_owned());
            }
        }
    }

    pub(super) fn answers_with_an_error(&mut self, does: bool) {
        self.answers_with_an_error = does;
    }

    pub(super) fn check(&self, findings: &mut Findings) {
        let Some(last) = &self.last else { return };
        let mut fail = |place: &Place, says: String, help| {
            findings.trouble(FindingLevel::Failure, "unit", format!("{place}: {says}"), help);
        };
        for (name, place) in &self.denied {
            if NEEDED.contains(&name.as_str()) || NEEDED_GROUPS.contains(&name.as_str()) {
                let says =
                    format!("`SystemCallFilter` takes {name} away: no confined program starts");
                fail(place, says, "remove it from the line");
            }
        }
        let is_allowed = |name: &str| self.allowed.iter().any(|own| own == name);
        if self.lists_allowed == Some(true) && !is_allowed(NEEDED_GROUP) {
            let missing: Vec<_> = NEEDED.into_iter().filter(|name| !is_allowed(name)).collect();
            if !missing.is_empty() {
                let says = format!(
                    "`SystemCallFilter` does not list {}: no confined program starts (`@system-service` of systemd \
                     252 does not contain them)",
                    missing.join(", ")
                );
                let help = "add a line `SystemCallFilter=seccomp landlock_create_ruleset landlock_add_rule \
                            landlock_restrict_self`";
                fail(&last.place, says, help);
            }
        }
        if !self.answers_with_an_error {
            let says = format!(
                "{}: without `SystemCallErrorNumber` a program that tries a call outside the filter is killed, and so is \
                 the server",
                last.place
            );
            findings.trouble(
                FindingLevel::Warning,
                "unit",
                says,
                "write `SystemCallErrorNumber=EPERM`",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::settings;
    use super::*;

    fn failures(lines: &str) -> usize {
        let mut filter = CallFilter::default();
        for setting in settings("x", &format!("[Service]\n{lines}")) {
            filter.apply(&setting);
        }
        let mut findings = Findings::default();
        filter.check(&mut findings);
        findings.count(FindingLevel::Failure)
    }

    #[test]
    fn lines_are_applied_one_after_another() {
        let complete = "SystemCallFilter=@system-service seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self";
        assert_eq!(failures(complete), 0);
        assert_eq!(failures(&format!("{complete}\nSystemCallFilter=~@resources")), 1);
        assert_eq!(failures(&format!("{complete}\nSystemCallFilter=~seccomp")), 2);
        assert_eq!(
            failures(&format!("SystemCallFilter=~@resources\nSystemCallFilter=\n{complete}")),
            0
        );
        assert_eq!(failures("SystemCallFilter=~@mount"), 0, "what is not listed is allowed");
        assert_eq!(failures("SystemCallFilter=@system-service @sandbox"), 0);
    }
}
