//! Files that argument vectors name: recorded when a manifest is loaded, and compared before a start.
//!
//! [`Deciding`] decides which files these are, so that the digest of a declaration, the control plane
//! and a start agree.

use std::collections::BTreeMap;
use std::io;

use toolcrib_manifest::Loaded;
use toolcrib_manifest::declaration::{
    DeclaredBody, NamedFile, UpstreamDeclaration, UpstreamTransport,
};
use toolcrib_sandbox::SealedFile;

use crate::trust::Renewal;
use crate::trust::deciding_files;
use crate::trust::deciding_files::Named;
use crate::{Deciding, RunnerHost};

/// Records the files that the argument vectors of a manifest name, with their digests. Without this
/// the digests of its declarations do not cover these files, and nothing of them is compared when a
/// program starts. [`entries`](crate::entries) expects it to be done.
pub fn pin_files(loaded: &mut Loaded, host: &RunnerHost) {
    for declaration in &mut loaded.declarations {
        if declaration.command().is_none() {
            continue;
        }
        let named = Deciding::of_tool(declaration, host).named;
        if let DeclaredBody::Command(command) = &mut declaration.body {
            command.files = read(named);
        }
    }
    for UpstreamDeclaration { transport, origin, .. } in &mut loaded.upstreams {
        if let UpstreamTransport::Stdio(stdio) = transport {
            stdio.files = read(Deciding::of_upstream(stdio, &origin.file, host).named);
        }
    }
}

fn read(named: Vec<Named>) -> BTreeMap<String, NamedFile> {
    named.into_iter().map(|named| (named.written, NamedFile::read(named.path))).collect()
}

/// Fails with a clause if the files that an MCP server's argument vector names are not those that were
/// recorded when its manifest was loaded.
pub fn check_files(declaration: &UpstreamDeclaration, host: &RunnerHost) -> Result<(), String> {
    let UpstreamTransport::Stdio(stdio) = &declaration.transport else { return Ok(()) };
    let now = Deciding::of_upstream(stdio, &declaration.origin.file, host);
    if let Some(problem) = deciding_files::linked(&now.linked) {
        return Err(problem);
    }
    let advice = || Renewal::of_upstream(declaration, host).advice(host);
    compare(&stdio.files, now.named, advice).map(drop)
}

/// The copy of a script that takes the place of an argument.
#[derive(Debug)]
pub(crate) struct Copy {
    /// The position of the argument.
    pub(crate) at: usize,
    /// What the argument is without it.
    pub(crate) named: Named,
    pub(crate) sealed: SealedFile,
}

/// Compares the files that a vector names now with those that were recorded. Fails with a clause;
/// `advice` is what it says to do about a file that has changed.
///
/// A shell's script is read once, and a sealed copy of what was compared is returned: a shell needs
/// nothing but the text. All other files are started or opened where they are, right after they were
/// compared. A program may look for its own folder, and Python and Node load modules from the folder of
/// their script. The control plane keeps the programs of this server from changing them meanwhile.
pub(crate) fn compare(
    recorded: &BTreeMap<String, NamedFile>,
    now: Vec<Named>,
    advice: impl Fn() -> String,
) -> Result<Option<Copy>, String> {
    let is_there = |written: &String| now.iter().any(|named| named.written == *written);
    if let Some((_, file)) = recorded.iter().find(|(written, _)| !is_there(written)) {
        return Err(format!(
            "needs the file `{}`, which is not there any more",
            file.path.display()
        ));
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
                    copy = Some(Copy { at, named, sealed });
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

/// Why a file that was recorded without a digest cannot be pinned; `None` if it can be now.
pub(crate) fn defect(file: &NamedFile) -> Option<String> {
    if file.digest.is_some() {
        return None;
    }
    file.is_unchanged().err().map(|error| unreadable(file, &error))
}

fn unreadable(file: &NamedFile, error: &io::Error) -> String {
    format!("needs the file `{}`, which cannot be pinned: {error}", file.path.display())
}
