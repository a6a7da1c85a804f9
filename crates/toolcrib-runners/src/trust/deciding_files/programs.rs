//! Marks of files that programs run, and where programs find code unasked.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

pub(super) use toolcrib_manifest::programs::{
    changes_folder, folder_in, is_interpreter, is_run_option, is_shell, looks_like_a_file,
    name_without_version, run_options, runs_its_arguments, runs_no_file, runs_only_options,
};

/// Variables with which a program finds code; their files and folders count.
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

/// How many bytes of a file are read for its `#!` line: as many as the kernel reads.
pub(super) const LINE_MAX: u64 = 256;

/// Whether a file looks executable: by its name, its first line or its mode.
pub(super) fn looks_like_code(file: &Path) -> bool {
    let is_named = file.file_name().and_then(|name| name.to_str()).is_some_and(looks_like_a_file);
    is_named || is_executable(file) || first_line(file).is_some_and(|line| line.starts_with("#!"))
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    file.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    false
}

/// Whether an interpreter can run a folder.
pub(super) fn is_package(folder: &Path) -> bool {
    ["__main__.py", "index.js", "package.json"].iter().any(|name| folder.join(name).is_file())
}

pub(super) fn first_line(file: &Path) -> Option<String> {
    // Opening a FIFO would block.
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut start = Vec::new();
    File::open(file).ok()?.take(LINE_MAX).read_to_end(&mut start).ok()?;
    let text = String::from_utf8_lossy(&start).into_owned();
    text.lines().next().map(str::to_owned)
}
