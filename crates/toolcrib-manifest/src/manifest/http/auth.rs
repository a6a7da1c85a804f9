//! `auth`: credentials, which never come from a model.

use super::super::keys;
use super::{argument_of, headers, place_of};
use crate::declaration::{HttpAuth, UrlOrigin, UrlSpec};
use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node};
use crate::fields::Fields;
use crate::manifest::tool::references::Scope;
use crate::template::Template;

/// Reads `auth`.
pub(super) fn read(
    entry: &Entry,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Option<HttpAuth> {
    let fields = Fields::read(&entry.node, &keys::HTTP_AUTH, findings)?;
    let given: Vec<&str> =
        ["bearer", "basic", "header"].into_iter().filter(|key| fields.has(key)).collect();
    if given.is_empty() && !entry.node.entries().is_empty() {
        // Its keys were refused with a help text.
        return None;
    }
    if given.len() != 1 {
        let message = if given.is_empty() {
            "`auth` is empty".to_owned()
        } else {
            format!("`auth` is one of {}, not several", given.join(" and "))
        };
        findings.add(
            Diagnostic::error("bad-auth", &entry.key_span, message)
                .help("write one: {bearer: \"${secret.token}\"}, {basic: …} or {header: …}"),
        );
        return None;
    }
    if let Some(node) = fields.node("bearer") {
        return credential(node, scope, findings).map(HttpAuth::Bearer);
    }
    if let Some(node) = fields.node("basic") {
        let fields = Fields::read(node, &keys::HTTP_BASIC, findings)?;
        let user = fields.node("user").and_then(|node| owned(node, scope, findings));
        let password = fields.node("password").and_then(|node| credential(node, scope, findings));
        return Some(HttpAuth::Basic { user: user?, password: password? });
    }
    let fields = Fields::read(fields.node("header")?, &keys::HTTP_AUTH_HEADER, findings)?;
    let name = fields.node("name").zip(fields.text("name")).and_then(|(node, name)| {
        let Some((code, message, help)) = headers::name_problem(name) else { return Some(name) };
        findings.add(Diagnostic::error(code, &node.span, message).help(help));
        None
    });
    let value = fields.node("value").and_then(|node| credential(node, scope, findings));
    Some(HttpAuth::Header { name: name?.to_owned(), value: value? })
}

/// A text without arguments.
fn owned(node: &Node, scope: &mut Scope, findings: &mut Findings<'_>) -> Option<Template> {
    let template = scope.template(node, findings)?;
    headers::check_value(node, &template, findings);
    if let Some(reference) = argument_of(&template) {
        let place = place_of(reference, node, findings);
        findings.add(headers::model_chosen(&place));
        return None;
    }
    Some(template)
}

/// A credential, which should not be a literal in the file.
fn credential(node: &Node, scope: &mut Scope, findings: &mut Findings<'_>) -> Option<Template> {
    let template = owned(node, scope, findings)?;
    if template.references().next().is_none() {
        findings.add(literal_credential(&node.span));
    }
    Some(template)
}

/// The warning about a credential that stands in the file.
pub(in crate::manifest) fn literal_credential(place: &Span) -> Diagnostic {
    let message = "everybody who can read this file can read the credential";
    Diagnostic::warning("literal-secret", place, message)
        .help("configure it as a secret and write \"${secret.name}\"")
}

/// Reports a conflict with a header of the same name, and an unencrypted URL.
pub(super) fn check(fields: &Fields<'_>, url: Option<&UrlSpec>, findings: &mut Findings<'_>) {
    let Some(auth) = fields.entry("auth") else { return };
    let own = auth.node.entry("header").and_then(|header| header.node.entry("name"));
    let name = own.and_then(|name| name.node.as_str()).unwrap_or("Authorization");
    let headers = fields.node("headers").map(Node::entries).unwrap_or_default();
    if let Some(header) = headers.iter().find(|header| header.key.eq_ignore_ascii_case(name)) {
        let message = format!("`auth` and `headers` both set `{name}`");
        findings.add(
            Diagnostic::error("duplicate-key", &header.key_span, message)
                .help("remove it here: `auth` never follows a redirect")
                .also(&auth.key_span, "set here"),
        );
    }
    // In a private network, the operator decides.
    if let Some(url) = url
        && let UrlOrigin::Literal(origin) = &url.origin
        && origin.starts_with("http://")
        && !fields.has("allow_private")
    {
        findings.add(in_clear(&auth.key_span));
    }
}

/// The warning about unencrypted credentials.
pub(in crate::manifest) fn in_clear(place: &Span) -> Diagnostic {
    let message = "these credentials are sent over the network unencrypted";
    Diagnostic::warning("plain-credentials", place, message).help("write the URL with https://")
}
