//! Git, whose commands have grammars of their own.

use super::values;
use crate::manifest::program::known::program::{NONE, Program, Rest};

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
    instead: "write the setting as a literal: `git -c core.pager=cat …`",
    ..NONE
};

const GIT_OTHER: Program = Program {
    names: &["grep", "difftool", "mergetool", "rebase", "merge", "cherry-pick", "revert"],
    valued: values::GIT_SEARCH,
    evokes: &["--textconv", "--ext-grep"],
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
    instead: "write what is run as a literal",
    ..NONE
};

/// Commands that run the filters which the repository's attributes and settings name for a file, if
/// they are told to.
const GIT_FILTERS: Program = Program {
    names: &["cat-file", "show"],
    evokes: &["--textconv", "--filters", "--ext-diff"],
    instead: "leave the option out: `git cat-file -p` and `git show` print the file as it is",
    ..GIT_PLAIN
};

/// Commands of git all of whose arguments are run, or name what is run.
const GIT_RUN: Program = Program {
    names: &["filter-branch", "for-each-repo", "foreach", "run", "remote-ext"],
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
    instead: "write what is run as a literal",
    ..NONE
};

const GIT_BELOW: Program = Program {
    names: &["submodule", "bisect", "hook"],
    rest: Rest::Commands(&[GIT_RUN]),
    instead: "write the command as a literal, or list what it may be in an `enum`",
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
    instead: "write what is run as a literal",
    ..NONE
};

const GIT_CONFIG: Program = Program {
    names: &["config"],
    valued: &["--get", "--get-all", "--get-regexp", "--unset"],
    rest: Rest::Each(0),
    instead: "write the setting as a literal: settings of git name programs",
    ..NONE
};

/// Every other command of git.
const GIT_PLAIN: Program = Program {
    valued: values::GIT,
    code: &["--config-env", "--exec-path", "--git-dir"],
    instead: "write the setting or the folder as a literal, or list what it may be in an `enum`",
    ..NONE
};

pub(super) const PROGRAMS: &[Program] = &[Program {
    names: &["git"],
    valued: &["--work-tree", "--namespace"],
    code: &["-c", "--config-env", "--exec-path", "-C", "--git-dir"],
    // A repository's own settings name programs that are run even for a look at it.
    settled: &["-C", "--git-dir"],
    settled_by: &["core.fsmonitor=false", "core.hooksPath="],
    rest: Rest::Commands(&[
        GIT_TRANSFER,
        GIT_OTHER,
        GIT_FILTERS,
        GIT_RUN,
        GIT_BELOW,
        GIT_CONFIG,
        GIT_MAIL,
        GIT_PLAIN,
    ]),
    instead: "write the setting or the folder as a literal, or list what it may be in an `enum`: \
                  settings, also those of a repository, name programs. A folder may be any beside \
                  `-c, core.fsmonitor=false, -c, core.hooksPath=/dev/null`",
    ..NONE
}];
