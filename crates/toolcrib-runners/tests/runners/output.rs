//! A program's output, as the model and programs see it.

use serde_json::json;
use toolcrib_manifest::declaration::{
    Declaration, Keep, OutputFormat, SandboxProfile, SandboxSpec,
};
use toolcrib_tool::ErrorKind;

use crate::declare::{call, sh, spec};

fn printing(script: &str, format: OutputFormat) -> Declaration {
    let mut declaration = sh(script);
    declaration.output.format = format;
    declaration
}

#[tokio::test]
async fn text_is_shown_with_standard_error_under_a_heading() {
    let output = call(&sh("printf 'all well\\n'"), json!({})).await.unwrap();
    assert_eq!(output.text(), "all well\n");
    assert_eq!(output.data(), None);
    assert_eq!(output.meta()["exit_code"], 0);
    assert_eq!(output.meta()["stderr_bytes"], 0);
    let sandbox = &output.meta()["sandbox"];
    assert_eq!(sandbox["profile"], "workspace");
    assert_eq!(sandbox["processes"], output.meta()["kill_rung"]);
    assert!(!output.meta().contains_key("truncated_bytes"));

    let output = call(&sh("echo out; echo careful >&2"), json!({})).await.unwrap();
    assert_eq!(output.text(), "out\n[stderr]\ncareful\n");
    assert_eq!(output.meta()["stderr_bytes"], 8);
}

#[tokio::test]
async fn escape_sequences_are_visible_in_text() {
    let output = call(&sh(r"printf '\033[31mred\r\n\342\200\256abc'"), json!({})).await.unwrap();
    assert_eq!(output.text(), "\\u{1b}[31mred\r\n\\u{202e}abc");
}

