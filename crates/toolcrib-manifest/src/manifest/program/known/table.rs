//! What is known of programs: which of their arguments they run, and which options take a value.

use crate::manifest::schema::value_shape::Shape;

/// How a program reads its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(super) names: &'static [&'static str],
    /// Options that a value of their own follows.
    pub(super) valued: &'static [&'static str],
    /// Options whose value is a program, a text that is run, or a setting that names one of these.
    pub(super) code: &'static [&'static str],
    /// Those among `code` whose value is harmless beside all of `settled_by`.
    pub(super) settled: &'static [&'static str],
    /// Settings without which a value in `settled` could name programs.
    pub(super) settled_by: &'static [&'static str],
    /// What its other arguments are.
    pub(super) rest: Rest,
    /// Whether `valued` and `code` name every option that takes a value.
    pub(super) complete: bool,
    /// Whether its first argument may be a cluster of options without a dash, whose values follow.
    pub(super) undashed: bool,
    /// Values that are harmless wherever they stand in what is run.
    pub(super) harmless: Shape,
    /// Whether it runs what it reads on standard input, unless an argument says what to run.
    pub(super) runs_stdin: bool,
    /// Where a value can stand instead.
    pub(super) instead: &'static str,
}

/// What the arguments of a program are that belong to no option.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rest {
    /// Nothing that is run.
    Plain,
    /// The one at this position is a program, and the rest are that program's arguments.
    Program(usize),
    /// Settings `NAME=value`, then a program and its arguments.
    Assignments,
    /// From this position on they are one line for a shell.
    Shell(usize),
    /// The one at this position is a text that is run, unless an option gave one.
    Code(usize),
    /// Each may be a setting `NAME=value`, one of which names a program.
    Settings,
    /// From this position on each is run, or sets what names a program.
    Each(usize),
    /// A text that is run, unless an option gave one; then files, or settings `name=value` of
    /// variables that the text uses.
    Awk,
    /// The first is a file or a text that is run, unless an option gave one; the rest is handed to it.
    Script,
    /// Files, or what begins in another way and is run: `@options`, `|command`, `!command`.
    Bare,
    /// The expression of `find`.
    Expression,
    /// The first chooses what is done, and may have a grammar of its own.
    Commands(&'static [Program]),
}

/// A program without anything to say about it, for updates of single fields.
pub(super) const NONE: Program = Program {
    names: &[],
    valued: &[],
    code: &[],
    settled: &[],
    settled_by: &[],
    rest: Rest::Plain,
    complete: false,
    undashed: false,
    harmless: Shape::Fixed,
    runs_stdin: false,
    instead: "",
};

pub(super) const WRAPPED: &str =
    "write the program as a text of its own and give it the value as an argument";

pub(super) const fn wrapper(
    names: &'static [&'static str],
    at: usize,
    valued: &'static [&'static str],
) -> Program {
    Program { names, valued, rest: Rest::Program(at), instead: WRAPPED, ..NONE }
}

const fn known(names: &'static [&'static str], valued: &'static [&'static str]) -> Program {
    Program { names, valued, complete: true, ..NONE }
}

const STATEMENT: &str = "use a worker or a script that hands the value to the database as a \
    parameter: `run: {worker: [python3, query.py]}`";
const IN_EDITOR: &str =
    "edit with a script of your own: `run: {script: ./edit.sh, args: [\"--\", \"${args.x}\"]}`";

const CONTAINER_EXEC: Program = Program {
    names: &["exec"],
    valued: &[
        "-e",
        "--env",
        "--env-file",
        "-u",
        "--user",
        "-w",
        "--workdir",
        "--detach-keys",
        "-c",
        "--container",
        "-n",
        "--namespace",
        "--context",
        "--pod-running-timeout",
        "-f",
        "--filename",
        "--index",
    ],
    rest: Rest::Program(1),
    instead: WRAPPED,
    ..NONE
};

