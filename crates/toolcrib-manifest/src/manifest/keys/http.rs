//! The keys of requests.

use super::table;
use crate::declaration::HttpMethod;
use crate::fields::Expected::{Any, Choice, List, MappingLike, Text, TextMapping, Texts};
use crate::fields::{Keys, optional, required};

/// What to do about a certificate that the machine does not know.
const CERTIFICATES: &str = "certificates are always checked: to trust an authority of your own, add it to those of the machine, or \
     name a file with all of them in the server's variable `SSL_CERT_FILE`";

/// A request.
pub(in crate::manifest) const HTTP: Keys = Keys {
    what: "`http`",
    table: &[
        optional("method", Choice(&METHODS)),
        required("url", Text, "add the URL of the request: url: https://tickets.example/api"),
        optional("query", TextMapping),
        optional("headers", TextMapping),
        optional("auth", MappingLike("{bearer: \"${secret.token}\"}")),
        optional("json", Any),
        optional("form", TextMapping),
        optional("text", Text),
        optional("expect", MappingLike("{status: [200]}")),
        optional("select", Text),
        optional("allow_private", Texts),
    ],
    instead: &[
        ("allow", "write `allow_private: [10.20.0.0/16]`"),
        ("authorization", "write `auth: {bearer: \"${secret.token}\"}`"),
        ("bearer", "write `auth: {bearer: \"${secret.token}\"}`"),
        ("body", "write `json: {…}`, `form: {…}` or `text: …`"),
        ("ca", CERTIFICATES),
        ("cert", CERTIFICATES),
        ("data", "write `json: {…}`, `form: {…}` or `text: …`"),
        ("insecure", CERTIFICATES),
        ("host", "the host is a part of `url`"),
        ("output", "`output` belongs beside `http`, in the tool"),
        ("params", "write `query: {name: value}`"),
        ("path", "the path is a part of `url`"),
        ("retry", "`retry` belongs beside `http`, in the tool"),
        ("status", "write `expect: {status: [200]}`"),
        ("timeout", "the time limit belongs beside `http`: `limits: {timeout: <time>}`"),
        ("tls", CERTIFICATES),
        ("verify", CERTIFICATES),
        ("verify_ssl", CERTIFICATES),
    ],
};

/// The credentials of a request: one of these.
pub(in crate::manifest) const HTTP_AUTH: Keys = Keys {
    what: "`auth`",
    table: &[
        optional("bearer", Text),
        optional("basic", MappingLike("{user: me, password: \"${secret.password}\"}")),
        optional("header", MappingLike("{name: X-Api-Key, value: \"${secret.key}\"}")),
    ],
    instead: &[
        ("password", "write `basic: {user: …, password: …}`"),
        ("query", "write it in `query` beside `auth`: it is removed from results"),
        ("token", "write `bearer: \"${secret.token}\"`"),
        ("user", "write `basic: {user: …, password: …}`"),
        ("username", "write `basic: {user: …, password: …}`"),
    ],
};

/// A user name and a password.
pub(in crate::manifest) const HTTP_BASIC: Keys = Keys {
    what: "`basic`",
    table: &[
        required("user", Text, "add `user:`; for a token without a name write user: \"\""),
        required("password", Text, "add `password: \"${secret.name}\"`"),
    ],
    instead: &[("username", "write `user`")],
};

/// A header that is a credential.
pub(in crate::manifest) const HTTP_AUTH_HEADER: Keys = table(
    "`header`",
    &[
        required("name", Text, "add the header's name: name: X-Api-Key"),
        required("value", Text, "add `value: \"${secret.name}\"`"),
    ],
);

/// What is a success.
pub(in crate::manifest) const HTTP_EXPECT: Keys =
    table("`expect` of `http`", &[optional("status", List)]);

/// The words of all methods.
const METHODS: [&str; HttpMethod::ALL.len()] = {
    let mut names = [""; HttpMethod::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = HttpMethod::ALL[at].as_str();
        at += 1;
    }
    names
};
