//! `toolcrib token NAME`: creates a token for a client, and its config entry.

use std::io::Read as _;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use toolcrib::http::{RESERVED_NAMES, Token};

use crate::Exit;
use crate::options::JsonOutput;
use crate::screen::{self, FAINT};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib token ci                        create a token and its config entry
  toolcrib token ci --hash < ci.token      print the entry for an existing token
  toolcrib token ci --json | jq -r .hash

The token is shown once and stored nowhere. The config contains only its hash, which gives no access, so
others may read the config. Tokens chosen by people can be guessed from their hash: let this command
create them.")]
pub(crate) struct TokenOptions {
    /// The client's name: letters, digits, - and _
    #[arg(value_parser = name)]
    name: String,
    /// Read a token from standard input instead of creating one
    #[arg(long)]
    hash: bool,
    #[command(flatten)]
    output: JsonOutput,
}

fn name(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if RESERVED_NAMES.contains(&text) {
        return Err(format!(
            "the name `{text}` is reserved for the server itself: choose another name"
        ));
    }
    if (1..=64).contains(&text.len()) && text.bytes().all(fits) {
        Ok(text.to_owned())
    } else {
        Err("a name consists of 1 to 64 letters, digits, - and _".to_owned())
    }
}

pub(in crate::command) fn run(own: &TokenOptions) -> anyhow::Result<Exit> {
    let token = if own.hash { given()? } else { Token::random()? };
    let hash = token.hash();
    if own.output.json {
        let mut record = json!({"name": own.name, "hash": hash});
        if !own.hash {
            record["token"] = token.reveal().into();
        }
        screen::json(&record)?;
        return Ok(Exit::Success);
    }
    if !own.hash {
        screen::out(format!("{}\n", token.reveal()))?;
        screen::note(format!(
            "{FAINT}The token is shown only once. Add this to the config, with `rights`, `toolset` and whatever \
             else the client needs:{FAINT:#}"
        ));
    }
    screen::out(format!("server:\n  tokens:\n    {}:\n      hash: {hash}", own.name))?;
    Ok(Exit::Success)
}

fn given() -> anyhow::Result<Token> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("reading the token from standard input")?;
    match Token::new(text.trim()) {
        Ok(token) => Ok(token),
        Err(error) => bail!("{error}"),
    }
}
