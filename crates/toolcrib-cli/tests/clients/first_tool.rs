//! `docs/first-tool.md`: everything that the page shows really happens, with a real client too.
//!
//! The page is its own script. Blocks of `yaml` and `python` are files, named in their first line.
//! Blocks of `console` are commands with their output, in the reader's terminal, or in a second one
//! that is marked with `server` or `client` and continues. Blocks of `sh` are the reader's
//! preparations. `TOOLCRIB_WRITE_DOCS=1` updates the outputs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::crib::BINARY;
use crate::installed::{self, Clients};
use crate::process::{CLIENT_LIMIT, Running};

/// How long to wait for the displayed output.
const LIMIT: Duration = Duration::from_secs(20);
/// When the outputs are updated: how long to wait for more.
const QUIET: Duration = Duration::from_secs(2);
/// The server's address on the page, and the reader's folder there.
const ADDRESS: &str = "127.0.0.1:7777";
const FOLDER: &str = "/home/you/crib";

/// A part of the page.
enum Part {
    /// A line for the reader only.
    Line(String),
    File {
        language: String,
        name: String,
        text: String,
    },
    Console {
        terminal: String,
        steps: Vec<Step>,
    },
}

/// A command, or `None` if a terminal continues, and its output.
struct Step {
    command: Option<String>,
    output: String,
}

/// The folder of the page, and the running terminals.
struct Stage {
    folder: TempDir,
    address: String,
    server: Option<Terminal>,
    client: Option<Terminal>,
    writes: bool,
}

/// A terminal with a running command.
struct Terminal {
    running: Running,
    /// Its complete output.
    shown: String,
}

#[test]
fn the_first_tool_page_shows_the_actual_output() {
    let Some(clients) = installed::clients() else { return };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/first-tool.md");
    let mut parts = parts(&fs::read_to_string(&page).unwrap());
    let mut stage = Stage::new(clients);
    for part in &mut parts {
        match part {
            Part::Line(_) => {}
            Part::File { name, text, .. } => {
                fs::write(stage.path(name), text.replace(ADDRESS, &stage.address)).unwrap();
            }
            Part::Console { terminal, steps } => {
                for step in steps {
                    step.output = stage.take(terminal, step);
                }
            }
        }
    }
    if stage.writes {
        fs::write(page, parts.iter().map(Part::text).collect::<String>()).unwrap();
    }
}

/// Parses the page.
fn parts(page: &str) -> Vec<Part> {
    let mut lines = page.lines();
    let mut parts = Vec::new();
    while let Some(line) = lines.next() {
        let language = line.strip_prefix("```").filter(|info| !info.is_empty() && *info != "sh");
        let Some(language) = language else {
            parts.push(Part::Line(line.to_owned()));
            // A block that is not run may contain lines that look like others.
            if line.starts_with("```") {
                let end = lines.by_ref().take_while(|line| *line != "```");
                parts.extend(end.map(|line| Part::Line(line.to_owned())).collect::<Vec<_>>());
                parts.push(Part::Line("```".to_owned()));
            }
            continue;
        };
        let text: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        if let Some(terminal) = language.strip_prefix("console") {
            parts.push(Part::Console { terminal: terminal.trim().to_owned(), steps: steps(&text) });
        } else {
            let name = text[0].strip_prefix("# ").expect("a file's name in its first line");
            let (language, name) = (language.to_owned(), name.to_owned());
            parts.push(Part::File { language, name, text: text.join("\n") + "\n" });
        }
    }
    parts
}

fn steps(lines: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                steps.push(Step { command: Some(command.to_owned()), output: String::new() });
            }
            (None, Some(last)) => last.output += &[line, "\n"].concat(),
            (None, None) => steps.push(Step { command: None, output: format!("{line}\n") }),
        }
    }
    steps
}

impl Part {
    fn text(&self) -> String {
        match self {
            Self::Line(line) => format!("{line}\n"),
            Self::File { language, text, .. } => format!("```{language}\n{text}```\n"),
            Self::Console { terminal, steps } => {
                let steps = steps.iter().map(|step| {
                    let command = step.command.as_ref().map(|command| format!("$ {command}\n"));
                    command.unwrap_or_default() + &step.output
                });
                let steps: String = steps.collect();
                format!("{}\n{steps}```\n", format!("```console {terminal}").trim_end())
            }
        }
    }
}

