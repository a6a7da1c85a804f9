//! Starts a script: directly, through the interpreter in its first line, or, if it is pinned, from a copy of the
//! verified bytes.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use toolcrib_manifest::declaration::ScriptFile;
use toolcrib_sandbox::{SealedFile, find_program};

/// How many bytes of a script's first line are read: as many as the kernel reads.
const LINE_MAX: u64 = 256;

/// The variable with a script's own path, because a script may be started from a copy with another path.
pub(crate) const OWN_PATH: &str = "TOOLCRIB_SCRIPT";

/// A program and the arguments before the script's own.
#[derive(Debug)]
pub(crate) struct ScriptStart {
    pub(crate) program: PathBuf,
    pub(crate) before: Vec<String>,
    /// The sealed copy that is started instead of the script file.
    pub(crate) sealed: Option<SealedFile>,
}

impl ScriptStart {
    /// Starts a program as it is found.
    pub(crate) fn of(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), before: Vec::new(), sealed: None }
    }
}

/// How the script is started; fails with a clause. A file without execute permission, common on mounts, is passed to
/// the interpreter in its `#!` line. A `pinned` script must be unchanged since its manifest was loaded; a copy of
/// exactly these bytes is started.
pub(crate) fn start(
    script: &ScriptFile,
    pinned: bool,
    advice: impl Fn() -> String,
) -> Result<ScriptStart, String> {
    let shown = script.path.display();
    // An absolute path, because the script starts in another directory.
    let file = std::path::absolute(&script.path)
        .map_err(|error| format!("needs the script `{shown}`: {error}"))?;
    let metadata = file
        .metadata()
        .map_err(|error| format!("needs the script `{shown}`, which cannot be read: {error}"))?;
    if !metadata.is_file() {
        return Err(format!("needs the script `{shown}`, which is not a regular file"));
    }
    if metadata.len() > ScriptFile::MAX_BYTES {
        return Err(format!("needs the script `{shown}`, which is longer than 4 MiB"));
    }
    if pinned {
        let bytes = unchanged(script, advice)?;
        if !bytes.starts_with(b"#!") && !bytes.starts_with(b"\x7fELF") {
            return Err(no_interpreter(script));
        }
        return Ok(ScriptStart { sealed: Some(sealed(script, &bytes)?), ..ScriptStart::of(file) });
    }
    if find_program(&file).is_ok() {
        return Ok(ScriptStart::of(file));
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
        return Err(no_interpreter(script));
    }
    let argument = Some(argument.trim()).filter(|argument| !argument.is_empty()).map(str::to_owned);
    let script = file.to_string_lossy().into_owned();
    let before = argument.into_iter().chain([script]).collect();
    Ok(ScriptStart { before, ..ScriptStart::of(program) })
}

fn no_interpreter(script: &ScriptFile) -> String {
    format!(
        "needs the script `{}`, which is not executable and has no `#!` line: run `chmod +x`, or \
         begin it with a line such as `#!/bin/sh`",
        script.path.display()
    )
}

/// The bytes of a file if it is unchanged since its manifest was loaded; fails with a clause. `advice` says what to do
/// about a changed file.
pub(crate) fn unchanged(
    script: &ScriptFile,
    advice: impl Fn() -> String,
) -> Result<Vec<u8>, String> {
    let shown = script.path.display();
    let bytes = script
        .unchanged_bytes()
        .map_err(|error| format!("needs the script `{shown}`, which cannot be read: {error}"))?;
    bytes.ok_or_else(|| {
        format!(
            "needs the script `{shown}`, which has changed since the tools were loaded: {}",
            advice()
        )
    })
}

/// Copies these bytes to a file that nobody can change; fails with a clause.
pub(crate) fn sealed(script: &ScriptFile, bytes: &[u8]) -> Result<SealedFile, String> {
    SealedFile::new(bytes).map_err(|error| {
        let shown = script.path.display();
        format!("needs a copy of the script `{shown}`, which cannot be made: {error}")
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_script_runs_directly_or_through_its_interpreter_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s");
        let path = file.to_string_lossy().into_owned();
        let text = |text: &str, mode: u32| {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let start = start(&ScriptFile::read(&file), false, String::new)?;
            assert!(start.sealed.is_none());
            Ok::<_, String>((start.program, start.before))
        };
        let started = |program: &str, before: &[&str]| {
            let before = before.iter().map(|&one| one.to_owned()).collect();
            Ok((PathBuf::from(program), before))
        };
        assert_eq!(text("#!/bin/sh\n", 0o755), started(&path, &[]));
        assert_eq!(text("#!/bin/sh\n", 0o644), started("/bin/sh", &[&path]));
        assert_eq!(
            text("#! /usr/bin/env -S x y\nz", 0o644),
            started("/usr/bin/env", &["-S x y", &path])
        );
        assert!(text("echo\n", 0o644).unwrap_err().contains("no `#!` line: run `chmod +x`"));
        let reason = |path: &Path| start(&ScriptFile::read(path), false, String::new).unwrap_err();
        assert!(reason(folder.path()).ends_with("which is not a regular file"));
        assert!(reason(Path::new("/no/such")).contains("cannot be read"));
        File::create(&file).unwrap().set_len(ScriptFile::MAX_BYTES + 1).unwrap();
        assert!(reason(&file).ends_with("which is longer than 4 MiB"));
    }

    #[test]
    fn a_pinned_script_runs_only_if_it_is_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s");
        let unread = ScriptFile::read(&file);
        fs::write(&file, "#!/bin/sh\necho 1\n").unwrap();
        let loaded = ScriptFile::read(&file);
        let started = start(&loaded, true, String::new).unwrap();
        assert_eq!((started.program.as_path(), started.sealed.is_some()), (file.as_path(), true));
        assert!(start(&unread, true, String::new).unwrap_err().contains("has changed since"));

        fs::write(&file, "#!/bin/sh\necho 2\n").unwrap();
        let renewal = || "run `toolcrib trust`".to_owned();
        let refused = start(&loaded, true, renewal).unwrap_err();
        assert!(refused.ends_with("run `toolcrib trust`"), "{refused}");
        assert!(start(&loaded, false, String::new).is_ok());

        fs::write(&file, "#!/bin/sh\necho 1\n").unwrap();
        assert!(start(&loaded, true, String::new).is_ok(), "it is what it was");

        fs::write(&file, "echo 1\n").unwrap();
        let refused = start(&ScriptFile::read(&file), true, String::new).unwrap_err();
        assert!(refused.contains("no `#!` line"), "{refused}");
    }
}
