//! Tests of code that programs load although no argument names its file: modules, makefiles, and files of shell texts
//! that change their folder.

use std::fs;

use super::{TestWorkspace, call};

const PRINT_SECRET: &str = "print('taken over')\n";

#[tokio::test]
async fn python_loads_no_modules_from_a_workspace_in_which_tools_write() {
    let place = TestWorkspace::new();
    place.tool("inline", "{argv: [python3, -c, 'import json; print(json.dumps(1))']}");
    place.tool("module", "{argv: [python3, -m, json.tool], stdin: '1'}");
    place.tool("in_shell", "{shell: sh, text: 'python3 -c \"import json; print(json.dumps(1))\"'}");
    place.tool("own", "{argv: [python3, -m, own_module], env: {PYTHONPATH: lib}}");
    place.write("ws/json.py", PRINT_SECRET);
    fs::create_dir(place.top.join("ws/lib")).unwrap();
    place.write("ws/lib/own_module.py", "print('as meant')\n");
    let crib = place.crib();
    for tool in ["inline", "module", "in_shell"] {
        let said = call(&crib, tool, "{}").await;
        assert!(!said.contains("taken over") && said.contains('1'), "{tool}: {said}");
    }
    assert!(call(&crib, "own", "{}").await.contains("as meant"));
    assert!(place.read_only(&crib, "ws/lib"), "{:?}", crib.control_plane().places());
}

#[tokio::test]
async fn a_script_of_python_loads_modules_from_its_own_folder() {
    let place = TestWorkspace::new();
    place.write("ws/scripts/beside.py", "TEXT = 'from beside'\n");
    place.write("ws/scripts/main.py", "import beside\nprint(beside.TEXT)\n");
    place.tool("script", "{argv: [python3, scripts/main.py]}");
    let crib = place.crib();
    assert!(call(&crib, "script", "{}").await.contains("from beside"));
    assert!(place.read_only(&crib, "ws/scripts"));
}

#[test]
fn files_that_a_shell_text_runs_after_it_changed_its_folder_are_read_only() {
    let place = TestWorkspace::new();
    for folder in ["a", "b", "c", "d", "e", "bin"] {
        fs::create_dir(place.top.join("ws").join(folder)).unwrap();
    }
    for file in ["a/run.sh", "b/run.sh", "c/run.sh", "d/run.sh", "e/Makefile", "bin/tool1"] {
        place.write(&format!("ws/{file}"), "echo hello\n");
    }
    place.tool("cd", "{shell: sh, text: 'cd a && . ./run.sh'}");
    place.tool("subshell", "{shell: sh, text: '(cd b; sh run.sh)'}");
    place.tool("variable", "{shell: sh, text: 'd=c; . $d/run.sh'}");
    place.tool("pwd", "{shell: sh, text: 'sh \"$PWD/d/run.sh\"'}");
    place.tool("make", "{shell: sh, text: 'cd e && make -s all'}");
    place.tool("path", "{shell: sh, text: 'PATH=./bin:$PATH; tool1'}");
    place.tool("env_folder", "{argv: [env, -C, a, sh, run.sh]}");
    let crib = place.crib();
    for name in
        ["a/run.sh", "b/run.sh", "c/run.sh", "d/run.sh", "e/Makefile", "e/GNUmakefile", "bin"]
    {
        let name = format!("ws/{name}");
        assert!(place.read_only(&crib, &name), "{name}: {:?}", crib.control_plane().places());
    }
}

#[test]
fn folders_of_search_variables_are_read_only_however_they_are_written() {
    let place = TestWorkspace::new();
    fs::create_dir(place.top.join("ws/bin")).unwrap();
    place.tool("path", "{argv: [sh, -c, tool1], env: {PATH: 'bin:/usr/bin:/bin'}}");
    place.tool("all", "{argv: [sh, -c, tool1], env: {PATH: '.:/usr/bin:/bin'}}");
    let crib = place.crib();
    assert!(place.read_only(&crib, "ws/bin"), "{:?}", crib.control_plane().places());
    assert!(!place.read_only(&crib, "ws"), "tools could write nothing");
}
