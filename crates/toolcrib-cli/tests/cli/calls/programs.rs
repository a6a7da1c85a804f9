//! The built-in tools `bash` and `execute_python`.

use crate::harness::crib::Crib;

#[test]
fn python_runs_unasked_and_prints() {
    let crib = Crib::new(&[]);
    let run = crib.run(&["call", "execute_python", "code=print(6 * 7)"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "42\n"), "{run:?}");
    let refused = crib.run(&["call", "execute_python", "code=import os", "--json"]).json();
    assert_eq!(refused["error"]["kind"], "denied");
}

#[test]
fn bash_runs_in_the_workspace_once_it_is_approved() {
    let crib = Crib::new(&[]);
    let denied = crib.run(&["call", "bash", "command=touch made"]);
    assert_eq!(denied.code, Some(1), "{denied:?}");
    assert!(!crib.path().join("made").exists());
    let run = crib.run(&["call", "bash", "command=touch made; exit 3", "--yes", "--json"]);
    assert_eq!(run.json()["data"]["exit_code"], 3, "{run:?}");
    assert!(crib.path().join("made").exists());
}

#[test]
fn program_settings_take_effect() {
    let crib = Crib::new(&[]);
    crib.config(
        "builtins: {bash: {nonzero_is_error: true, timeout: 1s}}
code_execution:
  default_strictness: lenient
  extra_allowed_modules: {strict: [wsgiref]}
projects: {one: project}
context: {project_id: one}
",
    );
    std::fs::create_dir(crib.path().join("project")).expect("a project");
    let failed = crib.run(&["call", "bash", "command=exit 3", "--yes", "--json"]).json();
    assert_eq!(failed["error"]["kind"], "execution");
    let ended = crib.run(&["call", "bash", "command=pwd; sleep 100", "--yes"]);
    assert!(ended.stdout.contains("/project\n[warning: ended after"), "{ended:?}");
    let code = "code=import os; print(os.listdir(os.environ['TOOLCRIB_WORKSPACE']))";
    assert_eq!(crib.run(&["call", "execute_python", code]).stdout, "[]\n");
    let strict = ["call", "execute_python", "code=import wsgiref", "strictness=strict"];
    assert_eq!(crib.run(&strict).code, Some(0));
    let wrong = crib.run(&["list", "--set", "code_execution.extra_allowed_modules.strict=[a b]"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn a_program_is_confined_by_a_server_that_may_open_fewer_files_than_are_granted() {
    let crib = Crib::new(&[]);
    let limited = |most: u32| {
        let mut shell = crate::harness::server::command("sh");
        shell.args(["-c", &format!("ulimit -n {most}; exec \"$@\""), "sh"]);
        shell.args([env!("CARGO_BIN_EXE_toolcrib"), "call", "bash", "command=echo hi", "--yes"]);
        shell.current_dir(crib.path()).env("TOOLCRIB__WORKSPACE__ROOT", ".");
        shell.env("HOME", crib.home()).env("XDG_STATE_HOME", crib.state_home());
        let output = shell.output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let few = limited(48);
    assert_eq!((few.0, few.1.as_str()), (Some(0), "hi\n"), "{few:?}");
}
