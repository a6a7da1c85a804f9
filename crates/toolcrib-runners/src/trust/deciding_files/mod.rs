//! Which files decide what a declaration runs: programs, scripts, and what programs load beside them.
//!
//! Whoever can change one of them runs code of their own under the declaration's profile, so none of
//! them may be in what a tool of the server can write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolcrib_manifest::declaration::{
    ArgvEntry, Declaration, DeclaredBody, NamedFile, ResourceContent, ResourceDeclaration,
    StdioUpstream,
};
use toolcrib_manifest::template::Template;
use toolcrib_sandbox::ControlPlane;
use toolcrib_tool::ToolError;

use crate::RunnerHost;

mod entry;
mod options;
mod programs;
mod roles;
mod surroundings;
mod system;
mod words;

use self::entry::{Entry, is_inline, outputs};
use self::programs::{
    CODE_VARIABLES, INLINE, RUN_UNASKED, first_line, is_package, looks_like_a_file,
    runs_its_arguments, runs_no_file,
};
use self::roles::Role;
use self::surroundings::Surroundings;
pub(crate) use self::surroundings::is_behind_a_link;
use self::words::{Word, word, words_of};

/// What decides what a declaration runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deciding {
    /// Files, and folders with everything in them.
    pub places: Vec<PathBuf>,
    /// Programs and scripts that it needs and that do not exist.
    pub missing: Vec<PathBuf>,
    /// The files that the argument vector names, in its order: those whose bytes are pinned. They are
    /// among the places.
    pub named: Vec<Named>,
    /// Files that the argument vector names, scripts that look like one excepted, and that are reached
    /// through a symbolic link in the workspace, which programs could replace. They are not among the
    /// places: the declaration is not run while there is one, and other declarations are.
    pub linked: Vec<PathBuf>,
}

/// A file that an argument vector names: by a relative path, or by an absolute one outside the folders
/// of the system, which only the administrator changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Named {
    /// The path as the manifest writes it.
    pub written: String,
    /// Where the file is.
    pub path: PathBuf,
    /// The position among the arguments of the program, the program not counted, if the file is the
    /// script of a shell and every call has it in this position.
    pub script_at: Option<usize>,
}

/// Fails if one of these files may be the work of a program that ran here: it did not exist while that
/// program could create it.
pub(crate) fn check<P: AsRef<Path>>(
    plane: &ControlPlane,
    files: impl IntoIterator<Item = P>,
) -> Result<(), ToolError> {
    let Some(file) = plane.exposed(files) else { return Ok(()) };
    Err(ToolError::unavailable(format!(
        "the tool runs `{}`, which did not exist while programs of this server could create it",
        file.display()
    ))
    .with_hint("Tell the user: look at the file, then run `toolcrib reload`."))
}

/// The files among these places with their digests, a line for each: another text, other code. What
/// folders hold is not in it.
pub(crate) fn contents(places: &[PathBuf]) -> String {
    let mut contents = String::new();
    for place in places.iter().filter(|place| !place.is_dir()) {
        let digest = NamedFile::read(place).digest;
        let digest = digest.as_deref().unwrap_or("unreadable");
        contents.extend([digest, " ", &*place.to_string_lossy(), "\n"]);
    }
    contents
}

/// Why a declaration that names these files is not run, as a clause with what to do.
pub(crate) fn linked(files: &[PathBuf]) -> Option<String> {
    let file = files.first()?;
    Some(format!(
        "names the file `{}`, which is a symbolic link in the workspace, or lies behind one, and \
         programs could replace the link: remove the link, or name the file that it leads to, and run \
         `toolcrib reload`",
        file.display()
    ))
}

