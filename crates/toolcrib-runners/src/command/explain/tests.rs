//! Explanations of failed programs.

use toolcrib_sandbox::{ControlPlane, Places};

use super::*;

fn explanation(profile: SandboxProfile, own_home: bool, printed: &str) -> String {
    let sandbox = SandboxSpec::of(profile);
    let host = &RunnerHost::new("/srv/work");
    let confined = ConfinedRun { sandbox: &sandbox, host, program: "sh", exit: Some(1), own_home };
    explain(confined, printed).unwrap_or_default()
}

#[test]
fn a_missing_grant_is_reported_with_the_key_that_grants_it() {
    let rows = [
        ("curl: (6) Could not resolve host: example.com", "profile: workspace+net"),
        ("psql: error: could not translate host name \"db\" to address", "workspace+net"),
        ("The connection to the server localhost:8080 was refused", "pass_env: [HOME]"),
        ("Unable to locate credentials. You can configure", "pass_env: [HOME]"),
        ("cat: /etc/passwd: Permission denied", "read: [\"/etc/passwd\"]"),
        ("mkdir: cannot create directory '/usr/bin': Permission denied", "write: [\"/usr/bin\"]"),
        ("npm error EACCES: permission denied, mkdir '/usr/lib'", "write: [\"/usr/lib\"]"),
        (
            "curl: (7) Failed to connect to 127.0.0.1 port 7791 after 0 ms: Couldn't connect to server",
            "profile: workspace+net",
        ),
        ("curl: (28) Connection timed out after 1001 milliseconds", "profile: workspace+net"),
        (
            "cat: /tmp/toolcrib-1000/0123456789abcdef0123456789abcdef/.gitconfig: No such file or directory",
            "pass_env: [HOME]",
        ),
        ("Unable to locate credentials. You can configure", "the operator's trust"),
        ("Failed to connect to bus: No such file or directory", "profile: trusted"),
        ("sudo: The \"no new privileges\" flag is set", "profile: trusted"),
    ];
    for (printed, key) in rows {
        let explanation = explanation(SandboxProfile::Workspace, false, printed);
        assert!(explanation.contains(key), "{printed}: {explanation}");
    }
}

#[test]
fn the_denied_file_is_named_and_not_the_program_that_reports_it() {
    let told = |program: &str, printed: &str| {
        let sandbox = SandboxSpec::of(SandboxProfile::Workspace);
        let host = &RunnerHost::new("/srv/work");
        let confined =
            ConfinedRun { sandbox: &sandbox, host, program, exit: Some(2), own_home: false };
        explain(confined, printed).unwrap_or_default()
    };
    let python = "/usr/bin/python3: can't open file '/etc/passwd': [Errno 13] Permission denied";
    for program in ["/usr/bin/python3", "python3", ""] {
        let told = told(program, python);
        assert!(told.contains("read: [\"/etc/passwd\"]"), "{program}: {told}");
        assert!(!told.contains("/usr/bin/python3"), "{program}: {told}");
    }
    let alone = told("/usr/bin/git", "/usr/bin/git: Permission denied");
    assert_eq!(alone, "", "the program itself has been started");
    let shell = told("/bin/sh", "/bin/sh: 1: /etc/hosts: Permission denied");
    assert!(shell.contains("read: [\"/etc/hosts\"]"), "{shell}");
}

#[test]
fn a_write_grant_is_suggested_only_for_a_path_that_exists() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().to_string_lossy().into_owned();
    let missing = format!("{there}/a/zz");
    let printed = format!("touch: cannot touch '{missing}': Permission denied");
    let told = |sandbox: &SandboxSpec, printed: &str| {
        let host = &RunnerHost::new("/srv/work");
        let confined =
            ConfinedRun { sandbox, host, program: "touch", exit: Some(1), own_home: false };
        explain(confined, printed).unwrap_or_default()
    };
    let mut sandbox = SandboxSpec::of(SandboxProfile::Workspace);
    let first = told(&sandbox, &printed);
    assert!(first.contains(&format!("write: [\"{there}\"]")), "{first}");
    assert!(first.contains("does not exist"), "{first}");
    sandbox.write.push(missing.into());
    assert_eq!(told(&sandbox, &printed), first, "the grant had no effect");
    sandbox.write.push(there.into());
    assert_eq!(told(&sandbox, &printed), "");
    let top = explanation(
        SandboxProfile::Workspace,
        false,
        "mkdir: cannot create directory '/nosuch-toolcrib/x': Permission denied",
    );
    assert!(top.contains("does not exist") && !top.contains("[\"/\"]"), "{top}");
}

