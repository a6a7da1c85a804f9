//! Directories of manifests.

use std::fs;

use toolcrib_manifest::directory::load_dirs;

const TOOL: &str = "toolcrib: 1\ntools: [{name: NAME, description: D., run: {argv: [ls]}}]\n";

#[test]
fn files_load_in_byte_order_and_a_broken_one_stops_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write("b.yaml", &TOOL.replace("NAME", "bee"));
    write("B.yml", &TOOL.replace("NAME", "upper"));
    write(
        "a.toml",
        "toolcrib = 1\n[[tools]]\nname = \"ay\"\ndescription = \"D.\"\nrun.argv = [\"ls\"]\n",
    );
    write("broken.yaml", "toolcrib: 1\ntools: [{name: x}]\n");
    for ignored in [
        ".hidden.yaml",
        "b.yaml~",
        ".#b.yaml",
        "#b.yaml#",
        ".b.yaml.swp",
        "b.swp",
        "notes.txt",
        "README",
    ] {
        write(ignored, "not: a manifest");
    }
    fs::create_dir(directory.path().join("nested.yaml")).unwrap();
    let load = load_dirs(&[directory.path().to_owned()]);
    let names: Vec<&str> = load.declarations().map(|tool| tool.definition.name()).collect();
    assert_eq!(names, ["upper", "ay", "bee"]);
    assert_eq!(load.files.len(), 4);
    assert!(load.has_errors());
    let (file, _) = load.problems().next().unwrap();
    assert!(file.path.ends_with("broken.yaml"));
    assert!(file.render(false).contains("broken.yaml:2:"), "{}", file.render(false));
}

#[test]
fn what_cannot_be_read_is_a_diagnostic() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("latin.yaml"), b"toolcrib: 1\nowner: M\xfcller\n").unwrap();
    fs::write(directory.path().join("large.yaml"), vec![b'#'; 4 * 1024 * 1024 + 1]).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", directory.path().join("dangling.yaml")).unwrap();
    let missing = directory.path().join("missing");
    let load = load_dirs(&[missing.clone(), directory.path().to_owned()]);
    let codes: Vec<&str> = load.problems().map(|(_, problem)| problem.code).collect();
    assert_eq!(codes, ["unreadable", "unreadable", "too-large", "not-utf8"]);
    let last = load.problems().last().unwrap().1;
    assert_eq!(
        last.message,
        "the file is not UTF-8: byte 20, in line 2 does not begin a \
     character"
    );
    let shown = load.unreadable[0].render(false);
    assert!(shown.contains("missing") && shown.contains("help:"), "{shown}");
}

#[test]
fn several_directories_keep_their_order() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(first.path().join("z.yaml"), TOOL.replace("NAME", "z")).unwrap();
    fs::write(second.path().join("a.yaml"), TOOL.replace("NAME", "a")).unwrap();
    let load = load_dirs(&[first.path().to_owned(), second.path().to_owned()]);
    let names: Vec<&str> = load.declarations().map(|tool| tool.definition.name()).collect();
    assert_eq!(names, ["z", "a"]);
}

#[test]
fn what_cannot_be_a_manifest_is_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("nowhere.yaml", at("dangling.yaml")).expect("a link");
    std::os::unix::fs::symlink("loop.yaml", at("loop.yaml")).expect("a link");
    let _socket = std::os::unix::net::UnixListener::bind(at("socket.yaml")).expect("a socket");
    let load = load_dirs(&[folder.path().to_owned()]);
    let said: Vec<_> = load
        .problems()
        .map(|(file, problem)| {
            let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            format!("{name}: {} ({})", problem.message, problem.help.as_deref().unwrap_or_default())
        })
        .collect();
    assert_eq!(
        said,
        [
            "dangling.yaml: it is a dangling link (restore its target, or remove the link)",
            "loop.yaml: the file cannot be read: Too many levels of symbolic links (os error 40) \
             (check that it is a file, or a link to one, on a working disk)",
            "socket.yaml: the file cannot be read: it is not a regular file (only files, and \
             links to \
             files, are manifests: rename it)",
        ]
    );
}
