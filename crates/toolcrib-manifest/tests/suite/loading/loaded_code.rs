//! Programs that load code from the workspace unasked are warned of.

use toolcrib_manifest::{LintContext, lint_with};

fn warned(run: &str) -> bool {
    let manifest = format!(
        "toolcrib: 1\ntools:\n  - name: t\n    description: Do something that is useful. Read-only.\n    \
         annotations: {{read_only: true}}\n    {run}\n"
    );
    let linted = lint_with("t.yaml", &manifest, &LintContext::default(), &|_| Vec::new());
    linted.diagnostics.iter().any(|found| found.code == "loaded-code")
}

#[test]
fn programs_that_load_code_from_the_workspace_are_warned_of() {
    for run in [
        "run: {argv: [python3, -E, -c, 'import json']}",
        "run: {argv: [python3, -sE, -m, json.tool]}",
        "run: {argv: [env, -i, python3, -c, 'import json']}",
        "run: {argv: [env, -u, PYTHONSAFEPATH, python3, x.py]}",
        "run: {argv: [bash, -c, 'python3 -E -c \"import json\"']}",
        "run: {shell: bash, text: 'env -i PATH=\"$PATH\" python3 -c \"import json\"'}",
        "run: {shell: bash, text: 'unset PYTHONSAFEPATH; python3 -c \"import json\"'}",
        "run: {shell: sh, text: 'env -u PYTHONSAFEPATH python3 -c \"import json\"'}",
        "run: {shell: sh, text: 'PYTHONSAFEPATH= python3 -c \"import json\"'}",
        "run: {shell: bash, text: 'cd sub && python3 -E -c \"import json\"'}",
        "run: {argv: [python3, -E, -c, 'import json'], cwd: sub}",
        "run: {argv: [perl, -I., -e, 'use Foo']}",
        "run: {argv: [ruby, -I, ., -e, 'require \"foo\"']}",
        "run: {argv: [node, -e, 'require(\"semver\")']}",
        "run: {argv: [node, -p, 'require(\"./lib\").n']}",
        "run: {argv: [lua, -e, 'require \"x\"']}",
        "run: {argv: [Rscript, report.R]}",
        "run: {argv: [octave, --eval, 'disp(1)']}",
        "run: {argv: [timeout, '5', Rscript, report.R]}",
    ] {
        assert!(warned(run), "{run}");
    }
}

#[test]
fn programs_that_are_kept_from_it_are_not() {
    for run in [
        "run: {argv: [python3, -c, 'import json']}",
        "run: {argv: [python3, -I, -c, 'import json']}",
        "run: {argv: [python3, -E, -P, -c, 'import json']}",
        "run: {argv: [python3, -c, 'import E']}",
        "run: {argv: [env, -i, python3, -I, -c, 'import json']}",
        "run: {argv: [python3, -E, x.py], cwd: ../tools.d}",
        "run: {argv: [python3, -E, x.py]}\n    sandbox: {profile: trusted}",
        "run: {shell: sh, text: 'python3 -c \"import json\"'}",
        "run: {shell: sh, text: 'grep python3 -E notes.txt'}",
        "run: {shell: sh, text: 'env -i date'}",
        "run: {argv: [perl, -Ilib, -e, 'use Foo']}",
        "run: {argv: [node, -e, 'require(\"fs\"); require(\"node:path\")']}",
        "run: {argv: [Rscript, --vanilla, report.R]}",
        "run: {argv: [octave, --norc, --eval, 'disp(1)']}",
        "run: {argv: [lua, -e, 'print(1)']}",
    ] {
        assert!(!warned(run), "{run}");
    }
}

fn text(text: &str) -> String {
    format!("run: {{shell: bash, text: {}}}", serde_json::Value::String(text.to_owned()))
}

#[test]
fn a_text_that_runs_a_file_whose_place_only_the_shell_knows_is_warned_of() {
    for run in [
        "while read -r f; do sh \"$f\"; done < list.txt",
        "for f in jobs/*.sh; do sh \"$f\"; done",
        "sh jobs/*.sh",
        "f=$(ls *.sh | head -n 1); . \"./$f\"",
        "f=$(head -n 1 list.txt); \"./$f\"",
        "f=$(head -n 1 list.txt); bash < \"$f\"",
        "run() { sh \"$1\"; }; while read -r f; do run \"$f\"; done < list.txt",
        "ls *.sh | xargs -n1 sh",
        "find . -name '*.sh' -exec sh {} \\;",
        "CDPATH=s; cd d; ./run.sh",
        "cd \"$(head -n 1 list.txt)\" && ./run.sh",
        "for d in */; do (cd \"$d\" && make); done",
    ] {
        assert!(warned(&text(run)), "{run}");
    }
}

#[test]
fn a_text_that_names_what_it_runs_is_not() {
    for run in [
        "sh ${NOPE:-x.sh}",
        "sh x.{sh,bak}",
        "for f in a.sh b.sh; do sh \"$f\"; done",
        "f=a.sh; . \"./$f\"",
        "run() { sh \"$1\"; }; run a.sh",
        "for f in /opt/jobs/*.sh; do sh \"$f\"; done",
        "d=$(mktemp -d); echo 'echo hi' > \"$d/x.sh\"; sh \"$d/x.sh\"",
        ". \"$(dirname \"$TOOLCRIB_SCRIPT\")/lib.sh\"",
        "cd \"$(dirname \"$TOOLCRIB_SCRIPT\")\" && ./run.sh",
        "cd sub && ./run.sh",
        "for f in *.txt; do wc -l \"$f\"; done",
        "for d in */; do (cd \"$d\" && git status); done",
        "[ -f a ] && sh a.sh",
    ] {
        assert!(!warned(&text(run)), "{run}");
    }
    let elsewhere = "run: {shell: bash, text: 'for f in *.sh; do sh \"$f\"; done', cwd: /srv/jobs}";
    assert!(!warned(elsewhere));
}
