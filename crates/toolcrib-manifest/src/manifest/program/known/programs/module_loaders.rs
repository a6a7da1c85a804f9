//! Programs that load modules, read settings which name programs, or start helpers because an argument
//! says so: test runners, servers, viewers, and tools of documents and media.

use super::developer::{TEXT, bare, commands, each, first, interpreter, options};
use super::values;
use crate::manifest::program::known::program::{Dash, NONE, Program, Rest, wrapper};
use crate::manifest::schema::value_shape::Shape;

const ADDRESSES: &[&str] = &[
    "--host",
    "--port",
    "-p",
    "-w",
    "--workers",
    "--threads",
    "--log-level",
    "--timeout",
    "--root-path",
];

pub(super) const PROGRAMS: &[Program] = &[
    // Wrappers.
    wrapper(
        &[
            "choom",
            "fakechroot",
            "dbus-launch",
            "gpg-agent",
            "systemd-nspawn",
            "softlimit",
            "daemon",
            "ifne",
            "xe",
            "rush",
            "watchexec",
            "nodemon",
            "reflex",
            "dotenv",
            "cross",
            "wasmtime",
            "qemu-x86_64",
            "qemu-aarch64",
            "qemu-arm",
            "qemu-i386",
            "wine",
            "mono",
            "lxc-execute",
            "msgexec",
            "msgfilter",
            "forever",
            "ldd",
            "libtool",
            "heaptrack",
            "uftrace",
        ],
        0,
        &["-n", "-p", "-i", "-o", "-f", "-m", "-c", "-t", "-D", "-M"],
    ),
    Program { runs_stdin: true, ..wrapper(&["newgrp"], 1, &[]) },
    wrapper(&["s6-setuidgid", "inotifywait", "fswatch"], 1, &[]),
    each(
        &["pee", "stap", "dtrace", "trace-cmd", "sysdig", "xdotool", "lein", "sbt", "xdg-open"],
        &["-e", "-n", "-c"],
    ),
    commands(
        &["foreman", "honcho", "overmind", "volta", "opam", "lerna", "wasmer"],
        &["-f", "--procfile", "--env"],
        &[Program { instead: TEXT, ..wrapper(&["exec", "run"], 0, &[]) }],
    ),
    commands(
        &["adb"],
        &[],
        &[Program {
            names: &["shell", "exec-out", "exec-in"],
            rest: Rest::Shell(0),
            instead: TEXT,
            ..NONE
        }],
    ),
    // Test runners and checkers, whose settings and plugins are code.
    commands(
        &["coverage"],
        &["--rcfile"],
        &[interpreter(
            &["run"],
            &["--source", "--omit", "--include", "--data-file", "--context"],
            &["-m", "--module", "--rcfile"],
        )],
    ),
    Program {
        valued: values::TESTER,
        ..options(
            &["mocha", "ava", "vitest", "nyc", "c8", "tap", "jasmine"],
            &[
                "-r",
                "--require",
                "--import",
                "-c",
                "--config",
                "--package",
                "-R",
                "--reporter",
                "--ui",
                "--loader",
                "--experimental-loader",
                "--node-option",
                "--helper",
                "--globalSetup",
            ],
        )
    },
    Program {
        valued: values::TESTER,
        ..options(
            &["rspec", "cucumber", "minitest"],
            &["-r", "--require", "-I", "-O", "--options", "-f", "--format"],
        )
    },
    Program {
        valued: values::LINTER,
        ..options(
            &["rubocop", "standardrb", "reek"],
            &["-r", "--require", "-c", "--config", "--plugin", "-f", "--format"],
        )
    },
    Program {
        valued: values::LINTER,
        ..options(
            &["eslint"],
            &[
                "-c",
                "--config",
                "-f",
                "--format",
                "--plugin",
                "--rulesdir",
                "--parser",
                "--resolve-plugins-relative-to",
            ],
        )
    },
    options(
        &["stylelint", "babel", "rollup", "vite", "rolldown"],
        &["-c", "--config", "--plugin", "-p", "--plugins"],
    ),
    Program {
        valued: values::LINTER,
        ..options(&["mypy", "dmypy"], &["--config", "--config-file", "--python-executable"])
    },
    Program {
        valued: values::LINTER,
        ..options(&["flake8"], &["--config", "--append-config", "--require-plugins"])
    },
    Program {
        valued: values::TESTER,
        ..options(
            &["phpunit", "pest"],
            &[
                "--bootstrap",
                "-c",
                "--configuration",
                "--printer",
                "--extension",
                "--include-path",
                "-d",
                "--loader",
                "--prepend",
            ],
        )
    },
    options(
        &["phpcs", "phpcbf", "phpstan", "psalm"],
        &["--standard", "--bootstrap", "--runtime-set", "-c", "--config", "-a", "--autoload-file"],
    ),
    options(
        &["clang-tidy", "clang-check"],
        &[
            "--config",
            "--config-file",
            "--load",
            "-load",
            "--extra-arg",
            "--extra-arg-before",
            "-extra-arg",
        ],
    ),
    Program {
        valued: values::SERVICE,
        ..options(
            &["alembic", "mkdocs", "supervisorctl", "supervisord", "squid", "sshd"],
            &["-c", "--config", "-f", "--config-file", "--configuration", "-o"],
        )
    },
    options(&["php-fpm"], &["-y", "--fpm-config", "-c", "-d"]),
    options(&["cdk"], &["-a", "--app"]),
    options(&["sqlmap"], &["--eval", "-c", "--tamper", "--preprocess", "--postprocess"]),
    options(&["ctags"], &["--options", "--options-maybe", "--data-dir"]),
    Program { valued: values::SCAN, ..options(&["clamscan", "yara"], &["-d", "--database"]) },
    // Servers, which load the application that an argument names.
    interpreter(
        &["uvicorn", "hypercorn", "gunicorn", "waitress-serve", "daphne", "granian"],
        ADDRESSES,
        &[
            "--app-dir",
            "--env-file",
            "--log-config",
            "-c",
            "--config",
            "--pythonpath",
            "--chdir",
            "-k",
            "--worker-class",
            "--paste",
            "--loop",
            "--http",
            "--ws",
            "-e",
            "--env",
        ],
    ),
    Program {
        valued: values::SERVICE,
        ..options(
            &["celery", "flask"],
            &[
                "-A",
                "--app",
                "--config",
                "--workdir",
                "--loader",
                "-e",
                "--env-file",
                "-P",
                "--pool",
            ],
        )
    },
    options(&["django-admin"], &["--settings", "--pythonpath"]),
    commands(&["pm2"], &[], &[each(&["start"], &["--interpreter", "--node-args"])]),
    // Compilers and runtimes that run what they have compiled, and builds that run their project.
    commands(
        &["zig", "v", "dart", "swift", "crystal", "nim", "kotlin-native"],
        &["--exec", "--test-cmd", "--build-file"],
        &[interpreter(&["run", "eval", "spec", "test", "r", "c", "compile"], &[], &["--exec"])],
    ),
    commands(
        &["dotnet"],
        &["--additional-deps", "--additionalprobingpath", "--roll-forward"],
        &[
            options(&["run"], &["--project", "-p", "--launch-profile", "--file"]),
            first(
                &[
                    "build", "msbuild", "test", "publish", "pack", "restore", "exec", "fsi",
                    "script", "tool", "new",
                ],
                &["-p", "--property", "--project", "--settings", "--test-adapter-path", "--logger"],
            ),
        ],
    ),
    first(
        &[
            "msbuild",
            "xbuild",
            "doxygen",
            "autoconf",
            "autoheader",
            "aclocal",
            "automake",
            "autom4te",
            "autoreconf",
        ],
        &["-p", "-property"],
    ),
    first(&["sphinx-build"], &["-c", "-D", "-conf"]),
    commands(&["meson"], &[], &[each(&["setup", "configure"], &["-C"])]),
    interpreter(&["jdb"], &[], &["-classpath", "-sourcepath", "-launch", "-attach"]),
    Program { rest: Rest::Each(1), ..options(&["jcmd"], &["-f"]) },
    Program {
        valued: values::KEYTOOL,
        ..options(
            &["keytool"],
            &["-providerpath", "-providerclass", "-provider", "-providerarg", "-addprovider", "-J"],
        )
    },
    Program {
        dash: Dash::Word,
        ..bare(
            &[
                "javadoc",
                "jarsigner",
                "jar",
                "jlink",
                "kotlinc",
                "scalac",
                "tsc",
                "swiftc",
                "ghc",
                "rustdoc",
                "dmd",
                "ldc",
            ],
            &[
                "-J",
                "-doclet",
                "-docletpath",
                "-taglet",
                "-tagletpath",
                "-Xplugin",
                "-P",
                "-p",
                "-project",
                "-pgmF",
                "-F",
                "-plugin-path",
                "-load-plugin-library",
                "-providerclass",
                "-tsa",
            ],
        )
    },
    // Documents, pictures and sounds.
    commands(
        &["gm"],
        &[],
        &[bare(
            &[
                "convert",
                "identify",
                "mogrify",
                "montage",
                "compare",
                "composite",
                "display",
                "animate",
                "import",
                "conjure",
                "batch",
                "time",
            ],
            &["-define", "-write"],
        )],
    ),
    bare(&["sox", "play", "rec", "soxi"], &["--effects-file"]),
    bare(
        &["soffice", "libreoffice", "localc", "lowriter", "loffice"],
        &["-env", "--infilter", "--script-cat"],
    ),
    Program {
        dash: Dash::Word,
        ..bare(
            &[
                "tex", "pdftex", "latex", "pdflatex", "xelatex", "lualatex", "xetex", "luatex",
                "luahbtex",
            ],
            &["-fmt", "-progname", "-cnf-line", "-lua", "-output-driver", "-shell-restricted"],
        )
    },
    Program {
        dash: Dash::Word,
        ..options(
            &["latexmk"],
            &[
                "-e",
                "-r",
                "-latex",
                "-pdflatex",
                "-xelatex",
                "-lualatex",
                "-usepretex",
                "-pretex",
                "-latexoption",
            ],
        )
    },
    options(&["groff", "troff", "nroff"], &["-T", "-F", "-M", "-m"]),
    options(&["inkscape"], &["--actions", "--extension-directory", "--pipe"]),
    options(&["scrot"], &["-e", "--exec"]),
    commands(
        &["mlr", "miller"],
        &["-s"],
        &[each(&["put", "filter", "exec", "tee", "split"], &["-f", "-s"])],
    ),
    each(&["run-mailcap", "see", "print", "compose"], &[]),
    // Files and devices.
    Program {
        valued: values::MOUNT,
        ..options(&["mkfs", "fsck", "mount"], &["-t", "--types", "--type"])
    },
    options(&["sshfs"], &["-o", "-F"]),
    Program {
        valued: &["-H", "-h", "-l", "-p", "-t", "-o", "-e", "--host", "--hosts", "--user"],
        rest: Rest::Shell(0),
        ..options(&["parallel-ssh", "pssh"], &["-O", "--option", "-x", "--extra-args"])
    },
    Program {
        names: &["dd"],
        rest: Rest::Operands,
        instead: "write the name of the operand before the value: `if=${args.x}`",
        ..NONE
    },
    commands(&["nix-env", "nix-instantiate"], &["--expr", "-E", "--arg", "-f", "--file"], &[]),
    Program { harmless: Shape::Word, ..each(&["ansible-galaxy"], &["-r", "--role-file"]) },
];
