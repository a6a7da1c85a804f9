//! Checks the version of the format and the required version of toolcrib.

use super::FORMAT_VERSION;
use crate::diagnostic::{Diagnostic, Findings};
use crate::fields::Fields;

/// The version of toolcrib that `requires` is compared with.
const TOOLCRIB: &str = env!("CARGO_PKG_VERSION");

/// Whether this program can read the rest of the file.
pub(super) fn check(fields: &Fields<'_>, findings: &mut Findings<'_>) -> bool {
    check_requires(fields, findings);
    let (Some(node), Some(format)) = (fields.node("toolcrib"), fields.integer("toolcrib")) else {
        return true;
    };
    if format == FORMAT_VERSION {
        return true;
    }
    let newer = format > FORMAT_VERSION;
    let help = if newer { "install a newer toolcrib" } else { "write `toolcrib: 1`" };
    let message =
        format!("the file has format {format}; toolcrib {TOOLCRIB} reads format {FORMAT_VERSION}");
    findings.add(Diagnostic::error("newer-format", &node.span, message).help(help));
    !newer
}

fn check_requires(fields: &Fields<'_>, findings: &mut Findings<'_>) {
    let Some((node, text)) = fields.node("requires").zip(fields.text("requires")) else { return };
    match fits(text, TOOLCRIB) {
        Some(true) => {}
        Some(false) => {
            let message = format!("the file requires toolcrib {text}; this is {TOOLCRIB}");
            let diagnostic = Diagnostic::error("requires-newer", &node.span, message);
            findings.add(diagnostic.help("install a matching version"));
        }
        None => {
            let message = format!("`{text}` is not a requirement");
            let diagnostic = Diagnostic::error("bad-requirement", &node.span, message);
            findings.add(diagnostic.help("write for example '>=0.1' or '>=0.1, <2'"));
        }
    }
}

/// Whether a version meets all comparisons; `None` if the requirement is invalid.
fn fits(requirement: &str, version: &str) -> Option<bool> {
    let version = numbers(version)?;
    let mut all = true;
    for part in requirement.split(',').map(str::trim) {
        let digits = part.find(|c: char| c.is_ascii_digit())?;
        let (operator, wanted) = part.split_at(digits);
        let wanted = numbers(wanted)?;
        all &= match operator.trim_end() {
            ">=" => version >= wanted,
            ">" => version > wanted,
            "<=" => version <= wanted,
            "<" => version < wanted,
            "=" | "==" | "" => version == wanted,
            _ => return None,
        };
    }
    Some(all)
}

fn numbers(version: &str) -> Option<[u64; 3]> {
    let mut numbers = [0; 3];
    for (at, part) in version.trim().split('.').enumerate() {
        *numbers.get_mut(at)? = part.parse().ok()?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_compare_numbers_and_not_text() {
        for (requirement, expected) in [
            (">=0.1", Some(true)),
            (">=0.1, <0.10", Some(true)),
            (">0.9.0", Some(false)),
            ("0.9", Some(true)),
            ("^0.9", None),
            (">=", None),
            ("", None),
            (">=1.2.3.4", None),
        ] {
            assert_eq!(fits(requirement, "0.9.0"), expected, "{requirement}");
        }
    }
}
