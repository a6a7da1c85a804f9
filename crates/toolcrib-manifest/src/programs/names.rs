//! The names of programs: one program is installed under many names, and the tables hold one.

/// Names that end with digits which are not a version.
const WHOLE: [&str; 14] = [
    "7z",
    "base32",
    "base64",
    "i386",
    "i486",
    "i586",
    "i686",
    "linux32",
    "linux64",
    "pax",
    "proxychains4",
    "sqlite3",
    "uname26",
    "x86_64",
];

/// What distributions append to the name of a build of the same program.
const BUILDS: [&str; 20] = [
    ".exe",
    ".basic",
    ".tiny",
    ".nox",
    ".gtk",
    ".gtk3",
    ".athena",
    ".traditional",
    ".openbsd",
    ".bfd",
    ".gold",
    ".lld",
    ".mold",
    "-dbg",
    "-debug",
    "-im6.q16",
    "-im6.q16hdri",
    "-im7.q16",
    "-im7.q16hdri",
    "-nox",
];

/// The first parts of names such as `x86_64-linux-gnu-gcc`.
const MACHINES: [&str; 20] = [
    "aarch64",
    "alpha",
    "arm",
    "armeb",
    "armv7",
    "armv7l",
    "avr",
    "hppa",
    "i386",
    "i486",
    "i586",
    "i686",
    "m68k",
    "mips",
    "powerpc",
    "powerpc64le",
    "riscv32",
    "riscv64",
    "s390x",
    "x86_64",
];

/// The parts that may follow them.
const SYSTEMS: [&str; 18] = [
    "android",
    "apple",
    "darwin",
    "eabi",
    "eabihf",
    "elf",
    "gnu",
    "gnueabi",
    "gnueabihf",
    "gnux",
    "linux",
    "mingw",
    "musl",
    "none",
    "pc",
    "redhat",
    "unknown",
    "w",
];

/// Other names of programs, each with the name in the tables.
const ALIASES: &[(&str, &str)] = &[
    // Editors and pagers; the general names are links to one of them.
    ("edit", "vim"),
    ("editor", "vim"),
    ("elvis", "vim"),
    ("evim", "vim"),
    ("gvim", "vim"),
    ("gvimdiff", "vim"),
    ("nvi", "vim"),
    ("nvimdiff", "nvim"),
    ("rgview", "view"),
    ("rgvim", "vim"),
    ("rview", "view"),
    ("rvim", "vim"),
    ("select-editor", "vim"),
    ("sensible-editor", "vim"),
    ("vimdiff", "vim"),
    ("vimx", "vim"),
    ("pager", "less"),
    ("sensible-pager", "less"),
    ("zless", "less"),
    // Compilers and their tools.
    ("c89", "gcc"),
    ("c89-gcc", "gcc"),
    ("c99", "gcc"),
    ("c99-gcc", "gcc"),
    ("cpp", "gcc"),
    ("em++", "gcc"),
    ("emcc", "gcc"),
    ("gdc", "gcc"),
    ("gccgo", "gcc"),
    ("gobjc", "gcc"),
    ("hcc", "gcc"),
    ("icc", "gcc"),
    ("icpx", "gcc"),
    ("icx", "gcc"),
    ("nvcc", "gcc"),
    ("tcc", "gcc"),
    ("zapcc", "gcc"),
    ("lld", "ld"),
    ("mold", "ld"),
    ("gcc-ar", "ar"),
    ("gcc-nm", "nm"),
    ("gcc-ranlib", "ranlib"),
    ("llvm-ar", "ar"),
    ("llvm-nm", "nm"),
    ("llvm-objcopy", "objcopy"),
    ("llvm-objdump", "objdump"),
    ("llvm-ranlib", "ranlib"),
    ("llvm-readelf", "readelf"),
    ("llvm-strip", "strip"),
    // Interpreters.
    ("bpython", "python"),
    ("jython", "python"),
    ("micropython", "python"),
    ("ptpython", "python"),
    ("pythonw", "python"),
    ("nodejs", "node"),
    ("jruby", "ruby"),
    ("truffleruby", "ruby"),
    ("jimsh", "tclsh"),
    ("bwk", "awk"),
    ("goawk", "awk"),
    ("original-awk", "awk"),
    ("python-coverage", "coverage"),
    // One program with many names, and programs of one family.
    ("toybox", "busybox"),
    ("slogin", "ssh"),
    ("pterm", "xterm"),
    ("x-terminal-emulator", "xterm"),
    ("xterm-color", "xterm"),
    ("animate", "convert"),
    ("compare", "convert"),
    ("conjure", "convert"),
    ("display", "convert"),
    ("import", "convert"),
    ("montage", "convert"),
    ("stream", "convert"),
    ("gsc", "gs"),
    ("gsnd", "gs"),
    ("podman-remote", "podman"),
    ("rbash", "bash"),
    // Names of the GNU programs where others have the plain ones.
    ("genv", "env"),
    ("gnice", "nice"),
    ("gnohup", "nohup"),
    ("gsort", "sort"),
    ("gstdbuf", "stdbuf"),
    ("gtimeout", "timeout"),
    ("gxargs", "xargs"),
    ("ginstall", "install"),
    ("gdd", "dd"),
    ("guniq", "uniq"),
    ("gchroot", "chroot"),
];

