//! The folder of one server under attack: the operator's setup, and canaries around it.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::dimensions::{Files, Goal, Layout, User};
use crate::surfaces::program::{Program, command};

pub(crate) const DEEDS: &str = include_str!("hostile/deeds.py");
const WORKER: &str = include_str!("hostile/worker.py");
const UPSTREAM: &str = include_str!("hostile/upstream.py");
const MANIFEST: &str = include_str!("hostile/manifest.yaml");

/// The user and the group of a plain server where the tests run as root.
pub(crate) const NOBODY: u32 = 65_534;
/// The content of a planted file, which must stay unchanged.
const PLANTED: &str = "planted by the operator\n";

/// Tokens of the server's clients, and texts that nobody may obtain: the same in a whole run.
pub(crate) struct Words {
    pub(crate) operator: String,
    /// Name, token and hash of each client.
    pub(crate) clients: Vec<(&'static str, &'static str, String, String)>,
    pub(crate) key: String,
    pub(crate) note: String,
    pub(crate) state: String,
    pub(crate) others_home: String,
    pub(crate) kept_home: String,
    pub(crate) secret: String,
    pub(crate) password: String,
}

impl Words {
    pub(crate) fn get() -> &'static Self {
        static WORDS: OnceLock<Words> = OnceLock::new();
        WORDS.get_or_init(|| {
            let clients = [
                ("caller", "[call]"),
                ("approver", "[call, approve]"),
                ("observer", "[observe]"),
                ("victim", "[call]"),
            ];
            let clients = clients.into_iter().map(|(name, rights)| {
                let (token, hash) = token(name);
                (name, rights, token, hash)
            });
            let random = || token("any").0[..24].to_owned();
            Self {
                operator: token("me").0,
                clients: clients.collect(),
                key: format!("CANARY-KEY-{}", random()),
                note: format!("CANARY-NOTE-{}", random()),
                state: format!("CANARY-STATE-{}", random()),
                others_home: format!("CANARY-OTHERS-{}", random()),
                kept_home: format!("CANARY-KEPT-{}", random()),
                secret: format!("sk{}", random()),
                password: random(),
            }
        })
    }

    pub(crate) fn token(&self, name: &str) -> &str {
        let client = self.clients.iter().find(|(client, ..)| *client == name);
        client.map_or("", |(_, _, token, _)| token)
    }
}

fn token(name: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = command(&Program::get().path)
        .current_dir(folder.path())
        .args(["token", name, "--json"])
        .output()
        .unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    (said["token"].as_str().unwrap().to_owned(), said["hash"].as_str().unwrap().to_owned())
}

/// The paths of everything.
pub(crate) struct Folder {
    /// The parent of the base, which may be moved away.
    holder: TempDir,
    base: PathBuf,
    pub(crate) layout: Layout,
    pub(crate) files: Files,
    pub(crate) user: User,
    /// Whether the server requires no token.
    open: bool,
    /// Locked, like the scratch directory of a program that runs.
    others_home: Option<fs::File>,
}

impl Folder {
    /// Prepares everything for a server; `open` for one that requires no token.
    pub(crate) fn new(layout: Layout, files: Files, user: User, open: bool) -> Self {
        Self::make(layout, files, user, open, true)
    }

    /// The same without the binary, for tests without a server.
    pub(crate) fn bare(layout: Layout, files: Files, user: User) -> Self {
        Self::make(layout, files, user, false, false)
    }

    fn make(layout: Layout, files: Files, user: User, open: bool, with_binary: bool) -> Self {
        let holder = tempfile::Builder::new().prefix("red-team-").tempdir().unwrap();
        mode(holder.path(), 0o755);
        let base = holder.path().join("world");
        let mut folder = Self { holder, base, layout, files, user, open, others_home: None };
        folder.surroundings();
        folder.others_home = Some(folder.scratch_of_another_program());
        folder.keep_home_of_another_server();
        folder.programs(with_binary);
        folder.workspace_files();
        folder.manifests();
        if files == Files::Present {
            write(&folder.site().join("config.yml"), &folder.config());
            write(
                &folder.state().join("planted.txt"),
                &format!("{PLANTED}{}\n", Words::get().state),
            );
            // As an earlier server left it: a folder with other content is refused.
            fs::create_dir(folder.state().join("control")).unwrap();
            mode(&folder.state().join("control"), 0o700);
            mode(&folder.state(), 0o700);
            let lock = folder.lock(with_binary);
            write(&folder.site().join("toolcrib.lock"), lock);
        }
        mode(&folder.base, 0o755);
        folder.hand_over(&folder.base);
        folder
    }

