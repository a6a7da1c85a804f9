//! Which programs run the files that their arguments name, and how such files look.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Programs that run what a file says, or another program that their arguments name. Versions may
/// follow: `python3.12`.
pub(super) const RUN_THEIR_ARGUMENTS: [&str; 50] = [
    "sh",
    "bash",
    "dash",
    "ash",
    "zsh",
    "ksh",
    "fish",
    "busybox",
    "python",
    "pypy",
    "node",
    "nodejs",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "tclsh",
    "osascript",
    "awk",
    "gawk",
    "mawk",
    "sed",
    "make",
    "gmake",
    "just",
    "ninja",
    "env",
    "xargs",
    "nice",
    "timeout",
    "nohup",
    "setsid",
    "stdbuf",
    "sudo",
    "java",
    "npx",
    "npm",
    "pnpm",
    "yarn",
    "uv",
    "uvx",
    "pipx",
    "poetry",
    "parallel",
    "time",
    "watch",
];

/// Of these the ones that read a script from any descriptor and load nothing from its folder.
pub(super) const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "fish"];

/// Variables by which a program finds code: their files and folders count.
pub(super) const CODE_VARIABLES: [&str; 34] = [
    "PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "NODE_PATH",
    "NODE_OPTIONS",
    "BASH_ENV",
    "ENV",
    "ZDOTDIR",
    "PERL5LIB",
    "PERLLIB",
    "PERL5OPT",
    "RUBYLIB",
    "RUBYOPT",
    "GEM_PATH",
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "LUA_PATH",
    "LUA_CPATH",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MAKEFILES",
    "VIRTUAL_ENV",
];

/// Options after which an interpreter takes its program from the command line.
pub(super) const INLINE: [&str; 4] = ["-c", "-e", "-m", "--eval"];

/// Files that programs read from the folder in which they are told to work.
pub(super) const RUN_UNASKED: [&str; 6] =
    ["GNUmakefile", "makefile", "Makefile", "justfile", ".justfile", "build.ninja"];

/// How much of a file is read for its `#!` line, in bytes: as much as the kernel reads.
pub(super) const LINE_MAX: u64 = 256;

/// Whether a program runs what its arguments name.
pub(super) fn runs_its_arguments(program: &str) -> bool {
    RUN_THEIR_ARGUMENTS.contains(&name_without_version(program))
}

pub(super) fn name_without_version(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or_default();
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

/// Whether a text that names no file would have to: a path, or a name as scripts have.
pub(super) fn looks_like_a_file(text: &str) -> bool {
    let extensions =
        ["sh", "bash", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua", "awk"];
    let extension = Path::new(text).extension().and_then(|extension| extension.to_str());
    !text.contains(char::is_whitespace)
        && (text.starts_with("./") || text.starts_with("../"))
            | extension.is_some_and(|extension| extensions.contains(&extension))
}

/// Whether an interpreter runs a folder.
pub(super) fn is_package(folder: &Path) -> bool {
    ["__main__.py", "index.js", "package.json"].iter().any(|name| folder.join(name).is_file())
}

pub(super) fn first_line(file: &Path) -> Option<String> {
    // A FIFO would wait for somebody who writes.
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut start = Vec::new();
    File::open(file).ok()?.take(LINE_MAX).read_to_end(&mut start).ok()?;
    let text = String::from_utf8_lossy(&start).into_owned();
    text.lines().next().map(str::to_owned)
}
