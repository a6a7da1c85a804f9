//! Programs that run the files in their arguments: one table for what is refused in a manifest, what is reported
//! as missing, and which files no tool may change.

mod names;

use crate::words::Words;
use std::path::Path;

/// What a program runs of its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// The first one that is not an option. This file can be any descriptor, and nothing else is loaded from its folder.
    Shell,
    /// The first one that is not an option; a shell with requirements of its own.
    OtherShell,
    /// The first one that is not an option: an interpreter.
    Script,
    /// The values of some [options](RUN_OPTIONS). The others are targets, a program's text, or data.
    Options,
    /// Another program, or a file, somewhere among them.
    Program,
}

/// Programs that run a file, or another program, that their arguments name. A version may follow:
/// `python3.12`.
static RUNNERS: [(Runs, Words); 5] = [
    (Runs::Shell, Words::of("sh bash dash ash zsh ksh mksh rbash fish")),
    (
        Runs::OtherShell,
        Words::of(
            "csh tcsh pwsh powershell elvish git-shell ion lksh nu oksh osh pdksh posh xonsh yash \
             ysh",
        ),
    ),
    (
        Runs::Script,
        Words::of(
            "python pypy node nodejs ruby perl php lua luajit Rscript tclsh osascript \
             ansible-playbook",
        ),
    ),
    (Runs::Options, Words::of("awk gawk mawk sed make gmake just ninja java")),
    (
        Runs::Program,
        Words::of(
            "busybox deno bun env xargs nice timeout nohup setsid stdbuf sudo npx npm pnpm yarn \
             uv uvx pipx poetry parallel time watch",
        ),
    ),
];

/// Options whose value is a file that the program runs, and without which it fails.
const RUN_OPTIONS: [(&[&str], &[&str]); 5] = [
    (&["make", "gmake"], &["-f", "--file", "--makefile"]),
    (&["awk", "gawk", "mawk", "sed", "php"], &["-f", "--file"]),
    (&["just"], &["-f", "--justfile"]),
    (&["ninja"], &["-f"]),
    (&["java"], &["-jar"]),
];

/// Programs that change to a folder before they open a file, with the options that name it.
const CHANGE_FOLDER: [(&str, &[&str]); 7] = [
    ("make", &["-C", "--directory"]),
    ("gmake", &["-C", "--directory"]),
    ("ninja", &["-C"]),
    ("env", &["-C", "--chdir"]),
    ("sudo", &["-D", "--chdir"]),
    ("doas", &["-D"]),
    ("systemd-run", &["--working-directory"]),
];

/// Programs that never run a file from their working directory because an argument is its bare name.
/// For them a word without `/` and `.` has another meaning, such as `hosts` in `getent hosts`. A
/// program that is not in this list may run such a file.
static RUN_NO_FILE: Words = Words::of(
    "arch base32 base64 basename cal cat chmod chown cksum cmp column comm cp csplit curl cut \
     date df diff dig dirname du echo egrep expand expr factor false fgrep file find fmt fold \
     free getconf getent git grep groups gunzip gzip head hexdump host hostname iconv id join \
     journalctl jq ln locale ls lsblk md5sum mkdir mktemp mv nl nproc nslookup numfmt od paste \
     ping printenv printf ps pwd readlink realpath rev rg rm rmdir seq sha1sum sha256sum \
     sha512sum shuf sleep sort stat strings systemctl tac tail tar tee touch tr true tty uname \
     uniq uptime wc whoami xz zcat",
);

/// Folders of the system's own programs.
const SYSTEM_PROGRAMS: [&str; 4] = ["/bin", "/usr/bin", "/sbin", "/usr/sbin"];

fn runs(program: &str) -> Option<Runs> {
    let name = name_without_version(program);
    RUNNERS.iter().find(|(_, names)| names.contains(name)).map(|(runs, _)| *runs)
}

/// Whether a program runs files or programs that its arguments name.
pub fn runs_its_arguments(program: &str) -> bool {
    runs(program).is_some()
}

/// Whether a program runs its first argument that is not an option.
pub fn is_interpreter(program: &str) -> bool {
    matches!(runs(program), Some(Runs::Shell | Runs::OtherShell | Runs::Script))
}

/// Whether a program is a shell that can read its script from any descriptor.
pub fn is_shell(program: &str) -> bool {
    runs(program) == Some(Runs::Shell)
}

/// Whether a program is a shell of any kind.
pub(crate) fn is_any_shell(program: &str) -> bool {
    matches!(runs(program), Some(Runs::Shell | Runs::OtherShell))
}

/// Whether a program runs only files that follow an option.
pub fn runs_only_options(program: &str) -> bool {
    runs(program) == Some(Runs::Options)
}

/// Whether a program has an option that names the folder to which it changes.
pub fn changes_folder(program: &str) -> bool {
    folder_options(program).is_some()
}

fn folder_options(program: &str) -> Option<&'static [&'static str]> {
    let name = name_without_version(program);
    CHANGE_FOLDER.iter().find(|(known, _)| *known == name).map(|(_, options)| *options)
}

/// The folder to which the program that begins the words changes: `env -C lib`, `env --chdir=lib`, `make -Clib`. The
/// last one counts.
pub fn folder_in<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let mut words = words.into_iter();
    let program = words.next()?;
    let options = folder_options(program)?;
    let is_wrapper = !matches!(name_without_version(program), "make" | "gmake" | "ninja");
    let mut found = None;
    let mut is_option = false;
    while let Some(word) = words.next() {
        let is_program = is_wrapper && !is_option && !word.starts_with('-') && !word.contains('=');
        is_option = word.starts_with('-');
        if word == "--" || is_program {
            break;
        } else if options.contains(&word) {
            found = words.next().or(found);
            is_option = false;
            continue;
        }
        let attached = options.iter().find_map(|option| {
            let rest = word.strip_prefix(option)?;
            if option.starts_with("--") { rest.strip_prefix('=') } else { Some(rest) }
        });
        found = attached.or(found);
    }
    found
}

/// Whether the value of an option is a file that the program runs, and without which it fails.
pub fn is_run_option(program: &str, option: &str) -> bool {
    let name = name_without_version(program);
    RUN_OPTIONS.iter().any(|(names, options)| names.contains(&name) && options.contains(&option))
}

/// The options of a program whose value is a file that it runs.
pub fn run_options(program: &str) -> impl Iterator<Item = &'static str> {
    let name = name_without_version(program);
    let own = RUN_OPTIONS.iter().filter(move |(names, _)| names.contains(&name));
    own.flat_map(|(_, options)| options.iter().copied())
}

/// Whether a program never runs a file because an argument is its bare name.
pub fn runs_no_file(program: &str) -> bool {
    let name = match program.rsplit_once('/') {
        None => program,
        Some((folder, name)) if SYSTEM_PROGRAMS.contains(&folder) => name,
        // A program in another folder may only share the name.
        Some(_) => return false,
    };
    RUN_NO_FILE.contains(name)
}

/// The name under which the tables know a program: without its folder, its version, the name of its
/// build, and the machine for which it compiles. Another name of a known program is replaced.
pub fn name_without_version(program: &str) -> &str {
    names::known_name(program)
}

/// Whether a text would have to be a file even if none exists: a path, or a name like a script's.
pub fn looks_like_a_file(text: &str) -> bool {
    let extensions =
        ["sh", "bash", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua", "awk"];
    let extension = Path::new(text).extension().and_then(|extension| extension.to_str());
    !text.contains(char::is_whitespace)
        && (text.starts_with("./") || text.starts_with("../"))
            | extension.is_some_and(|extension| extensions.contains(&extension))
}