impl Deciding {
    /// What decides what a tool runs. Nothing for a tool that runs no program.
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
                let around = Surroundings::new(&cwd, &folder, host, &declaration.sandbox);
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
                let around = Surroundings::new(&cwd, &folder, host, &declaration.sandbox);
                let files = worker.files.values().map(|file| absolute(&file.path));
                files.for_each(|file| found.program(&file, &around));
                let words: Vec<_> = worker.argv.iter().map(|text| Word::literal(text)).collect();
                found.vector(&words, &around, true);
                found.environment(&worker.env, &worker.pass_env, &around);
            }
            DeclaredBody::Http(_) | DeclaredBody::Client => {}
        }
        found.sorted()
    }

    /// What decides what an MCP server on standard input and output runs; `file` is the manifest.
    pub fn of_upstream(stdio: &StdioUpstream, file: &str, host: &RunnerHost) -> Self {
        let folder = folder_of(file);
        let cwd = host.start_directory(stdio.cwd.as_deref(), &stdio.sandbox, file);
        let around = Surroundings::new(&cwd, &folder, host, &stdio.sandbox);
        let mut found = Self::default();
        let words: Vec<_> = stdio.argv.iter().map(word).collect();
        found.vector(&words, &around, true);
        found.environment(&stdio.env, &stdio.pass_env, &around);
        found.sorted()
    }

    /// What decides what a plain command runs that starts in `cwd`.
    pub fn of_command(argv: &[String], cwd: &Path) -> Self {
        let around = Surroundings {
            cwd: absolute(cwd),
            beside: cwd,
            workspace: Path::new("/"),
            written: Vec::new(),
            outputs: Vec::new(),
        };
        let words: Vec<_> = argv.iter().map(|text| Word::literal(text)).collect();
        let mut found = Self::default();
        found.vector(&words, &around, true);
        // Nothing refuses to start such a command, so that files behind links count with the others.
        let linked = std::mem::take(&mut found.linked);
        found.places.extend(linked);
        found.sorted()
    }

    /// The file that the server itself opens for a resource: a link in its place would show another.
    pub fn of_resource(resource: &ResourceDeclaration) -> Self {
        let places = match &resource.content {
            ResourceContent::File(file) => {
                vec![absolute(&folder_of(&resource.origin.file).join(file))]
            }
            ResourceContent::Text(_) => Vec::new(),
        };
        Self { places, ..Self::default() }
    }

    /// The places, and the files behind links.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        self.places.iter().chain(&self.linked).cloned().collect()
    }

    /// Adds an argument vector; `whole`: its first entry is the program.
    fn vector(&mut self, words: &[Word], around: &Surroundings<'_>, whole: bool) {
        let runs = words.iter().any(|word| match word {
            Word::Whole { text, .. } => runs_its_arguments(text),
            Word::Begins(_) => false,
        });
        // Only a shell that is started directly counts: a wrapper might close the descriptors that the
        // server hands over.
        let is_shell = whole && words.first().is_some_and(Word::is_shell);
        let program = words.first().and_then(Word::text);
        let bare_is_no_file = !runs && whole && program.is_some_and(runs_no_file);
        let around = &Surroundings { outputs: outputs(words, around), ..around.clone() };
        let mut script_is_next = runs;
        // The first file of a program that runs files is taken for its script, also behind options.
        let mut code_is_next = runs;
        for (at, word) in words.iter().enumerate() {
            let (text, written) = match word {
                Word::Whole { text, written } => (text, written),
                Word::Begins(text) => {
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
            // A shell's `-e` and `-m` are something else.
            if INLINE.contains(&text.as_str()) && (!is_shell || text == "-c") {
                (script_is_next, code_is_next) = (false, false);
            }
            let is_option = text.starts_with('-') || text.is_empty();
            let is_script =
                script_is_next && !is_option && !runs_its_arguments(text) && !text.contains('=');
            let before = at.checked_sub(1).and_then(|at| words[at].text()).unwrap_or_default();
            // An archive behind `timeout 9 tar -cf` is no script, although it is the first file.
            let may_be_code = code_is_next || runs && roles::is_read(before);
            let is_output = may_be_code && around.is_output(&around.cwd.join(text));
            let entry = Entry {
                written: Some((written, is_script)),
                before,
                is_code: is_script || may_be_code && !is_output,
                is_shell_text: words[..at].iter().any(Word::is_shell) && is_inline(before),
                bare_is_no_file,
            };
            let found = self.existing_as(entry, text, around, runs);
            code_is_next &= !found;
            if is_script {
                script_is_next = false;
                if !found && looks_like_a_file(text) {
                    self.missing.push(around.cwd.join(text));
                }
                let script = self.named.iter_mut().find(|named| named.written == *written);
                if let Some(script) = script.filter(|_| is_shell) {
                    script.script_at = Some(at - 1);
                }
            }
        }
    }

    /// Adds what a text names, if it names a file: as a whole, behind `=`, behind the letters of an
    /// option, or, where a shell reads it, as one of its words. Returns whether it does.
    fn existing(&mut self, text: &str, around: &Surroundings<'_>, runs: bool) -> bool {
        self.existing_as(Entry::default(), text, around, runs)
    }

    /// [`existing`](Self::existing), where the files found are named by this entry of the vector.
    fn existing_as(
        &mut self,
        entry: Entry<'_>,
        text: &str,
        around: &Surroundings<'_>,
        runs: bool,
    ) -> bool {
        // What values of the environment add is not repeated in a lock.
        let name_of = |written: &str, part: &str| {
            if written == text { part.to_owned() } else { written.to_owned() }
        };
        let mut any = false;
        for (part, role) in entry.parts(text, runs) {
            if part.is_empty() || part.len() > 4096 {
                continue;
            }
            for place in [around.cwd.join(part), absolute(&around.beside.join(part))] {
                let Ok(found) = place.metadata() else { continue };
                if found.is_file() {
                    if role != Role::Code && !runs && around.is_data(&place) {
                        continue;
                    }
                    if !entry.is_script(part, role) && around.is_behind_a_link(&place) {
                        self.linked.push(place);
                        continue;
                    }
                    if role != Role::Code
                        && (around.is_output(&place) || runs && around.is_plain_data(&place))
                    {
                        continue;
                    }
                    // The program itself changes what it is granted for writing, but not its script.
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

    /// Adds what a program runs or loads from a folder that `entry` of the vector names: the whole folder
    /// if it is a package or one that code is loaded from, otherwise the files that are read unasked.
    fn folder(&mut self, entry: &str, place: PathBuf, around: &Surroundings<'_>) -> bool {
        let is_searched = entry.starts_with("-I") && !around.holds_workspace(&place);
        if is_package(&place) || is_searched {
            self.places.push(place);
            return true;
        }
        let found = RUN_UNASKED.iter().map(|name| place.join(name)).filter(|file| file.is_file());
        let before = self.places.len();
        self.places.extend(found);
        self.places.len() > before
    }

    /// Adds a file to those that are named, if it is one of those: `part` of the vector leads to it. The
    /// first place of a name counts, which is the one that the program finds. `is_code`: the file is the
    /// program, or an argument of a program that runs what its arguments name.
    fn name(
        &mut self,
        written: &str,
        part: &str,
        place: &Path,
        around: &Surroundings<'_>,
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
        self.named.push(Named { written: written.to_owned(), path, script_at: None });
    }

    /// Keeps positions only of entries that no call moves: those behind entries that are always exactly
    /// one argument.
    fn keep_positions(&mut self, argv: &[ArgvEntry]) {
        let is_fixed = |entry: &&ArgvEntry| match entry {
            ArgvEntry::One(template) => matches!(word(template), Word::Whole { .. }),
            ArgvEntry::If { .. } | ArgvEntry::Each { .. } => false,
        };
        // The program is not an argument.
        let fixed = argv.iter().take_while(is_fixed).count().saturating_sub(1);
        for named in &mut self.named {
            named.script_at = named.script_at.filter(|at| *at < fixed);
        }
    }

    /// Adds a program or a script, with the interpreter of its first line and the folder that Python
    /// loads modules from.
    fn program(&mut self, file: &Path, around: &Surroundings<'_>) {
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
        if let (Some(folder), Ok(workspace)) = (folder, workspace)
            && folder != workspace
            && folder.starts_with(&workspace)
        {
            self.places.push(folder.to_owned());
        }
    }

    /// Adds what variables name.
    fn environment(
        &mut self,
        set: &BTreeMap<String, Template>,
        passed: &[String],
        around: &Surroundings<'_>,
    ) {
        let set = set.iter().map(|(name, template)| match word(template) {
            Word::Whole { text, .. } | Word::Begins(text) => (name.as_str(), text),
        });
        let passed = passed.iter().filter_map(|name| {
            let value = std::env::var_os(name)?.into_string().ok()?;
            Some((name.as_str(), value))
        });
        for (name, value) in set.chain(passed) {
            let carries_code = CODE_VARIABLES.contains(&name);
            for part in value.split([':', ';', ' ', '=']).filter(|part| part.contains('/')) {
                let place = around.cwd.join(part);
                let Ok(found) = place.metadata() else { continue };
                if carries_code && found.is_dir() || found.is_file() && !around.is_data(&place) {
                    self.places.push(place);
                }
            }
        }
    }

    fn sorted(mut self) -> Self {
        for list in [&mut self.places, &mut self.missing, &mut self.linked] {
            list.sort();
            list.dedup();
        }
        self
    }
}

fn folder_of(file: &str) -> PathBuf {
    Path::new(file).parent().unwrap_or(Path::new("")).to_owned()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
