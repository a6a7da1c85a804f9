//! Messages about a wrong config repeat no secret of it, wherever on the line the mistake is.
#![cfg(feature = "http")]
#![cfg_attr(
    feature = "http",
    expect(clippy::expect_used, reason = "a test that cannot be set up fails")
)]

use toolcrib::settings::{ConfigError, ConfigLayers};

const SECRET: &str = "hidden-value-of-the-owner-1234";

/// The refusal of a config file of this name and text.
fn refused(name: &str, text: &str) -> ConfigError {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("it is written");
    ConfigLayers::new().file(path).load().expect_err(text)
}

/// Files with a mistake and a secret in them.
fn wrong_files() -> Vec<(&'static str, String)> {
    let yaml = [
        "server: {token: SECRET, lisen: x}\n",
        "server: {lisen: x, token: SECRET}\n",
        "server: {lisen: x, tokens: {ada: {hash: SECRET}}}\n",
        "server: {tokens: {ada: {token: SECRET}}}\n",
        "server: {tokens: {ada: SECRET}}\n",
        "server: {tokens: SECRET}\n",
        "server: {tokens: [SECRET]}\n",
        "server: SECRET\n",
        "server: [SECRET]\n",
        "server: {tokn: SECRET}\n",
        "server: {SECRET}\n",
        "server:\n  lisen: x # it was SECRET\n",
        "token: SECRET\n",
        "SECRET\n",
        "executor: {token: SECRET}\n",
        "secrets: {tok: SECRET}\n",
        "secrets: {SECRET}\n",
        "secrets: {a: {value: SECRET}}\n",
        "secrets: {a: {env: [SECRET]}}\n",
        "secrets: {a: {env: A, file: SECRET}}\n",
        "secrets:\n  a: |\n    SECRET\n    SECRET\n",
        "secrets: SECRET\n",
        "secret: {a: SECRET}\n",
        // Without a clear outline.
        "server: {token: SECRET, listen: x\n",
        "server:\n  token:SECRET\n  listen: x\n",
        "server:\n  token: SECRET\n  token: SECRET\n",
        "server:\n  token: \"SECRET\n  listen: x\n",
        "server:\n  token: SECRET: x\n",
        "server:\n  token: !x SECRET\n",
        "server:\n  token: *SECRET\n",
        "server:\n\ttoken: SECRET\n",
        "secrets:\n  a: SECRET\n b: x\n",
        "policy: {} # SECRET\n  x: y\n",
        "{server: {token: SECRET, token: x}}\n",
    ];
    let toml = [
        "[server]\ntoken = \"SECRET\"\nlisen = 1\n",
        "server = {token = \"SECRET\", lisen = 1}\n",
        "server.token = \"SECRET\"\nserver.lisen = 1\n",
        "[server]\ntoken = SECRET\n",
        "[server]\ntoken = \"SECRET\ntokens = 1\n",
        "[secrets]\na = \"SECRET\"\n",
    ];
    let yaml = yaml.map(|text| ("config.yml", text.replace("SECRET", SECRET)));
    let toml = toml.map(|text| ("config.toml", text.replace("SECRET", SECRET)));
    yaml.into_iter().chain(toml).collect()
}

#[test]
fn no_message_about_a_file_repeats_a_secret_of_it() {
    for (name, text) in wrong_files() {
        let error = refused(name, &text);
        let shown = error.problems(false).join("\n");
        assert!(!shown.is_empty(), "{text}");
        for said in [shown, error.to_string()] {
            assert!(!said.contains(SECRET), "{text}\n{said}");
        }
    }
}

#[test]
fn no_message_about_a_variable_or_a_flag_repeats_its_secret() {
    for (key, value) in [
        ("server.token", "SECRET with blanks"),
        ("server.tokens", "SECRET"),
        ("server.tokens", "{ada: SECRET}"),
        ("server.tokens", "{ada: SECRET"),
        ("server.tokens.ada", "SECRET"),
        ("server.tokens.ada.hash", "SECRET"),
        ("server.tokens.ada.token", "SECRET"),
        ("server.tokn", "SECRET"),
        ("server", "SECRET"),
        ("server", "{token: SECRET"),
        ("secrets", "SECRET"),
        ("secrets.a", "SECRET"),
        ("secrets.a.value", "SECRET"),
        ("secrets.a.command.x", "SECRET"),
    ] {
        let value = value.replace("SECRET", SECRET);
        let variable = format!("TOOLCRIB__{}", key.to_uppercase().replace('.', "__"));
        let of_flag = ConfigLayers::new().set("--set", key, &value);
        let of_variable = ConfigLayers::new().variables([(variable.into(), value.clone().into())]);
        for layers in [of_flag, of_variable] {
            let error = layers.load().expect_err(key);
            for said in [error.problems(false).join("\n"), error.to_string()] {
                assert!(!said.is_empty() && !said.contains(SECRET), "{key}: {value}\n{said}");
            }
        }
    }
}

#[test]
fn the_text_of_a_refusal_for_logs_and_clients_repeats_only_misspelt_keys_of_the_file() {
    let error = refused("config.yml", "executor:\n  max_queue: somewhat\n  tool_timout: 5s\n");
    let said = error.to_string();
    let part = "config.yml:2:14: wrong-type at `executor.max_queue`: expected a whole number";
    assert!(said.contains(part), "{said}");
    assert!(
        said.contains(
            "config.yml:3:3: unknown-key at `executor`: `tool_timout` is not known: did you mean \
             `tool_timeout`?"
        ),
        "{said}"
    );
    assert!(!said.contains("somewhat"), "{said}");
    // Its owner sees the line.
    assert!(error.problems(false).join("\n").contains("max_queue: somewhat"), "{error:?}");
}

#[test]
fn a_mistake_beside_a_secret_is_underlined_and_the_secret_is_blanked() {
    let text = format!("server: {{token: {SECRET}, lisen: x}}\n");
    let shown = refused("config.yml", &text).problems(false).join("\n");
    let blank = "*".repeat(SECRET.len());
    assert!(shown.contains(&format!("server: {{token: {blank}, lisen: *}}")), "{shown}");
    assert!(shown.contains("did you mean `listen`?") && shown.contains("^^^^^"), "{shown}");
}
