//! The shipped `config.yml` is the defaults, written down.
#![cfg(all(feature = "agent", feature = "crawler", feature = "http"))]
#![cfg_attr(
    all(feature = "agent", feature = "crawler", feature = "http"),
    expect(clippy::expect_used, reason = "a test that cannot be set up fails")
)]

use toolcrib::manifest::decode;
use toolcrib::settings::Config;

fn shipped() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config.yml");
    std::fs::read_to_string(path).expect("the shipped config")
}

#[test]
fn the_shipped_config_parses_and_equals_the_built_in_defaults() {
    let shipped: Config = decode("config.yml", &shipped()).expect("no mistakes");
    assert_eq!(format!("{shipped:#?}"), format!("{:#?}", Config::default()));
}

#[test]
fn every_key_of_the_config_is_shown_in_the_shipped_file() {
    let text = shipped();
    let schema = toolcrib::tool::schema_for::<Config>();
    let definitions = schema["$defs"].as_object().expect("sections");
    let properties = schema["properties"].as_object().expect("keys").keys().chain(
        definitions
            .values()
            .filter_map(|section| section["properties"].as_object())
            .flat_map(serde_json::Map::keys),
    );
    for key in properties {
        assert!(text.contains(&format!("{key}:")), "`{key}` is not in config.yml");
    }
}

#[test]
fn every_example_in_the_shipped_config_is_right() {
    let text = shipped();
    let mut section = "";
    let mut examples: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        if let Some(example) = line.strip_prefix('#').filter(|rest| rest.starts_with("  ")) {
            match examples.last_mut().filter(|(last, _)| *last == section) {
                Some((_, lines)) => lines.push(example),
                None => examples.push((section, vec![example])),
            }
        } else if line.starts_with(|first: char| first.is_ascii_lowercase()) {
            section = line.split(':').next().unwrap_or(line);
        }
    }
    let sections: Vec<_> = examples.iter().map(|(section, _)| *section).collect();
    assert_eq!(
        sections,
        [
            "policy",
            "secrets",
            "secret_folders",
            "providers",
            "agents",
            "registry",
            "toolsets",
            "projects",
            "paths",
            "builtins",
            "web",
            "databases",
            "server"
        ]
    );
    for (section, lines) in examples {
        let text = format!("{section}:\n{}\n", lines.join("\n"));
        let config: Result<Config, _> = decode("config.yml", &text);
        let config = config.unwrap_or_else(|problems| panic!("{text}\n{problems:#?}"));
        assert_ne!(format!("{config:?}"), format!("{:?}", Config::default()), "{section}");
    }
}
