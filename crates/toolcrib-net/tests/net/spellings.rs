//! Spellings of URLs: which are refused by their text, which by their address, and which are allowed.

use std::sync::Arc;

use toolcrib_net::{AddressKind, Client, Error, Host, NamedBy, Request, Target};

use crate::server::{ScriptedResolver, quick};

/// What happens to a URL that anybody may have chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Refused by its text, before anything is parsed or resolved.
    Text,
    /// Refused by its host name.
    Name,
    /// Refused by its literal address.
    Literal(AddressKind),
    /// Its host name is resolved, and the address decides.
    Resolved,
    /// A literal address of the public internet.
    Public,
}

use AddressKind::{
    LinkLocal, Loopback, Metadata, Multicast, Private, Reserved, Shared, Translated,
};
use Verdict::{Literal, Name, Public, Resolved, Text};

const URLS: &[(&str, Verdict)] = &[
    // Schemes.
    ("file:///etc/passwd", Text),
    ("FILE:///etc/passwd", Text),
    ("gopher://127.0.0.1:6379/_x", Text),
    ("dict://127.0.0.1:11211/stat", Text),
    ("ftp://example.com/", Text),
    ("ldap://example.com/", Text),
    ("data:text/plain,hello", Text),
    ("javascript:alert(1)", Text),
    ("jar:http://example.com!/", Text),
    ("ws://example.com/", Text),
    ("httpx://example.com/", Text),
    ("http+unix://%2Fvar%2Frun%2Fdocker.sock/", Text),
    ("view-source:http://example.com/", Text),
    ("example.com", Text),
    ("//example.com/", Text),
    ("/etc/passwd", Text),
    ("", Text),
    ("http", Text),
    ("http:", Text),
    ("HTTP://example.com/", Resolved),
    ("hTTpS://example.com/", Resolved),
    // Slashes that parsers add, drop or convert.
    ("http:example.com", Text),
    ("http:/example.com", Text),
    ("http://", Text),
    ("http:///example.com/", Text),
    ("http:////example.com/", Text),
    ("https:///169.254.169.254/", Text),
    ("http:\\\\example.com\\", Text),
    ("http://example.com\\@127.0.0.1/", Text),
    ("http:/\\127.0.0.1/", Text),
    ("http://?", Text),
    ("http://#", Text),
    ("http://:80/", Text),
    ("http://?@127.0.0.1/", Text),
    // User names and passwords.
    ("http://user@example.com/", Text),
    ("http://user:pass@example.com/", Text),
    ("http://@example.com/", Text),
    ("http://:@example.com/", Text),
    ("http://example.com@127.0.0.1/", Text),
    ("http://example.com:80@127.0.0.1/", Text),
    ("http://example.com%40@127.0.0.1/", Text),
    ("http://127.0.0.1@example.com/", Text),
    ("http://a@b@example.com/", Text),
    // Characters that parsers drop, and spaces of every kind.
    (" http://example.com/", Text),
    ("http://example.com/ ", Text),
    ("http://example.com/a b", Text),
    ("http://exa mple.com/", Text),
    ("\thttp://example.com/", Text),
    ("ht\ntp://example.com/", Text),
    ("http://127.0\t.0.1/", Text),
    ("http://example.com/\r\nX-Injected: 1", Text),
    ("http://example.com/\u{0}", Text),
    ("http://example.com/\u{7f}", Text),
    ("http://example.com/\u{85}", Text),
    ("http://example.com/\u{a0}", Text),
    ("http://example.com/\u{2028}", Text),
    ("http://example.com/\u{3000}", Text),
    ("\u{feff}http://example.com/", Text),
    ("http://example.com/%0d%0aX-Injected:%201", Resolved),
    // Hosts that every parser rejects.
    ("http://[::1/", Text),
    ("http://[::1]x/", Text),
    ("http://[fe80::1%25eth0]/", Text),
    ("http://[fe80::1%eth0]/", Text),
    ("http://[]/", Text),
    ("http://256.256.256.256/", Text),
    ("http://1.2.3.4.5/", Text),
    ("http://0x100000000/", Text),
    ("http://4294967296/", Text),
    ("http://127.0.0.0x100/", Text),
    ("http://ex%61mple%2ecom%2f/", Text),
    ("http://exa<mple.com/", Text),
    ("http://example.com:99999/", Text),
    ("http://example.com:8x/", Text),
    ("http://xn--/", Text),
    // Loopback.
    ("http://127.0.0.1/", Literal(Loopback)),
    ("http://127.0.0.1:6379/", Literal(Loopback)),
    ("http://127.1/", Literal(Loopback)),
    ("http://127.0.1/", Literal(Loopback)),
    ("http://127.255.255.255/", Literal(Loopback)),
    ("http://2130706433/", Literal(Loopback)),
    ("http://0x7f000001/", Literal(Loopback)),
    ("http://0x7f.1/", Literal(Loopback)),
    ("http://0X7F.0x0.0.01/", Literal(Loopback)),
    ("http://017700000001/", Literal(Loopback)),
    ("http://0177.0.0.1/", Literal(Loopback)),
    ("http://127.0.0.1./", Literal(Loopback)),
    ("http://%31%32%37.0.0.1/", Literal(Loopback)),
    ("http://127%2e0%2e0%2e1/", Literal(Loopback)),
    ("http://\u{ff11}\u{ff12}\u{ff17}.0.0.1/", Literal(Loopback)),
    ("http://127\u{3002}0\u{3002}0\u{3002}1/", Literal(Loopback)),
    ("http://\u{2460}\u{2461}\u{2466}.0.0.1/", Literal(Loopback)),
    ("http://127.0.0.\u{ad}1/", Literal(Loopback)),
    ("http://0/", Literal(Loopback)),
    ("http://0.0.0.0:8080/", Literal(Loopback)),
    ("http://0x0/", Literal(Loopback)),
    ("http://[::1]/", Literal(Loopback)),
    ("http://[0:0:0:0:0:0:0:1]:80/", Literal(Loopback)),
    ("http://[::]/", Literal(Loopback)),
    ("http://[::ffff:127.0.0.1]/", Literal(Loopback)),
    ("http://[::ffff:7f00:1]/", Literal(Loopback)),
    ("http://[0:0:0:0:0:ffff:127.0.0.1]/", Literal(Loopback)),
    ("http://[::127.0.0.1]/", Literal(Translated)),
    ("http://[64:ff9b::127.0.0.1]/", Literal(Translated)),
    ("http://[2002:7f00:1::]/", Literal(Translated)),
    // Private networks.
    ("http://10.0.0.1/", Literal(Private)),
    ("http://10.1/", Literal(Private)),
    ("http://0xa000001/", Literal(Private)),
    ("http://012.0.0.1/", Literal(Private)),
    ("http://172.16.0.1/", Literal(Private)),
    ("http://172.31.255.255/", Literal(Private)),
    ("http://192.168.0.1/", Literal(Private)),
    ("http://3232235521/", Literal(Private)),
    ("http://[fc00::1]/", Literal(Private)),
    ("http://[fd12:3456:789a::1]/", Literal(Private)),
    ("http://[fec0::1]/", Literal(Private)),
    ("http://[::ffff:192.168.0.1]/", Literal(Private)),
    ("http://100.64.0.1/", Literal(Shared)),
    // Metadata services.
    ("http://169.254.169.254/latest/meta-data/", Literal(LinkLocal)),
    ("http://169.254.43518/", Literal(LinkLocal)),
    ("http://2852039166/", Literal(LinkLocal)),
    ("http://0xa9fea9fe/", Literal(LinkLocal)),
    ("http://0251.0376.0251.0376/", Literal(LinkLocal)),
    ("http://[::ffff:a9fe:a9fe]/", Literal(LinkLocal)),
    ("http://169.254.170.2/v2/credentials", Literal(LinkLocal)),
    ("http://[fe80::1]/", Literal(LinkLocal)),
    ("http://[fd00:ec2::254]/", Literal(Private)),
    ("http://100.100.100.200/", Literal(Shared)),
    ("http://168.63.129.16/", Literal(Metadata)),
    ("http://192.0.0.192/", Literal(Reserved)),
    // Other addresses that are not public.
    ("http://192.0.2.1/", Literal(Reserved)),
    ("http://198.18.0.1/", Literal(Reserved)),
    ("http://198.51.100.1/", Literal(Reserved)),
    ("http://203.0.113.1/", Literal(Reserved)),
    ("http://192.88.99.1/", Literal(Translated)),
    ("http://224.0.0.1/", Literal(Multicast)),
    ("http://239.255.255.250:1900/", Literal(Multicast)),
    ("http://255.255.255.255/", Literal(Reserved)),
    ("http://240.0.0.1/", Literal(Reserved)),
    ("http://[ff02::1]/", Literal(Multicast)),
    ("http://[100::1]/", Literal(Reserved)),
    ("http://[2001:db8::1]/", Literal(Reserved)),
    ("http://[2001::1]/", Literal(Reserved)),
    ("http://[3fff::1]/", Literal(Reserved)),
    ("http://[64:ff9b:1::1]/", Literal(Translated)),
    ("http://[5f00::1]/", Literal(Reserved)),
    // Names of local networks.
    ("http://localhost/", Name),
    ("http://LOCALHOST:6379/", Name),
    ("http://localhost./", Name),
    ("http://l\u{24de}calhost/", Name),
    ("http://local\u{ad}host/", Name),
    ("http://foo.localhost/", Name),
    ("http://ip6-localhost/", Name),
    ("http://db/", Name),
    ("http://kubernetes/", Name),
    ("http://printer.local/", Name),
    ("http://metadata.google.internal/computeMetadata/v1/", Name),
    ("http://METADATA.GOOGLE.INTERNAL./", Name),
    ("http://metadata%2egoogle%2einternal/", Name),
    ("http://metadata\u{3002}google\u{ff0e}internal/", Name),
    ("http://host.docker.internal:2375/", Name),
    ("http://kubernetes.default.svc/", Name),
    ("http://kubernetes.default.svc.cluster.local/", Name),
    ("http://router.lan/", Name),
    ("http://nas.home.arpa/", Name),
    ("http://wiki.corp/", Name),
    ("http://example..com/", Name),
    ("http://.example.com/", Name),
    // Allowed; names that resolve to something private are refused after resolution.
    ("http://example.com", Resolved),
    ("http://example.com./", Resolved),
    ("https://example.com:8443/a/../b?c=d#e", Resolved),
    ("https://example.com/?next=http://127.0.0.1/", Resolved),
    ("https://example.com/@127.0.0.1/", Resolved),
    ("https://example.com#@127.0.0.1/", Resolved),
    ("https://b\u{fc}cher.example/", Resolved),
    ("https://xn--bcher-kva.example/", Resolved),
    ("http://127.0.0.1.nip.io/", Resolved),
    ("http://localtest.me/", Resolved),
    ("http://1.2.3.4.example.com/", Resolved),
    ("http://1.1.1.1/", Public),
    ("http://16843009/", Public),
    ("http://172.32.0.1/", Public),
    ("http://[2606:4700:4700::1111]/", Public),
    ("http://[::ffff:8.8.8.8]/", Public),
];

