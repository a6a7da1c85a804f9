//! Pins files that argument vectors name: recorded when a manifest is loaded, and compared before a start.
//!
//! [`DecidingFiles`] decides which files these are, so that the digest of a declaration, the control plane
//! and a start agree.

use std::collections::BTreeMap;
use std::io;

use toolcrib_manifest::Loaded;
use toolcrib_manifest::declaration::{
    DeclaredBody, NamedFile, UpstreamDeclaration, UpstreamTransport,
};
use toolcrib_sandbox::SealedFile;

use crate::trust::TrustRenewal;
use crate::trust::deciding_files::ReferencedFile;
use crate::{DecidingFiles, RunnerHost};

/// Records the files that the argument vectors of a manifest name, with their digests. Without this step the digests of
/// declarations do not cover these files, and they are not compared when a program starts. Call it before
/// [`entries`](crate::entries).
pub fn pin_files(loaded: &mut Loaded, host: &RunnerHost) {
    for declaration in &mut loaded.declarations {
        if declaration.command().is_none() {
            continue;
        }
        let named = DecidingFiles::of_tool(declaration, host).named;
        if let DeclaredBody::Command(command) = &mut declaration.body {
            command.files = read(named);
        }
    }
    for UpstreamDeclaration { transport, origin, .. } in &mut loaded.upstreams {
        if let UpstreamTransport::Stdio(stdio) = transport {
            stdio.files = read(DecidingFiles::of_upstream(stdio, &origin.file, host).named);
        }
    }
}

fn read(named: Vec<ReferencedFile>) -> BTreeMap<String, NamedFile> {
    named.into_iter().map(|named| (named.written, NamedFile::read(named.path))).collect()
}

/// Fails with a clause if the files that an MCP server's argument vector names have changed since its manifest was
/// loaded.
pub fn check_files(declaration: &UpstreamDeclaration, host: &RunnerHost) -> Result<(), String> {
    let UpstreamTransport::Stdio(stdio) = &declaration.transport else { return Ok(()) };
    let now = DecidingFiles::of_upstream(stdio, &declaration.origin.file, host);
    if let Some(problem) = now.problem(host) {
        return Err(problem);
    }
    let advice = || TrustRenewal::of_upstream(declaration, host).advice(host);
    compare(&stdio.files, now.named, advice).map(drop)
}

/// A sealed copy of a script that replaces an argument.
#[derive(Debug)]
pub(crate) struct ScriptCopy {
    /// The position of the argument.
    pub(crate) at: usize,
    /// The file that the argument names.
    pub(crate) named: ReferencedFile,
    pub(crate) sealed: SealedFile,
}

/// Compares the files that a vector names now with the recorded ones. Fails with a clause; `advice` says what to do
/// about a changed file.
///
/// A shell's script is read once, and a sealed copy of the compared bytes is returned, because a shell needs only the
/// text. All other files are opened in place, right after the comparison: a program may look for its own folder, and
/// Python and Node load modules from the folder of their script. The control plane keeps this server's programs from
/// changing them in between.
pub(crate) fn compare(
    recorded: &BTreeMap<String, NamedFile>,
    now: Vec<ReferencedFile>,
    advice: impl Fn() -> String,
) -> Result<Option<ScriptCopy>, String> {
    let is_there = |written: &String| now.iter().any(|named| named.written == *written);
    if let Some((_, file)) = recorded.iter().find(|(written, _)| !is_there(written)) {
        return Err(format!("needs the file `{}`, which no longer exists", file.path.display()));
    }
    let mut copy = None;
    for named in now {
        let shown = named.path.display();
        let Some(file) = recorded.get(&named.written).filter(|file| file.path == named.path) else {
            return Err(format!(
                "would use the file `{shown}`, which did not exist when the tools were loaded: {}",
                advice()
            ));
        };
        let is_unchanged = match named.script_at {
            Some(at) => match file.unchanged_bytes().map_err(|error| unreadable(file, &error))? {
                Some(bytes) => {
                    let sealed = SealedFile::new(&bytes).map_err(|error| {
                        format!("needs a copy of `{shown}`, which cannot be made: {error}")
                    })?;
                    copy = Some(ScriptCopy { at, named, sealed });
                    true
                }
                None => false,
            },
            None => file.is_unchanged().map_err(|error| unreadable(file, &error))?,
        };
        if !is_unchanged {
            return Err(format!(
                "needs the file `{}`, which has changed since the tools were loaded: {}",
                file.path.display(),
                advice()
            ));
        }
    }
    Ok(copy)
}

/// Why a file that was recorded without a digest cannot be pinned; `None` if it can be pinned now.
pub(crate) fn defect(file: &NamedFile) -> Option<String> {
    if file.digest.is_some() {
        return None;
    }
    file.is_unchanged().err().map(|error| unreadable(file, &error))
}

fn unreadable(file: &NamedFile, error: &io::Error) -> String {
    format!("needs the file `{}`, which cannot be pinned: {error}", file.path.display())
}