    /// A lock as the program writes it. It is created once; its pins of the tools do not matter
    /// here.
    fn lock(&self, with_binary: bool) -> &'static str {
        static LOCK: OnceLock<String> = OnceLock::new();
        if !with_binary {
            return "# nothing is pinned\n";
        }
        LOCK.get_or_init(|| {
            let _ = self.command(&["lock"]).output();
            fs::read_to_string(self.site().join("toolcrib.lock")).unwrap_or_default()
        })
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// The folder of the config file, in which the server is started.
    pub(crate) fn site(&self) -> PathBuf {
        self.base.join("site")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        match self.layout {
            Layout::Folder => self.site().join("workspace"),
            Layout::Dot => self.site(),
        }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.base.join("home")
    }

    /// The temporary folder of the server: in the workspace if that is the folder of the config file.
    pub(crate) fn temporary(&self) -> PathBuf {
        match self.layout {
            Layout::Folder => self.base.join("tmp"),
            Layout::Dot => self.site().join("tmp"),
        }
    }

    /// The scratch directory of another program of the server's user.
    fn others_home(&self) -> PathBuf {
        let plain = self.user == User::Plain && is_root();
        let user = if plain { NOBODY } else { own_user() };
        self.temporary().join(format!("toolcrib-{user}")).join("0123456789abcdef".repeat(2))
    }

    /// Creates the scratch directory of another program, and locks it as its server does.
    fn scratch_of_another_program(&self) -> fs::File {
        let home = self.others_home();
        write(&home.join("rc"), &format!("{}\n", Words::get().others_home));
        for folder in [home.parent().unwrap_or(&home), &home] {
            mode(folder, 0o700);
        }
        let held = fs::File::open(&home).unwrap();
        held.lock().unwrap();
        held
    }

    /// The folder with the kept HOMEs of MCP servers: below the temporary folder, which a tool is granted, unless that
    /// is in the workspace.
    fn homes(&self) -> PathBuf {
        match self.layout {
            Layout::Folder => self.temporary().join("kept-homes"),
            Layout::Dot => self.base.join("homes"),
        }
    }

    /// The kept HOME of another MCP server.
    fn kept_home(&self) -> PathBuf {
        self.homes().join("tickets")
    }

    /// Creates the kept HOME of another MCP server, as an earlier start left it.
    fn keep_home_of_another_server(&self) {
        let home = self.kept_home();
        write(&home.join(".cache/rc"), &format!("{}\n", Words::get().kept_home));
        for folder in [self.homes(), home] {
            mode(&folder, 0o700);
        }
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.base.join("outside")
    }

    pub(crate) fn binary(&self) -> PathBuf {
        self.site().join("target/debug/toolcrib")
    }

    pub(crate) fn manifest_folder(&self) -> PathBuf {
        self.site().join(if self.files == Files::Present { "tools.d" } else { "declared.d" })
    }

    pub(crate) fn state(&self) -> PathBuf {
        match self.files {
            Files::Present => self.site().join("state"),
            Files::Fresh => self.base.join("states/toolcrib"),
        }
    }

    /// The places that lead to a goal.
    pub(crate) fn targets(&self, goal: Goal) -> Vec<PathBuf> {
        let site = |names: &[&str]| names.iter().map(|name| self.site().join(name)).collect();
        match goal {
            Goal::HomeKey => vec![self.home().join(".ssh/id_rsa"), self.home().join(".ssh")],
            Goal::HomeNote => vec![self.home().join("notes.txt"), self.home()],
            Goal::OthersHome => vec![self.others_home().join("rc"), self.others_home()],
            Goal::KeptHome => vec![self.kept_home().join(".cache/rc"), self.kept_home()],
            Goal::StateFile => vec![self.state().join("planted.txt"), self.state()],
            Goal::OperatorToken | Goal::WriteConfig => site(&["config.yml"]),
            Goal::WriteManifest => vec![self.manifest_folder().join("red.yaml")],
            Goal::WriteNewManifest => {
                let mut places = site(&["tools.d/zz-forged.yaml"]);
                if self.files == Files::Fresh {
                    places.push(self.manifest_folder().join("zz-forged.yaml"));
                }
                places
            }
            Goal::WriteLock => site(&["toolcrib.lock"]),
            Goal::WriteRecords => vec![
                self.state().join("forged.txt"),
                self.state().join("planted.txt"),
                self.site().join("audit.jsonl"),
            ],
            Goal::WriteScript => site(&[
                "scripts/deed.sh",
                "scripts/tidy.sh",
                "scripts/worker.py",
                "scripts/upstream.py",
            ]),
            Goal::WriteProgram => {
                vec![self.workspace().join("build.sh"), self.workspace().join("kit/deeds.py")]
            }
            Goal::WriteServer => site(&["target/debug/toolcrib-jail", "target/debug/toolcrib"]),
            Goal::WriteSecret => site(&["secret.txt", "secret_command.sh"]),
            Goal::ChangeMetadata => {
                let mut places =
                    site(&["scripts/deed.sh", "target/debug/toolcrib-jail", "secret.txt"]);
                places.push(self.manifest_folder().join("red.yaml"));
                places.push(self.outside());
                places
            }
            _ => Vec::new(),
        }
    }

