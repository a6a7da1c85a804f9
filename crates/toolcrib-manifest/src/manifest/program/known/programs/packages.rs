//! Package managers, which install what they then run.

use super::values;
use crate::manifest::program::known::program::{NONE, Program, Rest};

const RUN: Program = Program {
    names: &["exec", "x", "run", "run-script", "dlx"],
    code: &["-c", "--call", "--script-shell", "--prefix", "-p", "--package", "--from", "--with"],
    rest: Rest::Program(0),
    instead: "name the package or script: what is run is the author's to say",
    ..NONE
};

const INSTALL: Program = Program {
    names: &[
        "install", "i", "add", "download", "wheel", "pack", "publish", "create", "init", "inject",
        "link",
    ],
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
    rest: Rest::Each(0),
    instead: "name the package or script: what is installed or run is the author's to say",
    ..NONE
};

/// `uv pip install`, `uv tool run`.
const BELOW: Program = Program {
    names: &["pip", "tool"],
    rest: Rest::Commands(&[RUN, INSTALL]),
    instead: "write it as a literal, or list what it may be in an `enum`",
    ..NONE
};

const SETTINGS: Program = Program {
    names: &["config", "set"],
    rest: Rest::Each(0),
    instead: "write the setting as a literal: settings name programs",
    ..NONE
};

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: &["npx", "uvx", "bunx", "pnpx"],
        code: &["-c", "--call", "-p", "--package", "--from", "--with", "--python"],
        rest: Rest::Program(0),
        instead: "name the package: what is installed and run is the author's to say",
        ..NONE
    },
    Program {
        names: &["npm", "pnpm", "yarn", "pip", "pip3", "pipx", "gem", "uv"],
        valued: values::NPM,
        code: &["--script-shell", "--prefix", "--cwd", "--python"],
        rest: Rest::Commands(&[RUN, INSTALL, BELOW, SETTINGS]),
        instead: "write it as a literal, or list what it may be in an `enum`",
        ..NONE
    },
];
