//! Values that known programs would run, one row for each door.

use toolcrib_manifest::{Severity, load_str};

/// The codes of the errors about a tool with an argument vector in which `X` is any text.
pub(super) fn errors(argv: &str) -> Vec<String> {
    errors_with("", &argv.replace('X', "${args.x}"))
}

/// The same with more arguments.
pub(super) fn errors_with(arguments: &str, argv: &str) -> Vec<String> {
    let text = format!(
        "toolcrib: 1\ntools:\n  - name: t\n    description: Do something. Read-only.\n    \
         annotations: {{read_only: true}}\n    input:\n      properties: {{x: {{type: string}}{arguments}}}\n      \
         required: [x]\n    run: {{argv: {argv}}}\n"
    );
    let loaded = load_str("t.yaml", &text);
    let errors = loaded.diagnostics.iter();
    errors
        .filter(|found| found.severity == Severity::Error)
        .map(|found| found.code.to_string())
        .collect()
}

/// Vectors in which the value X would be run, or choose what is run.
const RUN: &[&str] = &[
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
    r#"[git, cat-file, --textconv, "X"]"#,
    r#"[git, cat-file, "--path=X", --filters, HEAD]"#,
    r#"[git, show, --textconv, "HEAD:./X"]"#,
    r#"[git, grep, --textconv, -e, a, "--", "X"]"#,
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
    r#"[sh, -c, 'sort "$1" f', "--", "X"]"#,
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
    // Interpreters, build tools and package managers.
    r#"[java, -jar, "X"]"#,
    r#"[java, "-javaagent:X", Main]"#,
    r#"[julia, "X"]"#,
    r#"[go, run, "X"]"#,
    r#"[go, test, -exec, "X"]"#,
    r#"[cargo, --config, "X", version]"#,
    r#"[cargo, build, "--config=X"]"#,
    r#"[cmake, -P, "X"]"#,
    r#"[gcc, -wrapper, "X", a.c]"#,
    r#"[gcc, "X"]"#,
    r#"[npm, test, --script-shell, "X"]"#,
    r#"[pip, install, -r, "X"]"#,
    r#"[poetry, run, "X"]"#,
    r#"[expect, -c, "X"]"#,
    r#"[m4, "X"]"#,
    r#"[ed, "X"]"#,
    // Clients and helpers.
    r#"[ssh, -I, "X", h]"#,
    r#"[socat, "TCP:X", "-"]"#,
    r#"[nc, -e, "X", h, "1"]"#,
    r#"[kubectl, --kubeconfig, "X", get, pods]"#,
    r#"[kubectl, get, pods, "--kubeconfig=X"]"#,
    r#"[helm, template, c, --post-renderer, "X"]"#,
    r#"[docker, compose, -f, "X", up]"#,
    r#"[docker, compose, exec, c, "X"]"#,
    r#"[ip, netns, exec, n, "X"]"#,
    r#"[openssl, dgst, -engine, "X", f]"#,
    r#"[pandoc, --filter, "X", f]"#,
    r#"[rg, "--pre=X", p]"#,
    r#"[fd, p, -x, "X"]"#,
    r#"[less, "+X", f]"#,
    r#"[crontab, "X"]"#,
    r#"[convert, "X", o.png]"#,
    r#"[rclone, ls, "X"]"#,
    // Operators of an expression.
    r#"[find, "X", -name, "*.bak", -delete]"#,
    r#"[find, ., -newer, a.txt, "X"]"#,
];

#[test]
fn no_value_is_run_by_a_known_program() {
    for argv in RUN {
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
        r#"[sh, -c, 'sort -- "$1"', sh, "X"]"#,
        r#"[git, -C, "X", -c, core.fsmonitor=false, -c, core.hooksPath=/dev/null, status]"#,
        r#"[git, log, "--author=X"]"#,
        r#"[git, grep, -e, "X"]"#,
        r#"[git, cat-file, -p, "X"]"#,
        r#"[git, show, --no-textconv, "X"]"#,
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
        r#"[cargo, test, "X"]"#,
        r#"[go, test, -run, "X"]"#,
        r#"[pytest, "X"]"#,
        r#"[gcc, "./X"]"#,
        r#"[pip, show, "X"]"#,
        r#"[npm, view, "X"]"#,
        r#"[aws, s3, ls, "X"]"#,
        r#"[gh, issue, view, "X"]"#,
        r#"[kubectl, get, pod, "X"]"#,
        r#"[docker, logs, "X"]"#,
        r#"[redis-cli, get, "X"]"#,
        r#"[rclone, ls, "remote:X"]"#,
        r#"[rg, -e, "X"]"#,
        r#"[jq, -f, "X"]"#,
    ] {
        assert_eq!(errors(argv), Vec::<String>::new(), "{argv}");
    }
}

