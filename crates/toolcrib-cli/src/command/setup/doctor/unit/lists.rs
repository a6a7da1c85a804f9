//! Lists that systemd puts together from several lines.

use super::file::Setting;

/// The kinds of namespaces that confined programs need.
const NEEDED: [&str; 2] = ["user", "pid"];

/// The last line of `RestrictNamespaces`, if all lines together keep programs from making a user and a PID namespace.
pub(super) fn forbidden_namespaces(settings: &[Setting]) -> Option<&Setting> {
    let mut allowed: Option<[bool; 2]> = None;
    let mut last = None;
    for setting in settings.iter().filter(|setting| setting.key == "RestrictNamespaces") {
        last = Some(setting);
        let value = setting.value.as_str();
        if value.is_empty() || is_false(value) {
            allowed = None;
        } else if is_true(value) {
            allowed = Some([false; 2]);
        } else {
            let (denies, names) = negated(value);
            let before = allowed.unwrap_or([denies; 2]);
            let contains = |kind: &str| names.split_whitespace().any(|name| name == kind);
            allowed =
                Some(std::array::from_fn(
                    |at| {
                        if contains(NEEDED[at]) { !denies } else { before[at] }
                    },
                ));
        }
    }
    last.filter(|_| allowed.is_some_and(|allowed| allowed.contains(&false)))
}

/// The last line of `RestrictAddressFamilies`, if all lines together leave no Unix sockets.
pub(super) fn missing_unix(settings: &[Setting]) -> Option<&Setting> {
    // Whether only what is listed is allowed, and whether AF_UNIX is in the list.
    let (mut lists_allowed, mut is_listed, mut is_empty) = (false, false, true);
    let mut last = None;
    for setting in settings.iter().filter(|setting| setting.key == "RestrictAddressFamilies") {
        last = Some(setting);
        let value = setting.value.as_str();
        if value.is_empty() || value == "none" {
            (lists_allowed, is_listed, is_empty) = (value == "none", false, value.is_empty());
            continue;
        }
        let (denies, names) = negated(value);
        if is_empty {
            (lists_allowed, is_empty) = (!denies, false);
        }
        if names.split_whitespace().any(|name| name == "AF_UNIX") {
            is_listed = lists_allowed != denies;
        }
    }
    last.filter(|_| !is_empty && lists_allowed != is_listed)
}

fn negated(value: &str) -> (bool, &str) {
    value.strip_prefix('~').map_or((false, value), |names| (true, names))
}

pub(super) fn is_true(value: &str) -> bool {
    ["yes", "true", "on", "1", "y", "t"].contains(&value.to_lowercase().as_str())
}

pub(super) fn is_false(value: &str) -> bool {
    ["no", "false", "off", "0", "n", "f"].contains(&value.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::super::file::settings;
    use super::*;

    #[test]
    fn lines_of_drop_ins_add_to_those_before_them() {
        for (lines, is_forbidden) in [
            ("RestrictNamespaces=user\nRestrictNamespaces=pid", false),
            ("RestrictNamespaces=yes\nRestrictNamespaces=user pid", false),
            ("RestrictNamespaces=user pid\nRestrictNamespaces=net", false),
            ("RestrictNamespaces=user pid\nRestrictNamespaces=~user", true),
            ("RestrictNamespaces=~net", false),
            ("RestrictNamespaces=~user\nRestrictNamespaces=", false),
            ("RestrictNamespaces=user", true),
        ] {
            let settings = settings("x", &format!("[Service]\n{lines}\n"));
            assert_eq!(forbidden_namespaces(&settings).is_some(), is_forbidden, "{lines}");
        }
        for (lines, is_missing) in [
            ("RestrictAddressFamilies=AF_UNIX\nRestrictAddressFamilies=AF_INET", false),
            ("RestrictAddressFamilies=AF_INET\nRestrictAddressFamilies=AF_UNIX", false),
            ("RestrictAddressFamilies=AF_INET AF_UNIX\nRestrictAddressFamilies=~AF_UNIX", true),
            ("RestrictAddressFamilies=~AF_PACKET", false),
            ("RestrictAddressFamilies=~AF_UNIX", true),
            ("RestrictAddressFamilies=AF_INET\nRestrictAddressFamilies=", false),
            ("RestrictAddressFamilies=none", true),
            ("RestrictAddressFamilies=none\nRestrictAddressFamilies=AF_UNIX", false),
        ] {
            let settings = settings("x", &format!("[Service]\n{lines}\n"));
            assert_eq!(missing_unix(&settings).is_some(), is_missing, "{lines}");
        }
    }
}
