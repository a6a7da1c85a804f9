//! How a parameter of a tool, or a field of a question, looks on the terminal.

use std::fmt::Write as _;

use toolcrib::tool::{canonical_json, fully_visible, fully_visible_text};
use toolcrib::wire::Parameter;

use super::{STRONG, folded};

/// The indentation of further lines of a parameter.
const INDENT: usize = 6;

/// A parameter on one line, with further lines of its description and its allowed values below it.
pub(crate) fn parameter_text(parameter: &Parameter) -> String {
    let mut page = String::new();
    let (name, types) = (fully_visible(&parameter.name), fully_visible(&parameter.types));
    let need = if parameter.required { "required" } else { "optional" };
    let mut rest = format!(" ({types}, {need}");
    if let Some(default) = &parameter.default {
        let _ = write!(rest, ", default {}", fully_visible(&canonical_json(default)));
    }
    rest.push(')');
    let _ = write!(page, "  {STRONG}{name}{STRONG:#}{rest}");
    if let Some(description) = &parameter.description {
        let description = fully_visible_text(description.trim());
        let mut each = description.lines().map(str::trim);
        let before = name.chars().count() + rest.chars().count() + 4;
        let first = each.next().unwrap_or_default();
        let _ = write!(page, "  {}", folded(first, before, INDENT));
        for line in each {
            let _ = write!(page, "\n{:INDENT$}{}", "", folded(line, INDENT, INDENT));
        }
    }
    page.push('\n');
    if !parameter.bounds.is_empty() {
        let bounds = parameter.bounds.join(", ");
        let bounds = folded(&fully_visible(&bounds), INDENT, INDENT);
        let _ = writeln!(page, "{:INDENT$}{bounds}", "");
    }
    if !parameter.allowed.is_empty() {
        let allowed: Vec<String> = parameter.allowed.iter().map(canonical_json).collect();
        let _ = writeln!(page, "      one of {}", fully_visible(&allowed.join(", ")));
    }
    page
}
