//! Finds the files that decide what a declaration runs: programs, scripts, and files that programs load from beside
//! them.
//!
//! Anybody who can change one of them can run their own code under the declaration's profile, so no tool of the server
//! may be able to write to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolcrib_manifest::declaration::{
    ArgvEntry, Declaration, DeclaredBody, NamedFile, ResourceContent, ResourceDeclaration,
    StdioUpstream,
};
use toolcrib_manifest::shell_text;
use toolcrib_manifest::template::Template;
use toolcrib_sandbox::ControlPlane;
use toolcrib_tool::ToolError;

use crate::RunnerHost;

mod absent;
mod declaration_folders;
mod entry;
mod options;
mod programs;
mod roles;
mod system;
mod unasked;
mod words;

use self::absent::{AbsentEntry, folder_of_files};
use self::declaration_folders::DeclarationFolders;
pub(crate) use self::declaration_folders::is_behind_a_link;
use self::entry::{VectorEntry, is_inline, outputs};
use self::programs::{
    CODE_VARIABLES, INLINE, first_line, is_package, runs_its_arguments, runs_no_file,
};
use self::roles::WordRole;
pub use self::unasked::RivalFiles;
use self::words::{ArgumentText, argument_text, words_of};

/// The files that decide what a declaration runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecidingFiles {
    /// Files, and folders with all their content.
    pub places: Vec<PathBuf>,
    /// Required programs and scripts that do not exist.
    pub missing: Vec<PathBuf>,
    /// Paths that do not exist, but that a program may run if they did. Nobody but the operator may create them. They
    /// are not among the places, because the declaration also works without them.
    pub absent: Vec<PathBuf>,
    /// The files that the argument vector names, in order. Their contents are pinned. They are among the places.
    pub named: Vec<ReferencedFile>,
    /// Named files that are reached through a symbolic link in the workspace, which programs could replace. Clear
    /// scripts are not included. These files are not among the places: while there is one, this declaration does not
    /// run, but others do.
    pub linked: Vec<PathBuf>,
    /// Files that win over others which no tool can change. While there are any, this declaration runs only if the
    /// contents of its files are pinned.
    pub rivals: Vec<RivalFiles>,
    /// Whether a script in Python is among them whose folder no tool can change, so that it may load modules from
    /// there.
    has_python_script: bool,
}

/// A file that an argument vector names: by a relative path, or by an absolute path outside the system folders, which
/// only the administrator changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReferencedFile {
    /// The path as the manifest writes it.
    pub written: String,
    /// Where the file is.
    pub path: PathBuf,
    /// The position among the program's arguments, not counting the program, if the file is the script of a shell and
    /// has this position in every call.
    pub script_at: Option<usize>,
}

/// Fails if a program of this server could have created or changed one of these files.
pub(crate) fn check<P: AsRef<Path>>(
    plane: &ControlPlane,
    files: impl IntoIterator<Item = P>,
) -> Result<(), ToolError> {
    let Some(file) = plane.exposed(files) else { return Ok(()) };
    let hint = format!("Tell the user: {}.", file.remedy());
    Err(ToolError::unavailable(format!("the tool runs {file}")).with_hint(hint))
}

/// The files among these places with their digests, one line each. If the text differs, the code differs. The contents
/// of folders are not included.
pub(crate) fn contents(places: &[PathBuf]) -> String {
    let mut contents = String::new();
    for place in places.iter().filter(|place| !place.is_dir()) {
        let digest = NamedFile::read(place).digest;
        let digest = digest.as_deref().unwrap_or("unreadable");
        contents.extend([digest, " ", &*place.to_string_lossy(), "\n"]);
    }
    contents
}

/// Why a declaration that names these files does not run, as a clause with what to do.
pub(crate) fn linked(files: &[PathBuf]) -> Option<String> {
    let file = files.first()?;
    Some(format!(
        "names the file `{}`, which is a symbolic link in the workspace, or lies behind one, and \
         programs could replace the link: remove the link, or name the file that it leads to, and run \
         `toolcrib reload`",
        file.display()
    ))
}

