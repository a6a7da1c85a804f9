//! URLs from any text: refused, or read alike by every parser and never leading to an internal host.

use std::net::{Ipv4Addr, Ipv6Addr};

use toolcrib_net::{AddressPolicy, Host, NamedBy, Target, encode_component};

/// Any bytes as a URL, and as a value that is inserted into one. Promises:
///
/// - An accepted URL is `http` or `https`, has a host and no user name, and contains nothing that parsers drop, trim or
///   rewrite; a naive reading of its text finds the same host.
/// - A host that a model may name is a public name or an address, and the address is not private however it is spelt,
///   by an independent table.
/// - An accepted URL is accepted again, unchanged; a URL that the operator may not write is refused for a model, too.
/// - A value is one segment and one value of a query, whatever it contains.
pub fn check_url(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let by_operator = Target::parse(text, NamedBy::Operator);
    match Target::parse(text, NamedBy::Anybody) {
        Ok(target) => {
            assert!(by_operator.is_ok(), "{text:?} is for models only");
            assert_public_name(&target);
        }
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
    }
    if let Ok(target) = &by_operator {
        assert_plain(text, target);
        assert_address(target);
        let again = Target::parse(target.url().as_str(), NamedBy::Operator);
        assert_eq!(again.as_ref(), Ok(target), "{text:?} changes when it is read again");
        assert!(!format!("{target:?}").contains('?'), "{target:?} shows its query");
    }
    assert_component(text);
}

/// The host that a naive parser finds, which knows only where an authority begins and ends.
fn assert_plain(text: &str, target: &Target) {
    let forbidden = |c: char| c.is_control() || c.is_whitespace() || c == '\\';
    assert!(!text.contains(forbidden), "{text:?} passes");
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    assert_eq!(scheme.to_ascii_lowercase(), target.url().scheme());
    assert!(["http", "https"].contains(&target.url().scheme()), "{text:?}");
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    assert!(!authority.is_empty() && !authority.contains('@'), "{text:?} passes");
    assert!(target.url().username().is_empty() && target.url().password().is_none());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let name = authority.rsplit_once(':').map_or(authority, |(name, _)| name);
    if let (Some(Host::Domain(host)), true) = (target.url().host(), name.bytes().all(plain)) {
        assert_eq!(name.to_ascii_lowercase(), host, "{text:?} has two hosts");
    }
}

fn assert_public_name(target: &Target) {
    let Some(Host::Domain(name)) = target.url().host() else { return };
    let name = name.trim_end_matches('.');
    assert!(name.contains('.'), "{name} is a name of the local network");
    let inside = ["local", "internal", "localhost", "svc", "lan", "home.arpa"];
    // Whole labels: `chome.arpa` is a different domain.
    let ends = |end: &&str| {
        name.strip_suffix(*end).is_some_and(|rest| matches!(rest.chars().last(), None | Some('.')))
    };
    assert!(!inside.iter().any(ends), "{name} is a name of a network inside");
}

/// A literal address is public exactly if the standard library's methods say so, as far as it has any.
fn assert_address(target: &Target) {
    let Some(address) = target.literal_address() else { return };
    let allowed = AddressPolicy::public().check(address).is_ok();
    let inside = match address.to_canonical() {
        std::net::IpAddr::V4(address) => not_public(address),
        std::net::IpAddr::V6(address) => not_public_6(address),
    };
    assert!(!(allowed && inside), "{address} may be connected to");
}

fn not_public(address: Ipv4Addr) -> bool {
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_unspecified()
}

fn not_public_6(address: Ipv6Addr) -> bool {
    address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || address.to_ipv4().is_some_and(not_public)
}

fn assert_component(text: &str) {
    let value = encode_component(text);
    let url = format!("https://api.example:8443/a/x{value}/b?q={value}&r=1");
    let Ok(target) = Target::parse(&url, NamedBy::Operator) else {
        assert!(url.len() > toolcrib_net::URL_MAX_BYTES, "{url} is refused");
        return;
    };
    let url = target.url();
    assert_eq!(
        (url.host_str(), url.port(), url.fragment()),
        (Some("api.example"), Some(8443), None)
    );
    let segments: Vec<_> = url.path_segments().into_iter().flatten().collect();
    assert_eq!(segments, ["a", &format!("x{value}"), "b"]);
    let pairs: Vec<_> = url.query_pairs().collect();
    assert_eq!(pairs.len(), 2, "{text:?} makes parameters");
    assert_eq!((pairs[0].1.as_ref(), pairs[1].1.as_ref()), (text, "1"));
}
