//! Which existing places are hidden from tools or read-only.

use std::fs;
use std::os::unix::fs::symlink;

use super::{TestWorkspace, hidden, unavailable};

#[test]
fn config_files_of_any_name_state_audit_and_secrets_are_hidden() {
    let place = TestWorkspace::new();
    let config = "
state: {dir: state}
audit: {file: audit.jsonl, keep: 2}
secrets: {key: {file: key.txt}}
secret_folders: [keys]
";
    let crib = place.builder(config).build().unwrap();
    for name in [
        "config.yml",
        "config.yaml",
        "config.toml",
        "state",
        "audit.jsonl",
        "audit.jsonl.1",
        "audit.jsonl.2",
        "key.txt",
        "keys",
    ] {
        assert!(hidden(&crib, &place.top.join(name)), "{name}");
    }
}

#[test]
fn manifest_directories_the_lock_and_what_prints_a_secret_are_read_only() {
    let place = TestWorkspace::new();
    place.write("print.sh", "");
    let config = "secrets: {a: {command: [./print.sh]}, b: {command: [sh, print.sh]}}";
    let crib = place.builder(config).build().unwrap();
    for name in ["tools.d", "toolcrib.lock", "print.sh"] {
        assert!(place.read_only(&crib, name), "{name}");
    }
}

#[test]
fn the_running_program_its_helper_and_folders_of_programs_are_read_only() {
    let crib = TestWorkspace::new().crib();
    let places = crib.control_plane().places();
    let own = std::env::current_exe().unwrap().canonicalize().unwrap();
    assert!(places.read_only.contains(&own), "{places:?}");
    assert!(places.read_only.contains(&"/usr/bin".into()), "{places:?}");
}

#[test]
fn scripts_programs_and_files_of_argument_vectors_are_read_only() {
    let place = TestWorkspace::new();
    for file in [
        "ws/scripts/a.sh",
        "ws/b.sh",
        "ws/c.sh",
        "ws/d.sh",
        "ws/e.conf",
        "ws/f.sh",
        "ws/g.sh",
        "ws/notes.db",
        "w.py",
    ] {
        place.write(file, "");
    }
    fs::create_dir(place.top.join("ws/bin")).unwrap();
    place.tool("script", "{script: ../ws/scripts/a.sh}");
    place.tool("program", "{argv: [./b.sh]}");
    place.tool("behind_a_shell", "{argv: [sh, c.sh]}");
    place.tool("in_a_command", "{argv: [sh, -c, 'cd . && ./d.sh']}");
    place.tool("as_an_option", "{argv: [mytool, --config=e.conf]}");
    place.tool("in_a_variable", "{argv: [mytool], env: {BASH_ENV: f.sh/../f.sh, PATH: './bin'}}");
    place.tool("worker", "{worker: [python3, ../w.py]}");
    place.write(
        "tools.d/data.yaml",
        "toolcrib: 1\ntools:\n  - name: data\n    description: Ask.\n    run: {argv: [mydb, notes.db]}\n    \
         sandbox: {write: [notes.db]}\n",
    );
    let crib = place.crib();
    for name in ["ws/scripts/a.sh", "ws/b.sh", "ws/c.sh", "ws/d.sh", "ws/e.conf", "ws/bin", "w.py"]
    {
        assert!(place.read_only(&crib, name), "{name}: {:?}", crib.control_plane().places());
    }
    // The paths that the declaration itself makes writable are data.
    assert!(!place.read_only(&crib, "ws/notes.db"));
    assert!(!place.read_only(&crib, "ws/g.sh"));
}

#[test]
fn the_folder_that_python_loads_modules_from_is_read_only() {
    let place = TestWorkspace::new();
    place.write("ws/scripts/count.py", "");
    place.tool("count", "{argv: [python3, scripts/count.py]}");
    assert!(place.read_only(&place.crib(), "ws/scripts"));
}

#[test]
fn the_interpreter_that_a_script_names_is_read_only() {
    let place = TestWorkspace::new();
    let interpreter = place.write("ws/run", "");
    place.write("ws/a.x", &format!("#!{} -u\n", interpreter.display()));
    place.tool("a", "{argv: [./a.x]}");
    assert!(place.read_only(&place.crib(), "ws/run"));
}

