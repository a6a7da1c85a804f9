//! Files that do not exist yet and that would decide what runs.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::sync::Arc;

use toolcrib_runners::RunnerHost;

use super::{TestWorkspace, call, unavailable};
use crate::Toolcrib;
use crate::control_plane::ExposedFiles;
use crate::manifests::Manifests;

#[tokio::test]
async fn a_script_that_a_program_could_have_made_is_not_run_before_a_reload() {
    let place = TestWorkspace::new();
    let script = place.write("ws/scripts/a.sh", "#!/bin/sh\necho first\n");
    place.tool("a", "{argv: [sh, scripts/a.sh]}");
    place.tool("other", "{argv: [uname]}");
    let crib = place.crib();
    assert!(call(&crib, "a", "{}").await.contains("first"));
    // A checkout removes it, and a program runs that could write there.
    fs::remove_file(&script).unwrap();
    call(&crib, "other", "{}").await;
    fs::write(&script, "echo evil").unwrap();
    let said = call(&crib, "a", "{}").await;
    assert!(said.contains("could create") && !said.contains("evil"), "{said}");
    crib.manifests().unwrap().reload();
    assert!(call(&crib, "a", "{}").await.contains("evil"));
}

#[tokio::test]
async fn a_file_that_a_program_could_have_made_is_not_run_by_another_process_before_a_review() {
    let place = TestWorkspace::new();
    let state = place.top.join("state");
    fs::DirBuilder::new().mode(0o700).create(&state).unwrap();
    let crib = || {
        let host = RunnerHost::new(place.top.join("ws"));
        host.control_plane.record_exposures(Arc::new(ExposedFiles::in_state(&state)));
        let config = place.settings("{}");
        let found = Manifests::load(&config.manifests.dirs, host);
        Toolcrib::builder().settings(&config).native_tools().manifests(&found).build().unwrap()
    };
    place.tool("script", "{argv: [sh, scripts/a.sh]}");
    place.tool("sourced", "{argv: [sh, -c, 'test ! -e scripts/b.sh || . scripts/b.sh']}");
    place.tool("other", "{argv: [uname]}");
    let (first, beside) = (crib(), crib());
    call(&beside, "sourced", "{}").await;
    call(&first, "other", "{}").await;
    for name in ["a", "b"] {
        place.write(&format!("ws/scripts/{name}.sh"), "echo evil");
    }
    drop(first);
    let later = crib();
    for (tool, crib) in [("script", &later), ("sourced", &later), ("sourced", &beside)] {
        let said = call(crib, tool, "{}").await;
        assert!(said.contains("could create") && !said.contains("evil"), "{tool}: {said}");
    }
    let reviewed = later.manifests().unwrap().reload_and_review().1;
    assert_eq!(reviewed.len(), 2, "{reviewed:?}");
    for tool in ["script", "sourced"] {
        assert!(call(&crib(), tool, "{}").await.contains("evil"), "{tool}");
    }
}

#[test]
fn a_tool_whose_script_is_missing_is_unavailable_until_its_manifest_is_read_again() {
    let place = TestWorkspace::new();
    place.tool("a", "{argv: [./a.sh]}");
    let crib = place.crib();
    let why = unavailable(&crib, "a").unwrap();
    assert!(why.contains("a.sh`, which does not exist"), "{why}");
    place.write("ws/a.sh", "");
    assert!(unavailable(&crib, "a").is_some());
    crib.manifests().unwrap().reload();
    assert_eq!(unavailable(&crib, "a"), None);
}

#[test]
fn a_missing_secret_and_a_missing_script_of_a_trusted_tool_are_nobodys_to_make() {
    let place = TestWorkspace::new();
    let text = "toolcrib: 1\ntools:\n  - name: a\n    description: Run something.\n    \
                sandbox: {profile: trusted}\n    run: {script: ../ws/missing.sh}\n";
    place.write("tools.d/a.yaml", text);
    let crib = place.builder("secrets: {tok: {file: ws/keys/tok}}").build().unwrap();
    let guarded = crib.control_plane().places().guarded.clone();
    for missing in ["ws/missing.sh", "ws/keys/tok"] {
        assert!(guarded.contains(&place.top.join(missing)), "{missing}: {guarded:?}");
    }
}

#[test]
fn a_missing_file_that_an_argument_vector_runs_is_read_only_and_its_tool_waits_for_a_reload() {
    let place = TestWorkspace::new();
    fs::create_dir(place.top.join("ws/sub")).unwrap();
    for (tool, run, file) in [
        ("makefile", "{argv: [make, -f, build.mk]}", "ws/build.mk"),
        ("glued", "{argv: [make, -fglued.mk, all]}", "ws/glued.mk"),
        ("long", "{argv: [make, --makefile=long.mk]}", "ws/long.mk"),
        ("moved", "{argv: [make, -C, sub, -f, moved.mk]}", "ws/sub/moved.mk"),
        ("playbook", "{argv: [ansible-playbook, site2.yml]}", "ws/site2.yml"),
        ("python", "{argv: [python3, nightly.py]}", "ws/nightly.py"),
        ("bare", "{argv: [timeout, '9', sh, nightly]}", "ws/nightly"),
        ("filter", "{argv: [awk, -f, rules.txt, in.txt]}", "ws/rules.txt"),
    ] {
        place.tool(tool, run);
        let crib = place.crib();
        assert!(place.read_only(&crib, file), "{tool}: {:?}", crib.control_plane().places());
        let why = unavailable(&crib, tool).unwrap_or_default();
        assert!(why.contains(&format!("{file}`, which does not exist")), "{tool}: {why}");
        place.write(file, "");
        assert!(unavailable(&crib, tool).is_some(), "{tool}");
        crib.manifests().unwrap().reload();
        let why = unavailable(&crib, tool).unwrap_or_default();
        assert!(!why.contains("does not exist"), "{tool}: {why}");
    }
}