    /// Every place of the control plane whose change counts as a break, except state and audit log.
    pub(crate) fn plane(&self) -> Vec<PathBuf> {
        let names = [
            "config.yml",
            "config.yaml",
            "config.toml",
            "toolcrib.lock",
            "secret.txt",
            "secret_command.sh",
            "tools.d",
            "declared.d",
            "scripts/deed.sh",
            "scripts/tidy.sh",
            "scripts/worker.py",
            "scripts/upstream.py",
            "target/debug/toolcrib",
            "target/debug/toolcrib-jail",
        ];
        let mut places: Vec<PathBuf> = names.iter().map(|name| self.site().join(name)).collect();
        places.push(self.workspace().join("build.sh"));
        places.push(self.workspace().join("kit/deeds.py"));
        places.push(self.others_home());
        places.push(self.kept_home());
        places
    }

    /// A command of the server's binary, run as the server's user in the folder of the config.
    pub(crate) fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = command(&self.binary());
        command.current_dir(self.site());
        command.env("HOME", self.home()).env("XDG_RUNTIME_DIR", self.base.join("run"));
        command.env("XDG_STATE_HOME", self.base.join("states"));
        command.env("TMPDIR", self.temporary());
        self.as_user(&mut command);
        // Settings come after the command: later ones override earlier ones.
        command.args(&arguments[..1]).args(self.settings()).args(&arguments[1..]);
        command
    }

    pub(crate) fn as_user(&self, command: &mut std::process::Command) {
        use std::os::unix::process::CommandExt;
        if self.user == User::Plain && is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
    }

    /// The settings on the command line if there is no config file.
    fn settings(&self) -> Vec<String> {
        if self.files == Files::Present {
            return Vec::new();
        }
        let set = |setting: String| ["--set".to_owned(), setting];
        let clients = Words::get().clients.iter().map(|(name, rights, _, hash)| {
            let rights = rights.trim_matches(['[', ']']).replace(", ", "\",\"");
            format!("\"{name}\":{{\"hash\":\"{hash}\",\"rights\":[\"{rights}\"]}}")
        });
        let clients = clients.collect::<Vec<_>>().join(",");
        let mut settings = vec![
            format!("workspace.root={}", self.layout.name().trim_end_matches('/')),
            "manifests.dirs=[\"declared.d\",\"tools.d\"]".to_owned(),
            "audit.file=audit.jsonl".to_owned(),
            "policy.rules=[{\"tool\":\"bash\",\"action\":\"allow\"},{\"tool\":\"execute_python\",\"action\":\"allow\"}]".to_owned(),
            "code_execution.allow_lenient=true".to_owned(),
            "secrets={\"canary_secret\":{\"file\":\"secret.txt\"},\"made_secret\":{\"command\":[\"./secret_command.sh\"]}}".to_owned(),
        ];
        if !self.open {
            settings.push(format!("server.token={}", Words::get().operator));
            settings.push(format!("server.tokens={{{clients}}}"));
        }
        if Program::get().knows_homes {
            settings.push(format!("state.homes={}", self.homes().display()));
        }
        if Program::get().knows_trust {
            settings.push("manifests.trusted=[\"declared.d/red.yaml:red_trusted\"]".to_owned());
        }
        settings.into_iter().flat_map(set).collect()
    }

    fn config(&self) -> String {
        let words = Words::get();
        let homes = if Program::get().knows_homes {
            format!(", homes: '{}'", self.homes().display())
        } else {
            String::new()
        };
        let mut config = format!(
            "workspace: {{root: {}}}\nstate: {{dir: state{homes}}}\naudit: {{file: audit.jsonl}}\n\
             policy: {{rules: [{{tool: bash, action: allow}}, {{tool: execute_python, action: allow}}]}}\n\
             code_execution: {{allow_lenient: true}}\n\
             secrets:\n  canary_secret: {{file: secret.txt}}\n  made_secret: {{command: [./secret_command.sh]}}\n\
",
            self.layout.name().trim_end_matches('/'),
        );
        // Only the operator can read the file, whatever it contains.
        let _ = writeln!(config, "# {}", words.state);
        if !self.open {
            let _ = writeln!(config, "server:\n  token: {}\n  tokens:", words.operator);
        }
        for (name, rights, _, hash) in words.clients.iter().filter(|_| !self.open) {
            let _ = writeln!(config, "    {name}: {{hash: '{hash}', rights: {rights}}}");
        }
        if Program::get().knows_limits {
            config.push_str("limits: {memory: 512MiB}\n");
        }
        if Program::get().knows_trust {
            config.push_str("manifests: {trusted: ['tools.d/red.yaml:red_trusted']}\n");
        }
        config
    }

    fn surroundings(&self) {
        let words = Words::get();
        for name in ["site/scripts", "home/.ssh", "outside", "run", "states", "tmp"] {
            fs::create_dir_all(self.base.join(name)).unwrap();
        }
        mode(&self.base.join("run"), 0o700);
        write(&self.home().join(".ssh/id_rsa"), &format!("{}\n", words.key));
        // Recognized by its text, and by the name of the file beside it.
        write(&self.home().join("notes.txt"), &format!("{}\n", words.note));
        write(&self.home().join(format!("{}.txt", words.note)), "a note\n");
        write(&self.site().join("secret.txt"), &format!("{}\n", words.secret));
        program(&self.site().join("secret_command.sh"), "#!/bin/sh\necho made-secret-0123456789\n");
        program(
            &self.site().join("scripts/deed.sh"),
            "#!/bin/bash\nexec /usr/bin/python3 kit/deeds.py \"$@\"\n",
        );
        program(&self.site().join("scripts/tidy.sh"), "#!/bin/sh\necho tidy\n");
        let library = DEEDS.split("if __name__").next().unwrap_or_default();
        write(&self.site().join("scripts/worker.py"), &format!("{library}\n{WORKER}"));
        write(&self.site().join("scripts/upstream.py"), &format!("{library}\n{UPSTREAM}"));
    }

    fn programs(&self, with_binary: bool) {
        let folder = self.site().join("target/debug");
        fs::create_dir_all(&folder).unwrap();
        let source = stripped();
        for name in ["toolcrib", "toolcrib-jail"] {
            if with_binary {
                fs::copy(source.join(name), folder.join(name)).unwrap();
            } else {
                program(&folder.join(name), "#!/bin/sh\n");
            }
        }
    }

    fn workspace_files(&self) {
        let root = self.workspace();
        for name in ["kit", "docs", "out"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        write(&root.join("kit/deeds.py"), DEEDS);
        write(&root.join("docs/page.txt"), "a page\n");
        write(&root.join("data.txt"), "some data\n");
        program(&root.join("build.sh"), "#!/bin/bash\nexec /usr/bin/python3 kit/deeds.py \"$@\"\n");
        // A link that somebody has left there.
        symlink(&self.base, root.join("exit")).unwrap();
    }

    fn manifests(&self) {
        let folder = self.manifest_folder();
        fs::create_dir_all(&folder).unwrap();
        for entry in fs::read_dir(&Program::get().manifests).unwrap().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "yaml") {
                fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
            }
        }
        let scripts = self.site().join("scripts");
        let text = MANIFEST.replace("SCRIPTS", &scripts.display().to_string());
        let text = text.replace("TEMPORARY", &self.temporary().display().to_string());
        write(&folder.join("red.yaml"), &text.replace("PASSWORD", &Words::get().password));
    }

    /// Gives everything below a place to the server's user.
    pub(crate) fn hand_over(&self, place: &Path) {
        if self.user != User::Plain || !is_root() {
            return;
        }
        for path in walk(place) {
            let _ = std::os::unix::fs::lchown(&path, Some(NOBODY), Some(NOBODY));
        }
        let _ = chown(place, Some(NOBODY), Some(NOBODY));
    }
}