#[test]
fn a_stdio_servers_program_and_files_are_read_only() {
    let place = TestWorkspace::new();
    place.write("ws/server.js", "");
    place.write(
        "tools.d/up.yaml",
        "toolcrib: 1\nupstream:\n  - name: up\n    command: [node, server.js]\n",
    );
    let crib = place.crib();
    assert!(place.read_only(&crib, "ws/server.js"), "{:?}", crib.manifests().unwrap().files());
}

#[test]
fn a_link_is_withheld_with_the_folder_that_it_is_in() {
    let place = TestWorkspace::new();
    place.write("real.sh", "");
    symlink(place.top.join("real.sh"), place.top.join("ws/scripts/run.sh")).unwrap();
    place.tool("run", "{argv: [./scripts/run.sh]}");
    let crib = place.crib();
    assert!(place.read_only(&crib, "real.sh") && place.read_only(&crib, "ws/scripts"));
    let places = crib.control_plane().places();
    assert!(!places.links.iter().any(|link| link.starts_with(&place.top)), "{places:?}");
}

#[test]
fn what_a_link_in_the_workspace_itself_leads_to_makes_programs_unavailable() {
    let place = TestWorkspace::new();
    place.write("real.sh", "");
    symlink(place.top.join("real.sh"), place.top.join("ws/run.sh")).unwrap();
    place.tool("run", "{argv: [./run.sh]}");
    let crib = place.crib();
    let why = unavailable(&crib, "run").unwrap();
    assert!(why.contains("could replace the link"), "{why}");
}

#[test]
fn an_audit_log_that_rotates_is_withheld_with_its_folder_or_refused() {
    let place = TestWorkspace::new();
    let own = place.settings("audit: {file: ws/audit/log, max_bytes: 1MiB}");
    assert!(own.own_places().hidden.contains(&place.top.join("ws/audit")));
    assert_eq!(own.misplaced_audit_log(), None);
    let beside = place.settings("audit: {file: ws/log, max_bytes: 1MiB}");
    assert!(beside.misplaced_audit_log().is_some_and(|why| why.contains("a folder of its own")));
    assert_eq!(place.settings("audit: {file: ws/log}").misplaced_audit_log(), None);
}

#[test]
fn a_config_is_to_come_in_each_folder_where_one_is_looked_for_and_none_is() {
    let place = TestWorkspace::new();
    let mut config = place.settings("{}");
    config.own_files = vec![place.write("other.yml", ""), place.top.join("ws/config.toml")];
    assert_eq!(config.configs_to_come(), [place.top.join("ws/config.yml")]);
    place.write("ws/config.toml", "");
    assert!(config.configs_to_come().is_empty());
}

#[test]
fn a_file_that_a_program_reads_unasked_and_names_that_would_win_over_it_are_read_only() {
    let place = TestWorkspace::new();
    fs::create_dir(place.top.join("ws/sub")).unwrap();
    for file in ["Makefile", "sub/makefile", "package.json", "build.ninja"] {
        place.write(&format!("ws/{file}"), "{}");
    }
    place.tool("make", "{argv: [make, build]}");
    place.tool("make_below", "{argv: [make, -C, sub, build]}");
    place.tool("npm", "{argv: [npm, run, build]}");
    let crib = place.crib();
    for name in
        ["Makefile", "makefile", "GNUmakefile", "sub/GNUmakefile", "sub/makefile", "package.json"]
    {
        let name = format!("ws/{name}");
        assert!(place.read_only(&crib, &name), "{name}: {:?}", crib.control_plane().places());
    }
    for name in ["sub/Makefile", "build.ninja"] {
        let name = format!("ws/{name}");
        assert!(!place.read_only(&crib, &name), "{name}: {:?}", crib.control_plane().places());
    }
    for tool in ["make", "make_below", "npm"] {
        assert!(!unavailable(&crib, tool).is_some_and(|why| why.contains("exist")), "{tool}");
    }
}

#[test]
fn a_makefile_that_wins_over_a_protected_one_is_not_run_by_a_process_that_did_not_see_it_come() {
    let place = TestWorkspace::new();
    place.write("ws/Makefile", "all:\n");
    place.tool("make", "{argv: [make, all]}");
    place.tool("text", "{shell: sh, text: 'make all'}");
    place.tool("named", "{argv: [make, -f, Makefile, all]}");
    let wins = |tool: &str| {
        unavailable(&place.crib(), tool).is_some_and(|why| why.contains("which wins over"))
    };
    assert!(!wins("make") && !wins("text"));
    // Another process started the program that made it.
    place.write("ws/GNUmakefile", "all:\n");
    assert!(wins("make") && wins("text") && !wins("named"));
    fs::remove_file(place.top.join("ws/Makefile")).unwrap();
    assert!(!wins("make"));
}