const CONTAINER_RUN: Program = Program {
    names: &["run", "create"],
    valued: &[
        "-e",
        "--env",
        "--env-file",
        "-u",
        "--user",
        "-w",
        "--workdir",
        "--name",
        "-v",
        "--volume",
        "-p",
        "--publish",
        "--network",
        "--net",
        "-m",
        "--memory",
        "--cpus",
        "-l",
        "--label",
        "--mount",
        "-h",
        "--hostname",
        "--pull",
        "--platform",
        "--restart",
        "--tmpfs",
        "--cap-drop",
        "--cap-add",
        "--security-opt",
        "--ulimit",
        "--add-host",
        "--dns",
        "--log-driver",
        "--gpus",
        "--pids-limit",
        "--shm-size",
        "--ip",
        "--link",
    ],
    code: &["--entrypoint"],
    rest: Rest::Program(0),
    instead: "write the image as a text of its own and give its program the value as an argument",
    ..NONE
};

const KUBERNETES_APPLY: Program = Program {
    names: &["apply", "create", "replace", "run", "debug", "config"],
    valued: &["-n", "--namespace", "--context"],
    code: &[
        "-f",
        "--filename",
        "-k",
        "--kustomize",
        "--image",
        "--overrides",
        "--kubeconfig",
        "--exec-command",
        "--exec-arg",
    ],
    instead: "write it as a text, or list what it may be in an `enum`",
    ..NONE
};

const COMPOSE: Program = Program {
    names: &["compose"],
    valued: &["-p", "--project-name", "--profile"],
    code: &["-f", "--file", "--project-directory", "--env-file"],
    rest: Rest::Commands(&[CONTAINER_EXEC, CONTAINER_RUN]),
    instead: "write the file as a text, or list what it may be in an `enum`",
    ..NONE
};

const CONTAINER_BUILD: Program = Program {
    names: &["build"],
    valued: &["-t", "--tag", "--build-arg", "--target", "--platform"],
    code: &["-f", "--file"],
    rest: Rest::Code(0),
    instead: "write the folder as a text: what its Dockerfile says is run",
    ..NONE
};

const INSTALL: Program = Program {
    names: &["install", "i", "add", "exec", "x", "run", "run-script", "dlx"],
    valued: &["-t", "--target", "-p", "--package"],
    code: &[
        "-c",
        "--call",
        "-r",
        "--requirement",
        "--index-url",
        "--extra-index-url",
        "-e",
        "--editable",
        "--script-shell",
        "--prefix",
    ],
    rest: Rest::Program(0),
    instead: "name the package or script: what is installed or run is the author's to say",
    ..NONE
};

const GIT_TRANSFER: Program = Program {
    names: &["clone", "fetch", "pull", "push", "ls-remote", "archive", "init"],
    valued: &["-b", "--branch", "-o", "--origin", "--depth", "-j", "--jobs"],
    code: &[
        "-c",
        "--config",
        "-u",
        "--upload-pack",
        "--receive-pack",
        "--exec",
        "--template",
        "-s",
        "--strategy",
    ],
    instead: "write the setting as a text: `git -c core.pager=cat …`",
    ..NONE
};

const GIT_OTHER: Program = Program {
    names: &["grep", "difftool", "mergetool", "rebase", "merge", "cherry-pick", "revert"],
    code: &[
        "-O",
        "--open-files-in-pager",
        "-x",
        "--exec",
        "--extcmd",
        "-t",
        "--tool",
        "-s",
        "--strategy",
    ],
    instead: "write what is run as a text",
    ..NONE
};

/// Commands of git all of whose arguments are run, or name what is run.
const GIT_RUN: Program = Program {
    names: &["filter-branch", "for-each-repo", "foreach", "run"],
    rest: Rest::Each(0),
    code: &[
        "--env-filter",
        "--tree-filter",
        "--index-filter",
        "--parent-filter",
        "--msg-filter",
        "--commit-filter",
        "--tag-name-filter",
        "--setup",
        "--config",
    ],
    instead: "write what is run as a text",
    ..NONE
};

