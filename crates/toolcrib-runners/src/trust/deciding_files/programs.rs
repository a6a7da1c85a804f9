//! Programs that run the files in their arguments, and the marks of such files.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// What a program runs of its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// The first one that is not an option: an interpreter.
    Script,
    /// The values of some [options](RUN_OPTIONS). The others are targets, a program's text, or data.
    Options,
    /// Another program, or a file, somewhere among them.
    Program,
}

/// Programs that run a file, or another program, that their arguments name. A version may follow:
/// `python3.12`.
const RUNNERS: [(&str, Runs); 51] = [
    ("sh", Runs::Script),
    ("bash", Runs::Script),
    ("dash", Runs::Script),
    ("ash", Runs::Script),
    ("zsh", Runs::Script),
    ("ksh", Runs::Script),
    ("fish", Runs::Script),
    ("python", Runs::Script),
    ("pypy", Runs::Script),
    ("node", Runs::Script),
    ("nodejs", Runs::Script),
    ("ruby", Runs::Script),
    ("perl", Runs::Script),
    ("php", Runs::Script),
    ("lua", Runs::Script),
    ("luajit", Runs::Script),
    ("Rscript", Runs::Script),
    ("tclsh", Runs::Script),
    ("osascript", Runs::Script),
    ("ansible-playbook", Runs::Script),
    ("awk", Runs::Options),
    ("gawk", Runs::Options),
    ("mawk", Runs::Options),
    ("sed", Runs::Options),
    ("make", Runs::Options),
    ("gmake", Runs::Options),
    ("just", Runs::Options),
    ("ninja", Runs::Options),
    ("java", Runs::Options),
    ("busybox", Runs::Program),
    ("deno", Runs::Program),
    ("bun", Runs::Program),
    ("env", Runs::Program),
    ("xargs", Runs::Program),
    ("nice", Runs::Program),
    ("timeout", Runs::Program),
    ("nohup", Runs::Program),
    ("setsid", Runs::Program),
    ("stdbuf", Runs::Program),
    ("sudo", Runs::Program),
    ("npx", Runs::Program),
    ("npm", Runs::Program),
    ("pnpm", Runs::Program),
    ("yarn", Runs::Program),
    ("uv", Runs::Program),
    ("uvx", Runs::Program),
    ("pipx", Runs::Program),
    ("poetry", Runs::Program),
    ("parallel", Runs::Program),
    ("time", Runs::Program),
    ("watch", Runs::Program),
];

/// Options whose value is a file that the program runs, and without which it fails.
const RUN_OPTIONS: [(&[&str], &[&str]); 5] = [
    (&["make", "gmake"], &["-f", "--file", "--makefile"]),
    (&["awk", "gawk", "mawk", "sed", "php"], &["-f", "--file"]),
    (&["just"], &["-f", "--justfile"]),
    (&["ninja"], &["-f"]),
    (&["java"], &["-jar"]),
];

/// Programs that change to the folder after `-C` before they open a file.
const CHANGE_FOLDER: [&str; 4] = ["make", "gmake", "ninja", "env"];

fn runs(program: &str) -> Option<Runs> {
    let name = name_without_version(program);
    RUNNERS.iter().find(|(known, _)| *known == name).map(|(_, runs)| *runs)
}

/// Whether a program runs its first argument that is not an option.
pub(super) fn is_interpreter(program: &str) -> bool {
    runs(program) == Some(Runs::Script)
}

/// Whether a program is a shell.
pub(super) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&name_without_version(program))
}

/// Whether a program runs only files that follow an option.
pub(super) fn runs_only_options(program: &str) -> bool {
    runs(program) == Some(Runs::Options)
}

/// Whether a program changes to the folder after `-C`.
pub(super) fn changes_folder(program: &str) -> bool {
    CHANGE_FOLDER.contains(&name_without_version(program))
}

/// Whether the value of an option is a file that the program runs.
pub(super) fn is_run_option(program: &str, option: &str) -> bool {
    let name = name_without_version(program);
    RUN_OPTIONS.iter().any(|(names, options)| names.contains(&name) && options.contains(&option))
}

/// Programs that never run a file from their working directory because an argument is its bare name.
/// For them a word without `/` and `.` has another meaning, such as `hosts` in `getent hosts`. A
/// program that is not in this list may run such a file.
const RUN_NO_FILE: [&str; 100] = [
    "arch",
    "base32",
    "base64",
    "basename",
    "cal",
    "cat",
    "chmod",
    "chown",
    "cksum",
    "cmp",
    "column",
    "comm",
    "cp",
    "csplit",
    "curl",
    "cut",
    "date",
    "df",
    "diff",
    "dig",
    "dirname",
    "du",
    "echo",
    "egrep",
    "expand",
    "expr",
    "factor",
    "false",
    "fgrep",
    "file",
    "find",
    "fmt",
    "fold",
    "free",
    "getconf",
    "getent",
    "git",
    "grep",
    "groups",
    "gunzip",
    "gzip",
    "head",
    "hexdump",
    "host",
    "hostname",
    "iconv",
    "id",
    "join",
    "journalctl",
    "jq",
    "ln",
    "locale",
    "ls",
    "lsblk",
    "md5sum",
    "mkdir",
    "mktemp",
    "mv",
    "nl",
    "nproc",
    "nslookup",
    "numfmt",
    "od",
    "paste",
    "ping",
    "printenv",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "rg",
    "rm",
    "rmdir",
    "seq",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "shuf",
    "sleep",
    "sort",
    "stat",
    "strings",
    "systemctl",
    "tac",
    "tail",
    "tar",
    "tee",
    "touch",
    "tr",
    "true",
    "tty",
    "uname",
    "uniq",
    "uptime",
    "wc",
    "whoami",
    "xz",
    "zcat",
];

/// Folders of the system's own programs.
const SYSTEM_PROGRAMS: [&str; 4] = ["/bin", "/usr/bin", "/sbin", "/usr/sbin"];

/// Shells: programs that can read a script from any descriptor and load nothing from its folder.
pub(super) const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "fish"];

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

/// Files that programs read from their working directory unasked.
pub(super) const RUN_UNASKED: [&str; 6] =
    ["GNUmakefile", "makefile", "Makefile", "justfile", ".justfile", "build.ninja"];

/// How many bytes of a file are read for its `#!` line: as many as the kernel reads.
pub(super) const LINE_MAX: u64 = 256;

/// Whether a program runs the files in its arguments.
pub(super) fn runs_its_arguments(program: &str) -> bool {
    runs(program).is_some()
}

/// Whether a program never runs a file because an argument is its bare name.
pub(super) fn runs_no_file(program: &str) -> bool {
    let name = match program.rsplit_once('/') {
        None => program,
        Some((folder, name)) if SYSTEM_PROGRAMS.contains(&folder) => name,
        // A program in another folder may only share the name.
        Some(_) => return false,
    };
    RUN_NO_FILE.contains(&name)
}

pub(super) fn name_without_version(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or_default();
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

/// Whether a text would have to be a file even if none exists: a path, or a name like a script's.
pub(super) fn looks_like_a_file(text: &str) -> bool {
    let extensions =
        ["sh", "bash", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua", "awk"];
    let extension = Path::new(text).extension().and_then(|extension| extension.to_str());
    !text.contains(char::is_whitespace)
        && (text.starts_with("./") || text.starts_with("../"))
            | extension.is_some_and(|extension| extensions.contains(&extension))
}

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
