//! Builds the URL of a call: the author's text unchanged, and every value as one component.

use toolcrib_json::Kind;
use toolcrib_manifest::declaration::{QueryPair, UrlOrigin, UrlSpec};
use toolcrib_manifest::template::{Piece, Reference, Template};
use toolcrib_net::{NamedBy, Target, UrlRefusal, encode_component};
use toolcrib_tool::ToolError;

use crate::expansion::text::{Destination, text_of};
use crate::expansion::values::CallValues;
use crate::host::UNREAD_SECRET;

/// A checked URL.
pub(super) struct BuiltUrl {
    pub(super) target: Target,
    /// The URL with names in place of secrets, for display.
    pub(super) shown: String,
}

/// Fills in the values. `allows_private` says whether the declaration names private addresses.
pub(super) fn build(
    spec: &UrlSpec,
    allows_private: bool,
    values: CallValues<'_>,
) -> Result<BuiltUrl, ToolError> {
    let origin = match &spec.origin {
        UrlOrigin::Literal(origin) => origin,
        UrlOrigin::Secret(secret) => {
            return of_secret(secret, &spec.query, allows_private, values);
        }
    };
    let path = path(&spec.path, values, &encoded_path)?;
    let query = query(&spec.query, values, &encoded)?;
    let text = joined(origin, &path, &query);
    let target = Target::parse(&text, NamedBy::Operator).map_err(|refusal| {
        ToolError::invalid_args(format!("with these arguments, {refusal}"))
            .with_hint("Send shorter values.")
    })?;
    // The rules above keep a value from moving a boundary; this check also holds for a parser that reads the URL
    // differently.
    let unchanged = target.origin() == *origin
        && target.url().path() == path
        && target.url().query().unwrap_or_default() == query;
    if !unchanged {
        return Err(ToolError::invalid_args("a value would change where the request goes")
            .with_hint("Send plain values, without parts of a URL."));
    }
    let path = self::path(&spec.path, values, &hidden)?;
    let shown = joined(origin, &path, &self::query(&spec.query, values, &hidden)?);
    Ok(BuiltUrl { target, shown })
}

/// The URL that a secret holds, with the parameters of the declaration added.
fn of_secret(
    secret: &Reference,
    pairs: &[QueryPair],
    allows_private: bool,
    values: CallValues<'_>,
) -> Result<BuiltUrl, ToolError> {
    let shown = joined(&secret.to_string(), "", &query(pairs, values, &hidden)?);
    let mut text = values.text(secret, Destination::Line)?.unwrap_or_default();
    if text == UNREAD_SECRET {
        // Nothing is sent for a plan, and this name never has an address.
        "https://unread.invalid/".clone_into(&mut text);
    }
    let unusable = |problem: &str| {
        refused(secret, problem).with_hint("No argument can change that: tell the user.")
    };
    if text.contains('#') {
        return Err(unusable("contains a `#`, and what follows it is never sent to a server"));
    }
    let query = query(pairs, values, &encoded)?;
    if !query.is_empty() {
        text.push(if text.contains('?') { '&' } else { '?' });
        text.push_str(&query);
    }
    // The refusal may contain parts of the URL, so its text is not used.
    let target = Target::parse(&text, NamedBy::Operator).map_err(|refusal| match refusal {
        UrlRefusal::TooLong => unusable("is longer than a URL may be, 8 KiB"),
        UrlRefusal::Character(what) => unusable(&format!("is not a URL: it contains {what}")),
        UrlRefusal::UserInfo => unusable("contains a user name or a password before the host"),
        _ => unusable("is not a URL that begins with `https://` or `http://` and names a host"),
    })?;
    if target.url().scheme() == "http" && !allows_private {
        return Err(unusable(
            "begins with `http://`, so that everybody on the way could read it: use `https://`, or \
             declare the server's addresses in `allow_private`",
        ));
    }
    Ok(BuiltUrl { target, shown })
}

fn hidden(reference: &Reference, text: &str) -> String {
    match reference {
        Reference::Secret(_) => reference.to_string(),
        _ => encode_component(text),
    }
}

fn encoded(_: &Reference, text: &str) -> String {
    encode_component(text)
}

/// Encodes a value as one path segment. A secret that forms the rest of the path may contain several segments, for
/// example a webhook's address.
fn encoded_path(reference: &Reference, text: &str) -> String {
    match reference {
        Reference::Secret(_) => text.split('/').map(encode_component).collect::<Vec<_>>().join("/"),
        _ => encode_component(text),
    }
}

/// Transforms a value before it is inserted.
type Transform<'c> = &'c dyn Fn(&Reference, &str) -> String;