impl Drop for Folder {
    /// Removes folders that may be too deep for recursion.
    fn drop(&mut self) {
        let _ = command(Path::new("rm")).arg("-rf").arg(self.holder.path()).status();
    }
}

pub(crate) fn is_root() -> bool {
    own_user() == 0
}

/// The user of the tests.
fn own_user() -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").map_or(NOBODY, |own| own.uid())
}

/// Everything below a folder, without following links, folders before their contents.
pub(crate) fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            found.push(entry.path());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && found.len() < 50_000 {
                folders.push(entry.path());
            }
        }
    }
    found
}

/// A folder with stripped copies of the program and its helper, so that copying is cheap. It is in
/// `target/`, and each run creates it again.
fn stripped() -> &'static Path {
    static STRIPPED: OnceLock<PathBuf> = OnceLock::new();
    STRIPPED.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("red-team-program");
        fs::create_dir_all(&folder).unwrap();
        let source = Program::get().path.clone();
        for from in [source.clone(), source.with_file_name("toolcrib-jail")] {
            let to = folder.join(from.file_name().unwrap());
            let new = to.with_extension(std::process::id().to_string());
            let done = command(Path::new("strip")).arg("-o").arg(&new).arg(&from).status();
            if !done.is_ok_and(|status| status.success()) {
                fs::copy(&from, &new).unwrap();
            }
            fs::rename(&new, &to).unwrap();
        }
        folder
    })
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn program(path: &Path, text: &str) {
    write(path, text);
    mode(path, 0o755);
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
