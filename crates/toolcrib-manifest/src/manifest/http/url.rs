//! `url` and `query`: a literal server, and values that are one component each.

use toolcrib_net::{AddressPolicy, NamedBy, Target, UrlRefusal};

use super::{ToolParts, check_plain_key, place_of};
use crate::declaration::{QueryPair, UrlOrigin, UrlSpec};
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Node;
use crate::fields::Fields;
use crate::manifest::tool::references::Scope;
use crate::template::{Piece, Reference, Template};

/// Replaces a value while the text around it is checked; it must not be a dot.
const VALUE: &str = "\u{e000}";

/// Reads `url` and `query`.
pub(super) fn read(
    fields: &Fields<'_>,
    tool: &ToolParts<'_>,
    policy: &AddressPolicy,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Option<UrlSpec> {
    let map = fields.node("query").map(|node| query(node, scope, findings)).unwrap_or_default();
    let node = fields.node("url")?;
    let template = scope.template(node, findings)?;
    // The operator configures secrets, so that one may also hold the whole URL.
    if let Some(secret @ Reference::Secret(_)) = template.as_single_reference() {
        let origin = UrlOrigin::Secret(secret.clone());
        return Some(UrlSpec { origin, path: Template::default(), query: map });
    }
    let (origin, rest) = origin(node, &template, policy, findings)?;
    let (path, written) = split(rest);
    check_path(node, &path, tool, scope, findings);
    let mut pairs = written_pairs(node, written.as_ref(), findings);
    pairs.extend(map);
    let origin = UrlOrigin::Literal(origin);
    Some(UrlSpec { origin, path: encoded(&path, IN_PATH), query: pairs })
}

/// Splits off the literal scheme, host and port, and checks the rest.
fn origin(
    node: &Node,
    template: &Template,
    policy: &AddressPolicy,
    findings: &mut Findings<'_>,
) -> Option<(String, Template)> {
    let first = match template.pieces.first() {
        Some(Piece::Literal(text)) => text.as_str(),
        _ => "",
    };
    let authority = first.find("://").map_or(0, |scheme| scheme + 3);
    let end = first[authority..].find(['/', '?', '#']).map(|end| authority + end);
    if let (None, Some(reference)) = (end, template.references().next()) {
        let message = "a value must not choose the scheme, the host or the port";
        let help = match reference {
            Reference::Secret(_) => format!(
                "keep the whole URL in the secret and write only {reference}, or write scheme, host \
                 and port as literals: https://host/{reference}"
            ),
            _ => "write scheme, host and port as literals; for several servers, declare one tool \
                  for each"
                .to_owned(),
        };
        let place = place_of(reference, node, findings);
        findings.add(Diagnostic::error("value-chosen-host", &place, message).help(help));
        return None;
    }
    let end = end.unwrap_or(first.len());
    // The structure must not depend on the values, so each counts as one plain character.
    let whole: String = template
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Literal(text) => text.as_str(),
            Piece::Reference(_) => "x",
        })
        .collect();
    let target = match Target::parse(&whole, NamedBy::Operator) {
        Ok(target) => target,
        Err(refusal) => {
            findings.add(bad_url(node, &refusal));
            return None;
        }
    };
    let fragment = template.pieces.iter().any(|piece| match piece {
        Piece::Literal(text) => text.contains('#'),
        Piece::Reference(_) => false,
    });
    if fragment {
        let message = "what follows `#` is never sent to a server";
        findings.add(
            Diagnostic::error("bad-url", &node.span, message)
                .help("remove it; a `#` that belongs to the path is written %23"),
        );
        return None;
    }
    check_host(node, &target, policy, "HTTP tools do not connect to such addresses", findings);
    let mut pieces = template.pieces.clone();
    if let Some(Piece::Literal(text)) = pieces.first_mut() {
        text.drain(..end);
        if !text.starts_with('/') {
            text.insert(0, '/');
        }
    }
    Some((target.origin(), Template { pieces }))
}

/// Reports a host to which requests are not allowed; `rule` says so.
pub(in crate::manifest) fn check_host(
    node: &Node,
    target: &Target,
    policy: &AddressPolicy,
    rule: &str,
    findings: &mut Findings<'_>,
) {
    let host = target.host();
    let local = host == "localhost" || host.ends_with(".localhost");
    let address = target.literal_address().or(local.then_some([127, 0, 0, 1].into()));
    let Some((address, kind)) =
        address.and_then(|address| Some((address, policy.check(address).err()?)))
    else {
        return;
    };
    let message = format!("`{host}` is {kind}, and {rule}");
    let bits = if address.is_ipv4() { 32 } else { 128 };
    findings.add(
        Diagnostic::error("private-address", &node.span, message)
            .help(format!("if this is intended, write `allow_private: [\"{address}/{bits}\"]`")),
    );
}

