//! What is known of programs that are neither wrappers nor part of every system: compilers and build
//! tools, package managers, interpreters, remote shells, and options that start a helper.

use super::values;
use crate::manifest::program::known::program::{Dash, NONE, Program, Rest, WRAPPED, wrapper};

pub(super) const TEXT: &str = "write what is run, loaded or read for settings as a literal, or \
 list what it may be \
    in an `enum`";

/// A program with options whose value is run, loaded, or names settings that do.
pub(super) const fn options(
    names: &'static [&'static str],
    code: &'static [&'static str],
) -> Program {
    Program { names, code, instead: TEXT, ..NONE }
}

/// A program that runs the file or the text at its first place, and hands on what follows.
pub(super) const fn interpreter(
    names: &'static [&'static str],
    valued: &'static [&'static str],
    code: &'static [&'static str],
) -> Program {
    Program { names, valued, code, rest: Rest::Script, instead: TEXT, ..NONE }
}

/// A program of which the first word says what it does.
pub(super) const fn first(
    names: &'static [&'static str],
    code: &'static [&'static str],
) -> Program {
    Program { names, code, rest: Rest::Code(0), instead: TEXT, ..NONE }
}

/// A program, or a command of one, that may run each of its words.
pub(super) const fn each(names: &'static [&'static str], code: &'static [&'static str]) -> Program {
    Program { names, code, rest: Rest::Each(0), instead: TEXT, ..NONE }
}

/// A program that takes a word which begins in some way for more than the name of a file.
pub(super) const fn bare(names: &'static [&'static str], code: &'static [&'static str]) -> Program {
    Program { names, code, rest: Rest::Bare, instead: TEXT, ..NONE }
}

pub(super) const fn commands(
    names: &'static [&'static str],
    code: &'static [&'static str],
    below: &'static [Program],
) -> Program {
    Program { names, code, rest: Rest::Commands(below), instead: TEXT, ..NONE }
}

const RUNNER: Program = wrapper(&["exec", "run", "shell", "x"], 0, &[]);
const INSTALLER: Program = each(
    &[
        "install",
        "in",
        "add",
        "reinstall",
        "upgrade",
        "localinstall",
        "dist-upgrade",
        "-S",
        "-U",
        "-i",
        "--install",
    ],
    &["-o", "--option", "-c", "--config-file"],
);