#[tokio::test]
async fn every_spelling_gets_its_expected_verdict() {
    assert!(URLS.len() >= 150);
    for (url, fate) in URLS {
        let target = match Target::parse(url, NamedBy::Anybody) {
            Ok(target) => target,
            Err(refusal) => {
                let by_name = matches!(refusal, toolcrib_net::UrlRefusal::Host { .. });
                let expected = if by_name { Name } else { Text };
                assert_eq!(*fate, expected, "{url:?}: {refusal}");
                assert!(!refusal.to_string().contains(['\n', '\r', '\t', '\0']), "{refusal:?}");
                continue;
            }
        };
        if *fate == Public {
            // Nothing here connects to the internet; the policy shows that it would be allowed.
            let address = target.literal_address().unwrap();
            assert_eq!(toolcrib_net::AddressPolicy::public().check(address), Ok(()), "{url:?}");
            continue;
        }
        // Every name resolves to a forbidden address.
        let script = ScriptedResolver::new(&[&["169.254.169.254"]]);
        let client = Client::builder().resolver(Arc::clone(&script) as _).limits(quick()).build();
        let request = Request::new(toolcrib_net::Method::GET, target.clone());
        let error = client.send(request).await.unwrap_err();
        let Error::Address { kind, .. } = error else { panic!("{url:?}: {error}") };
        match fate {
            Literal(expected) => {
                assert_eq!(kind, *expected, "{url:?}");
                assert!(script.asked().is_empty(), "{url:?} was resolved");
            }
            Resolved => {
                assert_eq!(kind, LinkLocal, "{url:?}");
                assert_eq!(script.asked(), [target.host()], "{url:?}");
                assert!(matches!(target.url().host(), Some(Host::Domain(_))), "{url:?}");
            }
            other => panic!("{url:?} passed as text, and should be {other:?}"),
        }
    }
}

/// The operator may name a host of the local network, but its addresses are still checked.
#[tokio::test]
async fn an_operators_name_is_accepted_but_its_address_is_checked() {
    for url in ["http://tickets/", "http://vault.internal/", "http://printer.local/"] {
        let target = Target::parse(url, NamedBy::Operator).unwrap();
        let client = Client::builder()
            .resolver(ScriptedResolver::new(&[&["10.0.0.9"]]))
            .limits(quick())
            .build();
        let request = Request::new(toolcrib_net::Method::GET, target);
        let error = client.send(request).await.unwrap_err();
        assert!(matches!(error, Error::Address { kind: Private, .. }), "{url}: {error}");
    }
    for url in ["ftp://tickets/", "http://u@tickets/", "http:tickets", "http://tick ets/"] {
        assert!(Target::parse(url, NamedBy::Operator).is_err(), "{url}");
    }
}
