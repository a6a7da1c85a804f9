//! `sandbox`: the confinement of a program.

use std::path::PathBuf;

use crate::declaration::{SandboxProfile, SandboxSpec};
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Node, shortened};
use crate::fields::Fields;
use crate::manifest::keys;

/// Reads `sandbox`; `default` is the profile where it names none.
pub(in crate::manifest) fn read(
    fields: &Fields<'_>,
    default: SandboxProfile,
    findings: &mut Findings<'_>,
) -> SandboxSpec {
    let fields =
        fields.node("sandbox").and_then(|node| Fields::read(node, &keys::SANDBOX, findings));
    let Some(fields) = fields else { return SandboxSpec::of(default) };
    let written = fields.text("profile");
    let profile = SandboxProfile::ALL.into_iter().find(|known| Some(known.as_str()) == written);
    let mut spec = SandboxSpec::of(profile.unwrap_or(default));
    if let Some(require) = fields.text("require") {
        spec.required = require == keys::REQUIRED;
    }
    for (key, paths) in [("read", &mut spec.read), ("write", &mut spec.write)] {
        let Some(entry) = fields.entry(key) else { continue };
        *paths = entry.node.items().iter().filter_map(|node| path(node, findings)).collect();
        if spec.profile == SandboxProfile::Trusted && !paths.is_empty() {
            let message = "a trusted program has the permissions of the server, so a grant has no \
             effect";
            findings.add(
                Diagnostic::warning("idle-grant", &entry.key_span, message)
                    .help("remove it, or choose another profile"),
            );
        }
    }
    if let (SandboxProfile::Trusted, true, Some(node)) =
        (spec.profile, spec.required, fields.node("require"))
    {
        let message = "nothing is enforced for a trusted program, so nothing can be required";
        findings.add(
            Diagnostic::error("nothing-required", &node.span, message)
                .help("remove the key, or choose another profile"),
        );
    }
    spec
}

/// Whether a variable's name has ended before this text.
fn ends_name(rest: &str) -> bool {
    !rest.starts_with(|c: char| c == '_' || c.is_ascii_alphanumeric())
}

/// A file or folder; only a leading `~` is expanded.
fn path(node: &Node, findings: &mut Findings<'_>) -> Option<PathBuf> {
    let written = node.as_str()?;
    let problem = if written.is_empty() {
        "a grant names a file or a folder, but this one is empty".to_owned()
    } else if written.contains("${") {
        format!("`{}` is not replaced: grants are literal paths", shortened(written))
    } else if let Some(home) = written.strip_prefix("$HOME").filter(|rest| ends_name(rest)) {
        let message = "`$HOME` is not replaced: no shell reads a grant";
        findings.add(
            Diagnostic::error("bad-grant", &node.span, message).help(format!("write `~{home}`")),
        );
        return None;
    } else if written.starts_with('$') && written[1..].starts_with(|c: char| c.is_ascii_uppercase())
    {
        format!("`{}` is not replaced: no shell reads a grant", shortened(written))
    } else if written.contains(['*', '?']) {
        format!(
            "`{}` is not a pattern: a grant of a folder includes everything in it",
            shortened(written)
        )
    } else if written.contains('\0') {
        "a path cannot contain a NUL character".to_owned()
    } else {
        return Some(PathBuf::from(written));
    };
    findings.add(
        Diagnostic::error("bad-grant", &node.span, problem)
            .help("write a path: /srv/data, ~/.kube, or data for a folder of the workspace"),
    );
    None
}
