//! Which environment variables would let a value take over the program that reads them.

use crate::words::Words;

/// Beginnings of names that steer a loader, an interpreter or a tool's configuration.
const DANGEROUS_PREFIXES: &[&str] = &[
    "ANSIBLE_",      // ANSIBLE_CONFIG, ANSIBLE_LIBRARY, ANSIBLE_*_PLUGINS, …
    "BASH_FUNC_",    // functions imported by bash
    "CARGO_ALIAS_",  // commands of cargo
    "CARGO_BUILD_",  // CARGO_BUILD_RUSTC, CARGO_BUILD_RUSTC_WRAPPER
    "CARGO_TARGET_", // linkers and runners
    "CCACHE_",       // CCACHE_PREFIX, CCACHE_COMPILER
    "CGO_",          // flags of compilers
    "DYLD_",         // macOS loader
    "GIT_",          // GIT_SSH_COMMAND, GIT_EXTERNAL_DIFF, GIT_CONFIG_*, GIT_EXEC_PATH, …
    "HELM_",         // HELM_PLUGINS, HELM_*_CONFIG
    "LD_",           // ELF loader
    "LESSKEY",       // LESSKEY, LESSKEYIN, LESSKEY_CONTENT
    "LUA_",          // LUA_INIT, LUA_PATH, LUA_CPATH
    "NODE_",         // NODE_OPTIONS, NODE_PATH
    "NPM_CONFIG_",   // script-shell and friends
    "PERL",          // PERL5OPT, PERL5LIB, PERL5DB, PERLLIB
    "PYTHON",        // PYTHONPATH, PYTHONHOME, PYTHONSTARTUP, PYTHONINSPECT, …
    "PIP_",          // PIP_INDEX_URL, PIP_PYTHON
    "RUBY",          // RUBYOPT, RUBYLIB
    "TF_CLI_",       // TF_CLI_ARGS, TF_CLI_CONFIG_FILE
    "TOOLCRIB_",     // ours: the sweep's cookie
    "UV_",           // UV_PYTHON, UV_INDEX_URL
];

/// Names that do the same.
static DANGEROUS_NAMES: Words = Words::of(
    "ANT_ARGS ANT_OPTS AR AWKLIBPATH AWKPATH AWS_CONFIG_FILE AWS_DATA_PATH \
     AWS_SHARED_CREDENTIALS_FILE BASHOPTS BASH_ENV BASH_LOADABLES_PATH BC_ENV_ARGS BROWSER \
     BUNDLE_GEMFILE BZIP BZIP2 CARGO_ENCODED_RUSTFLAGS CARGO_HOME CC CCC_OVERRIDE_OPTIONS CDPATH \
     CLASSPATH CLOUDSDK_PYTHON CMAKE_CXX_COMPILER_LAUNCHER CMAKE_C_COMPILER_LAUNCHER \
     CMAKE_TOOLCHAIN_FILE COLLECT_GCC COMPILER_PATH COVERAGE_PROCESS_START CURL_HOME CVS_RSH CXX \
     DC_ENV_ARGS DENO_DIR DJANGO_SETTINGS_MODULE DOCKER_CONFIG DOTNET_STARTUP_HOOKS EDITOR \
     ELIXIR_ERL_OPTIONS EMACSLOADPATH ENV ERL_AFLAGS ERL_FLAGS ERL_LIBS ERL_ZFLAGS EXINIT FCEDIT \
     FLASK_APP FPATH FZF_DEFAULT_COMMAND FZF_DEFAULT_OPTS GAWK_EXTENSION GCCGO GCC_EXEC_PREFIX \
     GCONV_PATH GEM_HOME GLIBC_TUNABLES GLOBIGNORE GNUMAKEFLAGS GOAUTH GOCACHEPROG GOFLAGS \
     GOPACKAGESDRIVER GOROOT GOTOOLCHAIN GOTOOLDIR GRADLE_OPTS GREP_OPTIONS GROFF_BIN_PATH \
     GS_OPTIONS GZIP HGEDITOR HGRCPATH HOME HOSTALIASES IFS INPUTRC JAVA_OPTS JAVA_TOOL_OPTIONS \
     JDK_JAVA_OPTIONS KUBECONFIG KUBECTL_EXTERNAL_DIFF LD LESS LESSCLOSE LESSEDIT LESSKEY \
     LESSOPEN LIBMYSQL_PLUGIN_DIR LOCPATH M4PATH MAGICK_CODER_MODULE_PATH MAGICK_CONFIGURE_PATH \
     MAILCAPS MAKEFILES MAKEFLAGS MANOPT MANPAGER MANROFFOPT MAVEN_ARGS MAVEN_OPTS MFLAGS \
     MYSQL_HOME NLSPATH OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES PAGER PATH PERF_EXEC_PATH \
     PGSERVICEFILE PGSSLKEY PGSYSCONFDIR PHPRC PHP_INI_SCAN_DIR PIP_CONFIG_FILE PKG_CONFIG \
     PROMPT_COMMAND PS0 PS1 PS2 PS4 PSQLRC PSQL_HISTORY PYTEST_ADDOPTS PYTEST_PLUGINS \
     RES_OPTIONS RIPGREP_CONFIG_PATH RSH RSYNC_CONNECT_PROG RSYNC_PROXY RSYNC_RSH RUSTC RUSTC_WRAPPER \
     RUSTFLAGS RUSTFMT RUSTUP_HOME R_ENVIRON R_ENVIRON_USER R_PROFILE R_PROFILE_USER SBT_OPTS \
     SCONSFLAGS SHELL SHELLOPTS SSH_ASKPASS SSH_SK_HELPER SUDO_ASKPASS SVN_SSH SYSTEMD_SSH \
     SYSTEM_WGETRC TAPE TAR_OPTIONS TCLLIBPATH TERMCAP TERMINFO UNZIP VALGRIND_LIB VIMINIT \
     VIMRUNTIME VISUAL WGETRC XDG_CONFIG_DIRS XDG_CONFIG_HOME XDG_DATA_DIRS XZ_DEFAULTS XZ_OPT \
     YARN_IGNORE_PATH ZDOTDIR ZIP ZIPINFO ZIPOPT ZSTD_OPT _JAVA_OPTIONS",
);