pub(super) const PROGRAMS: &[Program] = &[
    // Wrappers.
    wrapper(&["pkexec", "entr", "eatmydata", "chpst", "envdir"], 0, &["--user"]),
    each(&["bwrap", "hyperfine", "guix"], &[]),
    each(&["socat"], &["-,"]),
    wrapper(&["proot", "fakeroot"], 0, &["-r", "-b", "-w", "-l", "-s", "-i", "-R", "-S", "-q"]),
    Program { code: &["--tool"], ..wrapper(&["valgrind"], 0, &[]) },
    wrapper(
        &["numactl"],
        0,
        &["-N", "-m", "-C", "-i", "-p", "-l", "--cpunodebind", "--membind", "--physcpubind"],
    ),
    wrapper(&["cgexec", "cpulimit", "aa-exec"], 0, &["-g", "-l", "-P", "-p", "-n"]),
    wrapper(&["daemonize"], 0, &["-a", "-c", "-e", "-o", "-p", "-l", "-u", "-E"]),
    wrapper(&["logsave"], 1, &[]),
    Program { runs_stdin: true, ..wrapper(&["mosh", "sg"], 1, &[]) },
    wrapper(&["sshpass"], 0, &["-p", "-f", "-d", "-P"]),
    Program {
        runs_stdin: true,
        ..wrapper(&["lxc-attach"], 0, &["-n", "--name", "-e", "-u", "-g", "-P"])
    },
    Program {
        runs_stdin: true,
        code: &["-s", "--shell"],
        ..wrapper(
            &["schroot", "dchroot"],
            0,
            &["-c", "--chroot", "-n", "--session-name", "-u", "--user", "-d", "--directory", "-o"],
        )
    },
    Program {
        code: &["-z", "--filter"],
        ..wrapper(&["rlwrap"], 0, &["-H", "-b", "-f", "-s", "-S"])
    },
    commands(
        &["perf", "rr"],
        &[],
        &[wrapper(
            &["record", "stat", "trace", "top"],
            0,
            &["-e", "-o", "-F", "-p", "-t", "-c", "-C"],
        )],
    ),
    commands(
        &[
            "bundle", "poetry", "pipenv", "conda", "mamba", "hatch", "rye", "mise", "nvm", "pyenv",
            "rbenv", "nodenv", "asdf", "stack", "cabal", "dune", "composer", "nix", "heroku",
            "flatpak", "snap", "rails", "corepack", "mix", "consul", "nomad", "bun",
        ],
        &["--expr", "--impure-env"],
        &[
            RUNNER,
            each(
                &[
                    "runghc", "runner", "lock", "watch", "eval", "alloc", "install", "add",
                    "require", "create",
                ],
                &[],
            ),
        ],
    ),
    commands(&["direnv"], &[], &[wrapper(&["exec"], 1, &[])]),
    commands(
        &["machinectl"],
        &[],
        &[Program {
            runs_stdin: true,
            ..wrapper(&["shell", "login"], 1, &["--uid", "-E", "--setenv", "-H", "-M"])
        }],
    ),
    commands(&["ip"], &["-b", "-batch", "--batch"], &[wrapper(&["exec"], 1, &[])]),
    // Remote shells.
    Program { rest: Rest::Shell(1), ..options(&["rsh", "rlogin"], &[]) },
    Program {
        valued: &[
            "-P", "-pw", "-pwfile", "-l", "-i", "-L", "-R", "-D", "-hostkey", "-load", "-sshlog",
        ],
        rest: Rest::Shell(1),
        dash: Dash::Word,
        ..options(&["plink"], &["-proxycmd", "-m"])
    },
    Program {
        valued: &["-p", "-l", "-i", "-L", "-R", "-W", "-K", "-I", "-b", "-c", "-m", "-B"],
        rest: Rest::Shell(1),
        ..options(&["dbclient"], &["-J"])
    },
    Program {
        valued: &["-w", "-x", "-g", "-l", "-u"],
        rest: Rest::Shell(0),
        ..options(&["pdsh", "clush"], &[])
    },
    Program { rest: Rest::Each(1), ..options(&["salt"], &[]) },
    each(&["salt-call", "fab"], &[]),
    commands(
        &["vagrant", "fly", "flyctl"],
        &["-c", "-C", "--command"],
        &[Program {
            runs_stdin: true,
            ..options(&["ssh", "powershell", "winrm"], &["-c", "-C", "--command", "--"])
        }],
    ),
    Program {
        valued: values::CLOUD,
        ..options(&["gcloud", "az"], &["--command", "--scripts", "--flags-file"])
    },
    commands(&["aws"], &[], &[each(&["configure"], &[])]),
    commands(&["gh", "glab"], &[], &[each(&["alias", "extension", "config"], &[])]),
    commands(&["puppet"], &[], &[each(&["apply"], &["-e", "--execute"])]),
    // Interpreters.
    interpreter(&["R", "Rscript"], &[], &["-e", "-f", "--file", "--default-packages"]),
    interpreter(&["expect", "tclsh", "wish"], &[], &["-c", "-f"]),
    interpreter(&["julia"], &[], &["-e", "-E", "--eval", "--print", "-L", "--load", "--project"]),
    interpreter(&["ghci", "runghc", "runhaskell"], &[], &["-e", "-ghci-script"]),
    interpreter(
        &["scala", "groovy", "jshell", "kotlin"],
        &[],
        &["-e", "--eval", "-cp", "-classpath"],
    ),
    interpreter(&["ipython", "pdb", "sage"], &[], &["-c", "--config", "--profile-dir", "-m"]),
    interpreter(
        &["ts-node", "tsx", "zx"],
        &[],
        &["-e", "--eval", "-p", "-r", "--require", "--import"],
    ),
    interpreter(&["irb"], &[], &["-r", "-I"]),
    interpreter(&["ocaml", "escript"], &[], &["-e", "-init"]),
    interpreter(
        &["elixir", "iex", "erl"],
        &[],
        &["-e", "--eval", "-eval", "-r", "-pa", "-S", "-run"],
    ),
    interpreter(
        &["sbcl", "clisp", "ecl"],
        &[],
        &["--eval", "--load", "--script", "-x", "-i", "--userinit"],
    ),
    interpreter(&["guile", "racket"], &[], &["-c", "-e", "-f", "-l", "-r", "-t", "-s"]),
    interpreter(&["clojure", "clj"], &[], &["-e", "--eval", "-i", "-m", "-Sdeps"]),
    interpreter(&["swipl"], &[], &["-g", "-s", "-t", "-f", "-l"]),
    interpreter(
        &["octave", "matlab", "maxima", "gnuplot"],
        &[],
        &["-e", "--eval", "-r", "-batch", "--batch-string", "-c", "-d"],
    ),
    interpreter(&["nix-shell", "nix-build"], &[], &["--run", "--command", "-p", "-E", "--expr"]),
    Program {
        runs_stdin: true,
        ..commands(
            &["deno"],
            &[],
            &[interpreter(&["run", "eval", "test", "serve", "repl"], &[], &["--eval"])],
        )
    },
    commands(&["jupyter"], &[], &[each(&["execute", "nbconvert", "run"], &["--config"])]),
    each(&["m4", "dc"], &["-e", "-f", "--expression", "--file", "-D", "--define"]),
    bare(&["ed", "red", "mongosh", "mongo"], &["--eval", "-f", "--file"]),
    // Compilers and build tools.
    first(
        &["cmake", "ctest"],
        &[
            "-P",
            "-C",
            "-S",
            "-D",
            "-E",
            "--build",
            "-t",
            "--target",
            "--preset",
            "--toolchain",
            "--test-dir",
            "--build-and-test",
        ],
    ),
    options(&["ninja"], &["-f", "-C"]),
    Program { rest: Rest::Settings, ..options(&["scons"], &["-f", "-C", "--file", "--directory"]) },
    Program {
        rest: Rest::Settings,
        ..options(
            &["just", "task", "rake", "ant"],
            &[
                "-f",
                "--justfile",
                "--file",
                "-file",
                "-buildfile",
                "--taskfile",
                "-d",
                "--dir",
                "--working-directory",
                "--shell",
                "-r",
                "-e",
                "-s",
                "--rakefile",
                "--settings",
                "-lib",
            ],
        )
    },
    Program {
        valued: values::GRADLE,
        ..options(
            &["gradle", "gradlew"],
            &["-I", "--init-script", "-b", "--build-file", "-p", "--project-dir", "-c", "-g"],
        )
    },
    commands(&["bazel"], &["--bazelrc"], &[first(&["run"], &["--run_under"])]),
    commands(
        &["go"],
        &["-C"],
        &[
            first(&["run", "generate", "tool"], &["-exec", "-toolexec", "-overlay", "-modfile"]),
            Program {
                valued: values::GO,
                dash: Dash::Word,
                ..options(
                    &["test", "build", "vet", "install", "get", "list"],
                    &[
                        "-exec",
                        "-toolexec",
                        "-vettool",
                        "-overlay",
                        "-modfile",
                        "-ldflags",
                        "-gcflags",
                        "-asmflags",
                        "-gccgoflags",
                        "-C",
                    ],
                )
            },
        ],
    ),
    Program {
        valued: values::PYTEST,
        ..options(
            &["pytest", "tox", "pre-commit"],
            &["-p", "-c", "--config", "--rootdir", "-o", "--override-ini"],
        )
    },
    Program {
        valued: values::TERRAFORM,
        ..commands(
            &["terraform", "tofu"],
            &["-chdir", "-plugin-dir"],
            &[first(&["apply"], &["-chdir"])],
        )
    },
    Program {
        valued: values::HELM,
        ..commands(&["helm"], &["--post-renderer", "--kubeconfig"], &[each(&["plugin"], &[])])
    },
    commands(&["packer"], &[], &[first(&["build"], &[])]),
    // Package managers.
    commands(
        &["apt-get", "apt", "apt-cache", "aptitude"],
        &["-o", "--option", "-c", "--config-file"],
        &[
            INSTALLER,
            Program {
                valued: values::APT,
                ..options(&[], &["-o", "--option", "-c", "--config-file"])
            },
        ],
    ),
    commands(
        &["yum", "dnf", "apk", "pacman", "zypper", "brew"],
        &["-o", "--option", "-c", "--config-file", "--config", "--setopt"],
        &[INSTALLER],
    ),
    // Version control beside git.
    Program {
        valued: values::HG,
        ..commands(&["hg"], &["--config", "--config-file", "-R", "--repository", "--cwd"], &[])
    },
    Program {
        valued: values::SVN,
        ..options(
            &["svn"],
            &["--editor-cmd", "--diff-cmd", "--diff3-cmd", "--config-option", "--config-dir"],
        )
    },
    // Databases.
    Program {
        valued: values::QUERY,
        ..options(
            &["cqlsh", "clickhouse", "clickhouse-local"],
            &["-e", "-f", "-q", "--query", "--execute", "--file"],
        )
    },
    first(&["osqueryi"], &["--extension", "--extensions_autoload"]),
    commands(&["bq"], &["--bigqueryrc", "--flagfile"], &[each(&["query"], &[])]),
    Program {
        valued: values::REDIS,
        ..commands(
            &["redis-cli"],
            &["--eval"],
            &[each(
                &[
                    "eval", "EVAL", "evalsha", "EVALSHA", "script", "SCRIPT", "function",
                    "FUNCTION", "config", "CONFIG", "module", "MODULE",
                ],
                &[],
            )],
        )
    },
    // Programs with options that start a helper, load a library, or name settings that do.
    Program {
        rest: Rest::BareBeforeEnd,
        ..options(&["less"], &["+", "-k", "--lesskey-file", "--lesskey-src", "--lesskey-content"])
    },
    options(&["nano", "pico"], &["-s", "--speller", "-f", "--rcfile"]),
    Program {
        valued: values::SEARCH,
        ..options(&["rg", "ag", "ack"], &["--pre", "--pager", "--hostname-bin", "--ackrc"])
    },
    Program {
        valued: values::FD,
        ..options(&["fd", "fdfind"], &["-x", "-X", "--exec", "--exec-batch"])
    },
    Program {
        valued: values::SSH_KEYGEN,
        ..options(&["ssh-keygen", "ssh-add"], &["-D", "-w", "-s", "-S"])
    },
    Program {
        valued: values::NETCAT,
        ..options(&["nc", "ncat", "netcat"], &["-e", "-c", "--exec", "--sh-exec", "--lua-exec"])
    },
    Program {
        valued: values::PANDOC,
        ..options(
            &["pandoc"],
            &[
                "-F",
                "--filter",
                "-f",
                "-r",
                "--from",
                "--read",
                "-t",
                "-w",
                "--to",
                "--write",
                "-L",
                "--lua-filter",
                "--pdf-engine",
                "--pdf-engine-opt",
                "-d",
                "--defaults",
                "--data-dir",
            ],
        )
    },
    bare(
        &["convert", "magick", "identify", "mogrify", "composite"],
        &["-define", "-write", "-c", "-f"],
    ),
    Program {
        dash: Dash::Word,
        ..bare(&["gs"], &["-c", "-f", "-o", "-sOutputFile", "-sLibPath", "-I"])
    },
    each(&["exiftool"], &["-config", "-if", "-p", "-@"]),
    bare(&["rclone"], &["--config", "--sftp-ssh", "--password-command", "--metadata-mapper"]),
    Program {
        valued: values::BACKUP,
        ..options(
            &["restic", "borg", "rdiff-backup", "unison"],
            &[
                "-o",
                "--option",
                "--password-command",
                "--rsh",
                "--remote-path",
                "--remote-schema",
                "-sshcmd",
                "-servercmd",
                "-sshargs",
            ],
        )
    },
    each(&["lftp"], &["-c", "-e", "-f"]),
    Program {
        valued: values::SMBCLIENT,
        ..options(&["smbclient"], &["-c", "--command", "-s", "--configfile"])
    },
    options(&["mutt"], &["-e", "-F"]),
    // A recipient may be `|command`.
    Program {
        valued: &["-s", "-a", "-b", "-c", "-r", "-A", "-q", "-u"],
        ..bare(&["mail", "mailx", "s-nail"], &["-e", "-F", "-S"])
    },
    options(&["exim", "sendmail"], &["-be", "-C", "-D", "-O"]),
    options(
        &["nginx", "httpd", "apachectl", "apache2", "haproxy"],
        &["-c", "-g", "-f", "-C", "-d"],
    ),
    options(&["caddy"], &["-c", "--config", "--adapter"]),
    first(&["logrotate", "redis-server", "insmod"], &["--loadmodule", "-m", "--mail"]),
    options(&["emacsclient"], &["-e", "--eval", "-a", "--alternate-editor"]),
    each(&["xterm", "gnome-terminal"], &["-e", "--command", "-x"]),
    options(
        &["chromium", "chromium-browser", "google-chrome"],
        &[
            "--renderer-cmd-prefix",
            "--utility-cmd-prefix",
            "--gpu-launcher",
            "--browser-subprocess-path",
            "--load-extension",
            "--user-data-dir",
        ],
    ),
    Program { valued: values::TSHARK, ..options(&["tshark"], &["-X"]) },
    Program {
        valued: values::ARIA2C,
        ..options(
            &["aria2c"],
            &[
                "--on-download-start",
                "--on-download-complete",
                "--on-download-error",
                "--on-download-stop",
                "--on-download-pause",
                "--on-bt-download-complete",
                "--conf-path",
            ],
        )
    },
    Program {
        valued: values::GPG,
        ..options(
            &["gpg", "gpgsm"],
            &[
                "--exec-path",
                "--photo-viewer",
                "--agent-program",
                "--dirmngr-program",
                "--options",
                "--homedir",
            ],
        )
    },
    Program {
        valued: values::VIDEO,
        ..options(
            &["yt-dlp", "youtube-dl"],
            &[
                "--exec",
                "--config-location",
                "--config-locations",
                "--external-downloader",
                "--downloader",
                "--plugin-dirs",
                "--netrc-cmd",
                "--ffmpeg-location",
            ],
        )
    },
    options(&["mpv"], &["--script", "--scripts", "--include", "--config-dir"]),
    Program { rest: Rest::Settings, ..options(&["sysctl"], &["-p", "--load"]) },
    Program { instead: WRAPPED, ..options(&["cpio"], &["--rsh-command"]) },
];