#[test]
fn a_missing_file_that_a_program_may_run_is_read_only_and_its_tool_is_available() {
    let place = TestWorkspace::new();
    place.tool("after_options", "{argv: [python3, -W, ignore, nightly]}");
    place.tool("in_a_command", "{argv: [sh, -c, 'test -e x && ./d.sh; . settings']}");
    place.tool("behind_env", "{argv: [env, -u, A, ./e.sh]}");
    place.tool("as_an_option", "{argv: [printer, --config=e.conf]}");
    let crib = place.crib();
    for name in ["ws/nightly", "ws/d.sh", "ws/settings", "ws/e.sh", "ws/e.conf"] {
        assert!(place.read_only(&crib, name), "{name}: {:?}", crib.control_plane().places());
    }
    for tool in ["after_options", "in_a_command", "behind_env"] {
        assert_eq!(unavailable(&crib, tool), None, "{tool}");
    }
}

#[test]
fn a_missing_file_that_is_a_programs_data_stays_open_to_tools() {
    let place = TestWorkspace::new();
    place.tool("target", "{argv: [make, app]}");
    place.tool("filter", "{argv: [sed, -n, 1p, notes.txt]}");
    place.tool("one_liner", "{argv: [perl, -ne, 'print', lines.txt]}");
    place.tool("script", "{argv: [sh, -c, 'cat in.txt > out.sh']}");
    place.tool("sorted", "{argv: [timeout, '9', sort, -o, sorted.sh, words]}");
    place.tool("printed", "{argv: [sh, -c, 'printf hello; echo $1', sh, '${args.x}']}");
    let crib = place.crib();
    for name in ["app", "notes.txt", "lines.txt", "in.txt", "out.sh", "sorted.sh", "words"] {
        let name = format!("ws/{name}");
        assert!(!place.read_only(&crib, &name), "{name}: {:?}", crib.control_plane().places());
    }
}

#[cfg(feature = "builtins")]
#[tokio::test]
async fn file_tools_do_not_create_a_file_that_a_manifest_runs() {
    let place = TestWorkspace::new();
    place.tool("build", "{argv: [make, -f, build.mk]}");
    place.tool("site", "{argv: [ansible-playbook, site2.yml]}");
    place.tool("beside", "{argv: [python3, abs2.py]}");
    place.tool("command", "{argv: [sh, -c, 'test ! -e d.sh || ./d.sh']}");
    place.write("tools.d/abs2.py", "");
    let crib = place.crib();
    for path in ["build.mk", "site2.yml", "abs2.py", "d.sh"] {
        let arguments = format!(r#"{{"path":"{path}","content":"x"}}"#);
        let said = call(&crib, "file_write", &arguments).await;
        assert!(said.contains("protected against changes"), "{path}: {said}");
        assert!(!place.top.join("ws").join(path).exists(), "{path}");
    }
    for tool in ["build", "site", "beside"] {
        let said = call(&crib, tool, "{}").await;
        assert!(said.contains("which does not exist"), "{tool}: {said}");
    }
}

#[tokio::test]
async fn a_file_that_a_program_created_and_a_command_would_run_is_not_run_before_a_reload() {
    let place = TestWorkspace::new();
    place.tool("command", "{argv: [sh, -c, 'test ! -e d.sh || sh ./d.sh; echo done']}");
    place.tool("other", "{argv: [touch, d.sh]}");
    let crib = place.crib();
    assert!(call(&crib, "command", "{}").await.contains("done"));
    call(&crib, "other", "{}").await;
    assert!(place.top.join("ws/d.sh").exists());
    let said = call(&crib, "command", "{}").await;
    assert!(said.contains("could create"), "{said}");
    let (_, reviewed) = crib.manifests().unwrap().reload_and_review();
    assert_eq!(
        reviewed,
        [place.top.join("ws/d.sh")],
        "the operator is told what the reload accepts"
    );
    assert!(call(&crib, "command", "{}").await.contains("done"));
    let (_, reviewed) = crib.manifests().unwrap().reload_and_review();
    assert!(reviewed.is_empty(), "{reviewed:?}");
}

#[test]
fn a_tool_whose_missing_script_would_be_behind_a_link_is_unavailable() {
    let place = TestWorkspace::new();
    symlink("made-later.mk", place.top.join("ws/build.mk")).unwrap();
    place.tool("build", "{argv: [make, -f, build.mk]}");
    place.tool("other", "{argv: [uname]}");
    let crib = place.crib();
    let why = unavailable(&crib, "build").unwrap();
    assert!(why.contains("symbolic link in the workspace"), "{why}");
    assert_eq!(unavailable(&crib, "other"), None);
}
