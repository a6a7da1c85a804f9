//! Values that known programs would run, one row for each door.

use toolcrib_manifest::{Severity, load_str};

/// The codes of the errors about a tool with an argument vector in which `X` is any text.
fn errors(argv: &str) -> Vec<String> {
    let argv = argv.replace('X', "${args.x}");
    let text = format!(
        "toolcrib: 1\ntools:\n  - name: t\n    description: Do something. Read-only.\n    \
         annotations: {{read_only: true}}\n    input: {{properties: {{x: {{type: string}}}}, required: \
         [x]}}\n    run: {{argv: {argv}}}\n"
    );
    let loaded = load_str("t.yaml", &text);
    let errors = loaded.diagnostics.iter();
    errors
        .filter(|found| found.severity == Severity::Error)
        .map(|found| found.code.to_string())
        .collect()
}

#[test]
fn no_value_is_run_by_a_known_program() {
    for argv in [
        // Long options may be abbreviated.
        r#"[tar, "--to-comm=X", -xf, a.tar]"#,
        r#"[tar, "--checkpoint-act=exec=X", -cf, o.tar, a.txt]"#,
        r#"[env, "--split=X"]"#,
        r#"[sed, "--expr=X", f]"#,
        r#"[sed, --expr, "X", f]"#,
        r#"[rsync, "--rs=X", a, "h:b"]"#,
        r#"[git, -C, r, grep, "--open=X", foo]"#,
        r#"[git, clone, "--upload=X", ./r, r2]"#,
        // Clusters of options.
        r#"[tar, xIf, "X", a.tar]"#,
        r#"[tar, cfI, o.tar, "X", a.txt]"#,
        r#"[tar, "X", a.tar]"#,
        r#"[timeout, "5", /usr/bin/tar, xIf, "X", a.tar]"#,
        r#"[ssh, -4o, "X", h]"#,
        // Words before a program.
        r#"[env, "-", "X"]"#,
        r#"[timeout, "5", env, "-", "X", -u]"#,
        r#"[env, -a, foo, "X"]"#,
        r#"[flock, --conflict-exit-code, "3", f, "X"]"#,
        r#"[xargs, --process-slot-var, A, "X"]"#,
        r#"[setarch, -R, "X"]"#,
        r#"[setarch, x86_64, "X"]"#,
        r#"[linux64, "X"]"#,
        r#"[linux32, "X"]"#,
        r#"[prlimit, --nofile=10, "X"]"#,
        r#"[/lib64/ld-linux-x86-64.so.2, "X"]"#,
        r#"[capsh, "--", -c, "X"]"#,
        r#"[ssh-agent, "X"]"#,
        r#"[script, -q, f, "--", "X"]"#,
        r#"[run-parts, "X"]"#,
        r#"[start-stop-daemon, --start, "--startas=X"]"#,
        // Commands and settings of git.
        r#"[git, -C, r, submodule, foreach, "X"]"#,
        r#"[git, bisect, run, "X"]"#,
        r#"[git, config, alias.st, "X"]"#,
        r#"[git, config, core.pager, "X"]"#,
        r#"[git, "--git-dir=X", status]"#,
        r#"[git, -C, "X", status]"#,
        r#"[git, -C, "X", -c, core.fsmonitor=false, status]"#,
        r#"[git, filter-branch, -f, "--msg-filter=X", HEAD]"#,
        r#"[git, rebase, --exec, "X", main]"#,
        r#"[git, merge, -s, "X", b]"#,
        r#"[git, for-each-repo, --config=x.y, "X"]"#,
        // Texts of a shell that run their parameters.
        r#"[sh, -c, '"$@"', sh, "X"]"#,
        r#"[sh, -c, '$1', sh, "X"]"#,
        r#"[sh, -c, 'eval "$1"', sh, "X"]"#,
        r#"[sh, -c, '. "$1"', sh, "X"]"#,
        r#"[sh, -c, 'sh -c "$1"', sh, "X"]"#,
        r#"[sh, -c, 'exec "$@"', sh, "X"]"#,
        r#"[timeout, "5", sh, -c, 'exec "$@"', sh, "X"]"#,
        r#"[sh, -c, 'echo "$1" | sh', sh, "X"]"#,
        r#"[sh, -c, 'cat "$1"; "$_"', sh, "X"]"#,
        r#"[sh, -c, 'exec "$0"', "X"]"#,
        r#"[sh, -c, 'sort --compress-program "$1" f', sh, "X"]"#,
        r#"[sh, -c, 'ls $1', sh, "X"]"#,
        r#"[bash, -c, 'echo $(( $1 + 1 ))', sh, "X"]"#,
        r#"[bash, -c, '[[ $1 -eq 1 ]]', sh, "X"]"#,
        r#"[bash, -c, '[ -v "$1" ]', sh, "X"]"#,
        r#"[bash, -c, 'printf -v "$1" x', sh, "X"]"#,
        // Interpreters that load or run more than their program.
        r#"[bash, --rcfile, "X", -i]"#,
        r#"[bash, --init-file, "X", -i]"#,
        r#"[node, -r, "X", -e, "1"]"#,
        r#"[node, "--import=X", a.js]"#,
        r#"[python3, -m, timeit, -n1, "X"]"#,
        r#"[python3, -m, trace, --trace, "X"]"#,
        r#"[python3, -m, cProfile, "X"]"#,
        r#"[perl, -pe, "1", "X"]"#,
        r#"[perl, -ne, print, "X"]"#,
        r#"[perl, -e, "print while <>", "X"]"#,
        r#"[awk, "BEGIN{}{system(c)}", "X", f]"#,
        r#"[vim, "+X", -es, +q]"#,
        // Programs that start a helper.
        r#"[split, "--filter=X", f]"#,
        r#"[zip, -T, -TT, "X", z.zip, f]"#,
        r#"[zip, "--unzip-command=X", z.zip, f]"#,
        r#"[sort, -S1b, "--compress-program=X", f]"#,
        r#"[strace, -o, "X", /bin/true]"#,
        r#"[man, -P, "X", ls]"#,
        r#"[gdb, -batch, -ex, run, --args, "X"]"#,
        // Operators of an expression.
        r#"[find, "X", -name, "*.bak", -delete]"#,
        r#"[find, ., -newer, a.txt, "X"]"#,
    ] {
        assert!(!errors(argv).is_empty(), "{argv} should be refused");
    }
}

