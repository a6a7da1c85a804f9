//! The names of programs: one program is installed under many names, and the tables hold one.

use crate::words::Words;

/// Names that end with digits which are not a version.
static WHOLE: Words = Words::of(
    "7z base32 base64 i386 i486 i586 i686 linux32 linux64 pax proxychains4 sqlite3 uname26 x86_64",
);

/// What distributions append to the name of a build of the same program.
static BUILDS: Words = Words::of(
    ".exe .basic .tiny .nox .gtk .gtk3 .athena .traditional .openbsd .bfd .gold .lld .mold -dbg \
     -debug -im6.q16 -im6.q16hdri -im7.q16 -im7.q16hdri -nox",
);

/// The first parts of names such as `x86_64-linux-gnu-gcc`.
static MACHINES: Words = Words::of(
    "aarch64 alpha arm armeb armv7 armv7l avr hppa i386 i486 i586 i686 m68k mips powerpc \
     powerpc64le riscv32 riscv64 s390x x86_64",
);

/// The parts that may follow them.
static SYSTEMS: Words = Words::of(
    "android apple darwin eabi eabihf elf gnu gnueabi gnueabihf gnux linux mingw musl none pc \
     redhat unknown w",
);

/// Programs by their names in the tables, with their other names: links to one of them, programs of one family, and
/// names of the GNU programs where others have the plain ones.
static ALIASES: &[(&str, Words)] = &[
    (
        "vim",
        Words::of(
            "edit editor elvis evim gvim gvimdiff nvi rgvim rvim select-editor sensible-editor \
             vimdiff vimx",
        ),
    ),
    ("nvim", Words::of("nvimdiff")),
    ("view", Words::of("rgview rview")),
    ("less", Words::of("pager sensible-pager zless")),
    (
        "gcc",
        Words::of(
            "c89 c89-gcc c99 c99-gcc cpp em++ emcc gdc gccgo gobjc hcc icc icpx icx nvcc tcc \
             zapcc",
        ),
    ),
    ("ld", Words::of("lld mold")),
    ("ar", Words::of("gcc-ar llvm-ar")),
    ("nm", Words::of("gcc-nm llvm-nm")),
    ("ranlib", Words::of("gcc-ranlib llvm-ranlib")),
    ("objcopy", Words::of("llvm-objcopy")),
    ("objdump", Words::of("llvm-objdump")),
    ("readelf", Words::of("llvm-readelf")),
    ("strip", Words::of("llvm-strip")),
    ("python", Words::of("bpython jython micropython ptpython pythonw")),
    ("node", Words::of("nodejs")),
    ("ruby", Words::of("jruby truffleruby")),
    ("tclsh", Words::of("jimsh")),
    ("awk", Words::of("bwk goawk original-awk")),
    ("coverage", Words::of("python-coverage")),
    ("busybox", Words::of("toybox")),
    ("ssh", Words::of("slogin")),
    ("xterm", Words::of("pterm x-terminal-emulator xterm-color")),
    ("convert", Words::of("animate compare conjure display import montage stream")),
    ("gs", Words::of("gsc gsnd")),
    ("podman", Words::of("podman-remote")),
    ("bash", Words::of("rbash")),
    ("env", Words::of("genv")),
    ("nice", Words::of("gnice")),
    ("nohup", Words::of("gnohup")),
    ("sort", Words::of("gsort")),
    ("stdbuf", Words::of("gstdbuf")),
    ("timeout", Words::of("gtimeout")),
    ("xargs", Words::of("gxargs")),
    ("install", Words::of("ginstall")),
    ("dd", Words::of("gdd")),
    ("uniq", Words::of("guniq")),
    ("chroot", Words::of("gchroot")),
];

/// The name in the tables of the program with this path or name.
pub(super) fn known_name(program: &str) -> &str {
    let file = program.rsplit('/').next().unwrap_or_default();
    let name = file.strip_suffix(".exe").unwrap_or(file);
    if WHOLE.contains(name) {
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
    // Nothing would be left of `[` and `7` without what looks like a version.
    let plain = if plain.is_empty() { name } else { plain };
    // `c99` and `c89` are names, and so is `gcc-ar`: the whole name is looked up, too.
    let alias =
        |name: &str| ALIASES.iter().find(|(_, others)| others.contains(name)).map(|(it, _)| *it);
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
    if !MACHINES.contains(machine) {
        return name;
    }
    while let Some((system, rest)) = tool.split_once('-') {
        if !SYSTEMS.contains(system.trim_end_matches(|c: char| c.is_ascii_digit())) {
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
