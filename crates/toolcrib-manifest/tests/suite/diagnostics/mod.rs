//! Every diagnostic, as people see it: a small broken manifest each, and one snapshot each.

mod commands;
mod fixes;
mod gallery;
mod keys;
mod kinds;
mod mistakes;
mod rendering;
mod schemas;
mod syntax;

use std::panic::Location;
use std::path::Path;

use toolcrib_manifest::load_str;

/// A manifest with one tool that has these lines beside its name and description.
pub(crate) fn tool(lines: &str) -> String {
    let mut text =
        "toolcrib: 1\ntools:\n  - name: tail\n    description: Read a file.\n".to_owned();
    for line in lines.lines() {
        text.push_str("    ");
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Like [`tool`], with a command that uses the argument `path`.
pub(crate) fn tail(lines: &str) -> String {
    tool(&format!(
        "input: {{properties: {{path: {{type: string}}}}, required: [path]}}\n\
         run: {{argv: [tail, \"${{args.path}}\"]}}\n{lines}"
    ))
}

/// Like [`tool`], with these lines inside `run`.
pub(crate) fn run(lines: &str) -> String {
    let lines = lines.replace('\n', "\n  ");
    tool(&format!(
        "input:\n  properties:\n    path: {{type: string}}\n    names: {{type: array}}\nrun:\n  {lines}"
    ))
}

/// Checks the codes and the picture of a broken file. The snapshot is in a folder with the name of the
/// file that calls.
#[track_caller]
pub(crate) fn shows(case: &str, file: &str, text: &str, codes: &[&str]) {
    let loaded = load_str(file, text);
    let found: Vec<&str> = loaded.diagnostics.iter().map(|found| found.code).collect();
    let pictures: Vec<String> =
        loaded.diagnostics.iter().map(|found| found.render(file, text, false)).collect();
    let pictures = pictures.join("\n\n");
    assert_eq!(found, codes, "{case}\n{pictures}");
    let nothing = loaded.declarations.is_empty() && loaded.upstreams.is_empty();
    assert_eq!(nothing, loaded.has_errors(), "{case}");
    crate::loading::schemas::agrees(file, text, &loaded);
    let caller = Path::new(Location::caller().file());
    let subject = caller.file_stem().expect("a source file").to_string_lossy();
    insta::with_settings!({
        snapshot_path => format!("snapshots/{subject}"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(case, pictures);
    });
}

#[track_caller]
pub(crate) fn yaml(case: &str, text: &str, codes: &[&str]) {
    shows(case, "tail.yaml", text, codes);
}
