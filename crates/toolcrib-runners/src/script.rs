//! How a script is started: as it is, or by the interpreter its first line names.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use toolcrib_sandbox::find_program;

/// How much of a script's first line is read, in bytes: what the kernel reads of one.
const LINE_MAX: u64 = 256;

/// A program, and the arguments that come before the script's own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) program: PathBuf,
    pub(crate) before: Vec<String>,
}

/// How the script is started; fails with a clause. A file that may not be executed, as a mounted
/// one often may not, is handed to the interpreter its `#!` line names.
pub(crate) fn start(script: &Path) -> Result<Start, String> {
    let shown = script.display();
    // Absolute: it starts in another directory.
    let file = std::path::absolute(script)
        .map_err(|error| format!("needs the script `{shown}`: {error}"))?;
    let metadata = file
        .metadata()
        .map_err(|error| format!("needs the script `{shown}`, which cannot be read: {error}"))?;
    if !metadata.is_file() {
        return Err(format!("needs the script `{shown}`, which is no regular file"));
    }
    if find_program(&file).is_ok() {
        return Ok(Start { program: file, before: Vec::new() });
    }
    let mut head = Vec::new();
    File::open(&file)
        .and_then(|file| file.take(LINE_MAX).read_to_end(&mut head))
        .map_err(|error| format!("needs the script `{shown}`, which cannot be read: {error}"))?;
    let line = head.strip_prefix(b"#!").and_then(|rest| rest.split(|byte| *byte == b'\n').next());
    let line =
        line.and_then(|line| std::str::from_utf8(line).ok()).map(str::trim).unwrap_or_default();
    let (program, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    if program.is_empty() {
        return Err(format!(
            "needs the script `{shown}`, which is not executable and has no `#!` line: run \
             `chmod +x`, or begin it with a line such as `#!/bin/sh`"
        ));
    }
    let argument = Some(argument.trim()).filter(|argument| !argument.is_empty()).map(str::to_owned);
    let script = file.to_string_lossy().into_owned();
    Ok(Start { program: program.into(), before: argument.into_iter().chain([script]).collect() })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_script_runs_as_it_is_or_by_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s");
        let path = file.to_string_lossy().into_owned();
        let text = |text: &str, mode: u32| {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            start(&file)
        };
        let started = |program: &str, before: &[&str]| {
            let before = before.iter().map(|&one| one.to_owned()).collect();
            Ok(Start { program: program.into(), before })
        };
        assert_eq!(text("#!/bin/sh\n", 0o755), started(&path, &[]));
        assert_eq!(text("#!/bin/sh\n", 0o644), started("/bin/sh", &[&path]));
        assert_eq!(
            text("#! /usr/bin/env -S x y\nz", 0o644),
            started("/usr/bin/env", &["-S x y", &path])
        );
        assert!(text("echo\n", 0o644).unwrap_err().contains("no `#!` line: run `chmod +x`"));
        assert!(start(folder.path()).unwrap_err().ends_with("which is no regular file"));
        assert!(start(Path::new("/no/such")).unwrap_err().contains("cannot be read"));
    }
}