/// Splits at the first `?` of a literal; the `?` belongs to neither.
fn split(rest: Template) -> (Template, Option<Template>) {
    let mut path = Vec::new();
    let mut query = None;
    for piece in rest.pieces {
        match (&mut query, piece) {
            (Some(query), piece) => push(query, piece),
            (None, Piece::Literal(text)) => match text.split_once('?') {
                None => push(&mut path, Piece::Literal(text)),
                Some((before, after)) => {
                    push(&mut path, Piece::Literal(before.to_owned()));
                    let mut pieces = Vec::new();
                    push(&mut pieces, Piece::Literal(after.to_owned()));
                    query = Some(pieces);
                }
            },
            (None, piece) => path.push(piece),
        }
    }
    (Template { pieces: path }, query.map(|pieces| Template { pieces }))
}

fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    if piece != Piece::Literal(String::new()) {
        pieces.push(piece);
    }
}

/// Checks that values of the path are present in every call, and that no literal segment is `.` or
/// `..`.
fn check_path(
    node: &Node,
    path: &Template,
    tool: &ToolParts<'_>,
    scope: &Scope,
    findings: &mut Findings<'_>,
) {
    let skeleton: String = path
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Literal(text) => text.as_str(),
            Piece::Reference(_) => VALUE,
        })
        .collect();
    if skeleton.split('/').any(is_dots) {
        let message = "`.` and `..` in a path are not sent to a server";
        findings.add(
            Diagnostic::error("bad-url", &node.span, message).help("write the resulting path"),
        );
    }
    for reference in path.references() {
        let place = place_of(reference, node, findings);
        let name = match reference {
            Reference::Arg(name) | Reference::Ctx(name) => name,
            Reference::Env(_) | Reference::Secret(_) => continue,
        };
        let of_list = scope.arguments.get(name).is_some_and(|known| known.list == Some(true));
        if matches!(reference, Reference::Arg(_)) && of_list {
            let message = format!("`{name}` is a list, but the path has room for one value only");
            findings.add(
                Diagnostic::error("list-in-path", &place, message)
                    .help(format!("write `query: {{{name}: \"{reference}\"}}`, which repeats it")),
            );
        } else if may_be_absent(reference, tool) {
            let message = format!("the path needs `{name}`, which a call may omit");
            let help = match reference {
                Reference::Arg(_) => {
                    "add it to `required` of `input`, or give it a `default`".to_owned()
                }
                _ => "remove `required: false` from it".to_owned(),
            };
            findings.add(Diagnostic::error("optional-in-path", &place, message).help(help));
        }
    }
}

/// Whether parsers read a segment as `.` or `..`.
fn is_dots(segment: &str) -> bool {
    matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
}

/// Whether a call may omit the value, if the schema shows that.
fn may_be_absent(reference: &Reference, tool: &ToolParts<'_>) -> bool {
    let name = match reference {
        Reference::Arg(name) => name,
        Reference::Ctx(name) => {
            let known = tool.context.iter().find(|parameter| parameter.name == *name);
            return known.is_some_and(|parameter| !parameter.required);
        }
        Reference::Env(_) | Reference::Secret(_) => return false,
    };
    let Some(input) = tool.input else { return false };
    let combined = ["allOf", "anyOf", "oneOf", "if", "$ref", "dependentSchemas"];
    if combined.iter().any(|keyword| input.entry(keyword).is_some()) {
        return false;
    }
    let required = input.entry("required").map(|entry| entry.node.items()).unwrap_or_default();
    let property = input.entry("properties").and_then(|properties| properties.node.entry(name));
    !required.iter().any(|item| item.as_str() == Some(name))
        && property.is_some_and(|property| property.node.entry("default").is_none())
}

