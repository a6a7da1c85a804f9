//! `http`: the request of a tool, and how its response becomes a result.

mod auth;
mod body;
mod headers;
mod url;

pub(super) use auth::{in_clear, literal_credential};
use toolcrib_net::{AddressPolicy, IpNet, NamedBy, Target};
pub(super) use url::with_scheme;

use super::keys;
use crate::declaration::{ContextParameter, HttpMethod, HttpSpec};
use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node, NodeValue};
use crate::fields::Fields;
use crate::manifest::tool::limits::Limits;
use crate::manifest::tool::references::Scope;
use crate::template::{Reference, Template};

/// The parts of the tool outside of `http`.
pub(super) struct ToolParts<'n> {
    /// The manifest.
    pub(super) file: &'n str,
    pub(super) input: Option<&'n Node>,
    pub(super) context: &'n [ContextParameter],
    pub(super) limits: Limits<'n>,
}

/// Reads `http`.
pub(super) fn read(
    entry: &Entry,
    tool: &ToolParts<'_>,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Option<HttpSpec> {
    let fields = Fields::read(&entry.node, &keys::HTTP, findings)?;
    let allowed = allowed(&fields, findings);
    let url = url::read(&fields, tool, &policy(&allowed), scope, findings);
    let headers = fields.node("headers").map(|node| headers::read(node, scope, findings));
    let auth = fields.entry("auth").map(|entry| auth::read(entry, scope, findings));
    auth::check(&fields, url.as_ref(), findings);
    let method = method(&fields);
    let body = body::read(&fields, method, scope, findings);
    let expect =
        fields.node("expect").and_then(|node| Fields::read(node, &keys::HTTP_EXPECT, findings));
    let ok_status = expect.map(|fields| statuses(&fields, findings)).unwrap_or_default();
    let select = select(&fields, method, findings);
    Some(HttpSpec {
        method,
        url: url?,
        headers: headers.unwrap_or_default(),
        auth: match auth {
            Some(auth) => Some(auth?),
            None => None,
        },
        body: body?,
        ok_status,
        select,
        allow_private: allowed,
        output_bytes: tool.limits.capture_bytes(),
        transfer_bytes: tool.limits.transfer_bytes(),
    })
}

fn method(fields: &Fields<'_>) -> HttpMethod {
    let written = fields.text("method");
    let known = HttpMethod::ALL.into_iter().find(|method| written == Some(method.as_str()));
    known.unwrap_or(HttpMethod::Get)
}

/// The addresses to which connections are made.
fn policy(allowed: &[IpNet]) -> AddressPolicy {
    allowed.iter().fold(AddressPolicy::public(), |policy, range| policy.allow(*range))
}

/// Reports the address of an MCP server to which no connection is allowed.
pub(super) fn check_server(node: &Node, url: &str, allowed: &[IpNet], findings: &mut Findings<'_>) {
    // A wrong URL has been reported.
    if let Ok(target) = Target::parse(url, NamedBy::Operator) {
        let rule = "no connections are made to such addresses";
        url::check_host(node, &target, &policy(allowed), rule, findings);
    }
}

