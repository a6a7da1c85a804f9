//! How a script is started: as it is, or by the interpreter its first line names.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use toolcrib_manifest::declaration::ScriptFile;
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
/// one often may not, is handed to the interpreter its `#!` line names. One that is `pinned` has to
/// be what it was when its manifest was loaded.
pub(crate) fn start(script: &ScriptFile, pinned: bool) -> Result<Start, String> {
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
        unchanged(script)?;
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

/// Whether a file is what it was when its manifest was loaded; fails with a clause.
pub(crate) fn unchanged(script: &ScriptFile) -> Result<(), String> {
    let shown = script.path.display();
    let now = script
        .digest_now()
        .map_err(|error| format!("needs the script `{shown}`, which cannot be read: {error}"))?;
    if script.digest.as_ref() == Some(&now) {
        return Ok(());
    }
    Err(format!(
        "needs the script `{shown}`, which has changed since the tools were loaded: `toolcrib reload` \
         takes it up, and holds it against the lock"
    ))
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
            start(&ScriptFile::read(&file), true)
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
        let reason = |path: &Path| start(&ScriptFile::read(path), false).unwrap_err();
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
        assert!(start(&loaded, true).is_ok());
        assert!(start(&unread, true).unwrap_err().contains("has changed since"));

        fs::write(&file, "#!/bin/sh\necho 2\n").unwrap();
        let refused = start(&loaded, true).unwrap_err();
        assert!(refused.contains("`toolcrib reload` takes it up"), "{refused}");
        assert!(start(&loaded, false).is_ok());

        fs::write(&file, "#!/bin/sh\necho 1\n").unwrap();
        assert!(start(&loaded, true).is_ok(), "it is what it was");
    }
}