#[test]
fn values_that_no_program_runs_load() {
    for argv in [
        r#"[tar, xf, "X"]"#,
        r#"[tar, -xf, "X", -C, out]"#,
        r#"[tar, cf, o.tar, "./X"]"#,
        r#"[sh, -c, 'tail -n 5 "$1" | sort', sh, "X"]"#,
        r#"[sh, -c, 'echo "$1" >> runs 2>&1; wc -l < runs', sh, "X"]"#,
        r#"[sh, -c, 'if [ -f "$1" ]; then cat "$1"; fi', sh, "X"]"#,
        r#"[sh, -c, 'dd bs="$1" if=f', sh, "X"]"#,
        r#"[git, -C, "X", -c, core.fsmonitor=false, -c, core.hooksPath=/dev/null, status]"#,
        r#"[git, log, "--author=X"]"#,
        r#"[git, grep, -e, "X"]"#,
        r#"[git, config, --get, "X"]"#,
        r#"[awk, "{print $1}", "X"]"#,
        r#"[awk, "{system(c)}", "./X"]"#,
        r#"[perl, -e, "print lc shift", "X"]"#,
        r#"[python3, -m, http.server, "X"]"#,
        r#"[find, "./X", -name, "*.bak", -delete]"#,
        r#"[find, ., -name, "X"]"#,
        r#"[split, -b, "10", "X"]"#,
        r#"[sort, -k, "2", "X"]"#,
        r#"[setarch, x86_64, ls, "X"]"#,
        r#"[env, "-", ls, "X"]"#,
        r#"[node, tool.js, -r, "X"]"#,
    ] {
        assert_eq!(errors(argv), Vec::<String>::new(), "{argv}");
    }
}
