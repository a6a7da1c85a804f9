//! The report that an operator sees before trusting a declaration: everything that decides what it
//! can do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use similar::TextDiff;
use toolcrib::manifest::declaration::{
    ArgvEntry, Declaration, DeclaredBody, HttpSpec, NamedFile, SandboxSpec, UpstreamDeclaration,
    UpstreamTransport,
};
use toolcrib::manifest::lock::fields_of;
use toolcrib::manifest::template::Template;
use toolcrib::tool::fully_visible;
use toolcrib::tool::units::{ByteSize, HumanDuration};

/// The number of bytes of a file that are shown.
const FILE_MAX: usize = 16 * 1024;

/// The number of bytes of a file that are recorded, to show changes later.
const KEPT_MAX: usize = 1024 * 1024;

/// The time limit for an exact diff; after that, a coarser one is used.
const DIFF_TIME: Duration = Duration::from_secs(2);

/// Lines for a person, without invisible characters.
#[derive(Debug, Default)]
pub(in crate::command) struct TrustReport {
    /// Whether files are only named.
    is_brief: bool,
    /// The text for the screen, with long files cut.
    screen: String,
    /// The text with whole files, which is recorded.
    whole: String,
}

impl TrustReport {
    /// Everything that decides what a tool can do.
    pub(super) fn of_tool(tool: &Declaration) -> Self {
        let mut shown = Self::default();
        shown.program(tool);
        shown.declares(&tool.expanded());
        shown
    }

    /// What a call of the tool starts or sends, and its confinement, in a few lines.
    pub(in crate::command) fn brief(tool: &Declaration) -> Self {
        let mut shown = Self { is_brief: true, ..Self::default() };
        shown.program(tool);
        match &tool.body {
            DeclaredBody::Command(_) | DeclaredBody::Worker(_) => {}
            DeclaredBody::Http(http) => shown.request(http),
            DeclaredBody::Client => shown.line("runs", "at the client, which receives the call"),
        }
        shown.line("secrets", &tool.needs.secrets.join(", "));
        shown
    }

    /// The same for a tool of an MCP server.
    pub(in crate::command) fn brief_of_upstream(server: &UpstreamDeclaration) -> Self {
        let mut shown = Self { is_brief: true, ..Self::default() };
        shown.line("calls", &format!("the MCP server `{}`", server.name));
        shown.server(server);
        if let UpstreamTransport::Http(http) = &server.transport {
            shown.line("at", &http.url);
        }
        shown.line("secrets", &server.needs.secrets.join(", "));
        shown
    }

    fn program(&mut self, tool: &Declaration) {
        let shown = self;
        match (tool.command(), tool.worker()) {
            (Some(command), _) => {
                shown.words(command.argv.iter().map(entry));
                if let Some(stdin) = command.stdin.as_ref().filter(|_| shown.is_brief) {
                    shown.line("stdin", &super::shown(&json!(stdin)));
                }
                shown.sandbox(&tool.sandbox, command.cwd.as_deref());
                shown.environment(&command.env, &command.pass_env);
                let script = command.script.iter().map(|script| &script.path);
                shown.files(script.chain(command.files.values().map(|file| &file.path)));
            }
            (None, Some(worker)) => {
                shown.words(worker.argv.iter().map(|word| quoted(word)));
                if shown.is_brief {
                    let idle = HumanDuration(Some(worker.idle));
                    let kept = format!(
                        "started once, answers many calls as lines of JSON, ended after {idle} without one"
                    );
                    shown.line("worker", &kept);
                }
                shown.sandbox(&tool.sandbox, None);
                shown.environment(&worker.env, &worker.pass_env);
                shown.files(worker.files.values().map(|file| &file.path));
            }
            (None, None) => {}
        }
    }

