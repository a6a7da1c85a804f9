//! Properties of URL checks and of encoding, over hostile texts.

use proptest::prelude::*;
use toolcrib_net::{Host, NamedBy, Target, encode_component};

/// Pieces with a special meaning for some URL parser.
fn hurtful() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("http://"),
        Just("https:"),
        Just("//"),
        Just("/"),
        Just("\\"),
        Just("@"),
        Just(":"),
        Just("?"),
        Just("#"),
        Just("["),
        Just("]"),
        Just("::1"),
        Just("%2e"),
        Just("%2f"),
        Just("%40"),
        Just("%"),
        Just("."),
        Just(".."),
        Just("127.0.0.1"),
        Just("0x7f"),
        Just("example.com"),
        Just("localhost"),
        Just("\u{3002}"),
        Just("\u{ff0f}"),
        Just("\u{ff1a}"),
        Just("\u{ad}"),
        Just("\u{2460}"),
        Just("\t"),
        Just("\n"),
        Just(" "),
        Just("a"),
        Just("ß"),
        Just("xn--"),
    ];
    let pieces = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    prop_oneof![pieces.clone(), pieces.prop_map(|rest| format!("http://{rest}")), ".{0,40}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..Default::default() })]

    /// An accepted text has one host for every parser: the text between `//` and the next `/`, `?` or `#`, as in RFC
    /// 3986.
    #[test]
    fn accepted_urls_mean_the_same_to_a_naive_parser(text in hurtful()) {
        let Ok(target) = Target::parse(&text, NamedBy::Anybody) else { return Ok(()) };
        let url = target.url();
        prop_assert!(["http", "https"].contains(&url.scheme()));
        prop_assert!(url.username().is_empty() && url.password().is_none());
        let rest = text.split_once("://").map(|(_, rest)| rest).unwrap();
        let authority = rest.split(['/', '?', '#']).next().unwrap();
        prop_assert!(!authority.contains(['@', '\\']) && !authority.is_empty());
        let plain = authority.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte));
        if let (Some(Host::Domain(name)), true) = (url.host(), plain) {
            let written = authority.split(':').next().unwrap();
            prop_assert_eq!(written.to_ascii_lowercase(), name);
        }
        // An accepted URL is accepted again, unchanged.
        let again = Target::parse(url.as_str(), NamedBy::Anybody);
        prop_assert_eq!(again.as_ref().map(|again| again.url().as_str()), Ok(url.as_str()));
    }

    /// Whatever the value, scheme, host, port, the other segments and the query stay unchanged.
    #[test]
    fn an_encoded_value_is_one_segment_or_one_value(value in hurtful()) {
        let encoded = encode_component(&value);
        prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
        let text = format!("https://api.example:8443/a/x{encoded}/b?q={encoded}&r=1");
        let target = Target::parse(&text, NamedBy::Operator).unwrap();
        let url = target.url();
        prop_assert_eq!((url.host_str(), url.port(), url.fragment()), (Some("api.example"), Some(8443), None));
        let segments: Vec<_> = url.path_segments().unwrap().collect();
        let expected = format!("x{encoded}");
        prop_assert_eq!(segments, ["a", expected.as_str(), "b"]);
        let pairs: Vec<_> = url.query_pairs().collect();
        prop_assert_eq!(&pairs[0].1, value.as_str());
        prop_assert_eq!((&*pairs[1].0, &*pairs[1].1), ("r", "1"));
        prop_assert_eq!(pairs.len(), 2);
    }
}