#[test]
fn a_file_that_a_program_would_read_unasked_stays_open_if_another_is_named_or_it_is_granted() {
    let place = TestWorkspace::new();
    for file in ["Makefile", "own.mk", "package.json"] {
        place.write(&format!("ws/{file}"), "{}");
    }
    place.tool("named", "{argv: [make, -fown.mk, build]}");
    place.tool("install", "{argv: [npm, install]}");
    place.tool("granted", "{argv: [ninja]}\n    sandbox: {write: [build.ninja]}");
    let crib = place.crib();
    for name in ["Makefile", "GNUmakefile", "package.json", "build.ninja"] {
        let name = format!("ws/{name}");
        assert!(!place.read_only(&crib, &name), "{name}: {:?}", crib.control_plane().places());
    }
}

#[test]
fn a_script_is_the_one_in_the_working_directory_and_not_beside_the_manifest() {
    let place = TestWorkspace::new();
    place.tool("a", "{argv: [python3, abs2.py]}");
    place.write("tools.d/abs2.py", "");
    let crib = place.crib();
    assert!(place.read_only(&crib, "ws/abs2.py"));
    let why = unavailable(&crib, "a").unwrap();
    assert!(why.contains("ws/abs2.py`, which does not exist"), "{why}");
}

#[test]
fn files_that_a_text_runs_under_another_name_or_in_another_folder_are_read_only() {
    let place = TestWorkspace::new();
    for folder in ["sub", "argv"] {
        fs::create_dir(place.top.join("ws").join(folder)).unwrap();
    }
    for (nth, text) in [
        "sh ${NOPE:-FILE}",
        "sh ${NOPE-FILE}",
        "x=${NOPE:=FILE}; . \"$x\"",
        "env -C sub sh x.sh",
        "env --chdir=sub ./x.sh",
    ]
    .iter()
    .enumerate()
    {
        let file = if text.contains("FILE") { format!("x{nth}.sh") } else { "sub/x.sh".to_owned() };
        place.write(&format!("ws/{file}"), "");
        let text = text.replace("FILE", &file).replace('"', "\\\"");
        place.tool(&format!("text{nth}"), &format!("{{shell: bash, text: \"{text}\"}}"));
    }
    for file in ["a.sh", "a.bak", "b.sh", "argv/x.sh"] {
        place.write(&format!("ws/{file}"), "");
    }
    place.tool("braces", "{shell: bash, text: 'sh {a.{sh,bak},b.sh}'}");
    place.tool("folder", "{argv: [env, --chdir=argv, ./x.sh]}");
    let crib = place.crib();
    for name in ["x0.sh", "x1.sh", "x2.sh", "sub/x.sh", "a.sh", "a.bak", "b.sh", "argv/x.sh"] {
        let name = format!("ws/{name}");
        assert!(place.read_only(&crib, &name), "{name}: {:?}", crib.control_plane().places());
    }
    for tool in ["folder", "text3", "text4", "braces"] {
        assert_eq!(unavailable(&crib, tool), None, "{tool}");
    }
}

#[test]
fn folders_in_which_git_finds_programs_are_read_only() {
    let place = TestWorkspace::new();
    for folder in ["hooks", "exec", "in_text", "other"] {
        fs::create_dir(place.top.join("ws").join(folder)).unwrap();
    }
    place.tool("hooks", "{argv: [git, -c, core.hooksPath=hooks, commit, -m, x]}");
    place.tool("exec", "{argv: [git, --exec-path=exec, status]}");
    place.tool("text", "{shell: sh, text: 'git -c core.HooksPath=in_text commit -m x'}");
    place.tool("other", "{argv: [git, -c, core.abbrev=8, log, --, other]}");
    let crib = place.crib();
    for name in ["ws/hooks", "ws/exec", "ws/in_text"] {
        assert!(place.read_only(&crib, name), "{name}: {:?}", crib.control_plane().places());
    }
    assert!(!place.read_only(&crib, "ws/other"));
}
