//! Programs with arguments or options that are programs themselves: scripts, expressions, and
//! settings that name a command.

use crate::manifest::program::known::program::{NONE, Program, Rest};

const IN_EDITOR: &str =
    "edit with a script of your own: `run: {script: ./edit.sh, args: [\"--\", \"${args.x}\"]}`";

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: &["sed", "gsed"],
        valued: &["-l", "--line-length"],
        code: &["-e", "--expression", "-f", "--file"],
        rest: Rest::Code(0),
        instead: "sed runs `e` and writes `w` of what stands there; use a script that takes the \
         value \
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
        instead: "set a variable, `env: {VALUE: \"${args.x}\"}`, and write `ENVIRON[\"VALUE\"]` \
         in the \
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
        instead: "write a folder before the value, `./${args.x}`, or give its strings a pattern \
         such as \
                  `^[a-z0-9][a-z0-9._-]*$`",
        ..NONE
    },
    Program {
        names: &["make", "gmake", "bmake"],
        valued: &["-j", "--jobs", "-l", "-o", "-W"],
        code: &["-f", "--file", "--makefile", "-C", "--directory", "-I", "--eval", "-E"],
        rest: Rest::Settings,
        complete: true,
        instead: "list what may be built in an `enum`: make takes `SHELL=…` for a target, also \
         after \
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
        instead: "write the program that is started as a literal",
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
        instead: "write the program that makes the connection as a literal: `-e, ssh`",
        ..NONE
    },
    Program {
        names: &["scp", "sftp"],
        valued: &["-i", "-P", "-l", "-c"],
        code: &["-o", "-S", "-F", "-D"],
        instead: "write the setting as a literal",
        ..NONE
    },
    Program {
        names: &["vi", "vim", "nvim", "view", "ex", "emacs"],
        code: &["+", "-c", "--cmd", "-S", "-s", "-u", "-U", "--eval", "-eval", "-l", "--load"],
        rest: Rest::BareBeforeEnd,
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
        instead: "write the commands as a literal, or into a file beside the manifest",
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
        instead: "write the program that is started as a literal",
        ..NONE
    },
    Program {
        names: &["nmap"],
        valued: &["-p", "-oN", "-oX", "-oG", "-T"],
        code: &["--script", "--script-args", "--script-args-file", "--datadir", "--servicedb"],
        instead: "name the scripts, or list them in an `enum`",
        ..NONE
    },
    Program {
        names: &["gosh"],
        code: &["-e", "--eval", "--eval-code", "-p", "--print"],
        instead: "pass the value as an argument after the text, or in a variable of `env`",
        ..NONE
    },
];