#[tokio::test]
async fn json_becomes_data() {
    let declaration = printing(r#"echo '{"b": [1, "x"], "a": null}'"#, OutputFormat::Json);
    let output = call(&declaration, json!({})).await.unwrap();
    assert_eq!(output.data(), Some(&json!({"b": [1, "x"], "a": null})));
    assert_eq!(output.text(), r#"{"a":null,"b":[1,"x"]}"#);

    let declaration = printing(r"echo '[1]'; echo note >&2", OutputFormat::Json);
    let output = call(&declaration, json!({})).await.unwrap();
    assert_eq!(output.data(), Some(&json!([1])));
    assert_eq!(output.text(), "[1]\n[stderr]\nnote\n");
}

#[tokio::test]
async fn invalid_json_fails_with_its_position_and_the_beginning_of_the_output() {
    let declaration = printing("printf '{\"a\": oops}'; echo why >&2", OutputFormat::Json);
    let error = call(&declaration, json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Execution);
    assert!(error.message().starts_with("sh printed invalid JSON: "), "{error}");
    assert!(error.message().ends_with("at line 1 column 7"), "{error}");
    assert_eq!(error.partial().unwrap().text(), "{\"a\": oops}\n[stderr]\nwhy\n");

    let nothing = call(&printing("true", OutputFormat::Json), json!({})).await.unwrap_err();
    assert_eq!(nothing.message(), "sh printed nothing where JSON was expected");

    let mut large = printing("printf '[1,2,3,4,5,6,7,8]'", OutputFormat::Json);
    spec(&mut large).capture_bytes = 8;
    let error = call(&large, json!({})).await.unwrap_err();
    assert_eq!(error.message(), "sh printed 17 bytes of JSON, more than the limit of 8");
}

#[tokio::test]
async fn lines_become_a_list_and_stay_text() {
    let declaration = printing(r"printf 'a b\r\n\nlast'", OutputFormat::Lines);
    let output = call(&declaration, json!({})).await.unwrap();
    assert_eq!(output.data(), Some(&json!(["a b", "", "last"])));
    assert_eq!(output.text(), "a b\r\n\nlast");
    let nothing = call(&printing("true", OutputFormat::Lines), json!({})).await.unwrap();
    assert_eq!(nothing.data(), Some(&json!([])));
}

#[tokio::test]
async fn the_declared_part_of_a_long_output_is_kept() {
    for (keep, text) in [
        (Keep::Head, "01234567\n[… 12 bytes omitted …]\n"),
        (Keep::Tail, "[… 12 bytes omitted …]\ncdefghij"),
        (Keep::Both, "012345\n[… 12 bytes omitted …]\nij"),
    ] {
        let mut declaration = sh("printf 0123456789abcdefghij");
        spec(&mut declaration).capture_bytes = 8;
        declaration.output.keep = keep;
        let output = call(&declaration, json!({})).await.unwrap();
        assert_eq!(output.text(), text, "{keep:?}");
        assert_eq!(output.meta()["truncated_bytes"], 12);
        assert_eq!(output.meta()["stdout_bytes"], 20);
    }
}

#[tokio::test]
async fn patterns_redact_text_data_standard_error_and_failures() {
    let redact = vec!["Bearer [a-z0-9]+".to_owned()];
    let mut text = sh("echo 'Bearer abc1 ok'; echo 'sent Bearer xyz' >&2; exit ${CODE:-0}");
    text.output.redact = redact.clone();
    let output = call(&text, json!({})).await.unwrap();
    assert_eq!(output.text(), "[redacted] ok\n[stderr]\nsent [redacted]\n");

    spec(&mut text).ok_exit = vec![1];
    let error = call(&text, json!({})).await.unwrap_err();
    assert_eq!(error.partial().unwrap().text(), "[redacted] ok\n[stderr]\nsent [redacted]\n");

    let mut data = printing(r#"echo '{"header": "Bearer abc1"}'"#, OutputFormat::Json);
    data.output.redact = redact.clone();
    let output = call(&data, json!({})).await.unwrap();
    assert_eq!(output.data(), Some(&json!({"header": "[redacted]"})));
    assert!(!output.text().contains("abc1"));

    let mut lines = printing("echo Bearer abc1; echo b", OutputFormat::Lines);
    lines.output.redact = redact;
    let output = call(&lines, json!({})).await.unwrap();
    assert_eq!(output.data(), Some(&json!(["[redacted]", "b"])));
}

#[tokio::test]
async fn a_failure_contains_the_exit_code_and_both_streams() {
    let error = call(&sh("echo half; echo no such pod >&2; exit 3"), json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Execution);
    assert_eq!(error.message(), "sh exited with code 3");
    let partial = error.partial().unwrap();
    assert_eq!(partial.text(), "half\n[stderr]\nno such pod\n");
    assert_eq!(partial.meta()["exit_code"], 3);

    let killed = call(&sh("kill -SEGV $$"), json!({})).await.unwrap_err();
    assert_eq!(killed.message(), "sh was killed by SIGSEGV (signal 11)");
    assert_eq!(killed.partial().unwrap().meta()["signal"], 11);
}

#[tokio::test]
async fn a_service_that_does_not_answer_is_not_blamed_on_the_arguments() {
    let mut trusted = sh("echo 'connect to db port 5432: Connection refused' >&2; exit 2");
    trusted.sandbox = SandboxSpec::of(SandboxProfile::Trusted);
    let error = call(&trusted, json!({})).await.unwrap_err();
    let hints = error.hints().join(" ");
    assert!(hints.contains("service that the program needs did not answer"), "{hints}");
    assert!(!hints.contains("argument, correct it"), "{hints}");
}

#[tokio::test]
async fn declared_exit_codes_mean_success() {
    let mut declaration = sh("echo none; exit 1");
    spec(&mut declaration).ok_exit = vec![0, 1];
    let output = call(&declaration, json!({})).await.unwrap();
    assert_eq!(output.text(), "none\n");
    assert_eq!(output.meta()["exit_code"], 1);
}

#[tokio::test]
async fn a_temporary_failure_is_retryable() {
    let temporary = call(&sh("exit 75"), json!({})).await.unwrap_err();
    assert!(temporary.retryable());
    assert_eq!(temporary.kind(), ErrorKind::Execution);
    assert!(!call(&sh("exit 1"), json!({})).await.unwrap_err().retryable());
    assert!(!call(&sh("kill -TERM $$"), json!({})).await.unwrap_err().retryable());

    let mut declaration = sh("exit 7");
    spec(&mut declaration).retry_exit = vec![6, 7];
    assert!(call(&declaration, json!({})).await.unwrap_err().retryable());
    spec(&mut declaration).retry_exit = vec![];
    assert!(!call(&declaration, json!({})).await.unwrap_err().retryable());
}

#[tokio::test]
async fn a_program_starts_in_the_workspace_or_the_declared_directory() {
    let root = std::env::temp_dir().canonicalize().unwrap();
    let output = call(&sh("pwd -P"), json!({})).await.unwrap();
    assert_eq!(output.text().trim_end(), root.to_str().unwrap());

    let mut declaration = sh("pwd -P");
    spec(&mut declaration).cwd = Some("/".into());
    assert_eq!(call(&declaration, json!({})).await.unwrap().text(), "/\n");
    spec(&mut declaration).cwd = Some("no-such-folder-here".into());
    let error = call(&declaration, json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("working directory"), "{error}");
}
