//! Values that compilers, editors, package managers and wrappers would run, one row for each door.

use toolcrib_manifest::LintContext;

use super::program_advice::said;
use super::programs::{errors, errors_with};

/// Vectors in which the value X would be run, choose what is run, or become an option.
const RUN: &[&str] = &[
    // Files that may name an engine, and options before a statement.
    r#"[openssl, x509, -noout, -subject, -in, "X"]"#,
    r#"[openssl, rsa, -inkey, "X"]"#,
    r#"[openssl, dgst, -verify, "X", f]"#,
    r#"[openssl, storeutl, "X"]"#,
    r#"[sqlite3, -json, db, "X"]"#,
    r#"[sqlite3, -csv, db, "X"]"#,
    r#"[sqlite3, -batch, db, "X"]"#,
    r#"[sqlite3, -cmd, .tables, db, "X"]"#,
    r#"[sqlite3, -maxsize, "10", db, "X"]"#,
    r#"[sqlite3, --cmd, "X", db]"#,
    // Options of compilers and of what they start.
    r#"[gcc, -c, a.c, "-fX"]"#,
    r#"[gcc, a.c, "-Wl,X"]"#,
    r#"[clang, a.c, "-Wl,-rpath,X"]"#,
    r#"[g++, a.c, "-Wp,X"]"#,
    r#"[gcc, a.c, "-Wa,X"]"#,
    r#"[gcc, "-specs=X", a.c]"#,
    r#"[gcc, "-BX", a.c]"#,
    r#"[rustc, a.rs, -C, "linker=X"]"#,
    r#"[rustc, a.rs, "-Clink-arg=X"]"#,
    r#"[java, "-DX", Main]"#,
    r#"[java, "-Djava.class.path=X", Main]"#,
    r#"[java, "-XX:X", Main]"#,
    r#"[mvn, "-DX", test]"#,
    r#"[mvn, "X"]"#,
    r#"[nm, "X"]"#,
    r#"[nm, "--plugin=X", e.o]"#,
    r#"[readelf, -s, "X"]"#,
    r#"[cargo, "+X", build]"#,
    r#"[rustup, run, "X", cargo]"#,
    r#"[ctest, "--test-dir=X"]"#,
    // Editors, hooks, variables, services and folders.
    r#"[git, hook, run, "X"]"#,
    r#"[vim, -es, -u, NONE, "X"]"#,
    r#"[nvim, --cmd, "X"]"#,
    r#"[ex, -S, "X"]"#,
    r#"[awk, -v, "X", "{print x}", f]"#,
    r#"[env, -C, "X", make]"#,
    r#"[env, "--chdir=X", git, status]"#,
    r#"[xargs, -a, "X", env]"#,
    r#"[xargs, -a, "X", sh]"#,
    r#"[xargs, -a, "X", timeout, "5"]"#,
    r#"[xargs, "--arg-file=X", python3]"#,
    r#"[chroot, "X", ls]"#,
    r#"[service, "X", start]"#,
    r#"[systemd-run, -p, "X", ls]"#,
    r#"[sdiff, "--diff-program=X", a, b]"#,
    r#"[diff3, "--diff-program=X", a, b, c]"#,
    r#"[install, -s, "--strip-program=X", a, b]"#,
    // Modules and packages.
    r#"[python3, -m, pickle, "X"]"#,
    r#"[python3, -m, pydoc, "X"]"#,
    r#"[python3, -m, unittest, "X"]"#,
    r#"[python3, -m, pip, install, -t, out, "X"]"#,
    r#"[python3, -Im, pip, download, "X"]"#,
    r#"[pip, wheel, "X"]"#,
    r#"[pip, install, wheel, "X"]"#,
    r#"[npm, pack, "X"]"#,
    r#"[npm, exec, "X"]"#,
    r#"[uv, tool, run, "X"]"#,
    r#"[uv, pip, install, "X"]"#,
    r#"[apt-get, update, -o, "X"]"#,
    r#"[apt, list, -c, "X"]"#,
    r#"[dpkg, -i, "X"]"#,
    r#"[ansible, all, -i, "X", -m, ping]"#,
    r#"[pandoc, -f, "X", f]"#,
    r#"[pandoc, "--to=X", f]"#,
    r#"[pandoc, "--lua-filter=X", f]"#,
];

#[test]
fn no_value_is_run_by_a_program_that_builds_edits_or_installs() {
    for argv in RUN {
        assert!(!errors(argv).is_empty(), "{argv} should be refused");
    }
}