/// Why a declaration with these files does not run if nothing pins their contents, as a clause with what to do.
fn beaten(files: &[RivalFiles]) -> Option<String> {
    let RivalFiles { chosen, other } = files.first()?;
    Some(format!(
        "would run `{}`, which wins over `{}` and which a program of another tool could have put there: look at both \
         and remove one, name the file (`make -f …`), or pin what was reviewed with `registry.lock: enforce`",
        chosen.display(),
        other.display()
    ))
}

impl DecidingFiles {
    /// Why the declaration does not run, as a clause with what to do.
    pub(crate) fn problem(&self, host: &RunnerHost) -> Option<String> {
        let beaten = || beaten(&self.rivals).filter(|_| !host.pinned_scripts);
        linked(&self.linked).or_else(beaten)
    }

    /// The variable that keeps Python (3.11 or newer) from loading modules from its working directory, or from a
    /// script's folder: whoever can write files in the workspace could put a `json.py` there. `None` for a script that
    /// may load modules from its folder, because no tool can change that.
    pub fn python_safe_path(&self) -> Option<(&'static str, &'static str)> {
        (!self.has_python_script).then_some(("PYTHONSAFEPATH", "1"))
    }

    /// The files that decide what a tool runs; none if it runs no program.
    pub fn of_tool(declaration: &Declaration, host: &RunnerHost) -> Self {
        let folder = folder_of(&declaration.origin.file);
        let mut found = Self::default();
        match &declaration.body {
            DeclaredBody::Command(command) => {
                let cwd = host.start_directory(
                    command.cwd.as_deref(),
                    &declaration.sandbox,
                    &declaration.origin.file,
                );
                let around = DeclarationFolders::new(&cwd, &folder, host, &declaration.sandbox);
                if let Some(script) = &command.script {
                    found.program(&absolute(&script.path), &around);
                }
                let skipped = usize::from(command.script.is_some());
                let words: Vec<_> = command.argv.iter().skip(skipped).flat_map(words_of).collect();
                found.vector(&words, &around, command.script.is_none());
                found.keep_positions(&command.argv);
                found.environment(&command.env, &command.pass_env, &around);
            }
            DeclaredBody::Worker(worker) => {
                let cwd = absolute(&worker.folder);
                let around = DeclarationFolders::new(&cwd, &folder, host, &declaration.sandbox);
                let files = worker.files.values().map(|file| absolute(&file.path));
                files.for_each(|file| found.program(&file, &around));
                let words: Vec<_> =
                    worker.argv.iter().map(|text| ArgumentText::literal(text)).collect();
                found.vector(&words, &around, true);
                found.environment(&worker.env, &worker.pass_env, &around);
            }
            DeclaredBody::Http(_) | DeclaredBody::Client => {}
        }
        found.sorted()
    }

    /// The files that decide what an MCP server on standard input and output runs; `file` is the manifest.
    pub fn of_upstream(stdio: &StdioUpstream, file: &str, host: &RunnerHost) -> Self {
        let folder = folder_of(file);
        let cwd = host.start_directory(stdio.cwd.as_deref(), &stdio.sandbox, file);
        let around = DeclarationFolders::new(&cwd, &folder, host, &stdio.sandbox);
        let mut found = Self::default();
        let words: Vec<_> = stdio.argv.iter().map(argument_text).collect();
        found.vector(&words, &around, true);
        found.environment(&stdio.env, &stdio.pass_env, &around);
        found.sorted()
    }

    /// The files that decide what a plain command that starts in `cwd` runs.
    pub fn of_command(argv: &[String], cwd: &Path) -> Self {
        let around = DeclarationFolders {
            cwd: absolute(cwd),
            beside: cwd,
            workspace: Path::new("/"),
            written: Vec::new(),
            outputs: Vec::new(),
        };
        let words: Vec<_> = argv.iter().map(|text| ArgumentText::literal(text)).collect();
        let mut found = Self::default();
        found.vector(&words, &around, true);
        // Such a command is never refused, so files behind links count like the others.
        let linked = std::mem::take(&mut found.linked);
        found.places.extend(linked);
        found.sorted()
    }

