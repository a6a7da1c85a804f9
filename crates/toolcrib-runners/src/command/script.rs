//! How a script is started: as it is, by the interpreter its first line names, or, where it is pinned,
//! from a copy of the bytes that were held against their digest.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use toolcrib_manifest::declaration::ScriptFile;
use toolcrib_sandbox::{SealedFile, find_program};

/// How much of a script's first line is read, in bytes: what the kernel reads of one.
const LINE_MAX: u64 = 256;

/// The variable in which a script finds its own path: what it is started by may have another.
pub(crate) const OWN_PATH: &str = "TOOLCRIB_SCRIPT";

/// A program, and the arguments that come before the script's own.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) program: PathBuf,
    pub(crate) before: Vec<String>,
    /// What is started in the place of the program, which is the script.
    pub(crate) sealed: Option<SealedFile>,
}

impl Start {
    /// A program as it is found.
    pub(crate) fn of(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), before: Vec::new(), sealed: None }
    }
}

/// How the script is started; fails with a clause. A file that may not be executed, as a mounted
/// one often may not, is handed to the interpreter its `#!` line names. One that is `pinned` has to
/// be what it was when its manifest was loaded, and a copy of just these bytes is started.
pub(crate) fn start(
    script: &ScriptFile,
    pinned: bool,
    advice: impl Fn() -> String,
) -> Result<Start, String> {
    let shown = script.path.display();
    // Absolute: it starts in another directory.
    let file = std::path::absolute(&script.path)
        .map_err(|error| format!("needs the script `{shown}`: {error}"))?;
    let metadata = file
        .metadata()
        .map_err(|error| format!("needs the script `{shown}`, which cannot be read: {error}"))?;
    if !metadata.is_file() {
        return Err(format!("needs the script `{shown}`, which is no regular file"));
    }
    if metadata.len() > ScriptFile::MAX_BYTES {
        return Err(format!("needs the script `{shown}`, which is longer than 4 MiB"));
    }
    if pinned {
        let bytes = unchanged(script, advice)?;
        if !bytes.starts_with(b"#!") && !bytes.starts_with(b"\x7fELF") {
            return Err(no_interpreter(script));
        }
        return Ok(Start { sealed: Some(sealed(script, &bytes)?), ..Start::of(file) });
    }
    if find_program(&file).is_ok() {
        return Ok(Start::of(file));
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
    Ok(Start { before, ..Start::of(program) })
}

fn no_interpreter(script: &ScriptFile) -> String {
    format!(
        "needs the script `{}`, which is not executable and has no `#!` line: run `chmod +x`, or \
         begin it with a line such as `#!/bin/sh`",
        script.path.display()
    )
}

/// The bytes of a file that is what it was when its manifest was loaded; fails with a clause. `advice`
/// is what it says to do about a file that has changed.
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

/// These bytes as a file that nobody can change; fails with a clause.
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
    fn a_script_runs_as_it_is_or_by_its_first_line() {
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
        assert!(reason(folder.path()).ends_with("which is no regular file"));
        assert!(reason(Path::new("/no/such")).contains("cannot be read"));
        File::create(&file).unwrap().set_len(ScriptFile::MAX_BYTES + 1).unwrap();
        assert!(reason(&file).ends_with("which is longer than 4 MiB"));
    }

    #[test]
    fn a_pinned_script_runs_only_as_it_was_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s");
        let unread = ScriptFile::read(&file);
        fs::write(&file, "#!/bin/sh\necho 1\n").unwrap();
        let loaded = ScriptFile::read(&file);
        let started = start(&loaded, true, String::new).unwrap();
        assert_eq!((started.program.as_path(), started.sealed.is_some()), (file.as_path(), true));
        assert!(start(&unread, true, String::new).unwrap_err().contains("has changed since"));

        fs::write(&file, "#!/bin/sh\necho 2\n").unwrap();
        let renewal = || "`toolcrib trust` takes it up".to_owned();
        let refused = start(&loaded, true, renewal).unwrap_err();
        assert!(refused.ends_with("`toolcrib trust` takes it up"), "{refused}");
        assert!(start(&loaded, false, String::new).is_ok());

        fs::write(&file, "#!/bin/sh\necho 1\n").unwrap();
        assert!(start(&loaded, true, String::new).is_ok(), "it is what it was");

        fs::write(&file, "echo 1\n").unwrap();
        let refused = start(&ScriptFile::read(&file), true, String::new).unwrap_err();
        assert!(refused.contains("no `#!` line"), "{refused}");
    }
}