/// The ranges of `allow_private`.
pub(super) fn allowed(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Vec<IpNet> {
    let mut ranges = Vec::new();
    for item in fields.node("allow_private").map(Node::items).unwrap_or_default() {
        let written = item.as_str().unwrap_or_default();
        let Some(range) = range(written) else {
            let message = format!("`{written}` is not an address range");
            findings.add(
                Diagnostic::error("bad-range", &item.span, message).help(
                    "write it in CIDR notation: 10.20.0.0/16, or 10.20.3.4/32 for one address",
                ),
            );
            continue;
        };
        if range != range.trunc() {
            let message = format!("`{written}` names an address inside the range");
            findings.add(Diagnostic::error("bad-range", &item.span, message).help(format!(
                "write {} for the whole range, or {}/{} for the one address",
                range.trunc(),
                range.addr(),
                range.max_prefix_len()
            )));
            continue;
        }
        if range.prefix_len() == 0 {
            let message = format!(
                "`{written}` contains every address, so that no address is \
             blocked any more"
            );
            findings.add(
                Diagnostic::warning("no-guard", &item.span, message)
                    .help("name the network that the service is in"),
            );
        }
        ranges.push(range);
    }
    ranges
}

/// A range, or a single address.
fn range(written: &str) -> Option<IpNet> {
    let written = written.trim();
    let address = || written.parse().ok().map(|address: std::net::IpAddr| address.into());
    written.parse().ok().or_else(address)
}

/// The statuses of `expect`.
fn statuses(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Vec<u16> {
    let mut statuses = Vec::new();
    let Some(entry) = fields.entry("status") else { return statuses };
    for item in entry.node.items() {
        let number = match &item.value {
            NodeValue::Number(number) => number.as_u64(),
            _ => None,
        };
        let status = number.and_then(|number| u16::try_from(number).ok());
        if let Some(status) = status.filter(|status| (200..600).contains(status)) {
            statuses.push(status);
            continue;
        }
        let message =
            format!("a status is a whole number from 200 to 599, found {}", item.describe());
        findings.add(
            Diagnostic::error("out-of-range", &item.span, message)
                .help("write each: [200, 202]; without `expect`, every 2xx is a success"),
        );
    }
    if entry.node.items().is_empty() {
        let message = "no status means success, so every call would fail";
        findings.add(
            Diagnostic::error("out-of-range", &entry.node.visible_span(Some(entry)), message)
                .help("write `status: [200]`; without `expect`, every 2xx is a success"),
        );
    }
    statuses
}

/// `select`, if it is a JSON pointer.
fn select(fields: &Fields<'_>, method: HttpMethod, findings: &mut Findings<'_>) -> Option<String> {
    let (node, pointer) = fields.node("select").zip(fields.text("select"))?;
    if method == HttpMethod::Head {
        let message = "a response to HEAD has no body to select from";
        findings.add(
            Diagnostic::error("body-of-head", &node.span, message)
                .help("write `method: GET`, or remove `select`"),
        );
    }
    if pointer.contains("${") {
        let message = "a value must not choose what is selected";
        findings.add(
            Diagnostic::error("bad-pointer", &node.span, message)
                .help("write the pointer; a service selects by `query` or path"),
        );
        return None;
    }
    let escaped = pointer.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if (!pointer.is_empty() && !pointer.starts_with('/')) || !escaped {
        let keys = pointer.trim_start_matches(['$', '.', '/']).replace(['.', '['], "/");
        let message = format!("`{pointer}` is not a JSON pointer");
        let help = if escaped && !keys.is_empty() {
            format!("write /{}: keys and positions, each after a slash", keys.replace(']', ""))
        } else {
            "write keys and positions, each after a slash: /items/0/id; `~` is written ~0"
                .to_owned()
        };
        findings.add(Diagnostic::error("bad-pointer", &node.span, message).help(help));
        return None;
    }
    Some(pointer.to_owned())
}

/// The place of a reference in its node, if it can be found despite quoting.
fn place_of(reference: &Reference, node: &Node, findings: &Findings<'_>) -> Span {
    let written = reference.to_string();
    let text = findings.text.get(node.span.clone()).unwrap_or_default();
    match text.find(&written) {
        Some(at) => node.span.start + at..node.span.start + at + written.len(),
        None => node.span.clone(),
    }
}

/// The first argument that a template refers to.
fn argument_of(template: &Template) -> Option<&Reference> {
    template.references().find(|reference| matches!(reference, Reference::Arg(_)))
}

/// Reports a reference in a mapping's key.
fn check_plain_key(
    entry: &Entry,
    code: &'static str,
    what: &str,
    findings: &mut Findings<'_>,
) -> bool {
    if entry.key.contains("${") {
        let message = format!("a value must not become {what}");
        findings.add(
            Diagnostic::error(code, &entry.key_span, message)
                .help("write the name; only the value may hold references"),
        );
        return false;
    }
    if entry.key.is_empty() {
        let message = format!("{what} must not be empty");
        findings.add(Diagnostic::error(code, &entry.key_span, message));
        return false;
    }
    true
}
