//! Programs that start another program, which their arguments name.

use super::values;
use crate::manifest::program::known::program::{NONE, Program, Rest, WRAPPED, wrapper};

pub(super) const PROGRAMS: &[Program] = &[
    wrapper(&["timeout"], 1, &["-k", "--kill-after", "-s", "--signal"]),
    wrapper(&["nice"], 0, &["-n", "--adjustment"]),
    wrapper(
        &["ionice"],
        0,
        &["-c", "--class", "-n", "--classdata", "-p", "--pid", "-P", "--pgid", "-u", "--uid"],
    ),
    wrapper(&["stdbuf"], 0, &["-i", "--input", "-o", "--output", "-e", "--error"]),
    wrapper(&["time"], 0, &["-f", "--format", "-o", "--output"]),
    wrapper(&["chrt", "taskset", "faketime", "runcon"], 1, &["-T", "-P", "-D"]),
    Program { names: &["chroot"], rest: Rest::Place, instead: WRAPPED, ..NONE },
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
        instead: "write what is run as a literal",
        ..NONE
    },
    Program {
        names: &["prove"],
        code: &["-e", "--exec", "-I", "-P", "--rc", "--source", "--formatter", "--harness"],
        rest: Rest::Each(0),
        instead: "write what is run as a literal",
        ..NONE
    },
    Program {
        names: &["start-stop-daemon"],
        code: &["-x", "--exec", "-a", "--startas"],
        rest: Rest::Each(0),
        instead: "write what is run as a literal",
        ..NONE
    },
    Program {
        names: &["man"],
        valued: values::MAN,
        code: &["-P", "--pager", "-H", "--html", "-C", "--config-file", "-T", "--troff-device"],
        instead: "write the pager as a literal",
        ..NONE
    },
    Program {
        names: &["split", "gsplit"],
        valued: values::SPLIT,
        code: &["--filter"],
        instead: "write the program that is started as a literal",
        ..NONE
    },
    Program {
        names: &["zip"],
        valued: values::ZIP,
        code: &["-TT", "-TmTT", "--unzip-command"],
        instead: "write the program that is started as a literal",
        ..NONE
    },
    Program {
        code: &["-o", "--output", "-E", "--env"],
        ..wrapper(&["strace", "ltrace"], 0, &["-e", "-p", "-u", "-s", "-S", "-O", "-I", "-P"])
    },
    wrapper(&["nsenter"], 0, &["-t", "--target", "-S", "--setuid", "-G", "--setgid"]),
    Program {
        code: &["-R", "--root"],
        ..wrapper(&["setpriv", "unshare"], 0, &["--reuid", "--regid", "--groups", "-S", "-G", "-w"])
    },
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
            "builtin",
            "jobs",
            "command",
            "exec",
            "systemd-inhibit",
            "systemd-cat",
            "caffeinate",
        ],
        0,
        &["-a", "-n", "-s", "-g", "-t", "-p", "--what", "--who", "--why", "--mode"],
    ),
    Program {
        code: &["-p", "--property"],
        folder: &["--working-directory"],
        ..wrapper(
            &["systemd-run"],
            0,
            &[
                "-u",
                "--unit",
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
                "--on-active",
                "--on-calendar",
            ],
        )
    },
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
        names: &["env"],
        valued: &["-u", "--unset", "-a", "--argv0"],
        folder: &["-C", "--chdir"],
        code: &["-S", "--split-string"],
        rest: Rest::Assignments,
        instead: "set variables with `run: {env: {NAME: \"${args.x}\"}}`, and write the program \
         as a \
                  text of its own",
        ..NONE
    },
    Program {
        names: &["sudo", "doas"],
        valued: &[
            "-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "-r", "-t",
            "-U", "-R", "-T",
        ],
        folder: &["-D", "--chdir"],
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
        instead: "write the command as a literal",
        ..NONE
    },
];