/// The pairs of the query that is written in the URL.
fn written_pairs(
    node: &Node,
    query: Option<&Template>,
    findings: &mut Findings<'_>,
) -> Vec<QueryPair> {
    let Some(query) = query else { return Vec::new() };
    // Split only at `&` in literals: a value is never a separator.
    let mut parts: Vec<Vec<Piece>> = vec![Vec::new()];
    for piece in &query.pieces {
        match piece {
            Piece::Literal(text) => {
                for (index, part) in text.split('&').enumerate() {
                    if index > 0 {
                        parts.push(Vec::new());
                    }
                    if let Some(last) = parts.last_mut() {
                        push(last, Piece::Literal(part.to_owned()));
                    }
                }
            }
            reference @ Piece::Reference(_) => {
                if let Some(last) = parts.last_mut() {
                    last.push(reference.clone());
                }
            }
        }
    }
    let mut pairs = Vec::new();
    for mut pieces in parts {
        let (name, value) = match pieces.first() {
            None => continue,
            Some(Piece::Literal(text)) => match text.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (text.clone(), None),
            },
            Some(Piece::Reference(_)) => (String::new(), None),
        };
        if let (None, Some(reference)) = (
            &value,
            pieces.iter().find_map(|piece| match piece {
                Piece::Reference(reference) => Some(reference),
                Piece::Literal(_) => None,
            }),
        ) {
            let message = "a value must not become the name of a parameter";
            findings.add(
                Diagnostic::error(
                    "reference-in-name",
                    &place_of(reference, node, findings),
                    message,
                )
                .help("write the name and `=` before it: ?q=${args.q}"),
            );
            continue;
        }
        let value = value.map(|value| {
            pieces.remove(0);
            if !value.is_empty() {
                pieces.insert(0, Piece::Literal(value));
            }
            encoded(&Template { pieces }, IN_QUERY)
        });
        pairs.push(QueryPair { name: encode(&name, IN_QUERY), value });
    }
    pairs
}

/// The pairs of the mapping `query`.
fn query(node: &Node, scope: &mut Scope, findings: &mut Findings<'_>) -> Vec<QueryPair> {
    let mut pairs = Vec::new();
    for entry in node.entries() {
        let named =
            check_plain_key(entry, "reference-in-name", "the name of a parameter", findings);
        let Some(template) = scope.template(&entry.node, findings) else { continue };
        if named {
            pairs.push(QueryPair {
                name: toolcrib_net::encode_component(&entry.key),
                value: Some(encoded(&template, "")),
            });
        }
    }
    pairs
}

/// Characters that are not encoded in literals of a path: RFC 3986's `pchar`, slashes, and `%` of
/// existing encodings.
const IN_PATH: &str = "/%!$&'()*+,;=:@";
/// The same for a query, without `'`, which URL parsers encode there.
const IN_QUERY: &str = "/?%!$()*+,;=:@";

/// The template with percent-encoded literals, except for the characters in `kept`.
fn encoded(template: &Template, kept: &str) -> Template {
    let pieces = template.pieces.iter().map(|piece| match piece {
        Piece::Literal(text) => Piece::Literal(encode(text, kept)),
        reference @ Piece::Reference(_) => reference.clone(),
    });
    Template { pieces: pieces.collect() }
}

fn encode(text: &str, kept: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for part in text.split_inclusive(|character| kept.contains(character)) {
        let stays = part.chars().next_back().filter(|last| kept.contains(*last));
        let rest = &part[..part.len() - stays.map_or(0, char::len_utf8)];
        encoded.push_str(&toolcrib_net::encode_component(rest));
        encoded.extend(stays);
    }
    encoded
}

/// The URL with a scheme, if it begins with a host.
pub(in crate::manifest) fn with_scheme(written: &str) -> Option<String> {
    let end = written.find(['/', '?', ':']).unwrap_or(written.len());
    let host = &written[..end];
    let is_host = (host.contains('.') || host == "localhost")
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    let rest = written[end..].strip_prefix(':').unwrap_or(&written[end..]);
    if !is_host || rest.starts_with("//") {
        return None;
    }
    let scheme = if host == "localhost" || host.starts_with("127.") { "http" } else { "https" };
    Some(format!("{scheme}://{written}"))
}

fn bad_url(node: &Node, refusal: &UrlRefusal) -> Diagnostic {
    let meant = node.as_str().and_then(with_scheme);
    if let (UrlRefusal::Unreadable(_), Some(url)) = (refusal, meant) {
        return Diagnostic::error("bad-url", &node.span, refusal.to_string())
            .help(format!("write {url}"));
    }
    let help = match refusal {
        UrlRefusal::UserInfo => {
            "write `auth: {basic: {user: …, password: \"${secret.name}\"}}` beside `url`"
        }
        UrlRefusal::Character("a space") => "write it as %20; values are encoded automatically",
        UrlRefusal::Character("a backslash") => "parts of a path are separated by `/`",
        UrlRefusal::TooLong => "send long texts in a body",
        _ => "write it like https://tickets.example/api/tickets",
    };
    Diagnostic::error("bad-url", &node.span, refusal.to_string()).help(help)
}