const GIT_BELOW: Program = Program {
    names: &["submodule", "bisect"],
    rest: Rest::Commands(&[GIT_RUN]),
    instead: "write the command as a text, or list what it may be in an `enum`",
    ..NONE
};

const SETTINGS: Program = Program {
    names: &["config", "set"],
    rest: Rest::Each(0),
    instead: "write the setting as a text: settings name programs",
    ..NONE
};

const GIT_MAIL: Program = Program {
    names: &["send-email", "instaweb", "web--browse", "help", "shell"],
    code: &[
        "--smtp-server",
        "--sendmail-cmd",
        "--to-cmd",
        "--cc-cmd",
        "--header-cmd",
        "-b",
        "--browser",
        "--tool",
        "-d",
        "--httpd",
        "-c",
    ],
    instead: "write what is run as a text",
    ..NONE
};

const GIT_CONFIG: Program = Program {
    names: &["config"],
    valued: &["--get", "--get-all", "--get-regexp", "--unset"],
    rest: Rest::Each(0),
    instead: "write the setting as a text: settings of git name programs",
    ..NONE
};

/// Every program about which something is known, besides the interpreters of `scripts.rs`.
pub(super) const PROGRAMS: &[Program] = &[
    // Wrappers.
    wrapper(&["timeout"], 1, &["-k", "--kill-after", "-s", "--signal"]),
    wrapper(&["nice"], 0, &["-n", "--adjustment"]),
    wrapper(
        &["ionice"],
        0,
        &["-c", "--class", "-n", "--classdata", "-p", "--pid", "-P", "--pgid", "-u", "--uid"],
    ),
    wrapper(&["stdbuf"], 0, &["-i", "--input", "-o", "--output", "-e", "--error"]),
    wrapper(&["time"], 0, &["-f", "--format", "-o", "--output"]),
    wrapper(&["chrt", "taskset", "chroot", "faketime", "runcon"], 1, &["-T", "-P", "-D"]),
    // The name of a machine, which may stand before the program, is a wrapper too.
    wrapper(
        &["setarch", "linux32", "linux64", "x86_64", "i386", "i486", "i586", "i686", "uname26"],
        0,
        &[],
    ),
    wrapper(&["prlimit"], 0, &["-p", "--pid", "--output"]),
    wrapper(&["ssh-agent"], 0, &["-a", "-t", "-E", "-P", "-O"]),
    Program {
        names: &[
            "ld.so",
            "ld-linux.so",
            "ld-linux-x86-64.so",
            "ld-linux-aarch64.so",
            "ld-linux-armhf.so",
            "ld-musl-x86_64.so",
            "ld-musl-aarch64.so",
        ],
        valued: &["--argv0", "--inhibit-rpath", "--glibc-hwcaps-mask"],
        code: &["--library-path", "--preload", "--audit", "--glibc-hwcaps-prepend"],
        rest: Rest::Program(0),
        instead: WRAPPED,
        ..NONE
    },
    Program {
        names: &["capsh", "run-parts"],
        code: &["--shell"],
        rest: Rest::Each(0),
        instead: "write what is run as a text",
        ..NONE
    },
    Program {
        names: &["start-stop-daemon"],
        code: &["-x", "--exec", "-a", "--startas"],
        rest: Rest::Each(0),
        instead: "write what is run as a text",
        ..NONE
    },
    Program {
        names: &["man"],
        code: &["-P", "--pager", "-H", "--html", "-C", "--config-file"],
        instead: "write the pager as a text",
        ..NONE
    },
    Program {
        names: &["split", "gsplit"],
        valued: &["-a", "--suffix-length", "-b", "--bytes", "-l", "--lines", "-n", "--number"],
        code: &["--filter"],
        instead: "write the program that is started as a text",
        ..NONE
    },
    Program {
        names: &["zip"],
        code: &["-TT", "-TmTT", "--unzip-command"],
        instead: "write the program that is started as a text",
        ..NONE
    },
    Program {
        code: &["-o", "--output"],
        ..wrapper(&["strace", "ltrace"], 0, &["-e", "-p", "-u", "-E", "-s", "-S", "-O", "-I", "-P"])
    },
    wrapper(&["nsenter"], 0, &["-t", "--target", "-S", "--setuid", "-G", "--setgid"]),
    wrapper(
        &["setpriv", "unshare"],
        0,
        &["--reuid", "--regid", "--groups", "-S", "-G", "-R", "-w"],
    ),
    wrapper(&["runuser"], 0, &["-u", "--user", "-g", "--group"]),
    wrapper(&["gosu", "su-exec"], 1, &[]),
    wrapper(
        &[
            "nohup",
            "setsid",
            "busybox",
            "tini",
            "dumb-init",
            "catchsegv",
            "unbuffer",
            "firejail",
            "torsocks",
            "torify",
            "proxychains",
            "proxychains4",
            "xvfb-run",
            "dbus-run-session",
            "chronic",
            "ts",
            "command",
            "exec",
            "systemd-inhibit",
            "systemd-cat",
            "caffeinate",
        ],
        0,
        &["-n", "-s", "-g", "-t", "-p", "--what", "--who", "--why", "--mode"],
    ),
    wrapper(
        &["systemd-run"],
        0,
        &[
            "-u",
            "--unit",
            "-p",
            "--property",
            "-M",
            "--machine",
            "-H",
            "--host",
            "-E",
            "--setenv",
            "--uid",
            "--gid",
            "--description",
            "--slice",
            "--service-type",
            "--nice",
            "--working-directory",
            "--on-active",
            "--on-calendar",
        ],
    ),
    wrapper(
        &["xargs"],
        0,
        &[
            "-a",
            "--arg-file",
            "-d",
            "--delimiter",
            "-E",
            "-I",
            "--process-slot-var",
            "-L",
            "--max-lines",
            "-n",
            "--max-args",
            "-P",
            "--max-procs",
            "-s",
            "--max-chars",
        ],
    ),
    Program {
        names: &["npx", "uvx", "bunx", "pnpx"],
        valued: &["-p", "--package", "--from", "--with", "--python"],
        code: &["-c", "--call"],
        rest: Rest::Program(0),
        instead: "name the package: what is installed and run is the author's to say",
        ..NONE
    },
    Program {
        names: &["npm", "pnpm", "yarn", "pip", "pip3", "pipx", "gem", "uv"],
        code: &["--script-shell", "--prefix", "--cwd", "--python"],
        rest: Rest::Commands(&[INSTALL, SETTINGS]),
        instead: "write it as a text, or list what it may be in an `enum`",
        ..NONE
    },
    Program {
        names: &["env"],
        valued: &["-u", "--unset", "-C", "--chdir", "-a", "--argv0"],
        code: &["-S", "--split-string"],
        rest: Rest::Assignments,
        instead: "set variables with `run: {env: {NAME: \"${args.x}\"}}`, and write the program as a \
                  text of its own",
        ..NONE
    },
    Program {
        names: &["sudo", "doas"],
        valued: &[
            "-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "-r", "-t",
            "-U", "-D", "-R", "-T",
        ],
        rest: Rest::Assignments,
        instead: WRAPPED,
        ..NONE
    },
    Program {
        names: &["flock"],
        valued: &["-w", "--wait", "--timeout", "-E", "--conflict-exit-code"],
        code: &["-c", "--command"],
        rest: Rest::Program(1),
        instead: WRAPPED,
        ..NONE
    },
    Program {
        names: &["script"],
        code: &["-c", "--command"],
        rest: Rest::Each(1),
        instead: "write the command as a text",
        ..NONE
    },
    // Programs that hand a line to a shell.
    Program {
        names: &["ssh", "autossh"],
        valued: &[
            "-b", "-B", "-c", "-D", "-E", "-e", "-M", "-i", "-l", "-L", "-m", "-O", "-p", "-Q",
            "-R", "-W", "-w", "-J",
        ],
        code: &["-o", "-F", "-S", "-I"],
        rest: Rest::Shell(1),
        instead: "name a program there that reads the value on its standard input: `argv: [ssh, \
                  host, show-log]` with `stdin: \"${args.x}\"`",
        ..NONE
    },
    Program {
        names: &["watch"],
        valued: &["-n", "--interval", "-q", "--equexit"],
        rest: Rest::Shell(0),
        instead: "run the program itself: a tool is called again by whoever wants to see it again",
        ..NONE
    },
    Program {
        names: &["parallel"],
        valued: &["-j", "--jobs", "-a", "--arg-file", "-I", "-N", "-n"],
        rest: Rest::Shell(0),
        instead: "write a script that handles the values: `run: {script: ./each.sh, args: [\"--\", \
                  {each: items}]}`",
        ..NONE
    },
    Program {
        names: &["tmux", "screen"],
        rest: Rest::Shell(0),
        instead: "run the program itself",
        ..NONE
    },
    Program {
        names: &["at", "batch"],
        runs_stdin: true,
        valued: &["-q"],
        code: &["-f"],
        instead: "write what is run as a text, with the value in a variable of `env`",
        ..NONE
    },
    Program {
        names: &["crontab"],
        runs_stdin: true,
        valued: &["-u"],
        rest: Rest::Code(0),
        instead: "write what is run as a text, with the value in a variable of `env`",
        ..NONE
    },
    // Programs whose arguments are programs.
    Program {
        names: &["sed", "gsed"],
        valued: &["-l", "--line-length"],
        code: &["-e", "--expression", "-f", "--file"],
        rest: Rest::Code(0),
        instead: "sed runs `e` and writes `w` of what stands there; use a script that takes the value \
                  as an argument: `run: {script: ./replace.sh, args: [\"--\", \"${args.x}\"]}`",
        ..NONE
    },
    Program {
        names: &["awk", "gawk", "mawk", "nawk"],
        valued: &["-v", "--assign", "-F", "--field-separator"],
        code: &[
            "-f",
            "--file",
            "-e",
            "--source",
            "-i",
            "--include",
            "-l",
            "--load",
            "-E",
            "--exec",
        ],
        rest: Rest::Awk,
        instead: "set a variable, `env: {VALUE: \"${args.x}\"}`, and write `ENVIRON[\"VALUE\"]` in the \
                  program",
        ..NONE
    },
    Program {
        names: &["find", "gfind"],
        valued: &[
            "-name",
            "-iname",
            "-path",
            "-ipath",
            "-wholename",
            "-regex",
            "-iregex",
            "-type",
            "-xtype",
            "-size",
            "-mtime",
            "-mmin",
            "-atime",
            "-amin",
            "-ctime",
            "-cmin",
            "-newer",
            "-newermt",
            "-user",
            "-group",
            "-uid",
            "-gid",
            "-perm",
            "-maxdepth",
            "-mindepth",
            "-lname",
            "-ilname",
            "-links",
            "-inum",
            "-samefile",
            "-fstype",
            "-printf",
            "-fprint",
            "-fprintf",
            "-fls",
            "-regextype",
            "-D",
        ],
        rest: Rest::Expression,
        complete: true,
        instead: "write a folder before the value, `./${args.x}`, or give its strings a pattern such as \
                  `^[a-z0-9][a-z0-9._-]*$`",
        ..NONE
    },
    Program {
        names: &["make", "gmake", "bmake"],
        valued: &["-j", "--jobs", "-l", "-o", "-W"],
        code: &["-f", "--file", "--makefile", "-C", "--directory", "-I", "--eval", "-E"],
        rest: Rest::Settings,
        complete: true,
        instead: "list what may be built in an `enum`: make takes `SHELL=…` for a target, also after \
                  `--`",
        ..NONE
    },
    Program {
        names: &["tar", "gtar", "bsdtar"],
        valued: &[
            "-f",
            "--file",
            "-C",
            "--directory",
            "-T",
            "--files-from",
            "-X",
            "--exclude-from",
            "--exclude",
            "-b",
            "-g",
            "-H",
            "-K",
            "-L",
            "-N",
            "-V",
        ],
        undashed: true,
        code: &[
            "--to-command",
            "--checkpoint-action",
            "-I",
            "--use-compress-program",
            "-F",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
        instead: "write the program that is started as a text",
        ..NONE
    },
    Program {
        names: &["rsync"],
        valued: &[
            "--exclude",
            "--include",
            "--exclude-from",
            "--include-from",
            "--files-from",
            "-f",
        ],
        code: &["-e", "--rsh", "--rsync-path"],
        instead: "write the program that makes the connection as a text: `-e, ssh`",
        ..NONE
    },
    Program {
        names: &["scp", "sftp"],
        valued: &["-i", "-P", "-l", "-c"],
        code: &["-o", "-S", "-F", "-D"],
        instead: "write the setting as a text",
        ..NONE
    },
    Program {
        names: &["git"],
        valued: &["--work-tree", "--namespace"],
        code: &["-c", "--config-env", "--exec-path", "-C", "--git-dir"],
        // A repository's own settings name programs that are run even for a look at it.
        settled: &["-C", "--git-dir"],
        settled_by: &["core.fsmonitor=false", "core.hooksPath="],
        rest: Rest::Commands(&[GIT_TRANSFER, GIT_OTHER, GIT_RUN, GIT_BELOW, GIT_CONFIG, GIT_MAIL]),
        instead: "write the setting or the folder as a text, or list what it may be in an `enum`: \
                  settings, also those of a repository, name programs. A folder may be any beside \
                  `-c, core.fsmonitor=false, -c, core.hooksPath=/dev/null`",
        ..NONE
    },
    Program {
        names: &["vi", "vim", "nvim", "view", "ex", "emacs"],
        code: &["+", "-c", "--cmd", "-S", "-s", "-u", "-U", "--eval", "-eval", "-l", "--load"],
        instead: IN_EDITOR,
        ..NONE
    },
    Program {
        names: &["gdb", "lldb"],
        code: &[
            "-ex",
            "-iex",
            "-x",
            "-ix",
            "--eval-command",
            "--command",
            "-o",
            "-O",
            "-s",
            "--args",
        ],
        instead: "write the commands as a text, or into a file beside the manifest",
        ..NONE
    },
    Program {
        names: &["wget"],
        code: &["-e", "--execute", "--use-askpass", "--config", "--post-file", "--body-file"],
        instead: "an `http:` tool sends requests without a program",
        ..NONE
    },
    Program {
        names: &["curl"],
        valued: &[
            "-H",
            "--header",
            "-d",
            "--data",
            "-X",
            "--request",
            "-o",
            "--output",
            "-u",
            "--user",
            "-m",
            "--max-time",
            "-A",
            "--user-agent",
            "-b",
            "--cookie",
            "-e",
            "--referer",
            "-F",
            "--form",
            "-x",
            "--proxy",
            "-w",
            "--write-out",
            "--connect-timeout",
            "--retry",
            "--data-urlencode",
            "--data-raw",
            "--data-binary",
            "--resolve",
            "--url",
            "-r",
            "-T",
        ],
        code: &["-K", "--config"],
        instead: "an `http:` tool sends requests without a program",
        ..NONE
    },
    Program {
        names: &["tcpdump"],
        valued: &["-i", "-c", "-w", "-r", "-s", "-C", "-G", "-W"],
        code: &["-z"],
        instead: "write the program that is started as a text",
        ..NONE
    },
    Program {
        names: &["nmap"],
        valued: &["-p", "-oN", "-oX", "-oG", "-T"],
        code: &["--script", "--script-args", "--script-args-file", "--datadir", "--servicedb"],
        instead: "name the scripts, or list them in an `enum`",
        ..NONE
    },
    // Databases, whose clients run commands of their own.
    Program {
        names: &["psql"],
        valued: &[
            "-h",
            "--host",
            "-p",
            "--port",
            "-U",
            "--username",
            "-d",
            "--dbname",
            "-v",
            "--set",
            "--variable",
            "-o",
            "--output",
            "-F",
            "-R",
            "-P",
            "-L",
            "-T",
        ],
        code: &["-c", "--command", "-f", "--file"],
        complete: true,
        runs_stdin: true,
        instead: "psql runs `\\!` in a shell; use a worker or a script that hands the value to the \
                  database as a parameter: `run: {worker: [python3, query.py]}`",
        ..NONE
    },
    Program {
        names: &["mysql", "mariadb"],
        valued: &["-h", "--host", "-P", "--port", "-u", "--user", "-D", "--database", "-S"],
        code: &["-e", "--execute", "--init-command", "--pager"],
        runs_stdin: true,
        instead: STATEMENT,
        ..NONE
    },
    Program {
        names: &["sqlite3", "duckdb"],
        valued: &["-separator", "-nullvalue", "-newline", "-mmap", "-vfs"],
        code: &["-cmd", "-init", "-c", "-s", "-f"],
        rest: Rest::Code(1),
        runs_stdin: true,
        instead: STATEMENT,
        ..NONE
    },
    Program {
        names: &["clickhouse-client", "sqlcmd", "sqlplus", "snowsql", "usql"],
        code: &["--eval", "-q", "--query", "-Q", "-f", "-i", "-c"],
        runs_stdin: true,
        instead: STATEMENT,
        ..NONE
    },
    Program {
        names: &["gosh"],
        code: &["-e", "--eval", "--eval-code", "-p", "--print"],
        instead: "pass the value as an argument after the text, or in a variable of `env`",
        ..NONE
    },
    // Machines and containers.
    Program {
        names: &["kubectl", "oc"],
        valued: &[
            "-n",
            "--namespace",
            "--context",
            "--cluster",
            "-s",
            "--server",
            "--as",
            "--user",
            "-o",
            "--output",
            "-l",
            "--selector",
            "--field-selector",
            "-c",
            "--container",
            "--since",
            "--since-time",
            "--tail",
            "-f",
            "--filename",
            "--request-timeout",
            "--sort-by",
            "--limit-bytes",
            "-L",
            "--label-columns",
            "--chunk-size",
            "--timeout",
            "--replicas",
            "--grace-period",
        ],
        // A plugin that such a file names is run.
        code: &["--kubeconfig"],
        rest: Rest::Commands(&[CONTAINER_EXEC, KUBERNETES_APPLY]),
        instead: "write it as a text, or list what it may be in an `enum`",
        ..NONE
    },
    Program {
        names: &["docker", "podman", "nerdctl", "lxc"],
        valued: &["-H", "--host", "-c", "--context", "--config", "-l", "--log-level"],
        rest: Rest::Commands(&[CONTAINER_EXEC, CONTAINER_RUN, CONTAINER_BUILD, COMPOSE]),
        ..NONE
    },
    Program {
        names: &["ansible"],
        valued: &[
            "-i",
            "--inventory",
            "-m",
            "--module-name",
            "-l",
            "--limit",
            "-u",
            "--user",
            "-f",
        ],
        code: &["-a", "--args", "-e", "--extra-vars", "-M"],
        harmless: Shape::Word,
        instead: ANSIBLE,
        ..NONE
    },
    Program {
        names: &["ansible-playbook", "ansible-pull"],
        valued: &[
            "-i",
            "--inventory",
            "-l",
            "--limit",
            "-u",
            "--user",
            "-f",
            "--forks",
            "-t",
            "--tags",
            "--skip-tags",
            "--start-at-task",
            "--vault-password-file",
        ],
        code: &["-e", "--extra-vars", "-M"],
        rest: Rest::Code(0),
        harmless: Shape::Word,
        instead: ANSIBLE,
        ..NONE
    },
    // Others, of which it is only known which options take a value.
    known(
        &["tail", "head"],
        &["-n", "--lines", "-c", "--bytes", "-s", "--sleep-interval", "--pid"],
    ),
    known(
        &["grep", "egrep", "fgrep", "zgrep"],
        &[
            "-e",
            "--regexp",
            "-f",
            "--file",
            "-m",
            "--max-count",
            "-A",
            "--after-context",
            "-B",
            "--before-context",
            "-C",
            "--context",
            "--include",
            "--exclude",
            "--exclude-dir",
            "-d",
            "-D",
            "--label",
        ],
    ),
    known(&["cat", "wc", "uptime", "who", "w", "id", "whoami", "pwd", "sha256sum", "md5sum"], &[]),
    known(&["ls"], &["-I", "--ignore", "-w", "--width", "-T", "--tabsize", "--block-size"]),
    known(
        &["du"],
        &["-d", "--max-depth", "-t", "--threshold", "--exclude", "-X", "-B", "--block-size"],
    ),
    known(&["df"], &["-t", "--type", "-x", "--exclude-type", "-B", "--block-size", "--output"]),
    Program {
        code: &["--compress-program"],
        instead: "write the program that is started as a text",
        ..known(
            &["sort"],
            &["-k", "--key", "-t", "--field-separator", "-o", "-S", "-T", "--parallel"],
        )
    },
    known(&["cut"], &["-d", "--delimiter", "-f", "--fields", "-c", "-b", "--output-delimiter"]),
    known(&["uniq"], &["-f", "-s", "-w"]),
    known(&["rm", "rmdir", "basename", "dirname", "realpath", "readlink", "hostname"], &[]),
    known(&["mv", "cp", "ln", "install"], &["-t", "--target-directory", "-S", "--suffix"]),
    known(&["mkdir"], &["-m", "--mode"]),
    known(&["touch"], &["-t", "-d", "--date", "-r", "--reference"]),
    known(&["chmod", "chown", "chgrp"], &["--reference", "--from"]),
    known(&["stat"], &["-c", "--format", "--printf"]),
    known(&["date"], &["-d", "--date", "-f", "--file", "-r", "--reference"]),
    known(
        &["journalctl"],
        &[
            "-u",
            "--unit",
            "-n",
            "--lines",
            "-S",
            "--since",
            "-U",
            "--until",
            "-p",
            "--priority",
            "-t",
            "--identifier",
            "-o",
            "--output",
            "-g",
            "--grep",
            "-D",
            "--directory",
            "--file",
            "-M",
            "--machine",
            "--user-unit",
            "-c",
            "--cursor",
            "--facility",
            "-b",
            "--boot",
            "-F",
        ],
    ),
    known(
        &["systemctl"],
        &[
            "-t",
            "--type",
            "-p",
            "--property",
            "-n",
            "--lines",
            "-o",
            "--output",
            "--state",
            "-H",
            "--host",
            "-M",
            "--machine",
            "-s",
            "--signal",
            "--kill-whom",
            "--job-mode",
        ],
    ),
    known(
        &["ps"],
        &["-o", "-O", "-p", "--pid", "-u", "-U", "-C", "-G", "-g", "-t", "--sort", "--ppid", "-q"],
    ),
    known(&["ping"], &["-c", "-i", "-I", "-s", "-t", "-w", "-W", "-p", "-M", "-Q", "-S"]),
];

const ANSIBLE: &str = "Ansible runs `{{ lookup('pipe', …) }}` of what stands there: list the values in \
    an `enum`, or give their strings a pattern such as `^[a-z0-9.]+$`";

/// Programs that take `--` for the end of their options.
pub(super) const END_OPTIONS: &[&str] = &[
    "tail",
    "head",
    "cat",
    "wc",
    "sort",
    "uniq",
    "cut",
    "grep",
    "egrep",
    "fgrep",
    "zgrep",
    "rm",
    "mv",
    "cp",
    "ln",
    "mkdir",
    "rmdir",
    "touch",
    "chmod",
    "chown",
    "stat",
    "file",
    "ls",
    "du",
    "df",
    "sha256sum",
    "md5sum",
    "cksum",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "gzip",
    "zcat",
    "xz",
    "tee",
    "nl",
    "od",
    "tac",
    "kubectl",
    "oc",
    "helm",
    "systemctl",
    "getent",
    "kill",
    "pkill",
    "pgrep",
    "namei",
    "diff",
    "cmp",
    "paste",
    "join",
    "id",
];