/// Ends of names that do the same for many programs.
const DANGEROUS_ENDS: &[&str] =
    &["_EDITOR", "_PAGER", "_PASSCOMMAND", "_PASSWORD_COMMAND", "_PRELOAD", "_PLUGINS", "_RSH"];

/// Whether a value in this variable could take over the program that reads it, by loading code,
/// running commands, or pointing to other programs or configuration.
///
/// A model's value must never end up in such a variable; a literal written by the operator may.
/// The list: every name beginning with `ANSIBLE_`, `BASH_FUNC_`, `CARGO_BUILD_`, `CARGO_TARGET_`,
/// `CCACHE_`, `CGO_`, `DYLD_`, `GIT_`, `HELM_`, `LD_`, `LESSKEY`, `LUA_`, `NODE_`, `NPM_CONFIG_`, `PERL`,
/// `PIP_`, `PYTHON`, `RUBY`, `TF_CLI_`, `TOOLCRIB_` or `UV_`, every name ending in `_EDITOR`, `_PAGER`,
/// `_PASSCOMMAND`, `_PASSWORD_COMMAND`, `_PLUGINS`, `_PRELOAD` or `_RSH`, and the shells', pagers', editors' and runtimes' variables such as `PATH`, `IFS`,
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
    DANGEROUS_NAMES.contains(&name)
        || DANGEROUS_ENDS.iter().any(|end| name.ends_with(end))
        || DANGEROUS_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_steer_loaders_and_interpreters_are_dangerous_and_own_names_are_not() {
        for name in ["LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "X_PRELOAD", "PYTHONSTARTUP"] {
            assert!(is_dangerous_env(name), "{name}");
        }
        for name in ["COMPILER_PATH", "GCC_EXEC_PREFIX", "CARGO_BUILD_RUSTC", "PSQL_PAGER"] {
            assert!(is_dangerous_env(name), "{name}");
        }
        for name in ["PSQL_EDITOR", "SYSTEMD_PAGER", "SYSTEMD_EDITOR", "ANSIBLE_CONFIG"] {
            assert!(is_dangerous_env(name), "{name}");
        }
        for name in ["TF_CLI_ARGS", "HELM_PLUGINS", "LESSKEY_CONTENT", "BAT_PAGER"] {
            assert!(is_dangerous_env(name), "{name}");
        }
        for name in ["PERL5OPT", "NODE_OPTIONS", "GIT_SSH_COMMAND", "TOOLCRIB_CALL"] {
            assert!(is_dangerous_env(name), "{name}");
        }
        for name in ["BORG_PASSCOMMAND", "VALGRIND_LIB", "SSH_SK_HELPER", "KUBECONFIG", "PS1"] {
            assert!(is_dangerous_env(name), "{name}");
        }
        for name in ["POD", "ENVIRONMENT", "MY_PATH", "TZ", "LANG", ""] {
            assert!(!is_dangerous_env(name), "{name}");
        }
    }
}