#[test]
fn values_that_are_data_for_such_a_program_load() {
    for argv in [
        r#"[openssl, x509, -noout, -in, "./X"]"#,
        r#"[openssl, dgst, -sha256, "X"]"#,
        r#"[gcc, "-IX", a.c]"#,
        r#"[gcc, "-DNAME=X", a.c]"#,
        r#"[java, "-Dname=X", Main]"#,
        r#"[java, -jar, a.jar, "X"]"#,
        r#"[mvn, "-Dtest=X", test]"#,
        r#"[nm, "./X"]"#,
        r#"[vim, "--", "X"]"#,
        r#"[awk, -v, "x=X", "{print x}", f]"#,
        r#"[env, -C, "X", ls]"#,
        r#"[xargs, -a, "X", cat]"#,
        r#"[rustup, run, stable, cargo, test, "X"]"#,
        r#"[cargo, +stable, test, "X"]"#,
        r#"[python3, -m, pip, show, "X"]"#,
        r#"[apt-cache, show, "X"]"#,
        r#"[dpkg, -l, "X"]"#,
        r#"[rpm, -qi, "X"]"#,
    ] {
        assert_eq!(errors(argv), Vec::<String>::new(), "{argv}");
    }
}

#[test]
fn a_setting_or_a_pattern_that_leaves_only_data_loads() {
    let more = ", p: {type: string, pattern: '^/srv/[^/]+$', default: /srv/a}, \
        q: {type: string, pattern: '^(?:[.]/|/)[a-z/]+$', default: ./a}, \
        r: {type: string, pattern: '/srv/', default: /srv/a}";
    for argv in [
        r#"[rustc, -C, "opt-level=X", a.rs]"#,
        r#"[rustc, "-Copt-level=X", a.rs]"#,
        r#"[rustc, "--codegen=target-cpu=X", a.rs]"#,
        r#"[openssl, x509, -in, "${args.p}"]"#,
        r#"[openssl, x509, -in, "${args.q}"]"#,
        r#"[nm, "${args.p}"]"#,
    ] {
        assert_eq!(
            errors_with(more, &argv.replace('X', "${args.x}")),
            Vec::<String>::new(),
            "{argv}"
        );
    }
    for argv in [
        r#"[rustc, -C, "link-arg=opt-level=X", a.rs]"#,
        r#"[rustc, -C, "X", a.rs]"#,
        r#"[openssl, x509, -in, "${args.r}"]"#,
    ] {
        assert!(
            !errors_with(more, &argv.replace('X', "${args.x}")).is_empty(),
            "{argv} should be refused"
        );
    }
}

#[test]
fn a_number_or_a_choice_of_the_author_is_run_by_no_program() {
    let more = ", n: {type: integer, default: 1}, e: {enum: [a, b], default: a}";
    for argv in [
        r#"[openssl, x509, -in, "${args.e}"]"#,
        r#"[sqlite3, -json, db, "${args.e}"]"#,
        r#"[gcc, "-f${args.e}", "-O${args.n}", a.c]"#,
        r#"[gcc, "-Wl,${args.e}", a.c]"#,
        r#"[rustc, -C, "opt-level=${args.n}", a.rs]"#,
        r#"[java, "-XX:ActiveProcessorCount=${args.n}", Main]"#,
        r#"[env, -C, "${args.e}", make]"#,
        r#"[xargs, -a, "${args.e}", sh]"#,
        r#"[vim, -es, "+${args.n}", "${args.e}"]"#,
        r#"[pip, install, "${args.e}"]"#,
        r#"[service, "${args.e}", status]"#,
        r#"[pandoc, -t, "${args.e}", f]"#,
        r#"[cargo, "+${args.e}", build]"#,
    ] {
        assert_eq!(errors_with(more, argv), Vec::<String>::new(), "{argv}");
    }
}

#[test]
fn code_that_evaluates_its_argument_is_a_warning() {
    let known = LintContext::default();
    let warned = |run: &str| {
        said(
            &known,
            &format!(
                "input: {{properties: {{x: {{type: string}}}}, required: [x]}}\n    run: {run}"
            ),
        )
        .iter()
        .any(|found| found.contains("evaluated"))
    };
    for code in [
        r#"[node, -e, "eval(process.argv[1])", "${args.x}"]"#,
        r#"[python3, -c, "import sys;exec(sys.argv[1])", "${args.x}"]"#,
        r#"[perl, -e, "system(@ARGV)", "--", "${args.x}"]"#,
        r#"[perl, -e, "open(F,$ARGV[0]);print <F>", "${args.x}"]"#,
    ] {
        assert!(warned(&format!("{{argv: {code}}}")), "{code}");
    }
    for code in [
        r#"[node, -e, "console.log(process.argv[1])", "${args.x}"]"#,
        r#"[python3, -c, "import sys; print(open(sys.argv[1]).read())", "${args.x}"]"#,
        r#"[perl, -e, "open(F,'<',$ARGV[0]);print 1", "${args.x}"]"#,
    ] {
        assert!(!warned(&format!("{{argv: {code}}}")), "{code}");
    }
}
