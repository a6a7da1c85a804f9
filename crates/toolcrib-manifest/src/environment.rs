//! Which environment variables would let a value take over the program that reads them.

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
];

/// Names that do the same, in byte order.
const DANGEROUS_NAMES: &[&str] = &[
    "ANT_OPTS",
    "AR",
    "AWKLIBPATH",
    "AWKPATH",
    "BASHOPTS",
    "BASH_ENV",
    "BC_ENV_ARGS",
    "BROWSER",
    "BZIP",
    "BZIP2",
    "CARGO_HOME",
    "CC",
    "CDPATH",
    "CLASSPATH",
    "CURL_HOME",
    "CVS_RSH",
    "CXX",
    "DC_ENV_ARGS",
    "DOTNET_STARTUP_HOOKS",
    "EDITOR",
    "ELIXIR_ERL_OPTIONS",
    "ENV",
    "ERL_AFLAGS",
    "ERL_FLAGS",
    "ERL_LIBS",
    "ERL_ZFLAGS",
    "EXINIT",
    "FPATH",
    "FZF_DEFAULT_COMMAND",
    "FZF_DEFAULT_OPTS",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "GLOBIGNORE",
    "GNUMAKEFLAGS",
    "GOFLAGS",
    "GOROOT",
    "GOTOOLDIR",
    "GRADLE_OPTS",
    "GREP_OPTIONS",
    "GZIP",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "INPUTRC",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "KUBECTL_EXTERNAL_DIFF",
    "LD",
    "LESS",
    "LESSCLOSE",
    "LESSKEY",
    "LESSOPEN",
    "LOCPATH",
    "M4PATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANOPT",
    "MANPAGER",
    "MAVEN_OPTS",
    "MFLAGS",
    "NLSPATH",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PAGER",
    "PATH",
    "PGSERVICEFILE",
    "PGSYSCONFDIR",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PIP_CONFIG_FILE",
    "PROMPT_COMMAND",
    "PS4",
    "PSQLRC",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "RES_OPTIONS",
    "RIPGREP_CONFIG_PATH",
    "RSH",
    "RSYNC_CONNECT_PROG",
    "RSYNC_PROXY",
    "RSYNC_RSH",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "SBT_OPTS",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "TAPE",
    "TAR_OPTIONS",
    "TERMCAP",
    "TERMINFO",
    "UNZIP",
    "VIMINIT",
    "VISUAL",
    "WGETRC",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XZ_DEFAULTS",
    "XZ_OPT",
    "ZDOTDIR",
    "ZIP",
    "ZIPINFO",
    "ZIPOPT",
    "ZSTD_OPT",
    "_JAVA_OPTIONS",
];

/// Whether a value in this variable could take over the program that reads it, by loading code,
/// running commands, or pointing to other programs or configuration.
///
/// A model's value must never end up in such a variable; a literal written by the operator may.
/// The list: every name beginning with `LD_`, `DYLD_`, `BASH_FUNC_`, `GIT_`, `LUA_`, `NODE_`,
/// `NPM_CONFIG_`, `PERL`, `PYTHON`, `RUBY` or `TOOLCRIB_`, every name ending in
/// `_PRELOAD`, and the shells', pagers', editors' and runtimes' variables such as `PATH`, `IFS`,
/// `ENV`, `BASH_ENV`, `HOME`, `LESSOPEN`, `JAVA_TOOL_OPTIONS`. A list is never complete: pass
/// values through variables with a name of your own. Upper and lower case count alike.
///
/// ```
/// use toolcrib_manifest::is_dangerous_env;
///
/// assert!(is_dangerous_env("LD_PRELOAD") && is_dangerous_env("BASH_ENV"));
/// assert!(!is_dangerous_env("POD"));
/// ```
pub fn is_dangerous_env(name: &str) -> bool {
    // Some programs, npm among them, read both spellings.
    let name = name.to_ascii_uppercase();
    DANGEROUS_NAMES.binary_search(&name.as_str()).is_ok()
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
}
