//! Files that programs run and folders that are granted: what is missing on this machine is reported.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;

use toolcrib_manifest::{Diagnostic, LintContext, lint_with};

/// A workspace with `sub/build.mk`, and manifests beside it with `beside.py`.
struct Folders(tempfile::TempDir);

impl Folders {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("workspace/sub/build.mk", "all:\n"),
            ("tools.d/beside.py", "print(1)\n"),
            ("elsewhere/report.py", "print(2)\n"),
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    /// What is found in a tool with these lines, the hints of every tool left out.
    fn found(&self, lines: &str) -> Vec<Diagnostic> {
        let lines = lines.replace("FOLDER", &self.0.path().display().to_string());
        let text = format!(
            "toolcrib: 1\ntools:\n  - name: t\n    description: Do something that is useful. Read-only.\n    \
             annotations: {{read_only: false}}\n    {lines}\n"
        );
        let file = self.0.path().join("tools.d/t.yaml").display().to_string();
        let known = LintContext::default().files(true).workspace(self.0.path().join("workspace"));
        let mut found = lint_with(&file, &text, &known, &|_| Vec::new()).diagnostics;
        found.retain(|found| {
            ["missing-script", "missing-grant", "ungranted-file"].contains(&found.code)
        });
        found
    }
}

#[test]
fn makefiles_playbooks_and_other_files_that_programs_run_are_looked_for() {
    let folders = Folders::new();
    for missing in [
        "[make, -f, build.mk]",
        "[make, --file=build.mk, all]",
        "[timeout, \"9\", make, -C, sub, -f, other.mk]",
        "[ansible-playbook, -i, hosts.ini, site.yml]",
        "[awk, -f, report.awk, data.txt]",
        "[sed, -f, edit, data.txt]",
        "[java, -jar, tool.jar]",
        "[Rscript, report.R]",
        "[python3, report.py]",
    ] {
        let found = folders.found(&format!("run: {{argv: {missing}}}"));
        assert_eq!(found.len(), 1, "{missing}: {found:?}");
        assert_eq!(found[0].code, "missing-script", "{missing}");
    }
    for fine in [
        "[make, -C, sub, -f, build.mk]",
        "[make, -f, sub/build.mk, all]",
        "[make, all]",
        "[ansible, all, -m, ping]",
        "[awk, '{print}', data.txt]",
        "[cat, data.txt]",
    ] {
        let found = folders.found(&format!("run: {{argv: {fine}}}"));
        assert!(found.is_empty(), "{fine}: {found:?}");
    }
}

#[test]
fn a_file_beside_the_manifest_is_named_with_the_key_that_starts_it() {
    for run in ["run: {argv: [python3, beside.py]}", "run: {argv: [./beside.py]}"] {
        let found = Folders::new().found(run);
        assert_eq!(found.len(), 1, "{run}: {found:?}");
        assert!(found[0].message.contains("beside the manifest"), "{found:?}");
        assert!(found[0].help.as_deref().unwrap().contains("script: ./beside.py"), "{found:?}");
    }
}

#[test]
fn a_file_that_a_confined_program_may_not_read_is_reported_with_the_grant() {
    let folders = Folders::new();
    let argv = "run: {argv: [python3, FOLDER/elsewhere/report.py]}";
    let found = folders.found(argv);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].code, "ungranted-file");
    let grant = found[0].help.as_deref().unwrap();
    assert!(
        grant.contains("sandbox: {read: [") && grant.contains("elsewhere/report.py"),
        "{grant}"
    );
    for sandbox in
        ["{profile: trusted}", "{read: [FOLDER/elsewhere]}", "{read: [FOLDER/elsewhere/report.py]}"]
    {
        let found = folders.found(&format!("sandbox: {sandbox}\n    {argv}"));
        assert!(found.is_empty(), "{sandbox}: {found:?}");
    }
}

#[test]
fn a_grant_of_a_path_that_does_not_exist_is_a_hint() {
    let folders = Folders::new();
    let found = folders.found(
        "sandbox: {read: [/nosuch/folder, sub, \"~\"], write: [FOLDER/elsewhere/new]}\n    run: {argv: [uptime]}",
    );
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].message.contains("`/nosuch/folder` does not exist"), "{found:?}");
    assert!(found[1].help.as_deref().unwrap().contains("elsewhere`"), "{found:?}");
}

#[test]
fn a_grant_of_what_the_system_makes_while_it_runs_need_not_exist() {
    let folders = Folders::new();
    let found = folders.found("sandbox: {read: [/run/nope, /sys/nope]}\n    run: {argv: [uptime]}");
    assert!(found.is_empty(), "{found:?}");
    let found = folders.found("sandbox: {read: [/opt/nope]}\n    run: {argv: [uptime]}");
    assert_eq!(found.len(), 1, "{found:?}");
}
