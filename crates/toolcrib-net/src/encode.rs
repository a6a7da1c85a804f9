//! Percent-encoding of values that are put into URLs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything except RFC 3986's "unreserved" characters, which have no special meaning in any part of a URL.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes a text as one component of a URL: a segment of a path, or a name or value of a query.
///
/// Nothing in it can end the component: `/`, `?`, `#`, `&`, `=`, `+` and `%` are encoded, too. Only `.` and `..` still
/// have a special meaning as a complete segment; no encoding changes that.
///
/// ```
/// assert_eq!(toolcrib_net::encode_component("a/b?c=%2f ä"), "a%2Fb%3Fc%3D%252f%20%C3%A4");
/// ```
pub fn encode_component(text: &str) -> String {
    utf8_percent_encode(text, COMPONENT).to_string()
}
