//! The shipped `config.yml` is the defaults, written down.
#![cfg(feature = "http")]

use toolcrib::config::Config;
use toolcrib::manifest::decode;

#[test]
fn the_shipped_config_parses_and_equals_the_built_in_defaults() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config.yml");
    let text = std::fs::read_to_string(path).expect("the shipped config");
    let shipped: Config = decode("config.yml", &text).expect("no mistakes");
    assert_eq!(format!("{shipped:#?}"), format!("{:#?}", Config::default()));
}

#[test]
fn every_key_of_the_config_is_shown_in_the_shipped_file() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config.yml");
    let text = std::fs::read_to_string(path).expect("the shipped config");
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
