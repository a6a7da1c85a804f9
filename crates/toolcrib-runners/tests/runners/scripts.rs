//! Scripts: files beside the manifest, and shell text in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use toolcrib_manifest::load_str;
use toolcrib_runners::{CommandRunner, RunnerHost, entry};
use toolcrib_tool::{Arguments, CallContext, ErrorKind, Tool, ToolError, ToolOutcome};

/// Calls the tool of a manifest in a folder; commands run in `/`.
async fn call(folder: &Path, run: &str, arguments: &Value) -> Result<String, ToolError> {
    call_on(&RunnerHost::new("/"), folder, run, arguments).await
}

async fn call_on(
    host: &RunnerHost,
    folder: &Path,
    run: &str,
    arguments: &Value,
) -> Result<String, ToolError> {
    let declaration = declared(folder, run);
    let runner = CommandRunner::new(&declaration, host);
    let cx = CallContext::builder("call_1", declaration.definition).build();
    match runner.call(Arguments::from_validated(arguments.to_string()), &cx).await? {
        ToolOutcome::Done(output) => Ok(output.text().into_owned()),
        other => panic!("not done: {other:?}"),
    }
}

fn declared(folder: &Path, run: &str) -> toolcrib_manifest::declaration::Declaration {
    let text = format!(
        "toolcrib: 1\ntools:\n  - name: t\n    description: Run it.\n    input:\n      properties: \
         {{a: {{type: string}}, b: {{type: string}}, list: {{type: array, items: {{type: string}}}}}}\n    run:\n      {}\n",
        run.replace('\n', "\n      ")
    );
    let file = folder.join("t.yaml").to_string_lossy().into_owned();
    let loaded = load_str(&file, &text);
    loaded.declarations.into_iter().next().unwrap_or_else(|| {
        panic!("{:?}", loaded.diagnostics.iter().map(|one| &one.message).collect::<Vec<_>>())
    })
}

fn script(folder: &Path, text: &str, mode: u32) {
    let file = folder.join("s.sh");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_script_beside_the_manifest_gets_its_arguments_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let run = "script: ./s.sh\nargs: ['--keep=${args.b}', {each: list}, --, '${args.a}']";
    let arguments = json!({"a": "-x $(id) ${args.b}", "list": ["1 2", "*"]});
    for mode in [0o755, 0o644] {
        script(folder.path(), "#!/bin/sh\npwd; printf '%s|' \"$@\"\n", mode);
        let text = call(folder.path(), run, &arguments).await.unwrap();
        assert_eq!(text, "/\n1 2|*|--|-x $(id) ${args.b}|");
    }
    let refused = call(folder.path(), run, &json!({"list": ["-rf"]})).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgs);
}

#[tokio::test]
async fn a_pinned_script_runs_from_a_verified_copy_and_knows_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let pinned = RunnerHost::new("/").with_pinned_scripts(true);
    // The script changes its own file before the shell reads on, which it does line by line.
    let text = "#!/bin/sh\nprintf '#!/bin/sh\\necho evil\\necho evil\\necho evil\\n' > \"$TOOLCRIB_SCRIPT\"\n\
                echo \"$0 $1\"\necho \"$TOOLCRIB_SCRIPT\"\n";
    let run = "script: ./s.sh\nargs: ['${args.a}']";
    let own = folder.path().join("./s.sh");
    for mode in [0o755, 0o644] {
        script(folder.path(), text, mode);
        let said = call_on(&pinned, folder.path(), run, &json!({"a": "x"})).await.unwrap();
        let own = std::path::absolute(&own).unwrap();
        let mut lines = said.lines();
        let name = lines.next().unwrap_or_default();
        assert!(name.starts_with("/proc/self/fd/") && name.ends_with(" x"), "{said}");
        assert_eq!(lines.next(), own.to_str(), "{said}");
        let after = fs::read_to_string(&own).unwrap();
        assert!(after.contains("evil"), "it has changed itself: {after}");
    }
}