#[test]
fn advice_says_when_a_grant_needs_the_operators_trust() {
    let shadow = "cat: /etc/shadow: Permission denied";
    let logs = "touch: cannot touch '/var/log/x.log': Permission denied";
    for printed in [shadow, logs] {
        let told = explanation(SandboxProfile::Workspace, false, printed);
        assert!(told.ends_with("needs the operator's trust (`toolcrib trust`)."), "{told}");
    }
    let public =
        explanation(SandboxProfile::Workspace, false, "cat: /etc/passwd: Permission denied");
    assert!(!public.contains("trust"), "{public}");
}

#[test]
fn a_connection_of_bash_is_never_advised_as_a_file() {
    let printed =
        "bash: connect: Permission denied\nbash: line 1: /dev/tcp/127.0.0.1/80: Permission denied";
    let told = explanation(SandboxProfile::Workspace, false, printed);
    assert!(told.contains("workspace+net") && !told.contains("write"), "{told}");
    assert_eq!(explanation(SandboxProfile::WorkspaceNet, false, printed), "");
    let device = "sh: cannot create /dev/nosuch: Permission denied";
    let told = explanation(SandboxProfile::Workspace, false, device);
    assert!(!told.contains("[\"/dev\"]"), "{told}");
}

#[test]
fn a_program_without_memory_is_told_the_limit() {
    for printed in ["MemoryError", "fork: Cannot allocate memory", "std::bad_alloc"] {
        let told = explanation(SandboxProfile::Workspace, false, printed);
        assert!(told.contains("its 2GiB of memory"), "{told}");
        assert!(told.contains("`limits: {memory: 4GiB}`"), "{told}");
        assert_eq!(explanation(SandboxProfile::Trusted, false, printed), "", "it has no limit");
    }
}

#[test]
fn a_grant_in_the_control_plane_is_named_as_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    let manifests = folder.path().join("tools.d");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::create_dir(&manifests).unwrap();
    let plane = ControlPlane::new();
    plane.set(Places::resolve(std::iter::empty::<&Path>(), [&manifests]));
    let host = &RunnerHost::new(&workspace).with_control_plane(plane);
    let mut sandbox = SandboxSpec::of(SandboxProfile::Workspace);
    sandbox.write.push("../tools.d".into());
    let confined =
        ConfinedRun { sandbox: &sandbox, host, program: "touch", exit: Some(1), own_home: false };
    let told = explain(confined, "touch: '../tools.d/x': Read-only file system");
    let told = told.unwrap_or_default();
    assert!(told.contains("`write: [\"../tools.d\"]`"), "{told}");
    assert!(told.contains("no confined program changes these"), "{told}");
}

#[test]
fn a_silent_curl_without_a_network_gets_the_network_hint() {
    let sandbox = SandboxSpec::of(SandboxProfile::Workspace);
    let host = &RunnerHost::new("/srv/work");
    let explanation = |program, code| {
        let exit = Some(code);
        let confined = ConfinedRun { sandbox: &sandbox, host, program, exit, own_home: false };
        explain(confined, "").unwrap_or_default()
    };
    for code in [6, 7, 28] {
        assert!(explanation("/usr/bin/curl", code).contains("profile: workspace+net"), "{code}");
        assert_eq!(explanation("grep", code), "", "{code}");
    }
    assert_eq!(explanation("curl", 22), "", "the server answered");
}

#[test]
fn granted_permissions_are_not_reported_as_missing() {
    let offline = "Could not resolve host: example.com";
    assert_eq!(explanation(SandboxProfile::WorkspaceNet, false, offline), "");
    assert_eq!(explanation(SandboxProfile::Trusted, false, "cat: /x: Permission denied"), "");
    let home = "The connection to the server localhost:8080 was refused";
    assert_eq!(explanation(SandboxProfile::WorkspaceNet, true, home), "");
    assert_eq!(explanation(SandboxProfile::Workspace, false, "grep: no match"), "");
    let own = "cat: /srv/work/a: Permission denied";
    assert_eq!(explanation(SandboxProfile::Workspace, false, own), "");
}
