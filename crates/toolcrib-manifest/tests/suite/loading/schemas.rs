//! The published schema of manifests says what the loader says of keys and types.

use std::path::Path;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;
use toolcrib_manifest::directory::{CATALOGUE, load_dirs};
use toolcrib_manifest::{Loaded, Severity, decode, load_str, manifest_schema};

/// Codes of mistakes that the tables of keys tell.
const STRUCTURAL: [&str; 4] = ["unknown-key", "missing-key", "wrong-type", "not-supported-yet"];

fn validator() -> &'static Validator {
    static VALIDATOR: OnceLock<Validator> = OnceLock::new();
    VALIDATOR.get_or_init(|| match jsonschema::draft202012::new(&manifest_schema()) {
        Ok(validator) => validator,
        Err(error) => panic!("{error}"),
    })
}

/// Holds the schema's verdict on a file against the loader's.
#[track_caller]
pub(crate) fn agrees(file: &str, text: &str, loaded: &Loaded) {
    let Ok(value) = decode::<Value>(file, text) else { return };
    let says =
        || validator().iter_errors(&value).map(|error| error.to_string()).collect::<Vec<_>>();
    if !loaded.has_errors() {
        assert!(validator().is_valid(&value), "{file} is right, but: {:?}", says());
    }
    let mut errors = loaded.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    // Of a number the schema knows the value, not how it is spelled; and what stands inside
    // `context` and beside `run` the loader alone knows.
    let beyond = ["leading zeros", "`from`", "needs the key `run`", "comes from", "ctx."];
    let shown = |text: &str| !beyond.iter().any(|word| text.contains(word));
    if errors.any(|found| {
        let help = found.help.as_deref().unwrap_or_default();
        STRUCTURAL.contains(&found.code) && shown(&found.message) && shown(help)
    }) {
        assert!(!validator().is_valid(&value), "{file} is accepted:\n{text}");
    }
}

#[test]
fn the_shipped_manifests_fit() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools.d");
    let mut checked = 0;
    for path in
        load_dirs(&[dir.clone(), dir.join(CATALOGUE)]).files.into_iter().map(|file| file.path)
    {
        let (name, text) = (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
        let loaded = load_str(&name, &text);
        assert!(!loaded.has_errors());
        agrees(&name, &text, &loaded);
        checked += 1;
    }
    assert!(checked >= 8, "{checked}");
}

#[test]
fn a_misspelt_key_is_refused_wherever_it_stands() {
    let good = "toolcrib: 1\ntools:\n- name: a\n  description: A.\n  limits: {timeout: 3s, rate: 5/s}\n  \
                run: {argv: [a, {if: args.b, then: [c]}]}\n  tests: [{name: t, expect: {error: timeout}}]\n";
    let value: Value = decode("a.yaml", good).unwrap();
    assert!(validator().is_valid(&value));
    for (right, wrong) in [
        ("tools:", "tolls:"),
        ("run:", "runn:"),
        ("argv:", "argw:"),
        ("then:", "than:"),
        ("timeout: 3s", "timeout: 3"),
        ("5/s", "5/m"),
        ("error: timeout", "error: late"),
        ("toolcrib: 1", "toolcrib: 2"),
    ] {
        let value: Value = decode("a.yaml", &good.replace(right, wrong)).unwrap();
        assert!(!validator().is_valid(&value), "{wrong}");
    }
    let own: Value = decode("a.yaml", &good.replace("tools:", "x-note: mine\ntools:")).unwrap();
    assert!(validator().is_valid(&own));
}