    /// A request; headers and credentials appear by name only.
    fn request(&mut self, http: &HttpSpec) {
        let path = super::shown(&json!(http.url.path));
        let pairs: Vec<String> = http
            .url
            .query
            .iter()
            .map(|pair| match &pair.value {
                Some(value) => format!("{}={}", pair.name, super::shown(&json!(value))),
                None => pair.name.clone(),
            })
            .collect();
        let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
        self.line("requests", &format!("{} {}{path}{query}", http.method, http.url.origin));
        self.line("headers", &http.headers.keys().cloned().collect::<Vec<_>>().join(", "));
        let private = http.allow_private.iter().map(ToString::to_string);
        self.line("reaches", &private.collect::<Vec<_>>().join(", "));
    }

    /// A declaration that runs nothing.
    pub(super) fn of_declared(expanded: &Value) -> Self {
        let mut shown = Self::default();
        shown.declares(expanded);
        shown
    }

    /// Everything that decides what an MCP server can do.
    pub(super) fn of_upstream(server: &UpstreamDeclaration) -> Self {
        let mut shown = Self::default();
        shown.server(server);
        shown.declares(&server.expanded());
        shown
    }

    fn server(&mut self, server: &UpstreamDeclaration) {
        if let UpstreamTransport::Stdio(stdio) = &server.transport {
            self.words(stdio.argv.iter().map(|word| quoted(&word.to_string())));
            self.sandbox(&stdio.sandbox, stdio.cwd.as_deref());
            self.environment(&stdio.env, &stdio.pass_env);
            self.files(stdio.files.values().map(|file| &file.path));
        }
    }

    /// The text for the screen.
    pub(in crate::command) fn screen(&self) -> &str {
        &self.screen
    }

    /// The text with whole files.
    pub(super) fn whole(&self) -> &str {
        &self.whole
    }

    fn push(&mut self, line: &str) {
        self.screen.push_str(line);
        self.whole.push_str(line);
    }

    /// Everything that the digest covers, one line per value; secrets appear by name.
    fn declares(&mut self, expanded: &Value) {
        self.push("  declares\n");
        let mut fields = fields_of(expanded);
        if fields.get("/annotations/read_only") == Some(&Value::Bool(true)) {
            // As on every other screen; the digest covers the declared value.
            fields.insert("/annotations/destructive".to_owned(), Value::Bool(false));
        }
        for (pointer, value) in fields {
            self.push(&format!(
                "    {} = {}\n",
                fully_visible(&pointer),
                fully_visible(&value.to_string())
            ));
        }
    }

    /// A line, unless the value is empty.
    fn line(&mut self, head: &str, value: &str) {
        if !value.is_empty() {
            self.push(&format!("  {head:<8} {}\n", fully_visible(value)));
        }
    }

    fn words(&mut self, words: impl Iterator<Item = String>) {
        self.line("runs", &words.collect::<Vec<_>>().join(" "));
    }

    fn sandbox(&mut self, sandbox: &SandboxSpec, cwd: Option<&Path>) {
        let paths = |paths: &[PathBuf]| {
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        };
        self.line("profile", sandbox.profile.as_str());
        if self.is_brief {
            let memory = sandbox.memory.map(|bytes| ByteSize(bytes).to_string());
            self.line("memory", &memory.unwrap_or_default());
        }
        self.line("read", &paths(&sandbox.read));
        self.line("write", &paths(&sandbox.write));
        self.line("cwd", &cwd.map(|cwd| cwd.display().to_string()).unwrap_or_default());
    }

    fn environment(&mut self, env: &BTreeMap<String, Template>, pass_env: &[String]) {
        for (name, value) in env {
            self.line("env", &format!("{name}={}", json!(value)));
        }
        self.line("pass_env", &pass_env.join(", "));
    }

