//! A distribution has the tools it links in, and cannot forget to link them.

use acme_tools as _;
use assert_cmd::Command;
use toolcrib_cli as _;

fn acme_crib(arguments: &[&str]) -> serde_json::Value {
    let empty = std::env::temp_dir();
    let output = Command::cargo_bin("acme-crib")
        .expect("built")
        .current_dir(&empty)
        .args(arguments)
        .output()
        .expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_linked_tool_is_listed_with_crate_file_and_line() {
    let list = acme_crib(&["list", "--json"]);
    let tools = list["tools"].as_array().expect("tools");
    let tool = tools.iter().find(|tool| tool["name"] == "convert_temperature").expect("listed");
    assert_eq!(tool["layer"], "native");
    assert_eq!(tool["source"], "acme-tools");
    assert!(tool["file"].as_str().is_some_and(|file| file.ends_with("acme-tools/src/lib.rs")));
    assert!(tool["line"].as_u64().is_some_and(|line| line > 1));
    assert!(
        tools.iter().any(|tool| tool["name"] == "calculator"),
        "the built-in ones are there, too"
    );
}

#[test]
fn a_linked_tool_answers_calls() {
    let answer =
        acme_crib(&["call", "convert_temperature", "degrees=100", "from=celsius", "--json"]);
    assert_eq!(answer["data"], serde_json::json!({"degrees": 212.0, "unit": "fahrenheit"}));
}

#[test]
fn a_forgotten_use_does_not_compile() {
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["rustc", "--profile", "check", "--offline", "--quiet", "--package", "acme-crib"])
        .args(["--bin", "acme-crib", "--", "--cfg", "forgotten"])
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it compiled without its tools");
    assert!(said.contains("acme_tools") && said.contains("unused"), "{said}");
}
