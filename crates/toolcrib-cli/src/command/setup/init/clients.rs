//! How clients are told about the server: the text for each, and the file that it belongs to.

use std::path::Path;

use clap::ValueEnum;
use serde_json::{Value, json};

/// A program that uses the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::command) enum Client {
    /// Claude Code
    ClaudeCode,
    /// Claude Desktop
    ClaudeDesktop,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
    /// Codex
    Codex,
    /// Any client over HTTP, for which a token is created
    Http,
}

impl Client {
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The file of the client that its text belongs to.
    pub(super) const fn file(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".mcp.json of a project",
            Self::ClaudeDesktop => "claude_desktop_config.json",
            Self::Cursor => "~/.cursor/mcp.json",
            Self::Vscode => ".vscode/mcp.json of a project",
            Self::Codex => "~/.codex/config.toml",
            Self::Http => "the client's list of MCP servers",
        }
    }

    /// The name of the file in the new folder that has the text.
    pub(super) const fn snippet_file(self) -> &'static str {
        match self {
            Self::Codex => "client.toml",
            _ => "client.json",
        }
    }

    /// The text: how the client starts or reaches the server.
    pub(super) fn snippet(self, program: &str, config: &Path) -> anyhow::Result<String> {
        let config = config.to_string_lossy();
        let arguments = json!(["mcp", "--config", config]);
        let entry = match self {
            // The strings of JSON are strings of TOML.
            Self::Codex => {
                let program = Value::from(program);
                return Ok(format!(
                    "[mcp_servers.toolcrib]\ncommand = {program}\nargs = {arguments}\n"
                ));
            }
            Self::Http => json!({
                "type": "http",
                "url": format!("http://127.0.0.1:{}/mcp", toolcrib::http::DEFAULT_PORT),
                "headers": {"Authorization": "Bearer ${TOOLCRIB_TOKEN}"},
            }),
            Self::ClaudeDesktop | Self::Cursor => json!({"command": program, "args": arguments}),
            Self::ClaudeCode | Self::Vscode => {
                json!({"type": "stdio", "command": program, "args": arguments})
            }
        };
        let list = if self == Self::Vscode { "servers" } else { "mcpServers" };
        let text = serde_json::to_string_pretty(&json!({list: {"toolcrib": entry}}))?;
        Ok(text + "\n")
    }
}