    fn files<'p>(&mut self, files: impl Iterator<Item = &'p PathBuf>) {
        for path in files {
            self.file(path);
        }
    }

    /// The part of a file's text that is shown.
    fn file(&mut self, path: &Path) {
        let plain: PathBuf = path.components().collect();
        let shown = plain.display();
        if self.is_brief {
            return self.line("file", &shown.to_string());
        }
        let (length, text) = match beginning(path) {
            Ok(found) => found,
            Err(error) => return self.line("file", &format!("{shown} (cannot be read: {error})")),
        };
        let Some(text) = text else {
            let digest = digest(path);
            return self.line("file", &format!("{shown} ({length} bytes, not text, {digest})"));
        };
        self.line("file", &format!("{shown} ({length} bytes)"));
        let end = (0..=FILE_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let short = &text[..end.unwrap_or_default()];
        if short.len() < text.len() || (text.len() as u64) < length {
            self.push(&format!("    {}\n", digest(path)));
        }
        cut(&mut self.screen, short, length);
        cut(&mut self.whole, &text, length);
    }
}

/// One argument in quotes.
fn quoted(word: &str) -> String {
    format!("{word:?}")
}

/// An entry of an argument vector: the argument in quotes; if it depends on the call, in brackets
/// with its condition.
fn entry(entry: &ArgvEntry) -> String {
    let word = |template: &Template| quoted(&template.to_string());
    match entry {
        ArgvEntry::One(template) => word(template),
        ArgvEntry::If { condition, then } => {
            let then: Vec<_> = then.iter().map(word).collect();
            format!("[if {condition}: {}]", then.join(" "))
        }
        ArgvEntry::Each { argument } => format!("[each of {argument}]"),
    }
}

/// Appends the start of a file of this length.
fn cut(to: &mut String, text: &str, length: u64) {
    for line in text.lines() {
        // Writing to a String does not fail.
        let _ = writeln!(to, "    | {}", fully_visible(line));
    }
    let left = length.saturating_sub(text.len() as u64);
    if left > 0 {
        let _ = writeln!(to, "    … {left} more bytes: look at the file");
    }
}

/// The digest of a file, or that it has none.
fn digest(path: &Path) -> String {
    NamedFile::read(path).digest.unwrap_or_else(|| "unreadable".to_owned())
}

/// The length of a file, and its start if it is text.
fn beginning(path: &Path) -> std::io::Result<(u64, Option<String>)> {
    let found = path.metadata()?;
    if !found.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(KEPT_MAX as u64).read_to_end(&mut bytes)?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        // The cut may be inside a character.
        Err(error) if error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(end);
            String::from_utf8(bytes).ok()
        }
        Err(_) => None,
    };
    Ok((found.len(), text.filter(|text| !text.contains('\0'))))
}

/// The changes since the last trust: changed lines with their context.
pub(super) fn difference(before: &str, now: &str) -> String {
    lines_between(before, now, "trusted")
}

/// A diff of two texts with context; `before` labels the first one.
pub(in crate::command) fn lines_between(old: &str, now: &str, before: &str) -> String {
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(old, now);
    diff.unified_diff().context_radius(2).header(before, "now").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_script_is_cut_with_its_length_and_nothing_in_it_moves_the_cursor() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.sh");
        let text = format!("echo \u{1b}[2K\u{202e}é\n{}é", "x".repeat(FILE_MAX - 21));
        std::fs::write(&path, format!("{text}{}", "y".repeat(100))).expect("a script");
        let mut shown = TrustReport::default();
        shown.file(&path);
        let shown = shown.screen;
        let length = path.metadata().expect("it is").len();
        assert!(shown.contains(&format!("({length} bytes)")), "{shown}");
        assert!(shown.contains(r"echo \u{1b}[2K\u{202e}é"), "{shown}");
        assert!(shown.contains("more bytes: look at the file"), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']));
    }

    #[test]
    fn a_diff_shows_added_and_removed_lines() {
        let shown =
            difference("  runs     \"a\"\n  env      A\n", "  runs     \"b\"\n  env      A\n");
        assert!(
            shown.contains("-  runs     \"a\"") && shown.contains("+  runs     \"b\""),
            "{shown}"
        );
    }
}
