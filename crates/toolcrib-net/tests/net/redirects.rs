//! Redirects over real sockets: limited in number, checked each time, never with credentials.

use toolcrib_net::header::{AUTHORIZATION, HeaderName, HeaderValue};
use toolcrib_net::{
    AddressPolicy, Client, Error, Method, NamedBy, RedirectRefusal, Request, StatusCode, Target,
};

use crate::server::{Server, answer, get, local, quick};

/// Redirects `/n` to `/n-1`, and answers `/0`.
async fn countdown() -> Server {
    Server::start(|asked| async move {
        let left: u32 = asked.trim_start_matches('/').parse().unwrap_or(0);
        if left == 0 {
            return answer(200, &[], "arrived");
        }
        answer(302, &[("location", &format!("/{}", left - 1))], "on")
    })
    .await
}

#[tokio::test]
async fn five_redirects_are_followed_and_the_sixth_is_not() {
    let server = countdown().await;
    let client = local().build();
    let response = get(&client, &server.url("/5")).await.unwrap();
    assert_eq!((&*response.body, response.redirects), (&b"arrived"[..], 5));
    assert_eq!(response.target.url().path(), "/0");
    let error = get(&client, &server.url("/6")).await.unwrap_err();
    let Error::Redirected { redirects: 5, source } = error else { panic!("{error:?}") };
    assert!(matches!(*source, Error::Redirect { reason: RedirectRefusal::TooMany(5), .. }));
}

#[tokio::test]
async fn credentials_are_sent_to_the_first_url_only() {
    let other = Server::start(|_| async { answer(200, &[], "other") }).await;
    let elsewhere = other.url("/landed");
    let server = Server::start(move |asked| {
        let elsewhere = elsewhere.clone();
        async move {
            match asked.as_str() {
                "/same" => answer(302, &[("location", "/next")], ""),
                "/next" => answer(200, &[], "next"),
                _ => answer(302, &[("location", &elsewhere)], ""),
            }
        }
    })
    .await;
    let client = local().build();
    for path in ["/same", "/other"] {
        let mut key = HeaderValue::from_static("k3y");
        key.set_sensitive(true);
        let target = Target::parse(&server.url(path), NamedBy::Operator).unwrap();
        let request = Request::new(Method::GET, target)
            .header(AUTHORIZATION, HeaderValue::from_static("Bearer t0ken"))
            .header(HeaderName::from_static("x-api-key"), key)
            .header(HeaderName::from_static("x-tenant"), HeaderValue::from_static("acme"));
        client.send(request).await.unwrap();
    }
    let seen = server.seen();
    let has = |index: usize, name: &str| seen[index].headers.contains_key(name);
    assert_eq!(
        seen.iter().map(|one| one.line.as_str()).collect::<Vec<_>>(),
        ["GET /same", "GET /next", "GET /other"]
    );
    for name in ["authorization", "x-api-key", "x-tenant"] {
        assert!(has(0, name) && has(2, name), "{name} goes to the first URL");
    }
    assert!(!has(1, "authorization") && !has(1, "x-api-key") && has(1, "x-tenant"));
    let landed = &other.seen()[0].headers;
    for name in ["authorization", "x-api-key", "x-tenant", "referer", "cookie"] {
        assert!(!landed.contains_key(name), "{name}: {landed:?}");
    }
}

#[tokio::test]
async fn a_cookie_that_is_set_is_never_sent_back() {
    let server = Server::start(|asked| async move {
        let next = if asked == "/a" { "/b" } else { "" };
        let status = if next.is_empty() { 200 } else { 302 };
        answer(status, &[("set-cookie", "session=1"), ("location", next)], "")
    })
    .await;
    let client = local().build();
    get(&client, &server.url("/a")).await.unwrap();
    get(&client, &server.url("/a")).await.unwrap();
    assert_eq!(server.seen().len(), 4);
    assert!(server.seen().iter().all(|one| !one.headers.contains_key("cookie")));
}

#[tokio::test]
async fn a_body_is_never_taken_to_another_server() {
    let other = Server::start(|_| async { answer(200, &[], "other") }).await;
    let elsewhere = other.url("/");
    let server = Server::start(move |asked| {
        let elsewhere = elsewhere.clone();
        async move {
            let to = if asked == "/stay" { "/moved" } else { &elsewhere };
            let status = if asked == "/moved" { 200 } else { 307 };
            answer(status, &[("location", to)], "")
        }
    })
    .await;
    let client = local().build();
    let post = |path: &str| {
        let target = Target::parse(&server.url(path), NamedBy::Operator).unwrap();
        client.send(Request::new(Method::POST, target).body("card=4111"))
    };
    assert_eq!(post("/stay").await.unwrap().redirects, 1);
    assert_eq!(server.seen()[1].body, "card=4111");
    let error = post("/go").await.unwrap_err();
    assert!(
        matches!(error, Error::Redirect { reason: RedirectRefusal::BodyElsewhere { .. }, .. }),
        "{error}"
    );
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn redirects_into_the_local_network_are_refused_by_name_and_by_address() {
    for (location, expected) in [
        ("http://169.254.169.254/latest/meta-data/", "link-local"),
        ("http://[::1]:80/", "loopback"),
        ("http://2130706434/", "127.0.0.2 is a loopback address"),
        ("http://localhost/", "refused"),
        ("http://metadata.google.internal/", "refused"),
        ("http://admin/", "refused"),
        ("file:///etc/passwd", "not `file`"),
        ("gopher://127.0.0.1:6379/_FLUSHALL", "not `gopher`"),
        ("http://user@127.0.0.1/", "user name"),
        ("//\\127.0.0.1/", "`Location` is not a URL"),
    ] {
        let server =
            Server::start(move |_| async move { answer(301, &[("location", location)], "") }).await;
        // Only this server.
        let policy = AddressPolicy::public().allow("127.0.0.1/32".parse().unwrap());
        let client = Client::builder().addresses(policy).limits(quick()).build();
        let error = get(&client, &server.url("/")).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{location}: {error}");
        assert_eq!(server.seen().len(), 1, "{location}");
    }
}

#[tokio::test]
async fn an_expected_redirect_is_the_response() {
    let server = Server::start(|_| async { answer(302, &[("location", "/x")], "see /x") }).await;
    let target = Target::parse(&server.url("/"), NamedBy::Operator).unwrap();
    let request = Request::new(Method::GET, target).keep(StatusCode::FOUND);
    let response = local().build().send(request).await.unwrap();
    assert_eq!((response.status.as_u16(), response.redirects), (302, 0));
    let plain = Server::start(|_| async { answer(304, &[], "") }).await;
    assert_eq!(get(&local().build(), &plain.url("/")).await.unwrap().status.as_u16(), 304);
}
