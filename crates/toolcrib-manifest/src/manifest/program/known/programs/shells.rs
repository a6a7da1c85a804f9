//! Programs that hand a line of text to a shell, at once or later.

use crate::manifest::program::known::program::{NONE, Program, Rest};

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: &["ssh", "autossh"],
        valued: &[
            "-b", "-B", "-c", "-D", "-E", "-e", "-M", "-i", "-l", "-L", "-m", "-O", "-p", "-Q",
            "-R", "-W", "-w",
        ],
        flags: Some(&[
            "-1", "-2", "-4", "-6", "-A", "-a", "-C", "-f", "-G", "-g", "-K", "-k", "-N", "-n",
            "-q", "-s", "-T", "-t", "-V", "-v", "-X", "-x", "-Y", "-y",
        ]),
        // The user of `-J` reaches a line of a shell.
        code: &["-o", "-F", "-S", "-I", "-P", "-J"],
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
        instead: "write what is run as a literal, with the value in a variable of `env`",
        ..NONE
    },
    Program {
        names: &["crontab"],
        runs_stdin: true,
        valued: &["-u"],
        rest: Rest::Code(0),
        instead: "write what is run as a literal, with the value in a variable of `env`",
        ..NONE
    },
];
