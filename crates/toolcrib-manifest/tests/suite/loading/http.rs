//! HTTP tools: what is loaded, and every mistake in an `http` section as people see it.

use std::time::Duration;

use serde_json::json;
use toolcrib_manifest::declaration::{
    Declaration, HttpAuth, HttpBody, HttpMethod, JsonTemplate, OutputFormat, UrlOrigin,
};
use toolcrib_manifest::template::{Piece, Reference, Template};
use toolcrib_manifest::{Severity, load_str};

use crate::diagnostics::shows;

/// A manifest with one tool that has these lines inside `http` and these beside it. Its arguments:
/// `id` (required), `q`, `tags` (a list) and `size` (with a default).
fn manifest(http: &str, beside: &str) -> String {
    let mut text = "toolcrib: 1
tools:
  - name: find
    description: Find a ticket.
    input:
      properties:
        id: {type: string}
        q: {type: string}
        tags: {type: array, items: {type: string}}
        size: {type: integer, default: 5}
      required: [id]
    x-used: \"${args.id} ${args.q} ${args.tags} ${args.size}\"
"
    .to_owned();
    for line in beside.lines() {
        text.extend(["    ", line, "\n"]);
    }
    text.push_str("    http:\n");
    for line in http.lines() {
        text.extend(["      ", line, "\n"]);
    }
    text
}

/// Checks the codes and the picture of a broken `http` section, leaving out that arguments which it
/// does not use are unused.
#[track_caller]
fn broken(case: &str, http: &str, codes: &[&str]) {
    beside(case, http, "", codes);
}

#[track_caller]
fn beside(case: &str, http: &str, beside: &str, codes: &[&str]) {
    let mut http = http.to_owned();
    // Every argument is used somewhere, unless the case is about that.
    if !http.contains("headers:") {
        http.push_str("\nheaders: {X-All: \"${args.id}${args.q}${args.tags}${args.size}\"}");
    }
    shows(&format!("http_{case}"), "find.yaml", &manifest(&http, beside), codes);
}

#[track_caller]
fn load(http: &str, beside: &str) -> Declaration {
    let text = manifest(http, beside);
    let loaded = load_str("find.yaml", &text);
    let errors: Vec<_> =
        loaded.diagnostics.iter().map(|found| found.render("find.yaml", &text, false)).collect();
    loaded.declarations.into_iter().next().unwrap_or_else(|| panic!("{}", errors.join("\n")))
}

