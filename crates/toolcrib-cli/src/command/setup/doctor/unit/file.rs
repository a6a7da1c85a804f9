//! The settings in a systemd unit and its drop-ins, with their places.

use std::fmt;

/// One setting of the section `[Service]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) place: Place,
    pub(super) key: String,
    pub(super) value: String,
}

/// Where a setting is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    file: String,
    line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The settings of a list that apply: an empty one takes those before it away.
pub(super) fn in_effect<'a>(settings: &'a [Setting], key: &str) -> Vec<&'a Setting> {
    let mut found = Vec::new();
    for setting in settings.iter().filter(|setting| setting.key == key) {
        if setting.value.is_empty() {
            found.clear();
        } else {
            found.push(setting);
        }
    }
    found
}

/// Reads a unit, a drop-in, or what `systemctl cat` prints of all of them.
pub(super) fn settings(name: &str, text: &str) -> Vec<Setting> {
    let (mut file, mut offset) = (name.to_owned(), 0);
    let mut section = String::new();
    let mut found: Vec<Setting> = Vec::new();
    let mut continues = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(path) = heading(line) {
            (file, offset, continues) = (path.to_owned(), index + 1, false);
            section.clear();
            continue;
        }
        let line = line.trim();
        // A comment between the parts of a continued line does not end it.
        if line.starts_with(['#', ';']) {
            continue;
        }
        let (part, goes_on) = match line.strip_suffix('\\') {
            Some(part) => (part.trim_end(), true),
            None => (line, false),
        };
        if continues {
            if let Some(last) = found.last_mut().filter(|_| section == "Service") {
                last.value.push(' ');
                last.value.push_str(part);
            }
        } else if let Some(name) = part.strip_prefix('[').and_then(|part| part.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else if let Some((key, value)) = part.split_once('=').filter(|_| section == "Service") {
            let place = Place { file: file.clone(), line: index + 1 - offset };
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            found.push(Setting { place, key, value });
        }
        continues = goes_on;
    }
    found
}

/// The path in a line with which `systemctl cat` begins a file.
fn heading(line: &str) -> Option<&str> {
    let path = line.strip_prefix("# ").filter(|path| path.starts_with('/'))?;
    let is_unit = [".service", ".conf"].iter().any(|ending| path.ends_with(ending));
    (is_unit && !path.contains(' ')).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_the_places_of_their_first_lines() {
        let text = "[Unit]\nDescription=x\n[Service]\n# User=root\nUser = crib\nSystemCallFilter=@a \\\n; why\n  b\nType=notify\n";
        let found = settings("a.service", text);
        let found: Vec<_> =
            found.iter().map(|own| format!("{} {}={}", own.place, own.key, own.value)).collect();
        assert_eq!(
            found,
            [
                "a.service:5 User=crib",
                "a.service:6 SystemCallFilter=@a b",
                "a.service:9 Type=notify"
            ]
        );
    }

    #[test]
    fn what_systemctl_cat_prints_names_its_files() {
        let text = "# /usr/lib/systemd/system/x.service\n[Service]\nUser=a\n\n# /etc/systemd/system/x.service.d/own.conf\n[Service]\nUser=b\n";
        let places: Vec<_> = settings("-", text).iter().map(|own| own.place.to_string()).collect();
        assert_eq!(
            places,
            ["/usr/lib/systemd/system/x.service:2", "/etc/systemd/system/x.service.d/own.conf:2"]
        );
    }
}
