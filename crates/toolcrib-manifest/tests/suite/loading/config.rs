//! Files with a schema of their own.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_manifest::decode;
use toolcrib_manifest::units::{ByteSize, HumanDuration};

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(default)]
struct Config {
    /// Where the server listens.
    listen: String,
    workers: u16,
    watch: bool,
    limits: Limits,
    mode: Option<Mode>,
    secrets: BTreeMap<String, String>,
    directories: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Limits {
    timeout: HumanDuration,
    output: ByteSize,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Strict,
    Lenient,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:0".to_owned(),
            workers: 2,
            watch: true,
            limits: Limits {
                timeout: HumanDuration(Some(Duration::from_secs(30))),
                output: ByteSize(65_536),
            },
            mode: None,
            secrets: BTreeMap::new(),
            directories: Vec::new(),
        }
    }
}

#[test]
fn yaml_toml_and_nothing_are_read() {
    let expected = Config { workers: 4, mode: Some(Mode::Strict), ..Config::default() };
    assert_eq!(decode::<Config>("c.yml", "workers: 4\nmode: strict\n").unwrap(), expected);
    assert_eq!(decode::<Config>("c.toml", "workers = 4\nmode = \"strict\"\n").unwrap(), expected);
    assert_eq!(decode::<Config>("c.yml", "# nothing\n").unwrap(), Config::default());
}

#[test]
fn every_problem_is_shown_at_once_with_its_place() {
    let text = "\
lissten: 0.0.0.0:80
workers: 70000
watch: yes
limits: {timeout: 30, output: 64K, depth: 3}
mode: strct
secrets: {token: 5}
directories: tools.d
";
    let problems = decode::<Config>("config.yml", text).unwrap_err();
    let pictures: Vec<String> =
        problems.iter().map(|problem| problem.render("config.yml", text, false)).collect();
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("config_problems", pictures.join("\n\n"));
    });
}

#[test]
fn a_syntax_error_is_a_diagnostic_too() {
    let problems = decode::<Config>("config.yml", "listen: [\n").unwrap_err();
    assert_eq!(problems[0].code, "syntax");
}
