//! Percent-encoding of values that are put into URLs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the characters that mean nothing in any part of a URL: RFC 3986's "unreserved".
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text as one component of a URL: a segment of a path, or a name or a value of a query.
///
/// Nothing of it can end the component: `/`, `?`, `#`, `&`, `=`, `+` and `%` are encoded, too. Only
/// `.` and `..` still mean something as a whole segment; no encoding changes that.
///
/// ```
/// assert_eq!(toolcrib_net::encode_component("a/b?c=%2f ä"), "a%2Fb%3Fc%3D%252f%20%C3%A4");
/// ```
pub fn encode_component(text: &str) -> String {
    utf8_percent_encode(text, COMPONENT).to_string()
}