    /// The file that the server itself opens for a resource; a link in its place would expose another file.
    pub fn of_resource(resource: &ResourceDeclaration) -> Self {
        let places = match &resource.content {
            ResourceContent::File(file) => {
                vec![absolute(&folder_of(&resource.origin.file).join(file))]
            }
            ResourceContent::Text(_) => Vec::new(),
        };
        Self { places, ..Self::default() }
    }

    /// What no tool may change or create: the places, and the absent paths.
    pub fn protected(self) -> impl Iterator<Item = PathBuf> {
        self.places.into_iter().chain(self.absent)
    }

    /// The places, and the files behind links.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        self.places.iter().chain(&self.linked).cloned().collect()
    }

    /// Adds an argument vector. If `whole` is set, its first entry is the program.
    fn vector(&mut self, words: &[ArgumentText], around: &DeclarationFolders<'_>, whole: bool) {
        let runs = words.iter().any(|word| match word {
            ArgumentText::Whole { text, .. } => runs_its_arguments(text),
            ArgumentText::Begins(_) => false,
        });
        // Only for a shell that is started directly: a wrapper might close the descriptors that the server passes.
        let is_shell = whole && words.first().is_some_and(ArgumentText::is_shell);
        let program = words.first().and_then(ArgumentText::text);
        let bare_is_no_file = !runs && whole && program.is_some_and(runs_no_file);
        let around = &DeclarationFolders { outputs: outputs(words, around), ..around.clone() };
        let mut script_is_next = runs;
        // The first file of a program that runs files counts as its script, even after options.
        let mut code_is_next = runs;
        for (at, word) in words.iter().enumerate() {
            let (text, written) = match word {
                ArgumentText::Whole { text, written } => (text, written),
                ArgumentText::Begins(text) => {
                    if runs && let Some((folder, _)) = text.rsplit_once('/') {
                        self.existing(folder, around, true);
                    }
                    continue;
                }
            };
            if at == 0 && whole {
                if text.contains('/') {
                    let place = around.cwd.join(text);
                    self.name(written, text, &place, around, true);
                    self.program(&place, around);
                }
                continue;
            }
            // A shell's `-e` and `-m` have other meanings.
            if INLINE.contains(&text.as_str()) && (!is_shell || text == "-c") {
                (script_is_next, code_is_next) = (false, false);
            }
            let is_option = text.starts_with('-') || text.is_empty();
            let is_script =
                script_is_next && !is_option && !runs_its_arguments(text) && !text.contains('=');
            let before = at.checked_sub(1).and_then(|at| words[at].text()).unwrap_or_default();
            // The archive after `timeout 9 tar -cf` is the first file but not a script.
            let may_be_code = code_is_next || runs && roles::is_read(before);
            let here = &DeclarationFolders {
                cwd: folder_of_files(&words[..at], around),
                ..around.clone()
            };
            let is_output = may_be_code && here.is_output(&here.cwd.join(text));
            let entry = VectorEntry {
                written: Some((written, is_script)),
                before,
                is_code: is_script || may_be_code && !is_output,
                is_shell_text: words[..at].iter().any(ArgumentText::is_shell) && is_inline(before),
                bare_is_no_file,
            };
            let found = self.existing_as(entry, text, here, runs);
            let is_code_next = code_is_next && !found;
            let is_missing =
                self.absent(words, at, AbsentEntry { entry, is_script, is_code_next }, around);
            code_is_next = is_code_next && !is_missing;
            if is_script {
                script_is_next = false;
                let script = self.named.iter_mut().find(|named| named.written == *written);
                if let Some(script) = script.filter(|_| is_shell) {
                    script.script_at = Some(at - 1);
                }
            }
        }
        self.unasked(words, around);
        self.folders_of_git(words, around);
        self.shell_texts(words, around);
    }

    /// Adds what the commands of shell texts read unasked, and the folders in which they look for programs and modules.
    fn shell_texts(&mut self, words: &[ArgumentText], around: &DeclarationFolders<'_>) {
        for (at, word) in words.iter().enumerate().skip(1) {
            let before = words[at - 1].text().unwrap_or_default();
            let is_shell_text = is_inline(before) && words[..at].iter().any(ArgumentText::is_shell);
            let Some(text) = word.text().filter(|_| is_shell_text) else { continue };
            for command in shell_text::commands(text) {
                let words: Vec<_> =
                    command.words.iter().map(|word| ArgumentText::literal(word)).collect();
                for folder in &command.folders {
                    let cwd = around.cwd.join(folder);
                    let around = &DeclarationFolders { cwd, ..around.clone() };
                    self.unasked(&words, around);
                    self.folders_of_git(&words, around);
                    for (name, value) in &command.assignments {
                        self.variable(name, value, around);
                    }
                }
            }
        }
    }

    /// Adds the files that a text names: as a whole, after `=`, after the letters of an option, or, if a shell reads
    /// it, in one of its words. Returns whether there are any.
    fn existing(&mut self, text: &str, around: &DeclarationFolders<'_>, runs: bool) -> bool {
        self.existing_as(VectorEntry::default(), text, around, runs)
    }

    /// Like [`existing`](Self::existing), with the entry of the vector under which the files are listed.
    fn existing_as(
        &mut self,
        entry: VectorEntry<'_>,
        text: &str,
        around: &DeclarationFolders<'_>,
        runs: bool,
    ) -> bool {
        // Files from environment variables are not listed in a lock.
        let name_of = |written: &str, part: &str| {
            if written == text { part.to_owned() } else { written.to_owned() }
        };
        let mut any = false;
        for (part, role) in entry.parts(text, runs) {
            let part = &*part;
            if part.is_empty() || part.len() > 4096 {
                continue;
            }
            for (place, is_opened) in [
                (around.cwd.join(part), true),
                (absolute(&around.beside.join(part)), around.cwd == absolute(around.beside)),
            ] {
                let Ok(found) = place.metadata() else { continue };
                // The program opens files in its working directory. A file of that name beside the manifest is only
                // protected.
                if !is_opened {
                    if found.is_file()
                        && !around.is_data(&place)
                        && !around.is_behind_a_link(&place)
                    {
                        self.places.push(place.components().collect());
                    }
                    continue;
                }
                if found.is_file() {
                    if role != WordRole::Code && !runs && around.is_data(&place) {
                        continue;
                    }
                    if !entry.is_script(part, role) && around.is_behind_a_link(&place) {
                        self.linked.push(place);
                        continue;
                    }
                    if role != WordRole::Code
                        && (around.is_output(&place) || runs && around.is_plain_data(&place))
                    {
                        continue;
                    }
                    // The program itself may change the files that it is granted for writing, but not its script.
                    if let Some((written, is_script)) = entry.written
                        && (is_script || !around.is_data(&place))
                    {
                        self.name(&name_of(written, part), part, &place, around, runs);
                    }
                    self.program(&place, around);
                    any = true;
                } else if found.is_dir() && runs {
                    any |= self.folder(text, place, around);
                }
            }
        }
        any
    }

    /// Adds the code in a folder that `entry` names: the whole folder if it is a package or one from which code is
    /// loaded, otherwise the files that programs read unasked.
    fn folder(&mut self, entry: &str, place: PathBuf, around: &DeclarationFolders<'_>) -> bool {
        let is_searched = entry.starts_with("-I") && !around.holds_workspace(&place);
        if is_package(&place) || is_searched {
            self.places.push(place);
            return true;
        }
        let found = unasked::names().map(|name| place.join(name)).filter(|file| file.is_file());
        let before = self.places.len();
        self.places.extend(found);
        self.places.len() > before
    }

    /// Adds a file to the named files, if it belongs there: `part` of the vector leads to it. If a name occurs twice,
    /// the first file counts, which is the one the program finds. `is_code`: the file is the program, or an argument of
    /// a program that runs the files in its arguments.
    fn name(
        &mut self,
        written: &str,
        part: &str,
        place: &Path,
        around: &DeclarationFolders<'_>,
        is_code: bool,
    ) {
        let is_known = self.named.iter().any(|named| named.written == written);
        if is_known || !place.is_file() {
            return;
        }
        if part.starts_with('/') && !around.is_own(place) && system::is_left_out(place, is_code) {
            return;
        }
        let path = place.components().collect();
        self.named.push(ReferencedFile { written: written.to_owned(), path, script_at: None });
    }

    /// Keeps positions only for entries that no call moves: those after entries that are always exactly one argument.
    fn keep_positions(&mut self, argv: &[ArgvEntry]) {
        let is_fixed = |entry: &&ArgvEntry| match entry {
            ArgvEntry::One(template) => {
                matches!(argument_text(template), ArgumentText::Whole { .. })
            }
            ArgvEntry::If { .. } | ArgvEntry::Each { .. } => false,
        };
        // The program is not an argument.
        let fixed = argv.iter().take_while(is_fixed).count().saturating_sub(1);
        for named in &mut self.named {
            named.script_at = named.script_at.filter(|at| *at < fixed);
        }
    }

    /// Adds a program or a script, with the interpreter in its first line and the folder from which Python loads
    /// modules.
    fn program(&mut self, file: &Path, around: &DeclarationFolders<'_>) {
        let file: &Path = &file.components().collect::<PathBuf>();
        self.places.push(file.to_owned());
        if !file.exists() {
            self.missing.push(file.to_owned());
            return;
        }
        let line = first_line(file);
        let mut is_python = file.extension().is_some_and(|extension| extension == "py");
        if let Some(line) = line.as_deref().and_then(|line| line.strip_prefix("#!")) {
            is_python |= line.contains("python");
            let words = line.split([' ', '\t']).filter(|word| word.contains('/'));
            self.places.extend(words.map(|word| around.cwd.join(word)));
        }
        let folder = file.canonicalize().ok();
        let folder = folder.as_deref().and_then(Path::parent).filter(|_| is_python);
        let workspace = around.workspace.canonicalize();
        let Some(folder) = folder else { return };
        let is_workspace = workspace.as_ref().is_ok_and(|workspace| folder == workspace);
        self.has_python_script |= !is_workspace;
        if workspace.is_ok_and(|workspace| !is_workspace && folder.starts_with(workspace)) {
            self.places.push(folder.to_owned());
        }
    }

    /// Adds files that variables name.
    fn environment(
        &mut self,
        set: &BTreeMap<String, Template>,
        passed: &[String],
        around: &DeclarationFolders<'_>,
    ) {
        let set = set.iter().map(|(name, template)| match argument_text(template) {
            ArgumentText::Whole { text, .. } | ArgumentText::Begins(text) => (name.as_str(), text),
        });
        let passed = passed.iter().filter_map(|name| {
            let value = std::env::var_os(name)?.into_string().ok()?;
            Some((name.as_str(), value))
        });
        for (name, value) in set.chain(passed) {
            self.variable(name, &value, around);
        }
    }

    /// Adds the files that an environment variable names, and the folders that it names if programs load code from
    /// them. The workspace itself is not added: no tool could write anything.
    fn variable(&mut self, name: &str, value: &str, around: &DeclarationFolders<'_>) {
        let carries_code = CODE_VARIABLES.contains(&name);
        let is_path = |part: &&str| !part.is_empty() && (carries_code || part.contains('/'));
        for part in value.split([':', ';', ' ', '=']).filter(is_path) {
            let place: PathBuf = around.cwd.join(part).components().collect();
            let Ok(found) = place.metadata() else { continue };
            let is_searched = carries_code && found.is_dir() && !around.holds_workspace(&place);
            if is_searched || found.is_file() && !around.is_data(&place) {
                self.places.push(place);
            }
        }
    }

    fn sorted(mut self) -> Self {
        for list in [&mut self.places, &mut self.missing, &mut self.absent, &mut self.linked] {
            list.sort();
            list.dedup();
        }
        self.rivals.sort();
        self.rivals.dedup();
        self
    }
}

fn folder_of(file: &str) -> PathBuf {
    Path::new(file).parent().unwrap_or(Path::new("")).to_owned()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
