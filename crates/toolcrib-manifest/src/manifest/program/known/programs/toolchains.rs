//! Compilers, their tools, and what installs or checks their output: programs whose options behind
//! one dash are whole words, or which read options from files.

use super::developer::{TEXT, bare, commands, each, first, interpreter, options};
use super::values;
use crate::manifest::program::known::program::{Dash, NONE, Program, Rest};
use crate::manifest::schema::value_shape::Shape;

const OPENSSL_CODE: &[&str] =
    &["-engine", "-provider", "-provider-path", "-config", "-provpath", "-module", "-engine_impl"];

/// Options of openssl that take a file or the address of a store.
const OPENSSL_FILES: &[&str] = &[
    "-in",
    "-inkey",
    "-key",
    "-keyin",
    "-cert",
    "-certfile",
    "-CA",
    "-CAkey",
    "-CAfile",
    "-CAstore",
    "-cafile",
    "-signer",
    "-recip",
    "-signkey",
    "-sign",
    "-verify",
    "-prverify",
    "-peerkey",
    "-force_pubkey",
    "-issuer",
    "-trusted",
    "-untrusted",
    "-certs",
    "-oldcert",
    "-vfyCAfile",
    "-verifyCAfile",
    "-chainCAfile",
];

const STORE: Program = Program { names: &["storeutl", "verify"], rest: Rest::Bare, ..OPENSSL };

/// Every other command of openssl.
const OPENSSL: Program = Program {
    valued: values::OPENSSL,
    code: OPENSSL_CODE,
    files: OPENSSL_FILES,
    dash: Dash::Word,
    instead: TEXT,
    ..NONE
};

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        runs_stdin: true,
        ..commands(&["openssl"], OPENSSL_CODE, &[STORE, each(&["engine"], OPENSSL_CODE), OPENSSL])
    },
    Program {
        dash: Dash::Word,
        ..interpreter(
            &["java"],
            &[
                "--add-modules",
                "--add-opens",
                "--add-exports",
                "--add-reads",
                "--limit-modules",
                "--enable-native-access",
                "--source",
            ],
            &[
                "-jar",
                "-cp",
                "-classpath",
                "-class-path",
                "-p",
                "-module-path",
                "-upgrade-module-path",
                "-patch-module",
                "-m",
                "-module",
                "-javaagent:",
                "-agentpath:",
                "-agentlib:",
                "-Xbootclasspath",
                "-Xbootclasspath/a:",
                "-Xrun",
                "-XX:OnError",
                "-XX:OnOutOfMemoryError",
                "-XX:Flags",
                "-XX:VMOptionsFile",
                "-XX:SharedArchiveFile",
                "-Djava.class.path",
                "-Djava.library.path",
                "-Djava.endorsed.dirs",
                "-Djava.ext.dirs",
                "-Djava.home",
                "-Djava.system.class.loader",
                "-Djava.util.logging.config.class",
                "-Djdk.module.path",
                "-Djdk.module.main",
                "-Dsun.boot.library.path",
            ],
        )
    },
    Program {
        dash: Dash::Word,
        valued: &[
            "-o",
            "-I",
            "-D",
            "-U",
            "-x",
            "-std",
            "-O",
            "-l",
            "-L",
            "-include",
            "-isystem",
            "-idirafter",
            "-iquote",
            "-MF",
            "-MT",
            "-MQ",
            "-march",
            "-mtune",
            "-mcpu",
            "-g",
            "-Werror",
            "-d",
            "-e",
            "-source",
            "-target",
            "-release",
            "-encoding",
            "-sourcepath",
        ],
        flags: Some(&["*"]),
        ..bare(
            &["gcc", "cc", "g++", "c++", "clang", "clang++", "gfortran", "ld", "gold", "javac"],
            &[
                "-wrapper",
                "-specs",
                "-fplugin",
                "-fpass-plugin",
                "-B",
                "-plugin",
                "-plugin-opt",
                "-processorpath",
                "-processor-path",
                "-processor",
                "-Xclang",
                "-Xlinker",
                "-Xassembler",
                "-Xpreprocessor",
                "-Xplugin:",
                "-Wl,",
                "-Wa,",
                "-Wp,",
                "-J",
                "-load",
                "-fuse-ld",
                "-ld-path",
            ],
        )
    },
    Program {
        data: &[
            "opt-level=",
            "debuginfo=",
            "target-cpu=",
            "target-feature=",
            "codegen-units=",
            "lto=",
            "panic=",
            "strip=",
            "metadata=",
            "extra-filename=",
        ],
        ..bare(
            &["rustc"],
            &["-C", "--codegen", "-Z", "--extern", "--sysroot", "-L", "--config", "-wrapper"],
        )
    },
    // Every argument of these may be `@file`, which stands for the options in that file.
    bare(
        &[
            "nm",
            "ar",
            "ranlib",
            "strip",
            "objdump",
            "objcopy",
            "readelf",
            "size",
            "strings",
            "addr2line",
            "elfedit",
            "gprof",
            "dlltool",
            "dwp",
            "lto-dump",
            "as",
        ],
        &["--plugin"],
    ),
    Program {
        dash: Dash::Word,
        ..bare(
            &["mvn", "mvnw"],
            &[
                "-f",
                "-file",
                "-s",
                "-settings",
                "-gs",
                "-global-settings",
                "-t",
                "-toolchains",
                "-D",
                "-define",
                "-DargLine",
                "-Dexec.args",
                "-Dexec.executable",
                "-Dexec.mainClass",
                "-Djvm",
                "-Dmaven.ext.class.path",
            ],
        )
    },
    Program {
        valued: values::CARGO,
        ..commands(
            &["cargo"],
            &["+", "--config", "-C", "-Z", "--manifest-path"],
            &[each(&["install"], &["--config", "--git", "--path", "--registry", "--index"])],
        )
    },
    commands(
        &["rustup"],
        &["+"],
        &[Program {
            names: &["run"],
            rest: Rest::Place,
            harmless: Shape::Word,
            instead: TEXT,
            ..NONE
        }],
    ),
    options(
        &["dpkg"],
        &[
            "-i",
            "--install",
            "--unpack",
            "-R",
            "--recursive",
            "--root",
            "--instdir",
            "--admindir",
            "--pre-invoke",
            "--post-invoke",
        ],
    ),
    Program {
        dash: Dash::Word,
        ..options(
            &["rpm"],
            &[
                "-E",
                "-eval",
                "-D",
                "-define",
                "-pipe",
                "-load",
                "-rcfile",
                "-macros",
                "-i",
                "-ivh",
                "-U",
                "-Uvh",
                "-F",
                "-Fvh",
                "-install",
                "-upgrade",
                "-freshen",
                "-reinstall",
            ],
        )
    },
    Program { harmless: Shape::Word, ..first(&["service", "rc-service", "invoke-rc.d"], &[]) },
    options(&["sdiff", "diff3"], &["--diff-program"]),
    Program { valued: values::BAT, ..options(&["bat", "batcat", "delta"], &["--pager"]) },
    Program { valued: values::FZF, ..options(&["fzf"], &["--preview", "--bind", "--with-shell"]) },
    options(&["bpftrace"], &["-e", "-c"]),
    Program {
        valued: values::LINTER,
        ..options(&["pylint"], &["--rcfile", "--load-plugins", "--init-hook"])
    },
    Program {
        valued: values::TESTER,
        ..options(&["prettier", "jest", "webpack"], &["-c", "--config", "--plugin", "--format"])
    },
];
