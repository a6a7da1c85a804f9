//! Which environment variables a program may see, and which ones would let a value take it over.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Where programs are looked for when the server has no `PATH` of its own.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The server's `PATH` without its relative and empty entries, or the usual system directories.
///
/// A relative entry means "the working directory": with the workspace as working directory, a file
/// somebody put there could pose as `git`.
pub fn server_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let absolute: Vec<&[u8]> =
        path.as_bytes().split(|byte| *byte == b':').filter(|dir| dir.starts_with(b"/")).collect();
    if absolute.is_empty() {
        return OsString::from(DEFAULT_PATH);
    }
    OsString::from_vec(absolute.join(&b':'))
}

/// The variables every program gets: `PATH`, `LANG` and, if the server has it, `TZ`.
pub(crate) fn base() -> Vec<(OsString, OsString)> {
    let mut base = vec![(OsString::from("PATH"), server_path())];
    // Without a locale many programs print `?` for every character beyond ASCII.
    let lang = std::env::var_os("LANG").unwrap_or_else(|| OsString::from("C.UTF-8"));
    base.push((OsString::from("LANG"), lang));
    if let Some(zone) = std::env::var_os("TZ") {
        base.push((OsString::from("TZ"), zone));
    }
    base
}

/// Whether `name` can be a variable at all: not empty, no `=`, no NUL.
pub(crate) fn is_valid_name(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !name.is_empty() && !name.contains(&b'=') && !name.contains(&0)
}

/// Beginnings of names that steer a loader, an interpreter or a tool's configuration.
const DANGEROUS_PREFIXES: &[&str] = &[
    "BASH_FUNC_",  // functions imported by bash
    "DYLD_",       // macOS loader
    "GIT_",        // GIT_SSH_COMMAND, GIT_EXTERNAL_DIFF, GIT_CONFIG_*, GIT_EXEC_PATH, …
    "LD_",         // ELF loader
    "LUA_",        // LUA_INIT, LUA_PATH, LUA_CPATH
    "NODE_",       // NODE_OPTIONS, NODE_PATH
    "NPM_CONFIG_", // script-shell and friends
    "PERL",        // PERL5OPT, PERL5LIB, PERL5DB, PERLLIB
    "PYTHON",      // PYTHONPATH, PYTHONHOME, PYTHONSTARTUP, PYTHONINSPECT, …
    "RUBY",        // RUBYOPT, RUBYLIB
    "TOOLCRIB_",   // ours: the sweep's cookie
    "npm_config_", // npm reads both spellings
];

/// Names that do the same, in byte order.
const DANGEROUS_NAMES: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "BROWSER",
    "CARGO_HOME",
    "CDPATH",
    "CLASSPATH",
    "EDITOR",
    "ENV",
    "EXINIT",
    "FPATH",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "GLOBIGNORE",
    "GOFLAGS",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "KUBECTL_EXTERNAL_DIFF",
    "LESS",
    "LESSCLOSE",
    "LESSKEY",
    "LESSOPEN",
    "LOCPATH",
    "MAKEFLAGS",
    "MANPAGER",
    "MAVEN_OPTS",
    "NLSPATH",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PAGER",
    "PATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PROMPT_COMMAND",
    "PS4",
    "RES_OPTIONS",
    "RSYNC_RSH",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "TAR_OPTIONS",
    "TERMCAP",
    "TERMINFO",
    "VIMINIT",
    "VISUAL",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];

/// Whether a value in this variable could take over the program that reads it, by loading code,
/// running commands, or pointing to other programs or configuration.
///
/// A model's value must never end up in such a variable; a literal written by the operator may.
/// The list: every name beginning with `LD_`, `DYLD_`, `BASH_FUNC_`, `GIT_`, `LUA_`, `NODE_`,
/// `NPM_CONFIG_` (or in lower case), `PERL`, `PYTHON`, `RUBY` or `TOOLCRIB_`, every name ending in
/// `_PRELOAD`, and the shells', pagers', editors' and runtimes' variables such as `PATH`, `IFS`,
/// `ENV`, `BASH_ENV`, `HOME`, `LESSOPEN`, `JAVA_TOOL_OPTIONS`. A list is never complete: pass
/// values through variables with a name of your own.
///
/// ```
/// use toolcrib_sandbox::is_dangerous_env;
///
/// assert!(is_dangerous_env("LD_PRELOAD") && is_dangerous_env("BASH_ENV"));
/// assert!(!is_dangerous_env("POD"));
/// ```
pub fn is_dangerous_env(name: &str) -> bool {
    DANGEROUS_NAMES.binary_search(&name).is_ok()
        || name.ends_with("_PRELOAD")
        || DANGEROUS_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_dangerous_names_is_sorted_for_its_binary_search() {
        assert!(DANGEROUS_NAMES.is_sorted());
        for name in DANGEROUS_NAMES {
            assert!(is_dangerous_env(name), "{name}");
        }
    }

    #[test]
    fn names_that_steer_loaders_and_interpreters_are_dangerous_and_own_names_are_not() {
        for name in ["LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "X_PRELOAD", "PYTHONSTARTUP"] {
            assert!(is_dangerous_env(name), "{name}");
        }
        for name in ["PERL5OPT", "NODE_OPTIONS", "GIT_SSH_COMMAND", "TOOLCRIB_CALL"] {
            assert!(is_dangerous_env(name), "{name}");
        }
        for name in ["POD", "KUBECONFIG", "ENVIRONMENT", "MY_PATH", "TZ", "LANG", ""] {
            assert!(!is_dangerous_env(name), "{name}");
        }
    }

    #[test]
    fn a_variable_name_is_not_empty_and_has_no_equals_sign() {
        assert!(is_valid_name(OsStr::new("A_1")));
        for name in ["", "A=B", "A\0B"] {
            assert!(!is_valid_name(OsStr::new(name)), "{name:?}");
        }
    }
}