fn template(text: &str) -> Template {
    Template::parse(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

#[test]
fn a_whole_section_is_taken_apart() {
    let declaration = load(
        r#"method: POST
url: "HTTPS://Tickets.Example:443/api/teams/${args.id}/tickets list?v=1&flag&q=a+b%20${args.q}&"
query: {"notify me": "yes & no", tag: "${args.tags}"}
headers: {X-Request-Id: "${ctx.request_id}", Accept: application/json}
auth: {bearer: "${secret.ticket_token}"}
json:
  title: "${args.q}"
  size: "${args.size}"
  fixed: [1, true, null, "by ${ctx.user}", "$${literal}"]
expect: {status: [200, 201]}
select: /ticket/0
allow_private: [10.20.0.0/16, 10.1.2.3, "fd00::/8"]"#
            .replace("tickets list", "tickets%20list")
            .as_str(),
        "limits: {timeout: 5s, output: 1KiB, transfer: 1MiB}\noutput: {keep: head}",
    );
    let http = declaration.http().unwrap();
    assert!(declaration.command().is_none());
    assert_eq!(http.method, HttpMethod::Post);
    assert_eq!(http.url.origin.to_string(), "https://tickets.example");
    assert_eq!(http.url.path, template("/api/teams/${args.id}/tickets%20list"));
    let pairs: Vec<_> =
        http.url.query.iter().map(|pair| (pair.name.as_str(), pair.value.clone())).collect();
    assert_eq!(
        pairs,
        [
            ("v", Some(template("1"))),
            ("flag", None),
            ("q", Some(template("a+b%20${args.q}"))),
            ("notify%20me", Some(template("yes%20%26%20no"))),
            ("tag", Some(template("${args.tags}"))),
        ]
    );
    assert_eq!(http.headers["X-Request-Id"], template("${ctx.request_id}"));
    assert_eq!(http.auth, Some(HttpAuth::Bearer(template("${secret.ticket_token}"))));
    let Some(HttpBody::Json(JsonTemplate::Object(members))) = &http.body else { panic!() };
    let text = |text: &str| JsonTemplate::Text(template(text));
    assert_eq!(members["size"], text("${args.size}"));
    let scalars = [json!(1), json!(true), json!(null)].map(JsonTemplate::Scalar);
    let mut fixed = scalars.to_vec();
    let literal = Template { pieces: vec![Piece::Literal("${literal}".to_owned())] };
    fixed.extend([text("by ${ctx.user}"), JsonTemplate::Text(literal)]);
    assert_eq!(members["fixed"], JsonTemplate::List(fixed));
    assert_eq!(http.ok_status, [200, 201]);
    assert_eq!(http.select.as_deref(), Some("/ticket/0"));
    let ranges: Vec<_> = http.allow_private.iter().map(ToString::to_string).collect();
    assert_eq!(ranges, ["10.20.0.0/16", "10.1.2.3/32", "fd00::/8"]);
    assert_eq!((http.output_bytes, http.transfer_bytes), (1024, 1024 * 1024));
    assert_eq!(declaration.definition.timeout(), Some(Duration::from_secs(5)));
    assert_eq!(declaration.needs.secrets, ["ticket_token"]);
    assert!(declaration.needs.bins.is_empty());
    let arguments: Vec<_> =
        http.references().filter(|found| matches!(found, Reference::Arg(_))).collect();
    assert_eq!(arguments.len(), 5);
}

#[test]
fn what_is_not_said_has_defaults() {
    let declaration = load("url: https://tickets.example", "");
    let http = declaration.http().unwrap();
    assert_eq!(http.method, HttpMethod::Get);
    assert_eq!(http.url.path, template("/"));
    assert!(http.url.query.is_empty() && http.headers.is_empty() && http.allow_private.is_empty());
    assert!(http.auth.is_none() && http.body.is_none() && http.select.is_none());
    assert!(http.ok_status.is_empty());
    assert_eq!((http.output_bytes, http.transfer_bytes), (64 * 1024, 5 * 1024 * 1024));
    assert_eq!(declaration.definition.timeout(), Some(Duration::from_secs(20)));
    assert_eq!(declaration.output.format, OutputFormat::Auto);
    let typed = load("url: https://tickets.example", "output_schema: {type: object}");
    assert_eq!(typed.output.format, OutputFormat::Json);
    let lines = load("url: https://tickets.example", "output: {format: lines}");
    assert_eq!(lines.output.format, OutputFormat::Lines);
    let query = load("url: 'https://tickets.example?q=ä'", "");
    let query = query.http().unwrap();
    assert_eq!((query.url.path.clone(), query.url.query.len()), (template("/"), 1));
    assert_eq!(query.url.query[0].value, Some(template("%C3%A4")));
}

#[test]
fn toml_says_the_same() {
    let text = r#"
toolcrib = 1
[[tools]]
name = "find"
description = "Find a ticket."
input = {properties = {id = {type = "string"}}, required = ["id"]}
[tools.http]
method = "PUT"
url = "https://tickets.example/${args.id}"
auth = {basic = {user = "me", password = "${secret.p}"}}
form = {a = "b ${args.id}"}
"#;
    let loaded = load_str("find.toml", text);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let http = loaded.declarations[0].http().unwrap();
    let basic = HttpAuth::Basic { user: template("me"), password: template("${secret.p}") };
    assert_eq!(http.auth, Some(basic));
    let form = HttpBody::Form(vec![("a".to_owned(), template("b ${args.id}"))]);
    assert_eq!(http.body, Some(form));
}

#[test]
fn keys_of_a_request() {
    broken("missing_url", "method: GET", &["missing-key"]);
    broken("bad_method", "method: get\nurl: https://a.example/", &["wrong-type"]);
    broken("unknown_method", "method: FETCH\nurl: https://a.example/", &["wrong-type"]);
    broken("unknown_key", "url: https://a.example/\nheader: {A: b}", &["unknown-key"]);
    broken("body_instead", "url: https://a.example/\nbody: {a: b}", &["unknown-key"]);
    broken("params_instead", "url: https://a.example/\nparams: {a: b}", &["unknown-key"]);
    broken("timeout_instead", "url: https://a.example/\ntimeout: 5s", &["unknown-key"]);
    broken("number_in_query", "url: https://a.example/\nquery: {limit: 10}", &["wrong-type"]);
    let text = manifest("url: https://a.example/", "").replace("http:\n      url: ", "http: ");
    shows("http_url_only", "find.yaml", &text, &["wrong-type"]);
}

#[test]
fn the_whole_url_may_be_one_secret() {
    let text =
        manifest("url: \"${secret.slack_url}\"\nmethod: POST\njson: {text: \"${args.id}\"}", "");
    let loaded = load_str("find.yaml", &text);
    let errors = loaded.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    assert_eq!(errors.count(), 0, "{:?}", loaded.diagnostics);
    let declaration = &loaded.declarations[0];
    let url = &declaration.http().unwrap().url;
    assert_eq!(url.origin, UrlOrigin::Secret(Reference::Secret("slack_url".to_owned())));
    assert_eq!(declaration.needs.secrets, ["slack_url"]);
    for (case, url) in
        [("secret_as_host", "https://${secret.host}"), ("secret_with_path", "${secret.base}/a")]
    {
        broken(case, &format!("url: \"{url}\""), &["value-chosen-host"]);
    }
}

#[test]
fn hosts_are_the_authors() {
    for (case, url) in [
        ("value_as_url", "${args.id}"),
        ("value_as_host", "https://${args.id}/api"),
        ("value_in_host", "https://api.${args.id}.example/api"),
        ("value_after_host", "https://api.example${args.id}"),
        ("value_as_port", "https://api.example:${args.id}/"),
        ("value_as_scheme", "${env.SCHEME}://api.example/"),
    ] {
        broken(case, &format!("url: \"{url}\""), &["value-chosen-host"]);
    }
    for (case, url) in [
        ("scheme", "ftp://files.example/a"),
        ("no_scheme", "tickets.example/api"),
        ("no_host", "https:///api"),
        ("user_info", "https://me:hunter2@tickets.example/"),
        ("space", "https://tickets.example/a b"),
        ("backslash", "https://tickets.example\\\\@evil.example/"),
        ("bad_port", "https://tickets.example:99999/"),
        ("fragment", "https://tickets.example/a#b"),
        ("dots", "https://tickets.example/a/../b"),
        ("encoded_dots", "https://tickets.example/a/%2E%2e/b"),
    ] {
        broken(case, &format!("url: \"{url}\""), &["bad-url"]);
    }
    for (case, url) in [
        ("loopback", "http://127.0.0.1:8080/"),
        ("loopback_in_disguise", "http://2130706433/"),
        ("loopback_6", "http://[::1]/"),
        ("localhost", "http://localhost:3000/"),
        ("metadata", "http://169.254.169.254/latest/"),
    ] {
        broken(case, &format!("url: \"{url}\""), &["private-address"]);
    }
    // Said so, they are fine; and so is a name of the local network, whose addresses are checked.
    load("url: http://localhost:3000/\nallow_private: [127.0.0.0/8]", "");
    load("url: http://tickets/", "");
}

#[test]
fn values_in_urls() {
    broken("optional_in_path", "url: \"https://a.example/${args.q}/x\"", &["optional-in-path"]);
    broken("list_in_path", "url: \"https://a.example/${args.tags}\"", &["list-in-path"]);
    beside(
        "optional_context_in_path",
        "url: \"https://a.example/${ctx.team}\"",
        "context: {team: {from: ctx.team, required: false}}",
        &["optional-in-path"],
    );
    broken("undeclared", "url: \"https://a.example/${args.idd}\"", &["undeclared-argument"]);
    broken("value_as_parameter", "url: \"https://a.example/?${args.q}\"", &["reference-in-name"]);
    broken(
        "value_in_parameter",
        "url: \"https://a.example/?a${args.q}=b\"",
        &["reference-in-name"],
    );
    broken(
        "value_as_query_key",
        "url: https://a.example/\nquery: {\"${args.q}\": a}",
        &["reference-in-name"],
    );
    // There in every call: required, or with a default.
    load("url: \"https://a.example/${args.id}/${args.size}\"", "");
    let unused = manifest("url: \"https://a.example/${args.id}\"", "");
    let codes = ["unused-argument"; 3];
    shows("http_unused", "find.yaml", &unused, &codes);
}

#[test]
fn headers_and_credentials() {
    let url = "url: https://a.example/\n";
    let all = "X-All: \"${args.id}${args.q}${args.tags}${args.size}\"";
    let headers = |case: &str, header: &str, codes: &[&str]| {
        broken(case, &format!("{url}headers: {{{header}, {all}}}"), codes);
    };
    headers("bad_header", "\"X Id\": a", &["bad-header"]);
    headers("header_with_line_end", "X-Id: \"a\\r\\nHost: evil.example\"", &["bad-header"]);
    headers("reserved_host", "Host: evil.example", &["reserved-header"]);
    headers("reserved_length", "Content-Length: \"5\"", &["reserved-header"]);
    headers("value_as_header", "\"${args.q}\": a", &["reference-in-name"]);
    headers("header_twice", "X-Id: a, x-id: b", &["duplicate-key"]);
    headers(
        "model_chosen_header",
        "Authorization: \"Bearer ${args.q}\"",
        &["model-chosen-credential"],
    );
    headers("model_chosen_cookie", "cookie: \"s=${args.q}\"", &["model-chosen-credential"]);

    let auth = |case: &str, auth: &str, codes: &[&str]| {
        broken(case, &format!("{url}auth: {auth}"), codes);
    };
    auth("auth_as_text", "\"${secret.token}\"", &["wrong-type"]);
    auth("auth_of_nothing", "{}", &["bad-auth"]);
    auth(
        "auth_of_two",
        "{bearer: \"${secret.a}\", basic: {user: a, password: \"${secret.b}\"}}",
        &["bad-auth"],
    );
    auth("auth_unknown", "{token: \"${secret.a}\"}", &["unknown-key"]);
    auth("model_chosen_token", "{bearer: \"${args.q}\"}", &["model-chosen-credential"]);
    auth("literal_token", "{bearer: abc123}", &["literal-secret"]);
    auth("basic_without_password", "{basic: {user: me}}", &["missing-key"]);
    auth("auth_header_name", "{header: {name: 'X Key', value: \"${secret.k}\"}}", &["bad-header"]);
    broken(
        "plain_credentials",
        "url: http://a.example/\nauth: {bearer: \"${secret.a}\"}",
        &["plain-credentials"],
    );
    broken(
        "auth_and_header",
        &format!(
            "{url}auth: {{bearer: \"${{secret.a}}\"}}\nheaders: {{authorization: \"${{secret.b}}\", {all}}}"
        ),
        &["duplicate-key"],
    );
}

#[test]
fn bodies() {
    let post = "url: https://a.example/\nmethod: POST\n";
    broken("body_of_get", "url: https://a.example/\njson: {a: b}", &["body-of-get"]);
    broken(
        "body_of_written_get",
        "url: https://a.example/\nmethod: GET\ntext: a",
        &["body-of-get"],
    );
    broken("two_bodies", &format!("{post}json: {{a: b}}\nform: {{a: b}}"), &["two-bodies"]);
    broken("value_as_key", &format!("{post}json: {{\"${{args.q}}\": b}}"), &["reference-in-name"]);
    broken(
        "value_as_field",
        &format!("{post}form: {{\"${{args.q}}\": b}}"),
        &["reference-in-name"],
    );
    broken("ambiguous_in_json", &format!("{post}json: {{a: no}}"), &["ambiguous-scalar"]);
    broken(
        "reference_in_json",
        &format!("{post}json: {{a: [\"${{arg.q}}\"]}}"),
        &["bad-reference"],
    );
    broken("number_in_form", &format!("{post}form: {{a: 5}}"), &["wrong-type"]);
}

#[test]
fn answers() {
    let url = "url: https://a.example/\n";
    let answer = |case: &str, lines: &str, codes: &[&str]| {
        broken(case, &format!("{url}{lines}"), codes);
    };
    answer("status_alone", "expect: 201", &["wrong-type"]);
    answer("status_class", "expect: {status: [2xx]}", &["out-of-range"]);
    answer("status_out_of_range", "expect: {status: [99]}", &["out-of-range"]);
    answer("no_status", "expect: {status: []}", &["out-of-range"]);
    answer("pointer_without_slash", "select: ticket.id", &["bad-pointer"]);
    answer("pointer_as_jsonpath", "select: \"$.items[0].id\"", &["bad-pointer"]);
    answer("pointer_with_tilde", "select: /a~b", &["bad-pointer"]);
    answer("pointer_by_value", "select: \"/${args.q}\"", &["bad-pointer"]);
    answer("select_from_head", "method: HEAD\nselect: /a", &["body-of-head"]);
    answer("range_by_name", "allow_private: [tickets.internal]", &["bad-range"]);
    answer("range_with_host_bits", "allow_private: [10.20.3.4/16]", &["bad-range"]);
    answer("range_of_everything", "allow_private: [0.0.0.0/0]", &["no-guard"]);
}

#[test]
fn what_stands_beside_a_request() {
    let url = "url: https://a.example/";
    beside("and_run", url, "run: {argv: [ls]}", &["run-and-http"]);
    beside("and_client", url, "client: true", &["client-and-run"]);
    beside("and_cwd", url, "cwd: /", &["not-for-http"]);
    beside("transfer_out_of_range", url, "limits: {transfer: 1GiB}", &["out-of-range"]);
    beside("without_limit", url, "limits: {timeout: none}", &["out-of-range"]);
    let tests = "tests:\n  - {name: a, args: {id: x}, expect: {argv: [ls]}}";
    beside("test_of_argv", url, tests, &["not-for-http"]);
    let run = manifest(url, "").replace("http:\n      url: https://a.example/", "run: {argv: [ls, \"${args.id}\", \"${args.q}\", {each: tags}, \"${args.size}\"]}\n    limits: {transfer: 1MiB}\n    tests:\n      - {name: a, args: {id: x}, expect: {url: https://a.example/}}");
    shows("http_of_a_command", "find.yaml", &run, &["not-for-run", "not-for-run"]);
}