impl Stage {
    fn new(clients: &Clients) -> Self {
        let folder = TempDir::new().unwrap();
        let venv = clients.python.parent().and_then(Path::parent).unwrap();
        symlink(venv, folder.path().join("venv")).unwrap();
        let writes = std::env::var_os("TOOLCRIB_WRITE_DOCS").is_some();
        Self { folder, address: ADDRESS.to_owned(), server: None, client: None, writes }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a step and compares its output with the page; returns the output in the form of the
    /// page.
    fn take(&mut self, terminal: &str, step: &Step) -> String {
        if terminal.is_empty() {
            return self.command(step.command.as_deref().expect("a command"), &step.output);
        }
        if let Some(command) = &step.command {
            let running = self.start(&format!("exec {command} 2>&1"));
            *self.terminal(terminal) = Some(Terminal { running, shown: String::new() });
        }
        let before = self.terminal(terminal).as_ref().expect("it was started").shown.clone();
        let expected = before.clone() + &step.output;
        let seen = self.until(&expected, |stage| {
            let now = stage.terminal(terminal).as_ref().expect("it was started");
            now.running.stdout()
        });
        if terminal == "server" && step.command.is_some() {
            let now = self.server.as_ref().expect("it was started").running.stdout();
            let address = now.split_once("http://").and_then(|(_, rest)| rest.split_once("/mcp"));
            address.expect("it says where it listens").0.clone_into(&mut self.address);
        }
        let seen = seen.replace(&self.address, ADDRESS);
        let terminal = self.terminal(terminal).as_mut().expect("it was started");
        terminal.shown.clone_from(&seen);
        seen.strip_prefix(&before).expect("nothing is taken back").to_owned()
    }

    fn terminal(&mut self, name: &str) -> &mut Option<Terminal> {
        match name {
            "server" => &mut self.server,
            "client" => &mut self.client,
            other => panic!("there is no terminal {other}"),
        }
    }

    /// Runs a command; a command about a server is repeated until the server has caught up.
    fn command(&mut self, command: &str, expected: &str) -> String {
        let run = |stage: &mut Self| {
            let run = stage.start(&format!("exec 2>&1; {command}"));
            run.finish(CLIENT_LIMIT).stdout
        };
        let asks = ["toolcrib status", "toolcrib why", "toolcrib stats"];
        if asks.iter().any(|asks| command.starts_with(asks)) {
            return self.until(expected, run);
        }
        let seen = run(self);
        self.hold(expected, &seen);
        self.shown(&seen)
    }

    fn start(&self, script: &str) -> Running {
        let own = Path::new(BINARY).parent().unwrap().to_owned();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = [own].into_iter().chain(std::env::split_paths(&path));
        let path = std::env::join_paths(path).unwrap();
        Running::start(Path::new("sh"), |command| {
            command.current_dir(self.folder.path()).args(["-c", script]).env("PATH", path);
            command.env("TOOLCRIB_TOKEN", "choose-a-long-secret").env_remove("TOOLCRIB_CONFIG");
            command.env("XDG_STATE_HOME", self.folder.path().join("state-home"));
            command.env("TOOLCRIB__SERVER__LISTEN", "127.0.0.1:0");
        })
    }

    /// Repeats until the output is the expected one.
    fn until(&mut self, expected: &str, look: impl Fn(&mut Self) -> String) -> String {
        let deadline = Instant::now() + LIMIT;
        if self.writes {
            sleep(QUIET);
        }
        loop {
            let seen = look(self);
            if self.writes || self.masked(&seen) == self.masked(expected) {
                return self.shown(&seen);
            }
            if Instant::now() > deadline {
                self.hold(expected, &seen);
            }
            sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn hold(&self, expected: &str, seen: &str) {
        if !self.writes {
            let (seen, expected) = (self.masked(seen), self.masked(expected));
            assert_eq!(seen, expected, "left: what happens; right: the page");
        }
    }

    /// The form for readers: without the name of this folder, with a fixed process id.
    fn shown(&self, text: &str) -> String {
        let folder = fs::canonicalize(self.folder.path()).unwrap();
        let text = text.replace(folder.to_str().unwrap(), FOLDER);
        let line = |line: &str| {
            let numbered = line.split_once("server ").map(|(before, rest)| {
                (before, rest.len(), rest.trim_start_matches(|c: char| c.is_ascii_digit()))
            });
            match numbered {
                Some((before, length, rest)) if rest.len() < length => {
                    [before, "server 4242", rest, "\n"].concat()
                }
                _ => [line, "\n"].concat(),
            }
        };
        text.lines().map(line).collect()
    }

    /// The part that has to be equal: without durations, the counter of changes, ports and widths
    /// of columns.
    fn masked(&self, text: &str) -> String {
        let mut masked = String::new();
        for line in self.shown(text).lines() {
            let mut words: Vec<&str> = line.split_whitespace().collect();
            for index in 1..words.len() {
                let is_number = |word: &str| word.parse::<f64>().is_ok();
                if ["us", "ms", "s"].contains(&words[index]) && is_number(words[index - 1]) {
                    words[index - 1] = "#";
                    words[index] = "time";
                } else if words[index].contains('.')
                    && is_number(words[index].trim_start_matches('<'))
                {
                    words[index] = "time";
                } else if words[index - 1] == "generation" {
                    words[index] = "#";
                } else if words[index].starts_with("http://127.0.0.1:") {
                    words[index] = "http://…";
                }
            }
            masked += &(words.join(" ") + "\n");
        }
        masked
    }
}