#[tokio::test]
async fn a_script_that_cannot_run_makes_the_tool_unavailable_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let reason = |name: &str| {
        let declaration = declared(folder.path(), &format!("script: {name}"));
        let entry = entry(&declaration, &RunnerHost::new("/"));
        let shown = folder.path().display().to_string();
        entry.unavailable_reason().map(|reason| reason.replace(&shown, "DIR"))
    };
    assert_eq!(
        reason("./s.sh").unwrap(),
        "needs the script `DIR/./s.sh`, which cannot be read: No such file or directory (os error 2)"
    );
    script(folder.path(), "echo no first line\n", 0o644);
    assert_eq!(
        reason("s.sh").unwrap(),
        "needs the script `DIR/s.sh`, which is not executable and has no `#!` line: run `chmod +x`, \
         or begin it with a line such as `#!/bin/sh`"
    );
    assert!(reason(".").unwrap().ends_with("which is not a regular file"));
    let error = call(folder.path(), "script: gone.sh", &json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    script(folder.path(), "#!/bin/sh\n", 0o644);
    assert_eq!(reason("s.sh"), None);
}

/// A version manager: `snake` in its folder of shims runs a file of its installation, and is all that is on `PATH`.
fn version_manager(folder: &Path) {
    for (name, text) in [
        ("snakes/shims/snake", "#!/bin/sh\nexec \"${0%/*}/../libexec/snake\" \"$@\"\n"),
        ("snakes/libexec/snake", "#!/bin/sh\nexec /bin/sh \"$@\"\n"),
    ] {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[tokio::test]
async fn an_interpreter_is_granted_its_installation_however_it_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = tempfile::tempdir().unwrap();
    version_manager(folder.path());
    let host = RunnerHost::new(workspace.path());
    let path = folder.path().join("snakes/shims");
    let env = format!("env: {{PATH: '{}:/usr/bin:/bin'}}", path.display());
    for (mode, run) in [
        (0o755, "script: ./s.sh"),
        (0o644, "script: ./s.sh"),
        (0o644, "argv: [env, snake, -c, echo hello]"),
        (0o644, "argv: [bash, -c, \"snake -c 'echo hello'\"]"),
        (0o644, "shell: bash\ntext: true && snake -c 'echo hello'"),
    ] {
        script(folder.path(), "#!/usr/bin/env snake\necho hello\n", mode);
        let run = format!("{run}\n{env}");
        let text = call_on(&host, folder.path(), &run, &json!({})).await;
        assert_eq!(text.as_deref().ok(), Some("hello\n"), "{run}: {text:?}");
    }
}

#[tokio::test]
async fn shell_text_gets_values_as_variables_without_substitution() {
    let folder = tempfile::tempdir().unwrap();
    let run = "shell: bash\ntext: |\n  printf '%s|' \"$A\" \"${B-unset}\" '${HOME' \"$0\" \"$#\"\n  cat\n\
               vars: {A: '${args.a}', B: 'x${args.b}'}\nenv: {HOME: /nowhere}\nstdin: '${args.a}'";
    let value = "$(touch pwned); `id` \" ' ${args.b} \\ *";
    let text = call(folder.path(), run, &json!({"a": value})).await.unwrap();
    assert_eq!(text, format!("{value}|unset|${{HOME|bash|0|{value}"));
    let refused = call(folder.path(), run, &json!({"a": "two\nlines"})).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgs);
}

#[tokio::test]
async fn a_program_reads_all_arguments_as_one_json_object() {
    let folder = tempfile::tempdir().unwrap();
    let run = "shell: sh\ntext: cat\nstdin: '${args}'";
    let text = call(folder.path(), run, &json!({"b": "two\nlines", "a": 1})).await.unwrap();
    assert_eq!(text, r#"{"a":1,"b":"two\nlines"}"#);
}

#[tokio::test]
async fn script_exit_codes_work_like_those_of_commands() {
    let folder = tempfile::tempdir().unwrap();
    let run = |code: u8| format!("shell: sh\ntext: exit {code}\nok_exit: [0, 1]");
    assert!(call(folder.path(), &run(1), &json!({})).await.is_ok());
    let failed = call(folder.path(), &run(2), &json!({})).await.unwrap_err();
    assert_eq!(failed.message(), "sh exited with code 2");
    let passing = call(folder.path(), &run(75), &json!({})).await.unwrap_err();
    assert!(passing.retryable());
}