#[test]
fn an_option_that_the_schema_lists_is_read_as_if_it_were_written() {
    let flag = |values: &str| format!(", f: {{enum: {values}}}");
    for (values, argv) in [
        (r#"["-I", "-z"]"#, r#"[tar, "${args.f}", "${args.x}", -cf, o.tar, a]"#),
        (r#"["-v", "-k"]"#, r#"[timeout, "${args.f}", "5", "${args.x}"]"#),
        (r#"["-v", "-e"]"#, r#"[sed, "${args.f}", "${args.x}", f]"#),
        ("[log, config]", r#"[git, "${args.f}", "${args.x}"]"#),
        (r#"["-m", "-c"]"#, r#"[python3, -I, "${args.f}", "${args.x}"]"#),
    ] {
        assert!(!errors_with(&flag(values), argv).is_empty(), "{argv}");
    }
    for (values, argv) in [
        (r#"["-z", "-j"]"#, r#"[tar, "${args.f}", -cf, o.tar, "./${args.x}"]"#),
        (r#"["-I", "-a"]"#, r#"[tar, "${args.f}", gzip, -cf, o.tar, "./${args.x}"]"#),
        (r#"["-l", "-a"]"#, r#"[ls, "${args.f}", "--", "${args.x}"]"#),
        (r#"["--oneline", "--stat"]"#, r#"[git, log, "${args.f}", "--", "${args.x}"]"#),
        (r#"["-l", "-a"]"#, r#"[some-program, "${args.f}", "${args.x}"]"#),
    ] {
        assert_eq!(errors_with(&flag(values), argv), Vec::<String>::new(), "{argv}");
    }
    let flags = ", fs: {type: array, items: {enum: [\"-n\", \"-e\"]}}";
    let argv = r#"[sed, {each: fs}, "${args.x}", f]"#;
    assert!(!errors_with(flags, argv).is_empty(), "{argv}");
}

#[test]
fn what_is_absent_leaves_its_place_to_the_next_value() {
    let more = ", q: {type: boolean}, n: {type: integer}";
    for argv in [
        r#"[sed, {if: q, then: ["s/a/b/"]}, "${args.x}"]"#,
        r#"[sed, {if: q, then: [-n]}, "${args.n}p", "${args.x}"]"#,
        r#"[timeout, "${args.n}", "5", "${args.x}"]"#,
    ] {
        assert!(!errors_with(more, argv).is_empty(), "{argv}");
    }
    for argv in [
        r#"[sed, {if: q, then: [-n]}, "s/a/b/", "${args.x}"]"#,
        r#"[timeout, "5", ls, {if: q, then: [-l]}, "${args.x}"]"#,
        r#"[grep, {if: n, then: [-m, "${args.n}"]}, -e, "${args.x}", f]"#,
    ] {
        assert_eq!(errors_with(more, argv), Vec::<String>::new(), "{argv}");
    }
}

#[test]
fn a_plain_word_is_no_program() {
    let word = ", w: {type: string, pattern: \"^[a-z]+$\", default: a}";
    for argv in [
        r#"[tar, -I, "${args.w}", -cf, o.tar, a]"#,
        r#"[tar, "--use-compress-program=${args.w}", -cf, o.tar, a]"#,
        r#"[sort, "--compress-program=${args.w}", f]"#,
        r#"[man, -P, "${args.w}", ls]"#,
        r#"[sed, "${args.w}", f]"#,
        r#"[sed, "1,2${args.w}", f]"#,
        r#"[sed, "s/a/b/${args.w}", f]"#,
        r#"[sed, "--expression=${args.w}", f]"#,
        r#"[git, -c, "core.pager=${args.w}", log]"#,
        r#"[ssh, host, "${args.w}"]"#,
        r#"[watch, "${args.w}"]"#,
        r#"[sh, -c, '"$@"', sh, "${args.w}"]"#,
        r#"[sh, -c, 'exec "$1"', sh, "${args.w}"]"#,
        r#"[sh, -c, 'timeout 5 "$1"', sh, "${args.w}"]"#,
    ] {
        assert!(!errors_with(word, argv).is_empty(), "{argv}");
    }
    for argv in [
        r#"[sed, "s/${args.w}/b/", f]"#,
        r#"[sed, -e, "s/a/${args.w}/", f]"#,
        r#"[sed, -n, "/${args.w}/p", f]"#,
        r#"[ssh, host, systemctl, status, "${args.w}"]"#,
        r#"[psql, -c, "select * from ${args.w}"]"#,
        r#"[ansible, all, -m, ping, -e, "version=${args.w}"]"#,
        r#"[sh, -c, 'curl "https://example.com/$1"', sh, "${args.w}"]"#,
        r#"[git, log, "${args.w}"]"#,
        r#"[git, cat-file, --textconv, "HEAD:README"]"#,
    ] {
        assert_eq!(errors_with(word, argv), Vec::<String>::new(), "{argv}");
    }
}

#[test]
fn no_value_on_standard_input_is_run() {
    for run in [
        "{argv: [xargs, sh, -c], stdin: X}",
        "{argv: [xargs, env], stdin: X}",
        r#"{argv: [xargs, "-I{}", sh, -c, "echo {}"], stdin: X}"#,
        "{argv: [xargs, sed, s/a/b/], stdin: X}",
        r#"{argv: [xargs, timeout, "5"], stdin: X}"#,
        "{argv: [xargs, tar, -tf], stdin: X}",
        "{argv: [parallel], stdin: X}",
        "{argv: [awk, -f, /dev/stdin], stdin: X}",
        "{argv: [awk, --file=/dev/fd/0, a], stdin: X}",
        r#"{argv: [make, -f, "-"], stdin: X}"#,
        "{argv: [sh, /dev/stdin], stdin: X}",
        "{argv: [bash, /dev/fd/0], stdin: X}",
        "{argv: [bash, /proc/self/fd/0], stdin: X}",
        "{argv: [bash, //dev/./stdin], stdin: X}",
        "{argv: [python3, /dev/stdin], stdin: X}",
        r#"{argv: [python3, "-"], stdin: X}"#,
        r#"{argv: [python3, -c, "import sys; exec(sys.stdin.read())"], stdin: X}"#,
        "{argv: [ed, -s, x], stdin: X}",
        "{argv: [vim, -e, -s, x], stdin: X}",
        "{argv: [ssh, host], stdin: X}",
        "{argv: [julia], stdin: X}",
        "{argv: [unshare, -r], stdin: X}",
        "{argv: [sh, -c, 'cat | sh'], stdin: X}",
        r#"{argv: [timeout, "5", sh, -c, 'cat | sh'], stdin: X}"#,
        "{argv: [sh, -c, 'cd x; sh'], stdin: X}",
        "{argv: [bash, -c, '. /dev/stdin'], stdin: X}",
        "{argv: [sh, -c, 'xargs sh -c'], stdin: X}",
        r#"{argv: [sh, -c, 'read x; eval "$x"'], stdin: X}"#,
        "{argv: [sh, -c, 'read x; $x'], stdin: X}",
        r#"{argv: [sh, -c, 'sh -c "$(cat)"'], stdin: X}"#,
        "{argv: [bash, -c, 'bash <(cat)'], stdin: X}",
        r#"{argv: [sh, -c, 'cat > "$F"; sh "$F"'], stdin: X}"#,
        "{argv: [sh, -c, 'cat > /tmp/x.sh; sh /tmp/x.sh'], stdin: X}",
        r#"{argv: [sh, -c, "sh -c 'cat | sh'"], stdin: X}"#,
        "{shell: sh, text: 'cat | sh', stdin: X}",
        r#"{shell: sh, text: 'while read l; do sh -c "$l"; done', stdin: X}"#,
    ] {
        let found = run_errors(run);
        assert!(found.iter().any(|code| code == "spliced-script"), "{run}: {found:?}");
    }
}

#[test]
fn all_arguments_on_standard_input_are_a_whole_value_and_count_as_used() {
    for run in ["{argv: [jq, .a], stdin: Y}", "{shell: sh, text: 'jq .', stdin: Y}"] {
        let run = run.replace('Y', "\"${args}\"");
        assert_eq!(run_errors(&run), Vec::<String>::new(), "{run}");
    }
    let tool = "toolcrib: 1\ntools:\n  - name: t\n    description: Count the words of a text. Read-only.\n    \
                annotations: {read_only: true, idempotent: true, open_world: false}\n    \
                input: {properties: {x: {type: string, maxLength: 9}, y: {type: integer}}, required: [x]}\n    \
                run: {argv: [jq, length], stdin: \"${args}\"}\n";
    let loaded = load_str("t.yaml", tool);
    let unused = loaded.diagnostics.iter().find(|found| found.code == "unused-argument");
    assert!(unused.is_none(), "{unused:?}");
    for (run, code) in [
        ("{argv: [cat], stdin: \"all: ${args}\"}", "bad-reference"),
        ("{argv: [cat, \"${args}\"]}", "bad-reference"),
        ("{argv: [cat], env: {ALL: \"${args}\"}}", "bad-reference"),
        ("{argv: [sh], stdin: \"${args}\"}", "spliced-script"),
        ("{shell: sh, text: 'cat | sh', stdin: \"${args}\"}", "spliced-script"),
    ] {
        assert_eq!(run_errors(run), [code], "{run}");
    }
}

#[test]
fn programs_that_take_their_input_for_data_get_values_on_it() {
    for run in [
        "{argv: [cat], stdin: X}",
        "{argv: [jq, .a], stdin: X}",
        "{argv: [xargs], stdin: X}",
        "{argv: [xargs, ls, -l], stdin: X}",
        r#"{argv: [xargs, tar, -tf, "--"], stdin: X}"#,
        r#"{argv: [xargs, "-I{}", sh, -c, 'cat "$1"', sh, "{}"], stdin: X}"#,
        r#"{argv: [awk, "{print $1}"], stdin: X}"#,
        "{argv: [sed, s/a/b/], stdin: X}",
        "{argv: [python3, tool.py], stdin: X}",
        r#"{argv: [python3, -c, "import sys; print(len(sys.stdin.read()))"], stdin: X}"#,
        "{argv: [ssh, host, show-log], stdin: X}",
        "{argv: [sh, -c, 'sort | uniq -c > out.txt'], stdin: X}",
        r#"{argv: [sh, -c, 'while read -r l; do echo "$l"; done'], stdin: X}"#,
        r#"{argv: [sh, -c, 'x=$(cat); printf "%s" "$x" | wc -c'], stdin: X}"#,
        r#"{argv: [sh, -c, 'sh ./each.sh | find . -name "a"'], stdin: X}"#,
        "{shell: sh, text: 'jq . | tee out.json', stdin: X}",
    ] {
        assert_eq!(run_errors(run), Vec::<String>::new(), "{run}");
    }
}

#[test]
fn a_text_does_not_run_a_file_that_it_writes_in_the_workspace() {
    for text in [
        "printf \"echo built\\n\" > gen.sh; sh gen.sh",
        "sort -o g2.sh in.txt; sh g2.sh",
        "f=g3.sh; sort -o \"$f\" in.txt; sh \"$f\"",
        "echo x > gen.sh && ./gen.sh",
        "echo x | tee ./gen.sh; . gen.sh",
        "cc -o prog x.c && ./prog",
        "echo x > gen.sh; sh < gen.sh",
    ] {
        let quoted = text.replace('\'', "''");
        for run in
            [format!("{{argv: [sh, -c, '{quoted}']}}"), format!("{{shell: sh, text: '{quoted}'}}")]
        {
            assert_eq!(run_errors(&run), ["runs-written-file"], "{run}");
        }
        let insisted = format!("{{shell: sh, text: '{quoted}', unsafe_argv: nobody writes here}}");
        assert_eq!(run_errors(&insisted), Vec::<String>::new(), "{insisted}");
    }
    for text in [
        "cc -o \"$TMPDIR/prog\" x.c && \"$TMPDIR/prog\"",
        "cd \"$TMPDIR\" && cc -o prog x.c && ./prog",
        "sh gen.sh > out.txt; cat out.txt",
        "echo x | sh -s",
    ] {
        let run = format!("{{shell: sh, text: '{text}'}}");
        assert_eq!(run_errors(&run), Vec::<String>::new(), "{run}");
    }
}

#[test]
fn a_variable_that_programs_read_as_options_takes_no_value() {
    for name in [
        "ZIPOPT",
        "GREP_OPTIONS",
        "LESSOPEN",
        "RUBYOPT",
        "PERL5OPT",
        "NODE_OPTIONS",
        "MAKEFLAGS",
        "GIT_DIR",
        "TAR_OPTIONS",
        "LD_PRELOAD",
        "XZ_OPT",
        "PYTEST_ADDOPTS",
        "TAPE",
    ] {
        let run = format!("{{argv: [x], env: {{{name}: X}}}}");
        assert_eq!(run_errors(&run), ["dangerous-env"], "{run}");
    }
}

/// The codes of the errors about a `run`, `X` standing for a reference to any text.
fn run_errors(run: &str) -> Vec<String> {
    let run = run.replace("stdin: X", "stdin: \"${args.x}\"").replace(": X}", ": \"${args.x}\"}");
    let input = if run.contains("${args.x}") {
        "input: {properties: {x: {type: string}}, required: [x]}\n    "
    } else {
        ""
    };
    let text = format!(
        "toolcrib: 1\ntools:\n  - name: t\n    description: Do something. Read-only.\n    \
         annotations: {{read_only: true}}\n    {input}run: {run}\n"
    );
    let loaded = load_str("t.yaml", &text);
    let errors = loaded.diagnostics.iter();
    errors
        .filter(|found| found.severity == Severity::Error)
        .map(|found| found.code.to_string())
        .collect()
}
