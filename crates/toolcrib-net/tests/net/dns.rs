//! Names: every resolution is checked anew, and only checked addresses are dialled.

use std::sync::Arc;
use std::time::Duration;

use toolcrib_net::{AddressKind, AddressPolicy, Client, Error, Limits};

use crate::server::{ScriptedResolver, Server, answer, get, local, quick};

/// Whether nobody connects within a short time.
async fn nobody_connects(listener: &tokio::net::TcpListener) -> bool {
    tokio::time::timeout(Duration::from_millis(200), listener.accept()).await.is_err()
}

#[tokio::test]
async fn a_name_that_resolves_to_an_allowed_address_is_reached_by_its_name() {
    let server = Server::start(|_| async { answer(200, &[], "here") }).await;
    let script = ScriptedResolver::new(&[&["127.0.0.1"]]);
    let client = local().resolver(Arc::clone(&script) as _).build();
    let url = format!("http://tickets.example:{}/a?b=c", server.address.port());
    let response = get(&client, &url).await.unwrap();
    assert_eq!((response.status.as_u16(), &*response.body), (200, &b"here"[..]));
    let seen = server.seen();
    assert_eq!(seen[0].line, "GET /a?b=c");
    assert_eq!(seen[0].headers["host"], format!("tickets.example:{}", server.address.port()));
    assert_eq!(seen[0].headers["user-agent"], concat!("toolcrib/", env!("CARGO_PKG_VERSION")));
    assert_eq!(script.asked(), ["tickets.example"]);
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_never_dialled() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for address in ["127.0.0.1", "::ffff:127.0.0.1", "::1", "0.0.0.0", "::"] {
        let client = Client::builder()
            .resolver(ScriptedResolver::new(&[&[address]]))
            .limits(quick())
            .build();
        let error = get(&client, &format!("http://rebind.example:{port}/")).await.unwrap_err();
        let Error::Address { host, kind, .. } = &error else { panic!("{address}: {error:?}") };
        assert_eq!((host.as_str(), *kind), ("rebind.example", AddressKind::Loopback), "{address}");
        assert!(error.nothing_was_sent());
    }
    assert!(nobody_connects(&listener).await);
    let client = Client::builder().resolver(ScriptedResolver::new(&[&["10.0.0.7"]])).build();
    let error = get(&client, "http://rebind.example/").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`rebind.example` has the address 10.0.0.7, a private address; connections to it are not allowed"
    );
}

/// The second answer is what an attacker's DNS returns after the check. It is never requested: the connection goes to
/// the checked address, which does not answer here.
#[tokio::test]
async fn a_name_that_rebinds_between_check_and_connection_gains_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = ScriptedResolver::new(&[&["127.0.0.2"], &["127.0.0.1"]]);
    // 127.0.0.2 represents the public address, 127.0.0.1 the private one.
    let policy = AddressPolicy::public().allow("127.0.0.2/32".parse().unwrap());
    let client = Client::builder()
        .addresses(policy)
        .resolver(Arc::clone(&script) as _)
        .limits(quick())
        .build();
    let url = format!("http://rebind.example:{port}/");
    let first = get(&client, &url).await.unwrap_err();
    assert!(matches!(first, Error::Connect { .. }), "{first}");
    assert_eq!(script.asked().len(), 1, "one request resolves once");
    // The next request gets the private address, and is refused before it dials.
    for _ in 0..3 {
        let next = get(&client, &url).await.unwrap_err();
        assert!(matches!(next, Error::Address { .. }), "{next}");
    }
    assert!(nobody_connects(&listener).await);
}

#[tokio::test]
async fn only_the_checked_addresses_of_a_mixed_answer_are_dialled() {
    let private = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = private.local_addr().unwrap().port();
    let policy = AddressPolicy::public().allow("127.0.0.2/32".parse().unwrap());
    let script = ScriptedResolver::new(&[&["127.0.0.1", "::1", "127.0.0.2", "10.0.0.1"]]);
    let client = Client::builder().addresses(policy).resolver(script).limits(quick()).build();
    let error = get(&client, &format!("http://mixed.example:{port}/")).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    assert!(nobody_connects(&private).await);
}

#[tokio::test]
async fn a_redirect_to_a_name_that_turned_private_is_refused() {
    let server =
        Server::start(|_| async { answer(302, &[("location", "http://b.example/")], "") }).await;
    let policy = AddressPolicy::public().allow("127.0.0.1/32".parse().unwrap());
    let script = ScriptedResolver::new(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let client = Client::builder().addresses(policy).resolver(script).limits(quick()).build();
    let error =
        get(&client, &format!("http://a.example:{}/", server.address.port())).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "after 1 redirect(s): `b.example` has the address 169.254.169.254, a link-local address; \
         connections to it are not allowed"
    );
    assert!(!error.nothing_was_sent());
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_name_without_addresses_differs_from_a_refused_one() {
    let client = Client::builder().resolver(ScriptedResolver::new(&[&[]])).build();
    let error = get(&client, "https://nowhere.example/").await.unwrap_err();
    assert!(matches!(error, Error::Unresolved { .. }));
    assert_eq!(
        error.to_string(),
        "the name `nowhere.example` cannot be resolved: it has no address"
    );
}

/// The machine's own resolver, with the one name that needs no network.
#[tokio::test]
async fn the_systems_resolver_is_checked_like_any_other() {
    let error = get(&Client::new(), "http://localhost:9/").await.unwrap_err();
    let Error::Address { kind: AddressKind::Loopback, .. } = error else { panic!("{error}") };
    let server = Server::start(|_| async { answer(200, &[], "here") }).await;
    let client = local().build();
    let response = get(&client, &format!("http://localhost:{}/", server.address.port())).await;
    assert_eq!(response.unwrap().body, b"here");
}

/// A resolver that never answers takes the connect timeout and no longer.
#[tokio::test]
async fn a_hanging_resolver_times_out() {
    struct Hanging;
    impl toolcrib_net::Resolver for Hanging {
        fn resolve<'a>(
            &'a self,
            _: &'a str,
        ) -> toolcrib_net::BoxFuture<'a, std::io::Result<Vec<std::net::IpAddr>>> {
            Box::pin(std::future::pending())
        }
    }
    let mut limits = Limits::default();
    limits.connect = Duration::from_millis(100);
    let client = Client::builder().resolver(Arc::new(Hanging)).limits(limits).build();
    let error = get(&client, "http://slow.example/").await.unwrap_err();
    assert!(matches!(error, Error::Timeout { connecting: true, .. }), "{error:?}");
    assert_eq!(error.to_string(), "no connection within 100ms");
}