fn joined(origin: &str, path: &str, query: &str) -> String {
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{origin}{path}{mark}{query}")
}

/// The path; fails if a value is missing, or makes its segment empty, `.` or `..`.
fn path(
    template: &Template,
    values: CallValues<'_>,
    transform: Transform<'_>,
) -> Result<String, ToolError> {
    let mut path = String::new();
    // The current segment, and the reference whose value is in it.
    let (mut segment, mut from) = (String::new(), None);
    for (at, piece) in template.pieces.iter().enumerate() {
        match piece {
            Piece::Literal(literal) => {
                let mut parts = literal.split('/');
                segment.push_str(parts.next().unwrap_or_default());
                for part in parts {
                    end_segment(&mut path, &segment, from)?;
                    path.push('/');
                    part.clone_into(&mut segment);
                    from = None;
                }
            }
            Piece::Reference(reference) => {
                let Some(text) = values.text(reference, Destination::Line)? else {
                    return Err(refused(
                        reference,
                        "is missing, and the path of the request needs it",
                    ));
                };
                from = Some(reference);
                let changed = transform(reference, &text);
                let is_rest = segment.is_empty() && at + 1 == template.pieces.len();
                if changed.contains('/') && !is_rest {
                    return Err(refused(
                        reference,
                        "contains a `/`, which is allowed only in a secret at the end of the path",
                    ));
                }
                let mut parts = changed.split('/');
                segment.push_str(parts.next().unwrap_or_default());
                for part in parts {
                    end_segment(&mut path, &segment, from)?;
                    path.push('/');
                    part.clone_into(&mut segment);
                }
            }
        }
    }
    end_segment(&mut path, &segment, from)?;
    Ok(path)
}

/// Ends a segment of the path. Parsers treat `..` as the parent folder however it is encoded.
fn end_segment(
    path: &mut String,
    segment: &str,
    from: Option<&Reference>,
) -> Result<(), ToolError> {
    if let Some(reference) = from {
        if segment.is_empty() {
            return Err(match reference {
                Reference::Secret(_) => refused(
                    reference,
                    "is empty or contains an empty segment (`//`): it must hold a part of the path, \
                     without scheme and host",
                ),
                _ => refused(reference, "is empty and would leave an empty segment in the path"),
            });
        }
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        if matches!(plain.as_str(), "." | "..") {
            return Err(refused(
                reference,
                "would move to another place in the path (`.` or `..`)",
            ));
        }
    }
    path.push_str(segment);
    Ok(())
}

/// The error for a value that is not allowed in the path.
fn refused(reference: &Reference, problem: &str) -> ToolError {
    match reference {
        Reference::Arg(name) => ToolError::invalid_args(format!("the argument `{name}` {problem}"))
            .with_hint("Send the name or number of one thing."),
        Reference::Ctx(name) => {
            ToolError::denied(format!("the host's value for `{name}` {problem}"))
        }
        Reference::Env(_) | Reference::Secret(_) => {
            ToolError::unavailable(format!("the value of `{reference}` {problem}"))
        }
    }
}

/// The query without its `?`. Pairs with absent values are left out; lists repeat the pair.
fn query(
    pairs: &[QueryPair],
    values: CallValues<'_>,
    transform: Transform<'_>,
) -> Result<String, ToolError> {
    let mut query = Vec::new();
    for QueryPair { name, value } in pairs {
        let Some(template) = value else {
            query.push(name.clone());
            continue;
        };
        for value in each(template, values, Destination::Line, transform)? {
            query.push(format!("{name}={value}"));
        }
    }
    Ok(query.join("&"))
}

/// The texts of a template in a query or a form: one, none, or one for each item of a list.
pub(super) fn each(
    template: &Template,
    values: CallValues<'_>,
    destination: Destination,
    transform: Transform<'_>,
) -> Result<Vec<String>, ToolError> {
    if let Some(reference @ Reference::Arg(name)) = template.as_single_reference()
        && let Some(list) = values.argument(name).filter(|value| value.kind() == Kind::Array)
    {
        let mut texts = Vec::new();
        for item in list.items().filter(|item| item.kind() != Kind::Null) {
            let text = text_of(item).into_owned();
            values.refuse_control(name, &text, destination)?;
            texts.push(transform(reference, &text));
        }
        return Ok(texts);
    }
    let mut filled = String::new();
    for piece in &template.pieces {
        match piece {
            Piece::Literal(literal) => filled.push_str(literal),
            Piece::Reference(reference) => {
                let Some(text) = values.text(reference, destination)? else {
                    return Ok(Vec::new());
                };
                filled.push_str(&transform(reference, &text));
            }
        }
    }
    Ok(vec![filled])
}
