//! Settings in layers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_manifest::layers::{Origin, Setting, decode_layers};
use toolcrib_manifest::units::HumanDuration;

#[derive(Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(default)]
struct Config {
    server: Server,
    dirs: Vec<String>,
    free: BTreeMap<String, Value>,
    named: BTreeMap<String, Server>,
}

#[derive(Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(default)]
struct Server {
    workers: u16,
    /// The share of requests that are looked at.
    share: Option<f64>,
    open: bool,
    timeout: Option<HumanDuration>,
    mode: Mode,
    #[schemars(extend("writeOnly" = true), length(min = 8))]
    password: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// One way.
    #[default]
    Strict,
    /// The other way.
    Lenient,
}

const FILE: &str = "server:\n  workers: 2\n  open: true\ndirs: [a, b]\n";

fn set(key: &str, text: &str) -> Setting {
    Setting::text(format!("--set {key}"), key.split('.'), text)
}

fn read(settings: &[Setting]) -> Config {
    match decode_layers(Some(("c.yml", FILE)), settings) {
        Ok(read) => read.value,
        Err(problems) => panic!("{problems:?}"),
    }
}

/// What is wrong with settings alone, rendered.
fn wrong(settings: &[Setting]) -> String {
    let Err(problems) = decode_layers::<Config>(None, settings) else { panic!("it is wrong") };
    let shown: Vec<_> = problems.iter().map(|problem| problem.render("", "", false)).collect();
    shown.join("\n")
}

#[test]
fn a_text_is_read_by_what_the_key_holds() {
    let config = read(&[
        set("server.workers", "8"),
        set("server.share", "0.5"),
        set("server.open", "false"),
        set("server.timeout", "5m"),
        set("server.mode", "lenient"),
        set("server.password", "12345678"),
        set("dirs", "12"),
        set("free.a", "{\"b\": 1}"),
        set("free.b", "free text"),
        set("named.x.workers", "3"),
        set("named.y", "{workers: 4, mode: lenient}"),
    ]);
    let server = &config.server;
    assert_eq!((server.workers, server.share, server.open), (8, Some(0.5), false));
    assert_eq!(server.timeout, Some("5m".parse().expect("a duration")));
    assert_eq!((&server.mode, server.password.as_deref()), (&Mode::Lenient, Some("12345678")));
    assert_eq!(config.dirs, ["12"]);
    assert_eq!((&config.free["a"], &config.free["b"]), (&json!({"b": 1}), &json!("free text")));
    assert_eq!((config.named["x"].workers, config.named["y"].workers), (3, 4));

    let config = read(&[set("dirs", "[x, 'y z']"), set("server.timeout", "null")]);
    assert_eq!((config.dirs.len(), config.server.timeout), (2, None));
}

#[test]
fn the_later_layer_wins_and_the_rest_stays() {
    let config = read(&[]);
    assert_eq!((config.server.workers, config.server.open, config.dirs.len()), (2, true, 2));
    let config = read(&[set("server.workers", "3"), set("server.workers", "4")]);
    assert_eq!((config.server.workers, config.server.open), (4, true));
    let config = read(&[set("server", "{workers: 5}"), set("server.open", "true")]);
    assert_eq!((config.server.workers, config.server.open), (5, true));
}

#[test]
fn every_value_knows_where_it_is_from() {
    let settings = [set("server.workers", "8"), set("named.x", "{workers: 1}")];
    let read = decode_layers::<Config>(Some(("c.yml", FILE)), &settings).expect("right");
    let said = |name: &str| Origin::Setting(format!("--set {name}"));
    assert_eq!(read.origin(&["server", "workers"]), said("server.workers"));
    assert_eq!(read.origin(&["named", "x", "workers"]), said("named.x"));
    assert_eq!(read.origin(&["server", "open"]), Origin::File { line: 3, column: 9 });
    assert_eq!(read.origin(&["server", "mode"]), Origin::Default);
    assert_eq!(read.origin::<&str>(&[]), Origin::Default);
}

#[test]
fn every_mistake_names_who_made_it_and_what_is_right() {
    let said = wrong(&[
        set("server.worker", "1"),
        set("workers", "1"),
        set("password", "hunter2"),
        set("server.workers", "many"),
        set("server.workers", "70000"),
        set("server.mode", "lenent"),
        set("server.timeout", "30"),
        set("server.workers.more", "1"),
        set("dirs.0", "x"),
        set("dirs", "[x"),
        set("named.x.worker", "1"),
        set("", "1"),
        set("server.password", "hunter2"),
    ]);
    assert_eq!(said.matches("hunter2").count(), 0, "a secret is not repeated: {said}");
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("layer_problems", said);
    });
}

#[test]
fn a_secret_of_a_file_is_named_by_its_place_alone() {
    let text = "server:\n  password: hunter2\n";
    let problems = decode_layers::<Config>(Some(("c.yml", text)), &[]).expect_err("too short");
    let said = problems[0].render("c.yml", text, false);
    assert!(said.contains("c.yml:2:13") && !said.contains("hunter2"), "{said}");
}

#[test]
fn what_the_type_alone_refuses_has_its_place_too() {
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Odd {
        #[serde(deserialize_with = "odd")]
        #[expect(dead_code, reason = "only its refusal matters")]
        numbers: Vec<u8>,
    }
    fn odd<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let numbers = Vec::<u8>::deserialize(from)?;
        let even = numbers.iter().any(|number| number % 2 == 0);
        if even { Err(serde::de::Error::custom("only odd numbers")) } else { Ok(numbers) }
    }
    let text = "# two\nnumbers: [1, 2]\n";
    let problems = decode_layers::<Odd>(Some(("c.yml", text)), &[]).expect_err("one is even");
    let said = problems[0].render("c.yml", text, false);
    assert!(said.contains("c.yml:2:10") && said.contains("`numbers`: only odd"), "{said}");
    let problems = decode_layers::<Odd>(Some(("c.yml", "numbers: [1]")), &[set("numbers", "2")]);
    assert_eq!(problems.expect_err("even")[0].origin.as_deref(), Some("--set numbers"));
}
