//! Flags for settings of the HTTP server, as a layer of the config.

use clap::Args;
use toolcrib::settings::ConfigLayers;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServerFlags {
    /// The address to listen on, where port 0 takes a free one, or `unix:` and the path of a socket [default: 127.0.0.1:7777]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The bearer token clients must send; better in the variable `TOOLCRIB_TOKEN`
    #[arg(long)]
    token: Option<String>,
    /// Ask for no token; refused on any address but loopback and a socket
    #[arg(long, conflicts_with = "token")]
    no_auth: bool,
    /// Only the tools of this toolset of the config, for clients whose tokens name none
    #[arg(long, value_name = "NAME")]
    toolset: Option<String>,
    /// A web page's origin that may call the server, instead of the config's (may be repeated)
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// A further Host header value that is accepted, instead of the config's (may be repeated)
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
}

impl ServerFlags {
    /// Adds the flags on top of the other layers.
    pub(crate) fn over(&self, mut layers: ConfigLayers) -> ConfigLayers {
        let texts = [
            ("--listen", "listen", &self.listen),
            ("--token", "token", &self.token),
            ("--toolset", "toolset", &self.toolset),
        ];
        for (flag, key, said) in texts {
            if let Some(said) = said {
                layers = layers.value(flag, &["server", key], said.as_str().into());
            }
        }
        if self.no_auth {
            layers = layers.value("--no-auth", &["server", "no_auth"], true.into());
        }
        let lists = [
            ("--allow-origin", "allowed_origins", &self.allow_origin),
            ("--allow-host", "allowed_hosts", &self.allow_host),
        ];
        for (flag, key, said) in lists {
            if !said.is_empty() {
                layers = layers.value(flag, &["server", key], said.clone().into());
            }
        }
        layers
    }
}