/// The name in the tables of the program with this path or name.
pub(super) fn known_name(program: &str) -> &str {
    let file = program.rsplit('/').next().unwrap_or_default();
    let name = file.strip_suffix(".exe").unwrap_or(file);
    if WHOLE.contains(&name) {
        return name;
    }
    let tool = without_machine(name);
    // `vim.basic`, `python3.12-dbg`: the build stands behind the version.
    let mut plain = without_version(tool);
    while let Some(shorter) = BUILDS.iter().find_map(|build| plain.strip_suffix(build)) {
        plain = without_version(shorter);
    }
    let build = BUILDS.iter().find_map(|build| tool.strip_suffix(build)).map(without_version);
    let plain = build.unwrap_or(plain);
    // `[` and `7` have nothing but what looks like a version.
    let plain = if plain.is_empty() { name } else { plain };
    // `c99` and `c89` are names, and so is `gcc-ar`: the whole name is looked up, too.
    let alias = |name: &str| ALIASES.iter().find(|(other, _)| *other == name).map(|(_, it)| *it);
    alias(tool).or_else(|| alias(plain)).unwrap_or(plain)
}

fn without_version(name: &str) -> &str {
    match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-') {
        "sqlite" => "sqlite3",
        plain => plain,
    }
}

/// `x86_64-linux-gnu-gcc-12` without the machine.
fn without_machine(name: &str) -> &str {
    let Some((machine, mut tool)) = name.split_once('-') else { return name };
    if !MACHINES.contains(&machine) {
        return name;
    }
    while let Some((system, rest)) = tool.split_once('-') {
        if !SYSTEMS.contains(&system.trim_end_matches(|c: char| c.is_ascii_digit())) {
            break;
        }
        tool = rest;
    }
    tool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_program_is_known_as_one() {
        for (name, known) in [
            ("/usr/bin/python3.12", "python"),
            ("python3.12-dbg", "python"),
            ("python3-dbg", "python"),
            ("x86_64-linux-gnu-gcc-12", "gcc"),
            ("arm-none-eabi-objdump", "objdump"),
            ("x86_64-w64-mingw32-g++", "g++"),
            ("g++-12", "g++"),
            ("clang-18", "clang"),
            ("c99", "gcc"),
            ("cpp-12", "gcc"),
            ("gcc-ar-12", "ar"),
            ("ld.gold", "ld"),
            ("vim.basic", "vim"),
            ("/usr/bin/vimdiff", "vim"),
            ("nodejs", "node"),
            ("toybox", "busybox"),
            ("montage-im6.q16", "convert"),
            ("sqlite3", "sqlite3"),
            ("7z", "7z"),
            ("[", "["),
            ("base64", "base64"),
            ("x86_64", "x86_64"),
            ("git", "git"),
            ("docker-compose", "docker-compose"),
        ] {
            assert_eq!(known_name(name), known, "{name}");
        }
    }
}
