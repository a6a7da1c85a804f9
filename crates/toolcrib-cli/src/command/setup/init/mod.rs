//! `toolcrib init`: a folder with a config, a first tool and the entry for a client, after three questions.

mod clients;
mod questions;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use toolcrib::http::Token;

use crate::command::manifests::new::{
    Draft, Elsewhere, Template, make_directory, shell_word, write_file,
};
use crate::options::JsonOutput;
use crate::screen::{self, FAINT, STRONG};
use crate::startup::DEFAULT_CONFIGS;
use crate::{Exit, runtime, terminal_line};
use clients::Client;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib init                                    asks three questions
  toolcrib init crib --tool line_count --template command --client claude-code
  toolcrib init --yes --client http                takes the defaults for what is not named

It writes config.yml, tools.d/NAME.yaml, a folder for the tools to work in, and client.json or client.toml
with the entry for the client, which it prints, too. Existing files are never overwritten. Without a terminal
it asks nothing, as with --yes.")]
pub(crate) struct InitOptions {
    /// The folder, which is created if necessary
    #[arg(default_value = ".")]
    folder: PathBuf,
    #[arg(
        long,
        help = "The name of the first tool [default: line_count]",
        value_name = "NAME",
        value_parser = questions::name_of_a_tool
    )]
    tool: Option<String>,
    /// What the first tool does [default: command]
    #[arg(long, value_enum)]
    template: Option<Template>,
    /// The client that will use the tools [default: claude-code]
    #[arg(long, value_enum)]
    client: Option<Client>,
    /// Ask nothing, and take the defaults
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    output: JsonOutput,
}

/// What was answered.
struct Answers {
    tool: String,
    template: Template,
    client: Client,
}

/// The config: settings that most people change or should know about.
const CONFIG: &str = "# What differs from the defaults: `toolcrib config show` prints every setting in effect.
toolcrib: 1

# A running server loads each manifest in this folder as soon as it is saved.
manifests: {dirs: [tools.d]}

# Tools work in this folder, and can change neither this file nor the manifests.
workspace: {root: workspace}

# What the server stores, and the socket with which `toolcrib status` and `toolcrib approvals` find it.
state: {dir: state}
";

pub(in crate::command) fn run(own: &InitOptions) -> anyhow::Result<Exit> {
    let folder = &own.folder;
    if let Some(there) =
        DEFAULT_CONFIGS.map(|name| folder.join(name)).iter().find(|path| is_taken(path))
    {
        bail!("{} already exists: nothing was changed", there.display());
    }
    let answers = answers(own)?;
    let token = match answers.client {
        Client::Http => Some(Token::random()?),
        _ => None,
    };
    let manifest = folder.join("tools.d").join(format!("{}.yaml", answers.tool));
    let draft = Draft::of(answers.template, &answers.tool, manifest.clone());
    let snippet_file = folder.join(answers.client.snippet_file());
    if let Some(there) = draft.paths().chain([&snippet_file]).find(|path| is_taken(path)) {
        bail!("{} already exists: nothing was changed", there.display());
    }
    let workspace = folder.join("workspace");
    let folders = [folder.clone(), folder.join("tools.d"), workspace.clone()];
    if let Some(other) = folders.iter().find(|path| is_taken(path) && !path.is_dir()) {
        bail!("{} already exists and is no folder: nothing was changed", other.display());
    }
    make_directory(&manifest, Elsewhere::Folder)?;
    fs::create_dir_all(&workspace).with_context(|| format!("making {}", workspace.display()))?;
    // Absolute, because clients start the server in any folder.
    let home = folder.canonicalize().with_context(|| format!("finding {}", folder.display()))?;
    let snippet = answers.client.snippet(&program(), &home.join("config.yml"))?;
    let config = folder.join("config.yml");
    write_file(&config, &config_text(token.as_ref()), false, Elsewhere::Folder)?;
    draft.write(Elsewhere::Folder)?;
    write_file(&snippet_file, &snippet, false, Elsewhere::Folder)?;

    let written: Vec<&Path> = [config.as_path()]
        .into_iter()
        .chain(draft.paths().map(PathBuf::as_path))
        .chain([&*snippet_file])
        .collect();
    if own.output.json {
        let files: Vec<_> = written.iter().map(|path| path.to_string_lossy()).collect();
        let client =
            json!({"name": answers.client.name(), "file": answers.client.file(), "entry": snippet});
        let token = token.as_ref().map(Token::reveal);
        screen::json(
            &json!({"files": files, "tool": answers.tool, "client": client, "token": token}),
        )?;
    } else {
        for path in written {
            screen::out(format!("{STRONG}{}{STRONG:#}", path.display()))?;
        }
        screen::out(format!("\nFor {}:\n{snippet}", answers.client.file()))?;
        if let Some(token) = &token {
            screen::out(format!("TOOLCRIB_TOKEN={}", token.reveal()))?;
            screen::note(format!(
                "{FAINT}The token is shown only once; the config has its hash.{FAINT:#}"
            ));
        }
        screen::note(next(folder, answers.client));
    }
    Ok(Exit::Success)
}

/// Whether something has this name, be it a link that leads nowhere.
fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn answers(own: &InitOptions) -> anyhow::Result<Answers> {
    let asks = !own.yes && !own.output.json && terminal_line::is_there();
    runtime::block_on(async {
        let tool = match own.tool.clone() {
            None if asks => questions::tool().await?,
            given => given.unwrap_or_else(|| questions::TOOL.to_owned()),
        };
        let template = match own.template {
            None if asks => questions::template().await?,
            given => given.unwrap_or(Template::Command),
        };
        let client = match own.client {
            None if asks => questions::client().await?,
            given => given.unwrap_or(Client::ClaudeCode),
        };
        Ok(Answers { tool, template, client })
    })?
}

/// The config, with the hash of the client's token.
fn config_text(token: Option<&Token>) -> String {
    let Some(token) = token else { return CONFIG.to_owned() };
    format!(
        "{CONFIG}\n# Clients and their tokens, of which only hashes are kept: `toolcrib token NAME` creates more.\nserver:\n  \
         tokens:\n    first_client:\n      hash: {}\n",
        token.hash()
    )
}

/// How clients start this program: by its name if that is the program on the search path.
fn program() -> String {
    let own = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join("toolcrib"));
    let first = found.find(|path| path.is_file()).and_then(|path| path.canonicalize().ok());
    if first.is_some_and(|first| first == own) {
        "toolcrib".to_owned()
    } else {
        own.to_string_lossy().into_owned()
    }
}

/// The commands that come next.
fn next(folder: &Path, client: Client) -> String {
    let mut lines = vec!["Next:".to_owned()];
    if folder != Path::new(".") {
        lines.push(format!("  cd {}", shell_word(folder)));
    }
    lines.push("  toolcrib test          run the tests of the first tool".to_owned());
    lines.push(match client {
        Client::Http => "  toolcrib serve         serve it over HTTP".to_owned(),
        _ => "  toolcrib mcp           what the client starts".to_owned(),
    });
    lines.push("  toolcrib help manifest what a manifest can say".to_owned());
    lines.join("\n")
}
