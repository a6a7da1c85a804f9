//! Package managers, which install what they then run.

use crate::manifest::program::known::program::{NONE, Program, Rest};

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

const SETTINGS: Program = Program {
    names: &["config", "set"],
    rest: Rest::Each(0),
    instead: "write the setting as a text: settings name programs",
    ..NONE
};

pub(super) const PROGRAMS: &[Program] = &[
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
];
