//! The status of names other than tools.

use toolcrib_http::reports::{NameChange, OtherDeclaration};

use crate::Toolcrib;
use crate::manifests::names::{DeclaredName, NotOffered};

/// The number of declarations whose name has another owner.
pub(super) fn shadowed(crib: &Toolcrib) -> usize {
    crib.declared_names().iter().filter(|one| one.shadowed_by().is_some()).count()
}

/// Names that a restart would give to another file.
pub(super) fn divergences(crib: &Toolcrib) -> Vec<NameChange> {
    let change = |one: DeclaredName| {
        let fresh = one.after_restart.as_ref()?.to_string();
        Some(NameChange {
            kind: one.kind.as_str().to_owned(),
            live: Some(one.source.to_string()),
            name: one.name,
            fresh,
        })
    };
    crib.declared_names().into_iter().filter_map(change).collect()
}

/// All declarations of the name.
pub(super) fn about(crib: &Toolcrib, name: &str) -> Vec<OtherDeclaration> {
    let names = crib.declared_names().into_iter().filter(|one| one.name == name);
    names.map(|one| declaration(&one)).collect()
}

fn declaration(one: &DeclaredName) -> OtherDeclaration {
    let mut declaration = OtherDeclaration {
        kind: one.kind.as_str().to_owned(),
        declared_by: one.source.to_string(),
        after_restart: one.after_restart.as_ref().map(ToString::to_string),
        ..OtherDeclaration::default()
    };
    match &one.withheld {
        Some(NotOffered::Blocked(reason)) => declaration.blocked = Some(reason.clone()),
        Some(NotOffered::Untrusted(reason)) => declaration.untrusted = Some(reason.clone()),
        Some(NotOffered::Shadowed(by)) => declaration.kept_by = Some(by.to_string()),
        None => {}
    }
    declaration
}
